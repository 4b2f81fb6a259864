"""How well people agree with people: the height that a judge can be expected to reach.

Leave one rater out: how well one rater's ratings align with the mean of the others', at the statistic and level that
judges are measured with, so that it can stand on their axis.  It is a slightly low ceiling: the mean of all raters,
which judges are held against, is steadier than the mean of all but one.  So no judge is compared with it by eye or by
interval: `core.stats.beside_people` holds judge and person against the same targets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.json_form import json_fields
from core.records import Alignment, Measure
from core.stats.agreement import Alpha, PairwiseSpearman
from core.stats.alignment import RESAMPLES, Seed
from core.stats.claims import NOT_RATED_TWICE, ONE_RATER
from core.stats.intervals import spread_over_sources
from core.stats.items import LabelledItems
from core.stats.levels import alignments, level_values
from core.stats.raters import LeftOuts, RaterTable, leave_out_each


@dataclass(frozen=True, slots=True)
class RaterAlignment:
    """One rater with the mean of the others: `value` None is undefined; `n_items` rated by them and somebody else."""

    rater: str
    value: float | None
    n_items: int

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


@dataclass(frozen=True)
class LeaveOneOut:
    """`alignment` averages `by_rater`, each weighted by what it rests on (items; sources at sample level).

    Its `n` counts the items with at least two ratings that count for some rater (systems at system level), its
    `n_unscored` the items with fewer ratings, its groups those defined for at least one rater.
    """

    alignment: Alignment
    by_rater: tuple[RaterAlignment, ...]


@dataclass(frozen=True)
class Ceiling:
    """Agreement of the people on one aspect.  `panel` names the raters used where there are several panels."""

    aspect: str
    leave_one_out: LeaveOneOut
    alpha: Alpha
    pairwise: PairwiseSpearman
    panel: str = ""

    @property
    def n_raters(self) -> int:
        return len(self.leave_one_out.by_rater)

    def as_json(self) -> dict[str, Any]:
        """The JSON of `ceiling` (DESIGN §3), with the parts beside it."""
        return {
            "aspect": self.aspect,
            "leave_one_out": self.leave_one_out.alignment.as_json(),
            "krippendorff_alpha": self.alpha.value,
            "alpha_metric": self.alpha.metric,
            "alpha_n_items": self.alpha.n_items,
            "alpha_reason": self.alpha.reason or None,
            "pairwise_spearman": self.pairwise.value,
            "n_pairs": self.pairwise.n_pairs,
            "pairwise_reason": self.pairwise.reason or None,
            "n_raters": self.n_raters,
            "panel": self.panel or None,
            "by_rater": [one.as_json() for one in self.leave_one_out.by_rater],
        }


def leave_one_out(
    table: RaterTable, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> LeaveOneOut:
    """Align each rater of `table` with the mean of the others, on the `items` that somebody else rated too.

    The labels of `items` are not looked at.  The interval leaves out one source at a time, for all raters at once (at
    system level it draws `resamples` of them).  ValueError when lengths differ.
    """
    left = LeftOuts(tuple(leave_out_each(table, items)), measure)
    by_rater = tuple(
        RaterAlignment(name, None if np.isnan(value) else float(value), one.places.size)
        for name, value, one in zip(table.raters, left.values[:, 0], left.by_rater, strict=True)
    )
    found = _averaged(left, table, items)
    if found.value is None or left.sources.size < 2 or resamples < 1:
        return LeaveOneOut(found, by_rater)
    spread = spread_over_sources(
        left.averages,
        np.array([found.value]),
        np.array([int((left.weights.sum(axis=0) > 0).sum())]),
        left.sources.size,
        np.random.default_rng(seed),
        resamples=resamples if measure.level == "system" else 0,
    )
    return LeaveOneOut(replace(found, interval=spread.interval(0)), by_rater)


def _averaged(left: LeftOuts, table: RaterTable, items: LabelledItems) -> Alignment:
    twice, measure = table.rated.sum(axis=0) >= 2, left.measure
    found = Alignment(measure.statistic, measure.level, None, 0, n_unscored=int((~twice).sum()))
    defined = ~np.isnan(left.values[:, 0])
    if not defined.any():
        return replace(found, reason=_reason(left))
    counted = twice & table.rated[defined].any(axis=0)
    if measure.level == "sample":
        used = left.weights.sum(axis=0) > 0
        counted &= np.isin(items.sources, left.sources[used])
        found = replace(found, n_groups=int(used.sum()), n_left_out=int((~used).sum()))
    n = np.unique(items.systems[counted]).size if measure.level == "system" else int(counted.sum())
    return replace(found, value=float(left.average()[0]), n=n)


def _reason(left: LeftOuts) -> str:
    if len(left.by_rater) < 2:
        return ONE_RATER
    if not left.sources.size:
        return NOT_RATED_TWICE
    rich = max((one.data for one in left.by_rater), key=lambda data: data.items.labels.size)
    alone = alignments(rich, left.measure, level_values(rich, left.measure))[0]
    return f"no rater's ratings can be ranked beside the others' means: {alone.reason}"
