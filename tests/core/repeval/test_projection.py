"""Pairs and projections against scikit-learn, cell by cell; a fitted score as a file keeps it, by hand."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge as SklearnRidge

from core.errors import AspectError
from core.records import GoldenSet
from core.repeval import (
    RepEvalScorer,
    RepEvalSettings,
    States,
    run,
)
from core.repeval.projection import (
    PaperPCA,
    PaperSVM,
    Ridge,
    ScorerCell,
    Training,
    choose_pairs,
)

N, PAIRS = 40, 9


def task(dim: int, seed: int = 0) -> tuple[np.ndarray, Training]:
    """3 cells; the label shifts the states of cell 1 along one direction; cell 2 is constant."""
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=N)
    states = rng.normal(size=(3, N, dim))
    states[1] += 3 * np.outer(labels, np.eye(dim)[0])
    states[2] = 2.0
    order = np.argsort(labels[:30])
    training = Training(np.arange(30), labels[:30], order[::-1][:PAIRS], order[:PAIRS], np.arange(30))
    return states.astype(np.float32), training


def test_states_that_differ_little_keep_the_order_of_double_precision() -> None:
    """As the embeddings of a last token: one vector that all texts share, and small differences beside it."""
    states, training = task(60)
    states[0] = 1_000 + states[0] / 500
    x = states[0].astype(np.float64)
    differences = x[training.good] - x[training.bad]
    pca = PCA(3).fit(differences)
    gaps = differences @ pca.components_.T
    expected = x @ pca.components_.T @ (np.sign(np.sign(gaps).sum(axis=0)) * pca.explained_variance_ratio_)
    scores = PaperPCA(3).fit(states, training).score(states)[0, 2]
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(expected))


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


@pytest.mark.parametrize("dim", [6, 60])
def test_ridge_out_of_fold_is_scikit_learns_without_the_fold(dim: int) -> None:
    states, training = task(dim)
    folds = np.arange(30) // 2 % 4
    fitted = Ridge((1.0,)).fit(states, replace(training, folds=folds))
    x, y = states[1, :30].astype(np.float64), training.labels
    standard = (x - x.mean(axis=0)) / x.std(axis=0)  # over all training items, as the estimator has it
    for fold in range(4):
        seen, out = folds != fold, folds == fold
        model = SklearnRidge(alpha=dim).fit(standard[seen], y[seen])
        expected = model.predict(standard[out]) - y[seen].mean()
        assert np.allclose(fitted.out_of_fold_[1, out], expected, atol=1e-4)
    assert (fitted.out_of_fold_[2] == 0).all()


def test_svm_gives_the_probability_of_good() -> None:
    states, training = task(6)
    scores = PaperSVM().fit(states, training).score(states)
    assert scores.shape == (3, 1, N)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores[1, 0, training.good].min() > scores[1, 0, training.bad].max()
    assert (scores[2] == 0).all()


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(1, 4), min_size=6, max_size=40), st.integers(0, 5))
def test_no_text_twice_and_good_above_bad(labels: list[int], repeated: int) -> None:
    texts = [f"t{k % (len(labels) - repeated)}" for k in range(len(labels))]
    values = np.array(labels, dtype=np.float64)
    try:
        good, bad = choose_pairs(values, np.arange(len(labels)), texts, 10, generator=np.random.default_rng(0))
    except AspectError:
        return
    used = [texts[k] for k in (*good.tolist(), *bad.tolist())]
    assert len(set(used)) == len(used)
    assert (values[good] > values[bad]).all()


def again(scorer: RepEvalScorer) -> RepEvalScorer:
    """Through the text of a file and back."""
    return RepEvalScorer.from_json(json.loads(json.dumps(scorer.as_json(), allow_nan=False)))


@pytest.mark.parametrize("method", ["ridge", "paper-pca"])
def test_the_file_of_a_linear_method_scores_as_the_run_did(golden: GoldenSet, states: States, method: Any) -> None:
    states = replace(states, fingerprint="made", precision="float32")
    result = run(golden, "quality", states, RepEvalSettings(method=method, random_vectors=0))
    assert result.scorer is not None
    kept = again(result.scorer)
    assert len(kept.cells) == len(result.members)
    test = list(result.parts.test)  # of those that ridge learnt from the run has scores by fits without them
    scores = kept.score(states.values, states.layers, states.token_names)
    np.testing.assert_allclose(scores[test], result.scores[test], atol=1e-5, rtol=0)


def test_items_with_equal_states_score_alike_in_every_batch() -> None:
    """A library's product parts them in the last digits by their place, and ranks would part, too."""
    rng = np.random.default_rng(0)
    kinds, kind = rng.normal(size=(5, 384)), rng.integers(5, size=1001)
    cell = ScorerCell(0, "-1", 0.3, 1.7, rng.normal(size=384))
    whole = cell.score(kinds[kind])
    assert len(np.unique(whole)) == 5
    assert np.array_equal(np.concatenate([cell.score(kinds[kind][a : a + 7]) for a in range(0, 1001, 7)]), whole)


# ── files from anybody ───────────────────────────────────────────────────────────────────────────────────────


def coded(*numbers: float) -> str:
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


def cell(**changes: Any) -> dict[str, Any]:
    return {"layer": 1, "token": "-1", "centre": 0.5, "spread": 2.0, "direction": coded(1.0, 2.0), **changes}


def body(**changes: Any) -> dict[str, Any]:
    return {
        "model": "minilm",
        "revision": "",
        "fingerprint": "abc",
        "precision": "float32",
        "texts": "prompt",
        "template": "{hypothesis}",
        "criterion": "",
        "max_tokens": 128,
        "dim": 2,
        "cells": [cell()],
    } | changes


def test_the_score_by_hand() -> None:
    kept = RepEvalScorer.from_json(body(cells=[cell(), cell(token="mean", centre=0.0, spread=1.0)]))
    # (layers, tokens, dim) of one item: at "-1" (3, 4) → (3 + 8 − 0.5) / 2 = 5.25; at "mean" (1, 0) → 1; mean 3.125
    states = np.array([[[[3.0, 4.0], [1.0, 0.0]]], [[[np.inf, 0.0], [1.0, 0.0]]]], dtype=np.float16)
    verdicts = kept.score(states, (1,), ("-1", "mean"))
    assert verdicts[0] == pytest.approx(3.125)
    assert np.isnan(verdicts[1])
    assert kept.as_json() == body(cells=[cell(), cell(token="mean", centre=0.0, spread=1.0)])
