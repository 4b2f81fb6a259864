"""Figures of ablations and analyses: what is drawn, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.calibration.ablate import AblationRow, VariantKey
from core.calibration.analyse import Analyses, Line, PatternGroup, Place, by_pattern
from core.records import Interval
from core.report.figures.analyses import ablation_figure, length_figure, pattern_figure, size_figure
from core.report.figures.style import AMBER, BLUE, INK, PALE, QUIET, TEAL
from tests.core.report.figures.conftest import Drawn, aligned

MEASURE = "Spearman rho, sample level"
NEAR = {"abs": 0.004}


def variant(key: VariantKey, held_out: float | None, **difference: object) -> AblationRow:
    return AblationRow(key, "", ("c",), aligned(0.5, 0.4, 0.6), aligned(held_out), **difference)


NO_LINE = Line(0, None, None)


def found(*places: Place, line: Line = NO_LINE) -> Analyses:
    return Analyses("spearman", "sample", 80, len(places), 0, places, line, by_pattern(places))


def place(value: float, *, kind: str = "draft", size: int = 4, words: int = 10) -> Place:
    return Place("c", kind, size, words, "holistic", value)  # type: ignore[arg-type]


def test_variants_stand_below_the_final_judge_with_both_sides():
    drawn = Drawn(
        ablation_figure(
            [
                variant("final", 0.4),
                variant("without criteria", 0.3, difference=-0.1, interval=Interval(-0.2, -0.05), p_holm=0.01, n=80),
                variant("single best", 0.42, difference=0.02, interval=Interval(-0.01, 0.05), p_holm=0.6, n=80),
            ],
            measure=MEASURE,
        )
    )
    names = ["final judge", "without criteria", "single best"]
    assert [text for text in drawn.texts if text in names] == names
    dots = drawn.all("circle", fill=BLUE)
    assert [float(dot.get("cy")) for dot in dots] == [30 + 44 * (k + 0.5) - 7 for k in range(3)]
    across = [float(dot.get("cx")) for dot in dots]  # .4, .3, .42: in proportion
    assert (across[0] - across[1]) / (across[2] - across[1]) == pytest.approx(0.1 / 0.12, abs=0.01)
    assert [len(drawn.all("polygon", fill=colour)) for colour in (AMBER, QUIET)] == [1, 1]
    assert {"−0.100", "+0.020"} <= set(drawn.texts)
    assert "without criteria: held-out 0.30 (no interval), calibration 0.50 [0.40, 0.60]" in drawn.says
    assert "minus the final judge −0.10 [−0.20, −0.05]" in drawn.says
    assert any(MEASURE in text for text in drawn.texts)


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


def test_the_band_lies_around_the_line():
    line = Line(2, 0.25, None, (10, 50, 90), (0.2, 0.3, 0.4), (0.1, 0.25, 0.3), (0.3, 0.35, 0.5))
    drawn = Drawn(length_figure(found(place(0.2, words=10), place(0.4, words=90, kind="refinement"), line=line)))
    (shape,) = drawn.all("polygon", fill=BLUE)
    corners = [drawn.y(float(corner.split(",")[1])) for corner in shape.get("points").split()]
    assert corners == pytest.approx([0.3, 0.35, 0.5, 0.3, 0.25, 0.1], **NEAR)
    (middle,) = drawn.path(stroke=INK)
    assert [y for _, y in middle] == pytest.approx([0.2, 0.3, 0.4], **NEAR)
    (draft,), (refined,) = drawn.spots(r="4", fill=BLUE), drawn.spots(r="4", fill=TEAL)
    assert (draft[0], refined[0]) == pytest.approx((10, 90), abs=0.2)


def test_an_empty_pattern_keeps_its_place_and_says_none():
    groups = (PatternGroup("holistic", 2, 0.2, Interval(0.1, 0.3)), PatternGroup("specific", 0, None, None))
    drawn = Drawn(pattern_figure(replace(found(place(0.1), place(0.3)), by_pattern=groups)))
    assert {"holistic", "n = 2", "specific", "n = 0", "0.200", "none"} <= set(drawn.texts)
    assert len(drawn.all("polygon", fill=TEAL)) == 1
    (whisker,) = drawn.all("line", stroke=TEAL)
    assert [drawn.y(float(whisker.get(end))) for end in ("y1", "y2")] == pytest.approx([0.1, 0.3], **NEAR)
    assert drawn.says == "holistic: mean 0.20, n = 2; specific: mean —, n = 0."
    assert not Drawn(size_figure(found())).all("circle")
