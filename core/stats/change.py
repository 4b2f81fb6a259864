"""Changes: of an alignment measured on other items, of a distribution, and of a mean that is looked at every day.

Only the interval of the earlier alignment is known (it stands in the judge file), so the interval of the difference
is put together from the two intervals (MOVER; Zou 2007, "Toward using confidence intervals to compare correlations",
Psychological Methods 12, equation 15)::

    lower = (now − then) − √((now − low_now)² + (high_then − then)²)
    upper = (now − then) + √((high_now − now)² + (then − low_then)²)

Limits at other confidences than 95 % are taken on Fisher's scale z = atanh(r), on which each side of an interval grows
with the normal quantile.  `p` is one-sided, for "has fallen": the level at which the upper limit is 0, so that p < α
and a (1 − 2α) interval below 0 always say the same.  Both intervals are over sources, so items of one source are not
taken for independent ones.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.json_form import json_fields
from core.records import Alignment, FloatArray, IntArray, Interval
from core.stats.claims import LEAST_SOURCES, TOO_FEW
from core.stats.intervals import Z95, clustered_error, t_quantile

POWER = 0.8
_EDGE = 1.0 - 1e-9
_WIDEST = 12.0


@dataclass(frozen=True, slots=True)
class Change:
    """Alignment now minus alignment then; a fall is negative.

    `interval` has confidence 1 − 2α; `p` is the chance of such a fall or a larger one if nothing had changed.
    `detectable` is the smallest fall that these n tell with probability `POWER`; `n_needed` the items (with as many a
    source as now) that tell a fall of `fall`, None where none suffice or it cannot be known.  All None where
    undefined, with `reason`.
    """

    value: float | None
    interval: Interval | None
    p: float | None
    detectable: float | None
    n_needed: int | None
    fall: float
    alpha: float
    reason: str = ""
    p_reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Null where undefined."""
        return json_fields(self, but=("p",)) | {
            "confidence": None if self.interval is None else self.interval.confidence,
            "p_fallen": self.p,
            "power": POWER,
        }


