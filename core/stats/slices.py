"""Alignment inside parts of the items, and whether one part differs from the others of its kind.

A part has its own coefficient over its items (dataset level).  It is compared with the other parts of the same
division, each within itself and weighted by its items, never with the whole: a narrow part has less to tell apart, and
would look worse beside the whole for that alone.  Parts share sources; the jackknife leaves a source out of all of them
at once, so what they share stays in the error of the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.records import Alignment, FloatArray, IntArray, Measure
from core.stats.alignment import measured
from core.stats.claims import LEAST_SOURCES
from core.stats.intervals import LEAST_RANKED, ROUNDING, length, two_sided
from core.stats.items import LabelledItems, paired

STRETCHES = 3
"""Parts that a number is divided into, with about as many items each."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """`value` is the alignment of a part minus that of the others, `error` its standard error; `p` is two-sided.

    All NaN, and `freedom` 0, where there is no test.
    """

    value: float
    error: float
    freedom: int
    p: float


UNTESTED = Contrast(float("nan"), float("nan"), 0, float("nan"))


@dataclass(frozen=True)
class PartsMeasured:
    """One entry a part, in the order given."""

    alignments: tuple[Alignment, ...]
    contrasts: tuple[Contrast, ...]


def measure_parts(scores: FloatArray, items: LabelledItems, codes: IntArray, measure: Measure) -> PartsMeasured:
    """The parts 0, 1, … of `codes` (n_items,), −1 for items in none, by `measure`.

    A test takes two parts with an alignment and its interval, each with `LEAST_RANKED` items of `LEAST_SOURCES`
    sources or more.
    """
    inside = codes[None, :] == np.arange(int(codes.max(initial=-1)) + 1)[:, None]
    if not inside.size:
        return PartsMeasured((), ())
    parts = measured(paired(np.where(inside, scores, np.nan), items), measure, 1, 0)
    if parts.spread is None:
        return PartsMeasured(tuple(parts.alignments), (UNTESTED,) * len(inside))
    spread, n = parts.spread, np.array([own.n for own in parts.alignments], dtype=np.float64)
    usable = (spread.sources >= LEAST_SOURCES) & (n >= LEAST_RANKED) & np.isfinite(spread.fisher).all(axis=0)
    usable &= np.array([own.interval is not None for own in parts.alignments])
    plain, fisher = (np.where(usable, side, 0.0) for side in (spread.plain, spread.fisher))
    weights = _beside(np.where(usable, n, 0.0))
    z = np.arctanh(np.where(usable, spread.values, 0.0))
    values, on_z = (weights @ np.where(usable, side, 0.0) for side in (spread.values, z))
    contrasts = []
    for k, weight in enumerate(weights):
        error_on_z, error = length(fisher @ weight), length(plain @ weight)
        if not usable[k] or not (weight < 0).any() or min(error, error_on_z) <= ROUNDING:
            contrasts.append(UNTESTED)
            continue
        freedom = int(spread.sources[weight != 0].min()) - 1
        p = two_sided(float(on_z[k]) / error_on_z, freedom)
        contrasts.append(Contrast(float(values[k]), error, freedom, p))
    return PartsMeasured(tuple(parts.alignments), tuple(contrasts))


def _beside(sizes: FloatArray) -> FloatArray:
    """(n, n) weights: row k takes the mean of the others, by size, from part k."""
    others = np.where(np.eye(sizes.size, dtype=np.bool_), 0.0, sizes[None, :])
    total = others.sum(axis=1, keepdims=True)
    return np.asarray(np.eye(sizes.size) - others / np.where(total > 0, total, 1.0), dtype=np.float64)


def stretches(values: FloatArray, n_stretches: int = STRETCHES) -> IntArray:
    """(n,) which stretch of rising `values` each belongs to, equal values together; −1 where NaN."""
    known = ~np.isnan(values)
    codes = np.full(values.size, -1, dtype=np.intp)
    if known.any():
        cuts = np.unique(np.quantile(values[known], np.arange(1, n_stretches) / n_stretches))
        sides: tuple[Literal["right", "left"], ...] = (
            "right",
            "left",
        )  # where one value is most of all, either may end
        both = [np.unique(np.searchsorted(cuts, values[known], side), return_inverse=True)[1] for side in sides]
        codes[known] = max(both, key=lambda code: int(code.max()))
    return codes
