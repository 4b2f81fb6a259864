"""Plots put figures where they belong, and say them in words too."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lxml import etree

from core.report import plots
from core.report.figures.axes import Axis
from core.report.figures.svg import element
from core.report.plots import WIDTH
from core.report.words import estimate

SVG = "{http://www.w3.org/2000/svg}"


def test_an_axis_maps_and_ticks():
    axis = Axis(0, 1, 100, 300)
    assert [axis(value) for value in (0, 0.5, 1)] == [100, 200, 300]
    assert axis(7) == 300  # held within
    assert axis.ticks() == pytest.approx((0, 0.2, 0.4, 0.6, 0.8, 1))
    assert Axis(1, 5, 0, 1).ticks() == pytest.approx((1, 2, 3, 4, 5))
    assert Axis(-1, 1, 0, 1).ticks(4) == pytest.approx((-1, -0.5, 0, 0.5, 1))


def test_elements_escape_what_they_hold():
    assert element("text", "<b>&", fill='"x"', stroke_width=1.5, id=None) == (
        '<text fill="&#34;x&#34;" stroke-width="1.5">&lt;b&gt;&amp;</text>'
    )


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


def test_an_undefined_judge_has_a_row_and_no_dot(report):
    rows = report.judges.rows
    gone = replace(rows[1], alignment=replace(rows[1].alignment, value=None, interval=None), people=None)
    board = replace(report.judges.board, rows=(rows[0], gone, *rows[2:]))
    changed = replace(report, judges=replace(report.judges, board=board))
    drawing = etree.fromstring(plots.judges_plot(changed).svg())
    assert len([one for one in drawing.iter(f"{SVG}circle") if one.get("r") == "5"]) == len(rows) - 1
    assert "—" in [one.text for one in drawing.iter(f"{SVG}text")]


def test_bars_are_as_high_as_their_counts(report):
    drawing = etree.fromstring(plots.labels_plot(report.labels).svg())
    heights = [float(one.get("height")) for one in drawing.iter(f"{SVG}rect")]
    counts = [bar.n for bar in report.labels.bars]
    most = max(heights)
    assert [height / most for height in heights] == pytest.approx([n / max(counts) for n in counts], abs=1e-3)


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


def test_every_item_is_a_point(report):
    drawing = etree.fromstring(plots.scores_plot(report.on_the_scale, report.scale).svg())
    assert report.on_the_scale.curve is not None
    n_points = report.on_the_scale.n + len(report.on_the_scale.curve.bins) + len(("an item", "the line"))
    assert len(list(drawing.iter(f"{SVG}circle"))) == n_points


def test_of_many_judges_the_best_are_drawn_and_always_our_own(report):
    ours = report.judges.rows[report.judges.ours]
    other = next(row for row in report.judges.rows if row is not ours)
    rows = (*(replace(other, name=f"judge {k}") for k in range(40)), ours)
    many = replace(report.judges, board=replace(report.judges.board, rows=rows), ours=40)
    drawing = plots.judges_plot(replace(report, judges=many))
    texts = [one.text for one in etree.fromstring(drawing.svg()).iter(f"{SVG}text")]
    names = [text for text in texts if text.startswith(("judge ", "offline"))]
    assert names == [*(f"judge {k}" for k in range(plots.MOST_JUDGES - 1)), ours.name]
