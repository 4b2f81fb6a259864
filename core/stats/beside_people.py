"""Whether a judge agrees with people better or worse than a person does: both against the same targets, paired.

A person is compared with the mean of the *other* raters.  Beside the mean of *all* raters a judge meets a steadier
target and gains .03 to .04, so the two figures must not be held against each other.  Here judge and left-out rater
meet the same target: for each rater j, over the items that j and the judge scored and somebody else rated,

    alignment(judge, mean of the others without j) - alignment(j, mean of the others without j),

averaged over the raters.  A judge that is one more rater like them could change places with j without changing
anything, so its expected difference is 0 exactly.  It is a statement about *these* raters: another panel may be
better or worse.

Intervals are from deleting one source at a time (jackknife; Efron and Stein 1981, "The jackknife estimate of
variance"), with t on sources - 1 degrees of freedom: at sample level with the same raters everywhere this is the t
interval over the sources' own paired differences.  `tests/bench/bench_people.py` simulates how often it is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.json_form import json_fields
from core.records import Alignment, FloatArray, Interval, Measure
from core.stats.claims import (
    LEAST_SOURCES,
    MARGIN,
    NO_RATER_RANKED,
    NOT_SCORED_BY_BOTH,
    ONE_RATER,
    ONE_SOURCE,
    SAME_EVERYWHERE,
    SINGLE_SOURCES,
    TOO_FEW,
    Standing,
)
from core.stats.intervals import CONFIDENCE, jackknife_deviations, length, t_quantile, two_sided
from core.stats.items import LabelledItems
from core.stats.raters import LeftOuts, RaterTable, leave_out_each
from core.stats.reweighting import leave_outs

MOST_BLOCKS = 200
"""Sources beyond this number are deleted in this many blocks of equal size."""


@dataclass(frozen=True, slots=True)
class BesideRater:
    """Judge and rater against the mean of the other raters, on the same `n_items`; None is undefined."""

    rater: str
    judge: float | None
    person: float | None
    n_items: int

    @property
    def difference(self) -> float | None:
        """Judge minus rater."""
        return None if self.judge is None or self.person is None else self.judge - self.person

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"difference": self.difference}


@dataclass(frozen=True)
class BesidePeople:
    """A judge beside the people, each against the mean of the other raters on the same items.

    `judge`, `person` and `difference` (judge minus person) average `by_rater`, each rater weighted by what it rests on
    (items; sources at sample level).  `p` is two-sided, None with fewer than `LEAST_SOURCES` sources; `reason` says
    why something is None.  `n_sources` counts the sources that the difference rests on.
    """

    judge: Alignment
    person: Alignment
    difference: float | None
    interval: Interval | None
    p: float | None
    n_items: int
    n_sources: int
    by_rater: tuple[BesideRater, ...]
    panel: str = ""
    reason: str = ""

    @property
    def n_raters(self) -> int:
        """Raters whose own agreement with the others is defined."""
        return sum(one.difference is not None for one in self.by_rater)

    @property
    def standing(self) -> Standing:
        """Where the judge stands beside one of these people, as far as the interval allows.

        "above" and "below" where the interval leaves out 0; "level" where it holds 0 and its low end lies above
        -`MARGIN`; "open" otherwise, and wherever there is no p.
        """
        if self.interval is None or self.p is None:
            return "open"
        if self.interval.low > 0:
            return "above"
        if self.interval.high < 0:
            return "below"
        return "level" if self.interval.low > -MARGIN else "open"

    def as_json(self) -> dict[str, Any]:
        """Everything of the record, null where undefined."""
        return {"standing": self.standing} | json_fields(self) | {"n_raters": self.n_raters}


def beside_people(table: RaterTable, scores: ArrayLike, items: LabelledItems, measure: Measure) -> BesidePeople:
    """Set `scores` (n_items,), more is better, NaN = missing, beside the people of `table` on the same `items`.

    Items count that the judge scored and two people rated; the labels of `items` are not looked at.  ValueError when
    lengths differ, UsageError for ±inf.
    """
    judge = np.asarray(scores, dtype=np.float64)
    both = leave_out_each(table, items, judge)
    values = LeftOuts(tuple(both), measure).values
    by_rater = tuple(
        BesideRater(name, _known(own[0]), _known(own[1]), one.places.size)
        for name, own, one in zip(table.raters, values, both, strict=True)
    )
    defined = tuple(one for one, own in zip(both, values, strict=True) if not np.isnan(own).any())
    n_kept = int(((table.rated.sum(axis=0) >= 2) & ~np.isnan(judge)).sum())
    why = "" if defined else ONE_RATER if len(both) < 2 else NO_RATER_RANKED if n_kept else NOT_SCORED_BY_BOTH
    undefined = Alignment(measure.statistic, measure.level, None, 0, reason=why)
    empty = BesidePeople(undefined, undefined, None, None, None, n_kept, 0, by_rater, table.panel, why)
    return _averaged(LeftOuts(defined, measure), items, empty) if defined else empty


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _averaged(left: LeftOuts, items: LabelledItems, empty: BesidePeople) -> BesidePeople:
    used, level = left.weights.sum(axis=0) > 0, left.measure.level
    n_sources = int(used.sum())
    counts = np.ones((min(n_sources, MOST_BLOCKS), used.size))
    counts[:, used] = leave_outs(n_sources, MOST_BLOCKS)
    points, deleted = _with_difference(left.average()), _with_difference(left.averages(counts))
    tested = [
        _jackknifed(point, own, n_sources, most)
        for point, own, most in zip(points, deleted.T, (1.0, 1.0, 2.0), strict=True)
    ]
    n_items = _items_behind(left, items)
    n = left.by_rater[0].data.items.n_systems if level == "system" else n_items
    groups = n_sources if level == "sample" else 0
    judge, person = (
        replace(empty.judge, value=float(points[k]), n=n, n_groups=groups, interval=tested[k].interval)
        for k in range(2)
    )
    gap = tested[2]
    few = n_sources < LEAST_SOURCES
    return replace(
        empty,
        judge=judge,
        person=person,
        difference=float(points[2]),
        interval=gap.interval,
        p=None if few else gap.p,
        n_items=n_items,
        n_sources=n_sources,
        reason=TOO_FEW if few else gap.reason,
    )


def _items_behind(left: LeftOuts, items: LabelledItems) -> int:
    """How many items some rater's values rest on."""
    behind = [
        one.places[np.isin(items.sources[one.places], left.sources[own > 0])]
        for one, own in zip(left.by_rater, left.weights, strict=True)
    ]
    return int(np.unique(np.concatenate(behind)).size)


