"""What holds for every figure: names stay letters, plotly comes late, axes and words of the undefined."""

from __future__ import annotations

import pkgutil
import sys
from subprocess import run
from typing import Any

import numpy as np
import pytest

from core.calibration.ablate import AblationRow
from core.calibration.analyse import Line, PatternGroup, Place, Pool
from core.calibration.records import TracePoint
from core.records import Interval, Scale
from core.report import figures
from core.report.figures import Mark, Race, Sides
from core.report.figures.analyses import (
    ablation_figure,
    length_figure,
    pattern_figure,
    size_figure,
)
from core.report.figures.comparison import (
    Bar,
    JudgeMark,
    PairCells,
    Points,
    between_figure,
    leaderboard_figure,
    lost_figure,
    scatter_figure,
    significance_figure,
)
from core.report.figures.misaligned import Middle, Spot, Version, lineage_figure, misaligned_figure
from core.report.figures.repeval import CellPoints, Heat, cell_figure, layers_figure
from core.report.figures.style import snapped
from core.report.figures.trends import Point, forecast_figure, history_figure, styles_figure
from core.stats.pilot import Forecast, ForecastPoint
from tests.core.report.figures.conftest import NOW, aligned

HOSTILE = "<img src=x onerror=alert(1)>"
GOOD, ENDS, ONE = aligned(0.5, 0.4, 0.6), Interval(0.4, 0.6), np.array([1.0])
POOL = Pool("complete", "spearman", "sample", 8, 1, (Place("c", "draft", 0, 4, 9, HOSTILE, 0.1),))
FORECAST = Forecast("pearson", "dataset", 9, 9, (ForecastPoint(1, 0.3, None, 9),))
HEAT = Heat((0,), (HOSTILE,), np.array([[0.1]]), (0, HOSTILE))
SPOTS = [Spot(HOSTILE, 5.0, 2.0, "too strict")]
FIGURES = {
    "ablation": lambda: ablation_figure([AblationRow(HOSTILE, "", (), GOOD, GOOD, -0.1, ENDS)], measure="m"),
    "size": lambda: size_figure(POOL, {"c": HOSTILE}),
    "length": lambda: length_figure(POOL, Line(0, None, None), {"c": HOSTILE}),
    "pattern": lambda: pattern_figure(POOL, [PatternGroup(HOSTILE, 1, 0.1, None)]),
    "leaderboard": lambda: leaderboard_figure(
        [JudgeMark(HOSTILE, "imported", aligned(None, reason=HOSTILE), HOSTILE, GOOD)], GOOD, measure="m"
    ),
    "significance": lambda: significance_figure(
        PairCells((HOSTILE, "b"), np.zeros((2, 2)), np.ones((2, 2)), ((HOSTILE,) * 2,) * 2), alpha=0.05, measure="m"
    ),
    "scatter": lambda: scatter_figure(Points((HOSTILE,), (0,), ONE, ONE), Scale(1, 5), judge=HOSTILE),
    "lost": lambda: lost_figure([Bar(HOSTILE, 0.2, ENDS, HOSTILE)], measure="m"),
    "between": lambda: between_figure([HOSTILE, "b"], np.ones((2, 2))),
    "misaligned": lambda: misaligned_figure(SPOTS, Middle.of(ONE, ONE, 0.5), Scale(1, 5)),
    "lineage": lambda: lineage_figure([Version("q", 0, (), Mark(HOSTILE, GOOD, "approved", HOSTILE))], measure="m"),
    "layers": lambda: layers_figure(HEAT, measure="m"),
    "cell": lambda: cell_figure(CellPoints(ONE, ONE, (HOSTILE,)), aspect=HOSTILE),
    "candidates": lambda: figures.candidates_figure([Mark(HOSTILE, GOOD, "kept", HOSTILE)], None, measure="m"),
    "race": lambda: figures.race_figure([Race(HOSTILE, "chosen", (TracePoint(24, 0.3),))], None, measure="m"),
    "sides": lambda: figures.sides_figure([Sides(HOSTILE, GOOD, GOOD)], measure="m"),
    "forecast": lambda: forecast_figure([(HOSTILE, FORECAST)], measure="m"),
    "styles": lambda: styles_figure([Mark(HOSTILE, GOOD, detail=HOSTILE)], measure="m"),
    "history": lambda: history_figure([Point(NOW, HOSTILE, GOOD, "holds")], GOOD),
}


@pytest.mark.parametrize("name", FIGURES)
def test_names_cannot_become_markup(name):
    drawn: Any = FIGURES[name]()
    words = drawn.to_json()
    assert "<img" not in words and "\\u003cimg" not in words
    assert "lt;img" in words


@pytest.mark.parametrize(
    ("values", "ends"),
    [([], (0, 1)), ([0.41], (0, 0.6)), ([-0.05, 0.9], (-0.2, 1.0)), ([-0.99, 1.0], (-1.0, 1.02)), ([0.01], (0, 0.2))],
)
def test_an_axis_ends_at_the_next_fifth_beyond_its_values(values, ends):
    assert snapped(values) == pytest.approx(ends)


def test_describe_never_says_zero_for_undefined():
    assert figures.describe(None) == figures.describe(aligned(None)) == "—"
    assert figures.describe(aligned(0.0)) == "0.000"
    assert figures.describe(aligned(0.4123, 0.3, 0.52)) == "0.412 [0.30, 0.52]"


def test_importing_figures_does_not_load_plotly():
    modules = ", ".join(f"core.report.figures.{module.name}" for module in pkgutil.iter_modules(figures.__path__))
    code = f"import {modules}, sys; sys.exit('plotly' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0
