"""Figures say what the records say: the undefined keeps its place and is never 0; only what is shown is coloured."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.records import AspectLabels, Scale
from core.report import figures
from core.report.figures.curves import label_bars
from core.report.figures.heat_map import Heat, heat_figure
from core.report.figures.whiskers import leaderboard_figure
from tests.core.report.figures.conftest import Drawn, aligned

NAN = np.nan


def test_an_undefined_candidate_keeps_its_place_but_is_not_drawn_as_zero():
    marks = [("a", "kept", aligned(0.4)), ("b", "kept", aligned(None)), ("c", "kept", aligned(0.0))]
    drawn = Drawn(figures.candidates_figure(marks, None, measure="m"))
    first, last = (float(dot.get("cy")) for dot in drawn.all("circle", r="4"))
    assert first < last  # 0.4 stands above 0
    assert drawn.says == "2 of 3 candidates measured. Highest: a, 0.40 (no interval)."


def test_candidates_stand_at_the_length_of_their_criteria():
    marks = [("a", "kept", aligned(0.4)), ("b", "kept", aligned(None)), ("c", "kept", aligned(0.0))]
    drawn = Drawn(figures.candidates_figure(marks, None, measure="m", along="words", places=[30, 10, 15]))
    first, last = (float(dot.get("cx")) for dot in drawn.all("circle", r="4"))
    assert first > last
    assert "words" in drawn.texts


def test_an_undefined_judge_is_a_dash_with_its_reason_and_no_point():
    marks = {"b": aligned(None, reason="all equal"), "a": aligned(0.6)}
    drawn = Drawn(leaderboard_figure(marks, None, measure="rho"))
    assert len(drawn.all("circle")) == 1
    assert {"— all equal", "—"} <= set(drawn.texts)


def test_the_heat_map_says_each_cell_with_layers_across_and_tokens_down():
    values = np.array([[NAN, 0.1], [0.2, 0.3], [-0.1, 0.25]])
    drawn = Drawn(heat_figure(Heat((0, 1, 5), ("first", "-1"), values, (1, "-1")), measure="Spearman rho"))
    cells = [text for text in drawn.texts if "." in text or text == "—"]
    assert cells == ["—", "0.20", "−0.10", "0.10", "0.30", "0.25"]
    assert "layer 0, token first: undefined" in drawn.says
    assert "layer 5, token -1: validation 0.250" in drawn.says


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50),
    st.sampled_from([Scale(0, 1), Scale(0, 1, 0.25), Scale(0, 1, 0.001)]),
)
def test_every_label_is_counted_once(values, scale):
    said = figures.labels_figure(AspectLabels("a", scale, tuple(values))).says
    assert sum(int(bar.rpartition(": ")[2]) for bar in said.rstrip(".").split("; ")) == len(values)


def test_labels_are_counted_by_the_nearest_step_and_means_of_yes_and_no_in_tenths():
    # three labels of 1, one of 3: a scale of steps keeps its empty step
    assert label_bars(np.array([1.0, 1, 1, 3]), Scale(1, 3, 1)) == {"1": 3, "2": 0, "3": 1}
    # means of three raters on 1–5: 1.33 is nearest to 1, 1.67 to 2, and 4.5 is as near to 4 as to 5: the upper one
    for scale in (Scale(1, 5, 1), Scale(1, 5)):
        means = label_bars(np.array([1, 4 / 3, 5 / 3, 2, 4.5, 5]), scale)
        assert means == {"1": 2, "2": 2, "3": 0, "4": 0, "5": 2}
    # means of raters lie between the steps: [0, 0.1) … [0.9, 1], so 0.5 falls into the sixth tenth and 1 into the last
    means = label_bars(np.array([0.0, 0.5, 1.0, 1.0]), Scale(0, 1, 1))
    assert list(means.values()) == [1, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert list(label_bars(np.array([0.0, 1.0, 1.0]), Scale(0, 1, 1)).values()) == [1, 2]
