"""A claim follows from the test, whatever the point value is; figures follow the exact value."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Interval, Scale
from core.stats import claim
from core.stats.claims import HALF_ALPHA
from core.stats.system_means import JudgedItems, system_means
from core.wording import p_cell, p_figure

LIKERT = Scale(1, 5, 1)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.0496, "p = 0.0496"),
        (0.0504, "p = 0.0504"),
        (0.04996, "p = 0.04996"),
        (0.050004, "p = 0.050004"),
        (0.05, "p = 0.050"),
        (0.012, "p = 0.012"),
        (0.0312, "p = 0.031"),
        (0.00099, "p < 0.001"),
        (0.99951, "p = 1"),
        (None, "no p"),
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


def test_corrected_means_stay_on_the_scale_and_differences_within_its_width():
    """Labels of A near 5 and verdicts that say more: uncut, the corrected mean and its interval pass 5."""
    rng = np.random.default_rng(0)
    n, n_labelled = 80, 12
    scores = np.concatenate([np.clip(rng.normal(4.0, 1.2, n), 1, 5), np.clip(rng.normal(1.6, 0.8, n), 1, 5)])
    labels = np.full(2 * n, np.nan)
    for start, base in ((0, 5.0), (n, 1.0)):
        labels[start : start + n_labelled] = np.where(np.arange(n_labelled) < 2, base + np.sign(3 - base), base)
    systems = np.repeat([0, 1], n).astype(np.intp)
    means = system_means(JudgedItems(labels, scores, np.arange(2 * n), systems, ("A", "B"), LIKERT))
    for system in means.systems:
        for mean in (system.corrected, system.labels_only, system.judge_only):
            assert 1.0 <= mean.interval.low <= mean.value <= mean.interval.high <= 5.0
    (pair,) = means.differences
    values = {system.name: system.corrected.value for system in means.systems}
    assert pair.value == pytest.approx(values[pair.a] - values[pair.b])
    for ends in (pair.interval, pair.tested_interval):
        assert ends is not None and -4.0 <= ends.low <= pair.value <= ends.high <= 4.0


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
