"""Planning labels: what they would tell grows as it does in simulation, and a pilot takes the place of assumptions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records import Alignment, Interval
from core.stats.labels_needed import LabelPilot, enough_for, interval_curve, plan_labels


def half(n_items: int, n_sources: int, n_raters: int = 1, pilot: LabelPilot | None = None) -> float:
    ends = plan_labels(n_items, n_sources, n_raters, pilot=pilot).interval
    return (ends.high - ends.low) / 2


def test_single_items_by_hand() -> None:
    # r = .5 with three people; z = .5493, s = 1 / sqrt(100): tanh(.5493 ± .196) = .339 and .632
    plan = plan_labels(103, 103, 3)
    assert (plan.value, plan.interval.low, plan.interval.high) == pytest.approx((0.5, 0.339, 0.632), abs=0.001)
    # 2.4865 * sqrt(2) / 10 = .3516: .5 - tanh(.5493 - .3516)
    assert plan.fall == pytest.approx(0.5 - math.tanh(0.5493 - 0.3516), abs=0.001)


def test_the_width_is_that_of_simulated_alignments() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 200))
    y = 0.5 * x + math.sqrt(0.75) * rng.standard_normal((4000, 200))
    r = [float(np.corrcoef(a, b)[0, 1]) for a, b in zip(x, y, strict=True)]
    assert half(200, 200, 3) == pytest.approx((np.quantile(r, 0.975) - np.quantile(r, 0.025)) / 2, rel=0.1)


@given(st.integers(1, 2000), st.integers(1, 50), st.integers(1, 10))
def test_more_is_never_worse(n_sources: int, per: int, n_raters: int) -> None:
    now = half(n_sources * per, n_sources, n_raters)
    assert half(2 * n_sources * per, 2 * n_sources, n_raters) <= now + 1e-9
    assert half(n_sources * per, n_sources, n_raters + 1) <= now + 1e-9
    assert half(n_sources * per, n_sources * per, n_raters) <= now + 1e-9


def pilot(interval: Interval | None = None, value: float | None = 0.6) -> LabelPilot:
    found = Alignment("spearman", "dataset", value, 60, interval=interval)
    return LabelPilot(found, 60, 20, 3.0, 0.5)


def test_a_pilot_of_the_same_size_gives_its_own_interval() -> None:
    known = pilot(Interval(0.4, 0.75))
    again = plan_labels(60, 20, 3, pilot=known)
    assert again.value == pytest.approx(0.6)
    assert half(60, 20, 3, known) == pytest.approx(0.175, abs=0.005)
    assert half(240, 80, 3, known) == pytest.approx(0.175 / 2, abs=0.01)
    assert half(240, 20, 3, known) == pytest.approx(0.175, abs=0.005)  # no more sources: no more is known
    assert "judging by 60 labelled items" in again.words


def test_what_labels_are_enough_for() -> None:
    assert [len(enough_for(n, 50)) for n in (20, 50, 100, 200, 900)] == [0, 1, 2, 3, 3]
    assert enough_for(900, 15) == ()
    assert "Too few for anything" in plan_labels(10, 10).words
    assert plan_labels(4, 2).fall is None


def test_the_curve_shrinks_to_the_plan() -> None:
    plan = plan_labels(300, 60, 2)
    curve = interval_curve(plan)
    assert [point.n_items for point in curve] == [20, 50, 100, 200, 300]
    assert curve[-1] == plan
    widths = [point.interval.high - point.interval.low for point in curve]
    assert widths == sorted(widths, reverse=True)
