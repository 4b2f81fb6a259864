"""The end of a calibration: the final judge, and what it reaches on items that chose nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.calibration.asking import AskedJudge
from core.calibration.board import Board
from core.calibration.revisit import STEP_CALLS, Order
from core.records import Alignment, Criteria, FloatArray, Scale, ScoreMatrix, Unscored
from core.stats import Difference, IsotonicFit, LabelledItems, claim, fit_isotonic, gain_words


def ensemble_scores(values: FloatArray) -> FloatArray:
    """(n_items,) mean over criteria (k, n_items) of the scores that are there; NaN where there is none."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)
    return mean


def affordable_held_out(board: Board, side: LabelledItems, n_criteria: int) -> LabelledItems:
    """The part of held-out that the budget still covers: whole sources in random order; all without a budget."""
    left = board.meter.left(with_reserve=True)
    if left is None or left >= side.n * n_criteria or side.n == 0:
        return side
    order = Order(side.sources, board.settings.seed)
    n_items = max((end for end in order.source_ends if end * n_criteria <= left), default=0)
    return side.take(np.sort(order.items[:n_items]))


class HeldOut:
    """Scores of a few criteria on the held-out side, gathered batch by batch."""

    def __init__(self, side: LabelledItems, criteria: Sequence[Criteria]) -> None:
        self.side, self.criteria = side, tuple(criteria)
        self.values: FloatArray = np.full((len(self.criteria), side.n), np.nan)

    def collect(self, asked: AskedJudge, board: Board) -> None:
        size = max(1, STEP_CALLS // max(len(self.criteria), 1))
        for start in range(0, self.side.n, size):
            positions = tuple(int(p) for p in self.side.positions[start : start + size])
            matrix = asked.score(self.criteria, positions)
            self.values[:, start : start + len(positions)] = matrix.values
            board.take(matrix)
            done = start + len(positions)
            message = f"{done} of {self.side.n} held-out items scored"
            asked.progress.publish(board.standing("held-out", board.rounds_done, message))

    def rows(self, criteria: Sequence[Criteria]) -> FloatArray:
        at = {one.criteria_id: i for i, one in enumerate(self.criteria)}
        return self.values[[at[one.criteria_id] for one in criteria]]


def final_scores(
    item_ids: tuple[str, ...], members: Mapping[str, FloatArray], reasons: Mapping[str, Unscored]
) -> ScoreMatrix:
    """The final judge's scores as the first row ("final"), those of its members (criteria id → (n_items,)) below.

    `reasons` (item id → Unscored) tell why the final judge has no score for some items.
    """
    rows = np.stack(list(members.values()))
    joined = ensemble_scores(rows)
    missing = tuple(
        reasons.get(item_id, Unscored(item_id, "budget", "not asked for: the budget was used up"))
        for item_id, value in zip(item_ids, joined, strict=True)
        if np.isnan(value)
    )
    return ScoreMatrix(("final", *members), item_ids, np.vstack([joined, rows]), {"final": missing} if missing else {})


def unread_counts(board: Board) -> dict[str, int]:
    """How many scores are missing over the whole run, by reason, in the words of `Calibration.problems`."""
    counts: dict[str, int] = {}
    for rows in board.unscored.values():
        for one in rows.values():
            counts[f"unread: {one.reason}"] = counts.get(f"unread: {one.reason}", 0) + 1
    return counts


def unread_warning(scores: ScoreMatrix) -> list[str]:
    """A sentence when the final judge could not score items it was asked for; nothing otherwise."""
    missing = [one for one in scores.unscored.get("final", ()) if one.reason != "budget"]
    if not missing:
        return []
    reasons = ", ".join(sorted({one.reason for one in missing}))
    return [
        f"{len(missing)} of {len(scores.item_ids)} items have no score ({reasons}). They are counted, never guessed; "
        "the replies stand in the verdicts."
    ]


def monotone_map(board: Board, scores: FloatArray, scale: Scale) -> IsotonicFit:
    """The increasing map from judge score to human scale, fitted on calibration items only."""
    return fit_isotonic(scores, board.side.labels, scale)


def two_sides(
    board: Board, sides: tuple[LabelledItems, LabelledItems], scores: tuple[FloatArray, FloatArray]
) -> Mapping[str, Alignment]:
    """Alignments of one judge's scores on calibration and on held-out items."""
    return {
        name: board.align(one[None, :], side)[0]
        for name, side, one in zip(("calibration", "held_out"), sides, scores, strict=True)
    }


def gain_over_none(
    board: Board, side: LabelledItems, final: FloatArray, bare: FloatArray, best: Criteria
) -> Difference:
    """The final judge minus the one without criteria on the held-out items (n,) that both scored.

    Undefined where the final judge has no criteria itself (`best` is its first).
    """
    found = board.difference(final, bare, side)
    if best.text:
        return found
    return replace(found, value=None, interval=None, p=None, reason="the final judge is the one without criteria")


def gain_remark(gain: Difference) -> list[str]:
    """What to say of the gain over no criteria, unless its test shows one."""
    if claim(gain.value, gain.interval, gain.p) == "higher":
        return []
    return [gain_words(gain)]
