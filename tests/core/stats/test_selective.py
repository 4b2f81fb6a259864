"""Leaving the least sure out: the curve, the wish for an error, and whether it helps."""

from __future__ import annotations

import numpy as np
import pytest

from core.stats.conformal import abstain_over, kept_shares, surest_error


def test_the_curve_by_hand() -> None:
    # ten verdicts, the surest first, errors 0 to 9: half of them err 2 on average, all 4.5; the order is the best
    kept = kept_shares(np.arange(10.0), np.arange(10.0))
    half, every = kept[9], kept[-1]
    assert (half.share, half.expected, half.error, half.best) == (0.5, 4, 2, 2)
    assert (every.share, every.expected, every.error, every.best) == (1, 9, 4.5, 4.5)
    turned = kept_shares(np.arange(10.0)[::-1], np.arange(10.0))
    assert (turned[9].error, turned[9].best) == (7, 2)
    assert kept_shares(np.array([]), np.array([])) == ()


def test_the_wanted_error_says_who_goes() -> None:
    kept = kept_shares(np.arange(100.0), np.arange(100.0))
    asked = abstain_over(kept, 20)
    # the surest 41 err 20 on average: 40 % is the largest share on the curve, and nobody could keep more
    assert (asked.share, asked.most_expected, asked.overall) == (0.4, 39, 49.5)
    assert asked.least_gone == pytest.approx(0.59, abs=0.01)
    assert (abstain_over(kept, 60).share, abstain_over(kept, 60).least_gone) == (1.0, 0.0)
    nothing = abstain_over(kept_shares(np.arange(100.0), np.ones(100)), 0.5)
    assert (nothing.share, nothing.most_expected, nothing.least_gone) == (0.0, None, 1.0)


def test_sure_ones_err_less_where_the_model_knows() -> None:
    rng = np.random.default_rng(0)
    expected = rng.uniform(0.1, 1, 400)
    helped = surest_error(expected, expected * rng.uniform(0, 2, 400), np.arange(400) // 4)
    assert helped is not None
    assert helped.interval is not None
    assert helped.helps
    assert helped.interval.high < 0


def test_leaving_out_by_chance_helps_as_often_as_chance() -> None:
    rng = np.random.default_rng(1)
    helped = 0
    for _ in range(400):
        by_source = np.repeat(rng.exponential(1, 20), 6)
        test = surest_error(rng.uniform(size=120), by_source * rng.exponential(1, 120), np.arange(120) // 6)
        assert test is not None
        helped += test.helps
    assert helped <= 34  # 5 % of 400 is 20; 34 is three standard errors above


def test_few_sources_give_no_p() -> None:
    few = surest_error(np.arange(12.0), np.arange(12.0), np.arange(12) // 3)
    assert few is not None
    assert few.p is None
    assert few.interval is not None
    assert "fewer than 8 sources" in few.reason
    alone = surest_error(np.arange(12.0), np.arange(12.0), np.zeros(12, dtype=np.intp))
    assert alone is not None
    assert alone.interval is None
    assert surest_error(np.array([]), np.array([]), np.array([], dtype=np.intp)) is None
    even = surest_error(np.arange(12.0), np.ones(12), np.arange(12))
    assert even is not None
    assert (even.change, even.p) == (0, None)
