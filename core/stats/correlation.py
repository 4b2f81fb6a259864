"""Pearson, Spearman and Kendall over many candidates at once.

All three take ``scores`` of shape (..., n) and ``labels`` of shape (n,) or any shape that broadcasts against
`scores`, and return float64 of the leading shape.  They share these rules:

- range [-1, 1]; positive when scores rise with labels; swapping the sides changes nothing;
- NaN marks a missing value: each row uses the positions where both sides are present (pairwise complete);
- undefined is NaN in the array: fewer than 2 pairs, or a side whose present values are all equal (compared
  exactly);
- nothing is rounded before ranking, so near-ties stay apart; ±inf is refused.

Statistics and levels are those of Liu et al. (2023, AutoCalibrate) and Fu et al. (2023); Kendall is tau-b
(Kendall 1945), which corrects for ties on both sides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import STATISTICS, FloatArray, Statistic

PAIRWISE_LIMIT = 192
"""Largest n for which tau-b compares all pairs of every row at once; longer rows are counted by sorting."""

BLOCK_ELEMENTS = 2_000_000
"""Most elements of an intermediate array: bounds memory and keeps blocks near the processor's cache."""


def correlate(scores: ArrayLike, labels: ArrayLike, statistic: Statistic) -> FloatArray:
    """The named statistic of every row of `scores` (..., n) with `labels` (n,) or (..., n); NaN = undefined."""
    if statistic not in STATISTICS:
        raise UsageError(f"Unknown statistic {statistic!r}: use pearson, spearman or kendall.")
    return {"pearson": pearson, "spearman": spearman, "kendall": kendall}[statistic](scores, labels)


