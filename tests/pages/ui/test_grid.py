"""Small tables: what is sent of each cell, and which row is picked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from pages.ui import state
from tests.pages.screen import HOSTILE, run


def page() -> None:
    import streamlit as st

    from pages.ui import grid

    rows = st.session_state["rows"]
    chosen = grid.picked("things") or rows["thing"][0]
    grid.draw(rows, alt="Things", key="things", pick=grid.Pick(list(rows["thing"]), chosen))


def without_rows() -> None:
    from pages.ui import grid

    grid.draw({"a": []}, alt="None")


def sent(rows: pd.DataFrame | dict[str, list[Any]], **kept: Any) -> tuple[AppTest, dict[str, Any]]:
    screen = AppTest.from_function(page)
    screen.session_state["rows"] = rows
    for key, value in kept.items():
        screen.session_state[key] = value
    return screen, json.loads(run(screen).get("bidi_component")[0].proto.json)


def test_cells_are_sent_as_they_are_and_what_is_missing_as_missing() -> None:
    frame = pd.DataFrame(
        {
            "thing": [HOSTILE, "b", "c"],
            "value": [1.5, np.nan, np.inf],
            "count": pd.array([3, None, 4], dtype="Int64"),
            "flag": [np.bool_(True), False, None],
        }
    )
    rows = sent(frame)[1]["rows"]
    assert rows[0] == [HOSTILE, 1.5, 3, "yes"]
    assert rows[1] == ["b", None, None, "no"]
    assert rows[2][1] == "∞"  # which JSON cannot say as a number


def test_a_table_without_rows_keeps_its_heading() -> None:
    screen = AppTest.from_function(without_rows)
    data = json.loads(run(screen).get("bidi_component")[0].proto.json)
    assert data["rows"] == []
    assert data["columns"][0]["heading"] == "a"


def test_the_marked_row_stays_with_its_thing_while_rows_move() -> None:
    screen, data = sent({"thing": ["a", "b"]})
    assert data["chosen"] == "a"
    screen.session_state["rows"] = {"thing": ["new", "a", "b"]}
    assert json.loads(run(screen).get("bidi_component")[0].proto.json)["chosen"] == "a"


def test_what_a_person_picked_is_marked() -> None:
    assert sent({"thing": ["a", "b"]}, **{state.GRID_PICKS: {"things": "b"}})[1]["chosen"] == "b"
