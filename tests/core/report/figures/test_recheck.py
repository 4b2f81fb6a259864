"""The history of rechecks: a mark each in the colour of its decision, beside the exported band; markup as letters."""

from __future__ import annotations

from datetime import UTC, datetime

from core.report.figures.recheck import BAND, Point, history_figure
from core.report.figures.style import AMBER, QUIET, TEAL
from tests.core.report.figures.conftest import aligned

HOSTILE = "<b>bold</b>"


def test_marks_band_and_names() -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    points = [
        Point(when, HOSTILE, aligned(0.5, 0.4, 0.6), "holds"),
        Point(when, "undefined", aligned(None), "cannot be told"),
        Point(when, "worse", aligned(0.1, -0.1, 0.3), "fallen"),
        Point(when, "open", aligned(0.4, 0.1, 0.6), "cannot be told"),
    ]
    figure = history_figure(points, aligned(0.55, 0.45, 0.62))
    marks = {trace.name: (list(trace.x), list(trace.y), trace.marker.color) for trace in figure.data[:3]}
    assert marks == {
        "holds": ([0], [0.5], TEAL),
        "fallen": ([2], [0.1], AMBER),
        "cannot be told": ([3], [0.4], QUIET),
    }
    (worse,) = (trace for trace in figure.data if trace.name == "fallen")
    assert (worse.error_y.array[0], worse.error_y.arrayminus[0]) == (0.3 - 0.1, 0.1 - -0.1)
    band, line = figure.layout.shapes
    assert (band.y0, band.y1, band.fillcolor) == (0.45, 0.62, BAND)
    assert (line.y0, line.y1) == (0.55, 0.55)
    assert figure.layout.xaxis.ticktext[0] == "2026-03-01<br>&lt;b&gt;bold&lt;/b&gt;"
    assert figure.layout.yaxis.title.text == "Spearman rho, sample level"


def test_an_export_without_a_figure_has_no_band() -> None:
    figure = history_figure(
        [Point(datetime(2026, 3, 1, tzinfo=UTC), "a", aligned(0.5, 0.4, 0.6), "holds")], aligned(None)
    )
    assert not figure.layout.shapes
