"""What a judge's scores share with a property of the texts beyond what their labels explain: length, a family.

A judge that follows nothing but quality correlates with length as far as quality does, and noise in its scores lowers
that.  Noise in the labels lowers *their* correlation with length.  So two correlations with length differ wherever the
two sides differ in reliability, and their difference is no bias.  Neither is the partial correlation given the labels:
labels with noise leave some quality behind, which length then explains (Westfall and Yarkoni 2016, "Statistically
controlling for confounding constructs is harder than you think").

Let J be the score, x the property, T the quality that the labels measure.  Without bias J = a + b·T + noise, so
corr(J, x) = corr(J, T) · corr(T, x).  How that is estimated depends on the labels:

- *Several ratings per item*: split the ratings of each item at random into two halves A and B.  Their errors are
  independent, so corr(J, x) = corr(J, A) · corr(B, x) / corr(A, B), whatever the reliability of anything (a vanishing
  tetrad; Spearman 1904, Bollen and Ting 1993).  Averaged over both orders and `SPLITS` splits.  The p is that of
  corr(J, x) · corr(A, B) − corr(J, A) · corr(B, x) = 0, which divides by nothing.
- *One label Y per item*: corr(J, x) = corr(J, Y) · corr(Y, x) / reliability of Y, and that reliability is not known.
  It lies between 1 and the largest of corr(J, Y)², corr(Y, x)² and `LEAST_RELIABILITY`.  Only what lies beyond the
  expected correlation at both ends is called a bias: both tests have to reject (Berger 1982, intersection-union).

Correlations are those of average ranks (Spearman), over all items or within sources: ranks less their mean in the
source, pooled.  Standard errors are from leaving out one source at a time (jackknife), with t on sources − 1 degrees of
freedom.  Excess up to `LEAST_EXCESS` is not called a bias: ranks of scores on few steps fit no linear model exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.records import FloatArray, IntArray, Interval
from core.stats.claims import LEAST_SOURCES, TOO_FEW
from core.stats.correlation import average_ranks
from core.stats.intervals import CONFIDENCE, ROUNDING, jackknife, t_interval, t_quantile, two_sided

LEAST_RELIABILITY = 0.3
"""Least reliability that single labels are taken to have; a rater's ratings of text quality reach 0.3 to 0.6."""

LEAST_EXCESS = 0.05
"""A correlation beyond the expected one by no more than this is not called a bias."""

SPLITS = 8
"""Random splits of the ratings into halves."""

LEAST_RATED = 30
"""Fewest items with two ratings, and at least half of all items, for halves of ratings to be used."""

RATERS_DISAGREE = "the raters agree too little with each other"


@dataclass(frozen=True, slots=True)
class Beyond:
    """Correlation of the `judge`'s scores with a property, of the `labels`, and the one `expected` without bias.

    `expected` is a range where the reliability of the labels is not known.  `value` is what lies beyond it: 0 inside.
    `interval` covers what the judge's correlation exceeds any expected one by; `p` is two-sided.  `reason` says why
    there is no p, or no value.
    """

    judge: float
    labels: float
    judge_interval: Interval | None
    labels_interval: Interval | None
    expected: tuple[float, float]
    value: float
    interval: Interval | None
    p: float | None
    n: int
    reason: str = ""


