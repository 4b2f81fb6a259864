"""Alignment of candidates with people at dataset, sample and system level.

- *dataset*: one coefficient over all items.
- *sample* (also called summary or document level): one coefficient per source, averaged.  A source where either
  side is constant, or with fewer than `min_group` items, is left out and counted; it is never counted as 0.
- *system*: the mean score and the mean label of every system, then one coefficient over systems; n is their number.

Items without a label are dropped.  A labelled item without a score (NaN) is dropped for that candidate only, on
both sides, and counted as unscored.  A value that does not exist is None in records and NaN inside arrays.

Definitions follow Liu et al. (2023, AutoCalibrate, section 4), whose sample-level rows come out only when constant
groups are left out.  The paper does not state a smallest group; here it is a parameter, 2 by default (with 2 items a
coefficient can only be +1 or -1; 3 give a meaningful one).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import LEVELS, Alignment, FloatArray, Level, Statistic
from core.stats.correlation import correlate
from core.stats.pairing import Paired, paired, sums_by

MIN_GROUP = 2
"""Smallest group that gets a coefficient of its own at sample level."""

TIE_TOLERANCE = 1e-13
"""System means nearer to each other than this share of the largest one differ only by the rounding of their sums."""


def align_scores(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    min_group: int = MIN_GROUP,
) -> list[Alignment]:
    """One Alignment per row of `scores` (n_candidates, n_items); value None with its reason where undefined."""
    data = paired(scores, labels, source_codes, system_codes)
    return align_paired(data, statistic=statistic, level=level, min_group=min_group)


def alignment(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    min_group: int = MIN_GROUP,
) -> Alignment:
    """The Alignment of one judge: `scores` is (n_items,)."""
    data = paired(scores, labels, source_codes, system_codes)
    return align_paired(data, statistic=statistic, level=level, min_group=min_group)[0]


def rank_values(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    min_group: int = MIN_GROUP,
) -> FloatArray:
    """(n_candidates,) values to rank by, NaN = undefined: `align_scores` without the counts."""
    data = paired(scores, labels, source_codes, system_codes)
    return level_values(data, statistic=statistic, level=level, min_group=min_group)


def group_values(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike,
    *,
    statistic: Statistic,
    min_group: int = MIN_GROUP,
) -> FloatArray:
    """(n_candidates, n_groups) coefficient per source, NaN = left out; columns are the labelled sources by code."""
    return sample_values(paired(scores, labels, source_codes), statistic=statistic, min_group=min_group)


# ── on paired data ───────────────────────────────────────────────────────────────────────────────────────────


def level_values(data: Paired, *, statistic: Statistic, level: Level, min_group: int = MIN_GROUP) -> FloatArray:
    """(n_candidates,) values at `level`, NaN = undefined.  UsageError for an unknown level."""
    if level == "dataset":
        return correlate(data.scores, data.labels, statistic)
    if level == "sample":
        return mean_defined(sample_values(data, statistic=statistic, min_group=min_group))
    if level == "system":
        means = system_means(data)
        return correlate(means.scores, means.labels, statistic)
    raise UsageError(f"Unknown level {level!r}: use {', '.join(LEVELS)}.")


def mean_defined(values: FloatArray) -> FloatArray:
    """Mean along the last axis of what is not NaN; NaN where nothing is."""
    present = ~np.isnan(values)
    count = present.sum(axis=-1)
    totals: FloatArray = np.where(present, values, 0.0).sum(axis=-1)
    return np.asarray(np.where(count > 0, totals, np.nan) / np.maximum(count, 1), dtype=np.float64)


def sample_values(data: Paired, *, statistic: Statistic, min_group: int = MIN_GROUP) -> FloatArray:
    """(n_candidates, n_sources) coefficient per source, NaN = left out.

    Sources of equal size are stacked, so the work is one batched correlation per distinct size.
    """
    values = np.full((data.scores.shape[0], data.n_sources), np.nan)
    sizes = np.bincount(data.sources, minlength=data.n_sources)
    starts = np.cumsum(sizes) - sizes
    complete = data.complete
    for size in np.unique(sizes[sizes >= max(2, min_group)]):
        groups = np.flatnonzero(sizes == size)
        items = starts[groups, None] + np.arange(size)
        stacked = data.scores[:, items]
        found = correlate(stacked, data.labels[items], statistic)
        if not complete:
            found[(~np.isnan(stacked)).sum(axis=-1) < min_group] = np.nan
        values[:, groups] = found
    return values


@dataclass(frozen=True)
class SystemMeans:
    """scores: (n_candidates, n_systems); labels: the same, or (1, n_systems) when nothing is unscored; NaN = none."""

    scores: FloatArray
    labels: FloatArray


def system_means(data: Paired) -> SystemMeans:
    """Mean score and mean label of each system over the items the candidate has a score for."""
    weights = data.scored if not data.complete else np.ones((1, data.labels.size))
    counts = sums_by(data.systems, weights, data.n_systems)
    totals = sums_by(data.systems, np.nan_to_num(data.scores), data.n_systems)
    labels = sums_by(data.systems, weights * data.labels, data.n_systems)
    return SystemMeans(settled_means(totals, counts), settled_means(labels, counts))


def settled_means(totals: FloatArray, counts: FloatArray) -> FloatArray:
    """totals / counts, NaN where nothing was counted.

    Sums of the same numbers in another order differ in their last bits; the result is settled on a grid of
    `TIE_TOLERANCE` times its row's largest mean, so that means equal in truth are ties here too.
    """
    means = np.where(counts > 0, totals, np.nan) / np.maximum(counts, 1.0)
    if means.shape[-1] == 0:
        return means
    grid = np.fmax.reduce(np.abs(means), axis=-1, keepdims=True) * TIE_TOLERANCE
    grid = np.where(grid > 0, grid, 1.0)
    return np.where(np.isnan(means), np.nan, np.rint(means / grid) * grid)


def align_paired(data: Paired, *, statistic: Statistic, level: Level, min_group: int = MIN_GROUP) -> list[Alignment]:
    """`align_scores` on data already paired."""
    if level != "sample":
        values = level_values(data, statistic=statistic, level=level)
        return [_whole(data, k, float(value), statistic, level) for k, value in enumerate(values)]
    by_source = sample_values(data, statistic=statistic, min_group=min_group)
    averages = mean_defined(by_source)
    return [_averaged(data, k, by_source[k], float(averages[k]), statistic) for k in range(averages.size)]


def _whole(data: Paired, candidate: int, value: float, statistic: Statistic, level: Level) -> Alignment:
    scored = ~np.isnan(data.scores[candidate])
    n_scored = int(scored.sum())
    n = np.unique(data.systems[scored]).size if level == "system" else n_scored
    undefined = bool(np.isnan(value))
    return Alignment(
        statistic=statistic,
        level=level,
        value=None if undefined else value,
        n=n,
        n_unscored=data.labels.size - n_scored,
        reason=_reason(data.one(candidate), level) if undefined else "",
    )


def _averaged(data: Paired, candidate: int, by_source: FloatArray, value: float, statistic: Statistic) -> Alignment:
    scored = ~np.isnan(data.scores[candidate])
    defined = ~np.isnan(by_source)
    return Alignment(
        statistic=statistic,
        level="sample",
        value=float(value) if defined.any() else None,
        n=int((scored & defined[data.sources]).sum()),
        n_groups=int(defined.sum()),
        n_left_out=int((~defined).sum()),
        n_unscored=int((~scored).sum()),
        reason="" if defined.any() else _reason(data.one(candidate), "sample"),
    )


def _reason(data: Paired, level: Level) -> str:
    """Why the single candidate of `data` has no value at `level`."""
    scored = ~np.isnan(data.scores[0])
    if not data.labels.size:
        return "no item has a label"
    if scored.sum() < 2:
        return f"fewer than 2 items have both a score and a label ({int(scored.sum())} of {data.labels.size} labelled)"
    if level == "sample":
        return f"no source has enough items with differing scores and differing labels ({data.n_sources} sources)"
    labels = data.labels[scored]
    if level == "system":
        if np.unique(data.systems[scored]).size < 2:
            return "fewer than 2 systems have scored items"
        labels = system_means(data).labels[0]
    what = "mean" if level == "system" else "item"
    side = "labels" if np.nanmin(labels) == np.nanmax(labels) else "scores"
    return f"all {side} are equal ({what} by {what})"
