"""core.stats.intervals: jackknife and t against loops and formulas, what is unknown, and how often truth is held."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from core.records import Measure
from core.stats import align, align_each, compare_judges, paired_difference
from core.stats import intervals as under_test
from core.stats.alignment import measured
from core.stats.claims import TOO_ALIKE, TOO_FEW, UNKNOWN, UNVARYING
from core.stats.items import paired
from core.stats.levels import level_values
from core.stats.reweighting import leave_outs
from tests.core.stats.arrays import ORACLES, items

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
    found = measured(paired(scores, items(labels, sources)), Measure(statistic, level), 200, 0).spread
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
    tested = spread(scores[[0, 2]], labels, sources, statistic).difference(0, 1)
    gap, of_gap = z[0] - z[2], error(z_left[0] - z_left[2])
    assert tested.p == pytest.approx(2 * scipy_stats.t.sf(abs(gap / of_gap), 11), rel=1e-9)
    # the least and largest difference over the ellipse of pairs (z, z') within t, walked along otherwise
    deviations = np.sqrt(11 / 12) * (z_left[[0, 2]] - z_left[[0, 2]].mean(axis=1, keepdims=True))
    angles = np.linspace(0, 2 * np.pi, 100_000)
    walked = np.linalg.cholesky(deviations @ deviations.T) @ np.stack([np.cos(angles), np.sin(angles)]) * t
    gaps = np.tanh(z[0] + walked[0]) - np.tanh(z[2] + walked[1])
    assert (tested.interval.low, tested.interval.high) == pytest.approx((gaps.min(), gaps.max()), abs=1e-4)


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
    rows = leave_outs(900, under_test.MOST_PIECES, np.random.default_rng(1))
    assert ((rows == 0).sum(axis=0) == 1).all()
    assert set((rows == 0).sum(axis=1)) == {2, 3}
    grouped = spread(scores, labels, sources).interval(0)
    assert "over 900 sources in 400 groups, t(399)" in grouped.method
    monkeypatch.setattr(under_test, "MOST_PIECES", 900)
    single = spread(scores, labels, sources).interval(0)
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
        assert (shown.interval(0) is not None) == known
    assert spread(np.stack([scores, labels]), labels, sources, "pearson", "sample").interval(0) is not None


def test_a_value_that_hangs_on_one_source_or_does_not_vary_has_no_interval():
    sources = np.repeat(np.arange(10), 2)
    labels = np.where(np.arange(20) == 0, 1.0, 0.0)
    interval = spread(np.random.default_rng(5).normal(size=(2, 20)), labels, sources)
    assert interval.interval(0) is None
    assert interval.difference(0, 1) == (None, None, UNKNOWN)
    labels, sources = np.tile(np.arange(5.0), 10), np.repeat(np.arange(10), 5)
    perfect = spread(np.stack([labels, -labels, labels * 2]), labels, sources, "spearman")
    assert perfect.interval(0) is None
    assert perfect.difference(0, 1) == (None, None, UNVARYING)
    same = perfect.difference(0, 2)  # equal rankings: no difference, whatever the sources
    assert (same.interval.low, same.interval.high, same.p) == (0.0, 0.0, 1.0)


def test_the_system_level_counts_its_bias_and_says_that_it_is_short():
    rng = np.random.default_rng(8)
    sources, systems = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
    truth = 0.5 * np.arange(6.0)[systems] + rng.normal(size=60)
    labels = np.clip(np.rint(2 + truth), 1, 5)
    data = paired(truth + rng.normal(size=60), items(labels, sources, systems))
    found = measured(data, Measure("pearson", "system"), 500, 2).spread
    drawn = under_test.draw_counts(np.random.default_rng(2), 10, 500)
    values = under_test.resampled_values(data, drawn, Measure("pearson", "system"))[:, 0]
    value = level_values(data, Measure("pearson", "system")).values[0]
    reach = scipy_stats.t.ppf(0.975, 9) * np.sqrt(10 / 9 * ((values - value) ** 2).mean())
    interval = found.interval(0)
    assert (interval.low, interval.high) == pytest.approx((max(value - reach, -1), min(value + reach, 1)), abs=1e-9)
    assert "too short with so few" in interval.method


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
    truth = spread(*task(8000, size, seed=1), statistic, level).values[:2].mean()
    covered = called = 0
    for seed in range(RUNS):
        result = spread(*task(n_sources, size, seed=100 + seed), statistic, level)
        interval = result.interval(0)
        covered += interval.low <= truth <= interval.high
        p = result.difference(0, 1).p  # None where a source was left out and 7 remain
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
    result = spread(np.stack([first, second]), labels, sources, "spearman", "sample").difference(0, 1)
    assert result.interval is not None
    assert (result.p is not None) == tested
    assert result.reason == ("" if tested else TOO_ALIKE)
