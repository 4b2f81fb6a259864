"""What a leaderboard says about one judge, the current version: its alignment, its gain, and how it compares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.comparison.leaderboard import (
    Finding,
    Leaderboard,
    bar_words,
    basis_words,
    cautions,
    finding,
    in_short,
    people_words,
)
from core.stats import ALPHA, claim
from core.stats.claims import alone_words
from core.wording import number, p_figure, signed, signed_range


def version_finding(
    board: Leaderboard, measure: str, name: str, place: int, *, baseline: int | None = None, looks: int = 0
) -> Finding:
    """The result of `board` about the judge at `place` among those given; `name` is "Version 2 of the judge".

    `baseline` is the place of the same judge without criteria; `looks` how often the held-out items were seen.  Where
    the judge is not among the rows, or has no alignment, it is the finding of the whole table.
    """
    at = next((k for k, row in enumerate(board.rows) if row.place == place), None)
    if at is None or board.problem or board.rows[at].alignment.value is None:
        return finding(board, measure)
    row = board.rows[at]
    seen = [f"The held-out items were seen {looks} times."] if looks > 1 and baseline is not None else []
    return Finding(
        f"{name} {_verb(board, at)}: {number(row.alignment.value)}.",
        (*_gain(board, at, baseline), *_others(board, at), *bar_words(board, at)),
        (*seen, *cautions(board, row)),
        basis_words(board, row, measure),
        people_words(board, row, measure, name),
    )


def with_planned(board: Leaderboard, place: int, other: int) -> Leaderboard:
    """The same table, the judges at these places compared as planned beforehand: by the p of that pair alone."""
    rows = [k for k, row in enumerate(board.rows) if row.place in (place, other)]
    if board.pairwise is None or len(rows) != 2:
        return board
    own, holm = board.pairwise.pair(*rows).p, board.pairwise.p_holm.copy()
    holm[tuple(rows)] = holm[tuple(rows[::-1])] = np.nan if own is None else own
    return replace(board, pairwise=replace(board.pairwise, p_holm=holm), planned=(place, other))


def without_p(board: Leaderboard, place: int, reason: str) -> Leaderboard:
    """The same table, nothing claimed of the judge at `place`, for `reason`: no p, and no comparison with a rater."""
    if not reason:
        return board
    at = next(k for k, row in enumerate(board.rows) if row.place == place)
    rows = [
        replace(row, people=row.people.without_claim(reason)) if k == at and row.people is not None else row
        for k, row in enumerate(board.rows)
    ]
    board = replace(board, rows=tuple(rows), bar=board.bar and board.bar.without_p(at, reason))
    if board.pairwise is None:
        return board
    holm, williams = board.pairwise.p_holm.copy(), board.pairwise.williams_p_holm.copy()
    for matrix in (holm, williams):
        matrix[at, :] = matrix[:, at] = np.nan
    differences = {
        pair: replace(difference, p=None, p_reason=reason) if at in pair else difference
        for pair, difference in board.pairwise.differences.items()
    }
    pairwise = replace(board.pairwise, p_holm=holm, williams_p_holm=williams, differences=differences)
    return replace(board, pairwise=pairwise)


def _verb(board: Leaderboard, at: int) -> str:
    """No stronger than the tests: best is who is shown to be better than all others."""
    if at:
        return "agrees with raters"
    others = [k for k in range(1, len(board.rows)) if board.rows[k].alignment.value is not None]
    if others and board.pairwise is not None:
        beyond = [board.pairwise.p_holm[0, k] <= ALPHA for k in others]
        return "agrees best with raters" if all(beyond) else "has the highest agreement with raters"
    return "agrees with raters"


def _gain(board: Leaderboard, at: int, baseline: int | None) -> list[str]:
    """`Compared with no criteria: +0.12 [+0.05, +0.19], p = 0.004.`"""
    other = next((k for k, row in enumerate(board.rows) if row.place == baseline), None)
    if other is None or board.pairwise is None:
        return []
    pair = board.pairwise.pair(at, other)
    if pair.value is None:
        return []
    p = float(board.pairwise.p_holm[at, other])
    ends = "" if pair.interval is None else f" {signed_range(pair.interval)}"
    if np.isnan(p):
        return [f"Compared with no criteria: {signed(pair.value)}{ends}, no p."]
    says = p_figure(p)
    if claim(pair.value, pair.interval, p) == "open":
        why = alone_words(pair.interval, p)
        says = f"not significant ({says}{why})"
    return [f"Compared with no criteria: {signed(pair.value)}{ends}, {says}."]


def _others(board: Leaderboard, at: int) -> list[str]:
    """Judges that it is significantly better or worse than, and those it does not differ from."""
    if board.pairwise is None:
        return []
    planned = set(board.planned or ())
    others = [
        k
        for k, row in enumerate(board.rows)
        if k != at and row.alignment.value is not None and row.place not in planned
    ]
    p = {k: float(board.pairwise.p_holm[at, k]) for k in others}
    said = {
        "better than": [k for k in others if p[k] <= ALPHA and k > at],
        "worse than": [k for k in others if p[k] <= ALPHA and k < at],
        "not significantly different from": [k for k in others if p[k] > ALPHA],
    }
    parts = [f"{words} {in_short([board.rows[k].name for k in whom])}" for words, whom in said.items() if whom]
    but = "; the comparison with no criteria was planned and keeps its own p" if planned else ""
    sentences = [f"It is {', and '.join(parts)} (paired over sources, Holm-corrected{but})."] if parts else []
    untested = [k for k in others if np.isnan(p[k])]
    if untested:
        reason = board.pairwise.pair(at, untested[0]).p_reason
        whom = (
            "" if untested == others and not planned else f" against {in_short([board.rows[k].name for k in untested])}"
        )
        sentences.append(f"No p{whom}: {reason}.")
    return sentences
