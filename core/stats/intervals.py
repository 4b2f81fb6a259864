"""Intervals for alignments and for differences of alignments: over sources, in forms that hold with few of them.

How standard errors come about at each level, and what there is no interval for, stands in `core.stats.spread`.  A p is
told from `LEAST_SOURCES` sources on; below there is the interval alone, `p` is None and `p_reason` says so.  At sample
level the sources are those with a coefficient, and the interval speaks about new sources judged by the same systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.records import Alignment, Interval, Level, Statistic
from core.stats.levels import MIN_GROUP, align_paired
from core.stats.pairing import paired
from core.stats.spread import Spread, spread_of

RESAMPLES = 1_000
"""Resamples of sources behind an interval at system level; the other levels draw none."""

NO_INTERVAL = "there is no interval: fewer than 2 sources, or none was asked for"


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

    def as_json(self) -> dict[str, Any]:
        """``{"value", "interval", "interval_method", "p", "p_reason", "n", "reason"}`` with null where undefined."""
        return {
            "value": self.value,
            "interval": None if self.interval is None else [self.interval.low, self.interval.high],
            "interval_method": None if self.interval is None else self.interval.method,
            "p": self.p,
            "p_reason": self.p_reason or None,
            "n": self.n,
            "reason": self.reason or None,
        }


def align_with_intervals(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
    min_group: int = MIN_GROUP,
) -> list[Alignment]:
    """`align_scores` with an interval for each candidate.

    `scores` is (n_candidates, n_items); `confidence` lies in (0, 1).  `interval` is None where the value is undefined,
    with fewer than 2 sources, or where nothing tells its spread (`core.stats.spread`).  `resamples` 0 leaves the
    intervals out; otherwise it matters at system level only, `generator` there and with over 400 sources.
    """
    data = paired(scores, labels, source_codes, system_codes)
    alignments = align_paired(data, statistic=statistic, level=level, min_group=min_group)
    if data.n_sources < 2 or resamples < 1:
        return alignments
    spread = spread_of(data, generator, resamples, statistic=statistic, level=level, min_group=min_group)
    return with_spread(alignments, spread, confidence)


def with_interval(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
    min_group: int = MIN_GROUP,
) -> Alignment:
    """The Alignment of one judge with its interval: `scores` is (n_items,)."""
    return align_with_intervals(
        np.asarray(scores, dtype=np.float64)[None, :],
        labels,
        source_codes,
        system_codes,
        statistic=statistic,
        level=level,
        generator=generator,
        resamples=resamples,
        confidence=confidence,
        min_group=min_group,
    )[0]


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
    min_group: int = MIN_GROUP,
) -> Difference:
    """Alignment of `a` minus alignment of `b` on the items both scored, with interval and two-sided p.

    `a`, `b`, `labels` are (n_items,); for a change from before to after, `a` is after.  It tests the difference in
    *alignment*, not in scores.  Swapping a and b flips the sign of value and interval and keeps p.  There is no p under
    8 sources, nor with `resamples` 0.
    """
    both = np.stack([np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)])
    common = np.where(np.isnan(both).any(axis=0), np.nan, np.asarray(labels, dtype=np.float64))
    data = paired(both, common, source_codes, system_codes)
    sides = align_paired(data, statistic=statistic, level=level, min_group=min_group)
    if data.n_sources < 2 or resamples < 1:
        return difference_of(sides, None, data.labels.size)
    spread = spread_of(data, generator, resamples, statistic=statistic, level=level, min_group=min_group)
    return difference_of(with_spread(sides, spread, confidence), spread, data.labels.size, confidence)


def with_spread(found: Sequence[Alignment], spread: Spread, confidence: float = 0.95) -> list[Alignment]:
    """`found` with the intervals that `spread` gives them, in the same order."""
    return [
        one if one.value is None else replace(one, interval=spread.interval(k, confidence))
        for k, one in enumerate(found)
    ]


def difference_of(sides: Sequence[Alignment], spread: Spread | None, n: int, confidence: float = 0.95) -> Difference:
    """The first of two `sides` minus the second, on `n` common items; without `spread` no interval and no p."""
    a, b = sides
    if a.value is None or b.value is None:
        named = zip(("first", "second"), sides, strict=True)
        reason = "; ".join(f"{name} judge: {side.reason}" for name, side in named if side.value is None)
        return Difference(None, None, None, n, a, b, reason)
    if spread is None:
        return Difference(a.value - b.value, None, None, n, a, b, p_reason=NO_INTERVAL)
    tested = spread.difference(0, 1, confidence)
    return Difference(a.value - b.value, tested.interval, tested.p, n, a, b, p_reason=tested.reason)
