"""One rater left out, against the mean of the others: the ceiling of a leaderboard, and a judge in a rater's place.

*The ceiling* (`leave_one_out`): how well one rater's ratings align with the mean of the others', at the statistic and
level that judges are measured with, so that it can stand on their axis.  It is a slightly low one: the mean of all
raters, which judges are held against, is steadier than the mean of all but one, and brings a judge .03 to .04.  So no
judge is held against it by eye or by interval.

*A judge beside people* (`beside_people`) meets the same target as a person: for each rater j, over the items that j and
the judge scored and somebody else rated,

    alignment(judge, mean of the others without j) - alignment(j, mean of the others without j),

averaged over the raters.  A judge that is one more rater like them could change places with j without changing
anything, so its expected difference is 0 exactly.  It is a statement about *these* raters: another panel may be better
or worse.  Intervals are from deleting one source at a time (jackknife; Efron and Stein 1981, "The jackknife estimate of
variance"), with t on sources - 1 degrees of freedom: at sample level with the same raters everywhere this is the t
interval over the sources' own paired differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.json_form import JsonRecord, json_fields
from core.records import Alignment, FloatArray, Interval, Measure
from core.stats.alignment import RESAMPLES, Seed, holm
from core.stats.claims import (
    LEAST_SOURCES,
    MARGIN,
    NO_RATER_RANKED,
    NOT_RATED_TWICE,
    NOT_SCORED_BY_BOTH,
    ONE_RATER,
    ONE_SOURCE,
    SAME_EVERYWHERE,
    SINGLE_SOURCES,
    TOO_FEW,
    Standing,
)
from core.stats.intervals import (
    CONFIDENCE,
    jackknife_deviations,
    length,
    spread_over_sources,
    t_quantile,
    two_sided,
)
from core.stats.items import LabelledItems
from core.stats.levels import alignments, level_values
from core.stats.raters import Alpha, LeftOuts, PairwiseSpearman, RaterTable
from core.stats.reweighting import leave_outs

MOST_BLOCKS = 200
"""Sources beyond this number are deleted in this many blocks of equal size, for a judge beside people."""


def _names(table: RaterTable) -> list[str]:
    return [table.raters[row] for row in table.busiest]


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# ── the ceiling ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RaterAlignment(JsonRecord):
    """One rater with the mean of the others: `value` None is undefined; `n_items` rated by them and somebody else."""

    rater: str
    value: float | None
    n_items: int


@dataclass(frozen=True)
class LeaveOneOut:
    """`alignment` averages `by_rater`, each weighted by what it rests on (items; sources at sample level).

    Its `n` counts the items with at least two ratings that count for some rater (systems at system level), its
    `n_unscored` the items with fewer ratings, its groups those defined for at least one rater.  `n_in_all` counts all
    raters; of more than `MOST_RATERS`, `by_rater` holds those with the most ratings.
    """

    alignment: Alignment
    by_rater: tuple[RaterAlignment, ...]
    n_in_all: int = 0


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
        return self.leave_one_out.n_in_all

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
            "n_raters_compared": len(self.leave_one_out.by_rater),
            "panel": self.panel or None,
            "by_rater": [rater.as_json() for rater in self.leave_one_out.by_rater],
        }


def leave_one_out(
    table: RaterTable, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> LeaveOneOut:
    """Align each rater of `table` with the mean of the others, on the `items` that somebody else rated too.

    The labels of `items` are not looked at.  The interval leaves out one source at a time, for all raters at once (at
    system level it draws `resamples` of them).  ValueError when lengths differ.
    """
    left = LeftOuts.of(table, items, measure)
    by_rater = tuple(
        RaterAlignment(name, _or_none(value), rater.places.size)
        for name, value, rater in zip(_names(table), left.values[:, 0], left.by_rater, strict=True)
    )
    average = _ceiling(left, table, items)
    if average.value is None or left.sources.size < 2 or resamples < 1:
        return LeaveOneOut(average, by_rater, table.n_raters)
    spread = spread_over_sources(
        left.averages,
        np.array([average.value]),
        np.array([int(left.used.sum())]),
        left.sources.size,
        np.random.default_rng(seed),
        resamples=resamples if measure.level == "system" else 0,
    )
    return LeaveOneOut(replace(average, interval=spread.interval(0)), by_rater, table.n_raters)


def _ceiling(left: LeftOuts, table: RaterTable, items: LabelledItems) -> Alignment:
    twice, measure = table.n_ratings >= 2, left.measure
    average = Alignment(measure.statistic, measure.level, None, 0, n_unscored=int((~twice).sum()))
    defined = ~np.isnan(left.values[:, 0])
    if not defined.any():
        return replace(average, reason=_why_undefined(left))
    counted = twice & table.rated[table.busiest][defined].any(axis=0)
    if measure.level == "sample":
        used = left.used
        counted &= np.isin(items.sources, left.sources[used])
        average = replace(average, n_groups=int(used.sum()), n_left_out=int((~used).sum()))
    n = np.unique(items.systems[counted]).size if measure.level == "system" else int(counted.sum())
    return replace(average, value=float(left.average()[0]), n=n)


def _why_undefined(left: LeftOuts) -> str:
    if len(left.by_rater) < 2:
        return ONE_RATER
    if not left.sources.size:
        return NOT_RATED_TWICE
    largest = max((rater.data for rater in left.by_rater), key=lambda data: data.items.labels.size)
    alone = alignments(largest, left.measure, level_values(largest, left.measure))[0]
    return f"no rater's ratings can be ranked next to the others' means: {alone.reason}"


# ── a judge beside people ────────────────────────────────────────────────────────────────────────────────────


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

    `n_in_all` counts all raters; of more than `MOST_RATERS`, `by_rater` holds those with the most ratings.
    `n_judges` is how many judges were compared with people in one table; `interval` and `p` are corrected for that
    (`among_judges`).
    `withheld` says why nothing is claimed although it could be tested.
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
    n_judges: int = 1
    n_in_all: int = 0
    withheld: str = field(default="", metadata={"silent": True})

    def without_claim(self, reason: str) -> BesidePeople:
        """The same figures without p or standing, for `reason` (`withheld`); unchanged for ""."""
        return replace(self, p=None, withheld=reason) if reason else self

    @property
    def n_raters(self) -> int:
        """Raters whose own agreement with the others is defined."""
        return sum(rater.difference is not None for rater in self.by_rater)

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
    left = LeftOuts.of(table, items, measure, judge)
    by_rater = tuple(
        BesideRater(name, _or_none(own[0]), _or_none(own[1]), rater.places.size)
        for name, own, rater in zip(_names(table), left.values, left.by_rater, strict=True)
    )
    defined = tuple(rater for rater, own in zip(left.by_rater, by_rater, strict=True) if own.difference is not None)
    n_kept = int(((table.n_ratings >= 2) & ~np.isnan(judge)).sum())
    why = "" if defined else ONE_RATER if len(by_rater) < 2 else NO_RATER_RANKED if n_kept else NOT_SCORED_BY_BOTH
    undefined = Alignment(measure.statistic, measure.level, None, 0, reason=why)
    empty = replace(
        BesidePeople(undefined, undefined, None, None, None, n_kept, 0, by_rater, table.panel, why),
        n_in_all=table.n_raters,
    )
    return _averaged(LeftOuts(defined, measure), items, empty) if defined else empty


def among_judges(results: Sequence[BesidePeople]) -> list[BesidePeople]:
    """Correct the results of several judges for their number, so that any of them may be picked out.

    Holm's p over all of them, and intervals widened as far as p rises: an interval leaves out 0 where p is below 0.05.
    Of judges that are all like a person, the best is then called better in at most 5 %.
    """
    corrected = holm([np.nan if own.p is None else own.p for own in results]).tolist()
    n_judges = sum(own.p is not None for own in results)
    return [
        own if own.p is None or n_judges < 2 else _widened(own, p, n_judges)
        for own, p in zip(results, corrected, strict=True)
    ]


def _widened(own: BesidePeople, p: float, n_judges: int) -> BesidePeople:
    interval, point, looks = own.interval, own.difference, n_judges if not own.p else max(p / own.p, 1.0)
    if interval is not None and point is not None:
        freedom = min(own.n_sources, MOST_BLOCKS) - 1
        by = t_quantile(freedom, looks) / t_quantile(freedom)
        low, high = (max(min(point + by * (end - point), 2.0), -2.0) for end in (interval.low, interval.high))
        method = f"{interval.method}, corrected for {n_judges} judges"
        interval = replace(interval, low=low, high=high, method=method)
    return replace(own, interval=interval, p=p, n_judges=n_judges)


def _averaged(left: LeftOuts, items: LabelledItems, empty: BesidePeople) -> BesidePeople:
    used, level = left.used, left.measure.level
    n_sources = int(used.sum())
    counts = np.ones((min(n_sources, MOST_BLOCKS), used.size))
    counts[:, used] = leave_outs(n_sources, MOST_BLOCKS)
    judge, person = left.average().tolist()
    deleted = left.averages(counts)
    behind = [
        rater.places[np.isin(items.sources[rater.places], left.sources[own > 0])]
        for rater, own in zip(left.by_rater, left.weights, strict=True)
    ]
    n_items = int(np.unique(np.concatenate(behind)).size)
    n = left.by_rater[0].data.items.n_systems if level == "system" else n_items
    measured = replace(empty.judge, n=n, n_groups=n_sources if level == "sample" else 0)
    few = n_sources < LEAST_SOURCES
    gap, deletions = judge - person, deleted[:, 0] - deleted[:, 1]
    interval = _jackknife_interval(gap, deletions, n_sources, 2.0)
    p = None
    if interval is not None:  # without an error: another value, and the same without any block
        error = length(jackknife_deviations(deletions))
        p = two_sided(gap / error, deletions.size - 1) if error > 0 else 1.0 if gap == 0 else None
    why = ONE_SOURCE if deleted.shape[0] < 2 else SINGLE_SOURCES if interval is None else SAME_EVERYWHERE
    return replace(
        empty,
        judge=replace(measured, value=judge, interval=_jackknife_interval(judge, deleted[:, 0], n_sources, 1.0)),
        person=replace(measured, value=person, interval=_jackknife_interval(person, deleted[:, 1], n_sources, 1.0)),
        difference=gap,
        interval=interval,
        p=None if few else p,
        n_items=n_items,
        n_sources=n_sources,
        reason=TOO_FEW if few else "" if p is not None else why,
    )


def _jackknife_interval(point: float, deleted: FloatArray, n_sources: int, most: float) -> Interval | None:
    """Interval of `point` within ±`most`; `deleted` (n_blocks,) are its values without a block of sources."""
    n = deleted.size
    if n < 2 or np.isnan(deleted).any():
        return None
    half = t_quantile(n - 1) * length(jackknife_deviations(deleted))
    method = f"delete-one-source jackknife over {n_sources} sources, t with {n - 1} degrees of freedom"
    if n < n_sources:
        method = f"jackknife over {n_sources} sources in {n} blocks, t with {n - 1} degrees of freedom"
    return Interval(max(point - half, -most), min(point + half, most), CONFIDENCE, method)
