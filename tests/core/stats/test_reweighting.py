"""core.stats.reweighting: every short cut equals the statistic on the written-out resample."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Measure
from core.stats import reweighting as under_test
from core.stats.items import paired
from core.stats.levels import level_values
from core.stats.reweighting import draw_counts, leave_outs, resampled_values
from tests.core.stats.arrays import coefficient, items

NAN = np.nan
STATISTICS = ["pearson", "spearman", "kendall"]


def written_out(data, counts, statistic, level):
    """(resamples, candidates) by copying the drawn sources out and calling scipy."""
    rows = []
    for row in counts.astype(int):
        picked = [
            (source, np.flatnonzero(data.items.sources == source)) for source in np.repeat(np.arange(row.size), row)
        ]
        items = np.concatenate([items for _, items in picked])
        found = []
        for scores in data.scores:
            if level == "dataset":
                found.append(coefficient(scores[items], data.items.labels[items], statistic))
            elif level == "sample":
                values = [coefficient(scores[own], data.items.labels[own], statistic) for _, own in picked]
                found.append(np.nanmean(values) if np.isfinite(values).any() else NAN)
            else:
                items_scored = items[~np.isnan(scores[items])]
                systems = [items_scored[data.items.systems[items_scored] == s] for s in range(data.items.n_systems)]
                means = np.array([(scores[own].mean(), data.items.labels[own].mean()) for own in systems if own.size])
                # means equal in truth differ in their last bits by the order of summation: no difference to rank
                found.append(coefficient(*means.round(10).reshape(-1, 2).T, statistic))
        rows.append(found)
    return np.array(rows)


@pytest.fixture(scope="module")
def data():
    """12 ragged sources, 5 systems; candidates: continuous, tied, with gaps, constant within most sources."""
    rng = np.random.default_rng(5)
    sources = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 9, size=12)))
    # means of three ratings, as in real label files: thirds, whose sums round
    labels = rng.integers(3, 16, size=sources.size) / 3.0
    scores = np.stack([labels + rng.normal(scale=s, size=sources.size) for s in (0.5, 1.0, 2.0, 3.0)])
    scores[1] = np.rint(scores[1])
    scores[2, rng.random(sources.size) < 0.3] = NAN
    scores[3] = sources % 3 + (rng.random(sources.size) < 0.1)
    return paired(scores, items(labels, sources, rng.integers(0, 5, size=sources.size)))


def drawn(data, statistic, level):
    """Counts that the statistic takes: draws, and at dataset level for rank coefficients leave-outs (5 groups)."""
    n_sources, generator = data.items.n_sources, np.random.default_rng(6)
    whole = np.ones((1, n_sources))  # every source once: the sample itself
    if level == "dataset" and statistic != "pearson":
        return np.vstack([whole, leave_outs(n_sources, 5, generator), whole])
    return np.vstack([whole, draw_counts(generator, n_sources, 40)])


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_equals_the_written_out_resample(data, statistic, level, monkeypatch):
    counts, measure = drawn(data, statistic, level), Measure(statistic, level)
    values = resampled_values(data, counts, measure)
    np.testing.assert_allclose(values, written_out(data, counts, statistic, level), rtol=0, atol=1e-9)
    np.testing.assert_allclose(values[0], level_values(data, measure).values, rtol=0, atol=1e-9)
    monkeypatch.setattr(under_test, "BLOCK_ELEMENTS", 64)  # one resample, and one row of signs, at a time
    np.testing.assert_allclose(resampled_values(data, counts, measure), values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("statistic", ["spearman", "kendall"])
def test_rank_coefficients_over_all_items_take_leave_outs_alone(data, statistic):
    with pytest.raises(ValueError, match="leave-outs"):
        resampled_values(data, 2.0 * np.ones((1, data.items.n_sources)), Measure(statistic, "dataset"))


def test_spearman_of_a_rest_that_is_constant_is_undefined():
    """Scores 1 1 1 2 and labels 1 2 3 4 of sources 0 0 1 2.  Without source 2 all scores are 1; without 0 one item of
    each of two values is left, in order: 1; without 1 scores 1 1 2 beside 1 2 4 are sqrt(3) / 2 as average ranks
    1.5 1.5 3 (deviations -.5 -.5 1 of squares 1.5) beside 1 2 3 (-1 0 1, squares 2) give 1.5 / sqrt(3)."""
    few = paired(np.array([[1.0, 1.0, 1.0, 2.0]]), items([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 2]))
    values = resampled_values(few, leave_outs(3, 3), Measure("spearman", "dataset"))[:, 0]
    np.testing.assert_allclose(values, [1.0, np.sqrt(3.0) / 2.0, NAN], rtol=0, atol=1e-15)


def test_large_sets_are_sorted_row_by_row(data, monkeypatch):
    counts = leave_outs(data.items.n_sources, 12)
    by_balance = resampled_values(data, counts, Measure("kendall", "dataset"))
    monkeypatch.setattr(under_test, "BALANCE_LIMIT", 10)
    by_sorting = resampled_values(data, counts, Measure("kendall", "dataset"))
    np.testing.assert_allclose(by_sorting, by_balance, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_rounding_does_not_make_a_constant_resample_defined(seed):
    # each source has one label; squares and sums of unequal sizes leave a rest of either sign
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(4), rng.integers(3, 40, size=4))
    data = paired(rng.normal(size=(5, sources.size)), items(rng.normal(size=4)[sources], sources))
    values = resampled_values(data, 4.0 * np.eye(4), Measure("pearson", "dataset"))
    assert np.isnan(values).all()
