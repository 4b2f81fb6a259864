"""core.stats.raters: one rater left out, and a judge in a rater's place; by hand and by loops over scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from core.records import Measure
from core.stats import (
    LEAST_SOURCES,
    AnnotatorTest,
    annotator_test,
    compare_with_raters,
    correct_for_judges,
    holm,
    leave_one_out,
)
from core.stats.raters import LEAST_DUELS
from tests.core.stats.arrays import ORACLES, rated, raters

NAN = np.nan
MEASURE = "Spearman rho, dataset level"


def left_out(ratings, statistic, level, groups=(), names=(), **drawn):
    return leave_one_out(raters(ratings, names), rated(ratings, *groups), Measure(statistic, level), **drawn)


def beside(ratings, judge, statistic, level, *, sources=None):
    return compare_with_raters(raters(ratings), judge, rated(ratings, sources), Measure(statistic, level))


def draw(seed=0, n_raters=3, n_sources=12, n_systems=5, holes=0.0, noise=1.0):
    """Ratings 1 to 5 with source effects; `holes` is the share of ratings that are missing."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_sources, 1)) + rng.normal(size=(n_sources, n_systems))
    error = noise * rng.normal(size=(n_raters, n_sources, n_systems))
    ratings = np.clip(np.rint(3 + truth + error), 1, 5).reshape(n_raters, -1)
    ratings[rng.random(ratings.shape) < holes] = NAN
    return ratings, np.repeat(np.arange(n_sources), n_systems), np.tile(np.arange(n_systems), n_sources)


def looped(ratings, sources, systems, statistic, level):
    """The average by definition: (value, n items, n groups) with loops over raters and groups."""
    oracle, values, weights = ORACLES[statistic], [], []
    items, groups = set(), set()
    for rater in range(ratings.shape[0]):
        others = np.delete(ratings, rater, axis=0)
        use = np.flatnonzero(~np.isnan(ratings[rater]) & ~np.isnan(others).all(axis=0))
        x, y = ratings[rater, use], np.nanmean(others[:, use], axis=0)
        if level == "dataset":
            values.append(oracle(x, y)[0])
            weights.append(use.size)
            items |= set(use.tolist())
        elif level == "system":
            names = np.unique(systems[use])
            means = np.array([[side[systems[use] == name].mean() for name in names] for side in (x, y)])
            # for ranks, ties must not hang on the order of sums
            values.append(oracle(*(means if statistic == "pearson" else means.round(9)))[0])
            weights.append(use.size)
        else:
            for source in np.unique(sources[use]):
                at = sources[use] == source
                if at.sum() >= 2 and np.unique(x[at]).size > 1 and np.unique(y[at]).size > 1:
                    values.append(oracle(x[at], y[at])[0])
                    weights.append(1)
                    groups.add(source)
    return np.average(values, weights=weights), len(items), len(groups)


@pytest.mark.parametrize("statistic", list(ORACLES))
@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_equals_loops_over_scipy(statistic, level, holes):
    ratings, sources, systems = draw(1, n_raters=4, holes=holes)
    found = left_out(ratings, statistic, level, groups=(sources, systems))[0]
    value, n_items, n_groups = looped(ratings, sources, systems, statistic, level)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.interval.low < found.value < found.interval.high
    twice = (~np.isnan(ratings)).sum(axis=0) >= 2
    assert found.n_unscored == 60 - twice.sum()
    if level == "dataset":
        assert found.n == n_items == twice.sum()
    elif level == "sample":
        assert (found.n_groups, found.n_left_out) == (n_groups, 12 - n_groups)
    else:
        assert found.n == 5


# ── a judge beside people ────────────────────────────────────────────────────────────────────────────────────


def drawn(n_sources=12, per=5, seed=0, noise=1.0):
    """Ratings (3, n), a judge (n,) and sources (n,): whole numbers from 1 to 5."""
    ratings, sources, _ = draw(seed, 4, n_sources, per, noise=noise)
    return ratings[:-1], ratings[-1], sources


