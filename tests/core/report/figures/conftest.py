"""What the tests of figures share: an alignment, and a drawing read back as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lxml import etree

from core.records import Alignment, Interval
from core.report.figures import Drawing

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def aligned(value: float | None, low: float = 0.0, high: float = 0.0, reason: str = "") -> Alignment:
    """An alignment on 40 items, with an interval where `high` lies above `low`."""
    interval = Interval(low, high) if high > low else None
    return Alignment("spearman", "sample", value, n=40, interval=interval, reason=reason)


@dataclass
class Drawn:
    """A drawing read back.

    Axes are found by the words of their ticks: `x` of a pixel across, `y` of one upwards.
    """

    drawing: Drawing
    root: Any = field(init=False)

    def __post_init__(self) -> None:
        self.root = etree.fromstring(self.drawing.svg())

    def all(self, tag: str, **attributes: str) -> list[Any]:
        """Elements with these attributes (``stroke_width`` for ``stroke-width``), in the order of drawing."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        found = self.root.iter(f"{SVG}{tag}")
        return [node for node in found if all(node.get(name) == value for name, value in wanted.items())]

    @property
    def texts(self) -> list[str]:
        return [node.text or "" for node in self.all("text")]

    @property
    def says(self) -> str:
        return self.root.findtext(f"{SVG}desc")

    def x(self, pixel: float) -> float:
        """The value at a pixel across: read off the row of tick labels, which stand in the middle under it."""
        ticks = [node for node in self.all("text", text_anchor="middle") if _number(node.text) is not None]
        lowest = max(float(node.get("y")) for node in ticks)
        return _between([node for node in ticks if float(node.get("y")) == lowest], "x", pixel, 0.0)

    def y(self, pixel: float) -> float:
        """The value at a pixel upwards: tick labels end left of the axis, four pixels under their line."""
        ticks = [node for node in self.all("text", text_anchor="end") if _number(node.text) is not None]
        first = min(float(node.get("x")) for node in ticks)
        return _between([node for node in ticks if float(node.get("x")) == first], "y", pixel, 4.0)

    def path(self, **attributes: str) -> list[list[tuple[float, float]]]:
        """The lines through points, as values."""
        return [_corners(node, self) for node in self.all("polyline", fill="none", **attributes)]

    def rows(self, radius: str = "5", **attributes: str) -> dict[float, float]:
        """Dots of rows of names: how far down → value."""
        return {
            float(dot.get("cy")): self.x(float(dot.get("cx"))) for dot in self.all("circle", r=radius, **attributes)
        }

    def spots(self, **attributes: str) -> list[tuple[float, float]]:
        """Dots between two axes, as values."""
        return [
            (self.x(float(dot.get("cx"))), self.y(float(dot.get("cy")))) for dot in self.all("circle", **attributes)
        ]


def _corners(node: Any, drawn: Drawn) -> list[tuple[float, float]]:
    pairs = [corner.split(",") for corner in node.get("points").split()]
    return [(drawn.x(float(x)), drawn.y(float(y))) for x, y in pairs]


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None


def _between(ticks: list[Any], along: str, pixel: float, shift: float) -> float:
    first, last = ticks[0], ticks[-1]
    (a, b), (low, high) = (
        (float(node.get(along)) - shift for node in (first, last)),
        map(_number, (first.text, last.text)),
    )
    assert low is not None and high is not None
    return low + (pixel - a) / (b - a) * (high - low)
