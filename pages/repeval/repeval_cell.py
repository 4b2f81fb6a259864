"""One cell of the map: its agreement with raters, its scores next to their labels, and its extreme items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.projects.method_runs import METHOD_NAMES
from core.projects.run_control import RunDetail
from core.records import Alignment, FloatArray, GoldenSet
from core.repeval.search import RepEvalResult, cell_detail
from core.report.figures import describe
from core.report.figures.curves import scatter_figure
from core.report.figures.heat_maps import Place
from core.wording import capital
from pages.ui import charts, grid, state
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

SHOWN = 3


@dataclass(frozen=True)
class ScoredCell:
    """A cell's alignments with the test items it scored: positions (n,), labels (n,), scores (n,)."""

    validation: Alignment
    test: Alignment
    golden: GoldenSet
    positions: FloatArray
    labels: FloatArray
    scores: FloatArray


def _keys(run_id: str) -> tuple[str, str]:
    return state.widget(f"repeval_layer_{run_id}"), state.widget(f"repeval_token_{run_id}")


def picked(view: RunDetail, result: RepEvalResult) -> Place:
    """The cell a person looks at, as the two boxes say it; the map sets them, at first they say the best.

    A redrawing writes nothing: it would take back what was chosen in a box meanwhile.
    """
    layer_key, token_key = _keys(view.run_id)
    st.session_state.setdefault(layer_key, result.chosen.layer)
    st.session_state.setdefault(token_key, result.chosen.token)
    return st.session_state[layer_key], st.session_state[token_key]


def hold(run_id: str, place: Place) -> None:
    """Keeps the cell: one picked on the map, or that of boxes which are not drawn and would forget it."""
    for key, value in zip(_keys(run_id), place, strict=True):
        st.session_state[key] = value


def draw(page: Opened, view: RunDetail, result: RepEvalResult, place: Place) -> None:
    """The cell's facts beside its scatter, then the texts at both ends."""
    layer_key, token_key = _keys(view.run_id)
    facts, drawn = st.columns([2, 3], gap="large")
    with facts:
        left, right = st.columns(2)
        left.selectbox("Layer", result.layers, key=layer_key)
        right.selectbox("Token", result.tokens, key=token_key)
        draw_facts(page, view, result, place)
        k = int(result.cell_k[result.layers.index(place[0]), result.tokens.index(place[1])])
        parts = f", {k} components" if k else ""
        learnt = f"{result.n_pairs} pairs" if result.n_pairs else f"{len(result.parts.train)} labels"
        st.caption(plain(f"{METHOD_NAMES[result.settings.method]}{parts}, learnt from {learnt}."))
        if place != (result.chosen.layer, result.chosen.token):
            st.caption("Do not choose a cell by its test figure: the figure would be optimistic.")
    scored = _scored_cell(view.run_id, view.version, *place, page, result)
    if np.isnan(scored.scores).all():
        with drawn:
            st.info(
                "This cell is undefined: its states are all equal or no finite numbers, or its scores are constant, so "
                "nothing can agree with raters here. It is not 0.",
                icon=":material/block:",
            )
        return
    with drawn:
        scale = scored.golden.aspects[result.aspect].scale
        figure = scatter_figure(scored.labels, scored.scores, scale=scale, of="projection")
        charts.place(figure, key="repeval_cell_figure", alt="Scores against the raters' labels")
    order = np.argsort(scored.scores, kind="stable")
    for column, name, rows in zip(
        st.columns(2, gap="medium"),
        ("Highest test items", "Lowest test items"),
        (order[::-1][:SHOWN], order[:SHOWN]),
        strict=True,
    ):
        with column:
            st.markdown(f"**{name}**")
            _draw_items(scored, rows, name)


@st.cache_resource(max_entries=64, show_spinner=False)
def _scored_cell(
    run_id: str, version: int, layer: int, token: str, _page: Opened, _result: RepEvalResult
) -> ScoredCell:
    golden = _page.store.goldens.load(projects.run_view(_page.store, run_id).golden_id)
    validation, test, scores = cell_detail(_result, golden, layer, token)
    at = np.asarray(_result.parts.test, dtype=np.intp)
    return ScoredCell(validation, test, golden, at, golden.labels(_result.aspect)[at], scores[at])


def draw_facts(page: Opened, view: RunDetail, result: RepEvalResult, place: Place) -> None:
    """What the cell is to the score, and its agreement with raters on both parts."""
    scored, (layer, token) = _scored_cell(view.run_id, view.version, *place, page, result), place
    best = place == (result.chosen.layer, result.chosen.token)
    used = any(place == (member.layer, member.token) for member in result.members)
    role = "the best cell on validation" if best else "averaged into the score" if used else "not used"
    figures = "; ".join(
        f"{name} {describe(aligned)}, n = {aligned.n}"
        for name, aligned in (("validation", scored.validation), ("test", scored.test))
    )
    st.markdown(plain(f"Layer {layer}, token {token}: {role}. {capital(figures)}."))


def _draw_items(scored: ScoredCell, rows: FloatArray, name: str) -> None:
    at = [int(row) for row in rows if not np.isnan(scored.scores[int(row)])]
    items = [scored.golden.items[int(scored.positions[row])] for row in at]
    frame = pd.DataFrame(
        {
            "raters": [float(scored.labels[row]) for row in at],
            "projection": [float(scored.scores[row]) for row in at],
            "text": [item.target for item in items],
            "item": [item.item_id for item in items],
        }
    )
    columns = {"raters": Column(digits=2), "projection": Column(digits=2), "text": Column(width=290)}
    grid.draw(frame, columns, alt=name, rows=SHOWN, tall=True)