def _with_difference(values: FloatArray) -> FloatArray:
    """(…, 3) judge, person and judge minus person from (…, 2)."""
    return np.concatenate([values, values[..., :1] - values[..., 1:]], axis=-1)


class _Jackknifed(NamedTuple):
    interval: Interval | None
    p: float | None
    reason: str = ""


def _jackknifed(point: float, left: FloatArray, n_sources: int, most: float) -> _Jackknifed:
    """Interval within ±`most`, and two-sided p for 0, of `point`; `left` (n_blocks,) are its values without a block."""
    n = left.size
    if n < 2 or np.isnan(left).any():
        return _Jackknifed(None, None, ONE_SOURCE if n < 2 else SINGLE_SOURCES)
    error = length(jackknife_deviations(left))
    half = t_quantile(n - 1) * error
    method = f"delete-one-source jackknife over {n_sources} sources, t with {n - 1} degrees of freedom"
    if n < n_sources:
        method = f"jackknife over {n_sources} sources in {n} blocks, t with {n - 1} degrees of freedom"
    interval = Interval(max(float(point - half), -most), min(float(point + half), most), CONFIDENCE, method)
    if error > 0:
        return _Jackknifed(interval, two_sided(point / error, n - 1))
    return _Jackknifed(interval, 1.0) if point == 0 else _Jackknifed(interval, None, SAME_EVERYWHERE)
