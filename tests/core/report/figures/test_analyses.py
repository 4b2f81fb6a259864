"""Figures of ablations and analyses: what is drawn, and what is left out."""

from __future__ import annotations

import pytest

from core.calibration.analyse import Analyses, Line, Place, by_pattern
from core.report.figures.analyses import size_figure
from core.report.figures.style import PALE
from tests.core.report.figures.conftest import Drawn

NEAR = {"abs": 0.004}


NO_LINE = Line(0, None, None)


def found(*places: Place, line: Line = NO_LINE) -> Analyses:
    return Analyses("spearman", "sample", 80, len(places), 0, places, line, by_pattern(places))


def place(value: float, *, kind: str = "draft", size: int = 4, words: int = 10) -> Place:
    return Place("c", kind, size, words, "holistic", value)  # type: ignore[arg-type]


def test_few_drafts_of_a_size_get_a_median_and_many_a_box():
    """Sizes 4 (five drafts: a box with quartiles .2 and .4 around .3) and 8 (two: a bar at their middle, .5)."""
    drafts = [place(0.1 * k, size=4) for k in range(1, 6)] + [place(value, size=8) for value in (0.4, 0.6)]
    drawn = Drawn(size_figure(found(*drafts, place(0.9, kind="refinement"))))
    (quartiles,) = drawn.all("rect", fill=PALE)
    top, height = float(quartiles.get("y")), float(quartiles.get("height"))
    assert (drawn.y(top), drawn.y(top + height)) == pytest.approx((0.4, 0.2), **NEAR)
    middles = [drawn.y(float(bar.get("y1"))) for bar in drawn.all("line", stroke_width="3")]
    assert middles == pytest.approx([0.3, 0.5], **NEAR)
    values = [drawn.y(float(dot.get("cy"))) for dot in drawn.all("circle")]
    assert values == pytest.approx([draft.value for draft in drafts], **NEAR)  # every draft is there to be seen
    assert {"4", "8", "n = 5", "n = 2"} <= set(drawn.texts)
