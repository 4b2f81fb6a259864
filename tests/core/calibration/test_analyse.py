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
    case_study,
    line_of,
    pool,
    refinements,
    trend_of,
)
from core.calibration.records import Calibration
from core.calibration.settings import CalibrationSettings
from core.errors import NotFoundError
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
    found = pool(result)
    n_items = len(result.split.calibration)
    at = list(result.split.calibration)
    whole = {
        name
        for name, row in zip(scores.criteria_ids, scores.values, strict=True)
        if np.isfinite(row[at]).all() and name != baseline(result)
    }
    assert {one.criteria_id for one in found.places} == whole
    assert found.n_items == n_items
    assert 3 <= len(found.places) < found.n_candidates == len(result.candidates) - 1
    assert [one.value for one in found.places] == sorted((one.value for one in found.places), reverse=True)


def baseline(result: Calibration) -> str:
    return next(one.criteria.criteria_id for one in result.candidates if one.status == "baseline")


def test_common_compares_all_on_the_same_few_items(ran: tuple[Calibration, ScoreMatrix]) -> None:
    """Every candidate's value is its Spearman rho per source, averaged, over the items that all of them share."""
    result, scores = ran
    found = pool(result, "common")
    assert len(found.places) == found.n_candidates
    assert found.n_items < len(result.split.calibration)
    rows = dict(zip(scores.criteria_ids, scores.values, strict=True))
    shared = np.flatnonzero(np.isfinite(np.stack([rows[one.criteria_id] for one in found.places])).all(axis=0))
    assert len(shared) == found.n_items
    labels, sources = GOLDEN.labels("quality"), GOLDEN.source_codes
    for one in (found.places[0], found.places[-1]):
        own = [
            stats.spearmanr(rows[one.criteria_id][group], labels[group]).statistic
            for source in np.unique(sources[shared])
            if len(set(labels[group := shared[sources[shared] == source]])) > 1
        ]
        assert one.value == pytest.approx(np.mean(own), abs=1e-12)


def test_a_budget_that_ends_the_race_leaves_no_complete_candidate() -> None:
    result, _ = run_whole(GOLDEN, PlantedJudge(), replace(SETTINGS, budget=150))
    assert result.stopped_early
    found = analyse(result)
    assert found.pool.places == ()
    assert found.pool.n_candidates > 0
    assert (found.by_size.rho, found.by_length.slope, found.by_pattern.difference) == (None, None, None)
    assert "fewer than" in found.by_size.reason
    assert refinements(result) == ()


def test_analysing_twice_gives_the_same(ran: tuple[Calibration, ScoreMatrix]) -> None:
    assert analyse(ran[0], "common") == analyse(ran[0], "common")


# ── by size ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_trend_is_over_drafts_alone() -> None:
    places = [place(v, exemplars=n) for v, n in ((0.1, 4), (0.2, 6), (0.3, 8), (0.25, 10))]
    refined = Place("r", "refine", 1, 0, 10, "holistic", 0.99)
    found = by_size([*places, refined], np.random.default_rng(0))
    assert (found.n, found.rho) == (4, pytest.approx(0.8))  # ranks 1 2 4 3: 1 − 6·2/60


def test_the_permutation_p_is_the_share_of_all_orders() -> None:
    """Five points with rho .9: the exact two-sided p over all 120 orders, which the sampled one must come near."""
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 2, 3, 5, 4])
    rho = stats.spearmanr(x, y).statistic
    exact = np.mean([abs(stats.spearmanr(x, order).statistic) >= rho - 1e-9 for order in permutations(y)])
    found = trend_of(x, y, np.random.default_rng(1))
    assert found.rho == pytest.approx(rho)
    assert found.p == pytest.approx(exact, abs=0.015)  # sd of 9,999 draws at p = .083 is .003
    assert found.n == 5


@pytest.mark.parametrize(
    ("x", "y"), [([1.0, 2.0], [1.0, 2.0]), ([4.0, 4.0, 4.0], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])]
)
def test_no_trend_where_there_is_none_to_tell(x: list[float], y: list[float]) -> None:
    found = trend_of(np.array(x), np.array(y), np.random.default_rng(0))
    assert (found.rho, found.p) == (None, None)
    assert found.reason


# ── by length ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_band_is_that_of_least_squares() -> None:
    """At x0 the band is the interval of the intercept when x is measured from x0, which scipy gives."""
    words = [30, 42, 55, 61, 78, 90, 120]
    values = np.array([0.31, 0.35, 0.30, 0.41, 0.39, 0.44, 0.40])
    found = line_of(words, values)
    t = stats.t.ppf(0.975, len(words) - 2)
    slope = stats.linregress(words, values)
    assert found.slope == pytest.approx(100 * slope.slope)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(100 * (slope.slope - t * slope.stderr))
    assert found.interval.high == pytest.approx(100 * (slope.slope + t * slope.stderr))
    for k in (0, 17, len(found.words) - 1):
        there = stats.linregress(np.array(words) - found.words[k], values)
        assert found.middle[k] == pytest.approx(there.intercept)
        assert found.low[k] == pytest.approx(there.intercept - t * there.intercept_stderr)
        assert found.high[k] == pytest.approx(there.intercept + t * there.intercept_stderr)
    assert (found.words[0], found.words[-1]) == (30, 120)


