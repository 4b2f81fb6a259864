"""By what racing ranks: against scipy, source by source and over all items."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata, spearmanr, zscore

from core.calibration.standings import standings
from core.records import Measure
from core.stats import LabelledItems

RNG = np.random.default_rng(5)


def test_mean_of_the_alignment_and_two_correlations_over_all_items() -> None:
    """Each source's mean is taken from its scores and from their ranks over all items; labels are ranked within it."""
    sources = RNG.permutation(np.repeat(np.arange(5), (7, 3, 12, 4, 5)))  # of any size and order, with ties
    labels, scores = RNG.integers(1, 4, sources.size) / 3, RNG.normal(size=(3, sources.size))
    parts = [np.flatnonzero(sources == k) for k in range(5)]
    people = np.zeros(sources.size)
    for part in parts:
        labels[part[:2]] = (0.5, 2.5)  # no source of equal labels by chance
        people[part] = zscore(rankdata(labels[part]))

    def less_means(row: np.ndarray) -> np.ndarray:
        means = np.array([row[part].mean() for part in parts])
        return np.asarray(row - means[sources])

    expected = [
        np.mean(
            [
                np.mean([spearmanr(row[part], labels[part])[0] for part in parts]),
                pearsonr(less_means(rankdata(row)), people)[0],
                pearsonr(less_means(row), people)[0],
            ]
        )
        for row in scores
    ]
    items = LabelledItems.from_arrays(labels, sources)
    assert standings(scores, items, Measure("spearman", "sample")) == pytest.approx(expected, abs=1e-12)


def test_over_single_items_spearman_counts_twice_and_pearson_once() -> None:
    labels, scores = RNG.normal(size=12), RNG.normal(size=(2, 12))
    expected = [(2 * spearmanr(row, labels)[0] + pearsonr(row, labels)[0]) / 3 for row in scores]
    items = LabelledItems.from_arrays(labels)
    assert standings(scores, items, Measure("spearman", "dataset")) == pytest.approx(expected, abs=1e-12)


def test_at_system_level_the_alignment_alone_counts() -> None:
    labels, scores = RNG.normal(size=12), RNG.normal(size=(2, 12))
    items = LabelledItems.from_arrays(labels, np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3))
    means = [np.stack([row.reshape(3, 4).mean(axis=0) for row in (*scores, labels)])][0]
    expected = [spearmanr(means[k], means[2])[0] for k in (0, 1)]
    assert standings(scores, items, Measure("spearman", "system")) == pytest.approx(expected, abs=1e-12)
