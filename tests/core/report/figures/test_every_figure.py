"""What holds for every figure: names stay letters, axes and words of the undefined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lxml import etree

from core.records import Scale
from core.report import figures
from core.report.figures.curves import scatter_figure
from core.report.figures.heat_map import Heat, heat_figure
from core.report.figures.svg import (
    ALIKE,
    AMBER,
    BLUE,
    COOL,
    DARK,
    INK,
    PAPER,
    PEOPLE,
    QUIET,
    TEAL,
    WARM,
)
from core.report.figures.whiskers import leaderboard_figure
from tests.core.report.figures.conftest import SVG, aligned

HOSTILE = "<img src=x onerror=alert(1)>"
GOOD, ONE = aligned(0.5, 0.4, 0.6), np.array([1.0])
HEAT = Heat((0,), (HOSTILE,), np.array([[0.1]]), (0, HOSTILE))
FIGURES = {
    "leaderboard": lambda: leaderboard_figure({HOSTILE: aligned(None, reason=HOSTILE)}, GOOD, measure="m"),
    "scatter": lambda: scatter_figure(ONE, ONE, scale=Scale(1, 5), of=HOSTILE, picked=0),
    "heat": lambda: heat_figure(HEAT, measure="m"),
    "candidates": lambda: figures.candidates_figure([(HOSTILE, "kept", GOOD)], None, measure="m"),
    "sides": lambda: figures.held_out_figure({HOSTILE: GOOD}, measure="m"),
}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_drawing_is_a_picture_alone_whatever_people_wrote(name):
    """Well-formed, only shapes and letters, nothing that runs, loads or leaves; the same in both themes but colours."""
    drawn: Any = FIGURES[name]()
    light, dark = etree.fromstring(drawn.svg()), etree.fromstring(drawn.svg("dark"))
    known = {"svg", "title", "desc", "text", "line", "rect", "circle", "polyline", "polygon"}
    for node in light.iter():
        assert etree.QName(node).localname in known
        assert not [key for key in node.attrib if key.startswith("on") or "href" in key or key == "style"]
    assert "<img" in "".join(light.itertext())
    assert [node.text for node in light.iter()] == [node.text for node in dark.iter()]
    assert light.findtext(f"{SVG}desc")


CONTROL = "a\x00\u202e\ud800b"


def test_what_no_document_may_hold_is_made_visible():
    drawn = figures.held_out_figure({CONTROL: GOOD}, measure=CONTROL)
    etree.fromstring(drawn.svg())
    assert "a\ufffd\ufffd?b" in drawn.svg()


COLOURED = [(INK, PAPER), (QUIET, PAPER), (BLUE, PAPER), (AMBER, PAPER), (TEAL, PAPER)]
COLOURED += [(INK, under) for under in (ALIKE, PEOPLE, COOL, WARM)]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("letters", "ground"), COLOURED)
def test_letters_can_be_read(theme, letters, ground):
    """WCAG AA: at least 4.5 : 1."""
    if theme == "dark":
        letters, ground = DARK[letters], DARK[ground]
    lighter, darker = sorted((luminance(letters), luminance(ground)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
