"""Joining the scores of several assistants into one: three estimators in scikit-learn's manner.

Each takes `scores` (n_assistants, n_items) turned so that more is better, NaN = missing, and learns its centre and
spread per assistant on the items it is fitted on; a missing score counts as the assistant's mean.  An item that no
assistant scored stays NaN.  Learnt values end in ``_``; `state` holds them for export.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, Self

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, IntArray

FusionMethod = Literal["average", "ridge", "nnls"]
METHODS: tuple[FusionMethod, ...] = ("average", "ridge", "nnls")
PENALTIES = np.logspace(-1, 3, 13)
"""Ridge penalties tried, in units of one standardised item."""
FOLDS = 5


class Estimator(Protocol):
    """Fit on labelled items, then score any."""

    weights_: FloatArray

    def fit(self, scores: FloatArray, labels: FloatArray, sources: IntArray) -> Self: ...

    def score(self, scores: FloatArray) -> FloatArray: ...

    def state(self) -> dict[str, Any]: ...


class _Standardised:
    """Centre and spread of each assistant, learnt once."""

    mean_: FloatArray
    spread_: FloatArray

    def _learn(self, scores: FloatArray) -> FloatArray:
        known = ~np.isnan(scores)
        count = np.maximum(known.sum(axis=1), 1)
        self.mean_ = np.where(known, scores, 0.0).sum(axis=1) / count
        squares = np.where(known, (scores - self.mean_[:, None]) ** 2, 0.0).sum(axis=1)
        spread = np.sqrt(squares / count)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        return self._z(scores)

    def _z(self, scores: FloatArray) -> FloatArray:
        """(n_assistants, n_items) standardised, 0 where missing."""
        z: FloatArray = (scores - self.mean_[:, None]) / self.spread_[:, None]
        return np.nan_to_num(z, nan=0.0)


class Average(_Standardised):
    """The mean of the standardised scores that are there: no label is used."""

    weights_: FloatArray

    def fit(self, scores: FloatArray, labels: FloatArray, sources: IntArray) -> Self:
        self._learn(scores)
        self.weights_ = np.full(len(scores), 1.0 / max(len(scores), 1))
        return self

    def score(self, scores: FloatArray) -> FloatArray:
        known = ~np.isnan(scores)
        count = known.sum(axis=0)
        total = self._z(scores).sum(axis=0)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def state(self) -> dict[str, Any]:
        return {"method": "average", "mean": self.mean_.tolist(), "spread": self.spread_.tolist()}


class Linear(_Standardised):
    """Intercept and weights on the scale of the labels; `ridge` shrinks them, `nnls` keeps them from being negative.

    Ridge's penalty is the one with the smallest squared error on left-out sources (5 folds).
    """

    weights_: FloatArray

    def __init__(self, method: Literal["ridge", "nnls"]) -> None:
        self.method = method

    def fit(self, scores: FloatArray, labels: FloatArray, sources: IntArray) -> Self:
        z = self._learn(scores)
        self.intercept_ = float(labels.mean())
        centred = labels - self.intercept_
        if self.method == "nnls":
            from scipy.optimize import nnls

            self.penalty_ = 0.0
            self.weights_ = np.asarray(nnls(z.T, centred)[0], dtype=np.float64)
            return self
        self.penalty_ = _best_penalty(z, centred, sources)
        self.weights_ = _ridge(z, centred, np.array([self.penalty_]))[0]
        return self

    def score(self, scores: FloatArray) -> FloatArray:
        joined = self.intercept_ + self.weights_ @ self._z(scores)
        return np.where(np.isnan(scores).all(axis=0), np.nan, joined)

    def state(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "mean": self.mean_.tolist(),
            "spread": self.spread_.tolist(),
            "weights": self.weights_.tolist(),
            "intercept": self.intercept_,
            "penalty": self.penalty_,
        }


def make_estimator(method: FusionMethod) -> Estimator:
    """An unfitted estimator.  UsageError for a method that there is not."""
    if method == "average":
        return Average()
    if method in ("ridge", "nnls"):
        return Linear(method)
    raise UsageError(f"A fusion without calls is one of {', '.join(METHODS)}, not {method!r}.")


def restore_estimator(state: Mapping[str, Any]) -> Estimator:
    """The fitted estimator whose `state` was kept.  UsageError for a damaged one."""
    try:
        estimator = make_estimator(state["method"])
        assert isinstance(estimator, Average | Linear)
        mean, spread = _numbers(state, "mean"), _numbers(state, "spread")
        if spread.size != mean.size or (spread <= 0).any():
            raise ValueError("each mean needs a spread above 0")
        estimator.mean_, estimator.spread_ = mean, spread
        if isinstance(estimator, Average):
            estimator.weights_ = np.full(mean.size, 1.0 / max(mean.size, 1))
            return estimator
        estimator.weights_ = _numbers(state, "weights")
        if estimator.weights_.size != mean.size:
            raise ValueError("each mean needs a weight")
        estimator.intercept_, estimator.penalty_ = float(state["intercept"]), float(state["penalty"])
        if not np.isfinite(estimator.intercept_):
            raise ValueError("the intercept is no finite number")
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"The kept fusion is damaged: {error}.") from error
    return estimator


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
