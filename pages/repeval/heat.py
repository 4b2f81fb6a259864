"""The map of validation alignment by layer and token: cells that are there with the page, picked by mouse or keys.

A plot library's heat map gives no clicks, takes no keys, and is fetched and compiled before anything is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import streamlit as st

from core.report.figures.heat_maps import LAYER, Heat, Place, numbers_or_none

ROW, AROUND = 46, 92
"""Pixels of a row, and of headings and legend together."""
_HERE = Path(__file__)
_HEAT = st.components.v2.component(
    "concord_heat",
    html="<div class='concord-heat'></div>",
    css=_HERE.with_suffix(".css").read_text("utf-8"),
    js=_HERE.with_suffix(".js").read_text("utf-8"),
    isolate_styles=False,
)


def draw(heat: Heat, *, measure: str, alt: str, key: str, on_pick: Callable[[Place], None]) -> None:
    """Layers across, tokens down; `on_pick` is called with the cell that a person picks, an undefined one too."""
    places = {"chosen": (heat.chosen,), "used": heat.used, "marked": (heat.marked,) if heat.marked else ()}
    known = heat.values[~np.isnan(heat.values)]
    data = {
        "alt": alt,
        "measure": measure,
        "across": LAYER,
        "layers": list(heat.layers),
        "tokens": list(heat.tokens),
        "values": numbers_or_none(heat.values.T),
        "limit": max(0.1, float(np.abs(known).max())) if known.size else 1.0,
        **{
            name: [[heat.layers.index(layer), heat.tokens.index(token)] for layer, token in cells]
            for name, cells in places.items()
        },
    }

    def keep() -> None:
        layer, token = st.session_state[key]["picked"]
        on_pick((heat.layers[layer], heat.tokens[token]))

    _HEAT(key=key, data=data, height=AROUND + ROW * len(heat.tokens), on_picked_change=keep)
