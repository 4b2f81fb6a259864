"""Criteria with strengths fitted to all calibration items, for judges that can write such: the final judge's.

Scores on items whose labels the strengths were fitted to lie closer to people than later ones will.  The map to the
human scale and the intervals therefore rest on *crossed* scores: each fold of sources is scored by criteria fitted to
the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.candidate_pool import AskedJudge, CandidatePool, ScoreTable
from core.calibration.proposals import distinct, fitting_request
from core.calibration.racing_order import Order
from core.calibration.revisit import schedule
from core.data.split import too_few_to_stack
from core.judging.judge_protocol import Judge
from core.records import Criteria, FloatArray
from core.stats import LabelledItems
from core.stats.items import source_folds

CROSSED = 10
"""Folds of sources that scores are crossed over: each is fitted to nine tenths of the labels."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fitted criteria, by now in the pool, and crossed scores (n_items,) of calibration items, NaN elsewhere."""

    criteria: Criteria
    crossed: FloatArray


def crossing_calls(judge: Judge, settings: CalibrationSettings, items: LabelledItems) -> int:
    """Calls that `fitted_again` takes at most; 0 without the gate, which is 001 to the letter, and for few labels."""
    wanted = judge.fits_strengths and settings.fit_strengths and settings.refine_gate
    if not wanted or too_few_to_stack(items.n):
        return 0
    return 1 + min(CROSSED, np.unique(items.sources).size) + items.n


def fitting_calls(judge: Judge, settings: CalibrationSettings, items: LabelledItems) -> int:
    """Calls that `fit_strengths` takes at most on these calibration items; 0 where it is left out."""
    crossing = crossing_calls(judge, settings, items)
    return crossing + items.n if crossing else 0


def fit_strengths(judge: AskedJudge, pool: CandidatePool, order: Order) -> Fitted | None:
    """Have criteria fitted, score them on calibration items, and cross them; None where the labels show nothing."""
    found = _fitted_to(judge, pool, pool.items)
    if found is None or found.criteria_id in pool.entries:
        return None
    pool.add([found])
    ends = [rung.items for rung in schedule(pool.settings, pool.settings.plan.n_drafts, order)]
    for start, end in itertools.pairwise([0, *ends]):  # stops where the drafts' race did, to be laid beside them
        pool.score(judge, [found], [int(p) for p in pool.items.positions[order.items[start:end]]])
        judge.progress.publish(pool.snapshot("revisit", 0, "strengths fitted to all calibration items"))
    pool.mark([found.criteria_id], "kept")
    return Fitted(found, _crossed(judge, pool))


def fitted_again(judge: AskedJudge, pool: CandidatePool, criteria: Sequence[Criteria]) -> Fitted | None:
    """`criteria` with crossed scores, where they are what is fitted to these labels; None for any others."""
    if len(criteria) != 1 or not crossing_calls(judge.judge, pool.settings, pool.items):
        return None
    found = _fitted_to(judge, pool, pool.items)
    same = found is not None and found.criteria_id == criteria[0].criteria_id
    return Fitted(criteria[0], _crossed(judge, pool)) if same else None


def seen_labels_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """What to say of scores that are not crossed, of `criteria` that name strengths as labels give them; else ""."""
    from core.judging.offline.criteria_grammar import states_strength

    if not judge.fits_strengths or not any(states_strength(each.text) for each in criteria):
        return ""
    return (
        "The criteria name strengths as they are fitted to labels, and are not what these labels give: the map to the "
        "human scale and the intervals rest on scores of items that the strengths may have been fitted to, so later "
        "verdicts may lie further off than they say. Calibrate anew for a map and intervals without this."
    )


def unread_lines_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """The lines of `criteria` that `judge` cannot read, in a sentence; "" for none."""
    lines = [f"“{line}”" for each in criteria for line in judge.unread_lines(each)]
    if not lines:
        return ""
    return (
        f"The {judge.spec} judge cannot read these lines, so they have no effect: {' '.join(lines)}. "
        "It reads lines such as “Reward texts that are short.”, with the phrases of its feature table."
    )


def _fitted_to(judge: AskedJudge, pool: CandidatePool, items: LabelledItems) -> Criteria | None:
    batch = judge.draft([fitting_request(judge.golden, items.labels, items.positions, pool.settings)])
    pool.budget.spend(batch.calls, batch.usage)
    return next(iter(distinct(batch).criteria), None)


def _crossed(judge: AskedJudge, pool: CandidatePool) -> FloatArray:
    items, scores = pool.items, np.full(len(judge.golden.items), np.nan)
    folds = source_folds(items.sources, CROSSED, pool.settings.seed)
    table = ScoreTable(judge.golden.item_ids, pool.budget)
    for fold in range(int(folds.max()) + 1):
        found, out = _fitted_to(judge, pool, items.take(folds != fold)), items.positions[folds == fold]
        if found is not None:
            table.ask(judge, [found], out.tolist())
            scores[out] = table.values(found.criteria_id)[out]
    return scores
