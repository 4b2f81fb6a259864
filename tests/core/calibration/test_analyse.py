"""Analyses of a calibration: who is compared with whom, and numbers derived by hand or by scipy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from core.calibration.analyse import (
    Place,
    analyse,
    by_pattern,
    by_size,
    line_of,
    pool,
    trend_of,
)
from core.calibration.records import Calibration
from core.calibration.settings import CalibrationSettings
from core.records import ScoreMatrix
from tests.core.calibration.planted import GOLDEN, PlantedJudge, run_whole

SETTINGS = CalibrationSettings(preset="quick", rounds=1, resamples=60)


@pytest.fixture(scope="module")
def ran() -> tuple[Calibration, ScoreMatrix]:
    return run_whole(GOLDEN, PlantedJudge(), SETTINGS)


def place(value: float, *, exemplars: int = 4, words: int = 10, pattern: Any = "holistic") -> Place:
    return Place(f"c{value}", "draft", 0, exemplars, words, pattern, value)


# ── who is compared ──────────────────────────────────────────────────────────────────────────────────────────


def test_only_candidates_on_all_items_are_complete(ran: tuple[Calibration, ScoreMatrix]) -> None:
    result, scores = ran
    pooled = pool(result)
    n_items = len(result.split.calibration)
    at = list(result.split.calibration)
    whole = {
        name
        for name, row in zip(scores.criteria_ids, scores.values, strict=True)
        if np.isfinite(row[at]).all() and name != baseline(result)
    }
    assert {one.criteria_id for one in pooled.places} == whole
    assert pooled.n_items == n_items
    assert 3 <= len(pooled.places) < pooled.n_candidates == len(result.candidates) - 1
    assert [one.value for one in pooled.places] == sorted((one.value for one in pooled.places), reverse=True)


def baseline(result: Calibration) -> str:
    return next(candidate.criteria.criteria_id for candidate in result.candidates if candidate.status == "baseline")


def test_common_compares_all_on_the_same_few_items(ran: tuple[Calibration, ScoreMatrix]) -> None:
    """Every candidate's value is its Spearman rho per source, averaged, over the items that all of them share."""
    result, scores = ran
    pooled = pool(result, "common")
    assert len(pooled.places) == pooled.n_candidates
    assert pooled.n_items < len(result.split.calibration)
    rows = dict(zip(scores.criteria_ids, scores.values, strict=True))
    shared = np.flatnonzero(np.isfinite(np.stack([rows[one.criteria_id] for one in pooled.places])).all(axis=0))
    assert len(shared) == pooled.n_items
    labels, sources = GOLDEN.labels("quality"), GOLDEN.source_codes
    for one in (pooled.places[0], pooled.places[-1]):
        own = [
            stats.spearmanr(rows[one.criteria_id][group], labels[group]).statistic
            for source in np.unique(sources[shared])
            if len(set(labels[group := shared[sources[shared] == source]])) > 1
        ]
        assert one.value == pytest.approx(np.mean(own), abs=1e-12)


def test_a_budget_that_ends_the_race_leaves_no_complete_candidate() -> None:
    result, _ = run_whole(GOLDEN, PlantedJudge(), replace(SETTINGS, budget=150))
    assert result.stopped_early
    analyses = analyse(result)
    assert analyses.pool.places == ()
    assert analyses.pool.n_candidates > 0
    assert (analyses.by_size.rho, analyses.by_length.slope, analyses.by_pattern.difference) == (None, None, None)
    assert "fewer than" in analyses.by_size.reason


def test_analysing_twice_gives_the_same(ran: tuple[Calibration, ScoreMatrix]) -> None:
    assert analyse(ran[0], "common") == analyse(ran[0], "common")


# ── by size ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_trend_is_over_drafts_alone() -> None:
    places = [place(v, exemplars=n) for v, n in ((0.1, 4), (0.2, 6), (0.3, 8), (0.25, 10))]
    refined = Place("r", "refine", 1, 0, 10, "holistic", 0.99)
    fitted = place(0.9, exemplars=0)  # to all labels, and drawn from no exemplars
    assert fitted.kind == "fitted strengths"
    trend = by_size([*places, refined, fitted], np.random.default_rng(0))
    assert (trend.n, trend.rho) == (4, pytest.approx(0.8))  # ranks 1 2 4 3: 1 − 6·2/60


