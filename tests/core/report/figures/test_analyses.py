"""Figures of ablations and analyses: what is drawn, what is left out, and text that cannot become markup."""

from __future__ import annotations

import pytest

from core.records import Interval
from core.report.figures.analyses import (
    Band,
    Dot,
    MeanMark,
    VariantMark,
    ablation_figure,
    length_figure,
    pattern_figure,
    size_figure,
)
from tests.core.report.figures.conftest import aligned

MEASURE = "Spearman rho, sample level"


def variant(name: str, held_out: float | None, **difference: object) -> VariantMark:
    return VariantMark(name, aligned(0.5, 0.4, 0.6), aligned(held_out), **difference)


def by_name(figure: object) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data}


def test_variants_stand_below_the_final_judge_with_both_sides():
    figure = ablation_figure(
        [
            variant("final judge", 0.4),
            variant("without criteria", 0.3, difference=-0.1, interval=Interval(-0.2, -0.05), p_holm=0.01, n=80),
            variant("single best", 0.42, difference=0.02, interval=Interval(-0.01, 0.05), p_holm=0.6, n=80),
        ],
        measure=MEASURE,
    )
    rows = figure.layout.yaxis
    named = dict(zip(rows.tickvals, rows.ticktext, strict=True))
    assert named == {2: "final judge", 1: "without criteria", 0: "single best"}
    held = by_name(figure)["held-out"]
    assert list(held.x) == [0.4, 0.3, 0.42]
    assert held.y[0] > held.y[1] > held.y[2]
    told, chance = by_name(figure)["differs beyond chance"], by_name(figure)["within chance"]
    assert (list(told.x), list(told.y), list(told.text)) == ([-0.1], [1], ["−0.100"])
    assert (list(chance.x), list(chance.y)) == ([0.02], [0])
    assert told.error_x.array[0] == pytest.approx(0.05)
    assert told.error_x.arrayminus[0] == pytest.approx(0.1)
    low, high = figure.layout.xaxis2.range
    assert low < -0.2
    assert high > 0.05
    assert figure.layout.xaxis.title.text == MEASURE


def test_an_undefined_variant_keeps_its_line_and_has_no_point():
    figure = ablation_figure([variant("final judge", 0.4), variant("without criteria", None)], measure=MEASURE)
    held = by_name(figure)["held-out"]
    assert (list(held.x), len(held.y)) == ([0.4], 1)
    rows = figure.layout.yaxis
    assert dict(zip(rows.tickvals, rows.ticktext, strict=True)) == {1: "final judge", 0: "without criteria"}
    assert not {"differs beyond chance", "within chance"} & set(by_name(figure))


def test_few_drafts_of_a_size_get_a_median_and_many_a_box():
    """Sizes 4 (five drafts: a box with quartiles .2 and .4 around .3) and 8 (two: a bar at their middle, .5)."""
    dots = [Dot(4, 0.1 * k, f"draft {k}", "draft") for k in range(1, 6)] + [Dot(8, y, "d", "draft") for y in (0.4, 0.6)]
    figure = size_figure(dots, measure=MEASURE)
    box = next(trace for trace in figure.data if trace.type == "box")
    assert (box.q1[0], box.median[0], box.q3[0]) == (pytest.approx(0.2), pytest.approx(0.3), pytest.approx(0.4))
    bar = next(trace for trace in figure.data if trace.type == "scatter" and trace.mode == "lines")
    assert list(bar.y) == [0.5, 0.5]
    points = figure.data[-1]
    assert sorted(points.y) == pytest.approx(sorted(dot.y for dot in dots))  # every draft is there to be seen
    assert all(abs(x) < 0.3 for x in points.x[:5])
    assert all(abs(x - 1) < 0.3 for x in points.x[5:])
    assert list(figure.layout.xaxis.ticktext) == ["<b>4</b><br>n = 5", "<b>8</b><br>n = 2"]


def test_the_band_lies_around_the_line():
    band = Band((10, 50, 90), (0.2, 0.3, 0.4), (0.1, 0.25, 0.3), (0.3, 0.35, 0.5))
    dots = [Dot(10, 0.2, "a", "draft"), Dot(90, 0.4, "b", "refinement")]
    figure = length_figure(dots, band, measure=MEASURE)
    shape = by_name(figure)["95 % band of the mean"]
    assert list(shape.x) == [10, 50, 90, 90, 50, 10]
    assert list(shape.y) == [0.3, 0.35, 0.5, 0.3, 0.25, 0.1]
    assert list(by_name(figure)["least squares"].y) == [0.2, 0.3, 0.4]
    assert list(by_name(figure)["draft"].x) == [10]
    assert list(by_name(figure)["refinement"].x) == [90]


def test_a_line_without_a_band_and_points_without_a_line():
    line = length_figure([Dot(10, 0.2, "a", "draft")], Band((10, 20), (0.1, 0.2)), measure=MEASURE)
    assert set(by_name(line)) == {"least squares", "draft"}
    alone = length_figure([Dot(10, 0.2, "a", "draft")], Band((), ()), measure=MEASURE)
    assert set(by_name(alone)) == {"draft"}
    assert list(length_figure([], None, measure=MEASURE).data) == []


def test_an_empty_pattern_keeps_its_place_and_says_none():
    marks = [MeanMark("holistic", (0.1, 0.3), 0.2, Interval(0.1, 0.3)), MeanMark("specific", (), None, None)]
    figure = pattern_figure(marks, measure=MEASURE)
    assert list(figure.layout.xaxis.ticktext) == ["<b>holistic</b><br>n = 2", "<b>specific</b><br>n = 0"]
    means = by_name(figure)["mean with its 95 % interval"]
    assert (list(means.x), list(means.y)) == ([0], [0.2])
    assert means.error_y.array[0] == pytest.approx(0.1)
    assert [note.text for note in figure.layout.annotations] == ["<b>0.200</b>", "none"]
    assert pattern_figure([], measure=MEASURE).layout.yaxis.title.text == MEASURE
    assert not size_figure([], measure=MEASURE).data[0].x
