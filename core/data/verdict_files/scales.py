"""Numbers and words in a score column, and the scale they are on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.data.cells import CellError, read_number, shown
from core.records import Scale

GOOD = frozenset("good pass passed yes true correct positive up thumbs_up 👍".split())
BAD = frozenset("bad fail failed no false incorrect negative down thumbs_down 👎".split())
USUAL: tuple[Scale, ...] = tuple(
    Scale(float(low), float(high))
    for low, high in ((0, 1), (1, 3), (1, 4), (1, 5), (0, 5), (1, 6), (1, 7), (1, 10), (0, 10), (0, 100), (-1, 1))
)


def verdict_word(cell: Any) -> bool | None:
    """True for Good and its like, False for Bad, None for anything else."""
    if isinstance(cell, bool):
        return cell
    if not isinstance(cell, str):
        return None
    word = "_".join(cell.strip().lower().split())
    return True if word in GOOD else False if word in BAD else None


def number_in(cell: Any) -> float | str | None:
    """The number in a score cell, None for an empty one, or a sentence that says why it is neither."""
    try:
        return read_number(cell)
    except CellError:
        return f"{shown(cell)} is no number"


def suggested_scale(low: float, high: float) -> Scale | None:
    """The narrowest usual scale that holds all numbers from `low` to `high`; None when none does."""
    holding = [scale for scale in USUAL if scale.holds(low) and scale.holds(high)]
    return min(holding, key=lambda scale: (scale.high - scale.low, scale.low), default=None)


def same_ends(one: Scale | None, other: Scale) -> bool:
    """Whether both run between the same ends, whatever their steps."""
    return one is not None and (one.low, one.high) == (other.low, other.high)


def mapped(value: float, scale: Scale, onto: Scale) -> float:
    """`value` of `scale` carried linearly to `onto`: ends to ends.

    >>> mapped(25.0, Scale(0, 100), Scale(1, 5))
    2.0
    """
    return onto.low + (value - scale.low) / (scale.high - scale.low) * (onto.high - onto.low)


def ends(values: Iterable[float]) -> tuple[float, float] | None:
    """Smallest and largest; None of nothing."""
    found = list(values)
    return (min(found), max(found)) if found else None
