"""Agreement of raters with each other, and of a judge with people, on the scale itself rather than in rank.

Undefined is a value of its own (None with a reason), never 0 and never 1: a constant side leaves nothing to agree by
chance about.  Missing ratings are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import FloatArray, Scale
from core.stats.correlation import Pairs, average_ranks, correlate, pair

AlphaMetric = Literal["nominal", "ordinal", "interval"]

MIN_COMMON = 20
"""Fewest common items for which two raters' Spearman counts in the mean over pairs."""


# ── between raters ───────────────────────────────────────────────────────────────────────────────────────────


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
    if np.isinf(matrix).any():
        raise UsageError("Ratings must be finite numbers; infinity came.")
    present = ~np.isnan(matrix)
    pairable = present & (present.sum(axis=0) >= 2)
    items = np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)[pairable]
    values = matrix[pairable]
    items = np.unique(items, return_inverse=True)[1]
    n_items = int(items.max()) + 1 if items.size else 0
    if not n_items:
        return Alpha(None, metric, 0, 0, "no item has ratings by two raters")
    if values.min() == values.max():
        return Alpha(None, metric, n_items, values.size, "all ratings are equal")
    distances = _distances(values, items, metric)
    return Alpha(1.0 - distances.observed / distances.expected, metric, n_items, values.size)


@dataclass(frozen=True, slots=True)
class _Distances:
    observed: float
    expected: float


def _distances(values: FloatArray, items: np.ndarray[Any, np.dtype[np.intp]], metric: AlphaMetric) -> _Distances:
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
    return "nominal" if scale.high - scale.low == scale.step else "ordinal"


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


# ── a judge beside people ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StepAgreement:
    """Judge and people on the steps of an ordinal scale, both taken to the nearest step (halves go up).

    `quadratic_kappa` is 1 perfect, 0 as by chance.  `exact` and `adjacent` are shares of the `n` items on the same
    step and at most one step apart.  None is undefined; `reason` says why.
    """

    quadratic_kappa: float | None
    exact: float | None
    adjacent: float | None
    n: int
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "quadratic_kappa": self.quadratic_kappa,
            "exact": self.exact,
            "adjacent": self.adjacent,
            "n": self.n,
            "reason": self.reason or None,
        }


def step_agreement(scores: ArrayLike, labels: ArrayLike, scale: Scale) -> StepAgreement:
    """Quadratic-weighted kappa, exact and adjacent agreement of (n_items,) sides on the steps of `scale`.

    Quadratic kappa (Cohen 1968) is undefined on a continuous scale and on a scale of two steps, where there are no
    distances to weigh.  Scores outside the scale are put on its nearest end.
    """
    x, y = _present(scores, labels)
    if scale.step is None:
        return StepAgreement(None, None, None, x.size, f"the scale {scale} has no steps to agree on")
    if not x.size:
        return StepAgreement(None, None, None, 0, "no item has both a score and a label")
    a, b = to_steps(x, scale), to_steps(y, scale)
    apart = np.abs(a - b)
    exact, adjacent = float((apart == 0).mean()), float((apart <= 1).mean())
    if scale.high - scale.low == scale.step:
        reason = f"the scale {scale} has two steps, so no distances to weigh: see the plain kappa of the two classes"
        return StepAgreement(None, exact, None, x.size, reason)
    kappa = quadratic_kappa(a, b)
    reason = "all scores and all labels fall on one step" if kappa is None else ""
    return StepAgreement(kappa, exact, adjacent, x.size, reason)


def quadratic_kappa(a: ArrayLike, b: ArrayLike) -> float | None:
    """1 − Σ(a_i − b_i)² / mean over all i, j of Σ(a_i − b_j)², for (n_items,) step numbers (Cohen 1968).

    Distances are those of the values, so steps that never occur still count as steps between.  None when undefined:
    no item with both, or every value on both sides the same.
    """
    x, y = _present(a, b)
    if not x.size:
        return None
    expected = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return None if expected == 0 else float(1.0 - ((x - y) ** 2).mean() / expected)


def to_steps(values: FloatArray, scale: Scale) -> FloatArray:
    """Step numbers from 0 of values taken to the nearest step, halves up, ends for what lies beyond."""
    step = scale.step or 1.0
    # means of raters carry rounding: 2.4999999999999996 is a half
    numbers = np.floor((values - scale.low) / step + 0.5 + 1e-9)
    return np.asarray(np.clip(numbers, 0.0, np.rint((scale.high - scale.low) / step)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class BinaryAgreement:
    """Judge and people on two classes, the upper one being the positive.

    Precision: of those the judge put up, the share the people did; recall: of those the people put up, the share the
    judge did; F1 = 2·hits / (put up by the judge + put up by people), their harmonic mean; `kappa` Cohen's (1960).
    None is undefined (precision when the judge put nothing up, say).
    """

    precision: float | None
    recall: float | None
    f1: float | None
    kappa: float | None
    n: int
    n_positive_labels: int
    n_positive_scores: int
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        named = {"precision": self.precision, "recall": self.recall, "f1": self.f1, "kappa": self.kappa, "n": self.n}
        counts = {"n_positive_labels": self.n_positive_labels, "n_positive_scores": self.n_positive_scores}
        return named | counts | {"reason": self.reason or None}


def binary_agreement(scores: ArrayLike, labels: ArrayLike, threshold: float = 0.5) -> BinaryAgreement:
    """Precision, recall, F1 and kappa of (n_items,) sides, `threshold` and above being the positive class.

    Scores must mean what labels mean (a share or a probability on 0 to 1 at 0.5, the middle of the scale otherwise).
    """
    x, y = _present(scores, labels)
    up, true = x >= threshold, y >= threshold
    n, hits, n_up, n_true = x.size, int((up & true).sum()), int(up.sum()), int(true.sum())
    reasons = []
    if not n:
        reasons.append("no item has both a score and a label")
    else:
        reasons += ["no score is positive"] if not n_up else []
        reasons += ["no label is positive"] if not n_true else []
    agreed = hits + n - n_up - n_true + hits
    chance = n_up * n_true + (n - n_up) * (n - n_true)  # of n²
    if n and chance == n * n:
        reasons.append("scores and labels are all of one class")
    return BinaryAgreement(
        precision=hits / n_up if n_up else None,
        recall=hits / n_true if n_true else None,
        f1=2 * hits / (n_up + n_true) if n_up + n_true else None,
        kappa=(n * agreed - chance) / (n * n - chance) if n and chance < n * n else None,
        n=n,
        n_positive_labels=n_true,
        n_positive_scores=n_up,
        reason="; ".join(reasons),
    )


def _present(scores: ArrayLike, labels: ArrayLike) -> Pairs:
    """Both (n,) sides where both are there."""
    x, y = pair(scores, labels)
    kept = ~np.isnan(x)
    return Pairs(x[kept], y[kept])
