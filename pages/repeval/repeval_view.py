"""A RepEval run on screen: progress, the result in words, the heat map to click, and what stands behind it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import Run
from core.projects.repeval_runs import METHOD_NAMES, RepEvalOutcome, RepEvalRequest
from core.projects.run_kinds import RunDetail
from core.repeval import EMBEDDED
from core.repeval.records import RepEvalResult
from core.report.figures import describe, measure_name
from core.report.figures.heat_maps import Heat, Place, layers_figure
from core.report.figures.whiskers import random_figure
from core.wording import number, percent
from pages.repeval import heat as heat_map
from pages.repeval import repeval_cell
from pages.ui import charts, grid, run_panel, state
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

LAYERS, CELL, RANDOM, RUNS = SECTIONS = (
    "Over layers",
    "Cell by cell",
    "Against random directions",
    "Settings of all runs",
)
SECTION = state.widget("repeval_section")
TOKEN_WORDS = {"first": "the first token", "mean": "the mean over all tokens", "-1": "the last token"}
MOST_RUNS = 12


def measure_of(result: RepEvalResult) -> str:
    return measure_name(result.settings.measure.statistic, result.settings.measure.level)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def runs_of(page: Opened, golden_id: str) -> list[Run]:
    """RepEval runs on a golden set, newest first."""
    runs = projects.list_runs(page.store, page.project.project_id)
    return [run for run in runs if run.kind == "repeval" and run.golden_id == golden_id]


def draw_status(page: Opened, view: RunDetail) -> None:
    """A run without a result: how far it is, how fast, or why it stopped; with the way to cancel or go on."""
    went = run_panel.ENDED_WITHOUT.get(view.status)
    finding(
        f"RepEval of {view.aspect} {went} before it had a result."
        if went
        else f"Reading hidden states for {view.aspect}: the map appears here when the texts are read."
    )
    run_panel.draw_status(page, view)
    if not view.finished:
        st.caption("You can close this tab. The run continues.")


# ── the result ───────────────────────────────────────────────────────────────────────────────────────────────


def draw_result(page: Opened, view: RunDetail, outcome: RepEvalOutcome) -> None:
    """The finding in a sentence, the map; the cell looked at and the rest behind sections."""
    result = outcome.result
    finding(sentence(result), step=lambda: _draw_next(view))
    st.caption(plain(_measured(result)))
    picked = repeval_cell.picked(view, result)
    heat = Heat.of(result, picked)
    heat_map.draw(
        heat,
        measure=measure_of(result),
        alt="Validation alignment by layer and token",
        key=f"repeval_heat_{view.run_id}",
        on_pick=lambda place: _look_into(view.run_id, place),
    )
    if outcome.result.scorer is not None:
        _draw_file(page, view, outcome.result)
    st.session_state.setdefault(SECTION, LAYERS)
    section = st.segmented_control("More", SECTIONS, required=True, key=SECTION, label_visibility="collapsed")
    if section == CELL:
        repeval_cell.draw(page, view, result, picked)
        return
    repeval_cell.hold(view.run_id, picked)
    if section == RANDOM:
        _draw_random(result)
    elif section == RUNS:
        draw_settings(page, view)
    else:
        _place(layers_figure(heat, measure=measure_of(result)), "layers", "Validation alignment over layers")


def _draw_file(page: Opened, view: RunDetail, result: RepEvalResult) -> None:
    """The score as a file, and the command that rates other items with it."""
    try:
        text = _file(page, view.run_id)
    except ConcordError as error:
        st.caption(plain(f"There is no repeval.yaml of this run: {error}"))
        return
    named = "" if result.model == EMBEDDED else f" --judge {shlex.quote(f'hf:{result.model}')}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.download_button(
            "Download repeval.yaml",
            data=text,
            file_name="repeval.yaml",
            mime="application/yaml",
            icon=":material/download:",
            on_click="ignore",
            help="Rates other items; Compare takes it as a judge on another golden set.",
        )
        st.code(f"python -m core score ITEMS --judge-file repeval.yaml{named} --out verdicts.jsonl", language="bash")


@st.cache_resource(max_entries=8, show_spinner=False)
def _file(_page: Opened, run_id: str) -> str:
    return projects.repeval_file(_page.store, run_id)


def _look_into(run_id: str, place: Place) -> None:
    """A cell picked on the map is opened below it."""
    repeval_cell.hold(run_id, place)
    st.session_state[SECTION] = CELL


def sentence(result: RepEvalResult) -> str:
    """Test alignment and where it is read."""
    if result.test.value is None:
        return f"Hidden states have no defined agreement with raters on test items: {result.test.reason}."
    return f"Agreement of hidden states with raters: {number(result.test.value)}. Best place: {place_words(result)}."


def place_words(result: RepEvalResult) -> str:
    """The best cell in words: "layer 4 of 6, the mean over all tokens"."""
    return f"layer {result.chosen.layer} of {max(result.layers)}, {token_words(result.chosen.token)}"


def token_words(token: str) -> str:
    """A token of the map in words."""
    part, compared, own = token.rpartition(":")
    if compared:
        return f"the distance from the {part} at {token_words(own)}"
    if token in TOKEN_WORDS:
        return TOKEN_WORDS[token]
    return (
        f"the token {-int(token)} from the end" if token.startswith("-") and token[1:].isdigit() else f"token {token}"
    )


def _measured(result: RepEvalResult) -> str:
    """What the figure is, what is optimistic, and how to read the map."""
    n, test = len(result.members), result.test
    what = f"the mean of the {n} best cells" if n > 1 else "the best cell"
    words = (
        f"{measure_of(result)}, test, n = {test.n:,}, 95 % interval; {what}, {METHOD_NAMES[result.settings.method]}."
    )
    if result.optimism is not None:
        folds = " fold by fold" if result.by_folds else ""
        words += f" Validation, on which layer and token were chosen{folds}: {describe(result.validation)}."
    if result.random is not None and result.random.percentile is not None:
        words += f" The best cell is above {percent(result.random.percentile / 100)} of random projections there."
    reading = "The map: validation alignment of every cell. Thick frame: the best. Dashed: in the mean. Click one."
    return " ".join((words, *result.warnings, reading))


def _draw_next(view: RunDetail) -> None:
    beside = {"golden": view.golden_id, "aspect": view.aspect}
    link_to("compare", "Compare it with other judges", icon=":material/leaderboard:", **beside)


def _draw_random(result: RepEvalResult) -> None:
    random = result.random
    if random is None:
        st.info("This run drew no random directions.", icon=":material/casino:")
        return
    _place(
        random_figure(random.values, random.flipped, random.projection, measure=measure_of(result)),
        "random",
        "Random directions next to the projection",
    )
    if random.percentile is None:
        st.markdown("The projection has no defined test alignment in the best cell, so it has no place among them.")
        return
    turned = "—" if random.percentile_flipped is None else f"{random.percentile_flipped:.1f} %"
    st.markdown(
        plain(
            f"In the best cell ({_cell_words(result)}), the projection lies above {random.percentile:.1f} % of "
            f"{random.values.size:,} random directions, and above {turned} of the same ones turned so that the good "
            f"texts of most training pairs project higher. Test items, n = {result.test.n}; a box holds the middle "
            "half, the whiskers 95 %."
        )
    )


def draw_settings(page: Opened, view: RunDetail) -> None:
    """What each RepEval run on this golden set chose, in the columns of the paper's table."""
    rows = []
    for run in [past for past in runs_of(page, view.golden_id) if past.status == "done"][:MOST_RUNS]:
        whole = run_panel.read_run(page, run.run_id)
        if isinstance(whole.outcome, RepEvalOutcome) and isinstance(whole.request, RepEvalRequest):
            rows.append(_settings_row(whole.request, whole.outcome.result))
    grid.draw(pd.DataFrame(rows), alt="Settings of RepEval runs")


def _settings_row(request: RepEvalRequest, result: RepEvalResult) -> dict[str, object]:
    extraction = request.settings.read(request.aspect)
    read = extraction.template[:60] or "the text alone"
    compared = extraction.texts == "compared"
    return {
        "criterion": result.aspect,
        "method": METHOD_NAMES[result.settings.method],
        "pairs": result.n_pairs or None,
        "prompt": "the text and its distances" if compared else read,
        "k": result.chosen.k,
        "layer": result.chosen.layer,
        "token": result.chosen.token,
        "cells averaged": len(result.members),
        "test": describe(result.test),
        "n": result.test.n,
        "validation": result.validation.value,
        "model": result.model,
    }


def _cell_words(result: RepEvalResult) -> str:
    k = f", k {result.chosen.k}" if result.chosen.k else ""
    return f"layer {result.chosen.layer}, token {result.chosen.token}{k}"


def _value(value: float | None) -> str:
    return number(value)


def _place(figure: Drawing, key: str, alt: str) -> None:
    charts.place(figure, key=f"repeval_{key}_figure", alt=alt)
