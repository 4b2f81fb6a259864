"""The estimators of a fusion against scikit-learn and scipy."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import Ridge

from core.errors import UsageError
from core.fusion.fusion_settings import METHODS, FusionMethod
from core.fusion.stack import PENALTIES, fit_estimator, restore_estimator

RNG = np.random.default_rng(4)
TRUTH = RNG.normal(size=300)
SCORES = np.stack([TRUTH + RNG.normal(size=300), 5 * TRUTH + 10 + 20 * RNG.normal(size=300), RNG.normal(size=300)])
LABELS = 3 + TRUTH + 0.3 * RNG.normal(size=300)
SOURCES = np.arange(300) // 6
Z = (SCORES - SCORES.mean(axis=1)[:, None]) / SCORES.std(axis=1)[:, None]


def test_the_average_is_that_of_standardised_scores() -> None:
    scores = fit_estimator("average", SCORES, LABELS, SOURCES).score(SCORES)
    assert scores == pytest.approx(Z.mean(axis=0))


def test_ridge_equals_an_independent_one_at_the_penalty_it_chose() -> None:
    fitted = fit_estimator("ridge", SCORES, LABELS, SOURCES)
    assert fitted.penalty in PENALTIES
    oracle = Ridge(alpha=fitted.penalty).fit(Z.T, LABELS)
    assert fitted.weights == pytest.approx(oracle.coef_)
    assert fitted.score(SCORES) == pytest.approx(oracle.predict(Z.T))


@pytest.mark.parametrize("method", METHODS)
def test_items_with_equal_scores_are_fused_alike(method: FusionMethod) -> None:
    """A library's product parts them in the last digits, by their place: ranks would part too."""
    n, kinds = 1001, RNG.normal(size=(200, 5))
    kind = RNG.integers(5, size=n)
    fused = fit_estimator(method, kinds[:, kind], kind + RNG.normal(size=n), np.arange(n) // 7)
    assert len(np.unique(fused.score(kinds[:, kind]))) == 5


def test_nnls_equals_scipys_and_keeps_out_what_points_down() -> None:
    flipped = np.vstack([SCORES, -TRUTH + RNG.normal(size=300)])
    z = (flipped - flipped.mean(axis=1)[:, None]) / flipped.std(axis=1)[:, None]
    fitted = fit_estimator("nnls", flipped, LABELS, SOURCES)
    assert fitted.weights == pytest.approx(nnls(z.T, LABELS - LABELS.mean())[0])
    assert fitted.weights[3] == 0
    assert min(fitted.weights) >= 0


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_score_counts_as_the_mean_and_no_score_gives_none(method: FusionMethod) -> None:
    fitted = fit_estimator(method, SCORES, LABELS, SOURCES)
    items = np.array([[np.nan, np.nan, 1.0], [30.0, np.nan, np.nan], [np.nan, np.nan, 0.5]])
    scores = fitted.score(items)
    assert np.isnan(scores).tolist() == [False, True, False]
    if method != "average":
        filled = np.where(np.isnan(items), SCORES.mean(axis=1)[:, None], items)
        assert scores[[0, 2]] == pytest.approx(fitted.score(filled)[[0, 2]])


@pytest.mark.parametrize("method", METHODS)
def test_what_was_kept_scores_the_same(method: FusionMethod) -> None:
    fitted = fit_estimator(method, SCORES, LABELS, SOURCES)
    again = restore_estimator(json.loads(json.dumps(fitted.state())))
    assert (again.score(SCORES) == fitted.score(SCORES)).all()


def test_a_constant_assistant_is_no_division_by_zero() -> None:
    constant = np.vstack([SCORES, np.full(300, 7.0)])
    for method in METHODS:
        assert np.isfinite(fit_estimator(method, constant, LABELS, SOURCES).score(constant)).all()


@pytest.mark.parametrize(
    "change", [{"method": "magic"}, {"mean": ["x"]}, {"mean": None}, {"spread": [0.0] * 3}, {"weights": [1.0]}]
)
def test_a_damaged_state_is_refused(change: dict[str, object]) -> None:
    state = fit_estimator("ridge", SCORES, LABELS, SOURCES).state()
    with pytest.raises(UsageError, match="damaged"):
        restore_estimator(state | change)
