"""SVG without scripts or style sheets: escaped elements, colours, and drawings that say in words what they show.

A drawing is shown inline in the report and as an image on the screens; colours are presentation attributes, so that a
page's policy can forbid every inline style, and are turned for a dark page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Literal

from markupsafe import Markup, escape

Theme = Literal["light", "dark"]
Shape = Literal["dot", "ring", "diamond", "open diamond"]
Point = tuple[float, float]
LETTER = 0.55
"""Mean width of a letter, of its size."""

INK, QUIET, GRID, PAPER = "#14202E", "#5B6875", "#DDE3EA", "#FFFFFF"
BLUE, AMBER, TEAL, PALE = "#0B5CAD", "#A8480A", "#0F766E", "#C3CBD5"
PURPLE, ROSE = "#7A3E9D", "#9F1239"
PEOPLE = "#F6E7D8"
"""The band of people among themselves."""
ALIKE = "#EEF1F5"
COOL, WARM = "#6BA0D8", "#DB9B55"
"""Above and below 0 in a matrix: light enough for dark numbers."""
LINES = (BLUE, AMBER, TEAL, PURPLE, ROSE, "#4D7C0F", "#0E7490", QUIET)
DARK = {
    INK: "#E8EDF3",
    QUIET: "#A3B0BE",
    GRID: "#2E3946",
    PAPER: "#11171F",
    BLUE: "#6BAEF5",
    AMBER: "#F0A35E",
    TEAL: "#4FC3B3",
    PALE: "#566371",
    PURPLE: "#C79BE8",
    ROSE: "#F4829C",
    PEOPLE: "#3A2C1E",
    ALIKE: "#262F3A",
    COOL: "#2E5F94",
    WARM: "#85531B",
    "#4D7C0F": "#9CCC52",
    "#0E7490": "#4CC3DE",
}
"""Each colour's counterpart on a dark page."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that no document may hold, and those that turn the writing direction of what stands behind them."""
_COLOUR = re.compile(r'( (?:fill|stroke)=")(#[0-9A-F]{6})(?=")')
"""A colour in an attribute; never in a text, where a quotation mark is escaped."""


def legible(text: str) -> str:
    """`text` with what no document may hold made visible."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("\ufffd", whole).encode("utf-8", "replace").decode()


def shortened(text: str, letters: int) -> str:
    """`text` on one line of at most so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= letters else f"{line[: letters - 1].rstrip()}…"


def element(tag: str, *inside: str | Markup, **attributes: str | float | None) -> Markup:
    """``<tag a="…">inside</tag>``, everything but Markup escaped; ``stroke_width`` becomes ``stroke-width``.

    Numbers are written with two decimals; attributes that are None are left out.
    """
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    content = "".join(part if isinstance(part, Markup) else escape(legible(part)) for part in inside)
    return Markup(f"<{tag}{written}>{content}</{tag}>")  # noqa: S704  # all parts are escaped above


def _plain(value: str | float) -> str:
    return legible(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def words(
    text: str,
    x: float,
    y: float,
    anchor: str = "start",
    *,
    fill: str = INK,
    size: float = 12,
    weight: str | None = None,
    halo: bool = False,
) -> Markup:
    """Letters at a place; with a `halo` they can be read over marks."""
    look: dict[str, str | float | None] = {
        "text_anchor": anchor,
        "fill": fill,
        "font_size": size,
        "font_weight": weight,
    }
    if halo:
        look |= {"stroke": PAPER, "stroke_width": 4, "stroke_linejoin": "round", "paint_order": "stroke"}
    return element("text", text, x=x, y=y, **look)


def line(start: Point, end: Point, stroke: str, *, width: float = 1, dash: str | None = None) -> Markup:
    """A straight line."""
    (x1, y1), (x2, y2) = start, end
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width, stroke_dasharray=dash)


def path(points: Iterable[Point | None], stroke: str, *, width: float = 2, dash: str | None = None) -> list[Markup]:
    """Lines through the points, with a gap where one is None."""
    runs = [list(run) for known, run in groupby(points, key=lambda point: point is not None) if known]
    look: dict[str, str | float | None] = {"stroke": stroke, "stroke_width": width, "stroke_dasharray": dash}
    return [element("polyline", points=_places(run), fill="none", **look) for run in runs if len(run) > 1]


def _places(points: Iterable[Point | None]) -> str:
    return " ".join(f"{point[0]:.1f},{point[1]:.1f}" for point in points if point is not None)


def box(x: float, y: float, width: float, height: float, fill: str, **look: str | float | None) -> Markup:
    """A rectangle; never of negative width."""
    return element("rect", x=x, y=y, width=max(width, 0), height=max(height, 0), fill=fill, **look)


def mark(
    x: float, y: float, colour: str, shape: Shape = "dot", *, size: float = 5, opacity: float | None = None
) -> Markup:
    """A mark around a place; `size` is its radius."""
    hollow = shape in ("ring", "open diamond")
    look: dict[str, str | float | None] = {"fill": PAPER if hollow else colour, "fill_opacity": opacity}
    if hollow:
        look |= {"stroke": colour, "stroke_width": 2}
    if shape in ("dot", "ring"):
        return element("circle", cx=x, cy=y, r=size, **look)
    reach = size * 1.3
    corners = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
    return element("polygon", points=_places(corners), **look)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of `width` × `height` that scales with its place; `says` is what it shows, in words.

    `name` tells it from the others of a page; `narrow` is the same, legible on a telephone.
    """

    name: str
    title: str
    says: str
    width: float
    height: float
    inside: Markup
    narrow: Drawing | None = None

    def svg(self, theme: Theme = "light") -> Markup:
        """An ``<svg>`` element."""
        return _written(self, theme)

    def __html__(self) -> str:
        """How a page template takes it in."""
        return self.svg()


def drawing(name: str, title: str, says: str, size: Point, parts: Iterable[Markup]) -> Drawing:
    """A drawing of these parts."""
    return Drawing(name, legible(title), legible(says), *size, Markup("").join(parts))


@lru_cache(maxsize=256)
def _written(drawn: Drawing, theme: Theme) -> Markup:
    whole = element(
        "svg",
        element("title", drawn.title, id=f"{drawn.name}-title"),
        element("desc", drawn.says, id=f"{drawn.name}-desc"),
        drawn.inside,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {drawn.width:.0f} {drawn.height:.0f}",
        width=drawn.width,
        height=drawn.height,
        role="img",
        font_family="Helvetica, Arial, sans-serif",
        aria_labelledby=f"{drawn.name}-title {drawn.name}-desc",
        class_="plot",
    )
    if theme == "light":
        return whole
    return Markup(_COLOUR.sub(lambda found: found[1] + DARK.get(found[2], found[2]), whole))  # noqa: S704
