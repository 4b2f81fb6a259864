"""Ridge regression of one cell, with the exact predictions of fits that leave folds of items out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.records import FloatArray, IntArray


class RidgeFit(NamedTuple):
    """(dim,) weights, the penalty chosen, and (n,) predictions out of fold, less the mean label that each fit saw."""

    weights: FloatArray
    penalty: float
    out_of_fold: FloatArray


def ridge(
    states: NDArray[np.float32], labels: FloatArray, penalties: Sequence[float], folds: Sequence[IntArray]
) -> RidgeFit:
    """Ridge of `labels` (n,) on the centred `states` (n, dim), with an intercept; `folds` are rows left out together.

    With K the inner products of the items over dim and H = K (K + penalty)⁻¹ + 1/n, which maps labels to fitted values
    ŷ, leaving the fold F out gives the errors (1 − H_FF)⁻¹ (y − ŷ)_F: exact, and nothing is fitted twice.  Of the two
    equal ways to the singular vectors of the states (by items, by dimensions) the smaller matrix is decomposed.
    """
    n, dim = states.shape
    values, left = _left_singular(states)
    centred = labels - labels.mean()
    moments = left.T @ centred
    best = RidgeFit(np.zeros(dim), penalties[0], np.zeros(n))
    least = np.inf
    for penalty in penalties if values.size else ():
        shrunk = values / (values + penalty)
        residuals = centred - left @ (shrunk * moments)
        errors = np.empty(n)
        for rows in folds:
            free = np.eye(rows.size) - (left[rows] * shrunk) @ left[rows].T - 1.0 / n
            errors[rows] = np.linalg.solve(free, residuals[rows])
        error = float(np.square(errors).mean())
        if error < least:
            weights = states.T.astype(np.float64) @ (left @ (moments / (values + penalty))) / dim
            best, least = RidgeFit(weights, penalty, labels - errors), error
    # less the mean of the labels that each fit saw
    for rows in folds if values.size else ():
        best.out_of_fold[rows] -= (labels.sum() - labels[rows].sum()) / (n - rows.size)
    return best


def _left_singular(states: NDArray[np.float32]) -> tuple[FloatArray, FloatArray]:
    """((r,) eigenvalues, (n, r) eigenvectors) of states · statesᵀ / dim, without those that are rounding."""
    n, dim = states.shape
    double = states.astype(np.float64)
    values, vectors = np.linalg.eigh((double @ double.T if n <= dim else double.T @ double) / dim)
    real = values > max(values[-1], 0.0) * 1e-9
    values, vectors = values[real], vectors[:, real]
    return values, vectors if n <= dim else double @ vectors / np.sqrt(values * dim)
