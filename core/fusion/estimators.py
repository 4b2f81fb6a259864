"""Join the scores of several assistants into one, by three methods.

Scores (n_assistants, n_items) are turned so that more is better, NaN = missing.  An estimator learns centre and spread
per assistant on the items it is fitted on; a missing score counts as the assistant's mean.  An item that no assistant
scored stays NaN.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from core.errors import UsageError
from core.fusion.fusion_settings import FusionMethod
from core.records import FloatArray, IntArray

PENALTIES = np.logspace(-1, 3, 13)
"""Ridge penalties tried, in units of one standardised item."""
FOLDS = 5


@dataclass(frozen=True)
class Estimator:
    """A fitted way to join scores: standardise by `mean` and `spread`, weigh, and add `intercept`.

    "average" is the mean of the standardised scores that are there and uses no label.  "ridge" and "nnls" learn an
    intercept and weights on the scale of the labels: ridge shrinks them, by the penalty with the smallest squared
    error on left-out sources (5 folds); nnls keeps them from being negative.
    """

    method: FusionMethod
    mean: list[FiniteFloat]
    spread: list[Annotated[FiniteFloat, Field(gt=0)]]
    weights: list[FiniteFloat]
    intercept: FiniteFloat = 0.0
    penalty: float = 0.0

    def score(self, scores: FloatArray) -> FloatArray:
        """(n_items,), NaN where no assistant has a score."""
        z, count = _standardised(scores, np.array(self.mean), np.array(self.spread)), (~np.isnan(scores)).sum(axis=0)
        if self.method == "average":
            joined = z.sum(axis=0) / np.maximum(count, 1)
        else:  # not a matrix product, which may give equal items different last digits
            joined = (np.array(self.weights)[:, None] * z).sum(axis=0)
        return np.where(count > 0, self.intercept + joined, np.nan)

    def state(self) -> dict[str, Any]:
        """What was learnt, JSON-able; `restore_estimator` reads it."""
        state = asdict(self)
        return state if self.method != "average" else {name: state[name] for name in ("method", "mean", "spread")}


def fit_estimator(method: FusionMethod, scores: FloatArray, labels: FloatArray, sources: IntArray) -> Estimator:
    """Fit on `scores` (n_assistants, n_items), `labels` and codes of `sources` (n_items,)."""
    known = ~np.isnan(scores)
    count = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, scores, 0.0).sum(axis=1) / count
    spread = np.sqrt(np.where(known, (scores - mean[:, None]) ** 2, 0.0).sum(axis=1) / count)
    spread = np.where(spread > 0, spread, 1.0)
    if method == "average":
        return Estimator(method, mean.tolist(), spread.tolist(), [1.0 / len(scores)] * len(scores))
    z, intercept, penalty = _standardised(scores, mean, spread), float(labels.mean()), 0.0
    if method == "nnls":
        from scipy.optimize import nnls

        weights = nnls(z.T, labels - intercept)[0]
    else:
        penalty = _best_penalty(z, labels - intercept, sources)
        weights = _ridge(z, labels - intercept, np.array([penalty]))[0]
    return Estimator(method, mean.tolist(), spread.tolist(), weights.tolist(), intercept, penalty)


def restore_estimator(state: Mapping[str, Any]) -> Estimator:
    """The fitted estimator whose `state` was stored.  UsageError for a damaged one."""
    known = {name: value for name, value in state.items() if value is not None}
    if known.get("method") == "average" and isinstance(known.get("mean"), list):
        known["weights"] = [1.0 / max(len(known["mean"]), 1)] * len(known["mean"])
    try:
        estimator = TypeAdapter(Estimator).validate_json(json.dumps(known), strict=True)
    except ValidationError as error:
        raise UsageError(f"The stored fusion is damaged: {error}.") from error
    if not len(estimator.mean) == len(estimator.spread) == len(estimator.weights):
        raise UsageError("The stored fusion is damaged: each mean needs a weight and a spread.")
    return estimator


def _standardised(scores: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """(n_assistants, n_items), 0 where missing."""
    return np.nan_to_num((scores - mean[:, None]) / spread[:, None], nan=0.0)


def _ridge(z: FloatArray, y: FloatArray, penalties: FloatArray) -> FloatArray:
    """(n_penalties, n_assistants) weights, all penalties from one eigendecomposition."""
    values, vectors = np.linalg.eigh(z @ z.T)
    turned = vectors.T @ (z @ y)
    weights: FloatArray = (turned / (np.maximum(values, 0.0) + penalties[:, None])) @ vectors.T
    return weights


def _best_penalty(z: FloatArray, y: FloatArray, sources: IntArray) -> float:
    """The penalty with the smallest squared error on left-out sources; the middle one with fewer than 2 sources."""
    names, codes = np.unique(sources, return_inverse=True)
    if names.size < 2:
        return float(PENALTIES[len(PENALTIES) // 2])
    fold = np.random.default_rng(0).permutation(names.size)[codes] % min(FOLDS, names.size)
    errors = np.zeros(len(PENALTIES))
    for k in range(fold.max() + 1):
        out = fold == k
        errors += ((_ridge(z[:, ~out], y[~out], PENALTIES) @ z[:, out] - y[out]) ** 2).sum(axis=1)
    return float(PENALTIES[np.argmin(errors)])
