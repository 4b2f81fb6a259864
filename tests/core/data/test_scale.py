"""Scales found from values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data.labels import USUAL, find_scale, is_usual, off_scale, strays
from core.records import Scale


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def cases(table: str) -> list[list[str]]:
    """The lines of a table, each cut at its bars."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


NARROWEST = """
    0 1 1 | 0 1 1
    0 0.31 1 | 0 1 -
    -1 0 1 | -1 1 1
    1 2 3 | 1 3 1
    1 2 4 | 1 4 1
    1 4.5 5 | 1 5 0.5
    1 6 | 1 6 1
    2 7 | 1 7 1
    1 10 | 1 10 1
    0 10 | 0 10 1
    0 3 | 0 3 1
    0 55 100 | 0 100 -
    3.3333333333 4.5 | 1 5 -
"""


@pytest.mark.parametrize(("values", "wanted"), cases(NARROWEST))
def test_the_narrowest_scale_in_use_is_found(values: str, wanted: str) -> None:
    low, high, step = wanted.split()
    scale = find_scale(numbers(values))
    assert scale == Scale(float(low), float(high), None if step == "-" else float(step))
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
    assert find_scale([1, 2, 99]) == Scale(1, 3, 1.0)
    assert find_scale([1, 1, 1, 1, 1, 3]) == Scale(1, 3, 1.0), "a rare label is no stray"
    assert find_scale([0, 0, 0, 0, 0, 1, 80]) == Scale(0, 100)
    assert find_scale([1, 2, 3, 4, 5, -999]) == Scale(1, 5, 1.0)
    assert find_scale([1, 2, 3, 4, 5] * 20 + [99] * 30) == Scale(1, 5, 1.0), "a code may come often"
    assert find_scale([1, 2, 3, 4, 5, 99], all_count=True).high == 100


CODES_AND_SLIPS = """
    5 4 3 2 1 3 5 99 99 2 | 99
    5 4 3 2 1 3 -99 2 | -99
    5 4 3 2 1 999 88 | 88 999
    5 4 3 2 1 -1 -1 -1 | -1
    5 4 3 2 1 0 2 | 0
    7 6 5 4 3 2 1 0 2 | 0
    0.2 0.4 0.5 0.9 -1 | -1
    0 1 1 0 99 | 99
    1 0 1 0 9999 | 9999
    1 2 3 4 5 3 4 9 | 9
    1 2 3 4 5 3 4 55 | 55
    1 2 3 4 5 3 4 44 45 3 2 4 | 44 45
    10 20 50 80 999 | 999
    10 20 50 80 -1 | -1
    2 1 0 -1 -2 99 | 99
"""
SCALES = """
    0 1 2 3 4
    0 1 2 3
    0 1 2 3 4 5 6 7 8 9 10
    1 2 3 4 5 6 7 8 9
    0 0.5 1 3 4.5 5
    -1 0 1
    -2 -1 0 1 2
    -3 -1 0 1 2 3
    0 20 35 60 99 100
    1 3 5 7
    2 5 7 9
    1 1 2 1 10
"""


@pytest.mark.parametrize(("values", "found"), [*cases(CODES_AND_SLIPS), *((line[0], "") for line in cases(SCALES))])
def test_codes_for_missing_and_slips_are_found(values: str, found: str) -> None:
    assert list(strays(np.array(numbers(values)))) == numbers(found)


OFF_SCALE = """
    -1 4 3 -1 1 2 5 | -1 | labels
    0 4 3 0 1 2 5 | 0 | labels
    99 4 3 1 2 5 | 99 | labels
    -99 4.5 3.2 1 2 5 | -99 | labels
    9 4 3 1 2 5 | 9 | labels
    1 2 5 | | labels
    1 2 3 5 6 7 8 9 10 | | own
    0.1 0.2 0.8 1.0 | | own
    0 1 1 0 | | own
    0.1 0.2 0.5 0.8 -1 | -1 | own
    10 40 80 95 -1 60 | -1 | own
    2 4 8 9 | | own
"""


@pytest.mark.parametrize(("scores", "unread", "scale"), [*cases(OFF_SCALE), ["4 3 2 1 " * 10 + "55", "55", "labels"]])
def test_scores_off_the_scale_of_the_labels(scores: str, unread: str, scale: str) -> None:
    given = np.array([*numbers(scores), np.nan])
    mask, own = off_scale(given, Scale(1, 5, 1))
    assert sorted(set(given[mask].tolist())) == numbers(unread)
    assert own is (scale == "own")


@given(st.sampled_from([(scale.low, scale.high) for scale in USUAL]), st.lists(st.integers(0, 4), min_size=5))
def test_a_scale_in_use_always_holds_what_is_on_it(ends: tuple[float, float], quarters: list[int]) -> None:
    low, high = ends
    values = [low + (high - low) * q / 4 for q in quarters]
    scale = find_scale([*values, low, high])
    assert is_usual(scale)
    assert scale.low <= low
    assert scale.high >= high