def change_between(now: Alignment, then: Alignment, *, alpha: float = 0.05, fall: float = 0.1) -> Change:
    """Has the alignment fallen from `then` to `now`, measured on different items?

    Both need a 95 % interval.  `alpha` lies in (0, 0.5), `fall` in (0, 1], else UsageError.  Undefined, with the
    reason, where a side or its interval is, or where the two are of different statistics or levels.  No p where one
    is known to rest on fewer than 8 sources.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    if not 0 < alpha < 0.5:
        raise UsageError(f"--alpha must lie between 0 and 0.5; {alpha:g} came.")
    if not 0 < fall <= 1:
        raise UsageError(f"--fall must lie between 0 and 1; {fall:g} came.")
    undefined = Change(None, None, None, None, None, fall, alpha)
    if now.measure != then.measure:
        return replace(undefined, reason=f"the judge file tells {then.measure}, not {now.measure}")
    known = []
    for name, alignment in (("now", now), ("in the judge file", then)):
        value, ends, why = alignment.value, alignment.interval, alignment.no_interval
        if value is None:
            return replace(undefined, reason=f"{name}: {alignment.reason or 'the alignment is undefined'}")
        if ends is None:
            return replace(undefined, reason=f"{name}: the alignment has no interval{f' ({why})' if why else ''}")
        # the widths of both sides on Fisher's scale, a standard normal quantile of 1 wide
        q = Z95 if ends.confidence == 0.95 else float(ndtri(0.5 + ends.confidence / 2.0))
        below, above = max(_z(value) - _z(ends.low), 0.0) / q, max(_z(ends.high) - _z(value), 0.0) / q
        known.append((value, below, above, ends.n_sources))
    (value, below, above, n_sources), (earlier, below_then, above_then, n_sources_then) = known
    few = TOO_FEW if any(n is not None and n < LEAST_SOURCES for n in (n_sources, n_sources_then)) else ""
    gap, error, error_then = value - earlier, (below + above) / 2.0, (below_then + above_then) / 2.0

    def ends_at(q: float) -> tuple[float, float]:
        """Ends of the interval of the difference whose sides have the normal quantile `q`."""
        down = math.hypot(value - math.tanh(_z(value) - q * below), math.tanh(_z(earlier) + q * above_then) - earlier)
        up = math.hypot(math.tanh(_z(value) + q * above) - value, earlier - math.tanh(_z(earlier) - q * below_then))
        return gap - down, gap + up

    # p is the level at which an end lies at 0; ends move outwards as q grows
    side = int(gap < 0)
    first, last = (ends_at(q)[side] for q in (0.0, _WIDEST))
    at = _WIDEST if (last < 0.0 if side else last > 0.0) else 0.0
    if first * last < 0.0:
        at = brentq(lambda q: ends_at(q)[side], 0.0, _WIDEST, xtol=1e-14)
    tail = float(ndtr(-at))
    q, told = float(ndtri(1.0 - alpha)), float(ndtri(1.0 - alpha) + ndtri(POWER))
    method = f"from the intervals of both (MOVER); {now.n} items now, {then.n} then"
    n_needed = None
    if earlier - fall > -_EDGE and error != 0.0:  # else the fall leaves [-1, 1]
        room = ((_z(earlier) - _z(earlier - fall)) / told) ** 2 - error_then**2
        n_needed = math.ceil(now.n * error**2 / room) if room > 0 else None
    return Change(
        gap,
        Interval(*ends_at(q), 1.0 - 2.0 * alpha, method).within(-2.0, 2.0),
        None if few else tail if gap < 0 else 1.0 - tail,
        earlier - math.tanh(_z(earlier) - told * math.hypot(error, error_then)),
        n_needed,
        fall,
        alpha,
        p_reason=few,
    )


def _z(r: float) -> float:
    return math.atanh(max(-_EDGE, min(_EDGE, r)))


# ── distributions ────────────────────────────────────────────────────────────────────────────────────────────

SAME, OTHER = 0.1, 0.2
"""Largest difference of the distribution functions that is called "about as before", and smallest called "clearly"."""

NARROW = 0.8
"""Share of the earlier spread below which a correlation falls by itself, however good the judge is."""


@dataclass(frozen=True, slots=True)
class Shift:
    """`n`, mean and standard deviation before and now; `distance` in [0, 1] between the distribution functions.

    The distance is Kolmogorov and Smirnov's D: the largest difference in the share of values up to any point.  It is
    told without a p: items of one source are alike, which no p of that test knows.
    """

    what: str
    n_before: int
    n_now: int
    mean_before: float
    mean_now: float
    spread_before: float
    spread_now: float
    distance: float

    @property
    def narrower(self) -> bool:
        """Whether the values spread clearly less than before."""
        return self.spread_now < NARROW * self.spread_before

    @property
    def words(self) -> str:
        """E.g. "Labels are distributed about as before (distance 0.04): mean 3.41, before 3.38."""
        how = (
            "about as before" if self.distance < SAME else "otherwise" if self.distance < OTHER else "clearly otherwise"
        )
        words = (
            f"{self.what.capitalize()} are distributed {how} (distance {self.distance:.2f}): mean {self.mean_now:.2f}, "
            f"before {self.mean_before:.2f}; spread {self.spread_now:.2f}, before {self.spread_before:.2f}."
        )
        if self.narrower:
            words += " They spread less: a correlation falls by that alone, even where the judge is as good as before."
        return words

    def as_json(self) -> dict[str, Any]:
        """All figures and the sentence."""
        return json_fields(self, but=("what",)) | {"words": self.words}


def shift_between(what: str, before: ArrayLike, now: ArrayLike) -> Shift | None:
    """The shift from `before` to `now` (each (n,), NaN = missing); None where a side has fewer than 2 values."""
    old, new = (np.asarray(side, dtype=np.float64) for side in (before, now))
    old, new = np.sort(old[~np.isnan(old)]), np.sort(new[~np.isnan(new)])
    if min(old.size, new.size) < 2:
        return None
    points = np.concatenate([old, new])
    shares = [np.searchsorted(side, points, side="right") / side.size for side in (old, new)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    spreads = float(old.std(ddof=1)), float(new.std(ddof=1))
    return Shift(what, old.size, new.size, float(old.mean()), float(new.mean()), spreads[0], spreads[1], distance)


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
