"""Figures of styles: nothing for the unknown, calls under the samples, whiskers as distances, text without markup."""

from __future__ import annotations

import pytest

from core.records import Alignment, Interval
from core.report.figures.styles import ForecastLine, StyleMark, forecast_figure, styles_figure

HOSTILE = "<a href='javascript:alert(1)'>x</a>"


def line(name: str = "a", values: tuple[float | None, ...] = (0.3, 0.4, 0.45)) -> ForecastLine:
    ends = tuple(None if value is None else Interval(value - 0.1, value + 0.05) for value in values)
    return ForecastLine(name, (1, 5, 20), values, ends, (1600, 8000, 32000), (1.5, 7.5, None))


def test_calls_stand_under_the_samples() -> None:
    figure = forecast_figure([line()], measure="Pearson r, dataset level")
    assert list(figure.layout.xaxis.ticktext) == ["1<br>1,600", "5<br>8,000", "20<br>32,000"]
    assert figure.layout.yaxis.title.text == "Pearson r, dataset level"
    assert list(figure.data[0].x) == [0, 1, 2]
    assert list(figure.data[0].y) == [0.3, 0.4, 0.45]


def test_whiskers_are_distances_to_the_ends_of_the_interval() -> None:
    bars = forecast_figure([line()], measure="m").data[0].error_y
    assert list(bars.array) == pytest.approx([0.05] * 3)
    assert list(bars.arrayminus) == pytest.approx([0.1] * 3)


def test_what_is_unknown_is_not_drawn() -> None:
    trace = forecast_figure([line(values=(0.3, None, 0.45))], measure="m").data[0]
    assert list(trace.x) == [0, 2]
    assert list(trace.y) == [0.3, 0.45]
    empty = forecast_figure([], measure="m")
    assert not empty.data


def test_lines_stand_beside_each_other_in_the_order_given() -> None:
    figure = forecast_figure([line("a"), line("b"), line("c")], measure="m")
    first, second, third = (trace.x[1] for trace in figure.data)
    assert first < second < third
    assert second == pytest.approx(1)
    assert third - first < 0.5  # nearer to their own number of samples than to the next
    assert len({trace.line.color for trace in figure.data}) == 3


def test_the_hover_box_tells_samples_calls_and_price() -> None:
    first, _, last = forecast_figure([line("two words")], measure="m").data[0].hovertext
    assert first == "<b>two words</b><br>1 sample: 0.300 [0.20, 0.35]<br>1,600 calls, about $1.50"
    assert last.endswith("20 samples: 0.450 [0.35, 0.50]<br>32,000 calls")


def test_hostile_names_cannot_become_markup() -> None:
    mark = StyleMark(HOSTILE, Alignment("spearman", "sample", 0.1, 40), detail="<img src=x onerror=alert(1)>")
    for figure in (forecast_figure([line(HOSTILE)], measure="m"), styles_figure([mark], measure="m")):
        drawn = figure.to_json()
        assert "<a href" not in drawn
        assert "<img" not in drawn


def test_styles_stand_in_the_order_given_from_the_top_and_the_undefined_keeps_its_place() -> None:
    marks = [
        StyleMark("first", Alignment("spearman", "sample", 0.4, 40, interval=Interval(0.3, 0.6))),
        StyleMark("second", Alignment("spearman", "sample", None, 40, reason="constant")),
        StyleMark("third", Alignment("spearman", "sample", -0.2, 40)),
    ]
    figure = styles_figure(marks, measure="Spearman rho, sample level")
    assert list(figure.layout.yaxis.ticktext) == ["third", "second", "first"]
    (trace,) = figure.data
    assert list(trace.y) == [2, 0]
    assert list(trace.x) == [0.4, -0.2]
    assert list(trace.error_x.array) == pytest.approx([0.2, 0.0])
    assert figure.layout.xaxis.range[0] <= -0.2
    assert figure.layout.xaxis.title.text == "Spearman rho, sample level"
