"""A small HTML table that loads with the page, with sortable columns and selectable rows.

`st.dataframe` first loads a megabyte of scripts, so use it only for thousands of rows or to select several rows. Every
cell is shown as text, so untrusted content needs no escaping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui import state

ROW, TALL_ROW, HEADER, MOST_ROWS = 36, 76, 38, 14
"""Heights in pixels of a row, a row with three lines, and the header; and the rows visible without scrolling."""
_HERE = Path(__file__)
_GRID = st.components.v2.component(
    "concord_grid",
    html="<div class='concord-grid'></div>",
    css=_HERE.with_suffix(".css").read_text("utf-8"),
    js=_HERE.with_suffix(".js").read_text("utf-8"),
    isolate_styles=False,
)


@dataclass(frozen=True, slots=True)
class Column:
    """Format of a table column.

    Attributes:
        heading: Replaces the name of the column; "" keeps the name.
        digits: Number of decimals; None leaves numbers unchanged.
        signed: Add + to positive numbers.
        unit: Text after each number.
        width: Maximum width in px.
    """

    heading: str = ""
    digits: int | None = None
    signed: bool = False
    unit: str = ""
    help: str = ""
    width: int = 420


@dataclass(frozen=True, slots=True)
class Pick:
    """Settings of selectable rows: `ids`, one per row; the row `chosen` stays marked when rows change.

    `on_pick` is called after a selection; `picked` then already returns the new row.
    """

    ids: Sequence[str] = ()
    chosen: str | None = None
    on_pick: Callable[[], None] | None = None


def draw(
    table: pd.DataFrame | Mapping[str, Sequence[Any]],
    columns: Mapping[str, Column] | None = None,
    *,
    alt: str,
    rows: int = MOST_ROWS,
    tall: bool = False,
    undefined: str = "—",
    key: str = "",
    pick: Pick | None = None,
) -> None:
    """Draw a table.

    Args:
        columns: Column name → its format.
        alt: Name of the table for screen readers.
        rows: Maximum number of rows visible at once.
        tall: Use taller rows.
        undefined: Text for missing values.
        pick: Makes rows selectable; `picked(key)` returns the id of the selected row.
    """
    frame, columns, pick = pd.DataFrame(table), columns or {}, pick or Pick()
    seen = {name: asdict(columns.get(name, Column())) for name in map(str, frame.columns)}
    height = HEADER + (TALL_ROW if tall else ROW) * max(1, min(len(frame), rows)) + 4
    data = {
        "alt": alt,
        "columns": [{**look, "heading": look["heading"] or name} for name, look in seen.items()],
        "rows": [[_plain(cell) for cell in row] for row in frame.itertuples(index=False, name=None)],
        "ids": list(pick.ids),
        "chosen": pick.chosen,
        "tall": tall,
        "undefined": undefined,
    }
    key = key or state.widget(f"grid_{alt}")

    if pick.chosen is not None:
        _picks()[key] = pick.chosen

    def keep() -> None:
        _picks()[key] = st.session_state[key]["picked"]
        if pick.on_pick is not None:
            pick.on_pick()

    _GRID(key=key, data=data, height=height, on_picked_change=keep)


def picked(key: str) -> str | None:
    """Return the id of the selected row in the table `key`; None if no row is selected."""
    return _picks().get(key)


def clear_selections() -> None:
    st.session_state.pop(state.GRID_PICKS, None)


def _picks() -> dict[str, str]:
    """Return a dict from table to id of its selected row, which stays selected when rows move."""
    kept: dict[str, str] = st.session_state.setdefault(state.GRID_PICKS, {})
    return kept


def _plain(cell: Any) -> Any:
    """Convert a cell to JSON: missing as None, flags in words."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, float) and math.isinf(cell):
        return "∞" if cell > 0 else "−∞"  # not a number in JSON
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return cell
