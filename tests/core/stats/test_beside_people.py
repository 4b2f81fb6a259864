"""core.stats.beside_people: by hand, by loops over scipy, what is undefined, and that one more rater is not above."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from core.errors import UsageError
from core.records import Measure
from core.stats import LEAST_SOURCES, beside_people, beside_people_words
from tests.core.stats.arrays import rated, raters

ORACLES = {"pearson": scipy_stats.pearsonr, "spearman": scipy_stats.spearmanr, "kendall": scipy_stats.kendalltau}
MEASURE = "Spearman rho, dataset level"


def drawn(n_sources: int = 12, per: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratings (3, n), a judge (n,) and sources (n,): whole numbers from 1 to 5."""
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(n_sources), per)
    truth = rng.normal(size=sources.size)
    labels = np.clip(np.rint(3 + truth + rng.normal(size=(4, sources.size))), 1, 5)
    return labels[:-1], labels[-1], sources


def by_loop(ratings: np.ndarray, judge: np.ndarray, statistic: str) -> float:
    """Mean over complete raters of judge's minus rater's coefficient with the mean of the others, over all items."""
    gaps = []
    for k, row in enumerate(ratings):
        others = np.delete(ratings, k, axis=0).mean(axis=0)
        gaps.append(ORACLES[statistic](judge, others).statistic - ORACLES[statistic](row, others).statistic)
    return float(np.mean(gaps))


def test_by_hand() -> None:
    # two raters: each is the other's target.  Judge with b: 1; a with b: .5 (one swap of three); judge with a: .5.
    a, b = [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]
    found = beside_people(raters([a, b]), b, rated([a, b]), Measure("spearman", "dataset"))
    assert [(one.judge, one.person) for one in found.by_rater] == [pytest.approx((1.0, 0.5)), pytest.approx((0.5, 0.5))]
    assert found.judge.value == pytest.approx(0.75)
    assert found.person.value == pytest.approx(0.5)
    assert found.difference == pytest.approx(0.25)
    assert (found.n_items, found.n_sources, found.n_raters) == (3, 3, 2)


@pytest.mark.parametrize("statistic", list(ORACLES))
def test_dataset_level_by_loops_and_jackknife_by_loops(statistic: Any) -> None:
    ratings, judge, sources = drawn()
    found = beside_people(raters(ratings), judge, rated(ratings, sources), Measure(statistic, "dataset"))
    assert found.difference == pytest.approx(by_loop(ratings, judge, statistic), abs=1e-12)
    left = np.array([by_loop(ratings[:, sources != s], judge[sources != s], statistic) for s in range(12)])
    error = np.sqrt(11 / 12 * ((left - left.mean()) ** 2).sum())
    half = scipy_stats.t.ppf(0.975, 11) * error
    limits = (found.difference - half, found.difference + half)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(limits)
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(abs(found.difference) / error, 11))


def test_sample_level_is_the_t_interval_over_sources() -> None:
    ratings, judge, sources = drawn(n_sources=20, per=8)
    found = beside_people(raters(ratings), judge, rated(ratings, sources), Measure("spearman", "sample"))
    own = np.array([by_loop(ratings[:, sources == s], judge[sources == s], "spearman") for s in range(20)])
    expected = scipy_stats.ttest_1samp(own, 0.0)
    assert found.difference == pytest.approx(own.mean())
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p == pytest.approx(expected.pvalue)
    assert "19 degrees of freedom" in found.interval.method


def test_only_items_that_judge_rater_and_somebody_else_have() -> None:
    ratings, judge, sources = drawn(n_sources=30)
    ratings[0, :40], ratings[1, 30:60], ratings[1:, 100:110], judge[120:] = np.nan, np.nan, np.nan, np.nan
    found = beside_people(raters(ratings), judge, rated(ratings, sources), Measure("pearson", "dataset"))
    for k, one in enumerate(found.by_rater):
        others = np.delete(ratings, k, axis=0)
        at = ~np.isnan(ratings[k]) & ~np.isnan(judge) & (~np.isnan(others)).any(axis=0)
        target = np.nanmean(others[:, at], axis=0)
        assert one.n_items == at.sum()
        assert one.judge == pytest.approx(scipy_stats.pearsonr(judge[at], target).statistic)
        assert one.person == pytest.approx(scipy_stats.pearsonr(ratings[k, at], target).statistic)


def test_a_source_counts_where_both_have_a_coefficient() -> None:
    ratings, judge, sources = drawn(n_sources=10, per=8)
    ratings[0, sources == 0], judge[sources == 1] = 3.0, 2.0  # rater 1 flat in source 0, the judge flat in source 1
    found = beside_people(raters(ratings), judge, rated(ratings, sources), Measure("spearman", "sample"))
    gaps = []
    for at in (sources == s for s in range(2, 10)):
        target = ratings[1:, at].mean(axis=0)
        own = scipy_stats.spearmanr(ratings[0, at], target).statistic
        gaps.append(scipy_stats.spearmanr(judge[at], target).statistic - own)
    assert found.by_rater[0].difference == pytest.approx(np.mean(gaps))
    assert found.n_sources == 9  # source 0 counts for the other two raters, source 1 for nobody


