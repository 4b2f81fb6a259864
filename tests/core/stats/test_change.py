"""The difference of two independent alignments against Zou's worked example, an oracle, and simulated truth; shifts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records import Alignment, Interval, Measure
from core.stats import LabelledItems, align
from core.stats.change import POWER, Change, change_between, share_of_level, shift_between, stream_mean


def aligned(value: float | None, low: float = 0.0, high: float = 0.0, n: int = 100) -> Alignment:
    interval = None if value is None else Interval(low, high)
    return Alignment("spearman", "dataset", value, n, interval=interval, reason="" if interval else "all are equal")


def fisher(r: float, n: int) -> Alignment:
    """With Fisher's interval: tanh(atanh r ± 1.96 / √(n − 3))."""
    half = 1.959963984540054 / math.sqrt(n - 3)
    return aligned(r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), n)


def test_the_interval_by_hand():
    """Now .49 [.355, .605], then .36 [.256, .456], at 95 %.

    lower: .13 − √((.49 − .355)² + (.456 − .36)²) = .13 − √(.018225 + .009216) = .13 − .165653 = −.035653
    upper: .13 + √((.605 − .49)² + (.36 − .256)²) = .13 + √(.013225 + .010816) = .13 + .155052 =  .285052
    """
    change = change_between(aligned(0.49, 0.355, 0.605), aligned(0.36, 0.256, 0.456), alpha=0.025)
    assert change.interval.confidence == pytest.approx(0.95)
    assert (change.interval.low, change.interval.high) == pytest.approx((-0.035653, 0.285052), abs=1e-6)


@given(st.floats(-0.9, 0.9), st.floats(-0.9, 0.9), st.integers(10, 500), st.integers(10, 500), st.floats(0.005, 0.4))
def test_p_and_interval_say_the_same(now, then, n, m, alpha):
    change = change_between(fisher(now, n), fisher(then, m), alpha=alpha)
    if abs(change.p - alpha) > 1e-6:
        assert (change.interval.high < 0) == (change.p < alpha)
    swapped = change_between(fisher(then, m), fisher(now, n), alpha=alpha)
    assert swapped.value == pytest.approx(-change.value if change.value is not None else None)
    assert (swapped.interval.low, swapped.interval.high) == pytest.approx((-change.interval.high, -change.interval.low))


def test_what_n_can_tell_by_hand():
    """r = .5, n = 103 on both sides: s = .1 each, together .141421; (1.644854 + .841621) · .141421 = .351641.

    atanh .5 = .549306; tanh(.549306 − .351641) = tanh .197665 = .195130: a fall of .304870.
    For a fall of .4: atanh .5 − atanh .1 = .448971; (.448971 / 2.486475)² = .032604; less s_then² = .01: .022604;
    n = 103 · .01 / .022604 = 45.57, so 46.  For .2: .549306 − .309520 = .239787; (…/2.486475)² = .0093 < .01: none.
    """
    assert pytest.approx(0.8) == POWER
    change = change_between(fisher(0.5, 103), fisher(0.5, 103), fall=0.4)
    assert change.detectable == pytest.approx(0.304870, abs=1e-5)
    assert change.n_needed == 46
    assert change_between(fisher(0.5, 103), fisher(0.5, 103), fall=0.2).n_needed is None


@pytest.mark.parametrize(
    ("now", "then", "reason"),
    [
        (aligned(None), aligned(0.5, 0.4, 0.6), "now: all are equal"),
        (aligned(0.5, 0.4, 0.6), aligned(None), "in the judge file: all are equal"),
        (Alignment("spearman", "dataset", 0.5, 9), aligned(0.5, 0.4, 0.6), "now: the alignment has no interval"),
        (aligned(0.5, 0.4, 0.6), Alignment("pearson", "system", 0.5, 9), "tells pearson at system level"),
    ],
)
def test_what_cannot_be_compared(now, then, reason):
    change = change_between(now, then)
    assert (change.value, change.interval, change.p, change.detectable, change.n_needed) == (None,) * 5
    assert reason in change.reason
    assert change.as_json()["value"] is None


def _drawn(rng: np.random.Generator, n: int, rho: float) -> Alignment:
    """Pearson with its cluster bootstrap interval on `n` items, 2 a source, that correlate by `rho`."""
    sources = np.repeat(np.arange(n // 2), 2)
    y = (rng.normal(size=n // 2)[sources] * 0.5 + rng.normal(size=n)) / math.sqrt(1.25)
    x = rho * y + math.sqrt(1 - rho**2) * rng.normal(size=n)
    return align(x, LabelledItems.from_arrays(y, sources), Measure("pearson", "dataset"), resamples=300, seed=rng)


def _fallen(rho: float, seeds: range) -> list[Change]:
    drawn = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        then = _drawn(rng, 160, 0.5)
        drawn.append(change_between(_drawn(rng, 120, rho), then))
    return drawn


def test_false_alarms_and_power_are_as_told():
    """200 pairs of samples each: a share of .05 has a standard error of .0154, one of .8 one of .028."""
    same = _fallen(0.5, range(200))
    assert np.mean([change.p is not None and change.p < 0.05 for change in same]) == pytest.approx(0.05, abs=0.045)
    detectable = float(np.median([change.detectable for change in same if change.detectable is not None]))
    worse = _fallen(0.5 - detectable, range(1000, 1200))
    assert np.mean([change.p is not None and change.p < 0.05 for change in worse]) == pytest.approx(0.8, abs=0.09)


# ── distributions ────────────────────────────────────────────────────────────────────────────────────────────


VALUES = st.lists(st.floats(-5, 5), min_size=2, max_size=30)


@given(VALUES, VALUES)
def test_the_distance_is_that_of_kolmogorov_and_smirnov(before, now):
    from scipy.stats import ks_2samp

    shift = shift_between("labels", before, [*now, np.nan])
    assert shift.distance == pytest.approx(ks_2samp(before, now, method="asymp").statistic)
    assert (shift.n_before, shift.n_now) == (len(before), len(now))


# ── a mean that may be looked at at any time ─────────────────────────────────────────────────────────────────────


def test_items_of_one_source_are_not_taken_for_independent_ones():
    values = np.array([1.0, 2.0, 4.0, 5.0])
    once, often = stream_mean(values, np.arange(4)), stream_mean(np.repeat(values, 10), np.repeat(np.arange(4), 10))
    assert (once.value, once.error) == (3.0, pytest.approx(values.std(ddof=1) / 2))
    assert often.error == pytest.approx(once.error)
    assert often.radius(0.05, 100) is None  # 4 sources
    assert stream_mean(np.array([]), np.array([], dtype=np.intp)) is None


def test_the_radius_by_hand():
    rng = np.random.default_rng(0)
    mean = stream_mean(rng.normal(size=400), np.arange(400))
    spent = -2 * math.log(0.05)
    rho2 = (spent + math.log(spent + 1)) / 400
    n = 400
    width = math.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * math.log(math.sqrt(n * rho2 + 1) / 0.05))
    assert mean.radius(0.05, 400) == pytest.approx(mean.error * math.sqrt(n) * width)


def test_shares_never_add_up_to_more_than_the_level():
    assert sum(share_of_level(0.05, k) for k in range(1, 100_000)) < 0.05
