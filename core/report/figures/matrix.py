"""Cells in rows and columns, coloured by what they hold, with their words in them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from core.report.figures.axes import WIDE
from core.report.figures.style import INK, QUIET
from core.report.figures.svg import LETTER, Drawing, box, drawing, shortened, words

_SIDE, _HEAD = 200, 3
_LEAST, _MOST = 44, 130
_GAP = 3


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """`colour` at `strength` from 0 to 1, with at most two lines in it; `says` is the cell in words.

    `frame` is "solid", "dashed", or "" for none.
    """

    colour: str
    lines: tuple[str, ...] = ()
    strength: float = 1.0
    says: str = ""
    frame: str = ""


def matrix(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[str],
    cells: Sequence[Sequence[MatrixCell | None]],
    *,
    height: int = 44,
    width: int = WIDE,
    corner: str = "",
) -> Drawing:
    """`rows` at the side, `columns` as heads; a cell that is None stays empty."""
    breadth = min(max((width - _SIDE) / max(len(columns), 1), _LEAST), _MOST)
    letters = int(breadth / (LETTER * 11))
    heads = [textwrap.wrap(shortened(head, _HEAD * letters), letters)[:_HEAD] for head in columns]
    top = 12 + 14 * max((len(head) for head in heads), default=0)
    parts = [words(corner, _SIDE - 12, top - 8, "end", fill=QUIET, size=11)] if corner else []
    for j, head in enumerate(heads):
        for k, text in enumerate(head):
            y = top - 8 - 14 * (len(head) - 1 - k)
            parts.append(words(text, _SIDE + breadth * (j + 0.5), y, "middle", fill=QUIET, size=11))
    for i, (row, own) in enumerate(zip(rows, cells, strict=True)):
        y = top + height * i
        parts.append(words(shortened(row, 29), _SIDE - 12, y + height / 2 + 4, "end"))
        for j, cell in enumerate(own):
            if cell is not None:
                parts += _drawn(cell, _SIDE + breadth * j, y, breadth, height)
    said = "; ".join(cell.says for own in cells for cell in own if cell is not None and cell.says)
    whole = (max(width, _SIDE + breadth * len(columns)), top + height * len(rows) + 6)
    return drawing(name, title, shortened(said, 1_500), whole, parts)


def _drawn(cell: MatrixCell, x: float, y: float, breadth: float, height: float) -> Iterator[Markup]:
    inner = (x + _GAP / 2, y + _GAP / 2, breadth - _GAP, height - _GAP)
    yield box(*inner, cell.colour, fill_opacity=None if cell.strength == 1.0 else cell.strength, rx=3)
    if cell.frame:
        dash, thick = (None, 3) if cell.frame == "solid" else ("4 3", 1)
        yield box(*inner, "none", stroke=INK, stroke_width=thick, stroke_dasharray=dash, rx=3)
    for k, text in enumerate(cell.lines):
        size = 12 if len(text) * 12 * LETTER < breadth - _GAP else 10
        middle = y + height / 2 + 4 + 14 * (k - (len(cell.lines) - 1) / 2)
        yield words(text, x + breadth / 2, middle, "middle", size=size)
