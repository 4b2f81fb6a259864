"""RepEval drawn: alignment by layer and token, curves over layers and pairs, random directions, one cell's scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.records import FloatArray
from core.report.figures.axes import WIDE, Panel, Sign
from core.report.figures.matrix import MatrixCell, matrix
from core.report.figures.style import (
    ALIKE,
    COOL,
    INK,
    LINES,
    WARM,
    snapped,
)
from core.report.figures.svg import Drawing, drawing, mark, path
from core.wording import number

if TYPE_CHECKING:
    from core.repeval.repeval_records import RepEvalResult


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
            return MatrixCell(ALIKE, ("—",), says=f"{place}: undefined", frame=frame)
        says = f"{place}: validation {number(value, 3)}"
        return MatrixCell(COOL if value >= 0 else WARM, (number(value),), abs(value) / limit, says, frame)

    rows = zip(heat.tokens, heat.values.T.tolist(), strict=True)
    cells = [[cell(layer, token, value) for layer, value in zip(heat.layers, row, strict=True)] for token, row in rows]
    title = f"Validation alignment by layer and token ({measure})"
    return matrix("heat", title, [str(layer) for layer in heat.layers], heat.tokens, cells, corner=LAYER)


def layers_figure(heat: Heat, *, measure: str) -> Drawing:
    """Validation alignment over layers, a line a token; gaps where undefined; a ring around the best cell."""
    ends = snapped([float(value) for value in heat.values.ravel() if not np.isnan(value)])
    looks = [(LINES[j % len(LINES)], "5 4" if j >= len(LINES) else None) for j in range(len(heat.tokens))]
    signs = [Sign(token, colour, None, dash) for token, (colour, dash) in zip(heat.tokens, looks, strict=True)]
    room = 0.02 * max(heat.layers[-1] - heat.layers[0], 1)
    panel = Panel.sized(WIDE, 340, (heat.layers[0] - room, heat.layers[-1] + room), ends, signs=signs)
    step = 1 if len(heat.layers) <= 20 else 4
    ticks = [(float(layer), (f"{layer}",)) for layer in heat.layers[::step]]
    parts = list(panel.ground(LAYER, f"validation, {measure}", x_ticks=ticks))
    for (colour, dash), values in zip(looks, numbers_or_none(heat.values.T), strict=True):
        places = list(zip(heat.layers, values, strict=True))
        parts += path([None if value is None else panel.at(layer, value) for layer, value in places], colour, dash=dash)
        parts += panel.marks([(layer, value) for layer, value in places if value is not None], colour, size=3)
    layer, token = heat.chosen
    best = float(heat.values[heat.layers.index(layer), heat.tokens.index(token)])
    if not np.isnan(best):
        x, y = panel.at(layer, best)
        parts.append(mark(x, y, INK, "ring", size=8, opacity=0))
    says = f"Best: layer {layer}, token {token}, {number(None if np.isnan(best) else best)}."
    return drawing("layers", "Validation alignment over layers", says, (WIDE, 340), parts)


def numbers_or_none(values: FloatArray) -> list[list[float | None]]:
    """The rows of (n, m) values, with None for NaN, which JSON does not know."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]