def test_two_points_have_a_line_and_no_band() -> None:
    """From (10, .1) to (60, .3): .2 over 50 words, .4 per 100."""
    found = line_of([10, 60], np.array([0.1, 0.3]))
    assert found.slope == pytest.approx(0.4)
    assert (found.interval, found.low, found.high) == (None, (), ())
    assert found.middle[0] == pytest.approx(0.1)
    assert "fewer than 3" in found.reason


@pytest.mark.parametrize(("words", "values"), [([], []), ([10], [0.2]), ([10, 10, 10], [0.1, 0.2, 0.3])])
def test_no_line_through_one_length(words: Sequence[int], values: Sequence[float]) -> None:
    found = line_of(words, np.array(values, dtype=np.float64))
    assert (found.slope, found.interval, found.words) == (None, None, ())
    assert found.reason
    assert found.n == len(words)


# ── by pattern ───────────────────────────────────────────────────────────────────────────────────────────────


def test_patterns_are_compared_by_their_means() -> None:
    """Means .2 (of .1 .2 .3) and .5 (of .4 .6): difference .3; intervals by scipy's t tests."""
    places = [place(v) for v in (0.1, 0.2, 0.3)] + [place(v, pattern="specific") for v in (0.4, 0.6)]
    found = by_pattern(places)
    holistic, specific = found.groups
    assert (holistic.pattern, holistic.n, holistic.mean) == ("holistic", 3, pytest.approx(0.2))
    assert (specific.pattern, specific.n, specific.mean) == ("specific", 2, pytest.approx(0.5))
    assert found.difference == pytest.approx(0.3)
    assert holistic.interval is not None
    assert specific.interval is not None
    assert found.interval is not None
    alone = stats.ttest_1samp([0.1, 0.2, 0.3], 0).confidence_interval()
    assert (holistic.interval.low, holistic.interval.high) == pytest.approx((alone.low, alone.high))
    welch = stats.ttest_ind([0.4, 0.6], [0.1, 0.2, 0.3], equal_var=False).confidence_interval()
    assert (found.interval.low, found.interval.high) == pytest.approx((welch.low, welch.high))
    assert "candidates" in found.interval.method


def test_one_pattern_alone_has_nothing_to_compare_with() -> None:
    found = by_pattern([place(0.4)])
    holistic, specific = found.groups
    assert (holistic.n, holistic.mean, holistic.interval) == (1, 0.4, None)
    assert (specific.n, specific.mean, specific.interval) == (0, None, None)
    assert (found.difference, found.interval) == (None, None)


# ── before and after ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_case_is_the_refinement_with_the_largest_inner_gain(
    ran: tuple[Calibration, ScoreMatrix],
) -> None:
    result, scores = ran
    gains = [one.inner_gain for one in refinements(result)]
    assert len(gains) > 1
    assert None not in gains
    assert gains == sorted(gains, reverse=True)
    case = case_study(result, GOLDEN, scores)
    assert case is not None
    assert case.child == refinements(result)[0].criteria
    assert case.inner_gain == gains[0]
    assert case.child.provenance.parents[0] == case.parent.criteria_id
    by_id = {one.criteria.criteria_id: one.alignment for one in result.candidates}
    after, before = by_id[case.child.criteria_id], by_id[case.parent.criteria_id]
    assert after is not None
    assert before is not None
    assert case.after["spearman"].value == pytest.approx(after.value)
    assert case.before["spearman"].value == pytest.approx(before.value)
    assert case.n == len(result.split.calibration)
    rows = dict(zip(scores.criteria_ids, scores.values, strict=True))
    at = np.array(result.split.calibration)
    labels, sources = GOLDEN.labels("quality")[at], GOLDEN.source_codes[at]
    taus = [
        stats.kendalltau(rows[case.child.criteria_id][at][sources == s], labels[sources == s]).statistic
        for s in np.unique(sources)
    ]
    assert case.after["kendall"].value == pytest.approx(np.nanmean(taus))
    for statistic, found in case.differences.items():
        assert found.value == pytest.approx(case.after[statistic].value - case.before[statistic].value)
        assert found.interval is not None


def test_another_refinement_can_be_chosen(ran: tuple[Calibration, ScoreMatrix]) -> None:
    result, scores = ran
    last = refinements(result)[-1].criteria
    case = case_study(result, GOLDEN, scores, last.criteria_id)
    assert case is not None
    assert case.child == last
    with pytest.raises(NotFoundError, match="no refinement"):
        case_study(result, GOLDEN, scores, baseline(result))


def test_no_case_without_refinement() -> None:
    result, scores = run_whole(GOLDEN, PlantedJudge(), replace(SETTINGS, rounds=0))
    assert case_study(result, GOLDEN, scores) is None
