"""The items of a fusion: fitted on, reported on, scored out of fold, and those on which the parts contradict.

Items of a source that a part has seen are left out: its scores are optimistic there.  A part that is fitted on these
very items would be optimistic on all of them, and weights fitted on its scores would be wrong.  So each of its items is
scored by a fit without the item's source, and everything else by the fit on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.data.split import inner_fold
from core.errors import AspectError, UsageError
from core.records import FloatArray, GoldenSet, IntArray, JudgeScores, Level, Split

MIN_ITEMS = 20
"""Fewer labelled items to fit or to report on than this, and nothing is."""
MIN_SOURCES = 4
MIN_SYSTEMS = 3
"""A coefficient over two systems can only be 1 or -1."""
FOLDS = 3
FitAndScore = Callable[[Split], FloatArray]
"""Fits on the calibration part of a split alone and returns scores (n_items,) over the whole golden set."""


@dataclass(frozen=True)
class FusionSplit:
    """Positions to fit on (n_fit,) and to report on (n_report,), of different sources; `notes` say what is left out."""

    fit: IntArray
    report: IntArray
    notes: tuple[str, ...] = ()


def unseen_split(
    golden: GoldenSet, aspect: str, parts: Sequence[JudgeScores], *, fit_share: float = 0.5, seed: int = 0
) -> FusionSplit:
    """Labelled items of sources that no part has seen, split by source.  AspectError where too few are left."""
    labelled, stale = ~np.isnan(golden.labels(aspect)), seen_sources(golden, parts)
    fresh, notes = np.flatnonzero(labelled & ~stale), tuple[str, ...]()
    if stale.any():
        notes = (
            f"{int((labelled & stale).sum())} labelled items are left aside because a part was calibrated or fitted on "
            f"their sources; {fresh.size} are left.",
        )
    n_sources = np.unique(golden.source_codes[fresh]).size
    if n_sources < MIN_SOURCES or fresh.size < 2 * MIN_ITEMS:
        raise AspectError(
            f"only {fresh.size} labelled items of {n_sources} sources are left that no part has seen; a fusion needs "
            f"at least {2 * MIN_ITEMS} items of {MIN_SOURCES} sources. Leave out a part that was calibrated on most of "
            "them, or label more items.",
            file=golden.name,
        )
    fit, test = inner_fold(fresh.tolist(), golden.source_codes, fit_share, seed)
    return FusionSplit(np.array(fit, dtype=np.intp), np.array(test, dtype=np.intp), notes)


def require_systems(golden: GoldenSet, level: Level, report: IntArray) -> None:
    """AspectError for system level where the items reported on are of fewer than `MIN_SYSTEMS` systems."""
    n_systems = np.unique(golden.system_codes[report]).size
    if level == "system" and n_systems < MIN_SYSTEMS:
        raise AspectError(
            f"system level takes at least {MIN_SYSTEMS} systems (system_id) among the items reported on, where n is "
            f"their number; there are {n_systems}, over which a coefficient is undefined or can only be 1 or -1. Take "
            "dataset level, or sample level.",
            file=golden.name,
        )


def seen_sources(golden: GoldenSet, parts: Sequence[JudgeScores]) -> NDArray[np.bool_]:
    """(n_items,) which items are of a source of which a part has seen any item's label: none of them is fresh."""
    seen = sorted({k for part in parts for k in part.seen})
    return np.isin(golden.source_codes, golden.source_codes[seen]) if seen else np.zeros(len(golden.items), dtype=bool)


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
        kept, out = (tuple(calibration[side].tolist()) for side in (~left_out, left_out))
        inner = Split(kept, out, split.kind, split.seed)
        scores[calibration[left_out]] = fit_and_score(inner)[calibration[left_out]]
    return scores


def contradictions(parts: Sequence[JudgeScores], at: Sequence[int], most: int = 50) -> tuple[int, ...]:
    """Positions (of `at`) on which the parts disagree most: largest spread of their rank shares first."""
    import pandas as pd

    positions = np.asarray(at, dtype=np.intp)
    ranks = pd.DataFrame([part.upward[positions] for part in parts]).rank(axis=1)
    shares = (ranks - 1).div(np.maximum(ranks.count(axis=1) - 1, 1), axis=0)
    spread = (shares.max() - shares.min()).fillna(0.0).to_numpy()
    order = np.argsort(-spread, kind="stable")[:most]
    return tuple(positions[order[spread[order] > 0]].tolist())
