"""RepEval's figures say what the arrays say: cells in their place, undefined hatched, markup harmless."""

from __future__ import annotations

import numpy as np
import pytest

from core.report.figures.repeval import (
    CellPoints,
    Heat,
    cell_figure,
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


def test_the_heat_map_has_layers_across_and_tokens_down():
    (heat,) = heat_figure(HEAT, measure=MEASURE).data
    assert [list(row) for row in heat.z] == [[None, 0.2, -0.1], [0.1, 0.3, 0.25]]
    assert (heat.zmin, heat.zmax) == (-0.3, 0.3)  # white is no alignment at all
    assert heat.text[0][0] == ""  # undefined is not written as a number


def test_every_cell_says_what_it_holds_undefined_ones_too():
    (heat,) = heat_figure(HEAT, measure=MEASURE).data
    said = [list(row) for row in heat.customdata]
    assert [len(row) for row in said] == [3, 3]
    assert said[0][0] == "layer 0, token first<br>undefined: nothing varies here"
    assert said[1][2] == "layer 5, token -1<br>validation 0.250"
    assert heat.hoverongaps


def test_undefined_cells_are_hatched_and_the_best_is_framed():
    shapes = heat_figure(HEAT, measure=MEASURE).layout.shapes
    hatches = [shape for shape in shapes if shape.type == "path"]
    assert len(hatches) == 3  # one undefined cell
    frames = {
        (round(shape.x0 + 0.47), round(shape.y0 + 0.45)): shape.line
        for shape in shapes
        if shape.fillcolor is None and shape.type == "rect"
    }
    assert set(frames) == {(1, 1), (2, 1)}  # best, averaged
    assert frames[1, 1].width == 3
    assert frames[2, 1].dash == "dot"


def test_many_layers_are_drawn_without_numbers():
    wide = Heat(tuple(range(33)), ("-1",), np.linspace(0, 0.5, 33)[:, None], (32, "-1"))
    heat = heat_figure(wide, measure=MEASURE).data[0]
    assert heat.text is None
    assert len(heat.z[0]) == 33


def test_lines_over_layers_have_gaps_where_undefined():
    drawn = Drawn(layers_figure(HEAT, measure=MEASURE))
    (first,), (last,) = (drawn.path(stroke=colour) for colour in LINES[:2])
    assert first == [pytest.approx((1, 0.2), abs=0.01), pytest.approx((5, -0.1), abs=0.01)]
    assert [x for x, _ in last] == pytest.approx([0, 1, 5], abs=0.01)
    assert drawn.spots(r="8") == [pytest.approx((1, 0.3), abs=0.01)]  # a ring around the best
    assert drawn.says == "Best: layer 1, token -1, 0.30."


def test_no_two_tokens_have_the_same_line():
    tokens = tuple(f"t{k}" for k in range(len(LINES) + 3))  # more than there are colours
    values = np.tile(np.linspace(0.1, 0.5, len(tokens)), (2, 1))
    drawn = Drawn(layers_figure(Heat((0, 1), tokens, values, (0, "t0"), (), None), measure=MEASURE))
    looks = [(node.get("stroke"), node.get("stroke-dasharray")) for node in drawn.all("polyline")]
    assert len(looks) == len(set(looks)) == len(tokens)


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


def test_points_of_a_cell_stay_near_their_label():
    labels = np.array([1.0, 2.0, 2.0, 4.0])
    points = CellPoints(np.array([0.1, 0.2, 0.3, 0.4]), labels, ("a", "b", "c", "d"))
    dots = cell_figure(points, aspect="wit").data[0]
    assert np.abs(np.array(dots.x) - labels).max() < 0.5  # never nearer to another label
    assert list(dots.y) == [0.1, 0.2, 0.3, 0.4]
