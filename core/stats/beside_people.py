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

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import Alignment, FloatArray, IntArray, Interval, Level, Statistic
from core.stats.levels import MIN_GROUP, level_values, sample_values
from core.stats.pairing import Paired, paired
from core.stats.resampling import resampled_values
from core.stats.spread import LEAST_SOURCES, TOO_FEW

MOST_BLOCKS = 200
"""Sources beyond this number are deleted in this many blocks of equal size."""
MARGIN = 0.05
"""A judge that is less than this below a person, at the low end of the interval, agrees as well as a person."""

Standing = Literal["above", "level", "below", "open"]


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
        return {
            "standing": self.standing,
            "judge": self.judge.as_json(),
            "person": self.person.as_json(),
            "difference": self.difference,
            "interval": None if self.interval is None else [self.interval.low, self.interval.high],
            "interval_method": None if self.interval is None else self.interval.method,
            "p": self.p,
            "n_items": self.n_items,
            "n_sources": self.n_sources,
            "n_raters": self.n_raters,
            "panel": self.panel or None,
            "reason": self.reason or None,
            "by_rater": [
                {
                    "rater": one.rater,
                    "judge": one.judge,
                    "person": one.person,
                    "difference": one.difference,
                    "n_items": one.n_items,
                }
                for one in self.by_rater
            ],
        }


def beside_people(
    ratings: ArrayLike,
    scores: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    confidence: float = 0.95,
    min_group: int = MIN_GROUP,
    raters: tuple[str, ...] = (),
    panel: str = "",
) -> BesidePeople:
    """Set `scores` (n_items,), more is better, beside the people of `ratings` (n_raters, n_items); NaN = missing.

    Items count that the judge scored and two people rated.  `raters` names the rows (1, 2, … otherwise).  ValueError
    when lengths differ, UsageError for ±inf.
    """
    matrix, judge = np.atleast_2d(np.asarray(ratings, dtype=np.float64)), np.asarray(scores, dtype=np.float64)
    n = judge.size
    sources = np.arange(n) if source_codes is None else np.asarray(source_codes)
    systems = np.zeros(n, dtype=np.intp) if system_codes is None else np.asarray(system_codes)
    if judge.ndim != 1 or not matrix.shape[1] == n == sources.size == systems.size:
        shapes = f"ratings {matrix.shape}, scores {judge.shape}, sources {sources.shape}, systems {systems.shape}"
        raise ValueError(f"one entry per item is needed on every side: {shapes}")
    if np.isinf(matrix).any():
        raise UsageError("Ratings must be finite numbers; infinity came.")
    kept = np.flatnonzero(((~np.isnan(matrix)).sum(axis=0) >= 2) & ~np.isnan(judge))
    measure = _Measure(statistic, level, min_group)
    sides = _sides(matrix[:, kept], judge[kept], sources[kept], systems[kept], measure)
    names = raters or tuple(str(k + 1) for k in range(matrix.shape[0]))
    by_rater = tuple(
        BesideRater(name, _known(one.values[0]), _known(one.values[1]), one.n_rated)
        for name, one in zip(names, sides, strict=True)
    )
    defined = [one for one in sides if not np.isnan(one.values).any()]
    why = "" if defined else _reason(matrix, kept.size)
    undefined = Alignment(statistic, level, None, 0, reason=why)
    empty = BesidePeople(undefined, undefined, None, None, None, int(kept.size), 0, by_rater, panel, why)
    return _averaged(defined, empty, measure, confidence) if defined else empty


# ── one rater ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Measure:
    """The statistic, the level and the smallest group."""

    statistic: Statistic
    level: Level
    min_group: int

    def values(self, data: Paired) -> FloatArray:
        return level_values(data, statistic=self.statistic, level=self.level, min_group=self.min_group)


@dataclass(frozen=True)
class _Side:
    """One rater: `values` (2,) of judge and rater, the rows of `data`, whose labels are the others' means.

    `own` holds the source codes of `data`, `at` its items' places among the kept ones; at sample level only sources in
    which both sides have a coefficient stand in it.  `n_rated` counts the items before that.
    """

    data: Paired
    values: FloatArray
    own: IntArray
    at: IntArray
    n_rated: int


def _sides(
    matrix: FloatArray, judge: FloatArray, sources: IntArray, systems: IntArray, measure: _Measure
) -> list[_Side]:
    rated = ~np.isnan(matrix)
    filled = np.nan_to_num(matrix)
    others = (filled.sum(axis=0) - filled) / np.maximum(rated.sum(axis=0) - 1, 1)
    found = []
    for row, mean, mine in zip(matrix, others, rated, strict=True):
        at = np.flatnonzero(mine)
        n_rated = at.size
        data = paired(np.stack([judge[at], row[at]]), mean[at], sources[at], systems[at])
        if measure.level == "sample":
            coefficients = sample_values(data, statistic=measure.statistic, min_group=measure.min_group)
            both = np.unique(sources[at])[~np.isnan(coefficients).any(axis=0)]
            at = at[np.isin(sources[at], both)]
            data = paired(np.stack([judge[at], row[at]]), mean[at], sources[at], systems[at])
        values = measure.values(data) if at.size else np.full(2, np.nan)
        found.append(_Side(data, values, np.unique(sources[at]), at, n_rated))
    return found


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _reason(matrix: FloatArray, n_kept: int) -> str:
    if matrix.shape[0] < 2:
        return "there is only one rater, so nobody to compare with"
    if not n_kept:
        return "the judge scored no item that two people rated"
    return "no rater can be ranked beside the others' means where the judge can be too (all values equal, or too few)"


