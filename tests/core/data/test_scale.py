"""Scales found from values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data.scale import USUAL, WIDEST, find_scale, is_usual
from core.records import Scale


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ([0, 1, 1], 0, 1, 1),
        ([0.0, 0.31, 1.0], 0, 1, None),
        ([-1, 0, 1], -1, 1, 1),
        ([1, 2, 3], 1, 3, 1),
        ([1, 2, 4], 1, 4, 1),
        ([1, 4.5, 5], 1, 5, 0.5),
        ([1, 6], 1, 6, 1),
        ([2, 7], 1, 7, 1),
        ([1, 10], 1, 10, 1),
        ([0, 10], 0, 10, 1),
        ([0, 3], 0, 3, 1),
        ([0, 55, 100], 0, 100, None),
        ([3.3333333333, 4.5], 1, 5, None),
    ],
)
def test_the_narrowest_scale_in_use_is_found(values: list[float], low: float, high: float, step: float | None) -> None:
    scale = find_scale(values)
    assert scale == Scale(low, high, step)
    assert is_usual(scale)


def test_steps_come_from_the_ratings_and_ends_from_both() -> None:
    assert find_scale([1.5, 4.6666], [1, 2, 5]) == Scale(1, 5, 1.0)
    assert find_scale([5.0], [1, 2.5]) == Scale(1, 5, 0.5)


def test_no_usual_scale_rounds_outward() -> None:
    scale = find_scale([-7.5, 3, 120.2, 40, 90])
    assert (scale, is_usual(scale)) == (Scale(-8, 121, None), False)
    assert find_scale([-5, -5]) == Scale(-5, -4, 1.0)


def test_a_stray_far_off_is_left_outside_but_a_neighbour_is_not() -> None:
    assert find_scale([1, 2, 3, 4, 5, 99]) == Scale(1, 5, 1.0)
    assert find_scale([1, 2, 3, 4, 5, 7]) == Scale(1, 7, 1.0)
    assert find_scale([1, 2, 99]).high == 100, "too few different values to call one of them a stray"
    assert find_scale([1, 1, 1, 1, 1, 3]) == Scale(1, 3, 1.0), "a rare label is no stray"
    assert find_scale([0, 0, 0, 0, 0, 1, 80]) == Scale(0, 100)
    assert find_scale([1, 2, 3, 4, 5, -999]) == Scale(1, 5, 1.0)
    assert find_scale([1, 2, 3, 4, 5] * 20 + [99] * 3).high == 100, "3 % are no strays"


def test_no_values() -> None:
    with pytest.raises(ValueError, match="without values"):
        find_scale([])


@given(st.sampled_from(USUAL), st.lists(st.integers(0, 4), min_size=5))
def test_a_scale_in_use_always_holds_what_is_on_it(ends: tuple[float, float], quarters: list[int]) -> None:
    low, high = ends
    values = [low + (high - low) * q / 4 for q in quarters]
    scale = find_scale([*values, low, high])
    assert is_usual(scale)
    if ends != WIDEST:  # on 0-100 a lone value far from the rest reads as a stray
        assert scale.low <= low
        assert scale.high >= high
