"""The items of a measurement, and values of candidates' scores on them at dataset, sample and system level.

Every statistic takes scores and `LabelledItems`, made once from a golden set or from arrays.  What they are grouped by
is worked out once and kept with them, so that neither candidates nor resamples group anew.

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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import LEVELS, Alignment, FloatArray, GoldenSet, IntArray, Level, Measure, Statistic
from core.stats import claims
from core.stats.correlation import correlate, require_finite

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

TIE_TOLERANCE = 1e-13
"""System means nearer to each other than this share of the largest one differ only by the rounding of their sums."""


@dataclass(frozen=True, eq=False)
class LabelledItems:
    """Items as arrays: `positions` (n,) into `GoldenSet.items`, `labels` (n,) with NaN for none, and (n,) codes.

    Codes are any whole numbers: equal codes are one source, or one system.  `ranks`: labels compare the items of one
    source alone.  ValueError when lengths differ.
    """

    positions: IntArray
    labels: FloatArray
    sources: IntArray
    systems: IntArray
    ranks: bool = False

    def __post_init__(self) -> None:
        shapes = [side.shape for side in (self.positions, self.labels, self.sources, self.systems)]
        if self.labels.ndim != 1 or len(set(shapes)) > 1:
            raise ValueError(f"one entry per item is needed on every side: {shapes}")

    @classmethod
    def of(cls, golden: GoldenSet, aspect: str, positions: Sequence[int] | IntArray | None = None) -> LabelledItems:
        """The items of `golden` at `positions` (all of them otherwise), with their labels on `aspect`."""
        at = np.arange(len(golden.items)) if positions is None else np.asarray(positions, dtype=np.intp)
        codes = golden.source_codes[at], golden.system_codes[at]
        return cls(at, golden.labels(aspect)[at], *codes, golden.aspects[aspect].ranks)

    @classmethod
    def from_arrays(
        cls, labels: ArrayLike, sources: ArrayLike | None = None, systems: ArrayLike | None = None
    ) -> LabelledItems:
        """From (n,) arrays.  Without `sources` each item is its own source, without `systems` all come from one."""
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
        """The items at places `chosen`, or where it is true."""
        return LabelledItems(
            self.positions[chosen], self.labels[chosen], self.sources[chosen], self.systems[chosen], self.ranks
        )

    def labelled(self, labels: FloatArray) -> LabelledItems:
        """The same items under other labels (n,)."""
        return replace(self, labels=labels)

    @property
    def usual_level(self) -> Level:
        """Sample level when at least 3 sources, with most of the labelled items, hold 3 or more with differing labels;
        else dataset.  Ranks say nothing across sources, so for them sample level wherever a source has two that differ.
        """
        labels, least = self.by_source.labels, 2 if self.ranks else 3
        n_sources, n_items = 0, 0
        for _, places in self.by_source.sizes:
            if places.shape[1] >= least:
                n_differing = int(np.ptp(labels[places], axis=1).astype(np.bool_).sum())
                n_sources, n_items = n_sources + n_differing, n_items + n_differing * places.shape[1]
        often = n_sources >= 1 if self.ranks else n_sources >= 3 and 2 * n_items >= labels.size
        return "sample" if often else "dataset"

    # ── sorted by source: what every level and every resample works on ───────────────────────────────────────

    @cached_property
    def by_source(self) -> LabelledItems:
        """The labelled ones, sorted by source; `positions` are their places here, codes go from 0 without a gap.

        UsageError for an infinite label.
        """
        require_finite(self.labels)
        kept = np.flatnonzero(~np.isnan(self.labels))
        kept = kept[np.argsort(self.sources[kept], kind="stable")]
        sources, systems = (np.unique(side[kept], return_inverse=True)[1] for side in (self.sources, self.systems))
        return LabelledItems(kept, self.labels[kept], sources, systems)

    @cached_property
    def n_sources(self) -> int:
        """Sources of items that are sorted by source; so the other parts below."""
        return int(self.sources.max(initial=-1)) + 1

    @cached_property
    def n_systems(self) -> int:
        return int(self.systems.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> list[tuple[IntArray, IntArray]]:
        """Sources of one size from 2 up, (k,), and the places of what they hold, (k, size): correlated in one go."""
        sizes = np.bincount(self.sources)
        starts = np.cumsum(sizes) - sizes
        groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes >= 2])]
        return [(own, starts[own, None] + np.arange(sizes[own[0]])) for own in groups]

    def sums_by_source(self, values: FloatArray) -> FloatArray:
        """(rows, n_sources) sums of `values` (rows, n)."""
        return _sums(self.sources, values, self.n_sources)

    def sums_by_cell(self, values: FloatArray) -> FloatArray:
        """(rows, n_sources, n_systems) sums of `values` (rows, n) of each system's items in each source."""
        cells = self.sources * self.n_systems + self.systems
        return _sums(cells, values, self.n_sources * self.n_systems).reshape(-1, self.n_sources, self.n_systems)


def _sums(codes: IntArray, values: FloatArray, size: int) -> FloatArray:
    sums = np.empty((values.shape[0], size))
    for row, own in zip(values, sums, strict=True):
        own[:] = np.bincount(codes, weights=row, minlength=size)
    return sums