# ── over the raters ──────────────────────────────────────────────────────────────────────────────────────────


def _averaged(sides: list[_Side], empty: BesidePeople, measure: _Measure, confidence: float) -> BesidePeople:
    sources = np.unique(np.concatenate([one.own for one in sides]))
    weights = np.stack([_weights(one, sources, measure) for one in sides])
    values = np.stack([one.values for one in sides])
    points = _weighted(values, weights.sum(axis=1))
    left = _deleted(sides, sources, weights, measure)
    spread = [
        _interval(point, column, sources.size, confidence, most)
        for point, column, most in zip(points, left.T, (1.0, 1.0, 2.0), strict=True)
    ]
    items = np.unique(np.concatenate([one.at for one in sides]))
    n = sides[0].data.n_systems if measure.level == "system" else items.size
    groups = sources.size if measure.level == "sample" else 0
    judge, person = (
        replace(empty.judge, value=float(points[k]), n=int(n), n_groups=groups, interval=spread[k].interval)
        for k in range(2)
    )
    gap = spread[2]
    p, reason = gap.p, gap.reason
    if sources.size < LEAST_SOURCES:
        p, reason = None, TOO_FEW
    return replace(
        empty,
        judge=judge,
        person=person,
        difference=float(points[2]),
        interval=gap.interval,
        p=p,
        n_items=int(items.size),
        n_sources=int(sources.size),
        reason=reason,
    )


def _weights(side: _Side, sources: IntArray, measure: _Measure) -> FloatArray:
    """(n_sources,) what each source adds to the rater's weight: its items, or 1 at sample level."""
    counts = np.bincount(side.data.sources, minlength=side.own.size).astype(np.float64)
    weights = np.zeros(sources.size)
    weights[np.searchsorted(sources, side.own)] = 1.0 if measure.level == "sample" else counts
    return weights


def _weighted(values: FloatArray, weights: FloatArray) -> FloatArray:
    """(…, 3) judge, person and their difference from (…, n_raters, 2), by weight over the raters defined on both."""
    defined = np.asarray(~np.isnan(values).any(axis=-1))
    counted = np.where(defined, weights, 0.0)
    total = counted.sum(axis=-1)
    sums = (np.where(defined[..., None], values, 0.0) * counted[..., None]).sum(axis=-2)
    means = np.where(total > 0, sums.T, np.nan).T / np.where(total > 0, total, 1.0)[..., None]
    return np.concatenate([means, means[..., :1] - means[..., 1:]], axis=-1)


def _deleted(sides: list[_Side], sources: IntArray, weights: FloatArray, measure: _Measure) -> FloatArray:
    """(n_blocks, 3) judge, person and difference without each block of sources in turn."""
    n_blocks = min(sources.size, MOST_BLOCKS)
    counts = (np.arange(sources.size) % n_blocks != np.arange(n_blocks)[:, None]).astype(np.float64)
    values = np.stack(
        [
            resampled_values(
                one.data,
                counts[:, np.searchsorted(sources, one.own)],
                statistic=measure.statistic,
                level=measure.level,
                min_group=measure.min_group,
            )
            for one in sides
        ],
        axis=1,
    )
    return _weighted(values, counts @ weights.T)


@dataclass(frozen=True, slots=True)
class _Spread:
    interval: Interval | None
    p: float | None
    reason: str = ""


def _interval(point: float, left: FloatArray, n_sources: int, confidence: float, most: float) -> _Spread:
    """Jackknife interval and two-sided p for 0 of `point` from its values `left` (n_blocks,) without each block.

    Both ends lie in [-most, most].
    """
    from scipy.special import stdtr, stdtrit

    n = left.size
    if n < 2 or np.isnan(left).any():
        why = "there is only one source" if n < 2 else "it rests on single sources: without one of them it is undefined"
        return _Spread(None, None, f"no interval: {why}")
    error = math.sqrt((n - 1) / n * float(((left - left.mean()) ** 2).sum()))
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * error
    method = f"delete-one-source jackknife over {n_sources} sources, t with {n - 1} degrees of freedom"
    if n < n_sources:
        method = f"jackknife over {n_sources} sources in {n} blocks, t with {n - 1} degrees of freedom"
    interval = Interval(max(float(point - half), -most), min(float(point + half), most), confidence, method)
    if error <= 0:
        return _Spread(interval, 1.0 if point == 0 else None, "" if point == 0 else "every source gives the same value")
    return _Spread(interval, float(min(1.0, 2.0 * stdtr(n - 1, -abs(point) / error))))
