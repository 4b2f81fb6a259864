"""A whole run: the right cell wins, nothing leaks, what is undefined stays undefined, records survive storing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from core.records import GoldenSet
from core.repeval import (
    METHODS,
    RepEvalSettings,
    States,
    run,
    split_three,
)
from core.repeval.projection import PaperPCA, Ridge, Training
from core.repeval.search import RandomBaseline, Searched, average_cells, search, source_folds, training_of
from core.stats import LabelledItems

QUICK = RepEvalSettings(level="dataset", random_vectors=200)


@pytest.mark.parametrize("method", METHODS)
def test_the_cell_that_knows_the_label_wins(golden: GoldenSet, states: States, method: str) -> None:
    result = run(golden, "quality", states, replace(QUICK, method=method))  # type: ignore[arg-type]
    assert (result.chosen.layer, result.chosen.token) == (2, "-1")
    assert result.test.value is not None
    assert result.test.value > 0.6
    assert result.test.interval is not None
    assert result.test.n == len(result.parts.test) == 40
    test = np.array(result.parts.test)
    assert result.test.value == pytest.approx(spearmanr(result.scores[test], golden.labels("quality")[test]).statistic)
    assert (result.n_pairs > 0) == (method != "ridge")
    assert len(result.members) == (5 if method == "ridge" else 1)  # six cells, one constant


def test_parts_share_no_source(golden: GoldenSet, states: States) -> None:
    parts = run(golden, "quality", states, replace(QUICK, method="paper-pca")).parts
    sources = [set(golden.source_codes[list(part)].tolist()) for part in (parts.train, parts.validation, parts.test)]
    assert [len(codes) for codes in sources] == [8, 4, 8]  # 40/20/40 of 20
    assert not (sources[0] & sources[1] or sources[0] & sources[2] or sources[1] & sources[2])


def test_ridge_learns_from_all_that_is_not_tested_on(golden: GoldenSet, states: States) -> None:
    parts = run(golden, "quality", states, QUICK).parts
    assert parts.train == parts.validation
    sources = [set(golden.source_codes[list(part)].tolist()) for part in (parts.train, parts.test)]
    assert [len(codes) for codes in sources] == [12, 8]
    assert not sources[0] & sources[1]


def test_labels_of_a_fold_do_not_move_its_own_scores(golden: GoldenSet, states: States) -> None:
    """One cell, one penalty: the scores of a source that was learnt from come from fits without it."""
    train = np.flatnonzero(golden.source_codes < 12)
    folds = source_folds(golden.source_codes[train], seed=0)
    assert sorted(np.bincount(folds) // 5) == [1] * 8 + [2] * 2  # 12 sources of 5 items in 10 folds
    assert all(np.unique(folds[golden.source_codes[train] == source]).size == 1 for source in range(12))
    labels = golden.labels("quality")[train]
    turned = np.where(folds == 3, -labels, labels)
    cell = states.values[None, :, 2, 1].astype(np.float32)
    pairs = np.arange(2)
    plain, other = (
        Ridge((1.0,)).fit(cell, Training(train, each, pairs, pairs, folds)).out_of_fold_[0] for each in (labels, turned)
    )
    assert np.allclose(plain[folds == 3], other[folds == 3])
    assert not np.allclose(plain[folds != 3], other[folds != 3])


def test_labels_of_the_test_part_change_nothing_but_the_report(golden: GoldenSet, states: States) -> None:
    plain = run(golden, "quality", states, QUICK)
    values = list(golden.aspects["quality"].values)
    for position in plain.parts.test:
        values[position] = -values[position]  # type: ignore[operator]
    aspects = dict(golden.aspects) | {"quality": replace(golden.aspects["quality"], values=tuple(values))}
    turned = run(replace(golden, aspects=aspects), "quality", states, QUICK)
    assert np.array_equal(turned.scores, plain.scores)
    assert turned.validation == plain.validation
    assert turned.test.value == pytest.approx(-plain.test.value)  # type: ignore[operator]


def test_constant_and_broken_cells_are_undefined_not_zero(golden: GoldenSet, states: States) -> None:
    values = states.values.copy()
    values[7, 1, 0, 3] = np.inf
    result = run(golden, "quality", replace(states, values=values), QUICK)
    assert np.isnan(result.cells[0, 0])
    assert np.isnan(result.cells[1, 0])
    shown = result.as_json()
    assert shown["cells"][0][0] is None
    assert shown["cells"][1][0] is None
    assert shown["states"]["n_not_finite"] == 1
    assert any("non-finite states" in warning for warning in result.warnings)
    assert len(result.members) == 4  # six cells, two undefined


def searched(golden: GoldenSet, states: States, make: Any, how: RepEvalSettings) -> tuple[Searched, LabelledItems]:
    parts = split_three(golden, "quality", how)
    training = training_of(golden, "quality", parts, how)
    validation = LabelledItems.of(golden, "quality", parts.validation)
    return search(states, make, training=training, validation=validation, measure=how.measure), validation


def test_average_is_the_mean_of_z_scores_of_the_best_cells(golden: GoldenSet, states: States) -> None:
    found, validation = searched(golden, states, Ridge, QUICK)
    members, _, scores = average_cells(found, validation, 2)
    order = np.argsort(-np.nan_to_num(found.cells.ravel(), nan=-9))[:2]
    assert members.tolist() == [[i // 2, i % 2] for i in order]
    own = [found.scores[i // 2, i % 2] for i in order]
    seen = validation.positions
    assert np.allclose(scores, np.mean([(each - each[seen].mean()) / each[seen].std() for each in own], axis=0))


def test_random_vectors_lie_below_a_projection_that_knows(golden: GoldenSet, states: States) -> None:
    random = run(golden, "quality", states, QUICK).random
    assert random is not None
    assert random.values.shape == (200,)
    assert abs(np.median(random.values)) < 0.15  # as often against people as with them
    assert random.percentile is not None
    assert random.percentile > 95
    # 1 below, 2 equal of 4: (1 + 0.5 x 2) / 4
    assert RandomBaseline(0.5, np.array([0.1, 0.5, 0.5, 0.9, np.nan])).percentile == 50.0
    assert RandomBaseline(None, np.array([0.1])).percentile is None


# ── the search against a plain loop over scikit-learn and scipy ──────────────────────────────────────────────────

SETTINGS = RepEvalSettings(level="dataset", method="paper-pca", n_pairs=9)


def test_every_cell_and_k_equals_the_loop(golden: GoldenSet, states: States) -> None:
    found, validation = searched(golden, states, lambda: PaperPCA(4), SETTINGS)
    training = training_of(golden, "quality", split_three(golden, "quality", SETTINGS), SETTINGS)
    seen = validation.positions
    labels = golden.labels("quality")[seen]
    looped = np.full((3, 2, 4), np.nan)
    for layer, token in np.ndindex(3, 2):
        x = states.values[:, layer, token].astype(np.float64)
        if (layer, token) == (0, 0):  # constant
            continue
        differences = x[training.good] - x[training.bad]
        for k in range(1, 5):
            pca = PCA(k).fit(differences)
            votes = np.sign(differences @ pca.components_.T).sum(axis=0)  # 9 pairs: no draws
            scores = x[seen] @ pca.components_.T @ (np.sign(votes) * pca.explained_variance_ratio_)
            looped[layer, token, k - 1] = spearmanr(scores, labels).statistic
    assert np.allclose(found.values, looped, atol=1e-4, equal_nan=True)
    best = np.unravel_index(np.nanargmax(looped), looped.shape)
    members, _, _ = average_cells(found, validation, 99)
    assert members[0].tolist() == [best[0], best[1]]
    assert found.best_k[best[:2]] == best[2]
    assert len(members) == 5


def test_items_with_equal_states_score_alike_however_the_processor_adds_up() -> None:
    """Sums of equal numbers part in the last digits, by place in a matrix: ranks would, and so would alignments."""
    rng = np.random.default_rng(0)
    n, kinds = 1001, rng.normal(size=(5, 384)).astype(np.float16)
    kind, folds = rng.integers(5, size=n), np.arange(n) % 10
    labels = kind + rng.normal(size=n)
    training = Training(np.arange(n), labels, np.flatnonzero(kind > 2)[:50], np.flatnonzero(kind < 2)[:50], folds)
    items = LabelledItems.from_arrays(labels)
    for make in (lambda: PaperPCA(4), Ridge):
        states = States(kinds[kind][:, None, None, :], (0,), ("-1",), "made", "")
        found = search(states, make, training=training, validation=items, measure=SETTINGS.measure).scores
        of_kind = 5 * folds + kind if make is Ridge else kind  # a ridge scores each fold by its own fit
        for each in np.unique(of_kind):
            assert len(np.unique(found[0, 0, of_kind == each])) == 1
