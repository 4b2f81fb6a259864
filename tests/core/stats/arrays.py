"""What statistics take, made from plain arrays."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from core.stats import LabelledItems, RaterTable

ORACLES = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr, "kendall": scipy.stats.kendalltau}
items = LabelledItems.from_arrays


def raters(ratings: ArrayLike, names: tuple[str, ...] = ()) -> RaterTable:
    """(n_raters, n_items) ratings of raters called 1, 2, … unless named."""
    values = np.asarray(ratings, dtype=np.float64)
    return RaterTable(names or tuple(str(k + 1) for k in range(len(values))), values)


def rated(ratings: ArrayLike, sources: ArrayLike | None = None, systems: ArrayLike | None = None) -> LabelledItems:
    """The items of (n_raters, n_items) ratings, without labels of their own."""
    return items(np.full(np.shape(ratings)[1], np.nan), sources, systems)


def coefficient(x: np.ndarray, y: np.ndarray, statistic: str) -> float:
    """scipy's coefficient of the pairs present on both sides; NaN where scipy has nothing to say."""
    kept = ~(np.isnan(x) | np.isnan(y))
    if kept.sum() < 2:
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns about constant sides and returns NaN
        return float(ORACLES[statistic](x[kept], y[kept]).statistic)
