"""Standard errors over sources, for the confidence intervals and tests of agreement.

Items of one source share a text, so the *source* is the sampling unit (cluster). With few sources, percentile bootstrap
intervals are too narrow. In simulation (`tests/bench/bench_coverage.py`), the following methods keep their nominal
level; G is the number of sources:

- **sample** level, two judges: Student's t over the paired differences of the coefficients per source. The variance is
  s² / G, with G − 1 degrees of freedom.
- **sample** level, one judge: the deviations of the delete-one-source means on Fisher's scale. Their squares are summed
  without the factor (G − 1) / G of the jackknife (MacKinnon and White 1985, HC3). With 8 sources, the intervals
  cover 92 to 97 %. Plain t covers only 85 to 91 %, because many coefficients lie just below 1.
- **dataset** level: the delete-one-source jackknife on Fisher's scale z = atanh θ (Fisher 1921), with t quantiles of
  G − 1 degrees of freedom. The variance is (G − 1) / G · Σ (θ_(g) − mean θ_(·))² (Tukey 1958; Efron and Tibshirani
  1993, chapter 11). If leaving out a source makes θ exactly ±1, the plain scale is used. With more than `MOST_PIECES`
  sources, that number of random groups of sources is left out instead.
- **system** level, with fixed systems: a cluster bootstrap (Davison and Hinkley 1997, section 3.8), with t quantiles of
  G − 1 degrees of freedom. A jackknife fails, because leaving out a source changes the ranks of system means abruptly
  or not at all. For one judge, the standard error is the root mean square around the value itself, and so includes the
  bias. With fewer than `SHORT_BELOW` sources, intervals are too narrow.

Both ends of an interval lie in [-1, 1]. There is no interval in these cases:

- There are fewer than 2 sources.
- A rank coefficient covers fewer than `LEAST_RANKED` items.
- A mean of rank coefficients has fewer than `LEAST_DISTINCT` different coefficients.
- Leaving out some source makes the value undefined.
- Leaving out a source never changes the value (a perfect judge).

A difference of two means has no p if the two judges differ in fewer than `LEAST_DIFFERING` sources.

Resampling is described by arrays of *counts*: each row says how often each source was drawn. A *leave-out* row has 0
for the omitted sources and 1 for the others. A *draw* row describes n_sources draws with replacement. NaN means
undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from core.records import FloatArray, IntArray, Interval, Measure
from core.stats.correlation import (
    BLOCK_ELEMENTS,
    Paired,
    clipped_ratio,
    coefficients_by_source,
    correlate,
    deviations,
    kendall,
    mean_defined,
    rounded_means,
)

# ── data required for a claim, and reasons for none ─────────────────────────────────────────────────────────────────

ALPHA = 0.05
"""Differences with a (corrected) p up to this level are called significant."""

HALF_ALPHA = ALPHA / 2
"""One half for the comparison of a judge with a regression, one for where it fails and its biases, so that all of them
together make a false claim in at most `ALPHA` of the cases."""

LEAST_SOURCES = 8
"""Fewest sources for a p: with fewer, no test keeps its level on such data, and few could reject at all."""

LEAST_DIFFERING = 6
"""Fewest sources with differing coefficients for a p: 5 in the same direction happen by chance in 6 %."""

SHORT_BELOW = 25
"""With fewer sources, an interval at system level covers less than its 95 %."""

MARGIN = 0.05
"""A judge agrees as well as a rater if the low end of the interval is less than this below the rater."""

TOO_FEW = f"there are fewer than {LEAST_SOURCES} sources; label items from more sources"
TOO_ALIKE = f"the compared values differ in fewer than {LEAST_DIFFERING} sources; label items from more sources"
ONLY_SOURCE = "all items share one source; label items from at least 8 sources"
CARRIED = "the value depends on a single source; label items from more sources"
SAME_WITHOUT_ANY = "leaving out any one source doesn't change the value; label items from more sources"
SAME_EVERYWHERE = "every source gives the same value"
SHORT = "too narrow with few sources (with 8, the interval contains the true value in 84 to 97 % of cases, not 95 %)"

CONFIDENCE = 0.95
"""Confidence of every interval."""

Z95 = 1.959963984540054
"""Standard normal quantile of a two-sided 95 % interval."""

RESAMPLES = 1_000
"""Draws of sources behind an interval at system level; the other levels draw none."""

MOST_PIECES = 400
"""Most delete-one values computed; their variance is then known to about 7 %, the width to 3.5 %."""

LEAST_RANKED = 10
"""Fewest items for the interval of a rank coefficient over all of them: of 8 single items near 0.9 it covers 87 %."""

LEAST_DISTINCT = 4
"""Fewest different coefficients among the sources for the interval of a mean of rank coefficients: a source of 5 items
knows few values, and where 8 sources near 0.9 share 3 of them the interval covers 40 %, from 4 on 93 %."""

FEW_RANKED = f"a rank correlation needs at least {LEAST_RANKED} items; label more items"
FEW_COEFFICIENTS = (
    f"the correlations per source take fewer than {LEAST_DISTINCT} different values; measure at the dataset level, or "
    "label more items per source"
)

ROUNDING = 1e-12
"""Values that differ by less than this differ only by the order of summation."""

_ANGLES = np.linspace(0.0, 2.0 * np.pi, 720, endpoint=False)
_COSINES, _SINES = np.cos(_ANGLES), np.sin(_ANGLES)

T, JACKKNIFE, BOOTSTRAP = "t", "jackknife", "bootstrap with fixed systems"


Claim = Literal["higher", "lower", "open", "untested", "undefined"]


def claim(value: float | None, interval: Interval | None, p: float | None, *, alpha: float = ALPHA) -> Claim:
    """Classify a difference as "higher", "lower", "open", "untested" or "undefined".

    NaN is treated as None.

    - "undefined": `value` is None.
    - "untested": `p` is None.
    - "open": `p` is above `alpha`, `value` is 0, or the interval includes 0.
    - "higher", "lower": the difference is significant; the word gives its sign.
    """
    if value is None or np.isnan(value):
        return "undefined"
    if p is None or np.isnan(p):
        return "untested"
    if p > alpha or value == 0.0 or (interval is not None and interval.low <= 0.0 <= interval.high):
        return "open"
    return "higher" if value > 0 else "lower"


# ── standard errors ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class StandardErrors:
    """Standard errors of the values of several candidates, and of the difference of any two candidates.

    A column of `plain` or `fisher` belongs to a candidate: the sum of its squares is the squared standard error. The
    squared error of a difference is the sum of squares of the difference of two columns.

    Attributes:
        kind: Name of the method: `T`, `JACKKNIFE` or `BOOTSTRAP`.
        values: Values (n_candidates,).
        plain: Deviations (n_pieces, n_candidates) on the plain scale, not finite if unknown.
        fisher: Deviations (n_pieces, n_candidates) on Fisher's scale, not finite if unknown.
        bias: Bias (n_candidates,). Its square is added to the squared error of a single value on the plain scale.
        sources: Number of sources (n_candidates,) of each candidate.
        most_pieces: Maximum number of groups into which the sources were divided; 0 means no grouping.
        reasons: Maps candidates to the reason why they have no interval, if known beforehand.
    """

    kind: str
    values: FloatArray
    plain: FloatArray
    fisher: FloatArray
    bias: FloatArray
    sources: IntArray
    most_pieces: int = 0
    reasons: Mapping[int, str] = field(default_factory=dict)

    def interval(self, k: int) -> tuple[Interval | None, str]:
        """Return the interval of candidate `k` or None, and the reason why it has none, with a remedy.

        The reason is "" if there is an interval, or if the value itself is undefined.
        """
        value, n_sources = float(self.values[k]), int(self.sources[k])
        if np.isnan(value):
            return None, ""
        if n_sources < 2:
            return None, self.reasons.get(k, ONLY_SOURCE)
        error = length(self.fisher[:, k])
        on_fisher = bool(np.isfinite(error))
        error = error if on_fisher else float(np.hypot(length(self.plain[:, k]), self.bias[k]))
        if not error > ROUNDING:  # or NaN
            return None, self.reasons.get(k, CARRIED if np.isnan(error) else SAME_WITHOUT_ANY)
        reach = t_quantile(self._freedom(n_sources)) * error
        if on_fisher:
            low, high = np.tanh(np.arctanh(value) - reach), np.tanh(np.arctanh(value) + reach)
        else:
            low, high = max(value - reach, -1.0), min(value + reach, 1.0)
        return Interval(float(low), float(high), CONFIDENCE, self._method(n_sources, on_fisher), n_sources), ""

    def difference(self, i: int, j: int) -> tuple[Interval | None, float | None, str]:
        """Compare candidates `i` and `j`, paired by source.

        Returns the interval, the two-sided p, and the reason if p is None. The difference of two equal
        judges is 0, with p = 1.

        On Fisher's scale, p tests z_i − z_j = 0, and the interval is a profile interval. Its limits are the smallest
        and largest tanh a − tanh b over all pairs (a, b) near (z_i, z_j). "Near" means a squared Mahalanobis distance
        of at most t². So the interval contains 0 exactly if p is above 0.05.
        """
        n_sources = int(min(self.sources[i], self.sources[j]))
        few = TOO_FEW if n_sources < LEAST_SOURCES else ""
        gap = float(self.values[i] - self.values[j])
        if n_sources < 2 or np.isnan(gap):
            return None, None, few
        error = length(self.fisher[:, i] - self.fisher[:, j]) if self.kind != T else np.nan
        on_fisher = bool(np.isfinite(error))
        ends = np.arctanh(self.values[[i, j]]) if on_fisher else self.values[[i, j]]
        if not on_fisher:
            error = length(self.plain[:, i] - self.plain[:, j])
        if np.isnan(error) or (error <= ROUNDING < abs(gap)):
            return None, None, few or (CARRIED if np.isnan(error) else SAME_WITHOUT_ANY)
        method, freedom = self._method(n_sources, on_fisher), self._freedom(n_sources)
        if error <= ROUNDING:
            return Interval(0.0, 0.0, CONFIDENCE, method, n_sources), None if few else 1.0, few
        if self.kind == T and self.sources[i] == self.sources[j]:
            # two means that agree in most sources; sources that neither has are 0 in both
            apart_by = (self.plain[:, i] - self.plain[:, j]) * np.sqrt(n_sources * (n_sources - 1.0)) + gap
            present = (self.plain[:, i] != 0) | (self.plain[:, j] != 0) | (n_sources == len(apart_by))
            alike = ((np.abs(apart_by) > 1e-9) & present).sum() < LEAST_DIFFERING
            few = few or (TOO_ALIKE if alike else "")
        apart, reach = float(ends[0] - ends[1]), t_quantile(freedom) * error
        low, high = apart - reach, apart + reach
        if on_fisher:
            low, high = _profile(float(ends.mean()), apart, self.fisher[:, i], self.fisher[:, j], reach / error)
        interval = Interval(max(low, -2.0), min(high, 2.0), CONFIDENCE, method, n_sources)
        return interval, None if few else two_sided(apart / error, freedom), few

    def _freedom(self, n_sources: int) -> int:
        return min(n_sources, self.most_pieces or n_sources) - 1

    def _method(self, n_sources: int, on_fisher: bool) -> str:
        freedom = self._freedom(n_sources)
        grouped = f" in {freedom + 1} groups" if freedom + 1 < n_sources else ""
        scale = " on Fisher's z" if on_fisher else ""
        short = f"; {SHORT}" if self.kind == BOOTSTRAP and n_sources < SHORT_BELOW else ""
        kind = f"{JACKKNIFE} of the mean" if self.kind == T and on_fisher else self.kind
        return f"{kind} over {n_sources:,} sources{grouped}, t({freedom}){scale}{short}"


def _profile(middle: float, apart: float, first: FloatArray, second: FloatArray, t: float) -> tuple[float, float]:
    """Return the least and largest tanh a − tanh b on the ellipse of radius `t` around a, b = middle ± apart / 2.

    `first` and `second` are the deviations of a and b.  In the coordinates δ = a − b and m = (a + b) / 2 the ellipse is
    δ = apart + t·s_δ·cos φ, m = middle + t·(cov / s_δ · cos φ + s_rest · sin φ).
    """
    gaps, means = first - second, (first + second) / 2.0
    of_gap = length(gaps)
    shared = float((gaps * means).sum()) / of_gap
    rest = length(means - shared / of_gap * gaps)
    delta = apart + t * of_gap * _COSINES
    m = middle + t * (shared * _COSINES + rest * _SINES)
    values = np.tanh(m + delta / 2.0) - np.tanh(m - delta / 2.0)
    return float(values.min()), float(values.max())


def length(deviations: FloatArray) -> float:
    """Return the root of the sum of squares of `deviations`: a standard error."""
    return float(np.sqrt((deviations * deviations).sum()))


def t_quantile(freedom: int, n_intervals: float = 1.0) -> float:
    """Return the two-sided 95 % quantile of Student's t with `freedom` degrees of freedom.

    With `n_intervals` above 1, the quantile is Bonferroni-corrected for that many intervals.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1.0 - (1.0 - CONFIDENCE) / (2.0 * n_intervals)))


