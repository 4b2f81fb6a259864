"""Values and alignments of candidates at dataset, sample and system level.

- *dataset*: one coefficient over all items.
- *sample* (also called summary or document level): one coefficient per source, averaged.  A source where either
  side is constant, or with fewer than 2 items, is left out and counted; it is never counted as 0.
- *system*: the mean score and the mean label of every system, then one coefficient over systems; n is their number.

Items without a label are dropped.  A labelled item without a score (NaN) is dropped for that candidate only, on
both sides, and counted as unscored.  A value that does not exist is None in records and NaN inside arrays.

Definitions follow Liu et al. (2023, AutoCalibrate, section 4), whose sample-level rows come out only when constant
groups are left out.  The paper does not state a smallest group: of 2 items a coefficient can only be +1 or -1, 3 give a
meaningful one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import LEVELS, Alignment, FloatArray, Level, Measure, Statistic
from core.stats import claims
from core.stats.correlation import correlate
from core.stats.items import BySource, LabelledItems, Paired, paired

TIE_TOLERANCE = 1e-13
"""System means nearer to each other than this share of the largest one differ only by the rounding of their sums."""


class LevelValues(NamedTuple):
    """`values` (n_candidates,) at a level, NaN = undefined; at sample level with the coefficients they are means of."""

    values: FloatArray
    by_source: FloatArray | None = None


def level_values(data: Paired, measure: Measure) -> LevelValues:
    """UsageError for an unknown level."""
    if measure.level == "sample":
        by_source = coefficients(data, measure.statistic)
        return LevelValues(mean_defined(by_source), by_source)
    if measure.level == "dataset":
        return LevelValues(correlate(data.scores, data.items.labels, measure.statistic))
    if measure.level == "system":
        return LevelValues(correlate(*system_means(data), measure.statistic))
    raise UsageError(f"Unknown level {measure.level!r}: use {', '.join(LEVELS)}.")


def alignment_values(scores: ArrayLike, items: LabelledItems, measure: Measure) -> FloatArray:
    """(n_candidates,) values of `scores` (n_candidates, n_items) to rank by, NaN = undefined."""
    return level_values(paired(scores, items), measure).values


def coefficients_by_source(
    scores: ArrayLike, items: LabelledItems, statistic: Statistic, min_group: int = 2
) -> FloatArray:
    """(n_candidates, n_sources) coefficient per source; columns are the labelled sources by code.

    NaN = left out: a constant side, or fewer than `min_group` items with a score.
    """
    return coefficients(paired(scores, items), statistic, min_group)


# ── on paired data ───────────────────────────────────────────────────────────────────────────────────────────


def coefficients(data: Paired, statistic: Statistic, min_group: int = 2) -> FloatArray:
    """As `coefficients_by_source`; sources of equal size are stacked into one batched correlation."""
    values = np.full((data.scores.shape[0], data.items.n_sources), np.nan)
    for group in data.items.sizes:
        if group.items.shape[1] < min_group:
            continue
        stacked = data.scores[:, group.items]
        own = correlate(stacked, data.items.labels[group.items], statistic)
        if not data.complete:
            own[(~np.isnan(stacked)).sum(axis=-1) < min_group] = np.nan
        values[:, group.sources] = own
    return values


def mean_defined(values: FloatArray) -> FloatArray:
    """Mean along the last axis of what is not NaN; NaN where nothing is."""
    present = ~np.isnan(values)
    count = present.sum(axis=-1)
    totals: FloatArray = np.where(present, values, 0.0).sum(axis=-1)
    return np.asarray(np.where(count > 0, totals, np.nan) / np.maximum(count, 1), dtype=np.float64)


def system_means(data: Paired) -> tuple[FloatArray, FloatArray]:
    """Mean score and mean label of each system over the items the candidate has a score for; NaN = none.

    (n_candidates, n_systems) each; of the labels there is one row when nothing is unscored.
    """
    weights = data.scored if not data.complete else np.ones((1, data.items.labels.size))
    counts = data.items.sums_by_system(weights)
    totals = data.items.sums_by_system(np.nan_to_num(data.scores))
    labels = data.items.sums_by_system(weights * data.items.labels)
    return settled_means(totals, counts), settled_means(labels, counts)


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


def alignments(data: Paired, measure: Measure, measured: LevelValues) -> list[Alignment]:
    """One Alignment per candidate, without interval; value None with its reason where undefined."""
    by_candidate = []
    for candidate, scored in enumerate(~np.isnan(data.scores)):
        value, used, n_groups, n_left_out = float(measured.values[candidate]), scored, 0, 0
        if measured.by_source is not None:
            defined = ~np.isnan(measured.by_source[candidate])
            used = scored & defined[data.items.sources]
            n_groups, n_left_out = int(defined.sum()), int((~defined).sum())
        n = np.unique(data.items.systems[scored]).size if measure.level == "system" else int(used.sum())
        bare = Alignment(measure.statistic, measure.level, value, n, n_groups, n_left_out, int((~scored).sum()))
        if np.isnan(value):
            bare = replace(bare, value=None, reason=_reason(data.scored_only(candidate), data.items, measure.level))
        by_candidate.append(bare)
    return by_candidate


def _reason(scored: Paired, labelled: BySource, level: Level) -> str:
    """Why a single candidate, `scored` on some of the `labelled` items, has no value at `level`."""
    n_labelled, labels = labelled.labels.size, scored.items.labels
    if not n_labelled:
        return claims.NO_LABEL
    if labels.size < 2:
        return claims.too_few_items(labels.size, n_labelled)
    if level == "sample":
        return claims.no_source(labelled.n_sources)
    if level == "system":
        if np.unique(scored.items.systems).size < 2:
            return claims.TOO_FEW_SYSTEMS
        labels = system_means(scored)[1][0]
    side = "labels" if np.nanmin(labels) == np.nanmax(labels) else "scores"
    return claims.constant(side, "mean" if level == "system" else "item")
