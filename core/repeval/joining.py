"""States of an item's texts, read apart, put together: one vector of both, or cells beside one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.repeval.states import HalfArray, parts_in


def joined(texts: Sequence[HalfArray]) -> Any:
    """(layers, tokens, 3 dim) of the states u of the other text and v of the hypothesis: [u−v, |u−v|, u·v]."""
    u, v = (text.astype(np.float64) for text in texts)
    return np.concatenate([u - v, np.abs(u - v), u * v], axis=-1)


class Compared:
    """Makes the `cells` (token names, some behind "source:" or "context:") out of states `read` at each token."""

    def __init__(self, read: Sequence[str], cells: Sequence[str]) -> None:
        others, named = list[str](parts_in(cells)), [name.rpartition(":") for name in cells]
        self._own = [read.index(token) for _, _, token in named]
        self._gaps = [(cell, others.index(part)) for cell, (part, _, _) in enumerate(named) if part]

    def __call__(self, texts: Sequence[HalfArray]) -> Any:
        """(layers, cells, dim) of the states (layers, tokens read, dim) of the other texts and, last, the hypothesis.

        A cell behind a part is |u−v|: how far the two texts lie apart in each dimension.
        """
        cells = texts[-1][:, self._own].astype(np.float32)
        with np.errstate(invalid="ignore"):  # what is infinite leaves its cell undefined
            for cell, other in self._gaps:
                cells[:, cell] = np.abs(texts[other][:, self._own[cell]].astype(np.float32) - cells[:, cell])
        return cells
