"""Changes of an alignment, of a mean looked at every day; and which of them so many labels show.

Only the interval of the earlier alignment is known (it stands in the judge file), so the interval of the difference
is put together from the two intervals (MOVER; Zou 2007, "Toward using confidence intervals to compare correlations",
Psychological Methods 12, equation 15)::

    lower = (now − then) − √((now − low_now)² + (high_then − then)²)
    upper = (now − then) + √((high_now − now)² + (then − low_then)²)

Limits at other confidences than 95 % are taken on Fisher's scale z = atanh(r), on which each side of an interval grows
with the normal quantile.  A (1 − 2α) interval below 0 is a one-sided test, at α, of "has fallen".  Both intervals are
over sources, so items of one source are not taken for independent ones.

What n can tell: with standard errors s on that scale (the mean of an interval's two sides over 1.96), a fall is told
with probability `POWER` when it is at least (q(1−α) + q(POWER)) · √(s_now² + s_then²).  s_now² shrinks with 1/n, s_then
does not: where the exported figure itself is known too loosely, no number of new items suffices.

A mean may be looked at after every item, as often as one likes, by *confidence sequences*.  An interval for a fixed n,
computed anew each day, leaves the true mean sooner or later: a rolling z test alarms on most streams in which nothing
changes.  A confidence sequence holds it at all n together with the confidence named (Robbins 1970; here the asymptotic
one of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory and asymptotic
confidence sequences", Theorem 2.2)::

    mean ± s·√( 2·(nρ² + 1) / (n²ρ²) · log(√(nρ² + 1) / α) )

ρ is chosen so that the interval is narrowest about one n, which is named beforehand.  n counts *sources*, s is the
standard deviation of what each adds to the mean: items of one source are not taken for independent ones.

Several streams (periods, one after the other) share a level α as α/(k·(k + 1)), k = 1, 2, …, which add up to α however
many come.

*Planning labels* (`plan_labels`): what an alignment will be known to, and which fall can be seen, by so many labels.
On Fisher's scale z = atanh r an alignment over w independent items has the standard error 1 / √(w − 3).  One that was
measured says what its items are worth: from its interval, w = 3 + (1.96 / half its width on that scale)².  More items
of as many more sources are worth as much more, each of the two on its own no more than that.  Without, an alignment of
`USUAL_ALIGNMENT` is assumed, as judges reach, and that items of a source are alike with an intraclass correlation of
`USUAL_ICC`, so that n items, m a source, are worth n / (1 + (m − 1)·ICC).

More raters make labels more reliable, and the alignment with their mean higher:
r_n = r_inf · √(n·rel / (1 + (n−1)·rel)) (attenuation, Spearman 1904, and Spearman-Brown), with the usual reliability of
a single label.  A fall is one between two measurements of this size, seen with 80 % power by a one-sided test at 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.errors import UsageError
from core.records import Alignment, FloatArray, IntArray, Interval, JsonRecord, json_fields
from core.stats.intervals import (
    LEAST_SOURCES,
    Z95,
    clustered_error,
    t_quantile,
)
from core.wording import counted

POWER = 0.8
_EDGE = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """Alignment now minus alignment then; a fall is negative.

    `interval` has confidence 1 − 2α.  `n_needed` are the items (with as many a source as now) that show a fall of
    `fall`, None where none suffice or it cannot be known.  All None where undefined, with `reason`.
    """

    value: float | None
    interval: Interval | None
    n_needed: int | None
    fall: float
    alpha: float
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Null where undefined."""
        return json_fields(self) | {"confidence": self.interval and self.interval.confidence, "power": POWER}


