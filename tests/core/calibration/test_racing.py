"""Racing: the order of the items, the schedule and its calls, and what candidates are ranked by."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, rankdata, spearmanr, zscore

from core.calibration.calibration_records import CalibrationSettings
from core.calibration.racing import (
    CHUNK,
    race_calls,
    race_keys,
    racing_order,
    schedule,
    spread_in_sources,
    whole_sources,
)
from core.records import Measure
from core.stats import LabelledItems

RACING = CalibrationSettings()


@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=9), min_size=1, max_size=30),
    st.integers(0, 5),
    st.sampled_from(["dataset", "sample", "system"]),
    st.booleans(),
)
def test_every_order_has_every_item_once(groups: list[list[int]], seed: int, level: str, early: bool) -> None:
    labels = np.concatenate([np.array(group, dtype=float) for group in groups])
    sources = np.repeat(np.arange(len(groups)) * 3, [len(group) for group in groups])
    settings = replace(RACING, seed=seed, level=level)  # type: ignore[arg-type]
    order = racing_order(LabelledItems.from_arrays(labels, sources), settings, may_end_early=early)
    assert sorted(order.items.tolist()) == list(range(labels.size))
    assert order.ends[-1] == labels.size
    assert order.ends.tolist() == sorted(set(order.ends))
    assert order.nearest_end(0.0) == order.ends[0]
    assert order.up_to(1.0) == order.nearest_end(1e9) == labels.size


def test_a_source_gives_its_ends_and_two_from_between_first() -> None:
    """Labels 0 to 9 of a source: places 0, 3, 6, 9 first; of what is left, 1 2 4 5 7 8, places 0, 2, 3, 5; then two."""
    labels, sources = np.array([7.0, 2, 9, 0, 4, 1, 8, 3, 6, 5, 1, 1, 1]), np.repeat([4, 2], [10, 3])
    order = spread_in_sources(labels, sources, seed=1)
    told = [sorted(labels[chunk]) for chunk in np.split(order.items, order.ends[:-1])]
    assert told == [[0, 3, 6, 9], [1, 4, 5, 8], [2, 7], [1, 1, 1]]  # equal labels, which rank nothing, last
    assert order.ends.tolist() == [CHUNK, 8, 10, 13]


# ── the schedule ──


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=60),
    st.integers(1, 80),
    st.integers(1, 8),
    st.integers(0, 5),
)
def test_schedule_narrows_arms_and_widens_items(sizes: list[int], arms: int, finalists: int, seed: int) -> None:
    sources = np.repeat(np.arange(len(sizes)), sizes)
    order = whole_sources(sources, seed)
    settings = replace(RACING, keep=finalists, ensemble=1)
    rungs = schedule(settings, arms, order)
    assert rungs[0][0] == arms
    assert rungs[-1][1] == len(sources)
    assert rungs[-1][0] >= min(arms, finalists)
    for before, after in itertools.pairwise(rungs):
        assert after[0] <= before[0]
        assert after[1] > before[1]
    assert race_calls(settings, arms, order) <= arms * len(sources)


@pytest.mark.parametrize(("n_sources", "size"), [(50, 16), (112, 10), (400, 5)])
@pytest.mark.parametrize("arms", [59, 60, 72])
def test_a_race_of_many_items_takes_at_most_15_percent_of_the_calls(n_sources: int, size: int, arms: int) -> None:
    n = n_sources * size
    order = spread_in_sources(np.random.default_rng(0).normal(size=n), np.repeat(np.arange(n_sources), size), 0)
    assert race_calls(RACING, arms, order) <= 0.15 * arms * n


def test_rungs_by_hand() -> None:
    """50 sources of 16 are 800 items: 4 % are 32, then half as many again, 48, 72, 108, 162, 243, 364.5, 546.75, cut at

    chunks of 4 to the nearest, 160, 244, 364, 548 (where two are as near the first, 160).  Of 60 arms .64 go on, never
    under 4: 38.4, 24.576, 15.7, 10.07, 6.4, 4.1, 2.6.
    """
    order = spread_in_sources(np.tile(np.arange(16.0), 50), np.repeat(np.arange(50), 16), 0)
    told = list(schedule(RACING, 60, order))
    arms, items = [60, 38, 25, 16, 10, 6, 4, 4, 4], [32, 48, 72, 108, 160, 244, 364, 548, 800]
    assert told == list(zip(arms, items, strict=True))


# ── the ranking ──

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
    assert race_keys(scores, items, Measure("spearman", "sample")) == pytest.approx(expected, abs=1e-12)


def test_over_single_items_spearman_counts_twice_and_pearson_once() -> None:
    labels, scores = RNG.normal(size=12), RNG.normal(size=(2, 12))
    expected = [(2 * spearmanr(row, labels)[0] + pearsonr(row, labels)[0]) / 3 for row in scores]
    items = LabelledItems.from_arrays(labels)
    assert race_keys(scores, items, Measure("spearman", "dataset")) == pytest.approx(expected, abs=1e-12)
