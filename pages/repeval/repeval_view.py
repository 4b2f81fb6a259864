"""Draw a RepEval run: progress, finding, heat map, scores compared with labels, and the download button."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.method_runs import METHOD_NAMES, RepEvalOutcome
from core.projects.start_and_resume import RunDetail
from core.records import GoldenSet
from core.repeval import EMBEDDED
from core.repeval.search import RepEvalResult
from core.report.figures import describe, measure_name
from core.report.figures.curves import scatter_figure
from core.report.figures.heat_map import Heat, heat_figure
from core.wording import capital, number
from pages.ui import charts, grid, run_panel, state
from pages.ui.grid import Column
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

MAP, DETAILS = SECTIONS = ("Map", "Details")
SECTION = state.widget("repeval_section")
SHOWN = 3
TOKEN_WORDS = {"first": "the first token", "mean": "the mean over all tokens", "-1": "the last token"}


def draw_status(page: Opened, view: RunDetail) -> None:
    """Draw a run without a result: its progress or why it stopped, with buttons to cancel or resume."""
    went = run_panel.ENDED_WITHOUT.get(view.status)
    finding(
        f"RepEval for {view.aspect} {went} before it produced a result."
        if went
        else f"Reading hidden states for {view.aspect}. The map appears here when all texts have been read."
    )
    run_panel.draw_status(page, view)
    if not view.finished:
        st.caption("You can close this tab. The run continues.")


def draw_result(page: Opened, view: RunDetail, outcome: RepEvalOutcome) -> None:
    """Draw the finding of a RepEval run, and below it the heat map or the details, as the user chose."""
    result, test = outcome.result, outcome.result.test
    n, measure = len(result.members), measure_name(result.settings.measure.statistic, result.settings.measure.level)
    about = {"golden": view.golden_id, "aspect": view.aspect}
    words = "Agreement between hidden states and raters is undefined on the test items."
    if test.value is not None:
        words = f"Agreement between hidden states and raters: {number(test.value)}."
    finding(
        words,
        step=lambda: link_to("compare", "Compare with other judges", icon=":material/leaderboard:", **about),
    )
    what = f"the mean of the {n} best cells" if n > 1 else "the best cell"
    notes = [f"{measure}, {describe(test)}, n = {test.n:,} test items: {what}, {METHOD_NAMES[result.settings.method]}."]
    if test.value is None:
        notes.insert(0, f"{capital(test.reason)}.")
    best = f"layer {result.chosen.layer} of {max(result.layers)}, {token_words(result.chosen.token)}"
    st.caption(plain(" ".join([*notes, f"Best cell: {best}.", *result.warnings])))
    st.session_state.setdefault(SECTION, MAP)
    section = st.segmented_control("More", SECTIONS, required=True, key=SECTION, label_visibility="collapsed")
    if section == DETAILS:
        _draw_scores(page.store.goldens.load(view.golden_id), result)
        _draw_random(result, measure)
        return
    figure = heat_figure(Heat.of(result), measure=measure)
    charts.place(figure, key="repeval_heat", alt="Agreement on the validation set by layer and token")
    st.caption("Agreement on the validation set. A thick frame marks the best cell. Grey cells are undefined.")
    if result.scorer is not None:
        _draw_file(page, view, result)


def _draw_file(page: Opened, view: RunDetail, result: RepEvalResult) -> None:
    """Draw the download of the file, and the command that scores other items with it."""
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
            help=(
                "Use this file to score other items. On the Compare page, you can also add it as a judge for "
                "another golden set."
            ),
        )
        st.code(
            f"python -m core score ITEMS --judge-file repeval.yaml{named} --out verdicts.jsonl", "bash", wrap_lines=True
        )


@st.cache_resource(max_entries=8, show_spinner=False)
def _file(_page: Opened, run_id: str) -> str:
    return projects.repeval_file(_page.store, run_id)


def token_words(token: str) -> str:
    """Return the words for a token, such as "token 2 from the end"."""
    part, compared, own = token.rpartition(":")
    if compared:
        return f"the distance from the {part} at {token_words(own)}"
    if token in TOKEN_WORDS:
        return TOKEN_WORDS[token]
    from_end = token.startswith("-") and token[1:].isdigit()
    return f"token {token[1:]} from the end" if from_end else f"token {token}"


def _draw_scores(golden: GoldenSet, result: RepEvalResult) -> None:
    """Draw the scores of test items compared with the labels, and the items with the highest and lowest scores."""
    at = np.array([k for k in result.parts.test if not np.isnan(result.scores[k])], dtype=np.intp)
    labels, scores = golden.labels(result.aspect)[at], result.scores[at]
    figure = scatter_figure(labels, scores, scale=golden.aspects[result.aspect].scale, of="score")
    with st.columns(2)[0]:  # a figure of half the width
        charts.place(figure, key="repeval_scores", alt="Scores of the test items compared with the raters' labels")
    order = np.argsort(scores, kind="stable")
    ends = {"Highest-scoring test items": order[::-1][:SHOWN], "Lowest-scoring test items": order[:SHOWN]}
    for column, (name, rows) in zip(st.columns(2, gap="medium"), ends.items(), strict=True):
        items = [golden.items[k] for k in at[rows]]
        frame = pd.DataFrame(
            {
                "raters": labels[rows],
                "score": scores[rows],
                "text": [item.target for item in items],
                "item": [item.item_id for item in items],
            }
        )
        with column:
            st.markdown(f"**{name}**")
            columns = {"raters": Column(digits=2), "score": Column(digits=2), "text": Column(width=290)}
            grid.draw(frame, columns, alt=name, rows=SHOWN, tall=True)


def _draw_random(result: RepEvalResult, measure: str) -> None:
    """Draw how the projection compares with random directions and with its validation."""
    st.subheader("Compared with random directions", anchor=False)
    if result.optimism is not None:
        where = "on the same items" if result.settings.uses_pairs else "separately in each fold"
        chose = (
            f"Agreement on the validation set, with the layer and token chosen {where}: {describe(result.validation)}."
        )
        st.caption(plain(chose))
    random = result.random
    if random is None:
        st.info("This run didn't draw any random directions.", icon=":material/casino:")
        return
    if random.percentile is None:
        st.markdown(
            "The agreement of the best cell's projection is undefined, so Concord can't compare it with random "
            "directions."
        )
        return
    median = number(float(np.nanmedian(random.values)))
    st.markdown(
        plain(
            f"In the best cell, the projection agrees with raters better than {random.percentile:.1f} % of "
            f"{random.values.size:,} random directions do (median {median}). Test items, n = {result.test.n}."
        )
    )
