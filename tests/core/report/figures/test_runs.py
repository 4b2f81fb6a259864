"""Figures say what the records say: nothing for undefined, axes that hold still, text that cannot become markup."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.records import BestSoFar, LeaderboardSnapshot, TracePoint
from core.records import AspectLabels, Scale, Usage
from core.report import figures
from core.report.figures import Mark, Race, Sides
from core.report.figures.bars import label_bars
from core.report.figures.style import AMBER, BLUE, PAPER, QUIET, TEAL
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


def test_every_candidate_is_drawn_once_in_the_colour_of_its_group():
    groups = {"kept": BLUE, "stopped": QUIET, "not finished": BLUE}
    marks = [Mark(group, aligned(0.1 * k), group) for k, group in enumerate(groups, 1)]
    drawn = Drawn(figures.candidates_figure(marks, None, measure="m"))
    kept, stopped, unfinished = drawn.all("circle", r="4")
    assert (kept.get("fill"), stopped.get("fill")) == (BLUE, QUIET)
    assert (unfinished.get("fill"), unfinished.get("stroke")) == (PAPER, BLUE)  # hollow
    assert [text for text in drawn.texts if text in groups] == list(groups)  # the legend


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


def test_the_curve_goes_on_to_the_calls_spent_by_now():
    (steps,) = Drawn(figures.best_so_far_figure(standing({100: 0.2}, calls=400), None, measure="rho")).path()
    assert [x for x, _ in steps] == pytest.approx([100, 400], abs=2)
    assert [y for _, y in steps] == pytest.approx([0.2, 0.2], **NEAR)


def test_sides_stand_in_the_order_given_from_the_top():
    rows = [Sides("final", aligned(0.5, 0.4, 0.6), aligned(0.4, 0.2, 0.5)), Sides("none", aligned(0.1), aligned(None))]
    drawn = Drawn(figures.sides_figure(rows, measure="m"))
    names = [text for text in drawn.texts if text in ("final, held-out", "calibration", "none, held-out")]
    assert names == ["final, held-out", "calibration", "none, held-out", "calibration"]
    assert list(drawn.rows().values()) == pytest.approx([0.4, 0.5, 0.1], **NEAR)  # none at 0 for the undefined
    hollow = [dot.get("fill") == PAPER for dot in drawn.all("circle", r="5")]
    assert hollow == [False, True, True]
    assert "none, held-out: —" in drawn.says


def test_the_narrow_form_says_the_same_in_the_same_order():
    rows = [Sides("final", aligned(0.5, 0.4, 0.6), aligned(0.4, 0.2, 0.5)), Sides("none", aligned(0.1), aligned(None))]
    wide = figures.sides_figure(rows, measure="m")
    assert wide.narrow is not None
    narrow = Drawn(wide.narrow)
    assert [text for text in narrow.texts if text in Drawn(wide).texts] == [
        text for text in Drawn(wide).texts if text in narrow.texts
    ]
    assert wide.narrow.width < wide.width / 2
    places = [float(dot.get("cx")) / wide.narrow.width for dot in narrow.all("circle", r="5")]
    assert sorted(places) == [places[2], *places[:2]]


def test_labels_on_steps_get_one_bar_a_step():
    labels = AspectLabels("coherence", Scale(1, 5, 1.0), (1.0, 1.0, 5.0, None, 3.0))
    drawn = Drawn(figures.labels_figure(labels))
    assert drawn.says == "1: 2; 2: 0; 3: 1; 4: 0; 5: 1."
    most, *_ = heights = [float(bar.get("height")) for bar in drawn.all("rect", fill=BLUE)]
    assert [height / most for height in heights] == [1, 0, 0.5, 0, 0.5]


def test_whole_labels_on_a_scale_without_a_step_are_steps():
    assert len(label_bars(np.array([1.0, 4.0]), Scale(1, 5))) == 5
    assert [bar.name for bar in label_bars(np.array([0.0, 3.0]), Scale(1, 2, 1))] == ["0", "1", "2", "3"]


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


def test_among_many_candidates_the_chosen_one_stands_out():
    marks = [Mark(str(k), aligned(0.3, 0.2, 0.4), "chosen" if k == 7 else "kept") for k in range(60)]
    drawn = Drawn(figures.candidates_figure(marks, None, measure="m"))
    assert len(drawn.all("circle", r="2.5")) == 59
    assert not drawn.all("line", stroke=BLUE)  # whiskers of those keep quiet
    races = [Race(str(k), mark.group, way({24: 0.1, 80: 0.3})) for k, mark in enumerate(marks)]
    raced = Drawn(figures.race_figure(races, None, measure="m"))
    assert not raced.path(stroke=BLUE)
    assert len(raced.path(stroke=TEAL)) == 1


def test_the_line_without_criteria_is_named_where_no_other_line_strikes_its_name():
    """Ends −0.2 and 0.8 stand at 274 and 28 + 20 of 320 px (one line of legend): a unit is 226 px, so 0 is at 228.8."""
    marks = [Mark("a", aligned(0.6, 0.5, 0.7), "kept")]
    for value, name, above in ((-0.034, "no criteria −0.034", False), (0.2, "no criteria 0.200", True)):
        drawn = Drawn(figures.candidates_figure(marks, aligned(value, value, value), measure="m"))
        (written,) = (node for node in drawn.all("text") if node.text == name)
        (own,) = (float(node.get("y1")) for node in drawn.all("line", stroke=AMBER))
        assert (float(written.get("y")) < own) is above


def test_the_last_tick_is_not_cut_off():
    drawn = Drawn(figures.best_so_far_figure(standing({4000: 0.4}, calls=9_852), None, measure="m"))
    (last,) = (node for node in drawn.all("text") if node.text == "10,000")
    # the axis ends at 9,852 × 1.02 = 10,049 on 504 of 520 px: the tick stands at 502, and half of its name takes 23
    assert (last.get("text-anchor"), float(last.get("x"))) == ("end", 520)