def change_between(now: Alignment, then: Alignment, *, alpha: float = 0.05, fall: float = 0.1) -> Change:
    """Has the alignment fallen from `then` to `now`, measured on different items?

    Both need a 95 % interval.  `alpha` lies in (0, 0.5), `fall` in (0, 1], else UsageError.  Undefined, with the
    reason, where a side or its interval is, or where the two are of different statistics or levels.
    """
    from scipy.special import ndtri

    if not 0 < alpha < 0.5:
        raise UsageError(f"--alpha must lie between 0 and 0.5; {alpha:g} came.")
    if not 0 < fall <= 1:
        raise UsageError(f"--fall must lie between 0 and 1; {fall:g} came.")
    undefined = Change(None, None, None, fall, alpha)
    if now.measure != then.measure:
        return replace(undefined, reason=f"the judge file tells {then.measure}, not {now.measure}")
    known = []
    for name, side in (("now", now), ("in the judge file", then)):
        if side.value is None or side.interval is None:
            missing = f"the alignment has no interval{f' ({side.no_interval})' if side.no_interval else ''}"
            missing = missing if side.value is not None else side.reason or "the alignment is undefined"
            return replace(undefined, reason=f"{name}: {missing}")
        # on Fisher's scale each side of an interval is 1.96 standard errors long
        z, low, high = _z(side.value), _z(side.interval.low), _z(side.interval.high)
        known.append((side.value, z, max(z - low, 0.0) / Z95, max(high - z, 0.0) / Z95))
    (value, z, below, above), (earlier, z_then, below_then, above_then) = known
    q = float(ndtri(1.0 - alpha))
    down = math.hypot(value - math.tanh(z - q * below), math.tanh(z_then + q * above_then) - earlier)
    up = math.hypot(math.tanh(z + q * above) - value, earlier - math.tanh(z_then - q * below_then))
    method = f"from the intervals of both (MOVER); {now.n} items now, {then.n} then"
    ends = Interval(value - earlier - down, value - earlier + up, 1.0 - 2.0 * alpha, method)
    error, error_then, n_needed = (below + above) / 2.0, (below_then + above_then) / 2.0, None
    if earlier - fall > -_EDGE and error != 0.0:  # else the fall leaves [-1, 1]
        room = ((z_then - _z(earlier - fall)) / (q + float(ndtri(POWER)))) ** 2 - error_then**2
        n_needed = math.ceil(now.n * error**2 / room) if room > 0 else None
    return Change(value - earlier, ends.within(-2.0, 2.0), n_needed, fall, alpha)


def _z(r: float, edge: float = _EDGE) -> float:
    return math.atanh(max(-edge, min(edge, r)))


# ── a mean that may be looked at at any time ─────────────────────────────────────────────────────────────────────

LEAST_STREAM = 30
"""Fewest sources of a stream before its sequence begins: it rests on the central limit theorem."""


@dataclass(frozen=True, slots=True)
class StreamMean:
    """The mean of a stream's items; `error` is its standard error over `n_sources`, None under two of them."""

    value: float
    error: float | None
    n: int
    n_sources: int

    def radius(self, alpha: float, best_at: int) -> float | None:
        """Half the width of the sequence at confidence 1 − `alpha`, narrowest about `best_at` sources.

        None before `LEAST_STREAM` sources.  `alpha` in (0, 1).
        """
        if self.n_sources < LEAST_STREAM or self.error is None:
            return None
        # ρ² by which the sequence is about narrowest there (section 2.4, the approximation with a logarithm)
        n, spent = self.n_sources, -2.0 * math.log(alpha)
        rho2 = (spent + math.log(spent + 1.0)) / max(best_at, LEAST_STREAM)
        grown = n * rho2 + 1.0
        width = 2.0 * grown / (n * n * rho2) * math.log(math.sqrt(grown) / alpha)
        return self.error * math.sqrt(n * width)

    def half_width(self, alpha: float) -> float | None:
        """Half the width of the t interval at confidence 1 − `alpha`, for a stream that has ended; None as `radius`."""
        if self.n_sources < LEAST_STREAM or self.error is None:
            return None
        return t_quantile(self.n_sources - 1, 0.05 / alpha) * self.error


