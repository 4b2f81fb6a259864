"""What alignment to expect with n samples a score, from a pilot of few items with few samples each.

The pilot gives the alignment of its own means, and the reliability of a single call at the level asked for (ICC(1),
`single_call_reliability`):

- dataset: between all items; sample: between the items of one source; system: between the means of the systems.

Then r_n = r_inf · √(n·rel / (1 + (n−1)·rel)) tells what more samples, or fewer, would bring (METHODS: attenuation,
Spearman 1904, and Spearman-Brown).  It holds for Pearson at dataset level with noise alike in all items; ranks follow
it roughly.  The interval is over the pilot's sources, reliability and alignment moving together: with few items it is
wide, mostly since the alignment itself is known no better; so compare the steps from n to n, not the heights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import FloatArray, Interval, Level, Measure, Statistic
from core.stats.alignment import RESAMPLES, Seed
from core.stats.claims import NO_REPEATED_SAMPLES
from core.stats.intervals import sources_behind, spread_over_sources
from core.stats.items import LabelledItems, Paired, paired
from core.stats.levels import alignments, level_values, mean_defined
from core.stats.reweighting import resampled_values

FORECAST_AT = (1, 2, 5, 10, 20, 40)
"""Samples a score for which a forecast is made."""


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """Alignment to expect from the mean of `n` calls an item, and what that costs on all labelled items.

    `value` is None where nothing can be predicted; `cost` None where the price is unknown.
    """

    n: int
    value: float | None
    interval: Interval | None
    calls: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What averaging more samples would bring, from `n_items` items with label and score.

    The calls of a point are for all `n_labelled` items.  Where nothing can be predicted the values of the points are
    None and `reason` says why.
    """

    statistic: Statistic
    level: Level
    n_items: int
    n_labelled: int
    points: tuple[ForecastPoint, ...]
    reason: str = ""


def pilot_forecast(
    samples: ArrayLike,
    items: LabelledItems,
    measure: Measure,
    *,
    ns: Sequence[int] = FORECAST_AT,
    n_labelled: int,
    call_cost: float | None = None,
    resamples: int = RESAMPLES,
    seed: Seed = 0,
) -> Forecast:
    """A point for each n in `ns` from the scores of `samples` (n_items, n_samples), NaN = unread, of each of `items`.

    `n_labelled` items are to be judged in the end, at `call_cost` a call (None: unknown).  Undefined where the pilot's
    own alignment is, where no item has two read samples, or where samples agree no better within an item than between
    items (reliability not above 0).  UsageError for an n below 1.
    """
    if any(n < 1 for n in ns):
        raise UsageError(f"The numbers of samples must be at least 1, not {min(ns)}.")
    data = paired(np.atleast_2d(np.asarray(samples, dtype=np.float64)).T, items)
    means = Paired(mean_defined(data.scores.T)[None, :], data.items)
    own = alignments(means, measure, level_values(means, measure))[0]
    reliability, n_read = single_call_reliability(data, measure.level), _samples_read(data)
    values: list[float | None] = [None] * len(ns)
    intervals: list[Interval | None] = [None] * len(ns)
    if not (reason := own.reason or _unpredictable(reliability)):
        at = expected_alignment(np.array([own.value]), n_read, np.array([reliability]), ns)[0]
        values = at.tolist()
        if data.items.n_sources >= 2 and resamples > 0:

            def forecast(counts: FloatArray) -> FloatArray:
                """Alignment and reliability move together."""
                aligned = resampled_values(means, counts, measure)[:, 0]
                return expected_alignment(aligned, n_read, reliabilities(data, counts, measure.level), ns)

            spread = spread_over_sources(
                forecast,
                at,
                np.repeat(sources_behind(means), len(ns)),
                data.items.n_sources,
                np.random.default_rng(seed),
                resamples=resamples if measure.level == "system" else 0,
            )
            intervals = [spread.interval(k) for k in range(len(ns))]
    points = tuple(
        ForecastPoint(n, value, interval, n * n_labelled, None if call_cost is None else n * n_labelled * call_cost)
        for n, value, interval in zip(ns, values, intervals, strict=True)
    )
    n_items = int((~np.isnan(means.scores)).sum())
    return Forecast(measure.statistic, measure.level, n_items, n_labelled, points, reason)


def _unpredictable(reliability: float) -> str:
    if np.isnan(reliability):
        return NO_REPEATED_SAMPLES
    if reliability <= 0:
        return f"the samples tell nothing about the items (reliability {reliability:.2f}): try more items or samples"
    return ""


def _samples_read(data: Paired) -> float:
    """Mean number of read samples of the items that have any."""
    read = (~np.isnan(data.scores)).sum(axis=0)
    return float(read[read > 0].mean()) if (read > 0).any() else 1.0