def two_sided(t: float, freedom: int) -> float:
    """Return the two-sided p value of Student's `t` with `freedom` degrees of freedom."""
    from scipy.special import stdtr

    return float(min(1.0, 2.0 * stdtr(freedom, -abs(t))))


def one_sided(t: float, freedom: int) -> float:
    """Return the probability that Student's t, with `freedom` degrees of freedom, is below `t`."""
    from scipy.special import stdtr

    return float(stdtr(freedom, t))


def t_interval(
    value: float, error: float, n_sources: int, method: str, *, most: float = np.inf, n_independent: int | None = None
) -> Interval:
    """Return the interval `value` ± t · `error`, clipped to ±`most`.

    t has `n_independent` − 1 degrees of freedom (default: `n_sources` − 1).
    """
    freedom = (n_sources if n_independent is None else n_independent) - 1
    half = t_quantile(freedom) * error
    method = f"{method} over {n_sources:,} sources, t({freedom})"
    return Interval(max(value - half, -most), min(value + half, most), CONFIDENCE, method, n_sources)


def jackknife(by_source: FloatArray, values_of: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Compute values and their jackknife standard errors over sources.

    Args:
        by_source: Sums (n_sources, n_sums) of each source.
        values_of: Function from sums (n_rows, n_sums) to values (n_rows, n_values).

    Returns:
        Values (n_values,) of all sources together, and standard errors (n_values,), NaN for a single source.
    """
    total, n = by_source.sum(axis=0, keepdims=True), len(by_source)
    values = values_of(total)[0]
    if n < 2:
        return values, np.full(values.size, np.nan)
    deviations = jackknife_deviations(values_of(total - by_source))
    return values, np.sqrt((deviations**2).sum(axis=0))


def clustered_error(terms: FloatArray, sources: IntArray) -> float:
    """Compute the standard error of the sum of `terms` (n,), clustered by source.

    `sources` (n,) has the source of each term, as an integer. For G sources, the formula is
    √(G / (G − 1) · Σ_g (Σ terms of g)²), where g is a source. The result is NaN for fewer than 2 sources. For a mean or
    a ratio, pass each item's contribution to the linearised value as a term.
    """
    by_source = np.bincount(np.unique(sources, return_inverse=True)[1], weights=terms)
    n = by_source.size
    return float(np.sqrt((by_source**2).sum() * n / (n - 1))) if n > 1 else np.nan


def intraclass_correlation(values: FloatArray, groups: IntArray) -> float:
    """Compute ICC(1), the similarity of values within groups (Shrout and Fleiss 1979).

    The formula is (MSB − MSW) / (MSB + (k₀ − 1)·MSW), where MSB and MSW are the mean squares between and within groups.
    For G groups of k_i values, k₀ = (n − Σk_i²/n) / (G − 1). If all groups have the same size, k₀ is this size.

    Args:
        values: Values (n,).
        groups: Group code (n,) of each value.

    Returns:
        The coefficient. NaN for fewer than 2 groups, for groups of one value each, and if all values are equal.
    """
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    n, n_groups = values.size, sizes.size
    if not 2 <= n_groups < n:
        return np.nan
    means = np.bincount(codes, weights=values) / sizes
    within = ((values - means[codes]) ** 2).sum() / (n - n_groups)
    between = (sizes * (means - values.mean()) ** 2).sum() / (n_groups - 1)
    spread = between + ((n - (sizes**2).sum() / n) / (n_groups - 1) - 1.0) * within
    return float((between - within) / spread) if spread > 0 else np.nan


# ── from labelled items ──────────────────────────────────────────────────────────────────────────────────────


def spread_of(
    data: Paired,
    measure: Measure,
    measured: tuple[FloatArray, FloatArray | None],
    generator: np.random.Generator,
) -> StandardErrors:
    """Compute standard errors for `measured`, the result of `level_values` on `data`."""
    (values, by_source), ranked = measured, measure.statistic != "pearson"
    if by_source is not None:
        spread, why = _spread_of_means(by_source), FEW_COEFFICIENTS
        ordered = np.sort(by_source, axis=1)  # NaN last
        distinct = (np.diff(ordered, axis=1) > ROUNDING).sum(axis=1) + ~np.isnan(ordered[:, 0])
        few = ranked & (distinct < np.minimum(spread.sources, LEAST_DISTINCT))
        spread.fisher[:, few] = spread.bias[few] = np.nan
    else:
        spread, why = (
            spread_over_sources(
                lambda counts: resampled_values(data, counts, measure),
                values,
                np.asarray((data.items.sums_by_source(data.scored) > 0).sum(axis=1), dtype=np.intp),
                data.items.n_sources,
                generator,
                draws=measure.level == "system",
            ),
            FEW_RANKED,
        )
        few = (ranked and measure.level == "dataset") & (data.scored.sum(axis=1) < LEAST_RANKED)
        spread.plain[:, few] = spread.fisher[:, few] = np.nan
    return replace(spread, reasons=dict.fromkeys(np.flatnonzero(few).tolist(), why))


def _spread_of_means(values: FloatArray) -> StandardErrors:
    """Compute standard errors of means of per-source coefficients (n_candidates, n_sources), NaN = left out.

    With deviations (c_g − c̄) / √(G (G − 1)), a column's sum of squares is s² / G.  For two candidates with the same
    sources, that of their difference is s² / G of the paired differences.  Sources of only one candidate count for that
    one alone.
    """
    present = ~np.isnan(values)
    means, n = mean_defined(values), present.sum(axis=1)
    size = np.where(n >= 2, n * (n - 1.0), np.nan)
    deviations = np.where(present, values - means[:, None], 0.0) / np.sqrt(size)[:, None]
    left = np.where(present, n[:, None] * means[:, None] - np.nan_to_num(values), 0.0)
    left /= np.maximum(n - 1, 1)[:, None]
    usable = (n >= 2) & (np.abs(left) < 1.0 - ROUNDING).all(axis=1) & (np.abs(means) < 1.0 - ROUNDING)
    on_z = np.where(present, np.arctanh(np.where(usable[:, None], left, 0.0)), np.nan)
    fisher = np.where(present, on_z - mean_defined(on_z)[:, None], 0.0)
    return StandardErrors(T, means, deviations.T, np.where(usable, fisher.T, np.nan), np.zeros(means.size), n)


# ── any statistic, by resampling sources ─────────────────────────────────────────────────────────────────────


def spread_over_sources(
    values_of: Callable[[FloatArray], FloatArray],
    values: FloatArray,
    sources: IntArray,
    n_sources: int,
    generator: np.random.Generator,
    *,
    draws: bool = False,
) -> StandardErrors:
    """Compute standard errors of `values` by leaving out or resampling sources.

    Args:
        values_of: Function from counts (rows, n_sources) to values (rows, n_candidates), NaN = undefined. A count says
            how often a source was drawn.
        values: Values (n_candidates,) on all sources.
        sources: Number of sources (n_candidates,) of each candidate.
        draws: Use a bootstrap of `RESAMPLES` draws instead of the delete-one-source jackknife. A bootstrap error is
            unknown if the value is undefined in more than half of the draws.
    """
    if draws:
        # in ten blocks: the counts of very many sources would not fit into memory
        drawn = np.concatenate([values_of(draw_counts(generator, n_sources, RESAMPLES // 10)) for _ in range(10)])
        n, means, small = (~np.isnan(drawn)).sum(axis=0), mean_defined(drawn.T), np.sqrt(n_sources / (n_sources - 1.0))
        scale = np.where(2 * n >= drawn.shape[0], small / np.sqrt(np.maximum(n, 1)), np.nan)
        plain, none = np.nan_to_num(drawn - means) * scale, np.full((1, values.size), np.nan)
        return StandardErrors(BOOTSTRAP, values, plain, none, small * (means - values), sources)
    left_out = leave_outs(n_sources, MOST_PIECES, generator)
    left = values_of(left_out)
    usable = (np.abs(np.vstack([left, values[None, :]])) < 1.0 - ROUNDING).all(axis=0)
    on_z = np.where(usable, jackknife_deviations(np.arctanh(np.where(usable, left, 0.0))), np.nan)
    plain = jackknife_deviations(left)
    return StandardErrors(JACKKNIFE, values, plain, on_z, np.zeros(values.size), sources, left_out.shape[0])


def jackknife_deviations(left: FloatArray) -> FloatArray:
    """Return the deviations of delete-one values (n_pieces, n_candidates) from their mean, scaled for the jackknife.

    The squares of a candidate's deviations add up to its squared standard error.
    """
    pieces = left.shape[0]
    return np.asarray(np.sqrt((pieces - 1.0) / pieces) * (left - left.mean(axis=0)), dtype=np.float64)


# ── statistics of resampled sources ──────────────────────────────────────────────────────────────────────────

BALANCE_LIMIT = 8_000
"""Most items for which all pairs are compared for tau-b (n² signs); beyond, each row's items are sorted."""

COUNTS_LIMIT = 16_000_000
"""Most counts (pieces x sources) held at once: 128 MB."""

VANISHING = 1e-12
"""A resampled sum of squares below this share of the whole sample's is rounding: the side is constant."""


def draw_counts(generator: np.random.Generator, n_sources: int, resamples: int) -> FloatArray:
    """Draw sources with replacement; return counts (resamples, n_sources). Each row adds up to n_sources."""
    drawn = generator.integers(0, n_sources, size=(resamples, n_sources))
    drawn += np.arange(resamples)[:, None] * n_sources
    flat = np.bincount(drawn.ravel(), minlength=resamples * n_sources)
    return flat.reshape(resamples, n_sources).astype(np.float64)


def leave_outs(n_sources: int, pieces: int, generator: np.random.Generator | None = None) -> FloatArray:
    """Return an array (n_groups, n_sources) for leaving out groups of sources: 0 for the row's group, else 1.

    Each source is in exactly one group. Groups are single sources if there are at most `pieces` sources. Otherwise
    there are `pieces` groups of nearly equal size, or fewer if memory is short. Groups are random if a `generator` is
    passed. Otherwise, source k is in group k mod n_groups.
    """
    pieces = min(n_sources, pieces, max(COUNTS_LIMIT // max(n_sources, 1), 2))
    drawn = np.arange(n_sources) if pieces == n_sources or generator is None else generator.permutation(n_sources)
    return np.asarray((drawn % max(pieces, 1))[None, :] != np.arange(pieces)[:, None], dtype=np.float64)


def resampled_values(data: Paired, counts: FloatArray, measure: Measure) -> FloatArray:
    """Return the values of `measure`, (resamples, n_candidates), for each row of `counts` (resamples, n_sources).

    For a rank coefficient at dataset level, `counts` must be 0 or 1, because no source can be repeated.
    """
    if measure.level == "sample":
        return counted_means(coefficients_by_source(data, measure.statistic), counts)
    if measure.level == "system":
        present, scores, labels = map(
            data.items.sums_by_cell, (data.weights, np.nan_to_num(data.scores), data.weights * data.items.labels)
        )
        values = np.empty((counts.shape[0], data.scores.shape[0]))
        for block in _blocks(counts.shape[0], scores.shape[0] * data.items.n_systems):
            drawn = np.matmul(counts[block], present)
            x, y = (rounded_means(np.matmul(counts[block], totals), drawn) for totals in (scores, labels))
            values[block] = correlate(x, y, measure.statistic).T
        return values
    if measure.statistic == "pearson":
        return _pearson_values(data, counts)
    left = counts == 0
    by = np.where(left.any(axis=0), left.argmax(axis=0), counts.shape[0])  # the row that leaves each source out
    of_rest = _spearman_of_the_rest if measure.statistic == "spearman" else _kendall_of_the_rest
    values = np.full((counts.shape[0], data.scores.shape[0]), np.nan)
    for k in range(data.scores.shape[0]):
        own = data.scored_only(k)
        if own.items.labels.size >= 2:
            values[:, k] = of_rest(own.scores[0], own.items.labels, by[own.items.sources], counts.shape[0])
    return values


def _blocks(resamples: int, elements: int) -> Iterator[slice]:
    """Divide the resamples into blocks whose arrays, of `elements` per resample, stay near `BLOCK_ELEMENTS`."""
    step = max(1, BLOCK_ELEMENTS // (8 * max(elements, 1)))
    return (slice(start, min(start + step, resamples)) for start in range(0, resamples, step))


def counted_means(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the means (resamples, rows) of `values` (rows, n_sources), weighted by `counts`.

    `counts` is (resamples, n_sources).  NaN values are skipped.
    """
    present = ~np.isnan(values)
    total = counts @ np.where(present, values, 0.0).T
    weight = counts @ present.T.astype(np.float64)
    return np.where(weight > 0, total, np.nan) / np.maximum(weight, 1.0)


def _pearson_values(data: Paired, counts: FloatArray) -> FloatArray:
    x, y = deviations(data.scores), deviations(np.where(data.scored > 0, data.items.labels, np.nan))
    n, sx, sy, sxx, syy, sxy = (
        counts @ data.items.sums_by_source(part).T for part in (data.scored, x, y, x * x, y * y, x * y)
    )
    n = np.maximum(n, 1.0)
    vx, vy = (np.maximum(squares - sums * sums / n, 0.0) for squares, sums in ((sxx, sx), (syy, sy)))
    for side, variance in ((x, vx), (y, vy)):
        variance[variance <= VANISHING * (side * side).sum(axis=1)] = 0.0
    return clipped_ratio(sxy - sx * sy / n, np.sqrt(vx * vy))


def _left_masses(codes: IntArray, by: IntArray, rows: slice) -> FloatArray:
    """Count how often each row leaves out each value: (n_values, n_rows).

    `codes` (n,) are the values of the items; row `by` (n,) leaves an item out.
    """
    n_rows, n_values, inside = rows.stop - rows.start, int(codes.max()) + 1, (by >= rows.start) & (by < rows.stop)
    masses = np.repeat(np.bincount(codes, minlength=n_values).astype(np.float64), n_rows)
    np.subtract.at(masses, codes[inside] * n_rows + by[inside] - rows.start, 1.0)
    return masses.reshape(n_values, n_rows)


def _spearman_of_the_rest(x: FloatArray, y: FloatArray, by: IntArray, n_rows: int) -> FloatArray:
    """Compute Spearman of the items (n,) that each row keeps: (n_rows,); row `by` (n,) leaves an item out."""
    from scipy.sparse import csr_matrix

    codes = [np.unique(side, return_inverse=True)[1] for side in (x, y)]
    pairs, values = csr_matrix((np.ones(x.size), (codes[1], codes[0]))), np.empty(n_rows)
    for rows in _blocks(n_rows, 4 * max(pairs.shape)):
        ranks, power = [], np.ones(rows.stop - rows.start)
        for places in codes:
            masses = _left_masses(places, by, rows)
            centred = np.cumsum(masses, axis=0)  # centred average ranks, exact because they are multiples of one half
            n = centred[-1].copy()
            masses /= 2.0
            centred -= masses
            centred -= n / 2.0
            ranks.append(centred)
            # Σ of squared centred average ranks of N items is (N³ − Σ t³) / 12 over the sizes t of the ties
            power = power * np.sqrt((n**3 - 8.0 * np.einsum("vr,vr,vr->r", masses, masses, masses)) / 12.0)
        together = (np.asarray(pairs @ ranks[0]) * ranks[1]).sum(axis=0)
        inside = np.flatnonzero((by >= rows.start) & (by < rows.stop))
        row = by[inside] - rows.start
        gone = ranks[0][codes[0][inside], row] * ranks[1][codes[1][inside], row]
        values[rows] = clipped_ratio(together - np.bincount(row, weights=gone, minlength=rows.stop - rows.start), power)
    return values


def _kendall_of_the_rest(x: FloatArray, y: FloatArray, by: IntArray, n_rows: int) -> FloatArray:
    """Compute tau-b of the items (n,) that each row keeps: (n_rows,); row `by` (n,) leaves an item out."""
    if x.size > BALANCE_LIMIT:
        rests = (by != row for row in range(n_rows))
        return np.array([float(kendall(x[rest], y[rest])) for rest in rests])
    # concordant minus discordant pairs: with one item left out, with both items left out
    gone, inside = np.zeros((2, n_rows + 1))
    for row in range(n_rows + 1):
        own = np.flatnonzero(by == row)
        signs = [
            np.subtract((side[own, None] > side).view(np.int8), (side[own, None] < side).view(np.int8))
            for side in (x, y)
        ]
        agreed = np.multiply(*signs)
        gone[row], inside[row] = agreed.sum(dtype=np.int64), agreed[:, own].sum(dtype=np.int64)
    untied, codes = np.empty((2, n_rows)), [np.unique(side, return_inverse=True)[1] for side in (x, y)]
    for rows in _blocks(n_rows, x.size):
        for places, own_untied in zip(codes, untied, strict=True):
            masses = _left_masses(places, by, rows)
            own_untied[rows] = masses.sum(axis=0) ** 2 - np.einsum("vr,vr->r", masses, masses)
    return clipped_ratio((gone.sum() - 2.0 * gone + inside)[:n_rows], np.sqrt(untied[0] * untied[1]))
