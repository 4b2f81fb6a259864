"""core.stats.alignment: coverage, what has no interval, and paired differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from core.records import Measure
from core.stats import align, align_each, paired_difference
from tests.core.stats.arrays import items

NAN = np.nan
BETWEEN, WITHIN = 0.6, 0.4
"""Correlations of the parts of score and label that sources share and of the parts of single items."""


class Drawn(NamedTuple):
    scores: np.ndarray
    labels: np.ndarray
    sources: np.ndarray


def draw_clustered(rng, n_sources=50, size=6):
    """Normal source effects and normal item parts of equal variance on both sides.

    Over all items the two are bivariate normal with r = (BETWEEN + WITHIN) / 2 = .5; inside a source r = WITHIN.
    """
    source = rng.multivariate_normal([0, 0], [[1, BETWEEN], [BETWEEN, 1]], size=(n_sources, 1))
    item = rng.multivariate_normal([0, 0], [[1, WITHIN], [WITHIN, 1]], size=(n_sources, size))
    both = (source + item).reshape(-1, 2)
    return Drawn(both[:, 0], both[:, 1], np.repeat(np.arange(n_sources), size))


# Population values of the bivariate normal: rho = 6/π·asin(r/2), tau = 2/π·asin(r).  At sample level the mean over
# sources of n = 6 items estimates E[rho_n] = 6/(π(n+1))·(asin r + (n−2)·asin(r/2)) (Moran 1948) and E[tau] as above.
TRUTHS = {
    ("pearson", "dataset"): 0.5,
    ("spearman", "dataset"): 6 / np.pi * np.arcsin(0.25),
    ("kendall", "dataset"): 2 / np.pi * np.arcsin(0.5),
    ("spearman", "sample"): 6 / (7 * np.pi) * (np.arcsin(WITHIN) + 4 * np.arcsin(WITHIN / 2)),
    ("kendall", "sample"): 2 / np.pi * np.arcsin(WITHIN),
}


def coverage(statistic, level, by_item=False, repetitions=300):
    truth, hits = TRUTHS[statistic, level], 0
    for seed in range(repetitions):
        rng = np.random.default_rng([17, seed])
        drawn = draw_clustered(rng)
        sources = np.arange(drawn.labels.size) if by_item else drawn.sources
        found = align(drawn.scores, items(drawn.labels, sources), Measure(statistic, level), resamples=250, seed=rng)
        hits += found.interval.low <= truth <= found.interval.high
    return hits / repetitions


@pytest.mark.parametrize(("statistic", "level"), list(TRUTHS))
def test_intervals_cover_as_often_as_they_say(statistic, level):
    assert 0.92 <= coverage(statistic, level) <= 0.98


def test_resampling_items_instead_of_sources_covers_too_seldom():
    # the reason for clusters; it also shows that the coverage test can fail
    assert coverage("pearson", "dataset", by_item=True) < 0.90


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(21)
    sources, systems = np.repeat(np.arange(30), 6), np.tile(np.arange(6), 30)
    labels = rng.integers(1, 6, size=180).astype(float)
    scores = labels + rng.normal(scale=[[0.5], [2.0], [20.0]], size=(3, 180))
    return scores, labels, sources, systems


MADE = {
    "dataset": "jackknife",
    "sample": "jackknife of the mean",
    "system": "bootstrap error of these systems",
}


@pytest.mark.parametrize("statistic", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_interval_stands_beside_the_plain_value(task, statistic, level):
    plain = align_each(task[0], items(*task[1:]), Measure(statistic, level))
    found = align_each(task[0], items(*task[1:]), Measure(statistic, level), resamples=200, seed=1)
    for before, after in zip(plain, found, strict=True):
        assert (after.value, after.n, after.n_groups) == (before.value, before.n, before.n_groups)
        assert after.interval.low <= after.value <= after.interval.high
        assert f"{MADE[level]} over 30 sources, t(29)" in after.interval.method
        assert after.interval.confidence == 0.95
    if level != "system":  # a judge with less noise has a shorter interval
        assert found[0].interval.high - found[0].interval.low < found[2].interval.high - found[2].interval.low


def test_one_candidate_is_the_same_alone_and_among_others(task):
    scores, *rest = task
    together = align_each(scores, items(*rest), Measure("spearman", "dataset"), resamples=99, seed=2)
    alone = align(scores[1], items(*rest), Measure("spearman", "dataset"), resamples=99, seed=2)
    assert alone == together[1]


def test_no_interval_for_one_source_or_an_undefined_value(task):
    scores, labels, *_ = task
    arguments = {"measure": Measure("pearson", "dataset"), "seed": 4}
    one_source = align(scores[0], items(labels, np.zeros(labels.size)), **arguments)
    assert one_source.value is not None
    assert one_source.interval is None
    constant = align(np.ones(labels.size), items(labels, np.arange(labels.size)), **arguments)
    assert (constant.value, constant.interval) == (None, None)
    unlabelled = align(scores[0], items(np.full(labels.size, NAN), np.arange(labels.size)), **arguments)
    assert (unlabelled.value, unlabelled.interval, unlabelled.reason) == (None, None, "no item has a label")


@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_difference_of_a_good_and_a_bad_judge(task, level):
    scores, *rest = task
    arguments = {"measure": Measure("spearman", level), "resamples": 400}
    found = paired_difference(scores[0], scores[2], items(*rest), seed=5, **arguments)
    assert found.value == pytest.approx(found.a.value - found.b.value, abs=1e-15)
    assert found.n == 180
    if level != "system":
        assert found.interval.low > 0.0
        assert found.p < 1e-6
    mirrored = paired_difference(scores[2], scores[0], items(*rest), seed=5, **arguments)
    assert (mirrored.value, mirrored.p) == (-found.value, pytest.approx(found.p, rel=1e-9))
    assert (mirrored.interval.low, mirrored.interval.high) == pytest.approx((-found.interval.high, -found.interval.low))


def test_difference_of_a_judge_with_itself_is_zero(task):
    scores, *rest = task
    found = paired_difference(scores[1], scores[1], items(*rest), Measure("kendall", "dataset"), seed=6)
    assert (found.value, found.interval.low, found.interval.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert found.as_json()["interval"] == [0.0, 0.0]


def test_pairing_makes_the_difference_sharper_than_two_intervals(task):
    scores, labels, sources, systems = task
    near = scores[1] + np.random.default_rng(7).normal(scale=0.2, size=labels.size)
    found = paired_difference(scores[1], near, items(labels, sources, systems), Measure("pearson", "dataset"), seed=8)
    width = found.interval.high - found.interval.low
    assert width < 0.5 * (found.a.interval.high - found.a.interval.low)


def test_difference_uses_the_common_items_only(task):
    scores, labels, sources, systems = task
    a, b, gold = scores[0].copy(), scores[1].copy(), labels.copy()
    a[:10], b[5:20], gold[30] = NAN, NAN, NAN
    arguments = {"measure": Measure("pearson", "dataset")}
    found = paired_difference(a, b, items(gold, sources, systems), seed=9, **arguments)
    kept = np.setdiff1d(np.arange(20, 180), [30])
    expected = [np.corrcoef(side[kept], gold[kept])[0, 1] for side in (a, b)]
    assert found.n == kept.size == 159
    assert found.value == pytest.approx(expected[0] - expected[1], abs=1e-12)
    assert (found.a.n, found.b.n, found.a.n_unscored) == (159, 159, 0)


def test_undefined_difference_says_which_side(task):
    scores, labels, sources, systems = task
    found = paired_difference(
        scores[0], np.ones(labels.size), items(labels, sources, systems), Measure("kendall", "dataset"), seed=10
    )
    assert (found.value, found.interval, found.p) == (None, None, None)
    assert found.reason == "second judge: all scores are equal (item by item)"


def test_a_false_difference_is_seldom_called_significant():
    # two judges with equal noise: p ≤ .05 in about 5 % of draws; 200 draws have a standard error of 1.5 points
    called = 0
    for seed in range(200):
        rng = np.random.default_rng([31, seed])
        drawn = draw_clustered(rng, n_sources=100)
        a, b = (drawn.scores + rng.normal(size=drawn.labels.size) for _ in range(2))
        found = paired_difference(
            a, b, items(drawn.labels, drawn.sources), Measure("pearson", "dataset"), resamples=200, seed=rng
        )
        called += found.p <= 0.05
    assert 0.01 <= called / 200 <= 0.10
