"""Whether one judge aligns better than another: Williams' test, Holm's correction, all pairs of many judges at once.

Both tests ask about the difference in *alignment* with people, not in scores, and both use only the items that all
judges compared have a score for.  Williams' test assumes independent items and fits Pearson at dataset level alone;
with several items a source it finds differences that are not there in 8 to 17 % of draws at a nominal 5 %.  The paired
test over sources (`core.stats.spread`) fits every statistic and level: where the two disagree, believe it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import Alignment, FloatArray, Interval, Level, Statistic
from core.stats.correlation import pearson
from core.stats.intervals import NO_INTERVAL, RESAMPLES, Difference, with_spread
from core.stats.levels import MIN_GROUP, align_paired
from core.stats.pairing import paired
from core.stats.spread import LEAST_SOURCES, TOO_FEW, Spread, spread_of

TextArray = np.ndarray[tuple[int, ...], np.dtype[np.object_]]

COLLINEAR = 1e-12
"""Judges whose correlation is nearer to ±1 than this differ only by rounding; the test divides 0 by 0 there."""

WILLIAMS_GROUPED = (
    "Williams' test takes items as independent; these share sources, where it calls equal judges different in 8 to "
    "17 % of cases instead of 5 %: go by the test over sources"
)
WILLIAMS_SINGLE = "Williams' test takes items as independent: here each is a source of its own"


# ── Williams' test ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Williams:
    """Williams' test of two dependent Pearson correlations that share the labels.

    `t` is positive when the first judge aligns better.  `p_one_sided` is the chance of such a t or a larger one if
    both align equally (against "the first is better"), `p_two_sided` of one as far from 0.  All None where undefined,
    with `reason`; under 8 sources only the p are.  `n` counts the common items, `df` = n − 3.  `note` says what the
    test assumes and what that does here.
    """

    t: float | None
    df: int | None
    p_one_sided: float | None
    p_two_sided: float | None
    n: int
    reason: str = ""
    note: str = WILLIAMS_SINGLE

    def as_json(self) -> dict[str, Any]:
        """``{"t", "df", "p_one_sided", "p_two_sided", "n", "reason", "note"}`` with null where undefined."""
        return {
            "t": self.t,
            "df": self.df,
            "p_one_sided": self.p_one_sided,
            "p_two_sided": self.p_two_sided,
            "n": self.n,
            "reason": self.reason or None,
            "note": self.note,
        }


def williams_test(a: ArrayLike, b: ArrayLike, labels: ArrayLike, source_codes: ArrayLike | None = None) -> Williams:
    """Test whether Pearson r of `a` with `labels` differs from that of `b`; each (n_items,), NaN = missing.

    Dataset level, on the items all three have; `source_codes` (n_items,) are its sources: under 8 there is no p.
    Undefined with up to 3 items, a constant side, or judges that are the same up to a linear map.  Williams (1959),
    recommended for metrics by Graham and Baldwin (2014).  ValueError when lengths differ, UsageError for ±inf.
    """
    found = _williams(a, b, labels)
    if source_codes is None:
        return found
    kept = ~np.isnan(np.stack([np.asarray(side, dtype=np.float64) for side in (a, b, labels)])).any(axis=0)
    n_sources = np.unique(np.asarray(source_codes)[kept]).size
    found = replace(found, note=WILLIAMS_GROUPED if n_sources < found.n else WILLIAMS_SINGLE)
    if n_sources >= LEAST_SOURCES:
        return found
    return replace(found, p_one_sided=None, p_two_sided=None, reason=found.reason or TOO_FEW)


def _williams(a: ArrayLike, b: ArrayLike, labels: ArrayLike) -> Williams:
    sides = [np.asarray(side, dtype=np.float64) for side in (a, b, labels)]
    if any(side.ndim != 1 or side.size != sides[0].size for side in sides):
        raise ValueError(f"one entry per item is needed on every side: {[side.shape for side in sides]}")
    kept = ~np.isnan(np.stack(sides)).any(axis=0)
    x, y, gold = (side[kept] for side in sides)
    n = gold.size
    if n <= 3:
        return _untested(n, f"Williams' test needs at least 4 common items; there are {n}")
    constant = [
        name
        for name, side in (("first judge's scores", x), ("second judge's scores", y), ("labels", gold))
        if side.min() == side.max()
    ]
    if constant:
        return _untested(n, f"all {' and all '.join(constant)} are equal on the common items")
    r_a, r_b, r_ab = float(pearson(x, gold)), float(pearson(y, gold)), float(pearson(x, y))
    if abs(r_ab) > 1.0 - COLLINEAR:
        return _untested(n, "the two judges' scores are the same up to a linear map")
    t = float(williams_t(r_a, r_b, r_ab, n))
    return _tested(t, n)


def williams_t(r_a: ArrayLike, r_b: ArrayLike, r_ab: ArrayLike, n: ArrayLike) -> FloatArray:
    """Williams' t, element by element, NaN where n ≤ 3 or nothing is left to divide by.

    t = (r_a − r_b) · √((n−1)(1+r_ab)) / √(2K(n−1)/(n−3) + (r_a+r_b)²/4 · (1−r_ab)³) with
    K = 1 − r_a² − r_b² − r_ab² + 2·r_a·r_b·r_ab; df = n − 3.  `r_a` and `r_b` correlate each judge with the labels,
    `r_ab` the judges with each other.
    """
    ra, rb, rab, count = (np.asarray(side, dtype=np.float64) for side in (r_a, r_b, r_ab, n))
    k = np.maximum(1.0 - ra**2 - rb**2 - rab**2 + 2.0 * ra * rb * rab, 0.0)
    freedom = np.where(count > 3, count - 3.0, np.nan)
    below = 2.0 * k * (count - 1.0) / freedom + (ra + rb) ** 2 / 4.0 * (1.0 - rab) ** 3
    defined = below > 0
    above = (ra - rb) * np.sqrt((count - 1.0) * (1.0 + rab))
    return np.asarray(np.where(defined, above, np.nan) / np.sqrt(np.where(defined, below, 1.0)), dtype=np.float64)


def _tested(t: float, n: int) -> Williams:
    from scipy.special import stdtr

    df = n - 3
    return Williams(t, df, float(stdtr(df, -t)), float(min(1.0, 2.0 * stdtr(df, -abs(t)))), n)


def _untested(n: int, reason: str) -> Williams:
    return Williams(None, None, None, None, n, reason)


# ── a whole table ────────────────────────────────────────────────────────────────────────────────────────────


def holm(p: ArrayLike) -> FloatArray:
    """p values corrected for their number, in the shape given; NaN (undefined) stays NaN and is not counted.

    The smallest of m is multiplied by m, the next by m − 1, …, never below the one before, at most 1 (Holm 1979).
    Rejecting those up to α keeps the chance of any false rejection in the table at α, however the tests depend.
    UsageError for values outside [0, 1].
    """
    values = np.asarray(p, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise UsageError("p values lie between 0 and 1.")
    corrected = np.full(values.shape, np.nan)
    defined = ~np.isnan(values)
    given = values[defined]
    order = np.argsort(given, kind="stable")
    raised = np.minimum(np.maximum.accumulate(given[order] * np.arange(given.size, 0, -1)), 1.0)
    own = np.empty(given.size)
    own[order] = raised
    corrected[defined] = own
    return corrected


@dataclass(frozen=True)
class PairwiseComparison:
    """Every judge against every other on the `n` items that all of them scored.

    `alignments` has one a judge.  The matrices are (n_judges, n_judges), row minus column, NaN = undefined and on the
    diagonal of `p`: `difference`, its interval `low` to `high`, `p` (two-sided, paired over sources), `p_holm`
    (corrected over the pairs of the table), `williams_p` (two-sided) and `williams_p_holm`, which are about Pearson at
    dataset level whatever the table shows.  All p are NaN under 8 sources.  `method` says how a pair's interval was
    made, `p_reason` why it has no p (both texts, (n_judges, n_judges)); `grouped` whether sources have several items.
    """

    alignments: tuple[Alignment, ...]
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    p_holm: FloatArray
    williams_p: FloatArray
    williams_p_holm: FloatArray
    n: int
    confidence: float
    method: TextArray
    p_reason: TextArray
    grouped: bool

    def pair(self, first: int, second: int) -> Difference:
        """Judge `first` minus judge `second` as a record."""
        a, b = self.alignments[first], self.alignments[second]
        if a.value is None or b.value is None:
            sides = ((first, a), (second, b))
            reason = "; ".join(f"judge {k + 1}: {side.reason}" for k, side in sides if side.value is None)
            return Difference(None, None, None, self.n, a, b, reason=reason)
        low, high, p = (float(side[first, second]) for side in (self.low, self.high, self.p))
        interval = None if np.isnan(low) else Interval(low, high, self.confidence, self.method[first, second])
        known, why = (None, self.p_reason[first, second]) if np.isnan(p) else (p, "")
        return Difference(a.value - b.value, interval, known, self.n, a, b, p_reason=why)


def compare_judges(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
    min_group: int = MIN_GROUP,
) -> PairwiseComparison:
    """Compare all pairs of `scores` (n_judges, n_items) at once: one deviation a judge and source serves every pair.

    On the labelled items that every judge scored; a pair gives what `paired_difference` gives on those items.
    UsageError when there are no such items.
    """
    matrix = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    common = np.where(np.isnan(matrix).any(axis=0), np.nan, np.asarray(labels, dtype=np.float64))
    if not common.size or np.isnan(common).all():
        raise UsageError(
            "No labelled item has a score from every judge, so there is nothing to compare on. "
            "Leave out the judge with the fewest scores, or score the missing items."
        )
    data = paired(matrix, common, source_codes, system_codes)
    found = align_paired(data, statistic=statistic, level=level, min_group=min_group)
    grouped = data.n_sources < data.labels.size
    williams = _williams_matrix(data.scores, data.labels, data.n_sources)
    if data.n_sources < 2 or resamples < 1:
        return _compared(tuple(found), None, williams, grouped, confidence)
    spread = spread_of(data, generator, resamples, statistic=statistic, level=level, min_group=min_group)
    return _compared(tuple(with_spread(found, spread, confidence)), spread, williams, grouped, confidence)


def _compared(
    alignments: tuple[Alignment, ...], spread: Spread | None, williams: _Tested, grouped: bool, confidence: float
) -> PairwiseComparison:
    k = len(alignments)
    points = np.array([np.nan if one.value is None else one.value for one in alignments])
    low, high, p = (np.full((k, k), np.nan) for _ in range(3))
    method, p_reason = np.full((k, k), "", dtype=object), np.full((k, k), NO_INTERVAL, dtype=object)
    for i, j in zip(*np.triu_indices(k, 1), strict=True):
        if spread is None or np.isnan(points[i]) or np.isnan(points[j]):
            continue
        tested = spread.difference(int(i), int(j), confidence)
        p_reason[i, j] = p_reason[j, i] = tested.reason
        p[i, j] = p[j, i] = np.nan if tested.p is None else tested.p
        if tested.interval is None:
            continue
        low[i, j], high[i, j] = tested.interval.low, tested.interval.high
        low[j, i], high[j, i] = -tested.interval.high, -tested.interval.low
        method[i, j] = method[j, i] = tested.interval.method
    return PairwiseComparison(
        alignments,
        points[:, None] - points[None, :],
        low,
        high,
        p,
        _holm_of_pairs(p),
        williams.p,
        _holm_of_pairs(williams.p),
        williams.n,
        confidence,
        method,
        p_reason,
        grouped,
    )


@dataclass(frozen=True, slots=True)
class _Tested:
    p: FloatArray
    n: int


def _williams_matrix(scores: FloatArray, labels: FloatArray, n_sources: int) -> _Tested:
    """Two-sided p of Williams' test for every pair of complete rows; none under 8 sources."""
    from scipy.special import stdtr

    n = labels.size
    if n_sources < LEAST_SOURCES:
        return _Tested(np.full((scores.shape[0], scores.shape[0]), np.nan), n)
    with_labels = pearson(scores, labels)
    between = np.stack([pearson(scores, row) for row in scores])
    t = williams_t(with_labels[:, None], with_labels[None, :], between, n)
    t[~(np.abs(between) <= 1.0 - COLLINEAR)] = np.nan
    return _Tested(np.minimum(1.0, 2.0 * stdtr(max(n - 3, 1), -np.abs(t))), n)


def _holm_of_pairs(p: FloatArray) -> FloatArray:
    """Each pair counts once, though it stands in the matrix twice."""
    above = np.triu_indices(p.shape[0], 1)
    corrected = np.full(p.shape, np.nan)
    corrected[above] = holm(p[above])
    corrected.T[above] = corrected[above]
    return corrected


# ── two judges ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two judges on their common items: the paired difference (it holds both alignments) and Williams' test."""

    difference: Difference
    williams: Williams

    @property
    def n_common(self) -> int:
        return self.difference.n

    def as_json(self) -> dict[str, Any]:
        """The JSON of `compare` (DESIGN §3)."""
        return {
            "n_common": self.n_common,
            "a": self.difference.a.as_json(),
            "b": self.difference.b.as_json(),
            "difference": self.difference.as_json(),
            "williams": self.williams.as_json(),
        }
