"""The scale of an aspect, found from its values or confirmed by a person."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.records import FloatArray, Scale

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
    (1, 10),
    (0, 10),
    (0, 100),
)
"""Ends of the scales in use, in the order they are tried: the first that holds all values is proposed."""

WIDEST = USUAL[-1]
MAX_STEPS = 20
STRAY_SHARE = 0.02


def find_scale(gold: Sequence[float], ratings: Sequence[float] = ()) -> Scale:
    """The narrowest scale in use that holds the values, with a step of 1, 0.5 or None (continuous).

    Steps are read from the individual `ratings` where there are any, for gold labels may be means of them.  A range
    that takes more than 20 steps counts as continuous.  Ends cannot be known from values alone (labels of a 1-5 scale
    that never reach 5 read as 1-4): proposals are shown and can be confirmed.  Strays are left outside: at most 2 % of
    the values (or one), each farther off than the scale is wide, such as a 99 among labels from 1 to 5.  Where no scale
    in use holds the values, its ends are theirs (`is_usual` says so).  ValueError without values.
    """
    values = np.asarray([*gold, *ratings], dtype=np.float64)
    if not values.size:
        raise ValueError("a scale cannot be found without values")
    held = narrowest_scale(values.min(), values.max())
    ends = (held.low, held.high) if held else None
    if ends is None or ends == WIDEST:
        ends = _without_strays(values) or ends
    if ends is None:
        low, high = math.floor(values.min()), math.ceil(values.max())
        ends = (low, high if high > low else low + 1)
    step = find_step(np.asarray(ratings if len(ratings) else gold, dtype=np.float64), ends[1] - ends[0])
    return Scale(float(ends[0]), float(ends[1]), step)


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


def _without_strays(values: FloatArray) -> tuple[float, float] | None:
    """Narrower ends that hold all values but a few that lie farther off than those ends are apart; None without any.

    At least 3 different values must remain, or a scale that people use mostly at its low end would be cut down.
    """
    allowed = max(1, int(values.size * STRAY_SHARE))
    for low, high in USUAL:
        outside = values[(values < low) | (values > high)]
        if not outside.size:
            return None
        distance = np.maximum(low - outside, outside - high)
        if outside.size <= allowed and (distance > high - low).all():
            enough = np.unique(values[(values >= low) & (values <= high)]).size >= 3
            return (low, high) if enough else None
    return None