@dataclass(frozen=True, eq=False)
class Paired:
    """`scores` (n_candidates, n_items) of all candidates, NaN = unscored, next to labelled `items` sorted by source."""

    scores: FloatArray
    items: LabelledItems

    @cached_property
    def scored(self) -> FloatArray:
        """(n_candidates, n_items): 1 where the candidate has a score, else 0."""
        return (~np.isnan(self.scores)).astype(np.float64)

    @property
    def weights(self) -> FloatArray:
        """`scored`, or one row of 1 where nothing is unscored: what labels are counted with."""
        return self.scored if not self.scored.all() else np.ones((1, self.items.n))

    def scored_only(self, candidate: int) -> Paired:
        """A single candidate on the items it has a score for; sources and systems keep their codes."""
        kept = ~np.isnan(self.scores[candidate])
        items = self.items if kept.all() else self.items.take(kept)
        return Paired(self.scores[candidate : candidate + 1, kept], items)


def paired(scores: ArrayLike, items: LabelledItems) -> Paired:
    """`scores` (n_candidates, n_items) or (n_items,) on the labelled items, sorted by source.

    ValueError when there is not one score an item, UsageError for ±inf.
    """
    matrix = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    if matrix.ndim != 2 or matrix.shape[1] != items.n:
        raise ValueError(f"one entry per item is needed on every side: scores {matrix.shape}, {items.n} items")
    require_finite(matrix)
    return Paired(np.ascontiguousarray(matrix[:, items.by_source.positions]), items.by_source)


FOLDS = 5


def source_folds(sources: IntArray, n_folds: int = FOLDS, seed: int = 0) -> IntArray:
    """(n,) a fold for each item: sources shuffled and dealt out, at most as many folds as sources."""
    names, of_item = np.unique(sources, return_inverse=True)
    return np.asarray((np.random.default_rng(seed).permutation(names.size) % n_folds)[of_item], dtype=np.intp)


# ── values at the three levels ───────────────────────────────────────────────────────────────────────────────


def level_values(data: Paired, measure: Measure) -> tuple[FloatArray, FloatArray | None]:
    """(n_candidates,) values at a level, NaN = undefined; at sample level with the coefficients they are means of.

    UsageError for an unknown level.
    """
    if measure.level == "sample":
        by_source = coefficients_by_source(data, measure.statistic)
        return mean_defined(by_source), by_source
    if measure.level == "dataset":
        return correlate(data.scores, data.items.labels, measure.statistic), None
    if measure.level == "system":
        return correlate(*system_means(data), measure.statistic), None
    raise UsageError(f"Unknown level {measure.level!r}: use {', '.join(LEVELS)}.")


def alignment_values(scores: ArrayLike, items: LabelledItems, measure: Measure) -> FloatArray:
    """(n_candidates,) values of `scores` (n_candidates, n_items) to rank by, NaN = undefined."""
    return level_values(paired(scores, items), measure)[0]


def coefficients_by_source(data: Paired, statistic: Statistic) -> FloatArray:
    """(n_candidates, n_sources) coefficient per source; columns are the labelled sources by code.

    NaN = left out: a constant side, or fewer than 2 items with a score.  Sources of equal size are stacked into one
    batched correlation.
    """
    values = np.full((data.scores.shape[0], data.items.n_sources), np.nan)
    for sources, places in data.items.sizes:
        values[:, sources] = correlate(data.scores[:, places], data.items.labels[places], statistic)
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
    counts, totals, labels = (
        _sums(data.items.systems, side, data.items.n_systems)
        for side in (data.weights, np.nan_to_num(data.scores), data.weights * data.items.labels)
    )
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


def alignments(data: Paired, measure: Measure, values: FloatArray, by_source: FloatArray | None) -> list[Alignment]:
    """One Alignment per candidate of `level_values`, without interval; value None with its reason where undefined."""
    by_candidate, level = [], measure.level
    for candidate, scored in enumerate(~np.isnan(data.scores)):
        value, used, n_groups, n_left_out = float(values[candidate]), scored, 0, 0
        if by_source is not None:
            defined = ~np.isnan(by_source[candidate])
            used = scored & defined[data.items.sources]
            n_groups, n_left_out = int(defined.sum()), int((~defined).sum())
        n = np.unique(data.items.systems[scored]).size if level == "system" else int(used.sum())
        bare = Alignment(measure.statistic, level, value, n, n_groups, n_left_out, int((~scored).sum()))
        if np.isnan(value):
            bare = replace(bare, value=None, reason=_reason(data, candidate, level))
        by_candidate.append(bare)
    return by_candidate


def _reason(data: Paired, candidate: int, level: Level) -> str:
    """Why a candidate has no value at `level`."""
    scored = data.scored_only(candidate)
    labels = scored.items.labels
    if not data.items.n:
        return claims.NO_LABEL
    if labels.size < 2:
        return claims.too_few_items(labels.size, data.items.n)
    if level == "sample":
        return claims.no_source(data.items.n_sources)
    if level == "system":
        if np.unique(scored.items.systems).size < 2:
            return claims.TOO_FEW_SYSTEMS
        labels = system_means(scored)[1][0]
    side = "labels" if np.nanmin(labels) == np.nanmax(labels) else "scores"
    return claims.constant(side, "mean" if level == "system" else "item")
