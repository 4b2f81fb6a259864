"""The map of cells: what is sent of each, and how the picked one comes back."""

from __future__ import annotations

import json

from streamlit.testing.v1 import AppTest

from tests.pages.screen import run


def page() -> None:
    import numpy as np
    import streamlit as st

    from core.report.figures.heat_maps import Heat
    from pages.repeval import heat

    values = np.array([[np.nan, 0.1], [0.2, -0.3], [np.nan, 0.25]])
    cells = Heat((0, 4, 8), ("first", "-1"), values, chosen=(4, "first"), used=((8, "-1"),), marked=(0, "-1"))
    heat.draw(cells, measure="rho", alt="Map", key="map", on_pick=lambda place: st.session_state.update(place=place))


def test_rows_are_tokens_and_what_is_undefined_is_no_number() -> None:
    (sent,) = (json.loads(part.proto.json) for part in run(AppTest.from_function(page)).get("bidi_component"))
    assert sent["values"] == [[None, 0.2, None], [0.1, -0.3, 0.25]]
    assert sent["limit"] == 0.3  # white is no alignment at all
    assert (sent["layers"], sent["tokens"]) == ([0, 4, 8], ["first", "-1"])
    assert (sent["chosen"], sent["used"], sent["marked"]) == ([[1, 0]], [[2, 1]], [[0, 1]])
