"""Quarters and family tree: points where their numbers say, nothing undefined at 0, and no markup from names."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Scale
from core.report.figures import Mark
from core.report.figures.misaligned import (
    AMBER,
    TEAL,
    Middle,
    Spot,
    Version,
    lineage_figure,
    misaligned_figure,
)
from tests.core.report.figures.conftest import aligned

SPOTS = (
    Spot("a", 1.0, 4.0, "too lenient", triaged=True),
    Spot("b", 5.0, 2.0, "too strict"),
    Spot("c", 3.0, 3.0, "aligned"),
)


def test_each_side_has_its_colour_and_shape_and_each_point_its_item():
    labels, scores = np.array([s.label for s in SPOTS]), np.array([s.score for s in SPOTS])
    figure = misaligned_figure(SPOTS, Middle.of(labels, scores, 0.5), Scale(1, 5), opened="c")
    points = {t.name: t for t in figure.data if t.mode == "markers" and t.showlegend is False and t.x}
    assert [(points[s.side].x[0], points[s.side].y[0]) for s in SPOTS] == [(1, 4), (5, 2), (3, 3)]
    assert [points[s.side].customdata[0][0] for s in SPOTS] == [0, 1, 2]
    assert points["too lenient"].marker.color == AMBER
    shapes = [points[s.side].marker.symbol for s in SPOTS]
    assert shapes == ["triangle-up-open", "triangle-down", "circle"], "hollow where triaged"
    assert (points["opened"].x[0], points["opened"].y[0]) == (3, 3)


def test_the_band_holds_the_items_with_a_small_gap():
    """Labels 1, 3, 5: mean 3, spread sqrt(8/3).  Scores 2, 3, 4: mean 3, spread sqrt(2/3), half of it .408."""
    labels, scores = np.array([1.0, 3.0, 5.0]), np.array([2.0, 3.0, 4.0])
    figure = misaligned_figure([], Middle.of(labels, scores, 0.5), Scale(1, 5))
    band = next(trace for trace in figure.data if trace.fill == "toself")
    half = 0.5 * (2 / 3) ** 0.5
    assert list(band.x) == [1, 5, 5, 1]
    assert list(band.y) == pytest.approx([2 + half, 4 + half, 4 - half, 2 - half])


VERSIONS = (
    Version("p", 0, (), Mark("draft", aligned(0.4, 0.3, 0.5), "draft")),
    Version("q", 1, ("p", "gone"), Mark("edit", aligned(0.6, 0.5, 0.7), "approved")),
    Version("r", 1, ("p",), Mark("edit", None, "draft")),
    Version("s", 1, ("p",), Mark("edit", aligned(None), "draft")),
)


def test_the_tree_joins_parents_and_children():
    figure = lineage_figure(VERSIONS, measure="rho", opened="q")
    lines = next(trace for trace in figure.data if trace.mode == "lines")
    assert len(lines.x) == 3 * 3, "three known pairs, each with a gap behind it"
    assert [lines.y[0], lines.y[1]] == [0.4, 0.6]
    marks = {
        int(k[0]): (trace, n)
        for trace in figure.data
        if trace.mode == "markers"
        for n, k in enumerate(trace.customdata)
    }
    assert set(marks) == {0, 1, 2, 3}
    trace, n = marks[1]
    assert (trace.marker.color, trace.marker.line.width[n], trace.y[n]) == (TEAL, 3, 0.6)
    assert (trace.error_y.array[n], trace.error_y.arrayminus[n]) == pytest.approx((0.1, 0.1))
    assert round(trace.x[n]) == 1


def test_what_is_not_measured_stands_below_everything_and_is_hollow():
    figure = lineage_figure(VERSIONS, measure="rho")
    hollow = next(trace for trace in figure.data if trace.mode == "markers" and trace.marker.symbol == "circle-open")
    assert [int(k[0]) for k in hollow.customdata] == [2, 3]
    assert max(hollow.y) < 0
    assert hollow.error_y.array is None
    assert any(note.text == "not measured" for note in figure.layout.annotations)
    names = [trace.name for trace in figure.data if trace.showlegend is not False and trace.mode == "markers"]
    assert sorted(names) == ["approved", "draft"]
