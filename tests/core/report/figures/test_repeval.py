"""RepEval's figures say what the arrays say: cells in their place, undefined hatched, markup harmless."""

from __future__ import annotations

import numpy as np
import pytest

from core.report.figures.repeval import (
    Heat,
    heat_figure,
    layers_figure,
    random_figure,
)
from core.report.figures.style import AMBER, LINES, QUIET, TEAL
from tests.core.report.figures.conftest import Drawn

NAN = np.nan
NEAR = {"abs": 0.004}
MEASURE = "Spearman rho, dataset level"
HEAT = Heat(
    layers=(0, 1, 5),
    tokens=("first", "-1"),
    values=np.array([[NAN, 0.1], [0.2, 0.3], [-0.1, 0.25]]),
    chosen=(1, "-1"),
    used=((1, "-1"), (5, "-1")),
    marked=(0, "-1"),
)


def test_the_heat_map_says_each_cell_with_layers_across_and_tokens_down():
    drawn = Drawn(heat_figure(HEAT, measure=MEASURE))
    assert [text for text in drawn.texts if "." in text or text == "—"] == [
        "—",
        "0.20",
        "−0.10",
        "0.10",
        "0.30",
        "0.25",
    ]
    assert "layer 0, token first: undefined" in drawn.says
    assert "layer 5, token -1: validation 0.250" in drawn.says


def test_the_best_cell_and_those_averaged_are_framed():
    frames = Drawn(heat_figure(HEAT, measure=MEASURE)).all("rect", fill="none")
    assert [(frame.get("stroke-width"), frame.get("stroke-dasharray")) for frame in frames] == [
        ("3", None),
        ("1", "4 3"),
    ]
    assert frames[0].get("y") == frames[1].get("y")
    assert float(frames[0].get("x")) < float(frames[1].get("x"))


def test_lines_over_layers_have_gaps_where_undefined():
    drawn = Drawn(layers_figure(HEAT, measure=MEASURE))
    (first,), (last,) = (drawn.path(stroke=colour) for colour in LINES[:2])
    assert first == [pytest.approx((1, 0.2), abs=0.01), pytest.approx((5, -0.1), abs=0.01)]
    assert [x for x, _ in last] == pytest.approx([0, 1, 5], abs=0.01)
    assert drawn.spots(r="8") == [pytest.approx((1, 0.3), abs=0.01)]  # a ring around the best
    assert drawn.says == "Best: layer 1, token -1, 0.30."


def test_random_boxes_are_quantiles_and_the_projection_a_line():
    values = np.append(np.linspace(-1, 1, 201), NAN)
    drawn = Drawn(random_figure(values, np.abs(values), 0.7, measure=MEASURE))
    middles = [drawn.all("line", stroke=colour, stroke_width="3")[0] for colour in (QUIET, TEAL)]
    assert [drawn.x(float(line.get("x1"))) for line in middles] == pytest.approx([0.0, 0.5], abs=0.006)
    (whisker,) = drawn.all("line", stroke=QUIET, stroke_width="2")
    assert drawn.x(float(whisker.get("x1"))) == pytest.approx(-0.95, **NEAR)  # 2.5 % of -1 … 1
    (projection,) = drawn.all("line", stroke=AMBER)
    assert drawn.x(float(projection.get("x1"))) == pytest.approx(0.7, **NEAR)
    assert "the projection, 0.700" in drawn.texts
    assert not Drawn(random_figure(values, values, None, measure=MEASURE)).all("line", stroke=AMBER)
