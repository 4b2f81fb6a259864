"""The leaderboard: values against scipy, intervals and tests against `core.stats` called by hand, and every edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.comparison import compare_table
from core.records import Measure, Scale
from core.stats import LabelledItems, compare_judges, leave_one_out, rater_table

ASPECT = "coherence"


def board_of(golden: Any, judges: Any, **more: Any) -> Any:
    measure = Measure(more.pop("statistic", "spearman"), more.pop("level", "dataset"))
    return compare_table(golden, ASPECT, judges, measure, **more)


def test_values_are_those_of_scipy_on_the_common_items(noisy):
    golden, judges = noisy(1.5, 0.5)
    board = board_of(golden, judges)
    assert [row.name for row in board.rows] == ["noise 0.5", "noise 1.5"]  # best first
    labels = golden.labels(ASPECT)
    for row in board.rows:
        assert row.alignment.value == pytest.approx(spearmanr(judges[row.place].values, labels).statistic, abs=1e-12)
        assert row.alignment.n == 120


def test_tests_are_those_of_the_statistics_in_the_order_of_the_rows(noisy):
    golden, judges = noisy(2.0, 0.4, 1.0)
    board = board_of(golden, judges, level="sample", seed=3)
    assert [row.place for row in board.rows] == [1, 2, 0]
    by_hand = compare_judges(
        np.stack([judges[k].values for k in (1, 2, 0)]),
        LabelledItems.of(golden, ASPECT),
        Measure("spearman", "sample"),
        seed=3,
    )
    for name in ("difference", "p_holm"):
        np.testing.assert_allclose(getattr(board.pairwise, name), getattr(by_hand, name), atol=1e-12)
    for i, j in ((0, 1), (0, 2), (1, 2), (2, 0)):
        ours, theirs = board.pairwise.pair(i, j), by_hand.pair(i, j)
        limits = (theirs.interval.low, theirs.interval.high)
        assert (ours.interval.low, ours.interval.high) == pytest.approx(limits, abs=1e-12)
        assert ours.p == pytest.approx(theirs.p, abs=1e-12)
    assert board.rows[0].alignment.interval == by_hand.alignments[0].interval


def test_a_judge_that_saw_labels_is_told_on_the_others_only(noisy, judge_of):
    golden, judges = noisy(1.0)
    labels = golden.labels(ASPECT)
    cheat = judge_of("cheat", [*labels[:60], *judges[0].values[60:]], seen=tuple(range(60)))
    board = board_of(golden, [judges[0], cheat])
    expected = spearmanr(judges[0].values[60:], labels[60:]).statistic
    assert [row.alignment.value for row in board.rows] == pytest.approx([expected, expected], abs=1e-12)
    assert (board.pool.n_common, board.n_sources) == (60, 15)


def test_less_can_be_better(noisy, judge_of):
    golden, judges = noisy(0.5)
    errors = judge_of("errors", list(-judges[0].values), higher_is_better=False, on_scale=False, kind="metric")
    board = board_of(golden, [judges[0], errors])
    assert board.rows[0].alignment.value == pytest.approx(board.rows[1].alignment.value)


def test_a_constant_judge_stands_last_without_a_value(noisy, judge_of):
    golden, judges = noisy(1.0)
    board = board_of(golden, [judge_of("flat", [3.0] * 120), *judges])
    assert [row.name for row in board.rows] == ["noise 1", "flat"]
    assert board.rows[1].alignment.value is None
    assert "all scores are equal" in board.rows[1].alignment.reason
    assert np.isnan(board.pairwise.p_holm[0, 1])


def test_two_judges_without_a_common_item_leave_nothing(golden_of, judge_of):
    golden = golden_of([1, 2, 3, 4])
    board = board_of(golden, [judge_of("left", [1, 2, None, None]), judge_of("right", [None, None, 3, 4])])
    assert "Compare fewer judges" in board.problem
    assert [row.alignment.value for row in board.rows] == [None, None]
    assert board.pairwise is None


def test_the_ceiling_is_leave_one_out_on_the_same_items(golden_of, judge_of):
    rng = np.random.default_rng(1)
    ratings = rng.integers(1, 6, (3, 40)).astype(float) / 2 + np.repeat(rng.integers(1, 4, 10), 4)
    golden = golden_of(list(ratings.mean(axis=0)), per_source=4, scale=Scale(1, 6), ratings=ratings.tolist())
    judge = judge_of("one", list(ratings[0]), seen=tuple(range(8)))
    board = board_of(golden, [judge], level="sample", seed=5)
    by_hand, _ = leave_one_out(
        rater_table(golden, ASPECT).at(np.arange(8, 40)),
        LabelledItems.of(golden, ASPECT, range(8, 40)),
        Measure("spearman", "sample"),
        seed=5,
    )
    assert board.ceiling == by_hand
    # the planned comparison with a rater rests on the judge's own items, whatever else is in the table
    rival = judge_of("rival", list(ratings[1]), seen=tuple(range(8, 16)))
    both = board_of(golden, [rival, judge], level="sample", seed=5, planned=1)
    assert both.pool.n_common == 24 and both.rows[both.row_of(1)].people == board.rows[0].people
