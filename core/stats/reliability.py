"""How much averaging several calls of a judge helps, from a pilot of a few.

A judge that is sampled answers differently each time.  The share of the variance of one call that is the item's and
not the call's, ICC(1), is the reliability of a single call; by the Spearman-Brown formula the mean of n calls has the
reliability n·rel / (1 + (n−1)·rel), and its Pearson correlation with anything grows with the root of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import FloatArray


@dataclass(frozen=True, slots=True)
class Reliability:
    """ICC(1) of single calls: 1 = every call gives an item the same, 0 or below = calls tell nothing about items.

    `n_items` counts the items with at least two read calls, `n_calls` the calls on them.  None is undefined.
    """

    value: float | None
    n_items: int
    n_calls: int
    reason: str = ""


def single_call_reliability(calls: ArrayLike) -> Reliability:
    """ICC(1) of `calls` (n_items, n_calls), NaN = unread, by one-way analysis of variance (Shrout and Fleiss 1979).

    ICC(1) = (MSB − MSW) / (MSB + (k₀ − 1)·MSW) with the mean squares between and within items and
    k₀ = (N − Σk_i²/N) / (n − 1), the number of calls an item when all have equally many.  Items with one call do not
    count.  Undefined with fewer than 2 items left or when all calls are equal.  UsageError for ±inf.
    """
    matrix = np.atleast_2d(np.asarray(calls, dtype=np.float64))
    if np.isinf(matrix).any():
        raise UsageError("Scores must be finite numbers; infinity came. Leave such calls unread instead.")
    present = ~np.isnan(matrix)
    kept = present.sum(axis=1) >= 2
    values, present = matrix[kept], present[kept]
    sizes = present.sum(axis=1).astype(np.float64)
    n, total = sizes.size, sizes.sum()
    if n < 2:
        return Reliability(None, n, int(total), "fewer than 2 items have two read calls")
    if values[present].min() == values[present].max():
        return Reliability(None, n, int(total), "all calls gave the same score")
    filled = np.where(present, values - values[present].mean(), 0.0)
    means = filled.sum(axis=1) / sizes
    within = np.where(present, (filled - means[:, None]) ** 2, 0.0).sum() / (total - n)
    between = (sizes * (means - filled.sum() / total) ** 2).sum() / (n - 1)
    k0 = (total - (sizes**2).sum() / total) / (n - 1)
    return Reliability(float((between - within) / (between + (k0 - 1.0) * within)), n, int(total))


def averaged_reliability(reliability: float, n_calls: ArrayLike) -> FloatArray:
    """Reliability of the mean of `n_calls` calls: n·rel / (1 + (n−1)·rel), in (0, 1] (Spearman 1910, Brown 1910).

    UsageError unless 0 < `reliability` ≤ 1 and every n is at least 1: with no reliability nothing can be predicted.
    """
    n = np.asarray(n_calls, dtype=np.float64)
    if not 0.0 < reliability <= 1.0:
        raise UsageError(
            f"A single call's reliability of {reliability:.3f} predicts nothing: it must lie above 0 and up to 1. "
            "Ask more items, or more calls an item."
        )
    if (n < 1).any():
        raise UsageError("The number of calls must be at least 1.")
    return np.asarray(n * reliability / (1.0 + (n - 1.0) * reliability), dtype=np.float64)


def alignment_of_averages(r: float, n_measured: int, reliability: float, n_wanted: ArrayLike) -> FloatArray:
    """Pearson r expected with the mean of `n_wanted` calls, from `r` measured with the mean of `n_measured`.

    r_n = r_inf · √(n·rel / (1 + (n−1)·rel)); r_inf follows from the measured r (attenuation, Spearman 1904).  It holds
    for Pearson at dataset level; ranks follow it roughly.  Within [-1, 1].
    """
    factor = averaged_reliability(reliability, n_wanted) / averaged_reliability(reliability, n_measured)
    return np.clip(r * np.sqrt(factor), -1.0, 1.0)
