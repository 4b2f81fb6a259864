"""Figures say what the records say: nothing for undefined, axes that hold still, text that cannot become markup."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.records import BestSoFar, LeaderboardSnapshot, TracePoint
from core.records import AspectLabels, Scale, Usage
from core.report import figures
from core.report.figures import Mark, Race, Sides
from tests.core.report.figures.conftest import aligned


def standing(best: Mapping[int, float], *, calls: int = 0) -> LeaderboardSnapshot:
    curve = tuple(BestSoFar(after, value, "c") for after, value in best.items())
    return LeaderboardSnapshot("draft", 0, "", calls, 1000, (), curve, Usage())


def way(trace: Mapping[int, float | None]) -> tuple[TracePoint, ...]:
    return tuple(map(TracePoint, trace, trace.values()))


def test_an_undefined_candidate_keeps_its_place_but_is_not_drawn_as_zero():
    marks = [Mark("a", aligned(0.4), "kept"), Mark("b", aligned(None), "kept"), Mark("c", aligned(0.0), "kept")]
    trace = figures.candidates_figure(marks, None, measure="m").data[0]
    assert list(trace.x) == [1, 3]
    assert list(trace.y) == [0.4, 0.0]


def test_every_candidate_is_drawn_once_in_its_own_group():
    marks = [
        Mark(name, aligned(value), group)
        for name, value, group in (("a", 0.4, "kept"), ("b", 0.1, "stopped"), ("c", 0.5, "chosen"), ("d", 0.3, "kept"))
    ]
    traces = figures.candidates_figure(marks, None, measure="m").data
    drawn = {trace.name: list(zip(trace.x, trace.y, strict=True)) for trace in traces}
    assert drawn == {"kept": [(1, 0.4), (4, 0.3)], "stopped": [(2, 0.1)], "chosen": [(3, 0.5)]}


def test_whiskers_are_distances_to_the_ends_of_the_interval():
    figure = figures.candidates_figure([Mark("a", aligned(0.4, 0.25, 0.5), "kept")], None, measure="m")
    assert figure.data[0].error_y.array[0] == pytest.approx(0.1)
    assert figure.data[0].error_y.arrayminus[0] == pytest.approx(0.15)


def test_axes_hold_still_while_a_run_grows():
    few = figures.candidates_figure([Mark("a", aligned(0.31), "kept")], aligned(0.2), measure="m", slots=60)
    more = figures.candidates_figure(
        [Mark(str(i), aligned(0.21 + i / 200), "kept") for i in range(20)], aligned(0.2), measure="m", slots=60
    )
    assert few.layout.xaxis.range == more.layout.xaxis.range == (0, 61)
    assert few.layout.yaxis.range == more.layout.yaxis.range
    assert few.layout.uirevision == more.layout.uirevision


def test_the_curve_starts_with_its_whole_axis_and_shows_the_baseline():
    figure = figures.best_so_far_figure(standing({100: 0.2, 250: 0.3}), aligned(0.1), measure="rho")
    assert figure.layout.xaxis.range == (0, 1020)
    assert figure.layout.shapes[0].y0 == 0.1
    assert "no criteria 0.100" in figure.layout.annotations[0].text
    assert not figures.best_so_far_figure(standing({}), aligned(None), measure="rho").layout.shapes


def test_sides_stand_in_the_order_given_from_the_top():
    rows = [
        Sides("final", aligned(0.5, 0.4, 0.6), aligned(0.4, 0.2, 0.5)),
        Sides("none", aligned(0.1), aligned(None)),
    ]
    figure = figures.sides_figure(rows, measure="m")
    assert list(figure.layout.yaxis.ticktext) == ["none", "final"]
    calibration, held_out = figure.data
    assert list(calibration.x) == [0.5, 0.1]
    assert list(held_out.x) == [0.4]
    assert calibration.y[0] > held_out.y[0] > calibration.y[1]


def test_labels_on_steps_get_one_bar_a_step():
    labels = AspectLabels("coherence", Scale(1, 5, 1.0), (1.0, 1.0, 5.0, None, 3.0))
    bar = figures.labels_figure(labels).data[0]
    assert [round(x) for x in bar.x] == [1, 2, 3, 4, 5]
    assert list(bar.y) == [2, 0, 1, 0, 1]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50),
    st.sampled_from([Scale(0, 1), Scale(0, 1, 0.25), Scale(0, 1, 0.001)]),
)
def test_every_label_is_counted_once(values, scale):
    bar = figures.labels_figure(AspectLabels("a", scale, tuple(values))).data[0]
    assert sum(bar.y) == len(values)


def test_the_curve_goes_on_to_the_calls_spent_by_now():
    line = figures.best_so_far_figure(standing({100: 0.2}, calls=400), None, measure="rho").data[0]
    assert list(line.x) == [100, 400]
    assert list(line.y) == [0.2, 0.2]


def test_race_has_a_line_per_candidate_with_gaps_between():
    races = [
        Race("draft 1", "stopped", way({24: 0.1})),
        Race("draft 2", "chosen", way({24: 0.3, 80: None, 160: 0.5})),
        Race("draft 3", "chosen", way({24: 0.2, 80: 0.4})),
    ]
    baseline = Race("no criteria", "baseline", way({24: 0.0, 160: -0.1}))
    figure = figures.race_figure(races, baseline, measure="Spearman rho, sample level")
    by_name = {trace.name: trace for trace in figure.data}
    assert list(by_name) == ["stopped", "chosen", "no criteria"]  # the chosen are drawn over those that fell out
    assert list(by_name["chosen"].x) == [24, 80, 160, None, 24, 80, None]
    assert list(by_name["chosen"].y) == [0.3, None, 0.5, None, 0.2, 0.4, None]  # undefined is a gap, not 0
    assert len(by_name["chosen"].hovertext) == 7
    assert figure.layout.xaxis.range[1] >= 160
    assert figure.layout.yaxis.range[0] <= -0.1