def stream_mean(values: FloatArray, sources: IntArray) -> StreamMean | None:
    """The mean of `values` (n,) whose items come from `sources` (n,) (whole numbers from 0); None without values."""
    if not values.size:
        return None
    mean, n_sources = float(values.mean()), np.unique(sources).size
    error = clustered_error((values - mean) / values.size, sources) if n_sources > 1 else None
    return StreamMean(mean, error, values.size, n_sources)


def share_of_level(alpha: float, k: int) -> float:
    """What the `k`-th stream (from 1) may spend of `alpha`."""
    return alpha / (k * (k + 1))


# ── how many labels ──────────────────────────────────────────────────────────────────────────────────────────


USUAL_ALIGNMENT, USUAL_RATERS, USUAL_ICC = 0.5, 3.0, 0.2
USUAL_RELIABILITY = 0.5
"""Of a single person's label: Krippendorff's alpha lies between 0.3 and 0.7 on most public sets."""

MOST_ITEMS = 10_000_000
FALL_QUANTILES = 1.6448536269514722 + 0.8416212335729143
_SURELY = 0.999
"""An alignment to plan with lies within this of 0."""

ENOUGH: Sequence[tuple[int, str]] = (
    (50, "telling whether a judge agrees"),
    (100, "calibrating without refining"),
    (200, "calibrating with refining"),
)
"""Labels in all, half of them held out, and what they are enough for: with 20 calibration labels criteria brought
nothing, with 50 they lost in 44 % of 34 runs, with 100 in 26 %."""


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


def plan_labels(
    n_items: int, n_sources: int | None = None, n_raters: int = 1, *, measured: Alignment | None = None
) -> LabelPlanning:
    """What to expect of so many labels: how well an alignment would be known, and which fall would be seen.

    `n_sources` is one an item if None.  `measured` is what the judge reached on some of the items, with the usual
    number of raters; without value or interval it tells nothing.  UsageError for no items, or more sources than items.
    """
    n_sources = n_items if n_sources is None else n_sources
    if not (1 <= n_sources <= n_items <= MOST_ITEMS and n_raters >= 1):
        raise UsageError(
            f"A plan needs at least 1 rater, and as many items as sources or more (up to {MOST_ITEMS:,}); got "
            f"{n_items:,} items of {n_sources:,} sources, {n_raters} raters."
        )
    value, worth = USUAL_ALIGNMENT, n_items / (1.0 + (n_items / n_sources - 1.0) * USUAL_ICC)
    basis = f"assuming that a judge and {USUAL_RATERS:.0f} raters reach {USUAL_ALIGNMENT:g}"
    ends = None if measured is None else measured.interval
    if measured is not None and measured.value is not None and ends is not None and ends.high > ends.low:
        value, half = measured.value, (_z(ends.high, _SURELY) - _z(ends.low, _SURELY)) / 2.0
        by_sources = n_sources / ends.n_sources if ends.n_sources else np.inf
        worth = 3.0 + (Z95 / half) ** 2 * min(n_items / max(1, measured.n), by_sources)
        basis = f"judging by {counted(measured.n, 'labelled item')}"
    factors = [n / (1.0 + (n - 1.0) * USUAL_RELIABILITY) for n in (n_raters, USUAL_RATERS)]
    z = _z(value * math.sqrt(factors[0] / factors[1]), _SURELY)
    value, error = math.tanh(z), 1.0 / math.sqrt(max(worth - 3.0, 1.0))
    fall = value - math.tanh(z - FALL_QUANTILES * math.sqrt(2.0) * error)
    method = f"expected: {worth:.0f} independent items' worth, Fisher's z"
    interval = Interval(math.tanh(z - Z95 * error), math.tanh(z + Z95 * error), method=method, n_sources=n_sources)
    # without a test over held-out sources they are enough for nothing
    enough = tuple(words for least, words in ENOUGH if n_items >= least and n_sources >= 2 * LEAST_SOURCES)
    seen = fall if fall <= max(value, 0.0) else None
    return LabelPlanning(n_items, n_sources, n_raters, value, interval, seen, enough, basis)
