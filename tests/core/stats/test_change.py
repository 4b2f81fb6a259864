"""The difference of two independent alignments against an example and simulated truth; labels to plan."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f_oneway

from core.findings.agreement import label_planning_words
from core.records import Alignment, Interval
from core.stats.change import POWER, change_between
from core.stats.intervals import intraclass_correlation
from core.stats.label_planning import plan_labels
from core.stats.stream_means import stream_mean


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
def test_swapping_turns_the_change_round(now, then, n, m, alpha):
    change = change_between(fisher(now, n), fisher(then, m), alpha=alpha)
    swapped = change_between(fisher(then, m), fisher(now, n), alpha=alpha)
    assert swapped.value == pytest.approx(-change.value if change.value is not None else None)
    assert (swapped.interval.low, swapped.interval.high) == pytest.approx((-change.interval.high, -change.interval.low))


def test_what_n_can_tell_by_hand():
    """r = .5, n = 103 on both sides: s = .1 each.  1.644854 + .841621 = 2.486475, atanh .5 = .549306.

    For a fall of .4: atanh .5 − atanh .1 = .448971; (.448971 / 2.486475)² = .032604; less s_then² = .01: .022604;
    n = 103 · .01 / .022604 = 45.57, so 46.  For .2: .549306 − .309520 = .239787; (…/2.486475)² = .0093 < .01: none.
    """
    assert pytest.approx(0.8) == POWER
    change = change_between(fisher(0.5, 103), fisher(0.5, 103), fall=0.4)
    assert change.n_needed == 46
    assert change_between(fisher(0.5, 103), fisher(0.5, 103), fall=0.2).n_needed is None


@pytest.mark.parametrize(
    ("now", "then", "reason"),
    [
        (aligned(None), aligned(0.5, 0.4, 0.6), "now: all are equal"),
        (aligned(0.5, 0.4, 0.6), aligned(None), "in the judge file: all are equal"),
        (Alignment("spearman", "dataset", 0.5, 9), aligned(0.5, 0.4, 0.6), "now: the agreement has no interval"),
        (aligned(0.5, 0.4, 0.6), Alignment("pearson", "system", 0.5, 9), "contains pearson at system level"),
    ],
)
def test_what_cannot_be_compared(now, then, reason):
    change = change_between(now, then)
    assert (change.value, change.interval, change.n_needed) == (None,) * 3
    assert reason in change.reason
    assert change.as_json()["value"] is None


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


# ── planning labels ──────────────────────────────────────────────────────────────────────────────────────────


def half(n_items: int, n_sources: int, n_raters: int = 1, measured: Alignment | None = None) -> float:
    ends = plan_labels(n_items, n_sources, n_raters, measured=measured).interval
    return (ends.high - ends.low) / 2


def test_single_items_by_hand():
    # r = .5 with three people; z = .5493, s = 1 / sqrt(100): tanh(.5493 ± .196) = .339 and .632
    plan = plan_labels(103, 103, 3)
    assert (plan.value, plan.interval.low, plan.interval.high) == pytest.approx((0.5, 0.339, 0.632), abs=0.001)
    # 2.4865 * sqrt(2) / 10 = .3516: .5 - tanh(.5493 - .3516)
    assert plan.fall == pytest.approx(0.5 - math.tanh(0.5493 - 0.3516), abs=0.001)


@given(st.integers(1, 2000), st.integers(1, 50), st.integers(1, 10))
def test_more_is_never_worse(n_sources, per, n_raters):
    now = half(n_sources * per, n_sources, n_raters)
    assert half(2 * n_sources * per, 2 * n_sources, n_raters) <= now + 1e-9
    assert half(n_sources * per, n_sources, n_raters + 1) <= now + 1e-9
    assert half(n_sources * per, n_sources * per, n_raters) <= now + 1e-9


def test_as_many_items_as_were_measured_give_their_own_interval():
    known = Alignment("spearman", "dataset", 0.6, 60, interval=Interval(0.4, 0.75, n_sources=20))
    again = plan_labels(60, 20, 3, measured=known)
    assert again.value == pytest.approx(0.6)
    assert half(60, 20, 3, known) == pytest.approx(0.175, abs=0.005)
    assert half(240, 80, 3, known) == pytest.approx(0.175 / 2, abs=0.01)
    assert half(240, 20, 3, known) == pytest.approx(0.175, abs=0.005)  # no more sources: no more is known
    assert "based on 60 labelled items" in label_planning_words(again)


def test_what_labels_are_enough_for():
    assert [len(plan_labels(n, 20).enough) for n in (20, 50, 100, 200, 900)] == [0, 1, 2, 3, 3]
    assert plan_labels(900, 15).enough == ()
    assert "Too few labels: the minimum" in label_planning_words(plan_labels(10, 10))
    assert plan_labels(4, 2).fall is None
    wide = Alignment("spearman", "dataset", 0.5, 60, interval=Interval(0, 0.8))
    assert "Enough" not in label_planning_words(plan_labels(60, measured=wide))


def test_more_raters_raise_the_alignment_as_spearman_and_brown_say():
    # 3 raters at .5 have the reliability 3·.5 / (1 + 2·.5) = .75, 6 have 6·.5 / (1 + 5·.5) = 6/7
    assert plan_labels(60, 20, 6).value == pytest.approx(0.5 * math.sqrt(6 / 7 / 0.75))


# ── reliability of a single value ────────────────────────────────────────────────────────────────────────────


def test_icc_equals_the_one_of_the_f_ratio():
    # with k calls on every item, ICC(1) = (F − 1) / (F + k − 1)
    calls = np.random.default_rng(0).normal(size=(20, 1)) + np.random.default_rng(1).normal(size=(20, 4))
    f = f_oneway(*calls).statistic
    icc = intraclass_correlation(calls.ravel(), np.repeat(np.arange(20), 4))
    assert icc == pytest.approx((f - 1) / (f + 3), abs=1e-12)