def test_under_eight_sources_nothing_is_told_apart() -> None:
    ratings, _, sources = drawn(n_sources=LEAST_SOURCES - 1, per=30)
    found = beside_people(
        raters(ratings), ratings.mean(axis=0), rated(ratings, sources), Measure("spearman", "dataset")
    )
    assert found.interval is not None
    assert found.interval.low > 0
    assert (found.p, found.standing) == (None, "open")
    assert "fewer than 8 sources" in beside_people_words(found, MEASURE)


@pytest.mark.parametrize(
    ("ratings", "judge", "reason"),
    [
        ([[1.0, 2, 3, 4]], [1.0, 2, 3, 4], "only one rater"),
        ([[1.0, 2, np.nan, np.nan], [np.nan, np.nan, 3, 4]], [1.0, 2, 3, 4], "no item that two people rated"),
        ([[1.0, 2, 3, 4], [1.0, 2, 3, 4]], [2.0, 2, 2, 2], "no rater can be ranked"),
    ],
    ids=["one rater", "nothing shared", "flat judge"],
)
def test_undefined_says_why(ratings: Any, judge: Any, reason: str) -> None:
    found = beside_people(raters(ratings), judge, rated(ratings), Measure("spearman", "dataset"))
    assert (found.difference, found.interval, found.p, found.standing) == (None, None, None, "open")
    assert reason in found.reason
    assert reason in beside_people_words(found, MEASURE)
    assert found.as_json()["difference"] is None


def test_one_source_has_a_value_and_no_interval() -> None:
    ratings, judge, _ = drawn()
    found = beside_people(raters(ratings), judge, rated(ratings, np.zeros(judge.size)), Measure("spearman", "dataset"))
    assert found.difference is not None
    assert (found.interval, found.p) == (None, None)


def test_many_sources_are_deleted_in_blocks() -> None:
    ratings, judge, _ = drawn(n_sources=450, per=1)
    found = beside_people(raters(ratings), judge, rated(ratings), Measure("spearman", "dataset"))
    assert found.interval is not None
    assert "450 sources in 200 blocks, t with 199 degrees of freedom" in found.interval.method


@pytest.mark.parametrize(("noise", "standing"), [(0.3, "above"), (0.95, "level"), (3.0, "below")])
def test_standing_and_sentence_follow_the_interval(noise: float, standing: str) -> None:
    rng = np.random.default_rng(6)
    truth = rng.normal(size=3_000)
    ratings, judge = truth + rng.normal(size=(3, 3_000)), truth + noise * rng.normal(size=3_000)
    found = beside_people(
        raters(ratings), judge, rated(ratings, np.repeat(np.arange(150), 20)), Measure("spearman", "dataset")
    )
    assert found.standing == standing
    said = beside_people_words(found, MEASURE, judge="judge A")
    claim = {"above": "better than", "level": "as well as", "below": "less well than"}[standing]
    assert said.startswith(f"judge A agrees with these raters {claim} one of them does")
    assert "each against the mean of the other raters" in said
    assert f"{MEASURE}, 3,000 items, 150 sources, 3 raters" in said


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one entry per item"):
        beside_people(raters([[1.0, 2.0]]), [1.0], rated([[1.0, 2.0]]), Measure("spearman", "dataset"))
    with pytest.raises(UsageError, match="infinity"):
        beside_people(
            raters([[1.0, np.inf], [1.0, 2.0]]),
            [1.0, 2.0],
            rated([[1.0, np.inf], [1.0, 2.0]]),
            Measure("spearman", "dataset"),
        )


def test_one_more_rater_is_rarely_above_in_a_short_simulation(repository: Path) -> None:
    command = [sys.executable, "tests/bench/bench_people.py", "--json", "--runs", "200", "--levels", "sample"]
    command += ["--raters", "3", "--sources", "25", "--judges", "one more", "better"]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    same, better = json.loads(done.stdout)["cells"]
    assert same["above"] <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5
    assert same["holds 0"] == pytest.approx(0.95, abs=0.04)
    assert better["above"] > 0.3


def test_no_interval_reaches_beyond_what_a_coefficient_can_be() -> None:
    """Three sources and agreement near 1: the plain jackknife would end above it."""
    rng = np.random.default_rng(4)
    truth = rng.normal(size=12)
    ratings = truth + 0.3 * rng.normal(size=(3, 12))
    found = beside_people(
        raters(ratings),
        truth + 0.5 * rng.normal(size=12),
        rated(ratings, np.repeat(np.arange(3), 4)),
        Measure("pearson", "dataset"),
    )
    assert found.judge.interval is not None
    assert found.person.interval is not None
    assert found.judge.interval.high == 1.0
    assert -1.0 <= found.judge.interval.low <= found.person.interval.high <= 1.0
