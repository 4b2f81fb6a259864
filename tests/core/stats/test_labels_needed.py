"""Planning labels: what they would tell grows as it does in simulation, and a pilot takes the place of assumptions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f_oneway

from core.records import Alignment, Interval
from core.stats.labels_needed import (
    LabelPilot,
    enough_for,
    expected_alignment,
    plan_labels,
    single_call_reliability,
)


def half(n_items: int, n_sources: int, n_raters: int = 1, pilot: LabelPilot | None = None) -> float:
    ends = plan_labels(n_items, n_sources, n_raters, pilot=pilot).interval
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


def pilot(interval: Interval | None = None, value: float | None = 0.6) -> LabelPilot:
    found = Alignment("spearman", "dataset", value, 60, interval=interval)
    return LabelPilot(found, 60, 20, 3.0, 0.5)


def test_a_pilot_of_the_same_size_gives_its_own_interval():
    known = pilot(Interval(0.4, 0.75))
    again = plan_labels(60, 20, 3, pilot=known)
    assert again.value == pytest.approx(0.6)
    assert half(60, 20, 3, known) == pytest.approx(0.175, abs=0.005)
    assert half(240, 80, 3, known) == pytest.approx(0.175 / 2, abs=0.01)
    assert half(240, 20, 3, known) == pytest.approx(0.175, abs=0.005)  # no more sources: no more is known
    assert "judging by 60 labelled items" in again.words


def test_what_labels_are_enough_for():
    assert [len(enough_for(n, 50)) for n in (20, 50, 100, 200, 900)] == [0, 1, 2, 3, 3]
    assert enough_for(900, 15) == ()
    assert "Too few for anything" in plan_labels(10, 10).words
    assert plan_labels(4, 2).fall is None


# ── reliability of a single call ─────────────────────────────────────────────────────────────────────────────


def test_icc_by_hand():
    assert single_call_reliability([[1, 1], [2, 2], [5, 5]]) == pytest.approx(1.0)
    # items (1, 3), (5, 7): grand mean 4, item means 2 and 6; MSB = 2·(4 + 4) / 1 = 16, MSW = (1+1+1+1) / 2 = 2, k = 2
    assert single_call_reliability([[1, 3], [5, 7]]) == pytest.approx((16 - 2) / (16 + 2))


def test_icc_equals_the_one_of_the_f_ratio():
    # with k calls on every item, ICC(1) = (F − 1) / (F + k − 1)
    calls = np.random.default_rng(0).normal(size=(20, 1)) + np.random.default_rng(1).normal(size=(20, 4))
    f = f_oneway(*calls).statistic
    assert single_call_reliability(calls) == pytest.approx((f - 1) / (f + 3), abs=1e-12)


def test_spearman_and_brown():
    # 4 calls at .5 have the reliability 4·.5 / (1 + 3·.5) = .8: r grows by √(.8 / .5)
    values = expected_alignment(np.array([0.5, 0.5]), 1, np.array([0.5, 0.0]), [1, 4])
    assert values[0] == pytest.approx([0.5, 0.5 * np.sqrt(1.6)])
    assert np.isnan(values[1]).all(), "without reliability nothing can be predicted"
