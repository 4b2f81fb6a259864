"""A RepEval run on screen: progress, the result in words, the heat map to click, and what stands behind it."""

from __future__ import annotations

import shlex

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.method_runs import METHOD_NAMES, RepEvalOutcome
from core.projects.run_work import RunDetail
from core.repeval import EMBEDDED
from core.repeval.search import RepEvalResult
from core.report.figures import describe, measure_name
from core.report.figures.heat_maps import Heat, Place
from core.report.figures.whiskers import random_figure
from core.wording import number, percent
from pages.repeval import heat as heat_map
from pages.repeval import repeval_cell
from pages.ui import charts, run_panel, state
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

CELL, RANDOM = SECTIONS = ("Cell by cell", "Against random directions")
SECTION = state.widget("repeval_section")
TOKEN_WORDS = {"first": "the first token", "mean": "the mean over all tokens", "-1": "the last token"}


def draw_status(page: Opened, view: RunDetail) -> None:
    """Draw a run without a result: how far it is or why it stopped, with the way to cancel or resume."""
    went = run_panel.ENDED_WITHOUT.get(view.status)
    finding(
        f"RepEval of {view.aspect} {went} before it had a result."
        if went
        else f"Reading hidden states for {view.aspect}: the map appears here when the texts are read."
    )
    run_panel.draw_status(page, view)
    if not view.finished:
        st.caption("You can close this tab. The run continues.")


def draw_result(page: Opened, view: RunDetail, outcome: RepEvalOutcome) -> None:
    """Draw the finding, the map, the file of the score, and the section that was chosen."""
    result = outcome.result
    test, n = result.test, len(result.members)
    measure = measure_name(result.settings.measure.statistic, result.settings.measure.level)
    about = {"golden": view.golden_id, "aspect": view.aspect}
    words = f"Hidden states have no defined agreement with raters on test items: {test.reason}."
    if test.value is not None:
        place = f"layer {result.chosen.layer} of {max(result.layers)}, {token_words(result.chosen.token)}"
        words = f"Agreement of hidden states with raters: {number(test.value)}. Best place: {place}."
    finding(
        words,
        step=lambda: link_to("compare", "Compare it with other judges", icon=":material/leaderboard:", **about),
    )
    what = f"the mean of the {n} best cells" if n > 1 else "the best cell"
    notes = [f"{measure}, test, n = {test.n:,}, 95 % interval; {what}, {METHOD_NAMES[result.settings.method]}."]
    if result.optimism is not None:
        folds = " fold by fold" if result.by_folds else ""
        notes.append(f"Validation, on which layer and token were chosen{folds}: {describe(result.validation)}.")
    if result.random is not None and result.random.percentile is not None:
        above = percent(result.random.percentile / 100)
        notes.append(f"The best cell is above {above} of random projections there.")
    notes += result.warnings
    notes.append("The map: validation alignment of every cell. Thick frame: the best. Dashed: in the mean. Click one.")
    st.caption(plain(" ".join(notes)))
    picked = repeval_cell.picked(view, result)
    heat = Heat.of(result, picked)

    def look_into(place: Place) -> None:
        repeval_cell.hold(view.run_id, place)
        st.session_state[SECTION] = CELL

    key, alt = f"repeval_heat_{view.run_id}", "Validation alignment by layer and token"
    heat_map.draw(heat, measure=measure, alt=alt, key=key, on_pick=look_into)
    if result.scorer is not None:
        _draw_file(page, view, result)
    st.session_state.setdefault(SECTION, CELL)
    section = st.segmented_control("More", SECTIONS, required=True, key=SECTION, label_visibility="collapsed")
    if section == CELL:
        repeval_cell.draw(page, view, result, picked)
        return
    repeval_cell.hold(view.run_id, picked)
    _draw_random(result, measure)


def _draw_file(page: Opened, view: RunDetail, result: RepEvalResult) -> None:
    """Draw the score as a file, and the command that rates other items with it."""
    try:
        text = _file(page, view.run_id)
    except ConcordError as error:
        st.caption(plain(f"This run has no repeval.yaml: {error}"))
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
            help="Rates other items. Compare takes it as a judge on another golden set.",
        )
        st.code(f"python -m core score ITEMS --judge-file repeval.yaml{named} --out verdicts.jsonl", language="bash")


@st.cache_resource(max_entries=8, show_spinner=False)
def _file(_page: Opened, run_id: str) -> str:
    return projects.repeval_file(_page.store, run_id)


def token_words(token: str) -> str:
    """A token of the map in words."""
    part, compared, own = token.rpartition(":")
    if compared:
        return f"the distance from the {part} at {token_words(own)}"
    if token in TOKEN_WORDS:
        return TOKEN_WORDS[token]
    from_end = token.startswith("-") and token[1:].isdigit()
    return f"the token {token[1:]} from the end" if from_end else f"token {token}"


def _draw_random(result: RepEvalResult, measure: str) -> None:
    random = result.random
    if random is None:
        st.info("This run drew no random directions.", icon=":material/casino:")
        return
    figure = random_figure(random.values, random.projection, measure=measure)
    charts.place(figure, key="repeval_random_figure", alt="Random directions next to the projection")
    if random.percentile is None:
        st.markdown("The projection has no defined test alignment in the best cell, so it has no place among them.")
        return
    st.markdown(
        plain(
            f"In the best cell, the projection lies above {random.percentile:.1f} % of {random.values.size:,} random "
            f"directions. Test items, n = {result.test.n}; a box holds the middle half, the whiskers 95 %."
        )
    )
