"""The scale of an aspect, found from its values or confirmed by a person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.records import FloatArray, Scale

BoolArray = NDArray[np.bool_]
IntArray = NDArray[Any]

USUAL: tuple[tuple[float, float], ...] = (
    (0, 1),
    (-1, 1),
    (1, 3),
    (0, 2),
    (1, 4),
    (0, 3),
    (1, 5),
    (0, 4),
    (1, 6),
    (0, 5),
    (1, 7),
    (-2, 2),
    (-3, 3),
    (1, 10),
    (0, 10),
    (0, 100),
)
"""Ends of the scales in use, in the order they are tried: the first that holds all values is proposed."""

MAX_STEPS = 20

CODES = frozenset(
    map(float, "8 9 77 88 97 98 99 777 888 999 7777 8888 9999 -1 -2 -3 -7 -8 -9 -77 -88 -98 -99 -999 -9999".split())
)
"""Numbers that people write for "no answer"; what lies off the scale and is none of them is a slip."""

_FAR = 2.0
"""A slip is farther from the other labels than this, than half their scale, and than twice their widest gap."""
_FAR_CODES, _SMALL = 77, 20
_SLIPS = 0.05
_LEAST_BESIDE_SLIP = 5
_MANY_OFF = 0.05
"""Share of scores off the scale up to which they count as slips; of more, the judge has another scale."""


def find_scale(gold: Sequence[float], ratings: Sequence[float] = (), *, all_count: bool = False) -> Scale:
    """The narrowest scale in use that holds the values, with a step of 1, 0.5 or None (continuous).

    Steps are read from the individual `ratings` where there are any, for gold labels may be means of them.  A range
    that takes more than 20 steps counts as continuous.  Ends cannot be known from values alone (labels of a 1-5 scale
    that never reach 5 read as 1-4): proposals are shown and can be confirmed.  What `strays` finds is left outside,
    unless `all_count`.  Where no scale in use holds the values, its ends are theirs (`is_usual` says so).  ValueError
    without values.
    """
    values = np.asarray([*gold, *ratings], dtype=np.float64)
    if not values.size:
        raise ValueError("a scale cannot be found without values")
    if not all_count:
        values = values[~np.isin(values, strays(values))]
    held = narrowest_scale(values.min(), values.max())
    if held:
        ends = (held.low, held.high)
    else:
        low, high = math.floor(values.min()), math.ceil(values.max())
        ends = (low, high if high > low else low + 1)
    own = np.asarray(ratings if len(ratings) else gold, dtype=np.float64)
    own = own[(own >= ends[0]) & (own <= ends[1])]
    return Scale(float(ends[0]), float(ends[1]), find_step(own, ends[1] - ends[0]))


def strays(values: FloatArray) -> tuple[float, ...]:
    """The different values that lie off the scale that the others fit: codes for "no answer", and slips.

    A code such as 99 or -1 may come any number of times.  A slip is far from all other labels and rare.  A 0 is in
    question where the others fill a scale from 1 to 5, 6 or 7 in whole steps.
    """
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    for low, high in USUAL:
        inside = (different >= low) & (different <= high)
        if inside.all():
            break
        if _are_strays(different[~inside], counts[~inside], different[inside], counts[inside], high - low):
            return tuple(different[~inside].tolist())
    whole, top = bool((different == np.round(different)).all()), different[-1] if different.size else 0.0
    if different.size > 4 and different[0] == 0 and (whole and different[1] <= 2 and top in (5, 6, 7)):
        return (0.0,)
    if different.size > 7 and different[0] == 0 and (not whole and different[1] >= 1 and 4 < top <= 5):
        return (0.0,)
    return ()


def _are_strays(off: FloatArray, n_off: IntArray, on: FloatArray, n_on: IntArray, width: float) -> bool:
    """Whether the values `off` a scale, each coming `n_off` times, are codes or slips beside those `on` it."""
    if on.size < 2:
        return False
    if set(off.tolist()) <= CODES and (np.abs(off) >= _FAR_CODES).all() and np.abs(on).max() <= _SMALL:
        return True  # several such codes, 97 to 99, tell why there is no label
    if off.tolist() == [-1.0] and on[0] == 0 and on[-1] >= 3:
        return True  # no scale runs from -1 to 3
    if off.tolist() in ([8.0], [9.0], [8.0, 9.0]) and on.tolist() == [0.0, 1.0] and n_on.sum() >= _LEAST_BESIDE_SLIP:
        return True  # yes, no, and no answer
    widest_gap = float(np.diff(on).max())
    gaps = np.maximum(on.min() - off, off - on.max())
    if set(off.tolist()) <= CODES and off.size <= 2:
        # 8 and 9 may continue the scale, and so may the negative numbers of a scale around 0
        around_zero = on.min() <= 0 and on.max() <= 3 if width > 1 else on.size < 4
        apart = np.where(off < 0, not around_zero, gaps > widest_gap) & ((on.size > 2) | (gaps > 10))
        return bool(apart.all())
    rare = n_off.sum() <= max(2, _SLIPS * n_on.sum()) and n_on.sum() >= _LEAST_BESIDE_SLIP
    return bool(rare and on.size > 2 and (gaps > max(_FAR, width / 2, 2 * widest_gap)).all())


@dataclass(frozen=True)
class OffScale:
    """Which scores count for nothing, `mask` (n,); `own`: the others are on another scale than the labels."""

    mask: BoolArray
    own: bool = False


def off_scale(scores: FloatArray, scale: Scale) -> OffScale:
    """Which of a judge's `scores` (n,; NaN for none) are no scores beside labels on `scale`.

    Codes for "could not be read" and slips off the scale are none.  Where many lie off it, the judge has a scale of
    its own, and codes are looked for among the scores alone.
    """
    known = ~np.isnan(scores)
    off = known & ~((scores >= scale.low - 1e-9) & (scores <= scale.high + 1e-9))
    n_off, outside = int(off.sum()), np.unique(scores[off])
    inside = np.unique(scores[known & ~off])
    middle = (scale.low + scale.high) / 2
    few = outside.size <= 2 or bool((np.abs(outside) >= _FAR_CODES).all())
    codes = set(outside.tolist()) <= CODES | {0.0} and few and inside.size > 1 and inside.max() > middle
    yes_no = scale.high - scale.low == 1 and set(inside.tolist()) == {scale.low, scale.high}
    if codes and np.isin(outside, (8, 9)).any() and not yes_no:  # a judge with a scale to 10 gives these too
        codes = inside.size > 2 and n_off <= 0.3 * known.sum() and outside[0] - inside.max() > np.diff(inside).max()
    if codes or n_off <= _MANY_OFF * known.sum():
        return OffScale(off)
    found = [value for value in strays(scores) if value in CODES]
    return OffScale(known & np.isin(scores, found), own=True)


def is_usual(scale: Scale) -> bool:
    """Whether the scale is one of those in use."""
    return (scale.low, scale.high) in USUAL


def find_step(values: FloatArray, width: float) -> float | None:
    """1 or 0.5 when all `values` (n,) are multiples of it and `width` takes at most 20 such steps, else None."""
    for step in (1.0, 0.5):
        if width / step <= MAX_STEPS and np.array_equal(np.round(values / step), values / step):
            return step
    return None


def usual_scales() -> tuple[Scale, ...]:
    """The scales in use, without steps, in the order they are tried."""
    return tuple(Scale(float(low), float(high)) for low, high in USUAL)


def narrowest_scale(low: float, high: float) -> Scale | None:
    """The first of the scales in use that holds all numbers from `low` to `high`; None when none does."""
    return next((scale for scale in usual_scales() if scale.low <= low and high <= scale.high), None)