def beyond_labels(
    scores: FloatArray,
    x: FloatArray,
    labels: FloatArray,
    sources: IntArray,
    *,
    ratings: FloatArray | None = None,
    within: bool = False,
    n_behind: int | None = None,
) -> Beyond | None:
    """What `scores` (n,) share with `x` (n,) beyond `labels` (n,), none with NaN; None where a side is constant.

    `ratings` (n_raters, n), NaN = none, are those behind the labels: used where most items have two or more.
    `within` compares items of one source alone.  `n_behind` is how many sources a test rests on, where fewer than all.
    """
    kept = np.ones(scores.size, dtype=np.bool_)
    if ratings is not None:
        twice = (~np.isnan(ratings)).sum(axis=0) >= 2
        ratings = None if int(twice.sum()) < max(LEAST_RATED, scores.size / 2) else ratings
        kept = kept if ratings is None else twice
    source = np.unique(sources, return_inverse=True)[1]
    if within:
        kept &= np.bincount(source, weights=kept)[source] >= 2
    if not kept.any():
        return None
    source = np.unique(source[kept], return_inverse=True)[1]

    def ranked(values: FloatArray) -> FloatArray | None:
        """Standardised average ranks, less their mean in the source where `within`; None where nothing varies."""
        if values.min() == values.max():
            return None
        ranks = np.asarray(average_ranks(values), dtype=np.float64)
        ranks = (ranks - ranks.mean()) / ranks.std()
        if within:
            ranks -= (np.bincount(source, weights=ranks) / np.bincount(source))[source]
        return ranks if np.abs(ranks).max() > 1e-9 else None

    j, of_x, y = (ranked(column[kept]) for column in (scores, x, labels))
    if j is None or of_x is None or y is None:
        return None
    products = [(j, j), (of_x, of_x), (y, y), (j, of_x), (y, of_x), (j, y)]
    for half in () if ratings is None else _halves(ratings[:, kept]):
        first, second = (ranked(side) for side in half)
        if first is not None and second is not None:
            products += [(j, first), (second, of_x), (j, second), (first, of_x), (first, second)]
    if ratings is not None and len(products) == 6:
        return None
    # sums of products by source, from which the covariances of any selection of sources follow
    columns = [np.ones(source.size)]
    for a, b in products:
        columns += (a * b,) if within else (a * b, a, b)
    by_source = np.stack([np.bincount(source, weights=column).astype(np.float64) for column in columns], axis=1)

    def values_of(rows: FloatArray) -> FloatArray:
        n, sums = rows[:, :1], rows[:, 1:]
        cov = sums / n if within else sums[:, ::3] / n - sums[:, 1::3] * sums[:, 2::3] / n**2
        return _values(cov, halves=ratings is not None)

    values, errors = jackknife(by_source, values_of)
    judge, of_labels, low, high, apart_low, apart_high, decides, alike = values.tolist()
    n, n_sources = int(kept.sum()), int(source.max()) + 1
    behind = min(n_behind or n_sources, n_sources)

    def around(value: float, error: float) -> Interval | None:
        known = behind >= 2 and error > ROUNDING
        return t_interval(value, error, n_sources, "jackknife", most=1.0, behind=behind) if known else None

    sides = around(judge, errors[0]), around(of_labels, errors[1])
    if ratings is not None and not alike > 2.0 * errors[7]:
        return Beyond(judge, of_labels, *sides, (np.nan, np.nan), np.nan, None, None, n, RATERS_DISAGREE)
    expected = (min(low, high), max(low, high))
    value, interval = nearest_to_zero(apart_low, apart_high), None
    if behind >= 2 and (errors[4:6] > ROUNDING).all():
        ends = [
            t_interval(at, float(error), n_sources, "jackknife", most=2.0, behind=behind)
            for at, error in ((apart_low, errors[4]), (apart_high, errors[5]))
        ]
        interval = replace(ends[0], low=min(end.low for end in ends), high=max(end.high for end in ends))
    if behind < LEAST_SOURCES or interval is None:
        return Beyond(judge, of_labels, *sides, expected, value, interval, None, n, TOO_FEW)
    tested = [apart_low / errors[4], apart_high / errors[5]] if ratings is None else [decides / errors[6]]
    p = 1.0 if value == 0.0 else max(two_sided(t, behind - 1) for t in tested)
    return Beyond(judge, of_labels, *sides, expected, value, interval, p, n)


