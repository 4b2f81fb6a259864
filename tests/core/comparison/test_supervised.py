"""The plain regression: by sources, against a ridge written out, and where there is nothing to fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.comparison.supervised import PENALTIES, _cross_fitted, plain_regression
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.stats import spearman

ASPECT = "coherence"
WORDS = "the old house stood near a quiet river while people walked slowly home".split()


def written(n: int = 120, per_source: int = 2, seed: int = 0, labels: str = "length") -> GoldenSet:
    """Items whose labels grow with the number of words, or have nothing to do with them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 40, n)
    items = tuple(
        Item(f"i{k}", " ".join(rng.choice(WORDS, size)) + ".", f"doc{k // per_source}", "")
        for k, size in enumerate(sizes)
    )
    values = (
        np.clip(np.round(1 + sizes / 10 + rng.normal(0, 0.3, n)), 1, 5) if labels == "length" else rng.integers(1, 6, n)
    )
    return GoldenSet("small", "single", items, {ASPECT: AspectLabels(ASPECT, Scale(1, 5, 1.0), tuple(values.tolist()))})


def test_it_learns_what_texts_show_from_other_sources():
    golden = written()
    fitted = plain_regression(golden, ASPECT)
    assert fitted.n_labels == 96  # four fifths of 120
    assert float(spearman(fitted.values, golden.labels(ASPECT))) > 0.8


def test_no_item_is_predicted_from_labels_of_its_source():
    golden = written()
    labels = golden.labels(ASPECT)
    changed = np.where(golden.source_codes == 0, 6 - labels, labels)
    other = replace(golden, aspects={ASPECT: AspectLabels(ASPECT, Scale(1, 5, 1.0), tuple(changed.tolist()))})
    first, second = (plain_regression(own, ASPECT).values for own in (golden, other))
    mean_moved = changed.mean() - labels.mean()
    at = golden.source_codes == 0
    folds_alike = np.abs((second - first)[at] - mean_moved)
    assert folds_alike.max() < 0.02  # its own labels move the mean and, hardly, the penalty, not its weights
    assert np.abs((second - first)[~at] - mean_moved).max() > folds_alike.max()


def test_predictions_are_those_of_a_ridge_written_out():
    rng = np.random.default_rng(3)
    x, folds = rng.normal(size=(60, 4)), np.arange(60) % 5
    y = x @ [1.0, -0.5, 0.0, 0.2] + rng.normal(0, 0.5, 60)
    x, y = x - x.mean(axis=0), y - y.mean()

    def weights(kept: np.ndarray, penalty: float) -> np.ndarray:
        return np.linalg.solve(x[kept].T @ x[kept] + penalty * np.eye(4), x[kept].T @ y[kept])

    expected = np.empty(60)
    for fold in range(5):
        losses = []
        for penalty in PENALTIES:
            inner = [other for other in range(5) if other != fold]
            pairs = [(folds == other, weights((folds != other) & (folds != fold), penalty)) for other in inner]
            losses.append(sum(((x[told] @ own - y[told]) ** 2).sum() for told, own in pairs))
        own = weights(folds != fold, PENALTIES[int(np.argmin(losses))])
        expected[folds == fold] = x[folds == fold] @ own
    np.testing.assert_allclose(_cross_fitted(x, y, folds), expected, atol=1e-9)


@pytest.mark.parametrize("broken", ["few", "one source", "equal", "empty"])
def test_where_nothing_can_be_fitted_it_says_why(broken):
    golden = written(n=10 if broken == "few" else 40, per_source=40 if broken == "one source" else 2)
    if broken == "equal":
        golden = replace(golden, aspects={ASPECT: AspectLabels(ASPECT, Scale(1, 5, 1.0), (3.0,) * 40)})
    if broken == "empty":
        golden = replace(golden, items=tuple(replace(item, target="") for item in golden.items))
    fitted = plain_regression(golden, ASPECT)
    assert fitted.reason and np.isnan(fitted.values).all()
