"""Labelled items with the scores of all candidates, in the order every level and resample works on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import FloatArray, IntArray


@dataclass(frozen=True)
class Paired:
    """Labelled items only, sorted by source: what every level and every resample works on.

    scores: (n_candidates, n_items), NaN = unscored.  labels: (n_items,).  sources, systems: (n_items,) codes
    0..n_sources-1 and 0..n_systems-1 without gaps; sources ascend.
    """

    scores: FloatArray
    labels: FloatArray
    sources: IntArray
    systems: IntArray
    n_sources: int
    n_systems: int

    @property
    def complete(self) -> bool:
        """Whether every candidate has a score for every item."""
        return not bool(np.isnan(self.scores).any())

    @property
    def scored(self) -> FloatArray:
        """(n_candidates, n_items): 1 where the candidate has a score, else 0."""
        return (~np.isnan(self.scores)).astype(np.float64)

    def one(self, candidate: int) -> Paired:
        """The same items for a single candidate."""
        return replace(self, scores=self.scores[candidate : candidate + 1])


def paired(
    scores: ArrayLike, labels: ArrayLike, source_codes: ArrayLike | None = None, system_codes: ArrayLike | None = None
) -> Paired:
    """Keep the labelled items, sort them by source, close the gaps in the codes.

    `scores` is (n_candidates, n_items) or (n_items,); without `source_codes` every item is a source of its own,
    without `system_codes` all items come from one system.  ValueError when lengths differ, UsageError for ±inf.
    """
    matrix, y = np.atleast_2d(np.asarray(scores, dtype=np.float64)), np.asarray(labels, dtype=np.float64)
    n = y.size
    sources = np.arange(n) if source_codes is None else np.asarray(source_codes)
    systems = np.zeros(n, dtype=np.intp) if system_codes is None else np.asarray(system_codes)
    if matrix.ndim != 2 or y.ndim != 1 or not matrix.shape[1] == n == sources.size == systems.size:
        shapes = f"scores {matrix.shape}, labels {y.shape}, sources {sources.shape}, systems {systems.shape}"
        raise ValueError(f"one entry per item is needed on every side: {shapes}")
    if np.isinf(matrix).any() or np.isinf(y).any():
        raise UsageError("Scores and labels must be finite numbers; infinity came. Leave such items unscored instead.")
    kept = np.flatnonzero(~np.isnan(y))
    kept = kept[np.argsort(sources[kept], kind="stable")]
    source_names, source_index = np.unique(sources[kept], return_inverse=True)
    system_names, system_index = np.unique(systems[kept], return_inverse=True)
    return Paired(
        np.ascontiguousarray(matrix[:, kept]), y[kept], source_index, system_index, source_names.size, system_names.size
    )


def sums_by(codes: IntArray, values: FloatArray, size: int) -> FloatArray:
    """(rows, size) sums of `values` (rows, n_items) by `codes` (n_items,) in 0..size-1."""
    sums = np.empty((values.shape[0], size))
    for row, own in zip(values, sums, strict=True):
        own[:] = np.bincount(codes, weights=row, minlength=size)
    return sums
