"""Figures say what the records say: nothing for undefined, axes that hold still, text that cannot become markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records import AspectLabels, Scale
from core.report import figures
from core.report.figures import Mark
from tests.core.report.figures.conftest import Drawn, aligned

NEAR = {"abs": 0.004}  # pixels have two decimals


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
