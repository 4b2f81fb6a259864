"""Changes of an alignment, of a distribution, of a mean looked at every day; and which of them so many labels show.

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

*Planning labels* (`plan_labels`): what an alignment will be known to, and which fall can be seen, by so many labels.
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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import Alignment, FloatArray, IntArray, Interval, JsonRecord, json_fields
from core.stats.claims import LEAST_SOURCES, SAME_EVERYWHERE, TOO_FEW
from core.stats.intervals import Z95, clustered_error, intraclass_correlation, t_quantile
from core.wording import counted

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
    few, known = "", []
    for name, side in (("now", now), ("in the judge file", then)):
        if side.value is None or side.interval is None:
            missing = f"the alignment has no interval{f' ({side.no_interval})' if side.no_interval else ''}"
            missing = missing if side.value is not None else side.reason or "the alignment is undefined"
            return replace(undefined, reason=f"{name}: {missing}")
        z, low, high = _z(side.value), _z(side.interval.low), _z(side.interval.high)
        known.append(
            (side.value, z, max(z - low, 0.0) / Z95, max(high - z, 0.0) / Z95)
        )  # standard errors of both sides
        few = TOO_FEW if side.interval.n_sources is not None and side.interval.n_sources < LEAST_SOURCES else few
    (value, z, below, above), (earlier, z_then, below_then, above_then) = known
    gap, error, error_then = value - earlier, (below + above) / 2.0, (below_then + above_then) / 2.0

    def ends_at(q: float) -> tuple[float, float]:
        """Ends of the interval of the difference whose sides have the normal quantile `q`."""
        down = math.hypot(value - math.tanh(z - q * below), math.tanh(z_then + q * above_then) - earlier)
        up = math.hypot(math.tanh(z + q * above) - value, earlier - math.tanh(z_then - q * below_then))
        return gap - down, gap + up

    # p is the level at which an end lies at 0; ends move outwards as q grows
    side_of_0 = int(gap < 0)
    first, last = (ends_at(q)[side_of_0] for q in (0.0, _WIDEST))
    at = _WIDEST if (last < 0.0 if side_of_0 else last > 0.0) else 0.0
    if first * last < 0.0:
        at = brentq(lambda q: ends_at(q)[side_of_0], 0.0, _WIDEST, xtol=1e-14)
    tail, q, told = float(ndtr(-at)), float(ndtri(1.0 - alpha)), float(ndtri(1.0 - alpha) + ndtri(POWER))
    n_needed = None
    if earlier - fall > -_EDGE and error != 0.0:  # else the fall leaves [-1, 1]
        room = ((z_then - _z(earlier - fall)) / told) ** 2 - error_then**2
        n_needed = math.ceil(now.n * error**2 / room) if room > 0 else None
    method = f"from the intervals of both (MOVER); {now.n} items now, {then.n} then"
    return Change(
        gap,
        Interval(*ends_at(q), 1.0 - 2.0 * alpha, method).within(-2.0, 2.0),
        None if few else tail if gap < 0 else 1.0 - tail,
        earlier - math.tanh(z_then - told * math.hypot(error, error_then)),
        n_needed,
        fall,
        alpha,
        p_reason=few,
    )


def _z(r: float, edge: float = _EDGE) -> float:
    return math.atanh(max(-edge, min(edge, r)))


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
    def words(self) -> str:
        """E.g. "Labels are distributed about as before (distance 0.04): mean 3.41, before 3.38."""
        how = "clearly " * (self.distance >= OTHER) + "otherwise" if self.distance >= SAME else "about as before"
        words = (
            f"{self.what.capitalize()} are distributed {how} (distance {self.distance:.2f}): mean {self.mean_now:.2f}, "
            f"before {self.mean_before:.2f}; spread {self.spread_now:.2f}, before {self.spread_before:.2f}."
        )
        if self.spread_now < NARROW * self.spread_before:
            words += " They spread less: a correlation falls by that alone, even where the judge is as good as before."
        return words

    def as_json(self) -> dict[str, Any]:
        """All figures and the sentence."""
        return json_fields(self, but=("what",)) | {"words": self.words}


