"""Figures say what the records say: nothing for undefined, axes that hold still, text that cannot become markup."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.records import TracePoint
from core.records import AspectLabels, Scale
from core.report import figures
from core.report.figures import Mark, Race
from core.report.figures.style import AMBER, TEAL
from tests.core.report.figures.conftest import Drawn, aligned

NEAR = {"abs": 0.004}  # pixels have two decimals


def way(trace: Mapping[int, float | None]) -> tuple[TracePoint, ...]:
    return tuple(map(TracePoint, trace, trace.values()))


def test_an_undefined_candidate_keeps_its_place_but_is_not_drawn_as_zero():
    marks = [Mark("a", aligned(0.4), "kept"), Mark("b", aligned(None), "kept"), Mark("c", aligned(0.0), "kept")]
    drawn = Drawn(figures.candidates_figure(marks, None, measure="m"))
    (a, c) = drawn.spots(r="4")
    assert a == pytest.approx((1, 0.4), **NEAR)
    assert c == pytest.approx((3, 0.0), **NEAR)
    assert drawn.says == "2 of 3 candidates measured. Highest: a, 0.40 (no interval)."


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
