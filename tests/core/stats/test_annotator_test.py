"""core.stats.beside_raters: by hand, the correction's known thresholds, its size, and what is undefined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from core.stats import AnnotatorTest, AnnotatorTestSettings, annotator_test
from core.stats.beside_raters import mean_below
from core.stats.claims import LEAST_DUELS
from tests.core.stats.arrays import rated, raters


def outcome_of(ratings: Any, judge: Any, *, sources: Any = None, **how: Any) -> AnnotatorTest:
    return annotator_test(raters(ratings), judge, rated(ratings, sources), AnnotatorTestSettings(**how))


def test_by_hand():
    # three raters, four items.  Against rater 1 the others are (2, 3), (1, 1), (5, 4), (2, 4); the mean squares of
    # rater 1 (2, 1, 3, 3): .5, 0, 2.5, 1; of the judge (3, 2, 4, 3): .5, 1, .5, 1.  So tie, lost, won, tie.
    ratings = [[2.0, 1, 3, 3], [2.0, 1, 5, 2], [3.0, 1, 4, 4]]
    judge = [3.0, 2, 4, 3]
    first = outcome_of(ratings, judge).by_rater[0]
    assert (first.n_items, first.judge_wins, first.rater_wins, first.difference) == (4, 0.75, 0.75, 0.0)
    # d = (0, 1, -1, 0), tested against .15 by Wilcoxon's signed ranks, being under 30
    assert first.test == "Wilcoxon over items"
    assert first.p == pytest.approx(scipy_stats.wilcoxon(np.array([0.0, 1, -1, 0]) - 0.15, alternative="less").pvalue)
    # nominal: the share of the others that says the same.  Rater 1: 1/2, 1, 0, 0; judge: 1/2, 0, 1/2, 0
    nominal = outcome_of(ratings, judge, nominal=True).by_rater[0]
    assert (nominal.judge_wins, nominal.rater_wins, nominal.difference) == (0.75, 0.75, 0.0)


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
        assert (rater.n_items, rater.test) == (at.sum(), "t over items")
        assert rater.p == pytest.approx(expected)
        ps.append(expected)
        shares.append((s_judge >= s_rater).mean())
    rejected = scipy_stats.false_discovery_control(ps, method="by") <= 0.05
    assert [rater.replaceable for rater in outcome.by_rater] == rejected.tolist()
    assert 0 < rejected.sum() < 4
    assert outcome.omega == rejected.mean()
    assert outcome.rho == pytest.approx(np.mean(shares))
    assert outcome.passes == (rejected.mean() >= 0.5)


@pytest.mark.parametrize("n", [1, 5, 12])
def test_few_items_have_the_exact_p_of_scipy(n):
    d = np.random.default_rng(n).choice([1.0, 0.0, -1.0], n)
    expected = scipy_stats.wilcoxon(d - 0.15, alternative="less", method="auto").pvalue
    assert mean_below(d, 0.15)[0] == pytest.approx(expected)


def people(n_items: int, n_raters: int = 3, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    labels = np.clip(np.rint(3 + truth + 0.5 * rng.normal(size=(n_raters + 1, n_items))), 1, 5)
    return labels[:-1], labels[-1]


def test_under_thirty_items_nothing_passes_and_it_says_so():
    outcome = outcome_of(*people(LEAST_DUELS - 1))
    assert outcome.omega == 1.0
    assert outcome.passes is None
    assert any("fewer than 30 items" in caution for caution in outcome.cautions)
    enough = outcome_of(*people(200))
    assert enough.passes is True
    assert enough.cautions == ()
    assert outcome_of(*people(200, 2)).cautions == ("Only 2 raters; 3 or more are advised.",)


def test_by_source_is_ours_and_named():
    ratings, judge = people(240)
    sources = np.repeat(np.arange(40), 6)
    outcome = outcome_of(ratings, judge, sources=sources)  # the default where items share sources
    assert outcome.clustered and {rater.test for rater in outcome.by_rater} == {"t over sources"}
    assert not outcome_of(ratings, judge, sources=sources, clustered=False).clustered
    # every item a source of its own: the same as the paper's
    alone, papers = outcome_of(ratings, judge, clustered=True), outcome_of(ratings, judge)
    assert [rater.p for rater in alone.by_rater] == pytest.approx([rater.p for rater in papers.by_rater])
    few = outcome_of(ratings, judge, sources=np.arange(240) % 7, clustered=True)
    assert few.omega is None
    assert "only 7 sources; clustered by source it takes 8" in few.reason


def test_standardising_takes_out_how_a_rater_uses_the_scale():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=150)
    ratings = truth + 0.4 * rng.normal(size=(3, 150))
    judge = 40 + 10 * (truth + 0.4 * rng.normal(size=150))  # another scale
    assert outcome_of(ratings, judge).omega == 0.0
    outcome = outcome_of(ratings, judge, standardise=True)
    assert (outcome.omega, outcome.standardised) == (1.0, True)
    again = outcome_of(ratings * np.array([[1.0], [3.0], [0.2]]) + 7, judge, standardise=True)
    assert [rater.p for rater in again.by_rater] == pytest.approx([rater.p for rater in outcome.by_rater])


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [([[1.0, 2, 3]], "only one rater"), ([[1.0, np.nan, 2], [np.nan, 1.0, np.nan]], "fewer than two raters share")],
)
def test_undefined_says_why(ratings, reason):
    outcome = outcome_of(ratings, [1.0, 2, 3])
    assert (outcome.omega, outcome.rho, outcome.passes) == (None, None, None)
    assert outcome.as_json()["omega"] is None
