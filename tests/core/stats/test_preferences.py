"""Preferences: accuracy with ties by hand and cross-fitted, strengths beside the library's logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from core.records import Scale
from core.stats.preferences import preference_agreement, strengths

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


def test_intervals_cover_by_source():
    rng, theta = np.random.default_rng(2), np.array([0.5, 0.0, -0.5])
    held = []
    for _ in range(200):
        first, second, won = drawn(rng, theta, 200)
        found = strengths(first, second, won, np.arange(200), ["0", "1", "2"])
        held += [one.interval.low <= theta[int(one.system)] <= one.interval.high for one in found.systems]
    assert np.mean(held) == pytest.approx(0.95, abs=0.03)


def test_who_never_lost_has_a_finite_strength_and_who_never_met_none():
    first, second = np.array([0, 0, 1, 1, 0, 1, 0, 1]), np.array([1, 1, 0, 0, 1, 0, 1, 0])
    won = (second == 0).astype(float)
    found = strengths(first, second, won, np.arange(8), ["best", "worst"])
    assert found.systems[0].system == "best"
    assert np.isfinite(found.systems[0].value)
    assert found.systems[0].wins == 1.0
    apart = strengths(np.array([0, 2]), np.array([1, 3]), np.ones(2), np.arange(2), list("abcd"))
    assert not apart.systems
    assert apart.reason == "a and c are joined by no chain of pairs"
