"""Predict labels from text features by ridge regression, as a comparison for judges.

The features are those of the offline judge. The prediction of an item uses only labels of other sources
(cross-fitting), so all labelled items can be used for the comparison. The penalty is chosen by cross-validation over
sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.judging.offline import features
from core.judging.offline.judge import PENALTIES, ridge_path
from core.records import FloatArray, GoldenSet, IntArray
from core.stats.correlation import source_folds

LEAST_LABELS = 20
"""Fewest labels for a regression."""

MOST_ITEMS = 2_000
"""Most labelled items, of sources drawn at random: measuring a text takes about a millisecond."""


@dataclass(frozen=True, eq=False)
class PlainRegression:
    """Predictions `values` (n_items,) in points of the labels' scale, each learnt from about `n_labels` labels.

    NaN means no prediction. If nothing could be fitted, all are NaN and `reason` says why.
    """

    values: FloatArray
    n_labels: int
    reason: str = ""


def plain_regression(golden: GoldenSet, aspect: str, *, seed: int = 0) -> PlainRegression:
    """Fit a plain regression to all labelled items of `golden`; the folds depend on `seed`."""
    labels, values = golden.labels(aspect), np.full(len(golden.items), np.nan)
    at = _drawn(golden.source_codes, np.flatnonzero(~np.isnan(labels)), seed)
    y, folds = labels[at], source_folds(golden.source_codes[at], seed=seed)
    if at.size < LEAST_LABELS:
        return PlainRegression(values, 0, f"only {at.size} labels; a regression needs at least {LEAST_LABELS}")
    if folds.max() < 2:
        return PlainRegression(values, 0, "a regression needs labels from at least 3 sources")
    if y.min() == y.max():
        return PlainRegression(values, 0, "all labels are equal")
    x = _standardised(features.feature_matrix([golden.items[int(k)] for k in at], golden.kind))
    if not x.shape[1]:
        return PlainRegression(values, 0, "the texts contain no words or are identical")
    values[at] = y.mean() + _cross_fitted(x, y - y.mean(), folds)
    n_folds = int(folds.max()) + 1
    return PlainRegression(values, round(at.size * (n_folds - 1) / n_folds))


def _drawn(sources: IntArray, labelled: IntArray, seed: int) -> IntArray:
    """Return the `labelled` places, or only those of random sources, at most `MOST_ITEMS`."""
    if labelled.size <= MOST_ITEMS:
        return labelled
    names, of_item, sizes = np.unique(sources[labelled], return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(names.size)
    chosen = order[np.cumsum(sizes[order]) <= MOST_ITEMS]
    return labelled[np.isin(of_item, chosen)]


def _standardised(measured: FloatArray) -> FloatArray:
    """Standardise features (n, n_features) to (n, n_used): mean 0, standard deviation 1, missing 0.

    Outliers are bent towards the mean, and constant features are dropped.
    """
    known = np.isfinite(measured)
    count = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, measured - np.where(known, measured, 0.0).sum(axis=0) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    used = spread > 1e-9  # a constant feature carries no information
    bent = features.BEND * np.tanh(centred[:, used] / spread[used] / features.BEND)
    return np.asarray(bent - bent.mean(axis=0), dtype=np.float64)


def _cross_fitted(x: FloatArray, y: FloatArray, folds: IntArray) -> FloatArray:
    """Predict centred `y` (n,) for each fold from the other folds, at the penalty that is best between those.

    Products are summed by fold once, so that leaving out folds is a subtraction.
    """
    n_folds = int(folds.max()) + 1
    parts = [np.flatnonzero(folds == fold) for fold in range(n_folds)]
    squares = np.stack([x[part].T @ x[part] for part in parts])
    products = np.stack([x[part].T @ y[part] for part in parts])
    all_squares, all_products = squares.sum(axis=0), products.sum(axis=0)
    losses = np.zeros((n_folds, PENALTIES.size))
    for a, b in combinations(range(n_folds), 2):  # fitted without both folds, tested on each
        weights = ridge_path(all_squares - squares[a] - squares[b], all_products - products[a] - products[b])
        losses[a] += ((x[parts[b]] @ weights - y[parts[b], None]) ** 2).sum(axis=0)
        losses[b] += ((x[parts[a]] @ weights - y[parts[a], None]) ** 2).sum(axis=0)
    predicted = np.empty_like(y)
    for fold, part in enumerate(parts):
        weights = ridge_path(all_squares - squares[fold], all_products - products[fold])
        best = weights[:, int(np.argmin(losses[fold]))]
        predicted[part] = (x[part] * best).sum(axis=1)  # equal for equal items, unlike a library's product
    return predicted
