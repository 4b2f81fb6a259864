"""Parts that learn from labels, scored so that a fusion may be fitted on the very items that taught them.

A judge taught on the fit items flatters itself there, and weights fitted on flattered scores are wrong.  So each fit
item is scored by what was taught without its source, and everything else by what was taught on all fit items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, GoldenSet, Split

Teach = Callable[[Split], FloatArray]
"""Teaches on the calibration side of a split alone and returns scores (n_items,) over the whole golden set."""

FOLDS = 3


def out_of_fold(golden: GoldenSet, split: Split, teach: Teach, folds: int = FOLDS) -> FloatArray:
    """(n_items,) scores: calibration items by what was taught without their source, all others by the whole side.

    `teach` is called `folds` + 1 times.  UsageError with fewer calibration sources than folds.
    """
    fit = np.array(split.calibration, dtype=np.intp)
    codes = golden.source_codes[fit]
    sources = np.unique(codes)
    if sources.size < folds:
        raise UsageError(
            f"A part that learns needs at least {folds} calibration sources, so that none teaches its own score; "
            f"{sources.size} are there."
        )
    found = np.array(teach(split), dtype=np.float64)
    if found.shape != (len(golden.items),):
        raise UsageError(f"Scores of shape {found.shape} came for {len(golden.items)} items.")
    fold = np.random.default_rng([split.seed, 4]).permutation(sources.size) % folds
    for k in range(folds):
        left = np.isin(codes, sources[fold == k])
        inner = Split(_places(fit[~left]), _places(fit[left]), split.kind, split.seed)
        found[fit[left]] = teach(inner)[fit[left]]
    return found


def _places(positions: Sequence[int] | np.ndarray) -> tuple[int, ...]:
    return tuple(int(k) for k in positions)