def expected_alignment(r: FloatArray, n_measured: float, reliability: FloatArray, ns: Sequence[int]) -> FloatArray:
    """(rows, n's) what `r` (rows,), measured with the mean of `n_measured` samples, becomes with the mean of each n.

    r_n = r_inf · √(n·rel / (1 + (n−1)·rel)), within [-1, 1]; r_inf follows from the measured r.  NaN where
    `reliability` (rows,) of a single call is not above 0.
    """
    rel = np.where(reliability > 0, reliability, np.nan)[:, None]
    n = np.asarray(ns, dtype=np.float64)[None, :]
    factor = (n / (1 + (n - 1) * rel)) / (n_measured / (1 + (n_measured - 1) * rel))
    return np.clip(r[:, None] * np.sqrt(factor), -1.0, 1.0)


# ── reliability of a single call, with other sources ──────────────────────────────────────────────────────────


def single_call_reliability(data: Paired, level: Level) -> float:
    """ICC(1) of the rows of `data`, one a call, at `level`; NaN = undefined.

    1 = every call gives an item the same, 0 or below = calls tell nothing about items.  By one-way analysis of variance
    (Shrout and Fleiss 1979): (MSB − MSW) / (MSB + (k₀ − 1)·MSW) with the mean squares between and within items and
    k₀ = (N − Σk_i²/N) / (n − 1), the number of calls an item when all have equally many.  Items with one call do not
    count.  Undefined with fewer than 2 items left or when all calls are equal.
    """
    once = np.ones((1, data.items.n_sources))
    return float(reliabilities(data, once, level)[0]) if data.items.n_sources else np.nan


def reliabilities(data: Paired, counts: FloatArray, level: Level) -> FloatArray:
    """(rows,) ICC(1) under `counts` (resamples, n_sources), NaN = undefined."""
    if level == "system":
        return _between_systems(data, counts)
    by_source = data.items.sums_by_source(_item_parts(data.scores[None])[:, 0])
    if level == "dataset":
        return _icc(by_source @ counts.T)
    return _within_sources(by_source, counts)


def _item_parts(scores: FloatArray) -> FloatArray:
    """(6, rows, units) of `scores` (rows, n_calls, units): what the analysis of variance adds up over units.

    1, k, k², k·mean, k·mean² and the squared deviations from the mean, of the k read calls; all 0 below 2 calls.
    """
    present = ~np.isnan(scores)
    size = present.sum(axis=1).astype(np.float64)
    kept = size >= 2
    centre = scores[present].mean() if present.any() else 0.0
    filled = np.where(present, scores - centre, 0.0)
    mean = filled.sum(axis=1) / np.maximum(size, 1.0)
    within = np.where(present, (filled - mean[:, None]) ** 2, 0.0).sum(axis=1)
    parts = np.stack([np.ones_like(size), size, size**2, size * mean, size * mean**2, within])
    return np.asarray(parts * kept, dtype=np.float64)


def _icc(added: FloatArray) -> FloatArray:
    """ICC(1) from the sums over units of `_item_parts` (6, rows)"""
    units, calls, squares, sums, powers, within = added
    total = np.maximum(calls, 1.0)
    return _ratio_of_squares(powers - sums**2 / total, units - 1, calls - squares / total, within, calls - units)


def _within_sources(by_source: FloatArray, counts: FloatArray) -> FloatArray:
    """ICC(1) between the items of a source, pooled over sources; `by_source` is (6, n_sources)."""
    units, calls, squares, sums, powers, within = by_source
    total = np.maximum(calls, 1.0)
    between = counts @ (powers - sums**2 / total)
    steps = counts @ np.maximum(units - 1, 0.0)
    sizes = counts @ np.where(units > 1, calls - squares / total, 0.0)
    return _ratio_of_squares(between, steps, sizes, counts @ within, counts @ (calls - units))


def _between_systems(data: Paired, counts: FloatArray) -> FloatArray:
    """ICC(1) of the systems' means, a call being the mean of one call of each item."""
    parts = data.items.sums_by_cell(np.nan_to_num(data.scores)), data.items.sums_by_cell(data.scored)
    sums, sizes = (np.einsum("rs,ksy->rky", counts, part) for part in parts)
    means = np.where(sizes > 0, sums, np.nan) / np.maximum(sizes, 1.0)
    return _icc(_item_parts(means).sum(axis=2))


def _ratio_of_squares(
    between: FloatArray, steps: FloatArray, sizes: FloatArray, within: FloatArray, spare: FloatArray
) -> FloatArray:
    """(MSB − MSW) / (MSB + (k₀ − 1)·MSW) with MSB = between / steps, MSW = within / spare, k₀ = sizes / steps."""
    defined = (steps > 0) & (spare > 0)
    steps, spare = np.where(defined, steps, 1.0), np.where(defined, spare, 1.0)
    msb, msw, k0 = np.maximum(between, 0.0) / steps, within / spare, sizes / steps
    denominator = msb + (k0 - 1.0) * msw
    defined &= denominator > 0
    return np.where(defined, msb - msw, np.nan) / np.where(defined, denominator, 1.0)
