"""The items that take part in a measurement, with their labels and groups; and the scores of candidates on them.

Every statistic takes scores and `LabelledItems`, made once from a golden set or from arrays.  What they are grouped by
is worked out once and kept with them, so that neither candidates nor resamples group anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.records import FloatArray, GoldenSet, IntArray, Level
from core.stats.correlation import require_finite

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


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
        return cls(
            np.arange(y.size),
            y,
            np.arange(y.size) if sources is None else np.asarray(sources),
            np.zeros(y.size, dtype=np.intp) if systems is None else np.asarray(systems),
        )

    @property
    def n(self) -> int:
        return int(self.labels.size)

    def take(self, chosen: IntArray | BoolArray) -> LabelledItems:
        """The items at places `chosen`, or where it is true."""
        parts = {name: getattr(self, name)[chosen] for name in ("positions", "labels", "sources", "systems")}
        return replace(self, **parts)

    def labelled(self, labels: FloatArray) -> LabelledItems:
        """The same items under other labels (n,)."""
        return replace(self, labels=labels)

    @property
    def usual_level(self) -> Level:
        """Sample level when at least 3 sources, with most of the labelled items, hold 3 or more with differing labels;
        else dataset.  Ranks say nothing across sources, so for them sample level wherever a source has two that differ.
        """
        if self.ranks and any(
            np.ptp(self.by_source.labels[group.items], axis=1).any() for group in self.by_source.sizes
        ):
            return "sample"
        n_sources, n_items = 0, 0
        for group in self.by_source.sizes:
            labels = self.by_source.labels[group.items]
            if labels.shape[1] >= 3:
                n_differing = int((labels.max(axis=1) > labels.min(axis=1)).sum())
                n_sources, n_items = n_sources + n_differing, n_items + n_differing * labels.shape[1]
        return "sample" if n_sources >= 3 and 2 * n_items >= self.by_source.labels.size else "dataset"

    @cached_property
    def by_source(self) -> BySource:
        """The labelled ones, sorted by source.  UsageError for an infinite label."""
        require_finite(self.labels)
        kept = np.flatnonzero(~np.isnan(self.labels))
        kept = kept[np.argsort(self.sources[kept], kind="stable")]
        sources, source_index = np.unique(self.sources[kept], return_inverse=True)
        systems, system_index = np.unique(self.systems[kept], return_inverse=True)
        return BySource(kept, self.labels[kept], source_index, system_index, sources.size, systems.size)


class SizeGroup(NamedTuple):
    """Sources of one size: `sources` (n_groups,), and `items` (n_groups, size) the places of what they hold."""

    sources: IntArray
    items: IntArray


@dataclass(frozen=True, eq=False)
class BySource:
    """Labelled items sorted by source: what every level and every resample works on.

    `order` (n,) are their places among the items they come from; `sources` and `systems` (n,) codes 0..n_sources-1 and
    0..n_systems-1; sources ascend.
    """

    order: IntArray
    labels: FloatArray
    sources: IntArray
    systems: IntArray
    n_sources: int
    n_systems: int

    @cached_property
    def sizes(self) -> tuple[SizeGroup, ...]:
        """The sources by how many items they hold, from 2 up: equal sizes are correlated in one go."""
        sizes = np.bincount(self.sources, minlength=self.n_sources)
        starts = np.cumsum(sizes) - sizes
        groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes[sizes >= 2])]
        return tuple(SizeGroup(own, starts[own, None] + np.arange(sizes[own[0]])) for own in groups)

    def take(self, kept: BoolArray) -> BySource:
        """The items where `kept` is true; sources and systems keep their codes."""
        parts = {name: getattr(self, name)[kept] for name in ("order", "labels", "sources", "systems")}
        return replace(self, **parts)

    def sums_by_source(self, values: FloatArray) -> FloatArray:
        """(rows, n_sources) sums of `values` (rows, n)."""
        return _sums(self.sources, values, self.n_sources)

    def sums_by_cell(self, values: FloatArray) -> FloatArray:
        """(rows, n_sources, n_systems) sums of `values` (rows, n) of each system's items in each source."""
        cells = self.sources * self.n_systems + self.systems
        return _sums(cells, values, self.n_sources * self.n_systems).reshape(-1, self.n_sources, self.n_systems)

    def sums_by_system(self, values: FloatArray) -> FloatArray:
        """(rows, n_systems) sums of `values` (rows, n)."""
        return _sums(self.systems, values, self.n_systems)


@dataclass(frozen=True, eq=False)
class Paired:
    """`scores` (n_candidates, n_items) of all candidates, NaN = unscored, next to the labelled `items`."""

    scores: FloatArray
    items: BySource

    @cached_property
    def scored(self) -> FloatArray:
        """(n_candidates, n_items): 1 where the candidate has a score, else 0."""
        return (~np.isnan(self.scores)).astype(np.float64)

    @cached_property
    def complete(self) -> bool:
        """Whether every candidate has a score for every item."""
        return not bool(np.isnan(self.scores).any())

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
    return Paired(np.ascontiguousarray(matrix[:, items.by_source.order]), items.by_source)


def _sums(codes: IntArray, values: FloatArray, size: int) -> FloatArray:
    sums = np.empty((values.shape[0], size))
    for row, own in zip(values, sums, strict=True):
        own[:] = np.bincount(codes, weights=row, minlength=size)
    return sums


FOLDS = 5


def source_folds(sources: IntArray, n_folds: int = FOLDS, seed: int = 0) -> IntArray:
    """(n,) a fold for each item: sources shuffled and dealt out, at most as many folds as sources."""
    names, of_item = np.unique(sources, return_inverse=True)
    dealt = np.random.default_rng(seed).permutation(np.arange(names.size) % max(1, min(n_folds, names.size)))
    return np.asarray(dealt[of_item], dtype=np.intp)
