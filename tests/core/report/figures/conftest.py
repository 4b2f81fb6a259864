"""What the tests of figures share: an alignment, and a drawing read back as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from core.records import Alignment, Interval
from core.report.figures import Drawing

SVG = "{http://www.w3.org/2000/svg}"


def aligned(value: float | None, low: float = 0.0, high: float = 0.0, reason: str = "") -> Alignment:
    """An alignment on 40 items, with an interval where `high` lies above `low`."""
    interval = Interval(low, high) if high > low else None
    return Alignment("spearman", "sample", value, n=40, interval=interval, reason=reason)


@dataclass
class Drawn:
    """A drawing read back."""

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
