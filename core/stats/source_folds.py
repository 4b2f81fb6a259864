"""Folds of whole sources, for whatever is cross-fitted."""

from __future__ import annotations

import numpy as np

from core.records import IntArray

FOLDS = 5


def source_folds(sources: IntArray, n_folds: int = FOLDS, seed: int = 0) -> IntArray:
    """(n,) a fold for each item: sources shuffled and dealt out, at most as many folds as sources."""
    names, of_item = np.unique(sources, return_inverse=True)
    dealt = np.random.default_rng(seed).permutation(np.arange(names.size) % max(1, min(n_folds, names.size)))
    return np.asarray(dealt[of_item], dtype=np.intp)