def by_loop(ratings, judge, statistic):
    """For each rater, judge's minus rater's coefficient with the mean of the others, where both and they rated."""
    gaps = []
    for k, row in enumerate(ratings):
        others = np.delete(ratings, k, axis=0)
        at = ~np.isnan(row) & ~np.isnan(judge) & (~np.isnan(others)).any(axis=0)
        target = np.nanmean(others[:, at], axis=0)
        gaps.append(ORACLES[statistic](judge[at], target).statistic - ORACLES[statistic](row[at], target).statistic)
    return np.array(gaps)


@pytest.mark.parametrize("statistic", list(ORACLES))
@pytest.mark.parametrize("holes", [False, True])
def test_dataset_level_by_loops_and_jackknife_by_loops(statistic, holes):
    ratings, judge, sources = drawn(n_sources=20)
    if holes:
        ratings[0, :40], ratings[1, 30:60], ratings[1:, 90:95], judge[98:] = NAN, NAN, NAN, NAN
    standing = beside(ratings, judge, statistic, "dataset", sources=sources)
    gaps = by_loop(ratings, judge, statistic)
    assert [rater.difference for rater in standing.by_rater] == pytest.approx(gaps, abs=1e-12)
    if not holes:
        assert standing.difference == pytest.approx(gaps.mean(), abs=1e-12)
        left = np.array([by_loop(ratings[:, sources != s], judge[sources != s], statistic).mean() for s in range(20)])
        error = np.sqrt(19 / 20 * ((left - left.mean()) ** 2).sum())
        half = scipy_stats.t.ppf(0.975, 19) * error
        limits = (standing.difference - half, standing.difference + half)
        assert (standing.interval.low, standing.interval.high) == pytest.approx(limits)
        assert standing.p == pytest.approx(2 * scipy_stats.t.sf(abs(standing.difference) / error, 19))


def test_under_eight_sources_nothing_is_told_apart():
    ratings, _, sources = drawn(n_sources=LEAST_SOURCES - 1, per=30)
    standing = beside(ratings, ratings.mean(axis=0), "spearman", "dataset", sources=sources)
    assert standing.interval.low > 0
    assert (standing.p, standing.standing) == (None, "open")
    assert "fewer than 8 sources" in standing.reason


@pytest.mark.parametrize(
    ("ratings", "judge", "reason"),
    [
        ([[1.0, 2, 3, 4]], [1.0, 2, 3, 4], "only one rater"),
        ([[1.0, 2, np.nan, np.nan], [np.nan, np.nan, 3, 4]], [1.0, 2, 3, 4], "none of the items that two raters rated"),
        ([[1.0, 2, 3, 4], [1.0, 2, 3, 4]], [2.0, 2, 2, 2], "no rater can be compared"),
    ],
    ids=["one rater", "nothing shared", "flat judge"],
)
def test_a_judge_that_cannot_be_set_beside_people_says_why(ratings, judge, reason):
    standing = beside(ratings, judge, "spearman", "dataset")
    assert (standing.difference, standing.interval, standing.p, standing.standing) == (None, None, None, "open")
    assert reason in standing.reason
    assert standing.as_json()["difference"] is None


def test_several_judges_are_corrected_after_holm():
    results = []
    for seed in (1, 2, 3):
        ratings, _, sources = drawn(24, seed=seed, noise=0.6)
        judge = ratings.mean(axis=0) + 0.5 * seed * np.random.default_rng(seed).normal(size=120)
        results.append(beside(ratings, judge, "spearman", "dataset", sources=sources))
    corrected = correct_for_judges(results)
    assert [own.p for own in corrected] == pytest.approx(holm([own.p for own in results]).tolist())
    assert correct_for_judges(results[:1]) == results[:1]
    for before, after in zip(results, corrected, strict=True):
        wider = (after.interval.high - after.interval.low) / (before.interval.high - before.interval.low)
        t = scipy_stats.t(23).ppf  # 24 sources, at the level that 0.05 falls to as p rises
        assert wider == pytest.approx(t(1 - 0.025 * before.p / after.p) / t(0.975))
        assert (after.interval.low > 0 or after.interval.high < 0) == (after.p < 0.05)


# ── the Alternative Annotator Test ───────────────────────────────────────────────────────────────────────────


def outcome_of(ratings: Any, judge: Any, *, sources: Any = None, **how: Any) -> AnnotatorTest:
    return annotator_test(raters(ratings), judge, rated(ratings, sources), **how)


