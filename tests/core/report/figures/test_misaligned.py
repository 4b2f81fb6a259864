"""Quarters and family tree: points where their numbers say, nothing undefined at 0, and no markup from names."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Scale
from core.report.figures import Mark
from core.report.figures.misaligned import (
    Middle,
    Version,
    lineage_figure,
    misaligned_figure,
)
from tests.core.report.figures.conftest import aligned


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


def test_what_is_not_measured_stands_below_everything_and_is_hollow():
    figure = lineage_figure(VERSIONS, measure="rho")
    hollow = next(trace for trace in figure.data if trace.mode == "markers" and trace.marker.symbol == "circle-open")
    assert [int(k[0]) for k in hollow.customdata] == [2, 3]
    assert max(hollow.y) < 0
    assert hollow.error_y.array is None
    assert any(note.text == "not measured" for note in figure.layout.annotations)
    names = [trace.name for trace in figure.data if trace.showlegend is not False and trace.mode == "markers"]
    assert sorted(names) == ["approved", "draft"]
