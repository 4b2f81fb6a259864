"""core.stats.intervals: jackknife and t against loops and formulas, what is unknown, and how often truth is held."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from core.records import Measure
from core.stats import align, align_each, alignment_values, compare_judges, paired_difference
from core.stats import intervals as under_test
from core.stats.alignment import measured
from core.stats.correlation import level_values, paired
from core.stats.intervals import (
    CARRIED,
    RESAMPLES,
    SAME_WITHOUT_ANY,
    TOO_ALIKE,
    TOO_FEW,
    draw_counts,
    leave_outs,
    resampled_values,
)
from tests.core.stats.arrays import ORACLES, coefficient, items

NAN = np.nan
STATISTICS = tuple(ORACLES)


def task(n_sources=12, size=5, seed=3, noises=(0.7, 0.7, 2.0)):
    """Scores (len(noises), n), labels of 1 to 5 with ties, source codes; both sides share source effects."""
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(n_sources), size)
    truth = 0.7 * rng.normal(size=n_sources)[sources] + rng.normal(size=sources.size)
    labels = np.clip(np.rint(3 + truth), 1, 5)
    scores = np.stack([truth + noise * rng.normal(size=sources.size) for noise in noises])
    return scores, labels, sources


def spread(scores, labels, sources, statistic="pearson", level="dataset"):
    found = measured(paired(scores, items(labels, sources)), Measure(statistic, level), 0)[1]
    assert found is not None
    return found


@pytest.mark.parametrize("statistic", STATISTICS)
def test_dataset_level_is_the_jackknife_written_out(statistic):
    scores, labels, sources = task()
    scores[1, :3] = np.nan  # one judge with gaps
    whole, left = [], []
    for row in scores:
        kept = ~np.isnan(row)
        whole.append(ORACLES[statistic](row[kept], labels[kept]).statistic)
        rest = [kept & (sources != source) for source in range(12)]
        left.append([ORACLES[statistic](row[at], labels[at]).statistic for at in rest])
    z, z_left = np.arctanh(whole), np.arctanh(left)
    t = scipy_stats.t.ppf(0.975, 11)

    def error(values):
        return np.sqrt(11 / 12 * ((values - values.mean()) ** 2).sum())

    alignments = align_each(scores, items(labels, sources), Measure(statistic, "dataset"), seed=0)
    for k, alignment in enumerate(alignments):
        expected = np.tanh(z[k] + np.array([-1, 1]) * t * error(z_left[k]))
        assert (alignment.interval.low, alignment.interval.high) == pytest.approx(tuple(expected), abs=1e-12)
        assert alignment.interval.method == "jackknife over 12 sources, t(11) on Fisher's z"
    interval, p, _ = spread(scores[[0, 2]], labels, sources, statistic).difference(0, 1)
    gap, of_gap = z[0] - z[2], error(z_left[0] - z_left[2])
    assert p == pytest.approx(2 * scipy_stats.t.sf(abs(gap / of_gap), 11), rel=1e-9)
    # the least and largest difference over the ellipse of pairs (z, z') within t, walked along otherwise
    deviations = np.sqrt(11 / 12) * (z_left[[0, 2]] - z_left[[0, 2]].mean(axis=1, keepdims=True))
    angles = np.linspace(0, 2 * np.pi, 100_000)
    walked = np.linalg.cholesky(deviations @ deviations.T) @ np.stack([np.cos(angles), np.sin(angles)]) * t
    gaps = np.tanh(z[0] + walked[0]) - np.tanh(z[2] + walked[1])
    assert (interval.low, interval.high) == pytest.approx((gaps.min(), gaps.max()), abs=1e-4)


def test_sample_level_tests_paired_differences_as_scipy_does():
    scores, labels, sources = task(noises=(0.7, 1.5))
    by_source = np.array(
        [
            [scipy_stats.spearmanr(row[sources == s], labels[sources == s]).statistic for s in range(12)]
            for row in scores
        ]
    )
    expected = scipy_stats.ttest_rel(*by_source)
    difference = paired_difference(*scores, items(labels, sources), Measure("spearman", "sample"), seed=0)
    assert difference.p == pytest.approx(expected.pvalue, rel=1e-9)
    ends = expected.confidence_interval(0.95)
    assert (difference.interval.low, difference.interval.high) == pytest.approx((ends.low, ends.high), abs=1e-12)
    assert difference.interval.method == "t over 12 sources, t(11)"


def test_sample_level_of_one_judge_is_the_jackknife_of_the_mean():
    scores, labels, sources = task()
    c = np.array([scipy_stats.kendalltau(scores[0][sources == s], labels[sources == s]).statistic for s in range(12)])
    z = np.arctanh([np.delete(c, k).mean() for k in range(12)])
    reach = scipy_stats.t.ppf(0.975, 11) * np.sqrt(((z - z.mean()) ** 2).sum())
    alignment = align(scores[0], items(labels, sources), Measure("kendall", "sample"), seed=0)
    expected = np.tanh(np.arctanh(c.mean()) + np.array([-reach, reach]))
    assert (alignment.interval.low, alignment.interval.high) == pytest.approx(tuple(expected), abs=1e-12)


def test_very_many_sources_go_out_in_groups(monkeypatch):
    scores, labels, sources = task(n_sources=900, size=1)
    grouped = spread(scores, labels, sources).interval(0)[0]
    assert "over 900 sources in 400 groups, t(399)" in grouped.method
    monkeypatch.setattr(under_test, "MOST_PIECES", 900)
    single = spread(scores, labels, sources).interval(0)[0]
    assert grouped.high - grouped.low == pytest.approx(single.high - single.low, rel=0.1)


@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_under_eight_sources_there_is_an_interval_and_no_p(level):
    scores, labels, sources = task(n_sources=7, noises=(0.3, 3.0))
    labelled = items(labels, sources, np.tile(np.arange(5), 7))
    difference = paired_difference(*scores, labelled, Measure("pearson", level), seed=0)
    assert (difference.p, difference.p_reason) == (None, TOO_FEW)
    assert difference.interval is not None
    table = compare_judges(scores, labelled, Measure("pearson", level), seed=0)
    assert np.isnan(table.p_holm).all()


@pytest.mark.parametrize(("coefficients", "known"), [((1.0, 0.9, 0.8), False), ((1.0, 0.9, 0.8, 0.6), True)])
def test_a_mean_of_few_different_rank_coefficients_has_no_interval(coefficients, known):
    swaps = {1.0: (1, 2, 3, 4, 5), 0.9: (2, 1, 3, 4, 5), 0.8: (2, 1, 4, 3, 5), 0.6: (1, 4, 3, 2, 5)}
    sources = np.repeat(np.arange(8), 5)
    labels = np.tile(np.arange(1.0, 6.0), 8)
    scores = np.concatenate([swaps[coefficients[s % len(coefficients)]] for s in range(8)]).astype(float)
    for statistic in ("spearman", "kendall"):
        shown = spread(np.stack([scores, labels]), labels, sources, statistic, "sample")
        assert (shown.interval(0)[0] is not None) == known
    assert spread(np.stack([scores, labels]), labels, sources, "pearson", "sample").interval(0)[0] is not None


def test_a_value_that_hangs_on_one_source_or_does_not_vary_has_no_interval():
    sources = np.repeat(np.arange(10), 2)
    labels = np.where(np.arange(20) == 0, 1.0, 0.0)
    interval = spread(np.random.default_rng(5).normal(size=(2, 20)), labels, sources)
    assert interval.interval(0)[0] is None
    assert interval.difference(0, 1) == (None, None, CARRIED)
    labels, sources = np.tile(np.arange(5.0), 10), np.repeat(np.arange(10), 5)
    perfect = spread(np.stack([labels, -labels, labels * 2]), labels, sources, "spearman")
    assert perfect.interval(0)[0] is None
    assert perfect.difference(0, 1) == (None, None, SAME_WITHOUT_ANY)
    same, p, _ = perfect.difference(0, 2)  # equal rankings: no difference, whatever the sources
    assert (same.low, same.high, p) == (0.0, 0.0, 1.0)


def test_the_system_level_counts_its_bias_and_says_that_it_is_short():
    rng = np.random.default_rng(8)
    sources, systems = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
    truth = 0.5 * np.arange(6.0)[systems] + rng.normal(size=60)
    labels = np.clip(np.rint(2 + truth), 1, 5)
    data = paired(truth + rng.normal(size=60), items(labels, sources, systems))
    found = measured(data, Measure("pearson", "system"), 2)[1]
    drawn = draw_counts(np.random.default_rng(2), 10, RESAMPLES)
    values = resampled_values(data, drawn, Measure("pearson", "system"))[:, 0]
    value = level_values(data, Measure("pearson", "system"))[0][0]
    reach = scipy_stats.t.ppf(0.975, 9) * np.sqrt(10 / 9 * ((values - value) ** 2).mean())
    interval = found.interval(0)[0]
    assert (interval.low, interval.high) == pytest.approx((max(value - reach, -1), min(value + reach, 1)), abs=1e-9)
    assert "too narrow with few sources" in interval.method


# ── values with other counts of each source, against the statistic on the written-out resample ────────────────


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
    np.testing.assert_allclose(values[0], level_values(data, measure)[0], rtol=0, atol=1e-9)
    monkeypatch.setattr(under_test, "BLOCK_ELEMENTS", 64)  # one resample, and one row of signs, at a time
    np.testing.assert_allclose(resampled_values(data, counts, measure), values, rtol=0, atol=1e-12)


def test_spearman_of_a_rest_that_is_constant_is_undefined():
    """Scores 1 1 1 2 and labels 1 2 3 4 of sources 0 0 1 2.  Without source 2 all scores are 1; without 0 one item of
    each of two values is left, in order: 1; without 1 scores 1 1 2 beside 1 2 4 are sqrt(3) / 2 as average ranks
    1.5 1.5 3 (deviations -.5 -.5 1 of squares 1.5) beside 1 2 3 (-1 0 1, squares 2) give 1.5 / sqrt(3)."""
    few = paired(np.array([[1.0, 1.0, 1.0, 2.0]]), items([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 2]))
    values = resampled_values(few, leave_outs(3, 3), Measure("spearman", "dataset"))[:, 0]
    np.testing.assert_allclose(values, [1.0, np.sqrt(3.0) / 2.0, NAN], rtol=0, atol=1e-15)


# ── how often ────────────────────────────────────────────────────────────────────────────────────────────────

# the whole table, at 2,000 runs a cell, is tests/bench/bench_coverage.py
RUNS = 300


@pytest.mark.parametrize(
    ("level", "statistic", "n_sources", "size"),
    [
        ("dataset", "pearson", 8, 1),
        ("dataset", "spearman", 8, 5),
        ("sample", "kendall", 8, 5),
    ],
)
def test_the_truth_is_held_and_equal_judges_are_seldom_told_apart(level, statistic, n_sources, size):
    many, their_labels, sources = task(8000, size, seed=1)
    truth = alignment_values(many[:2], items(their_labels, sources), Measure(statistic, level)).mean()
    covered = called = 0
    for seed in range(RUNS):
        result = spread(*task(n_sources, size, seed=100 + seed), statistic, level)
        interval = result.interval(0)[0]
        covered += interval.low <= truth <= interval.high
        p = result.difference(0, 1)[1]  # None where a source was left out and 7 remain
        called += p is not None and p <= 0.05
    # binomial limits at 300 runs: true shares of .92 and .98 stay inside with 99.9 %, and so do .03 and .07 of p;
    # the percentile bootstrap at 8 sources (coverage .85, false positives .10) does not
    assert scipy_stats.binom.ppf(0.001, RUNS, 0.92) <= covered <= scipy_stats.binom.ppf(0.999, RUNS, 0.98)
    assert called <= scipy_stats.binom.ppf(0.999, RUNS, 0.07)


@pytest.mark.parametrize(("apart", "tested"), [(5, False), (6, True)])
def test_judges_that_few_sources_tell_apart_have_no_p(apart, tested):
    """Where 5 of 8 differ, all in one direction, 2 of 32 arrangements are as extreme: 6 %."""
    sources, labels = np.repeat(np.arange(8), 5), np.tile(np.arange(1.0, 6.0), 8)
    first = np.tile([2.0, 1.0, 3.0, 4.0, 5.0], 8)
    second = first.copy()
    second[sources < apart] = np.tile([3.0, 1.0, 2.0, 4.0, 5.0], apart)
    interval, p, reason = spread(np.stack([first, second]), labels, sources, "spearman", "sample").difference(0, 1)
    assert interval is not None
    assert (p is not None) == tested
    assert reason == ("" if tested else TOO_ALIKE)
