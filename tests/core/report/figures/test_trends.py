"""What changes with labels, samples and time: nothing for the unknown, whiskers to their ends, a place for each."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from core.projects.pass_results import AspectAgreement, GrowthPoint
from core.records import Interval
from core.report.figures import Mark
from core.report.figures.style import AMBER, BLUE, QUIET, TEAL
from core.report.figures.trends import (
    Point,
    growth_figure,
    history_figure,
    styles_figure,
)
from tests.core.report.figures.conftest import NOW, Drawn, aligned

NEAR = {"abs": 0.004}


def growth(points: Mapping[int, float | None], interval: Interval | None, metric: str) -> AspectAgreement:
    return AspectAgreement("a", None, metric, 0, 0, tuple(map(GrowthPoint, points, points.values())), interval)


def heights(drawn: Drawn, colour: str) -> list[tuple[float, float]]:
    """The ends of the upright lines of a colour."""
    upright = [node for node in drawn.all("line", stroke=colour) if node.get("x1") == node.get("x2")]
    return [(drawn.y(float(node.get("y1"))), drawn.y(float(node.get("y2")))) for node in upright]


def test_styles_stand_in_the_order_given_from_the_top_and_the_undefined_keeps_its_place():
    marks = [Mark("first", aligned(0.4, 0.3, 0.6)), Mark("second", aligned(None)), Mark("third", aligned(-0.2))]
    drawn = Drawn(styles_figure(marks, measure="Spearman rho, sample level"))
    assert [text for text in drawn.texts if text in ("first", "second", "third")] == ["first", "second", "third"]
    (top, first), (bottom, third) = drawn.rows().items()
    assert (first, third) == pytest.approx((0.4, -0.2), **NEAR)
    assert bottom - top == 2 * 26  # a row is left free between them
    assert "Spearman rho, sample level" in drawn.texts
    assert "second: —" in drawn.says


def test_alpha_over_items_with_its_interval_at_the_end():
    points = {1: None, 5: 0.4, 7: 0.5, 8: None, 9: 0.6}
    drawn = Drawn(growth_figure(growth(points, Interval(0.3, 0.8, method="m"), "ordinal"), n_expected=20))
    assert drawn.spots(r="3") == [pytest.approx(spot, abs=0.03) for spot in ((5, 0.4), (7, 0.5), (9, 0.6))]
    (run,) = drawn.path()  # undefined is a gap, not 0
    assert [x for x, _ in run] == pytest.approx([5, 7], abs=0.03)
    assert heights(drawn, BLUE) == [pytest.approx((0.3, 0.8), **NEAR)]
    assert drawn.texts[0] == "Krippendorff's alpha, ordinal"
    assert "20" in drawn.texts  # the axis has room for all that will be rated


def test_marks_band_and_names():
    points = [
        Point(NOW, "well", aligned(0.5, 0.4, 0.6), "holds"),
        Point(NOW, "undefined", aligned(None), "cannot be told"),
        Point(NOW, "worse", aligned(0.1, -0.1, 0.3), "fallen"),
        Point(NOW, "open", aligned(0.4, 0.1, 0.6), "cannot be told"),
    ]
    drawn = Drawn(history_figure(points, aligned(0.55, 0.45, 0.62)))
    marks = drawn.all("circle", r="6")
    assert [mark.get("fill") for mark in marks] == [TEAL, AMBER, QUIET]
    assert [drawn.y(float(mark.get("cy"))) for mark in marks] == pytest.approx([0.5, 0.1, 0.4], **NEAR)
    assert heights(drawn, AMBER) == [pytest.approx((-0.1, 0.3), **NEAR)]
    (band,) = drawn.all("polygon", fill=BLUE)
    ends = {round(drawn.y(float(corner.split(",")[1])), 2) for corner in band.get("points").split()}
    assert ends == {0.45, 0.62}
    exported = drawn.all("line", stroke=BLUE, stroke_dasharray="6 4")[-1]
    assert drawn.y(float(exported.get("y1"))) == pytest.approx(0.55, **NEAR)
    assert {"2026-03-01", "well", "undefined", "Spearman rho, sample level"} <= set(drawn.texts)
    assert not Drawn(history_figure(points, aligned(None))).all("polygon", fill=BLUE)  # an export without a figure
