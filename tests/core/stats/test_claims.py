"""A claim follows from the test, whatever the point value is; figures follow the exact value."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Interval
from core.stats import claim
from core.stats.intervals import HALF_ALPHA
from core.wording import difference_figures, p_cell, p_figure


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.0496, "p = 0.0496"),
        (0.050004, "p = 0.050004"),
        (0.05, "p = 0.050"),
        (0.0312, "p = 0.031"),
        (0.00099, "p < 0.001"),
        (0.99951, "p = 1"),
        (float("nan"), "no p"),
    ],
)
def test_a_p_is_written_so_that_its_side_of_the_limit_shows(p, words):
    assert p_figure(p, "no p") == words
    assert p is None or np.isnan(p) or p_cell(p) == words.removeprefix("p ").removeprefix("= ")


@pytest.mark.parametrize("p", [0.02501, 0.0253, 0.0496, 0.04999])
def test_a_p_that_falls_short_of_a_stricter_limit_names_it(p):
    words = p_figure(p, limit=HALF_ALPHA)
    assert words.endswith(", above 0.025") and not words.startswith(("p = 0.025,", "p = 0.050,"))
    assert claim(0.2, Interval(0.1, 0.3), p, alpha=HALF_ALPHA) == "open"
    assert claim(0.2, Interval(0.1, 0.3), p) == "higher"


@pytest.mark.parametrize(
    ("value", "interval", "p", "shown"),
    [
        (0.05, (0.01, 0.09), 0.012, "higher"),
        (-0.05, (-0.09, -0.01), 0.012, "lower"),
        (0.05, (-0.01, 0.11), 0.12, "open"),
        (0.05, (0.01, 0.09), 0.12, "open"),  # p carries a correction that the interval does not
        (0.05, (-0.01, 0.11), 0.04, "open"),  # and where the interval holds 0 a small p is not believed
        (0.30, (0.10, 0.50), None, "untested"),
        (0.30, None, float("nan"), "untested"),
        (0.0, None, 0.01, "open"),
        (None, None, None, "undefined"),
    ],
)
def test_only_a_test_makes_a_claim(value, interval, p, shown):
    assert claim(value, None if interval is None else Interval(*interval), p) == shown


def test_an_interval_that_contradicts_a_corrected_p_is_left_out():
    assert difference_figures(-0.1, (-0.19, -0.01), 0.077) == "−0.10, p = 0.077"
    assert difference_figures(-0.1, (-0.19, -0.01), None) == "−0.10 [−0.19, −0.01], no p"
    assert difference_figures(0.1, (-0.1, 0.3), 0.3) == "+0.10 [−0.10, +0.30], p = 0.300"
