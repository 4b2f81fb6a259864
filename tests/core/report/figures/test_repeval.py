"""RepEval's figures say what the arrays say: cells in their place, undefined hatched, markup harmless."""

from __future__ import annotations

import numpy as np
import pytest

from core.report.figures.repeval import (
    Heat,
    heat_figure,
    layers_figure,
)
from core.report.figures.style import LINES
from tests.core.report.figures.conftest import Drawn

NAN = np.nan
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


def test_lines_over_layers_have_gaps_where_undefined():
    drawn = Drawn(layers_figure(HEAT, measure=MEASURE))
    (first,), (last,) = (drawn.path(stroke=colour) for colour in LINES[:2])
    assert first == [pytest.approx((1, 0.2), abs=0.01), pytest.approx((5, -0.1), abs=0.01)]
    assert [x for x, _ in last] == pytest.approx([0, 1, 5], abs=0.01)
    assert drawn.spots(r="8") == [pytest.approx((1, 0.3), abs=0.01)]  # a ring around the best
    assert drawn.says == "Best: layer 1, token -1, 0.30."
