"""Alignments with their intervals, and the paired difference of two: over sources, in forms that hold with few of them.

How standard errors come about at each level, and what there is no interval for, stands in `core.stats.intervals`.  A p
is given from `LEAST_SOURCES` sources on; below there is the interval alone, `p` is None and `p_reason` says so.  At
sample level the sources are those with a coefficient, and the interval speaks about new sources judged by the same
systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.json_form import json_fields
from core.records import Alignment, FloatArray, Interval, Measure
from core.stats.claims import NO_INTERVAL, undefined_sides
from core.stats.intervals import Spread, spread_of
from core.stats.items import LabelledItems, Paired, paired
from core.stats.levels import alignments, level_values

RESAMPLES = 1_000
"""Resamples of sources behind an interval at system level; the other levels draw none."""

Seed = int | Sequence[int] | np.random.Generator
"""What `numpy.random.default_rng` takes: the same seed draws the same resamples."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Alignment of judge `a` minus alignment of judge `b`, both on the same items.

    `value` None is undefined, with `reason`.  `p` is two-sided, None where there is none, with `p_reason` (fewer than
    8 sources, say).  `n` counts the common items (labelled and scored by both).
    """

    value: float | None
    interval: Interval | None
    p: float | None
    n: int
    a: Alignment
    b: Alignment
    reason: str = ""
    p_reason: str = ""

    @property
    def reversed(self) -> Difference:
        """Alignment of `b` minus alignment of `a`."""
        interval = self.interval and replace(self.interval, low=-self.interval.high, high=-self.interval.low)
        return replace(self, value=None if self.value is None else -self.value, interval=interval, a=self.b, b=self.a)

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("a", "b"))


def align(
    scores: ArrayLike, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> Alignment:
    """The Alignment of one judge's `scores` (n_items,), NaN = unscored, with its interval; see `align_each`."""
    return align_each(np.asarray(scores, dtype=np.float64)[None, :], items, measure, resamples=resamples, seed=seed)[0]


def align_each(
    scores: ArrayLike, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> list[Alignment]:
    """One Alignment per row of `scores` (n_candidates, n_items), with its 95 % interval.

    A value is None with its reason where undefined; its interval also with fewer than 2 sources, or where nothing
    tells its spread.  `resamples` 0 leaves the intervals out; otherwise it matters at system level only, `seed` there
    and with over 400 sources.  ValueError when lengths differ, UsageError for ±inf or an unknown level or statistic.
    """
    return measured(paired(scores, items), measure, resamples, seed).alignments


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    items: LabelledItems,
    measure: Measure,
    *,
    resamples: int = RESAMPLES,
    seed: Seed = 0,
) -> Difference:
    """Alignment of `a` minus alignment of `b`, (n_items,) each, on the items both scored, with interval, two-sided p.

    For a change from before to after, `a` is after.  It tests the difference in *alignment*, not in scores.  Swapping
    a and b flips the sign of value and interval and keeps p.  There is no p under 8 sources, nor with `resamples` 0.
    """
    both = np.stack([np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)])
    data = paired(both, common_items(both, items))
    return difference_of(measured(data, measure, resamples, seed), 0, 1, data.items.labels.size)


def common_items(scores: FloatArray, items: LabelledItems) -> LabelledItems:
    """`items` with labels only where every row of `scores` (n_candidates, n_items) has a score."""
    missing = np.isnan(scores).any(axis=0)
    return items.labelled(np.where(missing, np.nan, items.labels)) if missing.any() else items


class Measured(NamedTuple):
    """Alignments with the spread behind their intervals; None where no interval can be had or none was asked for."""

    alignments: list[Alignment]
    spread: Spread | None


def measured(data: Paired, measure: Measure, resamples: int, seed: Seed) -> Measured:
    """`align_each` on paired data, with the spread for differences."""
    values = level_values(data, measure)
    bare = alignments(data, measure, values)
    if data.items.n_sources < 2 or resamples < 1:
        return Measured(bare, None)
    spread = spread_of(data, measure, values, np.random.default_rng(seed), resamples)
    intervals = [None if one.value is None else spread.interval(k) for k, one in enumerate(bare)]
    return Measured([replace(one, interval=own) for one, own in zip(bare, intervals, strict=True)], spread)


def difference_of(found: Measured, i: int, j: int, n: int) -> Difference:
    """Candidate `i` minus candidate `j`, on `n` common items; without a spread no interval and no p."""
    a, b = found.alignments[i], found.alignments[j]
    if a.value is None or b.value is None:
        return Difference(None, None, None, n, a, b, undefined_sides({"first judge": a, "second judge": b}))
    if found.spread is None:
        return Difference(a.value - b.value, None, None, n, a, b, p_reason=NO_INTERVAL)
    tested = found.spread.difference(i, j)
    return Difference(a.value - b.value, tested.interval, tested.p, n, a, b, p_reason=tested.reason)
