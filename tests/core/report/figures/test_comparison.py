"""Figures of Compare: a place for every judge, none at 0 that has no value, and names that cannot become markup."""

from __future__ import annotations

import numpy as np
import pytest

from core.report.figures.comparison import (
    JudgeMark,
    PairCells,
    leaderboard_figure,
    significance_figure,
)
from core.report.figures.style import AMBER, BETTER, PEOPLE, WORSE
from tests.core.report.figures.conftest import Drawn, aligned

NEAR = {"abs": 0.004}


def test_an_undefined_judge_is_a_dash_with_its_reason_and_no_point():
    marks = [JudgeMark("a", "imported", aligned(0.6)), JudgeMark("b", "imported", aligned(None, reason="all equal"))]
    drawn = Drawn(leaderboard_figure(marks, None, measure="rho"))
    assert len(drawn.all("circle")) == 1
    assert {"— all equal", "—"} <= set(drawn.texts)


def test_people_are_a_band_and_a_line_on_the_same_axis():
    drawn = Drawn(
        leaderboard_figure([JudgeMark("a", "imported", aligned(0.2))], aligned(0.9, 0.8, 0.95), measure="rho")
    )
    (band,) = drawn.all("rect", fill=PEOPLE)
    left, breadth = float(band.get("x")), float(band.get("width"))
    assert (drawn.x(left), drawn.x(left + breadth)) == pytest.approx((0.8, 0.95), **NEAR)
    (line,) = drawn.all("line", stroke=AMBER)
    assert drawn.x(float(line.get("x1"))) == pytest.approx(0.9, **NEAR)
    assert "one person against the others: 0.90" in drawn.texts


def test_the_matrix_colours_what_is_significant_and_leaves_the_rest_open():
    difference = np.array([[0.0, 0.2, 0.1], [-0.2, 0.0, np.nan], [-0.1, np.nan, 0.0]])
    p = np.array([[np.nan, 0.01, 0.3], [0.01, np.nan, np.nan], [0.3, np.nan, np.nan]])
    words = (("", "a beats b", "open"), ("b loses", "", "—"), ("open", "—", ""))
    drawn = Drawn(significance_figure(PairCells(("a", "b", "c"), difference, p, words), alpha=0.05, measure="rho"))
    assert [len(drawn.all("rect", fill=colour)) for colour in (BETTER, WORSE)] == [1, 1]
    assert len(drawn.all("rect")) == 4  # nothing on the diagonal, nothing where undefined
    assert {"+.20", "p = 0.010", "−.20"} <= set(drawn.texts)
    assert drawn.says == "a beats b; open"


# ── fusions ──────────────────────────────────────────────────────────────────────────────────────────────────
