"""Figures of Compare: a place for every judge, none at 0 that has no value, and names that cannot become markup."""

from __future__ import annotations

import numpy as np
import pytest

from core.comparison.curve import ScoreBin
from core.records import Interval, Scale
from core.report.figures.comparison import (
    AMBER,
    QUIET,
    TEAL,
    Bar,
    JudgeMark,
    PairCells,
    Points,
    between_figure,
    curve_figure,
    leaderboard_figure,
    lost_figure,
    scatter_figure,
    significance_figure,
    weights_figure,
)
from tests.core.report.figures.conftest import aligned


def test_judges_stand_in_their_order_from_the_top():
    marks = [JudgeMark("best", "imported", aligned(0.6, 0.5, 0.7)), JudgeMark("next", "metric", aligned(0.3))]
    figure = leaderboard_figure(marks, None, measure="rho")
    assert {(trace.x[0], trace.y[0]) for trace in figure.data} == {(0.6, 2), (0.3, 0)}
    assert list(figure.layout.yaxis.tickvals) == [2, 0]
    assert figure.layout.yaxis.ticktext[0].startswith("best")
    assert figure.layout.xaxis.title.text == "rho"
    best = next(trace for trace in figure.data if trace.x[0] == 0.6)
    assert (best.error_x.array[0], best.error_x.arrayminus[0]) == pytest.approx((0.1, 0.1))


def test_an_undefined_judge_is_a_dash_with_its_reason_and_no_point():
    marks = [JudgeMark("a", "imported", aligned(0.6)), JudgeMark("b", "imported", aligned(None, reason="all equal"))]
    figure = leaderboard_figure(marks, None, measure="rho")
    assert list(figure.data[0].y) == [2]
    assert any(note.y == 0 and note.text == "— all equal" for note in figure.layout.annotations)


def test_people_are_a_band_and_a_line_on_the_same_axis():
    figure = leaderboard_figure([JudgeMark("a", "imported", aligned(0.2))], aligned(0.9, 0.8, 0.95), measure="rho")
    band, line = figure.layout.shapes
    assert (band.x0, band.x1, line.x0) == (0.8, 0.95, 0.9)
    assert figure.layout.xaxis.range[1] > 0.95
    assert any("a person: 0.90" in note.text for note in figure.layout.annotations)


def test_a_judge_measured_as_a_person_is_stands_under_its_own_mark():
    mark = JudgeMark("a", "imported", aligned(0.6, 0.5, 0.7), like_person=aligned(0.4, 0.3, 0.99))
    own, like = leaderboard_figure([mark], aligned(0.5, 0.4, 0.6), measure="rho").data
    assert (list(own.x), list(like.x)) == ([0.6], [0.4])
    assert like.y[0] < own.y[0]
    assert like.marker.symbol == "circle-open"
    assert "against the mean of the other raters, as a person is" in like.hovertext[0]


def test_printed_numbers_are_hollow_and_without_an_interval():
    marks = [JudgeMark("mine", "imported", aligned(0.6, 0.5, 0.7)), JudgeMark("GPT-4", None, aligned(0.5))]
    printed = leaderboard_figure(marks, None, measure="rho").data[1]
    assert printed.marker.symbol == "diamond-open"
    assert list(printed.error_x.array) == [0.0]
    assert list(printed.y) == [0]


def test_the_matrix_colours_what_is_significant_and_leaves_the_rest_open():
    difference = np.array([[0.0, 0.2, 0.1], [-0.2, 0.0, np.nan], [-0.1, np.nan, 0.0]])
    p = np.array([[np.nan, 0.01, 0.3], [0.01, np.nan, np.nan], [0.3, np.nan, np.nan]])
    words = (("", "a beats b", "open"), ("b loses", "", "—"), ("open", "—", ""))
    heat = significance_figure(PairCells(("a", "b", "c"), difference, p, words), alpha=0.05, measure="rho").data[0]
    assert [list(row) for row in heat.z] == [[None, 1.0, 0.0], [-1.0, None, None], [0.0, None, None]]
    assert heat.text[0][1] == "+.20<br>p = .010"
    assert heat.text[1][2] == ""
    assert heat.customdata[0][1] == "a beats b"


def test_points_carry_their_items_and_the_picked_one_stands_out():
    points = Points(("i1", "i7"), (1, 7), np.array([2.0, 4.0]), np.array([2.5, 3.0]))
    trace = scatter_figure(points, Scale(1, 5, 1.0), judge="j", picked=7).data[0]
    assert [entry[0] for entry in trace.customdata] == [1, 7]
    assert list(trace.y) == [2.5, 3.0]
    assert np.abs(np.array(trace.x) - [2.0, 4.0]).max() <= 0.12
    assert trace.marker.color[1] == AMBER != trace.marker.color[0]
    assert "people 4.00, judge 3.00" in trace.hovertext[1]


def test_labels_on_a_continuous_scale_are_not_spread():
    points = Points(("i1",), (1,), np.array([42.5]), np.array([40.0]))
    assert list(scatter_figure(points, Scale(0, 100), judge="j").data[0].x) == [42.5]


def test_the_curve_shows_counts_the_map_and_equality_only_on_the_scale():
    points = [ScoreBin(1.5, 2.4, 2.0, 2.5, 10), ScoreBin(3.5, 4.5, 4.0, 4.2, 40)]
    on = curve_figure(points, [(1.5, 2.2), (4.5, 4.4)], Scale(1, 5), on_scale=True)
    assert [trace.name for trace in on.data] == ["score = label", "isotonic map", "mean label (number of items)"]
    assert list(on.data[2].text) == ["10", "40"]
    off = curve_figure(points, [], Scale(1, 5), on_scale=False)
    assert [trace.name for trace in off.data] == ["mean label (number of items)"]


# ── fusions ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_dearest_loss_stands_on_top_in_the_colour_of_its_test():
    bars = [
        Bar("open", 0.01, Interval(-0.02, 0.04)),
        Bar("helps", 0.2, Interval(0.1, 0.3), shown=True),
        Bar("untested", 0.3, Interval(0.1, 0.5)),
        Bar("harms", -0.1, Interval(-0.2, -0.05), shown=True),
        Bar("unknown", None, None),
    ]
    figure = lost_figure(bars, measure="Spearman rho, sample level")
    assert [trace.x[0] for trace in figure.data] == [-0.1, 0.01, 0.2, 0.3]
    assert [trace.marker.color for trace in figure.data] == [AMBER, QUIET, TEAL, QUIET]
    assert figure.layout.yaxis.ticktext[-2] == "helps"
    assert figure.layout.yaxis.ticktext[0] == "unknown"
    assert "Spearman rho, sample level" in figure.layout.xaxis.title.text


def test_a_weights_interval_reaches_from_end_to_end():
    (trace,) = weights_figure([Bar("a", 0.5, Interval(0.2, 0.6))], unit="points").data
    assert (trace.error_x.array[0], trace.error_x.arrayminus[0]) == (0.6 - 0.5, 0.5 - 0.2)


def test_an_undefined_correlation_is_a_dash():
    between = np.array([[1.0, np.nan], [np.nan, np.nan]])
    heat = between_figure(["a", "b"], between).data[0]
    assert [list(row) for row in heat.text] == [["1.00", "—"], ["—", "—"]]
    assert heat.z[0][1] is None
