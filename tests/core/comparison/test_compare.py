"""The leaderboard: values against scipy, intervals and tests against `core.stats` called by hand, and every edge."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.comparison import compare_table, leaderboard_csv
from core.records import Measure, Scale
from core.stats import LabelledItems, compare_judges, leave_one_out, rater_table

ASPECT = "coherence"


def board_of(golden: Any, judges: Any, **more: Any) -> Any:
    measure = Measure(more.pop("statistic", "spearman"), more.pop("level", "dataset"))
    return compare_table(golden, ASPECT, judges, measure, **{"resamples": 200} | more)


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
        resamples=200,
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
    told = next(row for row in board.rows if row.name == "errors")
    assert told.on_scale.errors is None
    assert "scale of their own" in told.on_scale.note


def test_points_of_the_scale_by_hand(golden_of, judge_of):
    golden = golden_of([1, 2, 3, 4])
    points = board_of(golden, [judge_of("one", [2, 2, 3, 5])]).rows[0].on_scale
    assert (points.errors.mae, points.errors.bias) == (0.5, 0.5)  # gaps 1, 0, 0, 1
    assert (points.steps.exact, points.steps.adjacent) == (0.5, 1.0)
    # kappa: mean squared gap .5; expected var(2,2,3,5) 1.5 + var(1..4) 1.25 + (3 - 2.5)² .25 = 3
    assert points.steps.quadratic_kappa == pytest.approx(1 - 0.5 / 3)
    beyond = board_of(golden, [judge_of("one", [2, 2, 3, 9])]).rows[0].on_scale
    assert beyond.errors is None
    assert "go from 2 to 9" in beyond.note


def test_binary_labels_have_classes_and_no_quadratic_kappa(golden_of, judge_of):
    golden = golden_of([0, 0, 1, 1, 1], scale=Scale(0, 1, 1.0))
    points = board_of(golden, [judge_of("one", [0.1, 0.8, 0.9, 0.6, 0.2])]).rows[0].on_scale
    # put up: items 1, 2, 3; true: 2, 3, 4; hits 2.  kappa = (3/5 − 13/25) / (1 − 13/25) with chance (3·3 + 2·2)/25
    assert (points.binary.precision, points.binary.recall, points.binary.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert points.binary.kappa == pytest.approx((3 / 5 - 13 / 25) / (12 / 25))
    assert points.steps.quadratic_kappa is None
    assert "two steps" in points.steps.reason


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
    assert "Leaving out left restores 2" in board.problem
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
        resamples=200,
        seed=5,
    )
    assert board.ceiling == by_hand


# ── for a spreadsheet ────────────────────────────────────────────────────────────────────────────────────────


def lines_of(golden: Any, judges: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(leaderboard_csv(board_of(golden, judges)))))


def test_numbers_come_back_unrounded_and_undefined_is_empty(noisy, judge_of):
    golden, judges = noisy(1.0)
    good, flat = lines_of(golden, [*judges, judge_of("flat", [3.0] * 120)])
    assert float(good["alignment"]) == board_of(golden, judges).rows[0].alignment.value
    assert (good["statistic"], good["level"], good["n"]) == ("spearman", "dataset", "120")
    assert flat["alignment"] == flat["interval_low"] == ""
    assert "all scores are equal" in flat["reason"]


@pytest.mark.parametrize(
    "name", ["=HYPERLINK(1)", "+1+1", "-1+1", "@x", "  =1", "\t=1", "\n=1", "＝1", "＋1", "－1", "＠x"]
)
def test_no_cell_starts_a_formula(golden_of, judge_of, name):
    (line,) = lines_of(golden_of([1, 2, 3]), [judge_of(name, [1, 2, 3], note=name)])
    assert line["judge"] == f"'{name}"
    assert line["note"] == f"'{name}"
