"""Figures of ablations and analyses: what is drawn, what is left out, and text that cannot become markup."""

from __future__ import annotations

import pytest

from core.calibration.ablate import AblationRow
from core.calibration.analyse import Line, PatternGroup, Place, Pool
from core.calibration.variants import VariantKey
from core.records import Interval, Origin
from core.report.figures.analyses import (
    ablation_figure,
    length_figure,
    pattern_figure,
    size_figure,
)
from tests.core.report.figures.conftest import aligned

MEASURE = "Spearman rho, sample level"


def variant(key: VariantKey, held_out: float | None, **difference: object) -> AblationRow:
    return AblationRow(key, "", ("c",), aligned(0.5, 0.4, 0.6), aligned(held_out), **difference)


def pool_of(*places: Place) -> Pool:
    return Pool("complete", "spearman", "sample", 80, len(places), places)


def place(
    value: float, *, origin: Origin = "draft", size: int = 4, words: int = 10, pattern: str = "holistic"
) -> Place:
    return Place("c", origin, 0, size, words, pattern, value)


NAMES = {"c": "some criteria"}


def by_name(figure: object) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data}


def test_variants_stand_below_the_final_judge_with_both_sides():
    figure = ablation_figure(
        [
            variant("final", 0.4),
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
    report, chance = by_name(figure)["differs beyond chance"], by_name(figure)["within chance"]
    assert (list(report.x), list(report.y), list(report.text)) == ([-0.1], [1], ["−0.100"])
    assert (list(chance.x), list(chance.y)) == ([0.02], [0])
    assert report.error_x.array[0] == pytest.approx(0.05)
    assert report.error_x.arrayminus[0] == pytest.approx(0.1)
    low, high = figure.layout.xaxis2.range
    assert low < -0.2
    assert high > 0.05
    assert figure.layout.xaxis.title.text == MEASURE


def test_an_undefined_variant_keeps_its_line_and_has_no_point():
    figure = ablation_figure([variant("final", 0.4), variant("without criteria", None)], measure=MEASURE)
    held = by_name(figure)["held-out"]
    assert (list(held.x), len(held.y)) == ([0.4], 1)
    rows = figure.layout.yaxis
    assert dict(zip(rows.tickvals, rows.ticktext, strict=True)) == {1: "final judge", 0: "without criteria"}
    assert not {"differs beyond chance", "within chance"} & set(by_name(figure))


def test_few_drafts_of_a_size_get_a_median_and_many_a_box():
    """Sizes 4 (five drafts: a box with quartiles .2 and .4 around .3) and 8 (two: a bar at their middle, .5)."""
    drafts = [place(0.1 * k, size=4) for k in range(1, 6)] + [place(value, size=8) for value in (0.4, 0.6)]
    figure = size_figure(pool_of(*drafts, place(0.9, origin="refine")), NAMES)
    box = next(trace for trace in figure.data if trace.type == "box")
    assert (box.q1[0], box.median[0], box.q3[0]) == (pytest.approx(0.2), pytest.approx(0.3), pytest.approx(0.4))
    bar = next(trace for trace in figure.data if trace.type == "scatter" and trace.mode == "lines")
    assert list(bar.y) == [0.5, 0.5]
    points = figure.data[-1]
    assert sorted(points.y) == pytest.approx(sorted(draft.value for draft in drafts))  # every draft is there to be seen
    assert all(abs(x) < 0.3 for x in points.x[:5])
    assert all(abs(x - 1) < 0.3 for x in points.x[5:])
    assert list(figure.layout.xaxis.ticktext) == ["<b>4</b><br>n = 5", "<b>8</b><br>n = 2"]


def test_the_band_lies_around_the_line():
    line = Line(2, 0.25, None, (10, 50, 90), (0.2, 0.3, 0.4), (0.1, 0.25, 0.3), (0.3, 0.35, 0.5))
    pool = pool_of(place(0.2, words=10), place(0.4, words=90, origin="refine"))
    figure = length_figure(pool, line, NAMES)
    shape = by_name(figure)["95 % band of the mean"]
    assert list(shape.x) == [10, 50, 90, 90, 50, 10]
    assert list(shape.y) == [0.3, 0.35, 0.5, 0.3, 0.25, 0.1]
    assert list(by_name(figure)["least squares"].y) == [0.2, 0.3, 0.4]
    assert list(by_name(figure)["draft"].x) == [10]
    assert list(by_name(figure)["refinement"].x) == [90]


def test_a_line_without_a_band_and_points_without_a_line():
    pool, none = pool_of(place(0.2)), Line(0, None, None)
    line = length_figure(pool, Line(1, 0.1, None, (10, 20), (0.1, 0.2)), NAMES)
    assert set(by_name(line)) == {"least squares", "draft"}
    assert set(by_name(length_figure(pool, none, NAMES))) == {"draft"}
    assert list(length_figure(pool_of(), none, NAMES).data) == []


def test_an_empty_pattern_keeps_its_place_and_says_none():
    groups = [PatternGroup("holistic", 2, 0.2, Interval(0.1, 0.3)), PatternGroup("specific", 0, None, None)]
    figure = pattern_figure(pool_of(place(0.1), place(0.3)), groups)
    assert list(figure.layout.xaxis.ticktext) == ["<b>holistic</b><br>n = 2", "<b>specific</b><br>n = 0"]
    means = by_name(figure)["mean with its 95 % interval"]
    assert (list(means.x), list(means.y)) == ([0], [0.2])
    assert means.error_y.array[0] == pytest.approx(0.1)
    assert [note.text for note in figure.layout.annotations] == ["<b>0.200</b>", "none"]
    assert pattern_figure(pool_of(), []).layout.yaxis.title.text == MEASURE
    assert not size_figure(pool_of(), {}).data[0].x
