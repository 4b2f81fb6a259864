"""How reliable a single call or rater is, and what alignment the mean of more of them would have.

ICC(1) by one-way analysis of variance (Shrout and Fleiss 1979); r_n = r_inf · √(n·rel / (1 + (n−1)·rel)) (METHODS:
attenuation, Spearman 1904, and Spearman-Brown).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import FloatArray


def single_call_reliability(calls: ArrayLike) -> float:
    """ICC(1) of `calls` (n_items, n_calls), NaN = not read; NaN = undefined.

    1 = every call gives an item the same, 0 or below = calls tell nothing about items:
    (MSB − MSW) / (MSB + (k₀ − 1)·MSW) with the mean squares between and within items and k₀ = (N − Σk_i²/N) / (n − 1),
    the number of calls an item when all have equally many.  Items with one call do not count.  Undefined with fewer
    than 2 items left or when all calls are equal.  UsageError for an infinite call.
    """
    scores = np.asarray(calls, dtype=np.float64)
    if np.isinf(scores).any():
        raise UsageError("The calls hold infinity; a score is a finite number, or NaN where it was not read.")
    present = ~np.isnan(scores)
    kept = present.sum(axis=1) >= 2
    scores, present = scores[kept], present[kept]
    k, total = present.sum(axis=1), int(present.sum())
    if len(k) < 2:
        return np.nan
    means = np.nansum(scores, axis=1) / k
    within = float(np.nansum((scores - means[:, None]) ** 2)) / (total - len(k))
    between = float((k * (means - np.nansum(scores) / total) ** 2).sum()) / (len(k) - 1)
    k0 = (total - float((k**2).sum()) / total) / (len(k) - 1)
    spread = between + (k0 - 1) * within
    return (between - within) / spread if spread > 0 else np.nan


def expected_alignment(r: FloatArray, n_measured: float, reliability: FloatArray, ns: Sequence[int]) -> FloatArray:
    """(rows, n's) what `r` (rows,), measured with the mean of `n_measured` samples, becomes with the mean of each n.

    r_n = r_inf · √(n·rel / (1 + (n−1)·rel)), within [-1, 1]; r_inf follows from the measured r.  NaN where
    `reliability` (rows,) of a single call is not above 0.
    """
    rel = np.where(reliability > 0, reliability, np.nan)[:, None]
    n = np.asarray(ns, dtype=np.float64)[None, :]
    factor = (n / (1 + (n - 1) * rel)) / (n_measured / (1 + (n_measured - 1) * rel))
    return np.clip(r[:, None] * np.sqrt(factor), -1.0, 1.0)
