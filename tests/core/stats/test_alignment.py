"""core.stats.alignment: paired differences, Williams' test by another route, Holm by hand, all pairs at once."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Measure, canonical_json
from core.stats import compare_judges, holm, paired_difference, williams_test
from core.stats.alignment import compare_with_regression, williams_t
from tests.core.stats.arrays import items

NAN = np.nan
EVERY_LEVEL = pytest.mark.parametrize("level", ["dataset", "sample", "system"])
EVERY_STATISTIC = pytest.mark.parametrize("statistic", ["pearson", "spearman", "kendall"])


@pytest.fixture(scope="module")
def task():
    """(scores of four judges, the second with gaps; 180 labels with 30 sources and 6 systems)"""
    rng = np.random.default_rng(21)
    labels = rng.integers(1, 6, size=180).astype(float)
    scores = labels + rng.normal(scale=[[0.5], [2.0], [2.1], [20.0]], size=(4, 180))
    scores[1, :4] = NAN
    return scores, items(labels, np.repeat(np.arange(30), 6), np.tile(np.arange(6), 30))


def ends(found):
    return found.interval.low, found.interval.high


# ── one judge, and two ───────────────────────────────────────────────────────────────────────────────────────


def test_difference_uses_the_common_items_only(task):
    a, b, gold = task[0][0].copy(), task[0][2].copy(), task[1].labels.copy()
    a[:10], b[5:20], gold[30] = NAN, NAN, NAN
    difference = paired_difference(a, b, task[1].labelled(gold), Measure("pearson", "dataset"), seed=9)
    kept = np.setdiff1d(np.arange(20, 180), [30])
    expected = [np.corrcoef(side[kept], gold[kept])[0, 1] for side in (a, b)]
    assert difference.value == pytest.approx(expected[0] - expected[1], abs=1e-12)
    assert (difference.n, difference.a.n, difference.b.n, difference.a.n_unscored) == (159, 159, 159, 0)


# ── Williams' test ───────────────────────────────────────────────────────────────────────────────────────────


def test_williams_published_example():
    # The psych package's example of two dependent correlations, r.test(103, .4, .5, .1): t = -0.89, p < 0.37
    assert williams_t(0.4, 0.5, 0.1, 103) == pytest.approx(-0.89, abs=0.005)


@pytest.mark.parametrize(
    ("a", "b", "labels", "words"),
    [
        ([1, 2, 3], [1, 3, 2], [1, 2, 2], "at least 4 common items; there are only 3"),
        ([2] * 5, [1, 2, 3, 4, 5], [1, 2, 2, 3, 3], "all scores of one judge are equal"),
        ([1, 2, 3, 4, 5], [2] * 5, [4] * 5, "all labels are equal"),
        ([1, 2, 3, 5, 5], [-3, -6, -9, -15, -15], [1, 2, 2, 3, 3], "a linear function of the other judge's"),
    ],
)
def test_williams_undefined_says_why(a, b, labels, words):
    test = williams_test(a, b, items(labels))
    assert (test.t, test.df, test.p_two_sided) == (None, None, None)
    assert words in test.reason
    assert test.as_json()["t"] is None


# ── Holm ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_holm_by_hand():
    # sorted .005·4 = .02, .01·3 = .03, .03·2 = .06, .04·1 → raised to .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])  # 1.2 is cut at 1, .7 raised to it


# ── all pairs at once ────────────────────────────────────────────────────────────────────────────────────────


@EVERY_STATISTIC
@EVERY_LEVEL
def test_a_pair_of_the_table_is_the_pair_alone(task, statistic, level):
    scores, labelled = task
    chosen = {"measure": Measure(statistic, level), "seed": 1}
    table = compare_judges(scores, labelled, **chosen)
    assert table.n == 176
    common = labelled.labelled(np.where(np.isnan(scores[1]), NAN, labelled.labels))
    for i, j in ((0, 1), (2, 1), (3, 0)):
        alone, found, turned = (
            paired_difference(scores[i], scores[j], common, **chosen),
            table.pair(i, j),
            table.pair(j, i),
        )
        assert found.value == pytest.approx(alone.value, abs=1e-12)
        assert ends(found) == pytest.approx(ends(alone), abs=1e-12)
        assert (found.p, found.n) == (alone.p, alone.n)
        assert (turned.p, turned.value, turned.a, turned.b) == (found.p, -found.value, found.b, found.a)
        assert ends(turned) == (-found.interval.high, -found.interval.low)
        assert table.difference[i, j] == pytest.approx(found.value, abs=1e-15)


def test_a_constant_judge_is_undefined_and_spoils_no_other_pair(task):
    scores, labelled = task
    chosen = {"measure": Measure("spearman", "dataset"), "seed": 1}
    table, plain = (compare_judges(rows, labelled, **chosen) for rows in (np.vstack([scores, np.ones(180)]), scores))
    assert np.isnan(table.p_holm[4]).all()
    assert np.array_equal(table.p_holm[:4, :4], plain.p_holm, equal_nan=True)
    difference = table.pair(0, 4)
    assert (difference.value, difference.interval, difference.p) == (None, None, None)
    assert difference.reason == "second judge: all scores are equal"


# ── the bar: a plain regression ──────────────────────────────────────────────────────────────────────────────


def around(seed, *noises):
    """60 sources of 5 items, and what follows their labels with these noises; infinity: nothing of them."""
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=300)
    sides = [rng.normal(size=300) if np.isinf(noise) else labels + rng.normal(0, noise, 300) for noise in noises]
    return items(labels, np.repeat(np.arange(60), 5)), sides


def test_differences_are_those_of_the_paired_test_corrected_over_the_judges():
    labelled, (bar, *judges) = around(1, 1.0, 0.3, 1.2, 0.9)
    beside = compare_with_regression(bar, 240, np.stack(judges), labelled, Measure("spearman", "dataset"))
    by_hand = [paired_difference(judge, bar, labelled, Measure("spearman", "dataset")) for judge in judges]
    assert [gap.value for gap in beside.minus] == pytest.approx([gap.value for gap in by_hand])
    assert [gap.p for gap in beside.minus] == pytest.approx(holm([gap.p for gap in by_hand]).tolist())
    canonical_json(beside.as_json())


def test_constant_and_missing_predictions_are_undefined_and_few_sources_untested():
    labelled, (judge, bar) = around(4, 0.2, 2.0)
    for predicted in (np.full(300, 3.0), np.full(300, np.nan)):
        beside = compare_with_regression(predicted, 240, judge[None], labelled, Measure("spearman", "dataset"))
        assert beside.alignment.value is None and beside.standing(0) == "undefined"
    few = labelled.take(np.arange(300) < 30)  # 6 sources
    assert (
        compare_with_regression(bar[:30], 24, judge[None, :30], few, Measure("spearman", "dataset")).standing(0)
        == "untested"
    )
