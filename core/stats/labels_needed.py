"""How many labels: what an alignment will be known to, and which fall can be seen, before anybody labels.

On Fisher's scale z = atanh r an alignment over w independent items has the standard error 1 / √(w − 3).  A *pilot* says
what its items are worth: from its interval, w = 3 + (1.96 / half its width on that scale)².  More items of as many more
sources are worth as much more, each of the two on its own no more than that.  Without a pilot an alignment of
`USUAL_ALIGNMENT` is assumed, as judges reach, and that items of a source are alike with an intraclass correlation of
`USUAL_ICC`, so that n items, m a source, are worth n / (1 + (m − 1)·ICC).

More raters make labels more reliable, and the alignment with their mean higher:
r_n = r_inf · √(n·rel / (1 + (n−1)·rel)) (attenuation, Spearman 1904, and Spearman-Brown).  The reliability of one of
them is ICC(1) by one-way analysis of variance (Shrout and Fleiss 1979).  A fall is one between two measurements of this
size, seen with 80 % power by a one-sided test at 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.json_form import JsonRecord
from core.records import Alignment, FloatArray, Interval
from core.stats.claims import LEAST_SOURCES, SAME_EVERYWHERE
from core.wording import counted


def single_call_reliability(calls: ArrayLike) -> float:
    """ICC(1) of `calls` (n_items, n_calls), NaN = not read; NaN = undefined.

    1 = every call gives an item the same, 0 or below = calls tell nothing about items:
    (MSB − MSW) / (MSB + (k₀ − 1)·MSW) with the mean squares between and within items and k₀ = (N − Σk_i²/N) / (n − 1),
    the number of calls an item when all have equally many.  Items with one call do not count.  Undefined with fewer
    than 2 items left or when all calls are equal.  UsageError for an infinite call.
    """
    scores = np.asarray(calls, dtype=np.float64)
    if np.isinf(scores).any():
        raise UsageError("The calls hold infinity; a score is a finite number, or NaN where it was not read.")
    present = ~np.isnan(scores)
    kept = present.sum(axis=1) >= 2
    scores, present = scores[kept], present[kept]
    k, total = present.sum(axis=1), int(present.sum())
    if len(k) < 2:
        return np.nan
    means = np.nansum(scores, axis=1) / k
    within = float(np.nansum((scores - means[:, None]) ** 2)) / (total - len(k))
    between = float((k * (means - np.nansum(scores) / total) ** 2).sum()) / (len(k) - 1)
    k0 = (total - float((k**2).sum()) / total) / (len(k) - 1)
    spread = between + (k0 - 1) * within
    return (between - within) / spread if spread > 0 else np.nan


def expected_alignment(r: FloatArray, n_measured: float, reliability: FloatArray, ns: Sequence[int]) -> FloatArray:
    """(rows, n's) what `r` (rows,), measured with the mean of `n_measured` samples, becomes with the mean of each n.

    r_n = r_inf · √(n·rel / (1 + (n−1)·rel)), within [-1, 1]; r_inf follows from the measured r.  NaN where
    `reliability` (rows,) of a single call is not above 0.
    """
    rel = np.where(reliability > 0, reliability, np.nan)[:, None]
    n = np.asarray(ns, dtype=np.float64)[None, :]
    factor = (n / (1 + (n - 1) * rel)) / (n_measured / (1 + (n_measured - 1) * rel))
    return np.clip(r[:, None] * np.sqrt(factor), -1.0, 1.0)


USUAL_ALIGNMENT, USUAL_RATERS = 0.5, 3.0
USUAL_ICC = 0.2
USUAL_RELIABILITY = 0.5
"""Of a single person's label: Krippendorff's alpha lies between 0.3 and 0.7 on most public sets."""

MOST_ITEMS = 10_000_000
STEPS = (20, 50, 100, 200, 400, 800, 1600)
FALL_QUANTILES = 1.6448536269514722 + 0.8416212335729143
_Q95 = 1.959963984540054
_EDGE = 0.999

ENOUGH: Sequence[tuple[int, str]] = (
    (50, "telling whether a judge agrees"),
    (100, "calibrating without refining"),
    (200, "calibrating with refining"),
)
"""Labels in all, half of them held out, and what they are enough for: with 20 calibration labels criteria brought
nothing, with 50 they lost in 44 % of 34 runs, with 100 in 26 %."""


@dataclass(frozen=True, slots=True)
class LabelPilot:
    """A small measurement to plan by: its alignment with interval, on `n_sources`, with labels of `n_raters` a mean.

    `reliability` is that of a single person's label (ICC), NaN for one that more raters do not change.
    """

    alignment: Alignment
    n_items: int
    n_sources: int
    n_raters: float = USUAL_RATERS
    reliability: float = USUAL_RELIABILITY


@dataclass(frozen=True, slots=True)
class LabelPlanning(JsonRecord):
    """What `n_items` labels on `n_sources` sources by `n_raters` raters each would tell.

    `value` is the alignment to expect, `interval` what would be known of it, `fall` the smallest fall that a second
    measurement of this size would show (None: none, not even one to nought).  `basis` says what it rests on.
    """

    n_items: int
    n_sources: int
    n_raters: int
    value: float
    interval: Interval
    fall: float | None
    enough: tuple[str, ...]
    basis: str

    @property
    def words(self) -> str:
        """In one sentence."""
        width = self.interval.high - self.interval.low
        seen = "no fall would be seen" if self.fall is None else f"a fall of {self.fall:.2f} would be seen"
        good = f"Enough for {self.enough[-1]}" if self.enough else f"Too few for anything: {ENOUGH[0][0]} is the least"
        return (
            f"{counted(self.n_items, 'labelled item')} of {counted(self.n_sources, 'source')}: an alignment near "
            f"{self.value:.2f} would be known to ± {width / 2:.2f}, and {seen} ({self.basis}). {good}."
        )


def plan_labels(n_items: int, n_sources: int, n_raters: int = 1, *, pilot: LabelPilot | None = None) -> LabelPlanning:
    """What to expect of so many labels.  UsageError for none, or more sources than items.

    A pilot without value or interval tells nothing, and the basis says why.
    """
    if not (1 <= n_sources <= n_items <= MOST_ITEMS and n_raters >= 1):
        raise UsageError(
            f"A plan takes at least 1 rater and at least as many items as sources (up to {MOST_ITEMS:,}); got "
            f"{n_items:,} items of {n_sources:,} sources, {n_raters} raters."
        )
    value, measured, reliability = USUAL_ALIGNMENT, USUAL_RATERS, USUAL_RELIABILITY
    worth = n_items / (1.0 + (n_items / n_sources - 1.0) * USUAL_ICC)
    basis = f"assuming that a judge and {USUAL_RATERS:.0f} raters reach {USUAL_ALIGNMENT:g}"
    if pilot is not None:
        ours, ends = pilot.alignment, pilot.alignment.interval
        if ours.value is not None and ends is not None and ends.high > ends.low:
            value, measured, reliability = ours.value, pilot.n_raters, pilot.reliability
            half = (math.atanh(_inside(ends.high)) - math.atanh(_inside(ends.low))) / 2.0
            more = min(n_items / max(1, pilot.n_items), n_sources / max(1, pilot.n_sources))
            worth = 3.0 + (_Q95 / half) ** 2 * more
            basis = f"judging by {counted(pilot.n_items, 'labelled item')}"
        else:
            missing = f"it has no interval ({ours.no_interval or 'why is not known'})" if ends is None else ""
            basis = f"the pilot tells nothing: {ours.reason or missing or SAME_EVERYWHERE}; {basis}"
    if reliability > 0:  # not NaN
        known: FloatArray = np.array([reliability])
        value = float(expected_alignment(np.array([value]), measured, known, [n_raters])[0, 0])
    value = _inside(value)
    error = 1.0 / math.sqrt(max(worth - 3.0, 1.0))
    z = math.atanh(value)
    fall = value - math.tanh(z - FALL_QUANTILES * math.sqrt(2.0) * error)
    low, high = math.tanh(z - _Q95 * error), math.tanh(z + _Q95 * error)
    return LabelPlanning(
        *(n_items, n_sources, n_raters, value),
        Interval(low, high, method=f"expected: {worth:.0f} independent items' worth, Fisher's z", n_sources=n_sources),
        fall if fall <= max(value, 0.0) else None,
        enough_for(n_items, n_sources),
        basis,
    )


def interval_curve(plan: LabelPlanning, *, pilot: LabelPilot | None = None) -> tuple[LabelPlanning, ...]:
    """The plan at each of `STEPS` up to its items, with as many items a source: how the interval shrinks."""
    share = plan.n_sources / plan.n_items
    counts = sorted({*(n for n in STEPS if n < plan.n_items), plan.n_items})
    return tuple(plan_labels(n, max(1, round(n * share)), plan.n_raters, pilot=pilot) for n in counts)


def enough_for(n_items: int, n_sources: int) -> tuple[str, ...]:
    """What so many labels are enough for, least first; nothing where a test over held-out sources is not possible."""
    if n_sources < 2 * LEAST_SOURCES:
        return ()
    return tuple(words for least, words in ENOUGH if n_items >= least)


def _inside(r: float) -> float:
    return max(-_EDGE, min(_EDGE, r))
