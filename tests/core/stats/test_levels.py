"""core.stats.levels: the three levels, what is left out, what is undefined and why."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from core.records import Measure
from core.stats import align, align_each, alignment_values
from tests.core.stats.arrays import items

NAN = np.nan
ORACLES = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr, "kendall": scipy.stats.kendalltau}

# Three sources.  A: 3 items, B: 3 items, C: 2 items with equal labels (left out).
SOURCES = np.array([0, 0, 0, 1, 1, 1, 2, 2])
SYSTEMS = np.array([0, 1, 2, 0, 1, 2, 0, 1])
LABELS = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 4.0])
SCORES = np.array([1.0, 2.0, 3.0, 1.0, 3.0, 2.0, 5.0, 6.0])


@pytest.fixture(scope="module")
def ragged():
    """Sources of 1 to 9 items in mixed order, 4 systems, gaps in labels and scores."""
    rng = np.random.default_rng(11)
    sources = rng.permutation(np.repeat(np.arange(20), rng.integers(1, 10, size=20)))
    labels = rng.integers(1, 6, size=sources.size).astype(float)
    scores = labels + rng.normal(scale=2.0, size=(7, sources.size))
    scores[2] = np.rint(scores[2])
    systems = rng.integers(0, 4, size=sources.size)
    labels[rng.random(sources.size) < 0.1] = NAN
    scores[5, rng.random(sources.size) < 0.3] = NAN
    return scores, labels, sources, systems


def loop(scores, labels, sources, systems, statistic, level):
    """The definitions of METHODS section 1 as plain loops over scipy."""
    kept = ~(np.isnan(scores) | np.isnan(labels))
    x, y, sources, systems = scores[kept], labels[kept], sources[kept], systems[kept]
    if level == "dataset":
        return ORACLES[statistic](x, y).statistic
    if level == "system":
        means = [(x[systems == s].mean(), y[systems == s].mean()) for s in np.unique(systems)]
        return ORACLES[statistic](*zip(*means, strict=True)).statistic
    values = []
    for source in np.unique(sources):
        a, b = x[sources == source], y[sources == source]
        if a.size >= 2 and np.ptp(a) > 0 and np.ptp(b) > 0:
            values.append(ORACLES[statistic](a, b).statistic)
    return np.mean(values)


@pytest.mark.parametrize("statistic", list(ORACLES))
@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_values_equal_loops_over_scipy(ragged, statistic, level):
    scores, labels, sources, systems = ragged
    expected = [loop(row, labels, sources, systems, statistic, level) for row in scores]
    values = alignment_values(scores, items(labels, sources, systems), Measure(statistic, level))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)
    records = align_each(scores, items(labels, sources, systems), Measure(statistic, level))
    assert [record.value for record in records] == values.tolist()
    assert {(record.statistic, record.level) for record in records} == {(statistic, level)}


def test_sample_level_by_hand():
    # A: rho 1.  B: ranks (1, 2, 3) and (1, 3, 2): 1 - 6·(0 + 1 + 1)/(3·8) = .5.  C: labels constant, left out.
    alignment = align(SCORES, items(LABELS, SOURCES, SYSTEMS), Measure("spearman", "sample"))
    assert alignment.value == pytest.approx(0.75, abs=1e-15)
    assert (alignment.n, alignment.n_groups, alignment.n_left_out, alignment.n_unscored, alignment.reason) == (
        6,
        2,
        1,
        0,
        "",
    )


def test_system_level_by_hand():
    # Means of scores: (1+1+5)/3, (2+3+6)/3, (3+2)/2 = 2.33, 3.67, 2.5; of labels: 2, 8/3, 3.  Orders 1 3 2 and 1 2 3.
    alignment = align(SCORES, items(LABELS, SOURCES, SYSTEMS), Measure("spearman", "system"))
    assert alignment.value == pytest.approx(0.5, abs=1e-15)
    assert (alignment.n, alignment.n_groups, alignment.n_left_out) == (3, 0, 0)


def test_system_means_that_tie_in_truth_tie_here():
    # both systems' scores are .1, .2, .3 in another order: the sums differ in the last bit
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    scores, systems = np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1]), np.repeat([0, 1], 3)
    alignment = align(scores, items(np.arange(6.0), np.arange(6), systems), Measure("kendall", "system"))
    assert alignment.value is None
    assert alignment.reason == "all scores are equal (mean by mean)"


def test_unlabelled_items_are_dropped_and_unscored_ones_counted():
    scores, labels = SCORES.copy(), LABELS.copy()
    scores[0], labels[3] = NAN, NAN
    alignment = align(scores, items(labels, SOURCES, SYSTEMS), Measure("pearson", "dataset"))
    assert (alignment.n, alignment.n_unscored) == (6, 1)
    assert alignment.value == pytest.approx(np.corrcoef(scores[[1, 2, 4, 5, 6, 7]], labels[[1, 2, 4, 5, 6, 7]])[0, 1])


@pytest.mark.parametrize(
    ("scores", "labels", "level", "reason"),
    [
        ([1.0, 2.0], [NAN, NAN], "dataset", "no item has a label"),
        (
            [NAN, NAN, 1.0],
            [1.0, 2.0, 3.0],
            "dataset",
            "fewer than 2 items have both a score and a label (1 of 3 labelled)",
        ),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "dataset", "all scores are equal (item by item)"),
        ([1.0, 2.0, 3.0], [3.0, 3.0, 3.0], "dataset", "all labels are equal (item by item)"),
        ([1.0, 2.0, 3.0], [3.0, 3.0, 3.0], "sample", "no source has enough items with differing scores"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "system", "fewer than 2 systems have scored items"),
    ],
)
def test_undefined_is_none_with_a_reason(scores, labels, level, reason):
    values = np.zeros(len(scores))  # one source, one system
    alignment = align(scores, items(labels, values, values), Measure("spearman", level))
    assert alignment.value is None
    assert alignment.interval is None
    assert alignment.reason.startswith(reason)
    assert alignment.as_json()["value"] is None
    assert np.isnan(alignment_values(scores, items(labels, values, values), Measure("spearman", level))).all()
