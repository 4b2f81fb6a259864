"""Write SVG without scripts or style sheets: escaped elements, colours, and drawings with a description.

Reports embed the drawings, and screens show them as images. Colours are attributes, so a page can forbid inline styles.
Dark pages replace the colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from markupsafe import Markup, escape

Theme = Literal["light", "dark"]
Shape = Literal["dot", "ring", "diamond"]
Point = tuple[float, float]
LETTER = 0.55
"""Mean width of a letter as a share of its font size."""

INK, QUIET, GRID, PAPER = "#14202E", "#5B6875", "#DDE3EA", "#FFFFFF"
BLUE, AMBER, TEAL, PALE = "#0B5CAD", "#A8480A", "#0F766E", "#C3CBD5"
PEOPLE = "#F6E7D8"
"""Colour of the band that shows the raters' agreement with each other."""
ALIKE = "#EEF1F5"
COOL, WARM = "#6BA0D8", "#DB9B55"
"""Colours above and below 0 in a heat map, light enough for dark numbers."""
DARK = {
    INK: "#E8EDF3",
    QUIET: "#A3B0BE",
    GRID: "#2E3946",
    PAPER: "#11171F",
    BLUE: "#6BAEF5",
    AMBER: "#F0A35E",
    TEAL: "#4FC3B3",
    PALE: "#566371",
    PEOPLE: "#3A2C1E",
    ALIKE: "#262F3A",
    COOL: "#2E5F94",
    WARM: "#85531B",
}
"""Light colour → its replacement on a dark page."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that no document may contain, and those that reverse the writing direction of the text after them."""
_COLOUR = re.compile(r'( (?:fill|stroke)=")(#[0-9A-F]{6})(?=")')
"""A colour in an attribute.  Texts never match: their quotation marks are escaped."""


def legible(text: str) -> str:
    """Normalise line ends, and put U+FFFD in place of characters that no document may contain."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("\ufffd", whole).encode("utf-8", "replace").decode()


def shortened(text: str, letters: int) -> str:
    """Shorten `text` to one line of at most `letters` characters."""
    line = " ".join(text.split())
    return line if len(line) <= letters else f"{line[: letters - 1].rstrip()}…"


def element(tag: str, *inside: str | Markup, **attributes: str | float | None) -> Markup:
    """Return ``<tag a="…">inside</tag>``, in which everything except Markup is escaped.

    ``stroke_width`` becomes ``stroke-width``. Numbers get two decimals. Attributes that are None are left out.
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
) -> Markup:
    """Draw text at a position."""
    return element("text", text, x=x, y=y, text_anchor=anchor, fill=fill, font_size=size, font_weight=weight)


def line(start: Point, end: Point, stroke: str, *, width: float = 1, dash: str | None = None) -> Markup:
    """Draw a straight line."""
    (x1, y1), (x2, y2) = start, end
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width, stroke_dasharray=dash)


def path(points: Iterable[Point], stroke: str, *, width: float = 2, dash: str | None = None) -> Markup:
    """Draw a line through the points."""
    shape = _places(points)
    return element("polyline", points=shape, fill="none", stroke=stroke, stroke_width=width, stroke_dasharray=dash)


def _places(points: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def box(x: float, y: float, width: float, height: float, fill: str, **look: str | float | None) -> Markup:
    """Draw a rectangle; a negative width or height counts as 0."""
    return element("rect", x=x, y=y, width=max(width, 0), height=max(height, 0), fill=fill, **look)


def mark(
    x: float, y: float, colour: str, shape: Shape = "dot", *, size: float = 5, opacity: float | None = None
) -> Markup:
    """Draw a mark centred on a position; `size` is its radius."""
    if shape == "ring":
        return element("circle", cx=x, cy=y, r=size, fill=PAPER, stroke=colour, stroke_width=2)
    if shape == "dot":
        return element("circle", cx=x, cy=y, r=size, fill=colour, fill_opacity=opacity)
    reach = size * 1.3
    corners = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
    return element("polygon", points=_places(corners), fill=colour)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of `width` × `height` pixels that scales with its container.

    `name` is unique on a page. `says` describes the picture for screen readers.
    """

    name: str
    title: str
    says: str
    width: float
    height: float
    inside: Markup

    def svg(self, theme: Theme = "light") -> Markup:
        return _written(self, theme)

    def __html__(self) -> str:
        """Return the markup that page templates insert."""
        return self.svg()


def drawing(name: str, title: str, says: str, size: Point, parts: Iterable[Markup]) -> Drawing:
    """Create a drawing from its parts."""
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
