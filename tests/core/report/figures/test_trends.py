"""What changes with labels, samples and time: nothing for the unknown, whiskers as distances, text without markup."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from core.records import Interval
from core.report.figures import Mark
from core.report.figures.style import AMBER, QUIET, TEAL
from core.report.figures.trends import (
    BAND,
    Point,
    forecast_figure,
    growth_figure,
    history_figure,
    styles_figure,
)
from core.review.agreement import AspectAgreement, GrowthPoint
from core.stats.pilot import Forecast, ForecastPoint
from tests.core.report.figures.conftest import NOW, aligned


def line(name: str = "a", values: tuple[float | None, ...] = (0.3, 0.4, 0.45)) -> tuple[str, Forecast]:
    ends = [None if value is None else Interval(value - 0.1, value + 0.05) for value in values]
    points = map(ForecastPoint, (1, 5, 20), values, ends, (1600, 8000, 32000), (1.5, 7.5, None))
    return name, Forecast("pearson", "dataset", 96, 1600, tuple(points))


def growth(points: Mapping[int, float | None], interval: Interval | None, metric: str) -> AspectAgreement:
    return AspectAgreement("a", None, metric, 0, 0, tuple(map(GrowthPoint, points, points.values())), interval)


def test_calls_stand_under_the_samples():
    figure = forecast_figure([line()], measure="Pearson r, dataset level")
    assert list(figure.layout.xaxis.ticktext) == ["1<br>1,600", "5<br>8,000", "20<br>32,000"]
    assert figure.layout.yaxis.title.text == "Pearson r, dataset level"
    assert list(figure.data[0].x) == [0, 1, 2]
    assert list(figure.data[0].y) == [0.3, 0.4, 0.45]
    assert list(figure.data[0].error_y.array) == pytest.approx([0.05] * 3)
    assert list(figure.data[0].error_y.arrayminus) == pytest.approx([0.1] * 3)


def test_what_is_unknown_is_not_drawn():
    trace = forecast_figure([line(values=(0.3, None, 0.45))], measure="m").data[0]
    assert list(trace.x) == [0, 2]
    assert list(trace.y) == [0.3, 0.45]
    empty = forecast_figure([], measure="m")
    assert not empty.data


def test_lines_stand_beside_each_other_in_the_order_given():
    figure = forecast_figure([line("a"), line("b"), line("c")], measure="m")
    first, second, third = (trace.x[1] for trace in figure.data)
    assert first < second < third
    assert second == pytest.approx(1)
    assert third - first < 0.5  # nearer to their own number of samples than to the next
    assert len({trace.line.color for trace in figure.data}) == 3


def test_the_hover_box_tells_samples_calls_and_price():
    first, _, last = forecast_figure([line("two words")], measure="m").data[0].hovertext
    assert first == "<b>two words</b><br>1 sample: 0.300 [0.20, 0.35]<br>1,600 calls, about $1.50"
    assert last.endswith("20 samples: 0.450 [0.35, 0.50]<br>32,000 calls")


def test_styles_stand_in_the_order_given_from_the_top_and_the_undefined_keeps_its_place():
    marks = [Mark("first", aligned(0.4, 0.3, 0.6)), Mark("second", aligned(None)), Mark("third", aligned(-0.2))]
    figure = styles_figure(marks, measure="Spearman rho, sample level")
    assert list(figure.layout.yaxis.ticktext) == ["third", "second", "first"]
    (trace,) = figure.data
    assert list(trace.y) == [2, 0]
    assert list(trace.x) == [0.4, -0.2]
    assert list(trace.error_x.array) == pytest.approx([0.2, 0.0])
    assert figure.layout.xaxis.range[0] <= -0.2
    assert figure.layout.xaxis.title.text == "Spearman rho, sample level"


def test_alpha_over_items_with_its_interval_at_the_end():
    figure = growth_figure(growth({1: None, 5: 0.4, 9: 0.6}, Interval(0.3, 0.8, method="m"), "ordinal"), n_expected=20)
    line, whisker = figure.data
    assert list(line.x) == [1, 5, 9]
    assert list(line.y) == [None, 0.4, 0.6]  # undefined is a gap, not 0
    assert (list(whisker.x), list(whisker.y)) == ([9, 9], [0.3, 0.8])
    assert figure.layout.yaxis.title.text == "Krippendorff's alpha, ordinal"
    assert list(figure.layout.xaxis.range) == [0, 21]


def test_without_an_interval_there_is_no_whisker_and_disagreement_lies_below_nought():
    figure = growth_figure(growth({3: -0.3}, None, "nominal"), n_expected=0)
    assert len(figure.data) == 1
    assert figure.layout.yaxis.range[0] < -0.3
    assert len(growth_figure(growth({}, None, "nominal"), n_expected=0).data) == 1


def test_marks_band_and_names():
    points = [
        Point(NOW, "well", aligned(0.5, 0.4, 0.6), "holds"),
        Point(NOW, "undefined", aligned(None), "cannot be told"),
        Point(NOW, "worse", aligned(0.1, -0.1, 0.3), "fallen"),
        Point(NOW, "open", aligned(0.4, 0.1, 0.6), "cannot be told"),
    ]
    figure = history_figure(points, aligned(0.55, 0.45, 0.62))
    marks = {trace.name: (list(trace.x), list(trace.y), trace.marker.color) for trace in figure.data[:3]}
    assert marks == {
        "holds": ([0], [0.5], TEAL),
        "fallen": ([2], [0.1], AMBER),
        "cannot be told": ([3], [0.4], QUIET),
    }
    (worse,) = (trace for trace in figure.data if trace.name == "fallen")
    assert (worse.error_y.array[0], worse.error_y.arrayminus[0]) == (0.3 - 0.1, 0.1 - -0.1)
    band, line = figure.layout.shapes
    assert (band.y0, band.y1, band.fillcolor) == (0.45, 0.62, BAND)
    assert (line.y0, line.y1) == (0.55, 0.55)
    assert figure.layout.xaxis.ticktext[0] == "2026-03-01<br>well"
    assert figure.layout.yaxis.title.text == "Spearman rho, sample level"
    assert not history_figure(points, aligned(None)).layout.shapes  # an export without a figure