def test_the_permutation_p_is_the_share_of_all_orders() -> None:
    """Five points with rho .9: the exact two-sided p over all 120 orders, which the sampled one must come near."""
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 2, 3, 5, 4])
    rho = stats.spearmanr(x, y).statistic
    exact = np.mean([abs(stats.spearmanr(x, order).statistic) >= rho - 1e-9 for order in permutations(y)])
    trend = trend_of(x, y, np.random.default_rng(1))
    assert trend.rho == pytest.approx(rho)
    assert trend.p == pytest.approx(exact, abs=0.015)  # sd of 9,999 draws at p = 0.083 is .003
    assert trend.n == 5


@pytest.mark.parametrize(
    ("x", "y"), [([1.0, 2.0], [1.0, 2.0]), ([4.0, 4.0, 4.0], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])]
)
def test_no_trend_where_there_is_none_to_tell(x: list[float], y: list[float]) -> None:
    trend = trend_of(np.array(x), np.array(y), np.random.default_rng(0))
    assert (trend.rho, trend.p) == (None, None)
    assert trend.reason


# ── by length ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_band_is_that_of_least_squares() -> None:
    """At x0 the band is the interval of the intercept when x is measured from x0, which scipy gives."""
    words = [30, 42, 55, 61, 78, 90, 120]
    values = np.array([0.31, 0.35, 0.30, 0.41, 0.39, 0.44, 0.40])
    line = line_of(words, values)
    t = stats.t.ppf(0.975, len(words) - 2)
    slope = stats.linregress(words, values)
    assert line.slope == pytest.approx(100 * slope.slope)
    assert line.interval is not None
    assert line.interval.low == pytest.approx(100 * (slope.slope - t * slope.stderr))
    assert line.interval.high == pytest.approx(100 * (slope.slope + t * slope.stderr))
    for k in (0, 17, len(line.words) - 1):
        there = stats.linregress(np.array(words) - line.words[k], values)
        assert line.middle[k] == pytest.approx(there.intercept)
        assert line.low[k] == pytest.approx(there.intercept - t * there.intercept_stderr)
        assert line.high[k] == pytest.approx(there.intercept + t * there.intercept_stderr)
    assert (line.words[0], line.words[-1]) == (30, 120)


def test_two_points_have_a_line_and_no_band() -> None:
    """From (10, .1) to (60, .3): .2 over 50 words, .4 per 100."""
    line = line_of([10, 60], np.array([0.1, 0.3]))
    assert line.slope == pytest.approx(0.4)
    assert (line.interval, line.low, line.high) == (None, (), ())
    assert line.middle[0] == pytest.approx(0.1)
    assert "fewer than 3" in line.reason


@pytest.mark.parametrize(("words", "values"), [([], []), ([10], [0.2]), ([10, 10, 10], [0.1, 0.2, 0.3])])
def test_no_line_through_one_length(words: Sequence[int], values: Sequence[float]) -> None:
    line = line_of(words, np.array(values, dtype=np.float64))
    assert (line.slope, line.interval, line.words) == (None, None, ())
    assert line.reason
    assert line.n == len(words)


# ── by pattern ───────────────────────────────────────────────────────────────────────────────────────────────


def test_patterns_are_compared_by_their_means() -> None:
    """Means .2 (of .1 .2 .3) and .5 (of .4 .6): difference .3; intervals by scipy's t tests."""
    places = [place(v) for v in (0.1, 0.2, 0.3)] + [place(v, pattern="specific") for v in (0.4, 0.6)]
    patterns = by_pattern(places)
    holistic, specific = patterns.groups
    assert (holistic.pattern, holistic.n, holistic.mean) == ("holistic", 3, pytest.approx(0.2))
    assert (specific.pattern, specific.n, specific.mean) == ("specific", 2, pytest.approx(0.5))
    assert patterns.difference == pytest.approx(0.3)
    assert holistic.interval is not None
    assert specific.interval is not None
    assert patterns.interval is not None
    alone = stats.ttest_1samp([0.1, 0.2, 0.3], 0).confidence_interval()
    assert (holistic.interval.low, holistic.interval.high) == pytest.approx((alone.low, alone.high))
    welch = stats.ttest_ind([0.4, 0.6], [0.1, 0.2, 0.3], equal_var=False).confidence_interval()
    assert (patterns.interval.low, patterns.interval.high) == pytest.approx((welch.low, welch.high))
    assert "candidates" in patterns.interval.method


def test_one_pattern_alone_has_nothing_to_compare_with() -> None:
    patterns = by_pattern([place(0.4)])
    holistic, specific = patterns.groups
    assert (holistic.n, holistic.mean, holistic.interval) == (1, 0.4, None)
    assert (specific.n, specific.mean, specific.interval) == (0, None, None)
    assert (patterns.difference, patterns.interval) == (None, None)


# ── before and after ─────────────────────────────────────────────────────────────────────────────────────────
