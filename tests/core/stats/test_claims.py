"""A claim follows from the test, whatever the point value is."""

from __future__ import annotations

import pytest

from core.records import Alignment, Interval
from core.stats import Difference, claim, difference_figures, gain_words, p_figure
from core.stats.claims import p_short_of


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


def test_a_p_that_falls_short_is_never_rounded_to_what_it_takes():
    assert p_short_of(0.032, 0.025) == "p = 0.032, and it takes 0.025"
    assert p_short_of(0.0053, 0.005) == "p = 0.0053, and it takes 0.005"
    assert p_short_of(0.01500004, 0.015) == "p = 0.01500004, and it takes 0.015"


def a_gain(value: float | None, p: float | None) -> Difference:
    sides = (Alignment("spearman", "sample", 0.44, 55), Alignment("spearman", "sample", 0.38, 55))
    interval = None if value is None else Interval(value - 0.04, value + 0.04)
    return Difference(value, interval, p, 55, *sides, reason="first judge: all scores are equal")


@pytest.mark.parametrize(
    ("value", "p", "words"),
    [
        (
            0.06,
            0.003,
            "The criteria bring a gain over no criteria on held-out items: +0.06 [+0.02, +0.10], p = 0.003",
        ),
        (-0.06, 0.003, "The criteria lower the alignment"),
        (0.06, 0.3, "A gain over no criteria is not shown"),
        (
            0.06,
            None,
            "cannot be told: +0.06 [+0.02, +0.10], no test: that takes at least 8 sources, and a",
        ),
        (None, None, "is undefined on held-out items: first judge: all scores are equal."),
    ],
)
def test_the_gain_is_told_with_its_test_and_its_items(value, p, words):
    said = gain_words(a_gain(value, p))
    assert words in said
    assert ("on the 55 items that both scored (0.44 and 0.38)" in said) == (value is not None)


def test_figures_are_whole():
    assert difference_figures(None, None, None) == "undefined"
    assert difference_figures(0.05, None, 0.0004) == "+0.05, p < 0.001"
    assert difference_figures(0.05, None, None, "they differ nowhere") == "+0.05, no p (they differ nowhere)"
    assert [p_figure(1.0), p_figure(0.9996), p_figure(0.5)] == ["p = 1", "p = 1", "p = 0.500"]
