"""Draw RepEval's validation alignment by layer and token as a heat map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.records import FloatArray
from core.report.figures.chart import WIDE
from core.report.figures.svg import (
    ALIKE,
    COOL,
    INK,
    LETTER,
    QUIET,
    WARM,
    Drawing,
    box,
    drawing,
    shortened,
    words,
)
from core.wording import number

if TYPE_CHECKING:
    from core.repeval.search import RepEvalResult

_SIDE, _HIGH, _GAP = 200, 44, 3
_LEAST, _MOST = 44, 130
"""Width of a column."""

Place = tuple[int, str]
LAYER = "layer (0 = embeddings)"


@dataclass(frozen=True)
class Heat:
    """Validation alignment `values` (n_layers, n_tokens), NaN if undefined; `chosen` is the best cell."""

    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    values: FloatArray
    chosen: Place

    @classmethod
    def of(cls, result: RepEvalResult) -> Heat:
        return cls(result.layers, result.tokens, result.cells, (result.chosen.layer, result.chosen.token))


def heat_figure(heat: Heat, *, measure: str) -> Drawing:
    """Draw the heat map, with a column for each layer and a row for each token.

    Undefined cells are grey, and the best cell has a frame.
    """
    limit = max(0.1, float(np.nanmax(np.abs(heat.values))) if np.isfinite(heat.values).any() else 1.0)
    breadth, top = min(max((WIDE - _SIDE) / max(len(heat.layers), 1), _LEAST), _MOST), 26
    parts, said = [words(LAYER, _SIDE - 12, top - 8, "end", fill=QUIET, size=11)], []
    for j, layer in enumerate(heat.layers):
        parts.append(words(str(layer), _SIDE + breadth * (j + 0.5), top - 8, "middle", fill=QUIET, size=11))
    for i, token in enumerate(heat.tokens):
        y = top + _HIGH * i
        parts.append(words(shortened(token, 29), _SIDE - 12, y + _HIGH / 2 + 4, "end"))
        for j, layer in enumerate(heat.layers):
            x, value = _SIDE + breadth * j, float(heat.values[j, i])
            known = not np.isnan(value)
            inner = (x + _GAP / 2, y + _GAP / 2, breadth - _GAP, _HIGH - _GAP)
            colour = ALIKE if not known else COOL if value >= 0 else WARM
            parts.append(box(*inner, colour, fill_opacity=abs(value) / limit if known else None, rx=3))
            if (layer, token) == heat.chosen:
                parts.append(box(*inner, "none", stroke=INK, stroke_width=3, rx=3))
            text = number(value if known else None)
            size = 12 if len(text) * 12 * LETTER < breadth - _GAP else 10
            parts.append(words(text, x + breadth / 2, y + _HIGH / 2 + 4, "middle", size=size))
            place = f"layer {layer}, token {token}"
            said.append(f"{place}: validation {number(value, 3)}" if known else f"{place}: undefined")
    title = f"Validation agreement by layer and token ({measure})"
    whole = (max(WIDE, _SIDE + breadth * len(heat.layers)), top + _HIGH * len(heat.tokens) + 6)
    return drawing("heat", title, shortened("; ".join(said), 1_500), whole, parts)
