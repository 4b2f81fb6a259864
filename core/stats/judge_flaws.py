"""Find weak spots of a judge: groups of items with larger errors, and biases that the labels don't explain.

# Errors in groups of items ("parts")

The alignment inside a part is shown but not tested: a narrow range of scores or labels alone lowers the coefficient
(restriction of range; Thorndike 1949). The test compares errors in points of the labels' scale instead. From each error
it subtracts the mean error of an equally good judge at that score. Without this correction, the ends of a scale look
good and the middle bad, because labels cannot lie beyond an end.

An *equally good* judge agrees with the labels equally well at all scores. It is modelled by a Gaussian copula: two
correlated normal variables, cut into the scores and labels that occur. For scores and labels on steps, the copula is
the polychoric model (Olsson 1979, "Maximum likelihood estimation of the polychoric correlation coefficient"). The
copula keeps both distributions, including ties. Its only parameter is fitted by maximum likelihood.

# Biases by length, position or model family

The scores of an unbiased judge correlate with length because quality does. Noise in the scores lowers their correlation
with length, and noise in the labels lowers the labels' correlation. A difference of the two correlations is therefore
no evidence of a bias. The partial correlation given the labels is no evidence either: length also explains the quality
that noisy labels miss (Westfall and Yarkoni 2016, "Statistically controlling for confounding constructs is harder than
you think").

Let J be the score, x the property (such as length), and T the quality that the labels measure. Without bias, J = a +
b·T + noise, so corr(J, x) = corr(J, T) · corr(T, x). The estimate depends on the labels:

- *Several ratings per item*: the ratings of each item are split at random into two halves A and B with independent
  errors. Without bias, corr(J, x) = corr(J, A) · corr(B, x) / corr(A, B), however reliable J, A, B and x are (a
  vanishing tetrad; Spearman 1904, Bollen and Ting 1993). The result is the mean over both orders and `SPLITS` splits.
  The p value tests corr(J, x) · corr(A, B) − corr(J, A) · corr(B, x) = 0, a form without division.
- *One label Y per item*: without bias, corr(J, x) = corr(J, Y) · corr(Y, x) / reliability of Y. The reliability is
  unknown. It lies between 1 and the largest of corr(J, Y)², corr(Y, x)² and `LEAST_RELIABILITY`, which gives a range of
  expected correlations. A bias is claimed only if the tests at both ends of the range reject (Berger 1982,
  intersection-union).

Correlations use average ranks (Spearman). Standard errors come from leaving out one source at a time (jackknife), with
t on sources − 1 degrees of freedom. An excess up to `LEAST_EXCESS` is not called a bias, because ranks of scores on few
steps do not fit a linear model exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.records import Alignment, FloatArray, IntArray, Interval, Measure
from core.stats.alignment import measured
from core.stats.correlation import LabelledItems, average_ranks, paired
from core.stats.intervals import (
    LEAST_RANKED,
    LEAST_SOURCES,
    ROUNDING,
    TOO_FEW,
    jackknife,
    jackknife_deviations,
    t_interval,
    two_sided,
)

STRETCHES = 3
"""Number of ranges that a numeric property is divided into, with about as many items each."""

LEAST_EXCESS = 0.05
"""Errors up to this share above the expected one are not called larger, and correlations up to this beyond the expected
one are not called a bias, because no model is exact."""

_MOST_VALUES = 60
"""Most distinct scores, and labels, in the copula; more are merged into this many groups of equal size."""

_POINTS = 5
"""Points at which the normal variable behind one score is evaluated."""


def part_alignments(
    scores: FloatArray, items: LabelledItems, codes: IntArray, measure: Measure
) -> tuple[Alignment, ...]:
    """Return the alignment inside each part 0, 1, … of `codes` (n_items,), where −1 means no part."""
    inside = codes[None, :] == np.arange(int(codes.max(initial=-1)) + 1)[:, None]
    if not inside.size:
        return ()
    return tuple(measured(paired(np.where(inside, scores, np.nan), items), measure, 0)[0])


def errors_and_expected(scores: FloatArray, labels: FloatArray) -> FloatArray | None:
    """Compute the absolute errors of `scores` (n,), and the errors expected of an equally good judge.

    The error of an item is the distance of its label from the label expected at its score. Errors are in points of the
    labels' scale. The expected label comes from a Gaussian copula fitted to `scores` and `labels` (n,), which must not
    contain NaN.

    Returns an array (2, n): errors, then expected errors. Returns None if `scores` or `labels` are constant.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr, ndtri

    score, score_sizes, _ = _groups(scores)
    label, label_sizes, label_values = _groups(labels)
    if score_sizes.size < 2 or label_sizes.size < 2:
        return None
    n = scores.size
    ranks = np.cumsum(score_sizes) - score_sizes
    behind = ndtri((ranks[:, None] + (np.arange(_POINTS) + 0.5) / _POINTS * score_sizes[:, None]) / n)
    cuts = ndtri(np.cumsum(label_sizes)[:-1] / n)
    counts = np.bincount(score * label_sizes.size + label, minlength=score_sizes.size * label_sizes.size)
    counts = counts.reshape(score_sizes.size, label_sizes.size)

    def chances(rho: float) -> FloatArray:
        """Return the probability of each label at each score, (n_scores, n_labels), for the correlation `rho`."""
        below = ndtr((cuts - rho * behind[:, :, None]) / np.sqrt(1.0 - rho * rho)).mean(axis=1)
        ends = np.zeros((len(below), 1))
        return np.asarray(np.diff(np.hstack([ends, below, ends + 1.0]), axis=1), dtype=np.float64)

    def likelihood(rho: float) -> float:
        return float((counts * np.log(np.maximum(chances(rho), 1e-12))).sum())

    fitted = minimize_scalar(lambda rho: -likelihood(rho), bounds=(-0.995, 0.995), options={"xatol": 1e-3})
    chance = chances(float(fitted.x))
    mapped = chance @ label_values
    expected = (chance * np.abs(label_values - mapped[:, None])).sum(axis=1)
    return np.stack([np.abs(labels - mapped[score]), expected[score]])


