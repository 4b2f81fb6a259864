"""Figures of Compare: a place for every judge, none at 0 that has no value, and names that cannot become markup."""

from __future__ import annotations

import numpy as np
import pytest

from core.comparison.curve import ScoreBin
from core.records import Interval, Scale
from core.report.figures.comparison import (
    Bar,
    JudgeMark,
    PairCells,
    Points,
    between_figure,
    curve_figure,
    kept_figure,
    leaderboard_figure,
    lost_figure,
    scatter_figure,
    significance_figure,
)
from core.report.figures.style import AMBER, BETTER, BLUE, PEOPLE, QUIET, TEAL, WORSE
from core.stats.conformal import kept_shares
from tests.core.report.figures.conftest import Drawn, aligned

NEAR = {"abs": 0.004}


def test_judges_stand_in_their_order_from_the_top():
    marks = [JudgeMark("best", "imported", aligned(0.6, 0.5, 0.7)), JudgeMark("next", "metric", aligned(0.3))]
    drawn = Drawn(leaderboard_figure(marks, None, measure="rho"))
    assert list(drawn.rows().values()) == pytest.approx([0.6, 0.3], **NEAR)
    assert list(drawn.rows()) == sorted(drawn.rows())
    assert {"best", "imported", "next", "metric", "rho"} <= set(drawn.texts)
    (whisker,) = drawn.all("line", stroke=BLUE)
    assert [drawn.x(float(whisker.get(end))) for end in ("x1", "x2")] == pytest.approx([0.5, 0.7], **NEAR)
    assert "best: 0.60 [0.50, 0.70]; next: 0.30 (no interval)" in drawn.says


def test_an_undefined_judge_is_a_dash_with_its_reason_and_no_point():
    marks = [JudgeMark("a", "imported", aligned(0.6)), JudgeMark("b", "imported", aligned(None, reason="all equal"))]
    drawn = Drawn(leaderboard_figure(marks, None, measure="rho"))
    assert len(drawn.all("circle")) == 1
    assert {"— all equal", "—"} <= set(drawn.texts)


def test_people_are_a_band_and_a_line_on_the_same_axis():
    drawn = Drawn(
        leaderboard_figure([JudgeMark("a", "imported", aligned(0.2))], aligned(0.9, 0.8, 0.95), measure="rho")
    )
    (band,) = drawn.all("rect", fill=PEOPLE)
    left, breadth = float(band.get("x")), float(band.get("width"))
    assert (drawn.x(left), drawn.x(left + breadth)) == pytest.approx((0.8, 0.95), **NEAR)
    (line,) = drawn.all("line", stroke=AMBER)
    assert drawn.x(float(line.get("x1"))) == pytest.approx(0.9, **NEAR)
    assert "one person against the others: 0.90" in drawn.texts


def test_the_matrix_colours_what_is_significant_and_leaves_the_rest_open():
    difference = np.array([[0.0, 0.2, 0.1], [-0.2, 0.0, np.nan], [-0.1, np.nan, 0.0]])
    p = np.array([[np.nan, 0.01, 0.3], [0.01, np.nan, np.nan], [0.3, np.nan, np.nan]])
    words = (("", "a beats b", "open"), ("b loses", "", "—"), ("open", "—", ""))
    drawn = Drawn(significance_figure(PairCells(("a", "b", "c"), difference, p, words), alpha=0.05, measure="rho"))
    assert [len(drawn.all("rect", fill=colour)) for colour in (BETTER, WORSE)] == [1, 1]
    assert len(drawn.all("rect")) == 4  # nothing on the diagonal, nothing where undefined
    assert {"+.20", "p = 0.010", "−.20"} <= set(drawn.texts)
    assert drawn.says == "a beats b; open"


def test_points_carry_their_items_and_the_picked_one_stands_out():
    points = Points(("i1", "i7"), (1, 7), np.array([2.0, 4.0]), np.array([2.5, 3.0]))
    trace = scatter_figure(points, Scale(1, 5, 1.0), judge="j", picked=7).data[0]
    assert [entry[0] for entry in trace.customdata] == [1, 7]
    assert list(trace.y) == [2.5, 3.0]
    assert np.abs(np.array(trace.x) - [2.0, 4.0]).max() <= 0.12
    assert trace.marker.color[1] == AMBER != trace.marker.color[0]
    assert "people 4.00, judge 3.00" in trace.hovertext[1]


def test_the_curve_shows_counts_the_map_and_equality_only_on_the_scale():
    bins = [ScoreBin(1.5, 2.4, 2.0, 2.5, 10), ScoreBin(3.5, 4.5, 4.0, 4.2, 40)]
    on = Drawn(curve_figure(bins, [(1.5, 2.2), (4.5, 4.4)], Scale(1, 5), on_scale=True))
    assert {"score = label", "isotonic map", "mean label (number of items)", "10", "40"} <= set(on.texts)
    ((_, first), (_, last)) = on.path(stroke=TEAL)[0]
    assert (first, last) == pytest.approx((2.2, 4.4), abs=0.02)
    off = Drawn(curve_figure(bins, [], Scale(1, 5), on_scale=False))
    assert not {"score = label", "isotonic map"} & set(off.texts)
    assert off.says == "scores near 2.00: mean label 2.50 (10 items); scores near 4.00: mean label 4.20 (40 items)."


def test_the_error_falls_to_the_left_and_lies_above_the_least_possible():
    on = Drawn(kept_figure(kept_shares(np.arange(10.0), np.arange(10.0)[::-1]), wrong=False))
    assert {"the surest are kept", "the least possible", "mean error in points"} <= set(on.texts)
    ((_, first), *_, (_, last)) = on.path(stroke=BLUE)[0]
    # the surest twentieth is one verdict that errs 9; all err 4.5
    assert (first, last) == pytest.approx((9, 4.5), abs=0.1)
    assert on.says == "20 % kept: 8.50; 40 % kept: 7.50; 60 % kept: 6.50; 80 % kept: 5.50; 100 % kept: 4.50."
    assert "wrong answers" in Drawn(kept_figure((), wrong=True)).texts


# ── fusions ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_dearest_loss_stands_on_top_in_the_colour_of_its_test():
    bars = [
        Bar("open", 0.01, Interval(-0.02, 0.04)),
        Bar("helps", 0.2, Interval(0.1, 0.3), shown=True),
        Bar("untested", 0.3, Interval(0.1, 0.5)),
        Bar("harms", -0.1, Interval(-0.2, -0.05), shown=True),
        Bar("unknown", None, None),
    ]
    drawn = Drawn(lost_figure(bars, measure="Spearman rho, sample level"))
    assert list(drawn.rows().values()) == pytest.approx([0.3, 0.2, 0.01, -0.1], **NEAR)
    assert [dot.get("fill") for dot in drawn.all("circle")] == [QUIET, TEAL, QUIET, AMBER]
    names = [text for text in drawn.texts if text in ("open", "helps", "untested", "harms", "unknown")]
    assert names == ["untested", "helps", "open", "harms", "unknown"]
    assert "lost without it, Spearman rho, sample level" in drawn.texts


def test_an_undefined_correlation_is_a_dash():
    between = np.array([[1.0, np.nan], [np.nan, np.nan]])
    drawn = Drawn(between_figure(["a", "b"], between))
    assert [text for text in drawn.texts if text not in ("a", "b")] == ["1.00", "—", "—", "—"]
    assert [cell.get("fill-opacity") for cell in drawn.all("rect")] == [None, "0", "0", "0"]
