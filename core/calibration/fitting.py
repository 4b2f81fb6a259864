"""Criteria with strengths fitted to all calibration items, for judges that can write such: the final judge's.

Scores on items whose labels the strengths were fitted to lie closer to the labels than later ones will.  The map to the
human scale and the intervals therefore rest on *crossed* scores: each fold of sources is scored by criteria fitted to
the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.candidate_pool import AskedJudge, CandidatePool, ScoreTable
from core.calibration.proposals import fitting_request, new_criteria
from core.calibration.racing import Order, schedule
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
    """Calls that `fitted_again` makes at most; 0 for few labels, and without the gate, as in the paper."""
    wanted = judge.fits_strengths and settings.fit_strengths and settings.refine_gate
    if not wanted or too_few_to_stack(items.n):
        return 0
    return 1 + min(CROSSED, np.unique(items.sources).size) + items.n


def fitting_calls(judge: Judge, settings: CalibrationSettings, items: LabelledItems) -> int:
    """Calls that `fit_strengths` makes at most on these calibration items; 0 where it is left out."""
    crossing = crossing_calls(judge, settings, items)
    return crossing + items.n if crossing else 0


def fit_strengths(judge: AskedJudge, pool: CandidatePool, order: Order) -> Fitted | None:
    """Have criteria fitted, score them on calibration items, and cross them; None where the labels show nothing."""
    found = _fitted_to(judge, pool, pool.items)
    if found is None or found.criteria_id in pool.entries:
        return None
    pool.add([found])
    start = 0
    for rung in schedule(pool.settings, pool.settings.plan.n_drafts, order):  # pause where the drafts' race paused
        pool.score(judge, [found], pool.items.positions[order.items[start : rung.items]].tolist())
        start = rung.items
        judge.progress.publish(pool.snapshot("revisit", 0, "strengths fitted to all calibration items"))
    pool.mark([found.criteria_id], "kept")
    return Fitted(found, _crossed(judge, pool))


def fitted_again(judge: AskedJudge, pool: CandidatePool, criteria: Sequence[Criteria]) -> Fitted | None:
    """`criteria` with crossed scores, where these labels give exactly them; None for any others."""
    if len(criteria) != 1 or not crossing_calls(judge.judge, pool.settings, pool.items):
        return None
    found = _fitted_to(judge, pool, pool.items)
    same = found is not None and found.criteria_id == criteria[0].criteria_id
    return Fitted(criteria[0], _crossed(judge, pool)) if same else None


def seen_labels_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """Warn that scores of fitted `criteria` are not crossed; "" where no strengths are stated."""
    from core.judging.offline.criteria_grammar import states_strength

    if not judge.fits_strengths or not any(states_strength(each.text) for each in criteria):
        return ""
    return (
        "The criteria state strengths that were fitted to labels, so the map to the human scale and the intervals may "
        "be too optimistic. Calibrate anew to get an honest map and intervals."
    )


def unread_lines_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """List the lines of `criteria` that `judge` cannot read, in a sentence; "" for none."""
    lines = [f"“{line}”" for each in criteria for line in judge.unread_lines(each)]
    if not lines:
        return ""
    return (
        f"The {judge.spec} judge cannot read these lines, so they have no effect: {' '.join(lines)}. "
        "It reads lines such as “Reward texts that are short.”, with the phrases of its feature table."
    )


def _fitted_to(judge: AskedJudge, pool: CandidatePool, items: LabelledItems) -> Criteria | None:
    request = fitting_request(judge.golden, items, pool.settings)
    return next(iter(new_criteria(judge.draft, [request], pool.budget, Counter())), None)


def _crossed(judge: AskedJudge, pool: CandidatePool) -> FloatArray:
    items, scores = pool.items, np.full(len(judge.golden.items), np.nan)
    folds = source_folds(items.sources, CROSSED, pool.settings.seed)
    table = ScoreTable(judge.golden.item_ids, pool.budget)
    for fold in range(int(folds.max()) + 1):
        found, out = _fitted_to(judge, pool, items.take(folds != fold)), items.positions[folds == fold]
        if found is not None:
            table.ask(judge, [found], out.tolist())
            scores[out] = table.values[found.criteria_id][out]
    return scores
