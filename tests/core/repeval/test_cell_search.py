"""The batched search against a plain loop over scikit-learn and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from core.records import GoldenSet
from core.repeval import PairRule, RepEvalSettings, States, search, split_three
from core.repeval.cell_search import SearchResult, average_cells
from core.repeval.fitting import pairs_for
from core.repeval.projection import PaperPCA, Training
from core.repeval.states.records import finite_cells, varying_cells
from core.stats import LabelledItems

SETTINGS = RepEvalSettings(method="paper-pca", pairs=PairRule(n=9))


def searched(golden: GoldenSet, states: States) -> tuple[SearchResult, Training]:
    parts = split_three(golden, "quality", SETTINGS)
    pairs = pairs_for(golden, "quality", parts, SETTINGS)
    train, validation = (LabelledItems.of(golden, "quality", part) for part in (parts.train, parts.validation))
    training = Training(train.positions, train.labels, pairs.good, pairs.bad)
    found = search(
        states.values,
        lambda: PaperPCA(4),
        training=training,
        validation=validation,
        measure=SETTINGS.measure,
    )
    return found, training


def test_every_cell_and_k_equals_the_loop(golden: GoldenSet, states: States) -> None:
    found, training = searched(golden, states)
    seen = np.array(split_three(golden, "quality", SETTINGS).validation)
    labels = golden.labels("quality")[seen]
    looped = np.full((3, 2, 4), np.nan)
    for layer, token in np.ndindex(3, 2):
        x = states.cell(layer, token)
        if (layer, token) == (0, 0):  # constant
            continue
        differences = x[training.good] - x[training.bad]
        for k in range(1, 5):
            pca = PCA(k).fit(differences)
            votes = np.sign(differences @ pca.components_.T).sum(axis=0)  # 9 pairs: no draws
            scores = x[seen] @ pca.components_.T @ (np.sign(votes) * pca.explained_variance_ratio_)
            looped[layer, token, k - 1] = spearmanr(scores, labels).statistic
    assert np.allclose(found.values, looped, atol=1e-4, equal_nan=True)
    assert np.nanargmax(found.values) == np.nanargmax(looped)
    best = np.unravel_index(np.nanargmax(looped), looped.shape)
    assert found.ranked()[0].tolist() == [best[0], best[1]]
    assert found.best_k[best[:2]] == best[2]
    assert len(found.ranked()) == 5


def test_small_memory_changes_nothing(golden: GoldenSet, states: States, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = searched(golden, states)
    monkeypatch.setattr("core.repeval.cell_search.BATCH_BYTES", 1)
    parts, _ = searched(golden, states)
    assert np.allclose(parts.values, whole.values, atol=1e-6, equal_nan=True)
    assert np.allclose(parts.scores, whole.scores, atol=1e-5, equal_nan=True)


def test_usable_cells_are_finite_and_vary() -> None:
    values = np.random.default_rng(0).normal(size=(70, 2, 3, 4)).astype(np.float16)
    values[:, 0, 1] = values[0, 0, 1]  # constant in each dimension
    values[69, 1, 0, 2] = np.nan
    values[68, 1, 2, 0] = -np.inf
    values[:, 1, 1] = 0.0
    values[69, 1, 1, 3] = 6e-8  # one subnormal number is enough to vary
    assert (finite_cells(values) & varying_cells(values)).tolist() == [[True, False, True], [False, True, False]]


def test_one_cell_keeps_its_own_scores(golden: GoldenSet, states: States) -> None:
    found, _ = searched(golden, states)
    validation = LabelledItems.of(golden, "quality", split_three(golden, "quality", SETTINGS).validation)
    members, scores = average_cells(found, validation, 1)
    layer, token = np.unravel_index(np.nanargmax(found.cells), found.cells.shape)
    assert members.tolist() == [[layer, token]]
    assert np.array_equal(scores, found.scores[layer, token])
