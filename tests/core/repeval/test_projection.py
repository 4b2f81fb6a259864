"""Projections against scikit-learn, one cell at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge as SklearnRidge

from core.errors import UsageError
from core.repeval.projection import MeanDifference, PaperPCA, PaperSVM, PublishedPCA, Ridge, Training

N, PAIRS = 40, 9


def task(dim: int, seed: int = 0) -> tuple[np.ndarray, Training]:
    """3 cells; the label shifts the states of cell 1 along one direction; cell 2 is constant."""
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=N)
    states = rng.normal(size=(3, N, dim))
    states[1] += 3 * np.outer(labels, np.eye(dim)[0])
    states[2] = 2.0
    order = np.argsort(labels[:30])
    training = Training(np.arange(30), labels[:30], order[::-1][:PAIRS], order[:PAIRS])
    return states.astype(np.float32), training


@pytest.mark.parametrize("dim", [6, 60])
def test_paper_pca_is_weighted_signed_components(dim: int) -> None:
    states, training = task(dim)
    k = min(5, dim)
    scores = PaperPCA(k).fit(states, training).score(states)
    assert scores.shape == (3, k, N)
    for cell in (0, 1):
        x = states[cell].astype(np.float64)
        differences = x[training.good] - x[training.bad]
        pca = PCA(k).fit(differences)
        projected = differences @ pca.components_.T
        signs = np.where((projected > 0).sum(axis=0) > PAIRS / 2, 1.0, -1.0)  # 9 pairs: no draws
        expected = np.cumsum((x @ pca.components_.T) * signs * pca.explained_variance_ratio_, axis=1).T
        assert np.allclose(scores[cell], expected, atol=1e-4)
    assert (scores[2] == 0).all()


def test_no_more_components_than_pairs_allow() -> None:
    states, training = task(60)
    few = Training(training.items, training.labels, training.good[:3], training.bad[:3])
    assert PaperPCA(8).fit(states, few).score(states).shape[1] == 2
    one = Training(training.items, training.labels, training.good[:1], training.bad[:1])
    with pytest.raises(UsageError, match="at least 2 differences"):
        PaperPCA(8).fit(states, one)


def test_published_variant_subtracts_twice_and_drops_the_odd_pair() -> None:
    states, training = task(6)
    found = PublishedPCA(seed=4).fit(states, training).score(states)[1, 0]
    x = states[1].astype(np.float64)
    flips = np.random.default_rng(4).choice([-1.0, 1.0], size=PAIRS)[:, None]
    turned = flips * (x[training.good] - x[training.bad])
    direction = PCA(1).fit(turned[0:8:2] - turned[1:8:2]).components_[0]
    votes = np.sign((x[training.good] - x[training.bad]) @ direction).sum()
    assert np.allclose(found, x @ direction * np.sign(votes), atol=1e-4)


def test_mean_difference() -> None:
    states, training = task(6)
    x = states[1].astype(np.float64)
    expected = x @ (x[training.good].mean(axis=0) - x[training.bad].mean(axis=0))
    assert np.allclose(MeanDifference().fit(states, training).score(states)[1, 0], expected, atol=1e-4)


@pytest.mark.parametrize("dim", [6, 60])  # fewer and more dimensions than items: both ways of solving
def test_ridge_is_scikit_learns_at_the_penalty_with_the_least_leave_one_out_error(dim: int) -> None:
    states, training = task(dim)
    penalties = (0.01, 1.0, 30.0)
    fitted = Ridge(penalties).fit(states, training)
    scores = fitted.score(states)
    for cell in (0, 1):
        x, y = states[cell].astype(np.float64), training.labels
        known = x[:30]
        standard = (x - known.mean(axis=0)) / known.std(axis=0)
        errors = []
        for penalty in penalties:
            gaps = []
            for out in range(30):  # the standardisation stays that of all 30, as in the estimator
                rest = np.delete(np.arange(30), out)
                model = SklearnRidge(alpha=penalty * dim).fit(standard[rest], y[rest])
                gaps.append(model.predict(standard[[out]])[0] - y[out])
            errors.append(np.square(gaps).mean())
        best = penalties[int(np.argmin(errors))]
        assert fitted.penalties_[cell] == best
        expected = SklearnRidge(alpha=best * dim).fit(standard[:30], y).predict(standard) - y.mean()
        assert np.allclose(scores[cell, 0], expected, atol=2e-3)
    assert (scores[2] == 0).all()


def test_svm_gives_the_probability_of_good() -> None:
    states, training = task(6)
    scores = PaperSVM().fit(states, training).score(states)
    assert scores.shape == (3, 1, N)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores[1, 0, training.good].min() > scores[1, 0, training.bad].max()
    assert (scores[2] == 0).all()


@pytest.mark.parametrize("make", [PaperPCA, PublishedPCA, MeanDifference, Ridge, PaperSVM])
def test_swapping_good_and_bad_turns_the_order_round(make: type) -> None:
    states, training = task(6)
    swapped = Training(training.items, -training.labels, training.bad, training.good)
    plain = make().fit(states[1:2], training).score(states[1:2])[0, -1]
    turned = make().fit(states[1:2], swapped).score(states[1:2])[0, -1]
    assert np.corrcoef(plain, turned)[0, 1] < -0.95


@pytest.mark.parametrize("make", [PaperPCA, PublishedPCA, MeanDifference, Ridge, PaperSVM])
def test_fitting_reads_no_other_rows(make: type) -> None:
    states, training = task(6)
    other = states.copy()
    other[:, 30:] = np.random.default_rng(9).normal(size=other[:, 30:].shape)
    kept = make().fit(states, training).score(states)
    assert np.array_equal(make().fit(other, training).score(states), kept)
