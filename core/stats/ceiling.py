"""One rater left out, against the mean of the others: the ceiling of a leaderboard, and a judge in a rater's place.

*The ceiling* (`leave_one_out`): how well one rater's ratings align with the mean of the others', at the statistic and
level that judges are measured with, so that it can stand on their axis.  It is a slightly low one: the mean of all
raters, which judges are held against, is steadier than the mean of all but one, and brings a judge 0.03 to 0.04.  So no
judge is held against it by eye or by interval.

*A judge next to raters* (`beside_people`) meets the same target as a rater: for each rater j, over the items that j
and the judge scored and somebody else rated,

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
from core.stats.intervals import jackknife_deviations, length, spread_over_sources, t_interval, t_quantile, two_sided
from core.stats.items import LabelledItems, paired
from core.stats.levels import alignments, coefficients, level_values, mean_defined
from core.stats.raters import Alpha, PairwiseSpearman, RaterTable
from core.stats.reweighting import counted_means, leave_outs, resampled_values

MOST_BLOCKS = 200
"""Sources beyond this number are deleted in this many blocks of equal size, for a judge next to raters."""


class _LeftOuts:
    """Each rater of `table` left out in turn, on the `items` that somebody else rated too (and the `judge` scored).

    A rater's row is compared with the mean of the others, and so is the judge's, which comes first.  Of more than
    `MOST_RATERS`, those with the most ratings are compared; all count in the means.  ValueError when lengths differ,
    UsageError for an infinite score.

    Attributes: `places` of each rater's items, the `data` on them, the `sources` (n_sources,) of all, `values`
    (n_raters, n_rows), NaN = undefined, `weights` (n_raters, n_sources) what each source adds to a rater's weight (its
    items, or at sample level 1; 0 for an undefined rater), `used` (n_sources,) the sources that some value rests on.
    """

    def __init__(
        self, table: RaterTable, items: LabelledItems, measure: Measure, judge: FloatArray | None = None
    ) -> None:
        if table.values.shape[1] != items.n or (judge is not None and judge.shape != (items.n,)):
            raise ValueError(f"one entry per item is needed on every side: {table.values.shape}, {items.n} items")
        self.measure, self.names = measure, [table.raters[row] for row in table.busiest]
        n_ratings, sums = table.n_ratings, np.nansum(table.values, axis=0)
        usable = n_ratings >= 2 if judge is None else (n_ratings >= 2) & ~np.isnan(judge)
        rows = table.values[table.busiest]
        self.places = [np.flatnonzero(usable & ~np.isnan(row)) for row in rows]
        self.data = []
        for row, at in zip(rows, self.places, strict=True):
            own = items.take(at).labelled((sums[at] - row[at]) / (n_ratings[at] - 1))
            self.data.append(paired(row[at] if judge is None else np.stack([judge[at], row[at]]), own))
        self.source_of = [np.unique(items.sources[at]) for at in self.places]
        self.sources = np.unique(np.concatenate(self.source_of))
        self._at = [np.searchsorted(self.sources, own) for own in self.source_of]
        self.weights, self.values = (
            np.zeros((len(rows), self.sources.size)),
            np.empty((len(rows), 1 + (judge is not None))),
        )
        self._coefficients = []
        for k, data in enumerate(self.data):
            if measure.level == "sample":  # NaN in all rows where one has none: all rest on the same sources
                found = coefficients(data, measure.statistic)
                found = np.where(np.isnan(found).any(axis=0), np.nan, found)
                self._coefficients.append(found)
                self.values[k], behind = mean_defined(found), (~np.isnan(found[0])).astype(np.float64)
            else:
                self.values[k] = level_values(data, measure).values
                behind = np.bincount(data.items.sources).astype(np.float64)
            if not np.isnan(self.values[k]).any():
                self.weights[k, self._at[k]] = behind
        self.used = self.weights.sum(axis=0) > 0

    def average(self) -> FloatArray:
        """(n_rows,) means over the raters, each weighted by what it rests on."""
        return _weighted(self.values, self.weights.sum(axis=1))

    def averages(self, counts: FloatArray) -> FloatArray:
        """(resamples, n_rows) the same with `counts` (resamples, n_sources) of each source."""
        values = []
        for k, (data, at) in enumerate(zip(self.data, self._at, strict=True)):
            own, sample = counts[:, at], self.measure.level == "sample"
            values.append(
                counted_means(self._coefficients[k], own) if sample else resampled_values(data, own, self.measure)
            )
        return _weighted(np.stack(values, axis=1), counts @ self.weights.T)


def _weighted(values: FloatArray, weights: FloatArray) -> FloatArray:
    """(…, n_rows) means of (…, n_raters, n_rows) by weight, over the raters defined on all rows; NaN where none is."""
    defined = np.asarray(~np.isnan(values).any(axis=-1))
    counted = np.where(defined, weights, 0.0)[..., None]
    total = counted.sum(axis=-2)
    sums = (np.where(defined[..., None], values, 0.0) * counted).sum(axis=-2)
    return np.asarray(np.where(total > 0, sums, np.nan) / np.where(total > 0, total, 1.0), dtype=np.float64)


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
    """Agreement of the raters on one aspect.  `panel` names the raters used where there are several panels."""

    aspect: str
    leave_one_out: LeaveOneOut
    alpha: Alpha
    pairwise: PairwiseSpearman
    panel: str = ""

    @property
    def n_raters(self) -> int:
        return self.leave_one_out.n_in_all

    def as_json(self) -> dict[str, Any]:
        """The JSON of `ceiling` (DESIGN §3), with the parts next to it."""
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
    left = _LeftOuts(table, items, measure)
    sides = zip(left.names, left.values[:, 0], left.places, strict=True)
    by_rater = tuple(RaterAlignment(name, _or_none(value), own.size) for name, value, own in sides)
    twice, used, level = table.n_ratings >= 2, left.used, measure.level
    average = Alignment(measure.statistic, level, None, 0, n_unscored=int((~twice).sum()))
    defined = ~np.isnan(left.values[:, 0])
    if not defined.any():
        reason = ONE_RATER if len(by_rater) < 2 else NOT_RATED_TWICE
        if len(by_rater) >= 2 and left.sources.size:
            largest = max(left.data, key=lambda data: data.items.labels.size)
            alone = alignments(largest, measure, level_values(largest, measure))[0]
            reason = f"no rater's ratings can be ranked next to the others' means: {alone.reason}"
        return LeaveOneOut(replace(average, reason=reason), by_rater, table.n_raters)
    counted = twice & table.rated[table.busiest][defined].any(axis=0)
    if level == "sample":
        counted &= np.isin(items.sources, left.sources[used])
        average = replace(average, n_groups=int(used.sum()), n_left_out=int((~used).sum()))
    n = np.unique(items.systems[counted]).size if level == "system" else int(counted.sum())
    value = left.average()
    average = replace(average, value=float(value[0]), n=n)
    if left.sources.size < 2 or resamples < 1:
        return LeaveOneOut(average, by_rater, table.n_raters)
    spread = spread_over_sources(
        left.averages,
        value,
        np.array([int(used.sum())]),
        left.sources.size,
        np.random.default_rng(seed),
        resamples=resamples if level == "system" else 0,
    )
    return LeaveOneOut(replace(average, interval=spread.interval(0)), by_rater, table.n_raters)


# ── a judge next to raters ────────────────────────────────────────────────────────────────────────────────────


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
    """A judge next to the raters, each against the mean of the other raters on the same items.

    `n_in_all` counts all raters; of more than `MOST_RATERS`, `by_rater` holds those with the most ratings.
    `n_judges` is how many judges were compared with raters in one table; `interval` and `p` are corrected for that
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
        """Where the judge stands next to one of these raters, as far as the interval allows.

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
    """Set `scores` (n_items,), more is better, NaN = missing, next to the raters of `table` on the same `items`.

    Items count that the judge scored and two raters rated; the labels of `items` are not looked at.  ValueError when
    lengths differ, UsageError for ±inf.
    """
    judge = np.asarray(scores, dtype=np.float64)
    left = _LeftOuts(table, items, measure, judge)
    sides = zip(left.names, left.values, left.places, strict=True)
    by_rater = tuple(BesideRater(name, _or_none(own[0]), _or_none(own[1]), at.size) for name, own, at in sides)
    n_kept = int(((table.n_ratings >= 2) & ~np.isnan(judge)).sum())
    undefined = Alignment(measure.statistic, measure.level, None, 0)
    empty = BesidePeople(
        undefined, undefined, None, None, None, n_kept, 0, by_rater, table.panel, n_in_all=table.n_raters
    )
    if not left.used.any():
        why = ONE_RATER if len(by_rater) < 2 else NO_RATER_RANKED if n_kept else NOT_SCORED_BY_BOTH
        undefined = replace(undefined, reason=why)
        return replace(empty, judge=undefined, person=undefined, reason=why)
    n_sources = int(left.used.sum())
    counts = np.ones((min(n_sources, MOST_BLOCKS), left.used.size))
    counts[:, left.used] = leave_outs(n_sources, MOST_BLOCKS)
    own_value, person = left.average().tolist()
    gap, deleted = own_value - person, left.averages(counts)
    deleted = np.column_stack([deleted, deleted[:, 0] - deleted[:, 1]])
    n_blocks, known = len(deleted), len(deleted) > 1 and not np.isnan(deleted).any()
    errors = [length(jackknife_deviations(column)) for column in deleted.T]
    blocks = f" of {n_blocks} blocks" if n_blocks < n_sources else ""
    interval_of_judge, interval_of_person, interval = (
        t_interval(value, error, n_sources, f"jackknife{blocks}", most=most, behind=n_blocks) if known else None
        for value, error, most in zip((own_value, person, gap), errors, (1.0, 1.0, 2.0), strict=True)
    )
    p = None
    if known:  # without an error: another value, and the same without any block
        p = two_sided(gap / errors[2], n_blocks - 1) if errors[2] > 0 else 1.0 if gap == 0 else None
    behind = [
        at[np.isin(items.sources[at], left.sources[own > 0])] for at, own in zip(left.places, left.weights, strict=True)
    ]
    n_items = int(np.unique(np.concatenate(behind)).size)
    n = left.data[int(np.argmax(left.weights.any(axis=1)))].items.n_systems if measure.level == "system" else n_items
    measured = replace(undefined, n=n, n_groups=n_sources if measure.level == "sample" else 0)
    few = n_sources < LEAST_SOURCES
    why = ONE_SOURCE if n_blocks < 2 else SAME_EVERYWHERE if known else SINGLE_SOURCES
    return replace(
        empty,
        judge=replace(measured, value=own_value, interval=interval_of_judge),
        person=replace(measured, value=person, interval=interval_of_person),
        difference=gap,
        interval=interval,
        p=None if few else p,
        n_items=n_items,
        n_sources=n_sources,
        reason=TOO_FEW if few else "" if p is not None else why,
    )


def among_judges(results: Sequence[BesidePeople]) -> list[BesidePeople]:
    """Correct the results of several judges for their number, so that any of them may be picked out.

    Holm's p over all of them, and intervals widened as far as p rises: an interval leaves out 0 where p is below 0.05.
    Of judges that are all like a rater, the best is then called better in at most 5 %.
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