def _halves(ratings: FloatArray) -> list[list[FloatArray]]:
    """`SPLITS` pairs of (n,) means of two random halves of each item's ratings (n_raters, n)."""
    row, item = np.nonzero(~np.isnan(ratings))
    values, n = ratings[row, item], ratings.shape[1]
    sizes = np.bincount(item, minlength=n)
    starts, generator, halves = np.cumsum(sizes) - sizes, np.random.default_rng(0), []
    for _ in range(SPLITS):
        order = np.lexsort((generator.random(item.size), item))
        first = np.arange(item.size) - starts[item[order]] < (sizes // 2)[item[order]]
        sides = (order[first], order[~first])
        halves.append(
            [np.bincount(item[at], values[at], minlength=n) / np.bincount(item[at], minlength=n) for at in sides]
        )
    return halves


def _values(cov: FloatArray, *, halves: bool) -> FloatArray:
    """(n_rows, 8): correlations of scores and labels with x, expected ones, excess at both ends, and what decides.

    What decides is without division where there are halves; then the last column is how well the halves agree.
    """
    jj, xx, yy, jx, yx, jy = (np.maximum(cov[:, k], 0.0) if k < 3 else cov[:, k] for k in range(6))
    scale, of_labels = (np.sqrt(np.maximum(side * xx, 1e-300)) for side in (jj, yy))
    judge, labels = jx / scale, yx / of_labels
    if halves:
        ja, bx, jb, ax, ab = (cov[:, 6 + k :: 5] for k in range(5))
        explained, alike = ((ja * bx + jb * ax) / 2.0).mean(axis=1), ab.mean(axis=1)
        expected = explained / np.where(alike > 0, alike, np.nan) / scale
        decides = (jx * alike - explained) / scale
        return np.stack([judge, labels, expected, expected, judge - expected, judge - expected, decides, alike], axis=1)
    agreed = jy / np.sqrt(np.maximum(jj * yy, 1e-300))
    reliability = np.maximum(np.maximum(agreed**2, labels**2), LEAST_RELIABILITY)
    ends = agreed * labels, agreed * labels / reliability
    apart = [judge - end for end in ends]
    return np.stack([judge, labels, *ends, *apart, *apart], axis=1)


def nearest_to_zero(a: float, b: float) -> float:
    """The value between `a` and `b` that is nearest to 0."""
    return min(a, b) if min(a, b) > 0 else max(a, b) if max(a, b) < 0 else 0.0


@dataclass(frozen=True, slots=True)
class PlaceTaken:
    """How much more often the second of two texts is preferred than quality explains: a share from −0.5 to 0.5."""

    value: float
    interval: Interval | None
    p: float | None


def place_taken(judge: FloatArray, raters: FloatArray, sources: IntArray) -> PlaceTaken:
    """Whether a judge's preferences lean to a place beyond those of the `raters`.

    Both (n,): −1 the first text, 0 a tie, 1 the second.

    Raters may prefer the second text more often because it is better more often.  A judge that leans to no place then
    prefers it with a share between one half (all noise) and that of labels without noise: their mean over the root of
    their reliability, for which the bounds of `beyond_labels` hold.  Only what lies beyond both ends counts.
    """
    source = np.unique(sources, return_inverse=True)[1]
    columns = (np.ones(judge.size), judge, raters, judge * raters, judge**2, raters**2)
    sums = np.stack([np.bincount(source, weights=column).astype(np.float64) for column in columns], axis=1)

    def values_of(rows: FloatArray) -> FloatArray:
        n, j, y, jy, jj, yy = rows.T
        spread = (jj / n - (j / n) ** 2) * (yy / n - (y / n) ** 2)
        agreed = (jy / n - j * y / n**2) / np.sqrt(np.maximum(spread, 1e-300))
        reliability = np.maximum(np.where(spread > 1e-12, agreed**2, 0.0), LEAST_RELIABILITY)
        return np.stack([j / n / 2.0, (j / n - y / n / np.sqrt(reliability)) / 2.0], axis=1)

    values, errors = jackknife(sums, values_of)
    value, n_sources = nearest_to_zero(*values.tolist()), int(source.max()) + 1
    if n_sources < LEAST_SOURCES:
        return PlaceTaken(value, None, None)
    reach = t_quantile(n_sources - 1) * errors
    method = f"jackknife over {n_sources:,} sources, t({n_sources - 1})"
    low, high = float((values - reach).min()), float((values + reach).max())
    least = 2.0 * 0.5**n_sources  # where all sources say the same, as many signs of chance
    tested = (
        two_sided(at / error, n_sources - 1) for at, error in zip(values, errors, strict=True) if error > ROUNDING
    )
    p = 1.0 if value == 0.0 else max(least, *tested, least)
    return PlaceTaken(value, Interval(max(low, -1.0), min(high, 1.0), CONFIDENCE, method, n_sources), p)
