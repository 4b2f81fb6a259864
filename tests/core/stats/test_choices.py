"""core.stats.choices: AUC and strengths by the library, thresholds by hand, figures that hold for new items."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from core.findings.agreement import yes_no_finding
from core.records import Scale
from core.stats.choices import preference_agreement, rate, strengths, yes_no

SPREAD = np.arange(40)


def test_auc_is_that_of_the_library_with_ties():
    rng = np.random.default_rng(0)
    yes = rng.random(200) < 0.4
    scores = np.round(yes + rng.normal(size=200), 1)
    outcome = yes_no(scores, yes, np.arange(200))
    assert outcome.auc.value == pytest.approx(roc_auc_score(yes, scores))
    assert outcome.auc.interval.low < outcome.auc.value < outcome.auc.interval.high


def test_the_interval_of_the_auc_covers_by_source():
    """60 sources of 4 items that share a tendency; the true AUC is that of a huge draw."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sources = np.repeat(np.arange(n), 4)
        tendency = rng.normal(size=n)[sources]
        yes = tendency + rng.normal(size=4 * n) > 0.3
        return yes + tendency + rng.normal(size=4 * n), yes, sources

    rng = np.random.default_rng(1)
    scores, yes, _ = draw(rng, 30_000)
    truth = roc_auc_score(yes, scores)
    held = 0
    for _ in range(200):
        interval = yes_no(*draw(rng, 60)).auc.interval
        held += interval is not None and interval.low <= truth <= interval.high
    assert held / 200 == pytest.approx(0.95, abs=0.04)


def test_the_threshold_by_hand():
    scores, yes = [1, 2, 3, 4, 5], [0, 0, 1, 0, 1]
    # from 3 on: one false alarm; from 5 on: one miss; equal, so the lower one, half-way to the score below
    assert yes_no(scores, yes, np.arange(5)).threshold == 2.5
    assert yes_no(scores, yes, np.arange(5), alarm_cost=3).threshold == 4.5
    never = yes_no(scores[::-1], yes, np.arange(5), alarm_cost=9)
    assert never.threshold is None
    assert "always answering no" in yes_no_finding(never).headline


def test_figures_are_of_labels_that_did_not_choose():
    """Scores that mean nothing: the best threshold looks better than chance on the labels that chose it alone."""
    rng = np.random.default_rng(2)
    costs = []
    for _ in range(50):
        outcome = yes_no(rng.normal(size=40), rng.random(40) < 0.5, SPREAD)
        assert outcome.cost is not None
        costs.append(outcome.cost)
    assert np.mean(costs) > 0.48


def test_shares_cover_and_know_their_sources():
    rng = np.random.default_rng(3)
    sources = np.repeat(np.arange(40), 5)
    held = 0
    for _ in range(300):
        chance = rng.beta(4, 1, size=40)[sources]
        interval = rate(rng.random(200) < chance, sources, "").interval
        held += interval is not None and interval.low <= 0.8 <= interval.high
    assert 0.93 <= held / 300 <= 1.0
    alone, alike = rate(np.ones(40, bool), SPREAD, ""), rate(np.ones(200, bool), sources, "")
    assert alone.interval.low == pytest.approx(alike.interval.low, abs=0.01)  # five of a source are no five sources
    assert alone.interval.high == 1.0


def test_what_cannot_be_told_says_why():
    same = yes_no([1, 2], [1, 1], np.arange(2))
    assert same.auc.value is None
    assert yes_no_finding(same).lines == ("Concord can't choose a threshold: all 2 labels are the same.",)
    few = yes_no([1, 2, 3], [0, 1, 1], np.arange(3))
    assert few.auc.value == 1.0
    assert few.auc.interval is None
    assert "fewer than 8 sources" in few.auc.reason
    nan = yes_no([np.nan, 1, 2], [1, 0, 1], np.arange(3))
    assert nan.n == 2


# ── preferences ──────────────────────────────────────────────────────────────────────────────────────────────

SCALE = Scale(1, 3, 1.0)


def test_agreement_of_a_judge_that_knows_and_of_one_that_does_not():
    rng = np.random.default_rng(0)
    labels = rng.choice([1.0, 2.0, 3.0], size=400)
    sources = np.repeat(np.arange(100), 4)
    knows = preference_agreement(labels + rng.normal(scale=0.1, size=400), labels, sources, SCALE)
    assert knows.accuracy.value > 0.95
    assert knows.n_ties == np.count_nonzero(labels == 2)
    blind = preference_agreement(rng.uniform(1, 3, size=400), labels, sources, SCALE)
    assert blind.accuracy.interval.low < blind.always_one + 0.05
    assert blind.without_ties.value == pytest.approx(0.5, abs=0.1)
    none = preference_agreement(np.full(3, np.nan), np.ones(3), np.arange(3), SCALE)
    assert none.accuracy.value is None


def drawn(rng: np.random.Generator, theta: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first = rng.integers(theta.size, size=n)
    second = (first + rng.integers(1, theta.size, size=n)) % theta.size
    won = (rng.random(n) < 1 / (1 + np.exp(theta[first] - theta[second]))).astype(float)
    return first, second, won


def test_strengths_are_those_of_a_logistic_regression():
    rng, theta = np.random.default_rng(1), np.array([0.8, 0.0, -0.8])
    first, second, won = drawn(rng, theta, 5_000)
    found = strengths(first, second, won, np.arange(5_000), ["a", "b", "c"])
    x = np.zeros((5_000, 3))
    x[np.arange(5_000), second] += 1
    x[np.arange(5_000), first] -= 1
    library = LogisticRegression(fit_intercept=False, C=1e4, tol=1e-10).fit(x, won).coef_[0]
    ours = {strength.system: strength.value for strength in found.systems}
    assert [ours[name] for name in "abc"] == pytest.approx((library - library.mean()).tolist(), abs=0.01)
    assert [strength.system for strength in found.systems] == ["a", "b", "c"]


def test_who_never_lost_has_a_finite_strength_and_who_never_met_none():
    first, second = np.array([0, 0, 1, 1, 0, 1, 0, 1]), np.array([1, 1, 0, 0, 1, 0, 1, 0])
    won = (second == 0).astype(float)
    found = strengths(first, second, won, np.arange(8), ["best", "worst"])
    assert found.systems[0].system == "best"
    assert np.isfinite(found.systems[0].value)
    assert found.systems[0].wins == 1.0
    apart = strengths(np.array([0, 2]), np.array([1, 3]), np.ones(2), np.arange(2), list("abcd"))
    assert not apart.systems
    assert apart.reason == "no chain of pairs connects a and c"
