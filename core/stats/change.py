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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.json_form import json_fields
from core.records import Alignment, FloatArray, IntArray, Interval
from core.stats.claims import LEAST_SOURCES, TOO_FEW

POWER = 0.8
_EDGE = 1.0 - 1e-9
_Q95 = 1.959963984540054
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

    Both need a 95 % interval.  `alpha` lies in (0, .5), `fall` in (0, 1], else UsageError.  Undefined, with the
    reason, where a side or its interval is, or where the two are of different statistics or levels.  No p where one
    is known to rest on fewer than 8 sources.
    """
    if not 0 < alpha < 0.5:
        raise UsageError(f"--alpha must lie between 0 and 0.5; {alpha:g} came.")
    if not 0 < fall <= 1:
        raise UsageError(f"--fall must lie between 0 and 1; {fall:g} came.")
    if now.measure != then.measure:
        return _undefined(f"the judge file tells {then.measure}, not {now.measure}", alpha, fall)
    estimates = []
    for name, alignment in (("now", now), ("in the judge file", then)):
        if alignment.value is None:
            return _undefined(f"{name}: {alignment.reason or 'the alignment is undefined'}", alpha, fall)
        why = alignment.no_interval
        if alignment.interval is None:
            return _undefined(f"{name}: the alignment has no interval{f' ({why})' if why else ''}", alpha, fall)
        estimates.append(_Estimate.of(alignment.value, alignment.interval))
    current, earlier = estimates
    source_counts = [alignment.interval.n_sources for alignment in (now, then) if alignment.interval]
    few = TOO_FEW if any(n is not None and n < LEAST_SOURCES for n in source_counts) else ""
    q = _quantile(1.0 - alpha)
    low, high = _limits(current, earlier, q)
    method = f"from the intervals of both (MOVER); {now.n} items now, {then.n} then"
    interval = Interval(low, high, 1.0 - 2.0 * alpha, method).within(-2.0, 2.0)
    told, n_needed = _quantile(1.0 - alpha) + _quantile(POWER), None
    if earlier.value - fall > -_EDGE and current.error != 0.0:  # else the fall leaves [-1, 1]
        reach = _z(earlier.value) - _z(earlier.value - fall)
        room = (reach / told) ** 2 - earlier.error**2
        n_needed = math.ceil(now.n * current.error**2 / room) if room > 0 else None
    return Change(
        current.value - earlier.value,
        interval,
        None if few else _p_fallen(current, earlier),
        earlier.value - math.tanh(_z(earlier.value) - told * math.hypot(current.error, earlier.error)),
        n_needed,
        fall,
        alpha,
        p_reason=few,
    )


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A value with the widths of its interval on Fisher's scale, a standard normal quantile of 1 wide."""

    value: float
    below: float
    above: float

    @classmethod
    def of(cls, value: float, interval: Interval) -> _Estimate:
        q = _Q95 if interval.confidence == 0.95 else _quantile(0.5 + interval.confidence / 2.0)
        middle = _z(value)
        return cls(value, max(middle - _z(interval.low), 0.0) / q, max(_z(interval.high) - middle, 0.0) / q)

    @property
    def error(self) -> float:
        return (self.below + self.above) / 2.0

    def low(self, q: float) -> float:
        return math.tanh(_z(self.value) - q * self.below)

    def high(self, q: float) -> float:
        return math.tanh(_z(self.value) + q * self.above)


def _limits(current: _Estimate, earlier: _Estimate, q: float) -> tuple[float, float]:
    """Ends of the interval of current − earlier whose sides have the normal quantile `q`."""
    value = current.value - earlier.value
    down = math.hypot(current.value - current.low(q), earlier.high(q) - earlier.value)
    up = math.hypot(current.high(q) - current.value, earlier.value - earlier.low(q))
    return value - down, value + up


def _p_fallen(current: _Estimate, earlier: _Estimate) -> float:
    """The level at which an end of the interval lies at 0, by halving; ends move outwards as q grows."""
    from scipy.special import ndtr

    fallen = current.value < earlier.value
    inner, outer = 0.0, _WIDEST
    for _ in range(60):
        q = (inner + outer) / 2.0
        low, high = _limits(current, earlier, q)
        if (high < 0.0) if fallen else (low > 0.0):
            inner = q
        else:
            outer = q
    tail = float(ndtr(-outer))
    return tail if fallen else 1.0 - tail


def _undefined(reason: str, alpha: float, fall: float) -> Change:
    return Change(None, None, None, None, None, fall, alpha, reason)


def _z(r: float) -> float:
    return math.atanh(max(-_EDGE, min(_EDGE, r)))


def _quantile(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))


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
    return Shift(
        what,
        int(old.size),
        int(new.size),
        float(old.mean()),
        float(new.mean()),
        float(old.std(ddof=1)),
        float(new.std(ddof=1)),
        float(np.abs(shares[0] - shares[1]).max()),
    )


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
        n, rho2 = self.n_sources, _rho_squared(alpha, max(best_at, LEAST_STREAM))
        grown = n * rho2 + 1.0
        width = 2.0 * grown / (n * n * rho2) * math.log(math.sqrt(grown) / alpha)
        return self.error * math.sqrt(n) * math.sqrt(width)

    def half_width(self, alpha: float) -> float | None:
        """Half the width of the t interval at confidence 1 − `alpha`, for a stream that has ended; None as `radius`."""
        from scipy.special import stdtrit

        if self.n_sources < LEAST_STREAM or self.error is None:
            return None
        return float(stdtrit(self.n_sources - 1, 1.0 - alpha / 2.0)) * self.error


def stream_mean(values: FloatArray, sources: IntArray) -> StreamMean | None:
    """The mean of `values` (n,) whose items come from `sources` (n,) (whole numbers from 0); None without values."""
    if not values.size:
        return None
    _, place = np.unique(sources, return_inverse=True)
    n_sources = int(place.max()) + 1
    mean = float(values.mean())
    added = np.bincount(place, weights=values - mean, minlength=n_sources) / values.size
    error = float(np.sqrt((added**2).sum() * n_sources / (n_sources - 1))) if n_sources > 1 else None
    return StreamMean(mean, error, values.size, n_sources)


def share_of_level(alpha: float, k: int) -> float:
    """What the `k`-th stream (from 1) may spend of `alpha`."""
    return alpha / (k * (k + 1))


def _rho_squared(alpha: float, n: int) -> float:
    """ρ² by which the sequence is about narrowest at n (section 2.4, the approximation with a logarithm)."""
    spent = -2.0 * math.log(alpha)
    return (spent + math.log(spent + 1.0)) / n
