"""Test whether an alignment has fallen since it was exported.

The judge file has only the earlier alignment and its interval. So the interval of the difference is computed from the
two intervals (MOVER; Zou 2007, "Toward using confidence intervals to compare correlations", Psychological Methods 12,
equation 15)::

    lower = (now − then) − √((now − low_now)² + (high_then − then)²)
    upper = (now − then) + √((high_now − now)² + (then − low_then)²)

All intervals are over sources. For other confidence levels than 95 %, intervals are rescaled on Fisher's scale z =
atanh(r). The alignment has fallen, by a one-sided test at α, if the (1 − 2α) interval lies below 0.

With probability `POWER`, the test detects a fall of at least (q(1−α) + q(POWER)) · √(s_now² + s_then²). Here q is the
normal quantile, and s_now and s_then are the standard errors on Fisher's scale. Only s_now² shrinks with more new
items, as 1/n. So if s_then is too large, no number of new items suffices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from core.errors import UsageError
from core.records import Alignment, Interval, json_fields
from core.stats.intervals import Z95

POWER = 0.8
"""Probability of detecting a fall."""
_EDGE = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """Change in alignment since an earlier measurement.

    Attributes:
        value: Alignment now minus alignment then: a fall is negative. None if undefined.
        interval: Interval of `value` with confidence 1 − 2 · `alpha`. None if undefined.
        n_needed: Number of items needed to detect a fall of `fall`, with as many items per source as now. None if
            unknown, or if no number suffices.
        fall: The smallest fall that matters.
        alpha: Level of the one-sided test.
    """

    value: float | None
    interval: Interval | None
    n_needed: int | None
    fall: float
    alpha: float
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON; undefined values are null."""
        return json_fields(self) | {"confidence": self.interval and self.interval.confidence, "power": POWER}


def change_between(now: Alignment, then: Alignment, *, alpha: float = 0.05, fall: float = 0.1) -> Change:
    """Test whether an alignment has fallen from `then` to `now`, measured on different items.

    The result is undefined if a value or an interval is missing, or if statistics or levels differ. Its `reason` then
    says why.

    Args:
        now: The alignment now, with a 95 % interval.
        then: The earlier alignment, with a 95 % interval.
        alpha: Level of the one-sided test, in (0, 0.5).
        fall: The smallest fall that matters, in (0, 1].

    Raises:
        UsageError: `alpha` or `fall` is out of range.
    """
    from scipy.special import ndtri

    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha must be between 0 and 0.5; got {alpha:g}.")
    if not 0 < fall <= 1:
        raise UsageError(f"fall (the smallest fall that matters) must be above 0 and at most 1; got {fall:g}.")
    undefined = Change(None, None, None, fall, alpha)
    if now.measure != then.measure:
        return replace(undefined, reason=f"the judge file contains {then.measure} instead of {now.measure}")
    known = []
    for name, side in (("now", now), ("in the judge file", then)):
        if side.value is None or side.interval is None:
            missing = f"the agreement has no interval{f' ({side.no_interval})' if side.no_interval else ''}"
            missing = missing if side.value is not None else side.reason or "the agreement is undefined"
            return replace(undefined, reason=f"{name}: {missing}")
        # on Fisher's scale each side of an interval is 1.96 standard errors long
        z, low, high = fisher_z(side.value), fisher_z(side.interval.low), fisher_z(side.interval.high)
        known.append((side.value, z, max(z - low, 0.0) / Z95, max(high - z, 0.0) / Z95))
    (value, z, below, above), (earlier, z_then, below_then, above_then) = known
    q = float(ndtri(1.0 - alpha))
    down = math.hypot(value - math.tanh(z - q * below), math.tanh(z_then + q * above_then) - earlier)
    up = math.hypot(math.tanh(z + q * above) - value, earlier - math.tanh(z_then - q * below_then))
    method = f"MOVER method (Zou 2007), from both intervals; {now.n} items now, {then.n} before"
    ends = Interval(value - earlier - down, value - earlier + up, 1.0 - 2.0 * alpha, method)
    error, error_then, n_needed = (below + above) / 2.0, (below_then + above_then) / 2.0, None
    if earlier - fall > -_EDGE and error != 0.0:  # otherwise the fall leaves [-1, 1]
        room = ((z_then - fisher_z(earlier - fall)) / (q + float(ndtri(POWER)))) ** 2 - error_then**2
        n_needed = math.ceil(now.n * error**2 / room) if room > 0 else None
    return Change(value - earlier, ends.within(-2.0, 2.0), n_needed, fall, alpha)


def fisher_z(r: float, edge: float = _EDGE) -> float:
    """Return atanh of a correlation `r`, clipped to [-`edge`, `edge`] so that it is finite."""
    return math.atanh(max(-edge, min(edge, r)))
