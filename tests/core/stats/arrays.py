"""What statistics take, made from plain arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from core.stats import LabelledItems, RaterTable

items = LabelledItems.from_arrays


def raters(ratings: ArrayLike, names: tuple[str, ...] = ()) -> RaterTable:
    """(n_raters, n_items) ratings of raters called 1, 2, … unless named."""
    values = np.asarray(ratings, dtype=np.float64)
    return RaterTable(names or tuple(str(k + 1) for k in range(len(values))), values)


def rated(ratings: ArrayLike, sources: ArrayLike | None = None, systems: ArrayLike | None = None) -> LabelledItems:
    """The items of (n_raters, n_items) ratings, without labels of their own."""
    return items(np.full(np.shape(ratings)[1], np.nan), sources, systems)
