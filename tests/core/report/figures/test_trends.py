"""What changes with labels, samples and time: nothing for the unknown, whiskers to their ends, a place for each."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from core.projects.pass_results import AspectAgreement, GrowthPoint
from core.records import Interval
from core.report.figures.style import BLUE
from core.report.figures.trends import (
    growth_figure,
)
from tests.core.report.figures.conftest import Drawn

NEAR = {"abs": 0.004}


def growth(points: Mapping[int, float | None], interval: Interval | None, metric: str) -> AspectAgreement:
    return AspectAgreement("a", None, metric, 0, 0, tuple(map(GrowthPoint, points, points.values())), interval)


def heights(drawn: Drawn, colour: str) -> list[tuple[float, float]]:
    """The ends of the upright lines of a colour."""
    upright = [node for node in drawn.all("line", stroke=colour) if node.get("x1") == node.get("x2")]
    return [(drawn.y(float(node.get("y1"))), drawn.y(float(node.get("y2")))) for node in upright]


def test_alpha_over_items_with_its_interval_at_the_end():
    points = {1: None, 5: 0.4, 7: 0.5, 8: None, 9: 0.6}
    drawn = Drawn(growth_figure(growth(points, Interval(0.3, 0.8, method="m"), "ordinal"), n_expected=20))
    assert drawn.spots(r="3") == [pytest.approx(spot, abs=0.03) for spot in ((5, 0.4), (7, 0.5), (9, 0.6))]
    (run,) = drawn.path()  # undefined is a gap, not 0
    assert [x for x, _ in run] == pytest.approx([5, 7], abs=0.03)
    assert heights(drawn, BLUE) == [pytest.approx((0.3, 0.8), **NEAR)]
    assert drawn.texts[0] == "Krippendorff's alpha, ordinal"
    assert "20" in drawn.texts  # the axis has room for all that will be rated
