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
from core.report.figures.style import AMBER, BLUE, PAPER, TEAL
from tests.core.report.figures.conftest import Drawn, aligned

NEAR = {"abs": 0.004}  # pixels have two decimals


def standing(best: Mapping[int, float], *, calls: int = 0) -> LeaderboardSnapshot:
    curve = tuple(BestSoFar(after, value, "c") for after, value in best.items())
    return LeaderboardSnapshot("draft", 0, "", calls, 1000, (), curve, Usage())


def way(trace: Mapping[int, float | None]) -> tuple[TracePoint, ...]:
    return tuple(map(TracePoint, trace, trace.values()))


def test_an_undefined_candidate_keeps_its_place_but_is_not_drawn_as_zero():
    marks = [Mark("a", aligned(0.4), "kept"), Mark("b", aligned(None), "kept"), Mark("c", aligned(0.0), "kept")]
    drawn = Drawn(figures.candidates_figure(marks, None, measure="m"))
    (a, c) = drawn.spots(r="4")
    assert a == pytest.approx((1, 0.4), **NEAR)
    assert c == pytest.approx((3, 0.0), **NEAR)
    assert drawn.says == "2 of 3 candidates measured. Highest: a, 0.40 (no interval)."


def test_whiskers_reach_the_ends_of_the_interval():
    drawn = Drawn(figures.candidates_figure([Mark("a", aligned(0.4, 0.25, 0.5), "kept")], None, measure="m"))
    (whisker,) = drawn.all("line", stroke=BLUE)
    ends = [drawn.y(float(whisker.get(end))) for end in ("y1", "y2")]
    assert ends == pytest.approx([0.25, 0.5], **NEAR)


def test_axes_hold_still_while_a_run_grows():
    few = figures.candidates_figure([Mark("a", aligned(0.31), "kept")], aligned(0.2), measure="m", slots=60)
    marks = [Mark(str(i), aligned(0.21 + i / 200), "kept") for i in range(20)]
    more = figures.candidates_figure(marks, aligned(0.2), measure="m", slots=60)
    assert Drawn(few).texts == Drawn(more).texts
    assert (few.width, few.height) == (more.width, more.height)


def test_the_curve_starts_with_its_whole_axis_and_shows_the_baseline():
    drawn = Drawn(figures.best_so_far_figure(standing({100: 0.2, 250: 0.3}), aligned(0.1), measure="rho"))
    assert drawn.texts[0] == "rho"
    assert "1,000" in drawn.texts  # calls that are expected
    assert "no criteria 0.100" in drawn.texts
    (baseline,) = drawn.all("line", stroke=AMBER)
    assert drawn.y(float(baseline.get("y1"))) == pytest.approx(0.1, **NEAR)
    assert not Drawn(figures.best_so_far_figure(standing({}), aligned(None), measure="rho")).all("line", stroke=AMBER)


def test_sides_stand_in_the_order_given_from_the_top():
    rows = [Sides("final", aligned(0.5, 0.4, 0.6), aligned(0.4, 0.2, 0.5)), Sides("none", aligned(0.1), aligned(None))]
    drawn = Drawn(figures.sides_figure(rows, measure="m"))
    names = [text for text in drawn.texts if text in ("final, held-out", "calibration", "none, held-out")]
    assert names == ["final, held-out", "calibration", "none, held-out", "calibration"]
    assert list(drawn.rows().values()) == pytest.approx([0.4, 0.5, 0.1], **NEAR)  # none at 0 for the undefined
    hollow = [dot.get("fill") == PAPER for dot in drawn.all("circle", r="5")]
    assert hollow == [False, True, True]
    assert "none, held-out: —" in drawn.says


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50),
    st.sampled_from([Scale(0, 1), Scale(0, 1, 0.25), Scale(0, 1, 0.001)]),
)
def test_every_label_is_counted_once(values, scale):
    said = figures.labels_figure(AspectLabels("a", scale, tuple(values))).says
    assert sum(int(bar.rpartition(": ")[2]) for bar in said.rstrip(".").split("; ")) == len(values)


def test_race_has_a_line_per_candidate_with_gaps_between():
    races = [
        Race("draft 1", "stopped", way({24: 0.1})),
        Race("draft 2", "chosen", way({24: 0.3, 80: 0.35, 120: None, 160: 0.5})),
        Race("draft 3", "chosen", way({24: 0.2, 80: 0.4})),
    ]
    baseline = Race("no criteria", "baseline", way({24: 0.0, 160: -0.1}))
    drawn = Drawn(figures.race_figure(races, baseline, measure="Spearman rho, sample level"))
    assert [text for text in drawn.texts if text in ("stopped", "chosen")] == ["stopped", "chosen"]
    first, second = drawn.path(stroke=TEAL)  # undefined is a gap, not 0
    assert [y for _, y in first] == pytest.approx([0.3, 0.35], **NEAR)
    assert [y for _, y in second] == pytest.approx([0.2, 0.4], **NEAR)
    ((_, low), (_, last)) = drawn.path(stroke=AMBER)[0]
    assert (low, last) == pytest.approx((0, -0.1), **NEAR)
    spots = [x for x, _ in drawn.spots(r="3.5")]  # the chosen, drawn over those that fell out
    assert spots == pytest.approx([24, 80, 160, 24, 80], abs=0.5)
