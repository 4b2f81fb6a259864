"""Parts that learn from labels, cross-fitted, so that a fusion may be fitted on the very items they were fitted on.

A judge fitted on these items flatters itself there, and weights fitted on flattered scores are wrong.  So each of them
is scored by a judge fitted without its source, and everything else by the judge fitted on all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, GoldenSet, IntArray, Split

FitAndScore = Callable[[Split], FloatArray]
"""Fits on the calibration part of a split alone and returns scores (n_items,) over the whole golden set."""

FOLDS = 3


def cross_fitted(golden: GoldenSet, split: Split, fit_and_score: FitAndScore, folds: int = FOLDS) -> FloatArray:
    """(n_items,) scores: calibration items by a fit without their source, all others by the fit on all of them.

    `fit_and_score` is called `folds` + 1 times, with the whole `split` first.  UsageError with fewer calibration
    sources than folds.
    """
    calibration = np.array(split.calibration, dtype=np.intp)
    codes = golden.source_codes[calibration]
    sources = np.unique(codes)
    if sources.size < folds:
        raise UsageError(
            f"A part that learns needs at least {folds} calibration sources, so that none teaches its own score; "
            f"{sources.size} are there."
        )
    scores = np.array(fit_and_score(split), dtype=np.float64)
    if scores.shape != (len(golden.items),):
        raise UsageError(f"Scores of shape {scores.shape} came for {len(golden.items)} items.")
    fold = np.random.default_rng([split.seed, 4]).permutation(sources.size) % folds
    for k in range(folds):
        left_out = np.isin(codes, sources[fold == k])
        inner = Split(_positions(calibration[~left_out]), _positions(calibration[left_out]), split.kind, split.seed)
        scores[calibration[left_out]] = fit_and_score(inner)[calibration[left_out]]
    return scores


def _positions(positions: IntArray) -> tuple[int, ...]:
    return tuple(int(k) for k in positions)