def _groups(values: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Group `values`: return the group of each (n,), and sizes and means of the groups in ascending order.

    Each distinct value is a group; more than `_MOST_VALUES` values form that many groups of about equal size.
    """
    codes = np.unique(values, return_inverse=True)[1]
    sizes = np.bincount(codes)
    if sizes.size > _MOST_VALUES:
        middle = (np.cumsum(sizes) - sizes / 2.0)[codes]
        codes = np.unique((middle * _MOST_VALUES / values.size).astype(np.intp), return_inverse=True)[1]
        sizes = np.bincount(codes)
    return codes, sizes, np.bincount(codes, weights=values) / sizes


def error_contrasts(errors: FloatArray, sources: IntArray, codes: IntArray) -> FloatArray:
    """For each group of items, test whether the mean excess error is larger in the group than in the other groups.

    A test needs `LEAST_RANKED` items and `LEAST_SOURCES` sources in the group, and `LEAST_SOURCES` sources in the other
    groups.

    Args:
        errors: Errors and expected errors (2, n) from `errors_and_expected`. The excess error is the first minus the
            second.
        sources: Source (n,) of each item, as an integer.
        codes: Group (n,) of each item, as an integer from 0; −1 for items in no group.

    Returns:
        An array (n_groups, 4) with one row per group. The first column is the mean excess error in the group minus that
        in the other groups, in points of the scale. The next columns are its standard error, degrees of freedom and
        two-sided p. Rows without a test are NaN.
    """
    n_parts, kept = int(codes.max(initial=-1)) + 1, codes >= 0
    if not kept.any():
        return np.empty((0, 4))
    names, source = np.unique(sources[kept], return_inverse=True)
    cells = source * n_parts + codes[kept]
    counts, sums = (
        np.bincount(cells, weights, names.size * n_parts).reshape(names.size, n_parts)
        for weights in (np.ones(cells.size), (errors[0] - errors[1])[kept])
    )
    of_sources = (counts > 0).sum(axis=0)
    usable = (counts.sum(axis=0) >= LEAST_RANKED) & (of_sources >= LEAST_SOURCES)
    counts, sums = (np.where(usable, side, 0.0) for side in (counts, sums))

    def excess(own: FloatArray, n_own: FloatArray) -> FloatArray:
        rest, n_rest = (side.sum(axis=-1, keepdims=True) - side for side in (own, n_own))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(own / n_own - rest / n_rest, dtype=np.float64)

    found = np.full((n_parts, 4), np.nan)
    own, n_own = sums.sum(axis=0), counts.sum(axis=0)
    values, left = excess(own, n_own), jackknife_deviations(excess(own - sums, n_own - counts))
    of_rest = (counts.sum(axis=1, keepdims=True) - counts > 0).sum(axis=0)
    for k, freedom in enumerate(np.minimum(of_sources, of_rest) - 1):
        error = float(np.sqrt((left[:, k] ** 2).sum()))
        if usable[k] and freedom + 1 >= LEAST_SOURCES and error > ROUNDING:
            found[k] = values[k], error, freedom, two_sided(values[k] / error, int(freedom))
    return found


def value_ranges(values: FloatArray, n_stretches: int = STRETCHES) -> IntArray:
    """Divide `values` into ascending ranges; return the range of each value (n,), −1 for NaN.

    Equal values are in the same range.
    """
    known = ~np.isnan(values)
    codes = np.full(values.size, -1, dtype=np.intp)
    if known.any():
        cuts = np.unique(np.quantile(values[known], np.arange(1, n_stretches) / n_stretches))
        # a frequent value on a cut goes to the side that gives more ranges
        sides = (np.searchsorted(cuts, values[known], "right"), np.searchsorted(cuts, values[known]))
        both = [np.unique(side, return_inverse=True)[1] for side in sides]
        codes[known] = max(both, key=lambda code: int(code.max()))
    return codes


# ── beyond the labels ────────────────────────────────────────────────────────────────────────────────────────

LEAST_RELIABILITY = 0.3
"""Least reliability assumed of single labels; one rater's ratings of text quality reach 0.3 to 0.6."""

SPLITS = 8
"""Random splits of the ratings into halves."""

LEAST_RATED = 30
"""Fewest items with two ratings, and at least half of all items, for halves of ratings to be used."""

RATERS_DISAGREE = "agreement between the raters is too low"


@dataclass(frozen=True, slots=True)
class Beyond:
    """How far a property's correlation with the scores exceeds the correlation expected of an unbiased judge.

    Attributes:
        judge: Correlation of the property with the scores.
        labels: Correlation of the property with the labels.
        expected: Range of the correlation with the scores of an unbiased judge. Both ends are equal if the labels are
            means of several ratings, whose reliability is known.
        value: Excess of `judge` over the range `expected`: negative below the range, 0 inside it, NaN if unknown.
        interval: Interval of `value`.
        p: Two-sided p of `value`.
        n: Number of items used.
        reason: Why `p` is None, or why `value` and `expected` are NaN.
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
    n_behind: int | None = None,
) -> Beyond | None:
    """Estimate how far the correlation of `scores` with a property `x` exceeds the correlation that the labels explain.

    Args:
        scores: Scores (n,) of the judge, without NaN.
        x: Values (n,) of the property, without NaN.
        labels: Mean labels (n,), without NaN.
        sources: Source (n,) of each item, as an integer.
        ratings: Individual ratings (n_raters, n), NaN = not rated. They are used if most items have two or more.
        n_behind: Number of sources that the test is based on; None means all.

    Returns:
        The estimate, or None if scores, property, labels or ratings are constant.
    """
    kept, halves = np.ones(scores.size, dtype=np.bool_), list[list[FloatArray]]()
    if ratings is not None:
        twice = (~np.isnan(ratings)).sum(axis=0) >= 2
        if twice.sum() >= max(LEAST_RATED, scores.size / 2):
            kept, halves = twice, _halves(ratings[:, twice])
            halves = [half for half in halves if min(map(np.ptp, half)) > 0]
            if not halves:
                return None
    columns, source = [side[kept] for side in (scores, x, labels)], np.unique(sources[kept], return_inverse=True)[1]
    if not source.size or min(map(np.ptp, columns)) == 0:
        return None
    ranks = average_ranks(np.stack([*columns, *(side for half in halves for side in half)]))
    ranks = (ranks - ranks.mean(axis=1, keepdims=True)) / ranks.std(axis=1, keepdims=True)
    (m, n), n_sources = ranks.shape, int(source.max()) + 1
    # sums of values and products by source, from which the covariances of any selection of sources follow
    products = np.einsum("in,jn->nij", ranks, ranks).reshape(n, m * m)
    by_source = np.zeros((n_sources, 1 + m + m * m))
    np.add.at(by_source, source, np.column_stack([np.ones(n), ranks.T, products]))

    def values_of(rows: FloatArray) -> FloatArray:
        size = rows[:, :1, None]
        means = rows[:, 1 : 1 + m, None] / size
        return _values(rows[:, 1 + m :].reshape(-1, m, m) / size - means * means.transpose(0, 2, 1))

    values, errors = jackknife(by_source, values_of)
    judge, of_labels, low, high, apart_low, apart_high, decides, alike = values.tolist()
    behind = min(n_behind or n_sources, n_sources)

    def around(value: float, error: float) -> Interval | None:
        known = behind >= 2 and error > ROUNDING
        return t_interval(value, error, n_sources, "jackknife", most=1.0, n_independent=behind) if known else None

    sides = around(judge, errors[0]), around(of_labels, errors[1])
    if halves and not alike > 2.0 * errors[7]:
        return Beyond(judge, of_labels, *sides, (np.nan, np.nan), np.nan, None, None, n, RATERS_DISAGREE)
    expected, apart = (min(low, high), max(low, high)), sorted((apart_low, apart_high))
    value, interval, p = min(max(apart[0], 0.0), apart[1]), None, None  # the end nearest to 0
    if behind >= 2 and (errors[4:6] > ROUNDING).all():
        side_errors = zip((apart_low, apart_high), errors[4:6].tolist(), strict=True)
        one, other = (
            t_interval(gap, own, n_sources, "jackknife", most=2.0, n_independent=behind) for gap, own in side_errors
        )
        interval = replace(one, low=min(one.low, other.low), high=max(one.high, other.high))
        if behind >= LEAST_SOURCES:
            tested = [decides / errors[6]] if halves else [apart_low / errors[4], apart_high / errors[5]]
            p = 1.0 if value == 0.0 else max(two_sided(t, behind - 1) for t in tested)
    return Beyond(judge, of_labels, *sides, expected, value, interval, p, n, TOO_FEW if p is None else "")


def _halves(ratings: FloatArray) -> list[list[FloatArray]]:
    """Split each item's ratings (n_raters, n) into random halves; return `SPLITS` pairs of their means (n,)."""
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


def _values(cov: FloatArray) -> FloatArray:
    """Return (n_rows, 8): correlations of scores and labels with x, expected ones, excess at both ends, tests.

    `cov` (n_rows, m, m) are covariances of scores, x, labels and pairs of halves.  With halves the excess is tested
    without a division, and the last column is their agreement.
    """
    jj, xx, yy = (np.maximum(cov[:, k, k], 0.0) for k in range(3))
    jx, yx, jy = cov[:, 0, 1], cov[:, 2, 1], cov[:, 0, 2]
    scale, of_labels, agreed = (np.sqrt(np.maximum(power, 1e-300)) for power in (jj * xx, yy * xx, jj * yy))
    judge, labels, agreed = jx / scale, yx / of_labels, jy / agreed
    first, second = cov[:, 3::2], cov[:, 4::2]
    if first.size:
        explained = ((first[:, :, 0] * second[:, :, 1] + second[:, :, 0] * first[:, :, 1]) / 2.0).mean(axis=1)
        alike = np.einsum("nkk->nk", first[:, :, 4::2]).mean(axis=1)
        expected = explained / np.where(alike > 0, alike, np.nan) / scale
        decides = (jx * alike - explained) / scale
        return np.stack([judge, labels, expected, expected, judge - expected, judge - expected, decides, alike], axis=1)
    reliability = np.maximum(np.maximum(agreed**2, labels**2), LEAST_RELIABILITY)
    ends = agreed * labels, agreed * labels / reliability
    apart = [judge - end for end in ends]
    return np.stack([judge, labels, *ends, *apart, *apart], axis=1)
