"""Joining the scores of several assistants into one: an estimator in scikit-learn's manner, by three methods.

It takes `scores` (n_assistants, n_items) turned so that more is better, NaN = missing, and learns its centre and
spread per assistant on the items it is fitted on; a missing score counts as the assistant's mean.  An item that no
assistant scored stays NaN.  Learnt values end in ``_``; `state` holds them for export.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from core.errors import UsageError
from core.fusion.fusion_settings import METHODS, FusionMethod
from core.records import FloatArray, IntArray

PENALTIES = np.logspace(-1, 3, 13)
"""Ridge penalties tried, in units of one standardised item."""
FOLDS = 5


class Estimator:
    """Joins the scores of assistants by `method`; fit on labelled items, then score any.

    "average" is the mean of the standardised scores that are there and uses no label.  "ridge" and "nnls" learn an
    intercept and weights on the scale of the labels: ridge shrinks them, by the penalty with the smallest squared
    error on left-out sources (5 folds); nnls keeps them from being negative.
    """

    mean_: FloatArray
    spread_: FloatArray
    weights_: FloatArray
    intercept_ = 0.0
    penalty_ = 0.0

    def __init__(self, method: FusionMethod) -> None:
        self.method = method

    def fit(self, scores: FloatArray, labels: FloatArray, sources: IntArray) -> Self:
        known = ~np.isnan(scores)
        count = np.maximum(known.sum(axis=1), 1)
        self.mean_ = np.where(known, scores, 0.0).sum(axis=1) / count
        squares = np.where(known, (scores - self.mean_[:, None]) ** 2, 0.0).sum(axis=1)
        spread = np.sqrt(squares / count)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        if self.method == "average":
            self.weights_ = _shares(len(scores))
            return self
        z = self._standardised(scores)
        self.intercept_ = float(labels.mean())
        centred = labels - self.intercept_
        if self.method == "nnls":
            from scipy.optimize import nnls

            self.weights_ = np.asarray(nnls(z.T, centred)[0], dtype=np.float64)
        else:
            self.penalty_ = _best_penalty(z, centred, sources)
            self.weights_ = _ridge(z, centred, np.array([self.penalty_]))[0]
        return self

    def score(self, scores: FloatArray) -> FloatArray:
        """(n_items,), NaN where no assistant has a score."""
        z, count = self._standardised(scores), (~np.isnan(scores)).sum(axis=0)
        if self.method == "average":
            joined = z.sum(axis=0) / np.maximum(count, 1)
        else:  # no library's product, which may part equal items in their last digits
            joined = (self.weights_[:, None] * z).sum(axis=0)
        return np.where(count > 0, self.intercept_ + joined, np.nan)

    def state(self) -> dict[str, Any]:
        """What was learnt, JSON-able; `restore_estimator` reads it."""
        state = {"method": self.method, "mean": self.mean_.tolist(), "spread": self.spread_.tolist()}
        if self.method == "average":
            return state
        return state | {"weights": self.weights_.tolist(), "intercept": self.intercept_, "penalty": self.penalty_}

    def _standardised(self, scores: FloatArray) -> FloatArray:
        """(n_assistants, n_items), 0 where missing."""
        return np.nan_to_num((scores - self.mean_[:, None]) / self.spread_[:, None], nan=0.0)


def make_estimator(method: str) -> Estimator:
    """An unfitted estimator.  UsageError for a method that does not join scores."""
    for known in METHODS:
        if method == known:
            return Estimator(known)
    raise UsageError(f"A fusion without calls is one of {', '.join(METHODS)}, not {method!r}.")


def restore_estimator(state: Mapping[str, Any]) -> Estimator:
    """The fitted estimator whose `state` was kept.  UsageError for a damaged one."""
    try:
        estimator = make_estimator(state["method"])
        estimator.mean_, estimator.spread_ = _numbers(state, "mean"), _numbers(state, "spread")
        n_parts = estimator.mean_.size
        if estimator.spread_.size != n_parts or (estimator.spread_ <= 0).any():
            raise ValueError("each mean needs a spread above 0")
        if estimator.method == "average":
            estimator.weights_ = _shares(n_parts)
            return estimator
        estimator.weights_ = _numbers(state, "weights")
        if estimator.weights_.size != n_parts:
            raise ValueError("each mean needs a weight")
        estimator.intercept_, estimator.penalty_ = float(state["intercept"]), float(state["penalty"])
        if not np.isfinite(estimator.intercept_):
            raise ValueError("the intercept is no finite number")
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"The kept fusion is damaged: {error}.") from error
    return estimator


def _shares(n_parts: int) -> FloatArray:
    return np.full(n_parts, 1.0 / max(n_parts, 1))


def _numbers(state: Mapping[str, Any], name: str) -> FloatArray:
    """(n,) finite numbers.  ValueError for anything else."""
    listed = state[name]
    if not isinstance(listed, list) or any(isinstance(n, bool) or not isinstance(n, int | float) for n in listed):
        raise ValueError(f"{name} is no list of numbers")
    numbers = np.array(listed, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} holds what is no finite number")
    return numbers


def _ridge(z: FloatArray, y: FloatArray, penalties: FloatArray) -> FloatArray:
    """(n_penalties, n_assistants) weights, all penalties from one eigendecomposition."""
    values, vectors = np.linalg.eigh(z @ z.T)
    turned = vectors.T @ (z @ y)
    weights: FloatArray = (turned / (np.maximum(values, 0.0) + penalties[:, None])) @ vectors.T
    return weights


def _best_penalty(z: FloatArray, y: FloatArray, sources: IntArray) -> float:
    """The penalty with the smallest squared error on left-out sources; the middle one with fewer than 2 sources."""
    order = np.unique(sources, return_inverse=True)[1]
    folds = min(FOLDS, int(order.max()) + 1)
    if folds < 2:
        return float(PENALTIES[len(PENALTIES) // 2])
    fold = np.random.default_rng(0).permutation(int(order.max()) + 1)[order] % folds
    errors = np.zeros(len(PENALTIES))
    for k in range(folds):
        out = fold == k
        weights = _ridge(z[:, ~out], y[~out], PENALTIES)
        errors += ((weights @ z[:, out] - y[out]) ** 2).sum(axis=1)
    return float(PENALTIES[int(np.argmin(errors))])
