"""Agreement of raters with each other: Krippendorff's alpha and the mean Spearman over pairs.

Undefined is a value of its own (None with a reason), never 0 and never 1: a constant side leaves nothing to agree by
chance about.  Missing ratings are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import FloatArray, IntArray, Scale
from core.stats.claims import NOT_RATED_TWICE
from core.stats.correlation import average_ranks, correlate
from core.stats.items import require_finite

AlphaMetric = Literal["nominal", "ordinal", "interval"]

MIN_COMMON = 20
"""Fewest common items for which two raters' Spearman counts in the mean over pairs."""


@dataclass(frozen=True, slots=True)
class Alpha:
    """Krippendorff's alpha: 1 perfect, 0 as by chance, below 0 systematic disagreement; None undefined.

    `n_items` counts the items with at least two ratings, `n_ratings` the ratings on them.
    """

    value: float | None
    metric: AlphaMetric
    n_items: int
    n_ratings: int
    reason: str = ""


def krippendorff_alpha(ratings: ArrayLike, metric: AlphaMetric) -> Alpha:
    """Alpha of `ratings` (n_raters, n_items), NaN = not rated; who gave a rating does not matter.

    alpha = 1 − D_o / D_e (Krippendorff 2011): D_o is the mean distance of ratings on one item, each item's pairs
    weighted by 1 / (m − 1) for its m ratings; D_e the mean distance of any two of the pairable ratings.  The distance
    is 0 or 1 (*nominal*), the squared difference (*interval*), or the squared difference of average ranks among all
    pairable ratings (*ordinal*; equal to Krippendorff's sum over the ranks between).  Items rated once do not count.
    Undefined when no item is rated twice or all pairable ratings are equal.  UsageError for ±inf or another metric.
    """
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    require_finite(matrix)
    present = ~np.isnan(matrix)
    pairable = present & (present.sum(axis=0) >= 2)
    items = np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)[pairable]
    values = matrix[pairable]
    items = np.unique(items, return_inverse=True)[1]
    n_items = int(items.max()) + 1 if items.size else 0
    if not n_items:
        return Alpha(None, metric, 0, 0, NOT_RATED_TWICE)
    if values.min() == values.max():
        return Alpha(None, metric, n_items, values.size, "all ratings are equal")
    distances = _distances(values, items, metric)
    return Alpha(1.0 - distances.observed / distances.expected, metric, n_items, values.size)


class _Distances(NamedTuple):
    observed: float
    expected: float


def _distances(values: FloatArray, items: IntArray, metric: AlphaMetric) -> _Distances:
    """Mean distances within items and over all, for (n_ratings,) values and the item of each."""
    n, sizes = values.size, np.bincount(items)
    if metric == "nominal":
        codes = np.unique(values, return_inverse=True)[1]
        width = int(codes.max()) + 1
        cells, counts = np.unique(items * width + codes, return_counts=True)
        same = np.bincount(cells // width, weights=counts.astype(np.float64) ** 2)
        within = (((sizes**2 - same) / (sizes - 1)).sum()) / n
        return _Distances(float(within), float((n**2 - (np.bincount(codes) ** 2).sum()) / (n * (n - 1))))
    if metric not in ("ordinal", "interval"):
        raise UsageError(f"Unknown metric {metric!r}: use nominal, ordinal or interval.")
    x = average_ranks(values) if metric == "ordinal" else values
    x = (x - x.mean()) / np.abs(x - x.mean()).max()  # distances are ratios: centred and scaled against cancellation
    means = np.bincount(items, weights=x) / sizes
    # Σ over ordered pairs of (x − x')² is 2m·Σ(x − mean)²
    inside = np.bincount(items, weights=(x - means[items]) ** 2)
    observed = (2.0 * sizes * inside / (sizes - 1)).sum() / n
    return _Distances(float(observed), float(2.0 * (x**2).sum() / (n - 1)))


def alpha_metric(scale: Scale) -> AlphaMetric:
    """Nominal for 0/1, ordinal for a scale of steps, interval for a continuous one."""
    if scale.step is None:
        return "interval"
    return "nominal" if scale.two_steps else "ordinal"


@dataclass(frozen=True, slots=True)
class PairwiseSpearman:
    """Mean of Spearman's rho over `n_pairs` pairs of raters; `n_left_out` have too few common items or are constant."""

    value: float | None
    n_pairs: int
    n_left_out: int
    reason: str = ""


def pairwise_spearman(ratings: ArrayLike, min_common: int = MIN_COMMON) -> PairwiseSpearman:
    """Mean rho over the pairs of rows of `ratings` (n_raters, n_items) with at least `min_common` common items."""
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    present = (~np.isnan(matrix)).astype(np.float64)
    enough = present @ present.T >= max(2, min_common)
    found = [np.empty(0)]
    for k, row in enumerate(matrix):
        partners = k + 1 + np.flatnonzero(enough[k, k + 1 :])
        rated = ~np.isnan(row)  # of many raters each has few items
        found.append(correlate(matrix[np.ix_(partners, rated)], row[rated], "spearman"))
    values = np.concatenate(found)
    defined = values[~np.isnan(values)]
    n_pairs = matrix.shape[0] * (matrix.shape[0] - 1) // 2
    if not defined.size:
        reason = f"no two raters have {min_common} common items with differing ratings"
        return PairwiseSpearman(None, 0, n_pairs, reason)
    return PairwiseSpearman(float(defined.mean()), defined.size, n_pairs - defined.size)
