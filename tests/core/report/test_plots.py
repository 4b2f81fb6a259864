"""Plots put figures where they belong, and say them in words too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lxml import etree

from core.report import plots
from core.report.plots import WIDTH
from core.report.words import estimate

SVG = "{http://www.w3.org/2000/svg}"


def test_dots_stand_in_the_order_of_the_figures(report):
    drawing = etree.fromstring(plots.judges_plot(report).svg())
    dots = [float(one.get("cx")) for one in drawing.iter(f"{SVG}circle") if one.get("r") == "5"]
    small = [float(one.get("cx")) for one in drawing.iter(f"{SVG}circle") if one.get("r") == "3"]
    values = [row.alignment.value for row in report.judges.rows]
    assert len(dots) == len(values)
    assert sorted(dots, reverse=True) == dots  # best first
    # the same scale for all: distances of dots are in proportion to distances of values
    first, second, third = values
    assert (dots[0] - dots[1]) / (dots[0] - dots[2]) == pytest.approx((first - second) / (first - third), abs=1e-3)
    assert all(0 < x < WIDTH for x in dots)
    # under each judge: its figure against the mean of the other raters, on the same axis
    like = [row.people.judge.value for row in report.judges.rows]
    assert len(small) == len(like)
    scale = (dots[0] - dots[2]) / (first - third)
    assert small[0] - dots[0] == pytest.approx((like[0] - first) * scale, abs=0.02)
    described = drawing.findtext(f"{SVG}desc")
    for row in report.judges.rows:
        assert estimate(row.alignment) in described
        assert estimate(row.people.judge)


def test_sources_are_counted_in_fifths(report):
    spread = replace(report.sources, values=(-0.5, 0.0, 0.19, 0.2, 1.0))
    drawing = etree.fromstring(plots.sources_plot(spread).svg())
    texts = [one.text for one in drawing.iter(f"{SVG}text")]
    counted = dict(zip(texts[1::2], texts[0::2], strict=True))
    # from −1 in fifths: −0.5 in [−0.6, −0.4), 0 and 0.19 in [0, 0.2), 0.2 in [0.2, 0.4), 1 in the last
    assert {name: n for name, n in counted.items() if n != "0"} == {
        "-0.6 to -0.4": "1",
        "0 to 0.2": "2",
        "0.2 to 0.4": "1",
        "0.8 to 1": "1",
    }


def test_of_many_judges_the_best_are_drawn_and_always_our_own(report):
    ours = report.judges.rows[report.judges.ours]
    other = next(row for row in report.judges.rows if row is not ours)
    rows = (*(replace(other, name=f"judge {k}") for k in range(40)), ours)
    many = replace(report.judges, board=replace(report.judges.board, rows=rows), ours=40)
    drawing = plots.judges_plot(replace(report, judges=many))
    texts = [one.text for one in etree.fromstring(drawing.svg()).iter(f"{SVG}text")]
    names = [text for text in texts if text.startswith(("judge ", "offline"))]
    assert names == [*(f"judge {k}" for k in range(plots.MOST_JUDGES - 1)), ours.name]
