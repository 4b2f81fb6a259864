"""Coloured cells in rows and columns: every judge against every other, RepEval's layers and tokens."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.records import FloatArray
from core.report.figures.chart import WIDE, Series, chart, snapped
from core.report.figures.svg import (
    ALIKE,
    BETTER,
    COOL,
    INK,
    LETTER,
    LINES,
    QUIET,
    WARM,
    WORSE,
    Drawing,
    box,
    drawing,
    shortened,
    words,
)
from core.wording import DASH, number, p_figure

if TYPE_CHECKING:
    from core.repeval.search import RepEvalResult

_SIDE, _HEAD, _HIGH, _GAP = 200, 3, 44, 3
_LEAST, _MOST = 44, 130
"""Width of a column."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """`colour` at `strength` from 0 to 1, with at most two lines in it; `says` is the cell in words.

    `frame` is "solid", "dashed", or "" for none.
    """

    colour: str
    lines: tuple[str, ...] = ()
    strength: float | None = None
    says: str = ""
    frame: str = ""


def matrix(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[str],
    cells: Sequence[Sequence[MatrixCell | None]],
    *,
    corner: str = "",
) -> Drawing:
    """`rows` at the side, `columns` as heads; a cell that is None stays empty."""
    breadth = min(max((WIDE - _SIDE) / max(len(columns), 1), _LEAST), _MOST)
    letters = int(breadth / (LETTER * 11))
    heads = [textwrap.wrap(shortened(head, _HEAD * letters), letters)[:_HEAD] for head in columns]
    top = 12 + 14 * max((len(head) for head in heads), default=0)
    parts = [words(corner, _SIDE - 12, top - 8, "end", fill=QUIET, size=11)]
    for j, head in enumerate(heads):
        for k, text in enumerate(head):
            y = top - 8 - 14 * (len(head) - 1 - k)
            parts.append(words(text, _SIDE + breadth * (j + 0.5), y, "middle", fill=QUIET, size=11))
    for i, (row, own) in enumerate(zip(rows, cells, strict=True)):
        y = top + _HIGH * i
        parts.append(words(shortened(row, 29), _SIDE - 12, y + _HIGH / 2 + 4, "end"))
        for j, cell in enumerate(own):
            if cell is None:
                continue
            x = _SIDE + breadth * j
            inner = (x + _GAP / 2, y + _GAP / 2, breadth - _GAP, _HIGH - _GAP)
            parts.append(box(*inner, cell.colour, fill_opacity=cell.strength, rx=3))
            if cell.frame:
                dash, thick = (None, 3) if cell.frame == "solid" else ("4 3", 1)
                parts.append(box(*inner, "none", stroke=INK, stroke_width=thick, stroke_dasharray=dash, rx=3))
            for k, text in enumerate(cell.lines):
                size = 12 if len(text) * 12 * LETTER < breadth - _GAP else 10
                middle = y + _HIGH / 2 + 4 + 14 * (k - (len(cell.lines) - 1) / 2)
                parts.append(words(text, x + breadth / 2, middle, "middle", size=size))
    said = "; ".join(cell.says for own in cells for cell in own if cell is not None and cell.says)
    whole = (max(WIDE, _SIDE + breadth * len(columns)), top + _HIGH * len(rows) + 6)
    return drawing(name, title, shortened(said, 1_500), whole, parts)


def significance_figure(
    names: Sequence[str],
    difference: FloatArray,
    p: FloatArray,
    said: Sequence[Sequence[str]],
    *,
    alpha: float,
    measure: str,
) -> Drawing:
    """Row against column: green where the row agrees better beyond chance, orange where worse, grey where open.

    `difference` and `p` are (n, n), row minus column in alignment, NaN where undefined; `said` is each cell in words.
    """

    def cell(i: int, j: int) -> MatrixCell | None:
        gap = float(difference[i, j])
        if i == j or np.isnan(gap):
            return None
        colour = (BETTER if gap > 0 else WORSE) if p[i, j] <= alpha and gap else ALIKE
        written = f"{gap:+.2f}".replace("0.", ".", 1).replace("-", "−")
        return MatrixCell(colour, (written, p_figure(float(p[i, j]), "p —")), says=said[i][j] if i < j else "")

    cells = [[cell(i, j) for j in range(len(names))] for i in range(len(names))]
    title = f"Every judge against every other: {measure}, row minus column"
    return matrix("significance", title, names, names, cells, corner="row minus column")


# ── RepEval ──────────────────────────────────────────────────────────────────────────────────────────────────

Place = tuple[int, str]
LAYER = "layer (0 = embeddings)"


@dataclass(frozen=True)
class Heat:
    """Validation alignment `values` (n_layers, n_tokens), NaN = undefined.

    `chosen` is the best cell, `used` are those averaged into the score, `marked` is the one looked at.
    """

    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    values: FloatArray
    chosen: Place
    used: tuple[Place, ...] = ()
    marked: Place | None = None

    @classmethod
    def of(cls, result: RepEvalResult, marked: Place | None = None) -> Heat:
        """The map of a result."""
        used = tuple((cell.layer, cell.token) for cell in result.members[1:])
        chosen = result.chosen.layer, result.chosen.token
        return cls(result.layers, result.tokens, result.cells, chosen, used, marked)


def heat_figure(heat: Heat, *, measure: str) -> Drawing:
    """Layers across, tokens down; undefined cells are grey, the best is framed, averaged ones have a dashed frame."""
    limit = max(0.1, float(np.nanmax(np.abs(heat.values))) if np.isfinite(heat.values).any() else 1.0)

    def cell(layer: int, token: str, value: float) -> MatrixCell:
        place = f"layer {layer}, token {token}"
        frame = "solid" if (layer, token) == heat.chosen else "dashed" if (layer, token) in heat.used else ""
        if np.isnan(value):
            return MatrixCell(ALIKE, (DASH,), says=f"{place}: undefined", frame=frame)
        says = f"{place}: validation {number(value, 3)}"
        return MatrixCell(COOL if value >= 0 else WARM, (number(value),), abs(value) / limit, says, frame)

    rows = zip(heat.tokens, heat.values.T.tolist(), strict=True)
    cells = [[cell(layer, token, value) for layer, value in zip(heat.layers, row, strict=True)] for token, row in rows]
    title = f"Validation alignment by layer and token ({measure})"
    return matrix("heat", title, [str(layer) for layer in heat.layers], heat.tokens, cells, corner=LAYER)


def layers_figure(heat: Heat, *, measure: str) -> Drawing:
    """Validation alignment over layers, a line a token; gaps where undefined; a ring around the best cell."""
    series = [
        Series(
            token,
            LINES[j % len(LINES)],
            list(zip(heat.layers, values, strict=True)),
            size=3,
            line=2,
            dash="5 4" if j >= len(LINES) else None,
        )
        for j, (token, values) in enumerate(zip(heat.tokens, numbers_or_none(heat.values.T), strict=True))
    ]
    layer, token = heat.chosen
    best = float(heat.values[heat.layers.index(layer), heat.tokens.index(token)])
    if not np.isnan(best):
        series.append(Series("", INK, [(layer, best)], "ring", size=8, opacity=0))
    room = 0.02 * max(heat.layers[-1] - heat.layers[0], 1)
    return chart(
        "layers",
        "Validation alignment over layers",
        f"Best: layer {layer}, token {token}, {number(None if np.isnan(best) else best)}.",
        series,
        x=(LAYER, heat.layers[0] - room, heat.layers[-1] + room),
        y=(f"validation, {measure}", *snapped([float(value) for value in heat.values.ravel() if not np.isnan(value)])),
        ticks=[(layer, f"{layer}") for layer in heat.layers[:: 1 if len(heat.layers) <= 20 else 4]],
    )


def numbers_or_none(values: FloatArray) -> list[list[float | None]]:
    """The rows of (n, m) values, with None for NaN, which JSON does not know."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]