def test_annotators_by_hand():
    # three raters, four items.  Against rater 1 the others are (2, 3), (1, 1), (5, 4), (2, 4); the mean squares of
    # rater 1 (2, 1, 3, 3): .5, 0, 2.5, 1; of the judge (3, 2, 4, 3): .5, 1, .5, 1.  So tie, lost, won, tie.
    ratings = [[2.0, 1, 3, 3], [2.0, 1, 5, 2], [3.0, 1, 4, 4]]
    judge = [3.0, 2, 4, 3]
    first = outcome_of(ratings, judge).by_rater[0]
    assert (first.n_items, first.judge_wins, first.rater_wins, first.difference) == (4, 0.75, 0.75, 0.0)
    assert first.p is None  # of so few items


def test_t_test_omega_and_rho_by_loops():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=200)
    ratings = np.clip(np.rint(3 + truth + rng.normal(size=(4, 200)) * np.array([[0.5], [0.8], [1.0], [2.0]])), 1, 5)
    ratings[0, :50] = np.nan
    judge = np.clip(np.rint(3 + truth + 1.1 * rng.normal(size=200)), 1, 5)
    judge[190:] = np.nan
    outcome = outcome_of(ratings, judge, epsilon=0.1)
    ps, shares = [], []
    for k, rater in enumerate(outcome.by_rater):
        at = ~np.isnan(ratings[k]) & ~np.isnan(judge)
        others = np.delete(ratings, k, axis=0)[:, at]
        s_judge = -np.sqrt(np.nanmean((others - judge[at]) ** 2, axis=0))
        s_rater = -np.sqrt(np.nanmean((others - ratings[k, at]) ** 2, axis=0))
        d = (s_rater >= s_judge).astype(float) - (s_judge >= s_rater)
        expected = scipy_stats.ttest_1samp(d, 0.1, alternative="less").pvalue
        assert rater.n_items == at.sum()
        assert rater.p == pytest.approx(expected)
        ps.append(expected)
        shares.append((s_judge >= s_rater).mean())
    rejected = scipy_stats.false_discovery_control(ps, method="by") <= 0.05
    assert [rater.replaceable for rater in outcome.by_rater] == rejected.tolist()
    assert 0 < rejected.sum() < 4
    assert outcome.omega == rejected.mean()
    assert outcome.rho == pytest.approx(np.mean(shares))
    assert outcome.passes == (rejected.mean() >= 0.5)


def people(n_items: int, n_raters: int = 3, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    labels = np.clip(np.rint(3 + truth + 0.5 * rng.normal(size=(n_raters + 1, n_items))), 1, 5)
    return labels[:-1], labels[-1]


def test_raters_of_few_items_are_not_tested_and_it_says_so():
    few = outcome_of(*people(LEAST_DUELS - 1))
    assert (few.omega, few.passes) == (None, None)
    assert "30 items" in few.reason
    ratings, judge = people(200, 4)
    ratings[3, LEAST_DUELS - 1 :] = NAN
    outcome = outcome_of(ratings, judge)
    assert (outcome.passes, outcome.n_raters, outcome.by_rater[3].p) == (True, 3, None)
    assert "1 of 4 raters can't be tested: fewer than 30 of their items" in outcome.cautions[0]
    assert outcome_of(*people(200, 2)).cautions == ("Only 2 raters; we recommend 3 or more.",)


def test_items_that_share_sources_are_tested_by_source():
    ratings, judge = people(240)
    outcome = outcome_of(ratings, judge, sources=np.repeat(np.arange(40), 6))
    assert outcome.clustered and not outcome_of(ratings, judge).clustered
    few = outcome_of(ratings, judge, sources=np.arange(240) % 7)
    assert few.omega is None
    assert "at least 30 items from 8 sources" in few.reason


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [([[1.0, 2, 3]], "only one rater"), ([[1.0, np.nan, 2], [np.nan, 1.0, np.nan]], "fewer than two raters share")],
)
def test_an_undefined_annotator_test_says_why(ratings, reason):
    outcome = outcome_of(ratings, [1.0, 2, 3])
    assert (outcome.omega, outcome.rho, outcome.passes) == (None, None, None)
    assert outcome.as_json()["omega"] is None