def shift_between(what: str, before: ArrayLike, now: ArrayLike) -> Shift | None:
    """The shift from `before` to `now` (each (n,), NaN = missing); None where a side has fewer than 2 values."""
    from scipy.stats import ks_2samp

    old, new = (np.asarray(side, dtype=np.float64) for side in (before, now))
    old, new = old[~np.isnan(old)], new[~np.isnan(new)]
    if min(old.size, new.size) < 2:
        return None
    distance = float(ks_2samp(old, new, method="asymp").statistic)
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


# ── how many labels ──────────────────────────────────────────────────────────────────────────────────────────


def single_call_reliability(calls: ArrayLike) -> float:
    """ICC(1) of `calls` (n_items, n_calls), NaN = not read: of a single one of them, 1 = all calls of an item agree.

    Items with one call do not count.  NaN = undefined, with fewer than 2 items left or when all calls are equal.
    UsageError for an infinite call.
    """
    scores = np.asarray(calls, dtype=np.float64)
    if np.isinf(scores).any():
        raise UsageError("The calls hold infinity; a score is a finite number, or NaN where it was not read.")
    present = ~np.isnan(scores)
    present &= present.sum(axis=1, keepdims=True) >= 2
    return intraclass_correlation(scores[present], np.nonzero(present)[0])


USUAL_ALIGNMENT, USUAL_RATERS, USUAL_ICC = 0.5, 3.0, 0.2
USUAL_RELIABILITY = 0.5
"""Of a single person's label: Krippendorff's alpha lies between 0.3 and 0.7 on most public sets."""

MOST_ITEMS = 10_000_000
STEPS = (20, 50, 100, 200, 400, 800, 1600)
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
            half = (_z(ends.high, _SURELY) - _z(ends.low, _SURELY)) / 2.0
            more = min(n_items / max(1, pilot.n_items), n_sources / max(1, pilot.n_sources))
            worth = 3.0 + (Z95 / half) ** 2 * more
            basis = f"judging by {counted(pilot.n_items, 'labelled item')}"
        else:
            missing = f"it has no interval ({ours.no_interval or 'why is not known'})" if ends is None else ""
            basis = f"the pilot tells nothing: {ours.reason or missing or SAME_EVERYWHERE}; {basis}"
    if reliability > 0:  # not NaN
        factors = [n / (1.0 + (n - 1.0) * reliability) for n in (n_raters, measured)]
        value *= math.sqrt(factors[0] / factors[1])
    z = _z(value, _SURELY)
    value, error = math.tanh(z), 1.0 / math.sqrt(max(worth - 3.0, 1.0))
    fall = value - math.tanh(z - FALL_QUANTILES * math.sqrt(2.0) * error)
    method = f"expected: {worth:.0f} independent items' worth, Fisher's z"
    ends = Interval(math.tanh(z - Z95 * error), math.tanh(z + Z95 * error), method=method, n_sources=n_sources)
    # without a test over held-out sources they are enough for nothing
    enough = tuple(words for least, words in ENOUGH if n_items >= least and n_sources >= 2 * LEAST_SOURCES)
    seen = fall if fall <= max(value, 0.0) else None
    return LabelPlanning(n_items, n_sources, n_raters, value, ends, seen, enough, basis)


def interval_curve(plan: LabelPlanning, *, pilot: LabelPilot | None = None) -> tuple[LabelPlanning, ...]:
    """The plan at each of `STEPS` up to its items, with as many items a source: how the interval shrinks."""
    share = plan.n_sources / plan.n_items
    counts = sorted({*(n for n in STEPS if n < plan.n_items), plan.n_items})
    return tuple(plan_labels(n, max(1, round(n * share)), plan.n_raters, pilot=pilot) for n in counts)
