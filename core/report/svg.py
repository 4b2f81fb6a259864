"""Small SVG drawings for a page without scripts: elements that escape what they hold, and a straight axis.

Colours are presentation attributes, so that the page's policy can forbid every inline style.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from core.report.words import bounded

WIDTH = 680
INK, QUIET, GRID = "#14202E", "#5B6875", "#DDE3EA"
BLUE, AMBER, TEAL, PALE = "#0B5CAD", "#A8480A", "#0F766E", "#C3CBD5"
_LABEL = 34


def element(tag: str, *inside: str | Markup, **attributes: str | float | None) -> Markup:
    """``<tag a="…">inside</tag>``, everything but Markup escaped; ``stroke_width`` becomes ``stroke-width``.

    Numbers are written with two decimals; attributes that are None are left out.
    """
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(escape(one) for one in inside)
    return Markup(f"<{tag}{written}>{content}</{tag}>")  # noqa: S704  # all parts are escaped above


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Axis:
    """Values `low` to `high` on pixels `start` to `end` (which may run downwards)."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of `value`, held within the axis."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 7) -> tuple[float, ...]:
        """At most about `most` round values from low to high."""
        rough = (self.high - self.low) / most
        unit = 10 ** math.floor(math.log10(rough))
        step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough * 0.999)
        first = math.ceil(round(self.low / step, 9))
        last = math.floor(round(self.high / step, 9))
        return tuple(k * step for k in range(first, last + 1))


def drawing(name: str, title: str, description: str, height: float, parts: Iterable[Markup]) -> Markup:
    """An ``<svg>`` as wide as the page that says in words what it shows; `name` makes its ids."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        role="img",
        font_family="Helvetica, Arial, sans-serif",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="plot",
    )


def words(text: str, x: float, y: float, *, anchor: str = "start", fill: str = INK, size: float = 12) -> Markup:
    """A line of text, shortened to what fits beside a plot."""
    short = text if len(text) <= _LABEL else f"{text[: _LABEL - 1].rstrip()}…"
    return element("text", bounded(short, _LABEL), x=x, y=y, text_anchor=anchor, fill=fill, font_size=size)


def caption(text: str, x: float, y: float, *, anchor: str = "middle", size: float = 12) -> Markup:
    """A line of the report's own words at its full length."""
    return element("text", text, x=x, y=y, text_anchor=anchor, fill=QUIET, font_size=size)


def line(
    x1: float, y1: float, x2: float, y2: float, stroke: str, *, width: float = 1, dash: str | None = None
) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width, stroke_dasharray=dash)


def box(x: float, y: float, width: float, height: float, fill: str, *, opacity: float | None = None) -> Markup:
    """A filled rectangle; a width or height under 0 counts as 0."""
    return element("rect", x=x, y=y, width=max(width, 0), height=max(height, 0), fill=fill, fill_opacity=opacity)


def dot(
    x: float, y: float, radius: float, fill: str, *, stroke: str | None = None, opacity: float | None = None
) -> Markup:
    """A circle."""
    return element(
        "circle", cx=x, cy=y, r=radius, fill=fill, stroke=stroke, stroke_width=stroke and 2, fill_opacity=opacity
    )


def bottom_axis(axis: Axis, top: float, bottom: float, title: str) -> list[Markup]:
    """Grid lines from `top` to `bottom`, tick labels, and the axis' title under them."""
    parts = []
    for tick in axis.ticks():
        x = axis(tick)
        parts.append(line(x, top, x, bottom, QUIET if abs(tick) < 1e-9 else GRID))
        parts.append(element("text", f"{tick:g}", x=x, y=bottom + 16, text_anchor="middle", fill=QUIET, font_size=11))
    return [*parts, caption(title, (axis.start + axis.end) / 2, bottom + 34)]


def snapped(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis of coefficients that holds `values`: from 0 or the next .2 below, within -1 to 1."""
    low = math.floor(min([*values, 0.0]) * 5 + 1e-9) / 5 if min([*values, 0.0]) < 0 else 0.0
    high = math.ceil(max([*values, 0.2]) * 5 - 1e-9) / 5
    return max(low, -1.0), min(max(high, 0.2), 1.0)
