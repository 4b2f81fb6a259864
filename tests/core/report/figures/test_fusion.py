"""Figures of a fusion: order, colours by what is beyond chance, undefined left out, markup as letters."""

from __future__ import annotations

import numpy as np

from core.records import Interval
from core.report.figures.fusion import Bar, between_figure, lost_figure, weights_figure
from core.report.figures.style import AMBER, QUIET, TEAL

HOSTILE = "<b>bold</b>"


def test_the_dearest_loss_stands_on_top_in_the_colour_of_its_test() -> None:
    bars = [
        Bar("open", 0.01, Interval(-0.02, 0.04)),
        Bar(HOSTILE, 0.2, Interval(0.1, 0.3), shown=True),
        Bar("untested", 0.3, Interval(0.1, 0.5)),
        Bar("harms", -0.1, Interval(-0.2, -0.05), shown=True),
        Bar("unknown", None, None),
    ]
    figure = lost_figure(bars, measure="Spearman rho, sample level")
    assert [trace.x[0] for trace in figure.data] == [-0.1, 0.01, 0.2, 0.3]
    assert [trace.marker.color for trace in figure.data] == [AMBER, QUIET, TEAL, QUIET]
    assert figure.layout.yaxis.ticktext[-2] == "&lt;b&gt;bold&lt;/b&gt;"
    assert figure.layout.yaxis.ticktext[0] == "unknown"
    assert "Spearman rho, sample level" in figure.layout.xaxis.title.text


def test_a_weights_interval_reaches_from_end_to_end() -> None:
    (trace,) = weights_figure([Bar("a", 0.5, Interval(0.2, 0.6))], unit="points").data
    assert (trace.error_x.array[0], trace.error_x.arrayminus[0]) == (0.6 - 0.5, 0.5 - 0.2)


def test_an_undefined_correlation_is_a_dash() -> None:
    between = np.array([[1.0, np.nan], [np.nan, np.nan]])
    heat = between_figure(["a", HOSTILE], between).data[0]
    assert [list(row) for row in heat.text] == [["1.00", "—"], ["—", "—"]]
    assert heat.z[0][1] is None
    assert "<b>" not in heat.customdata[0][1]
