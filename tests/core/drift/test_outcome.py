"""Distributions before and now: the distance against scipy's, the words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drift.outcome import shift_between

VALUES = st.lists(st.floats(-5, 5), min_size=2, max_size=30)


@given(VALUES, VALUES)
def test_the_distance_is_that_of_kolmogorov_and_smirnov(before: list[float], now: list[float]) -> None:
    from scipy.stats import ks_2samp

    shift = shift_between("labels", before, [*now, np.nan])
    assert shift is not None
    assert shift.distance == pytest.approx(ks_2samp(before, now, method="asymp").statistic)
    assert (shift.n_before, shift.n_now) == (len(before), len(now))


def test_by_hand() -> None:
    """Shares up to 1, 2, 3, 4: before .25 .5 .75 1, now 0 0 .5 1: largest difference .5.  Means 2.5 and 3.5."""
    shift = shift_between("labels", [1, 2, 3, 4], [3, 4, 3, 4])
    assert shift is not None
    assert (shift.distance, shift.mean_before, shift.mean_now) == (0.5, 2.5, 3.5)
    assert shift.spread_now == pytest.approx((1 / 3) ** 0.5)  # squares of ±.5: 4 · .25 / 3
    assert shift.narrower
    assert "clearly otherwise (distance 0.50)" in shift.words
    assert "correlation falls by that alone" in shift.words


def test_too_few() -> None:
    assert shift_between("labels", [1.0, np.nan], [1, 2, 3]) is None
