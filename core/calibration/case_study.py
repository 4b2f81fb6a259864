"""A refinement beside its parent (001 Table 7), on the calibration items, which chose it and flatter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.calibration.records import Calibration, Candidate, Status
from core.errors import NotFoundError
from core.records import STATISTICS, Alignment, Criteria, GoldenSet, Measure, ScoreMatrix
from core.stats import Difference, LabelledItems, paired_difference


@dataclass(frozen=True)
class CaseStudy:
    """A refinement beside its parent on the same `n` calibration items.

    `before` and `after` hold the alignment by statistic, `differences` after minus before with interval and p.
    `inner_gain` is the gain on the inner fold, on which it was accepted or `rejected` (see `status`).
    """

    parent: Criteria
    child: Criteria
    status: Status
    inner_gain: float | None
    before: Mapping[str, Alignment]
    after: Mapping[str, Alignment]
    differences: Mapping[str, Difference]
    n: int


def refinements(calibration: Calibration) -> tuple[Candidate, ...]:
    """Refinements scored on all calibration items whose parent is a candidate too, largest inner gain first."""
    n_items = len(calibration.split.calibration)
    complete = {each.criteria.criteria_id: each for each in calibration.candidates if each.calls == n_items}
    refined = [
        each
        for each in complete.values()
        if each.criteria.provenance.origin == "refine" and each.criteria.provenance.parents[0] in complete
    ]
    return tuple(
        sorted(refined, key=lambda each: -np.inf if each.inner_gain is None else each.inner_gain, reverse=True)
    )


def case_study(
    calibration: Calibration, golden: GoldenSet, scores: ScoreMatrix, criteria_id: str | None = None
) -> CaseStudy | None:
    """The refinement `criteria_id` (default: that with the largest inner gain) beside its parent (001 Table 7).

    `scores` are the run's over all items of `golden`.  None where nothing was refined; NotFoundError for criteria
    that are no refinement on all calibration items.
    """
    listed = {each.criteria.criteria_id: each for each in refinements(calibration)}
    if not listed and criteria_id is None:
        return None
    child = listed.get(criteria_id or next(iter(listed)))
    if child is None:
        raise NotFoundError(f"Criteria {criteria_id} are no refinement that was scored on all calibration items.")
    parents = {each.criteria.criteria_id: each.criteria for each in calibration.candidates}
    parent = parents[child.criteria.provenance.parents[0]]
    items = LabelledItems.of(golden, calibration.task.aspect, calibration.split.calibration)
    rows = {name: scores.values[k, items.positions] for k, name in enumerate(scores.criteria_ids)}
    differences: dict[str, Difference] = {
        statistic: paired_difference(
            rows[child.criteria.criteria_id],
            rows[parent.criteria_id],
            items,
            Measure(statistic, calibration.calibration.level),
            resamples=calibration.settings.resamples,
            seed=[calibration.settings.seed, 22],
        )
        for statistic in STATISTICS
    }
    return CaseStudy(
        parent,
        child.criteria,
        child.status,
        child.inner_gain,
        {name: difference.b for name, difference in differences.items()},
        {name: difference.a for name, difference in differences.items()},
        differences,
        next(iter(differences.values())).n,
    )