def pearson(scores: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Product-moment correlation r = Σ(x−x̄)(y−ȳ) / √(Σ(x−x̄)² · Σ(y−ȳ)²) of every row.

    Deviations are divided by their largest magnitude first, so very large and very small scores neither overflow
    nor vanish.  Invariant under positive linear maps of either side.
    """
    return _product_moment(*pair(scores, labels))


def spearman(scores: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Spearman's rho of every row: Pearson r of the average ranks (ties share the mean of their places)."""
    x, y = pair(scores, labels)
    return _product_moment(average_ranks(x), average_ranks(y))


def kendall(scores: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Kendall's tau-b of every row: (C − D) / √(P_x · P_y).

    C and D count concordant and discordant pairs, P_x and P_y the pairs not tied on that side.  Rows up to
    `PAIRWISE_LIMIT` long are compared pair by pair in blocks; longer ones are counted in O(n log n) one by one.
    """
    x, y = pair(scores, labels)
    shape = np.broadcast_shapes(x.shape, y.shape)
    values, n = np.full(shape[:-1], np.nan), shape[-1]
    if n < 2 or 0 in shape:
        return values
    x = np.broadcast_to(x, shape)
    if n > PAIRWISE_LIMIT:
        from scipy.stats import kendalltau

        for row, (left, right) in enumerate(
            zip(x.reshape(-1, n), np.broadcast_to(y, shape).reshape(-1, n), strict=True)
        ):
            a, b = left[~np.isnan(left)], right[~np.isnan(left)]
            if a.size >= 2 and a.min() < a.max() and b.min() < b.max():
                values.flat[row] = kendalltau(a, b, method="asymptotic").statistic
        return values
    if len(shape) == 1:
        return np.asarray(kendall(x[None], y)[0], dtype=np.float64)
    shared = _pair_signs(y) if y.ndim < len(shape) or y.shape[0] == 1 else None
    step = max(1, BLOCK_ELEMENTS // (int(np.prod(shape[1:-1], dtype=np.intp)) * n**2))
    for start in range(0, shape[0], step):
        block = slice(start, start + step)
        signs = _pair_signs(x[block]), _pair_signs(y[block]) if shared is None else shared
        # float32 adds up to PAIRWISE_LIMIT² / 2 < 2²⁴ units exactly
        balance = np.einsum("...p,...p->...", *signs).astype(np.float64)
        untied = [np.count_nonzero(side, axis=-1).astype(np.float64) for side in signs]
        values[block] = within_one(balance, np.sqrt(untied[0] * untied[1]))
    return values


def _pair_signs(x: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """(..., n(n−1)/2) sign(x_i − x_j), 0 where tied or missing."""
    i, j = np.triu_indices(x.shape[-1], 1)
    left, right = x[..., i], x[..., j]
    return np.subtract(left > right, left < right, dtype=np.float32)


def average_ranks(values: ArrayLike) -> FloatArray:
    """Ranks 1..n along the last axis, ties sharing their mean place; NaN stays NaN and takes no place."""
    x = np.asarray(values, dtype=np.float64)
    order = np.argsort(x, axis=-1)  # NaN sorts last
    ordered = np.take_along_axis(x, order, axis=-1)
    opens = np.ones(x.shape, dtype=np.bool_)  # a tie opens here; none goes over the end of a row
    opens[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    starts = np.flatnonzero(opens)
    sizes = np.diff(starts, append=x.size)
    places = np.repeat(starts % max(x.shape[-1], 1) + (sizes + 1) / 2.0, sizes)
    ranks = np.empty_like(x)
    np.put_along_axis(ranks, order, places.reshape(x.shape), axis=-1)
    return np.where(np.isnan(x), np.nan, ranks)


def pair(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both sides as float64 with NaN at the same positions; positions no row can use are cut.

    Raises ValueError when the shapes do not broadcast or the last axes differ, UsageError for ±inf.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise ValueError(f"scores {x.shape} and labels {y.shape} must agree in their last axis")
    require_finite(x, y)
    if y.ndim == 1 and np.isnan(y).any():
        kept = ~np.isnan(y)
        x, y = x[..., kept], y[kept]
    # row by row in memory: sums then run in one order, and a row's value does not depend on its neighbours
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if not (np.isnan(x).any() or np.isnan(y).any()):
        return x, y
    missing = np.isnan(x) | np.isnan(y)
    return np.where(missing, np.nan, x), np.where(missing, np.nan, y)


def require_finite(*sides: FloatArray) -> None:
    """UsageError for ±inf; NaN is a missing value."""
    if any(np.isinf(side).any() for side in sides):
        raise UsageError("Scores and labels must be finite numbers; infinity came. Leave such items unscored instead.")


def present(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both (n,) sides where both are there."""
    x, y = pair(scores, labels)
    kept = ~np.isnan(x)
    return x[kept], y[kept]


def _product_moment(x: FloatArray, y: FloatArray) -> FloatArray:
    shape = np.broadcast_shapes(x.shape, y.shape)
    if shape[-1] < 2 or 0 in shape:
        return np.full(shape[:-1], np.nan)
    dx, dy = deviations(x), deviations(y)
    power = (dx * dx).sum(axis=-1) * (dy * dy).sum(axis=-1)
    return within_one((dx * dy).sum(axis=-1), np.sqrt(power))


def deviations(x: FloatArray) -> FloatArray:
    """Deviations from the row mean over the largest of them; 0 where missing, all 0 for a constant row."""
    present = ~np.isnan(x)
    count = np.maximum(present.sum(axis=-1, keepdims=True), 1)
    scale = np.fmax.reduce(np.abs(x), axis=-1, keepdims=True)  # first scaling: sums of huge scores must not overflow
    scaled = np.where(present, x / np.where(scale > 0, scale, 1.0), 0.0)
    deviations = np.where(present, scaled - scaled.sum(axis=-1, keepdims=True) / count, 0.0)
    constant = ~(np.fmax.reduce(x, axis=-1, keepdims=True) > np.fmin.reduce(x, axis=-1, keepdims=True))
    largest = np.abs(deviations).max(axis=-1, keepdims=True)
    return np.where(constant, 0.0, deviations / np.where(largest > 0, largest, 1.0))


def within_one(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator within [-1, 1], NaN where the denominator is 0 (undefined)."""
    defined = denominator > 0
    value = np.where(defined, numerator, np.nan) / np.where(defined, denominator, 1.0)
    return np.clip(value, -1.0, 1.0)
