"""Compute Pearson, Spearman and Kendall correlations of scores with labels: over all items, per source, or per system.

`pearson`, `spearman` and `kendall` take `scores` (..., n) and `labels` that broadcast against them, and return
coefficients (...):

- A coefficient lies in [-1, 1]. It is positive if scores rise with labels.
- NaN is a missing value. Each row uses the positions where score and label are known.
- A coefficient is NaN with fewer than 2 such positions, or if all scores or all labels are equal.
- Values are not rounded before ranking. Infinite values raise UsageError.

Kendall is tau-b (Kendall 1945). The levels are those of Liu et al. (2023, AutoCalibrate, section 4) and Fu et al.
(2023):

- *dataset*: one coefficient over all items.
- *sample* (or summary level, document level): the mean of one coefficient per source. A source with an undefined
  coefficient is left out and counted.
- *system*: one coefficient over the systems' mean scores and mean labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Level,
    Measure,
    Statistic,
)

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

PAIRWISE_LIMIT = 192
"""Largest n for which tau-b compares all pairs of every row at once; longer rows are counted by sorting."""

BLOCK_ELEMENTS = 2_000_000
"""Most elements of an intermediate array: bounds memory and keeps blocks near the processor's cache."""

TIE_TOLERANCE = 1e-13
"""System means that differ by less than this share of the largest differ only by rounding."""

NO_LABEL = "no item has a label"
NO_PAIR = "no item has both a score and a label"


def correlate(scores: ArrayLike, labels: ArrayLike, statistic: Statistic) -> FloatArray:
    """Compute the named statistic of every row of `scores` (..., n) with `labels` (n,) or (..., n); NaN = undefined."""
    return {"pearson": pearson, "spearman": spearman, "kendall": kendall}[statistic](scores, labels)


def pearson(scores: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Compute the Pearson correlation r = Σ(x−x̄)(y−ȳ) / √(Σ(x−x̄)² · Σ(y−ȳ)²) of every row.

    Very large and very small values don't overflow or vanish.
    """
    return _product_moment(*pair(scores, labels))


def spearman(scores: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Compute Spearman's rho of every row: Pearson r of the average ranks (ties share the mean of their ranks)."""
    x, y = pair(scores, labels)
    return _product_moment(average_ranks(x), average_ranks(y))


def kendall(scores: ArrayLike, labels: ArrayLike) -> FloatArray:
    """Compute Kendall's tau-b of every row: (C − D) / √(P_x · P_y).

    C and D are the numbers of concordant and discordant pairs. P_x is the number of pairs not tied in the scores, and
    P_y the number of pairs not tied in the labels.

    Rows longer than `PAIRWISE_LIMIT` take O(n log n) time, shorter rows O(n²).
    """
    x, y = np.broadcast_arrays(*pair(scores, labels))
    values, n = np.full(x.shape[:-1], np.nan), x.shape[-1]
    if n < 2 or not x.size:
        return values
    x, y = x.reshape(-1, n), y.reshape(-1, n)
    if n > PAIRWISE_LIMIT:
        from scipy.stats import kendalltau

        for row, missing in enumerate(np.isnan(x)):
            a, b = x[row, ~missing], y[row, ~missing]
            if a.size >= 2 and a.min() < a.max() and b.min() < b.max():
                values.flat[row] = kendalltau(a, b, method="asymptotic").statistic
        return values
    step = max(1, BLOCK_ELEMENTS // n**2)
    for block in (slice(start, start + step) for start in range(0, len(x), step)):
        signs = _pair_signs(x[block]), _pair_signs(y[block])
        # float32 adds up to PAIRWISE_LIMIT² / 2 < 2²⁴ units exactly
        balance = np.einsum("rp,rp->r", *signs).astype(np.float64)
        untied = [np.count_nonzero(side, axis=-1).astype(np.float64) for side in signs]
        values.flat[block] = clipped_ratio(balance, np.sqrt(untied[0] * untied[1]))
    return values


def _pair_signs(x: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return sign(x_i − x_j) of all pairs, (..., n(n−1)/2), 0 for tied or missing."""
    i, j = np.triu_indices(x.shape[-1], 1)
    left, right = x[..., i], x[..., j]
    return np.subtract(left > right, left < right, dtype=np.float32)


def average_ranks(values: ArrayLike) -> FloatArray:
    """Rank values from 1 along the last axis; ties share their mean rank, NaN stays NaN and is not counted."""
    x = np.asarray(values, dtype=np.float64)
    order = np.argsort(x, axis=-1)  # NaN sorts last
    ordered = np.take_along_axis(x, order, axis=-1)
    opens = np.ones(x.shape, dtype=np.bool_)  # a tie starts here; no tie crosses the end of a row
    opens[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    starts = np.flatnonzero(opens)
    sizes = np.diff(starts, append=x.size)
    places = np.repeat(starts % max(x.shape[-1], 1) + (sizes + 1) / 2.0, sizes)
    ranks = np.empty_like(x)
    np.put_along_axis(ranks, order, places.reshape(x.shape), axis=-1)
    return np.where(np.isnan(x), np.nan, ranks)


def pair(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return `scores` and `labels` as float64 arrays; where either value is missing, both are NaN.

    Positions without a label are dropped if `labels` is (n,).  Raises UsageError for ±inf.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    require_finite(x, y)
    if y.ndim == 1 and np.isnan(y).any():
        kept = ~np.isnan(y)
        x, y = x[..., kept], y[kept]
    # contiguous rows fix the order of sums, so that a row's value does not depend on its neighbours
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if not (np.isnan(x).any() or np.isnan(y).any()):
        return x, y
    missing = np.isnan(x) | np.isnan(y)
    return np.where(missing, np.nan, x), np.where(missing, np.nan, y)


def require_finite(*sides: FloatArray) -> None:
    """Raise UsageError if an array contains ±inf. NaN is allowed: it is a missing value."""
    if any(np.isinf(side).any() for side in sides):
        raise UsageError("Scores and labels must be finite numbers; got infinity. Leave these items unscored.")


def present(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both (n,) arrays without the positions where either is NaN."""
    x, y = pair(scores, labels)
    kept = ~np.isnan(x)
    return x[kept], y[kept]


def _product_moment(x: FloatArray, y: FloatArray) -> FloatArray:
    shape = np.broadcast_shapes(x.shape, y.shape)
    if shape[-1] < 2 or 0 in shape:
        return np.full(shape[:-1], np.nan)
    dx, dy = deviations(x), deviations(y)
    power = (dx * dx).sum(axis=-1) * (dy * dy).sum(axis=-1)
    return clipped_ratio((dx * dy).sum(axis=-1), np.sqrt(power))


def deviations(x: FloatArray) -> FloatArray:
    """Return deviations from the row mean, divided by the largest deviation in the row.

    Missing values become 0, as do all values of a constant row.
    """
    present = ~np.isnan(x)
    count = np.maximum(present.sum(axis=-1, keepdims=True), 1)
    scale = np.fmax.reduce(np.abs(x), axis=-1, keepdims=True)  # scale first: sums of huge scores must not overflow
    scaled = np.where(present, x / np.where(scale > 0, scale, 1.0), 0.0)
    deviations = np.where(present, scaled - scaled.sum(axis=-1, keepdims=True) / count, 0.0)
    constant = ~(np.fmax.reduce(x, axis=-1, keepdims=True) > np.fmin.reduce(x, axis=-1, keepdims=True))
    largest = np.abs(deviations).max(axis=-1, keepdims=True)
    return np.where(constant, 0.0, deviations / np.where(largest > 0, largest, 1.0))


def clipped_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return numerator / denominator clipped to [-1, 1]; NaN (undefined) if the denominator is 0."""
    defined = denominator > 0
    value = np.where(defined, numerator, np.nan) / np.where(defined, denominator, 1.0)
    return np.clip(value, -1.0, 1.0)


# ── the items of a measurement ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class LabelledItems:
    """Labels of items, with their sources and systems, as arrays (n,).

    Attributes:
        positions: Indices of the items in `GoldenSet.items`.
        sources: Whole numbers, equal for items with the same source.
        systems: Whole numbers, equal for items with the same system.
    """

    positions: IntArray
    labels: FloatArray
    sources: IntArray
    systems: IntArray

    @classmethod
    def of(cls, golden: GoldenSet, aspect: str, positions: Sequence[int] | IntArray | None = None) -> LabelledItems:
        """Select the items of `golden` at `positions` (None: all), with their labels on `aspect`."""
        at = np.arange(len(golden.items)) if positions is None else np.asarray(positions, dtype=np.intp)
        codes = golden.source_codes[at], golden.system_codes[at]
        return cls(at, golden.labels(aspect)[at], *codes)

    @classmethod
    def from_arrays(
        cls, labels: ArrayLike, sources: ArrayLike | None = None, systems: ArrayLike | None = None
    ) -> LabelledItems:
        """Make items from (n,) arrays.

        Without `sources` each item is its own source; without `systems` all items share one system.
        """
        y = np.asarray(labels, dtype=np.float64)
        own = np.arange(y.size)
        return cls(
            own,
            y,
            own if sources is None else np.asarray(sources),
            np.zeros_like(own) if systems is None else np.asarray(systems),
        )

    @property
    def n(self) -> int:
        return int(self.labels.size)

    def take(self, chosen: IntArray | BoolArray) -> LabelledItems:
        """Return the items at positions `chosen`, or where the mask `chosen` is true."""
        return LabelledItems(self.positions[chosen], self.labels[chosen], self.sources[chosen], self.systems[chosen])

    def labelled(self, labels: FloatArray) -> LabelledItems:
        """Return these items with `labels` (n,) instead of their own labels."""
        return replace(self, labels=labels)

    @property
    def usual_level(self) -> Level:
        """Return "sample" if enough sources have enough items, otherwise "dataset".

        Sample level requires at least 3 sources that each have at least 3 items and differing labels. Together, all
        such sources must have at least half of the items.
        """
        differing = [
            places[np.ptp(self.by_source.labels[places], axis=1) > 0]
            for _, places in self.by_source.sizes
            if places.shape[1] >= 3
        ]
        often = sum(map(len, differing)) >= 3 and 2 * sum(own.size for own in differing) >= self.by_source.n
        return "sample" if often else "dataset"

    # ── sorted by source: what every level and every resample works on ───────────────────────────────────────

    @cached_property
    def by_source(self) -> LabelledItems:
        """Labelled items sorted by source.

        `positions` are their places in this record; sources and systems are numbered 0, 1, 2, ….
        """
        kept = np.flatnonzero(~np.isnan(self.labels))
        kept = kept[np.argsort(self.sources[kept], kind="stable")]
        sources, systems = (np.unique(side[kept], return_inverse=True)[1] for side in (self.sources, self.systems))
        return LabelledItems(kept, self.labels[kept], sources, systems)

    @cached_property
    def n_sources(self) -> int:
        """Number of sources.  This and the members below need items sorted by source."""
        return int(self.sources.max(initial=-1)) + 1

    @cached_property
    def n_systems(self) -> int:
        return int(self.systems.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> list[tuple[IntArray, IntArray]]:
        """Sources with at least 2 items, grouped by their number of items.

        Each group has the codes of its sources (k,), and the positions of their items (k, size).
        """
        sizes = np.bincount(self.sources)
        starts = np.cumsum(sizes) - sizes
        groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes >= 2])]
        return [(own, starts[own, None] + np.arange(sizes[own[0]])) for own in groups]

    def sums_by_source(self, values: FloatArray) -> FloatArray:
        """Return the sums of `values` (rows, n) by source, as an array (rows, n_sources)."""
        return _sums(self.sources, values, self.n_sources)

    def sums_by_cell(self, values: FloatArray) -> FloatArray:
        """Return the sums of `values` (rows, n) by source and system, as an array (rows, n_sources, n_systems)."""
        cells = self.sources * self.n_systems + self.systems
        return _sums(cells, values, self.n_sources * self.n_systems).reshape(-1, self.n_sources, self.n_systems)


def _sums(codes: IntArray, values: FloatArray, size: int) -> FloatArray:
    sums = np.empty((values.shape[0], size))
    for row, own in zip(values, sums, strict=True):
        own[:] = np.bincount(codes, weights=row, minlength=size)
    return sums


@dataclass(frozen=True, eq=False)
class Paired:
    """The scores of all candidates, paired with the labelled items.

    `scores` is (n_candidates, n_items), NaN = unscored.  Its columns are in the order of `items`, sorted by source.
    """

    scores: FloatArray
    items: LabelledItems

    @cached_property
    def scored(self) -> FloatArray:
        """An array (n_candidates, n_items) with 1 where the candidate has a score, and 0 elsewhere."""
        return (~np.isnan(self.scores)).astype(np.float64)

    @property
    def weights(self) -> FloatArray:
        """Weights for sums of labels: `scored`, or one row of ones if all candidates scored all items."""
        return self.scored if not self.scored.all() else np.ones((1, self.items.n))

    def scored_only(self, candidate: int) -> Paired:
        """Return the items that one candidate scored, with its scores only; sources and systems keep their codes."""
        kept = ~np.isnan(self.scores[candidate])
        items = self.items if kept.all() else self.items.take(kept)
        return Paired(self.scores[candidate : candidate + 1, kept], items)


def paired(scores: ArrayLike, items: LabelledItems) -> Paired:
    """Return `scores` (n_candidates, n_items) or (n_items,) together with the labelled items, both sorted by source.

    Raises ValueError unless there is one score per item, and UsageError for ±inf.
    """
    matrix = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    if matrix.shape[1] != items.n:
        raise ValueError(f"scores must have one entry per item; got shape {matrix.shape} for {items.n} items")
    require_finite(matrix, items.labels)
    return Paired(np.ascontiguousarray(matrix[:, items.by_source.positions]), items.by_source)


FOLDS = 5


def source_folds(sources: IntArray, n_folds: int = FOLDS, seed: int = 0) -> IntArray:
    """Assign whole sources to folds at random; return the fold of each item, (n,)."""
    names, of_item = np.unique(sources, return_inverse=True)
    return np.asarray((np.random.default_rng(seed).permutation(names.size) % n_folds)[of_item], dtype=np.intp)


# ── values at the three levels ───────────────────────────────────────────────────────────────────────────────


def level_values(data: Paired, measure: Measure) -> tuple[FloatArray, FloatArray | None]:
    """Return the alignments of all candidates at the level of `measure`; NaN for an undefined alignment.

    Returns:
        Alignments (n_candidates,), and coefficients by source (n_candidates, n_sources). At sample level, an alignment
            is the mean of its coefficients; at other levels, the second value is None.
    """
    if measure.level == "sample":
        by_source = coefficients_by_source(data, measure.statistic)
        return mean_defined(by_source), by_source
    if measure.level == "dataset":
        return correlate(data.scores, data.items.labels, measure.statistic), None
    return correlate(*system_means(data), measure.statistic), None


def alignment_values(scores: ArrayLike, items: LabelledItems, measure: Measure) -> FloatArray:
    """Compute alignments (n_candidates,) of `scores` (n_candidates, n_items) without intervals; NaN = undefined."""
    return level_values(paired(scores, items), measure)[0]


def coefficients_by_source(data: Paired, statistic: Statistic) -> FloatArray:
    """Compute the coefficients of each source, (n_candidates, n_sources), ordered by source number.

    A coefficient is NaN if the source has constant scores or labels, or fewer than 2 scored items.
    """
    values = np.full((data.scores.shape[0], data.items.n_sources), np.nan)
    for sources, places in data.items.sizes:
        values[:, sources] = correlate(data.scores[:, places], data.items.labels[places], statistic)
    return values


def mean_defined(values: FloatArray) -> FloatArray:
    """Average along the last axis, skipping NaN; return NaN if all values are NaN."""
    present = ~np.isnan(values)
    count = present.sum(axis=-1)
    totals: FloatArray = np.where(present, values, 0.0).sum(axis=-1)
    return np.asarray(np.where(count > 0, totals, np.nan) / np.maximum(count, 1), dtype=np.float64)


def system_means(data: Paired) -> tuple[FloatArray, FloatArray]:
    """Return the mean scores and the mean labels of the systems, each (n_candidates, n_systems).

    The means are over the items that a candidate scored; NaN for a system without such items. If
    every item has a score, the labels have only one row.
    """
    counts, totals, labels = (
        _sums(data.items.systems, side, data.items.n_systems)
        for side in (data.weights, np.nan_to_num(data.scores), data.weights * data.items.labels)
    )
    return rounded_means(totals, counts), rounded_means(labels, counts)


def rounded_means(totals: FloatArray, counts: FloatArray) -> FloatArray:
    """Return totals / counts, rounded so that equal means compare as equal; NaN if the count is 0."""
    means = np.where(counts > 0, totals, np.nan) / np.maximum(counts, 1.0)
    if means.shape[-1] == 0:
        return means
    # sums of the same numbers in another order differ in their last bits
    grid = np.fmax.reduce(np.abs(means), axis=-1, keepdims=True) * TIE_TOLERANCE
    grid = np.where(grid > 0, grid, 1.0)
    return np.where(np.isnan(means), np.nan, np.rint(means / grid) * grid)


def alignments(data: Paired, measure: Measure, values: FloatArray, by_source: FloatArray | None) -> list[Alignment]:
    """Make an Alignment without an interval for each candidate, from the results of `level_values`.

    An undefined value is None, with its reason.
    """
    by_candidate, level = [], measure.level
    for candidate, scored in enumerate(~np.isnan(data.scores)):
        n, defined, value = int(scored.sum()), np.empty(0, dtype=np.bool_), float(values[candidate])
        if by_source is not None:
            defined = ~np.isnan(by_source[candidate])
            n = int((scored & defined[data.items.sources]).sum())
        elif level == "system":
            n = np.unique(data.items.systems[scored]).size
        groups = int(defined.sum()), int((~defined).sum())
        bare = Alignment(measure.statistic, level, value, n, *groups, int((~scored).sum()))
        if np.isnan(value):
            bare = replace(bare, value=None, reason=_reason(data, candidate, level))
        by_candidate.append(bare)
    return by_candidate


def _reason(data: Paired, candidate: int, level: Level) -> str:
    """Say why the alignment of a candidate is undefined at `level`."""
    scored = data.scored_only(candidate)
    labels = scored.items.labels
    if not data.items.n:
        return NO_LABEL
    if labels.size < 2:
        return f"fewer than 2 items have both a score and a label ({labels.size} of {data.items.n} labelled items)"
    if level == "sample":
        return "no source has enough items with varying scores and labels"
    if level == "system":
        if np.unique(scored.items.systems).size < 2:
            return "fewer than 2 systems have items with scores"
        labels = system_means(scored)[1][0]
    side = "labels" if np.nanmin(labels) == np.nanmax(labels) else "scores"
    return f"all {'system means of the ' if level == 'system' else ''}{side} are equal"
