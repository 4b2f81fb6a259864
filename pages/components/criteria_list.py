"""Which criteria are looked at: of a run, best first, with the state that people gave them."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.project_records import CriteriaEntry, Run
from pages.components import state, tables
from pages.components.chosen import distinct
from pages.components.page import Opened

EVERY_RUN = ""


def choose_run(page: Opened) -> str:
    """The run whose candidates are listed; empty for all criteria of the project."""
    runs = {
        run.run_id: run for run in projects.list_runs(page.store, page.project.project_id) if run.kind == "calibration"
    }
    options = [*runs, EVERY_RUN]
    wanted = state.url_id("run")
    if wanted not in options:
        linked = state.url_id("criteria") or state.url_id("rescore")
        wanted = EVERY_RUN if linked else next((run_id for run_id in runs if runs[run_id].status == "done"), options[0])
    words = distinct({run_id: run_words(run) for run_id, run in runs.items()})
    run_id = st.selectbox(
        "Criteria of",
        options,
        index=options.index(wanted),
        format_func=lambda run_id: words.get(run_id, "every run and every edit of this project"),
    )
    state.put_in_url(run=run_id or None)
    return str(run_id)


def run_words(run: Run) -> str:
    """Words that never change for a run: a choice is kept by its words."""
    return f"{run.title}, {run.created_at.astimezone():%d %b %H:%M:%S}"


def choose_criteria(page: Opened, entries: list[CriteriaEntry]) -> str:
    """The list, best first, with what people decided; gives the id of the marked row."""
    ids = [entry.criteria_id for entry in entries]
    picked = state.picked_row(state.CANDIDATES, state.CANDIDATES_IDS)
    wanted = state.url_id("criteria")
    if picked not in ids or st.session_state.get(state.OPENED) != wanted:
        picked = wanted if wanted in ids else ids[0]
    state.put_in_url(criteria=picked)
    st.session_state[state.OPENED] = picked
    state.hold_row(state.CANDIDATES, state.CANDIDATES_IDS, ids, picked)
    frame = tables.criteria_frame(entries)
    reviews = projects.list_reviews(page.store, page.project.project_id)
    frame.insert(4, "state", [reviews[criteria_id].state if criteria_id in reviews else "draft" for criteria_id in ids])
    st.dataframe(
        frame,
        key=state.CANDIDATES,
        on_select="rerun",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(picked)]}},
        hide_index=True,
        column_config=tables.alignment_columns(str(frame.columns[1])),
        row_height=tables.TALL_ROW,
        height=tables.height_for(len(ids), 3, tables.TALL_ROW),
        placeholder=tables.DASH,
        alt="Criteria, best first",
    )
    return picked


def named_in_url(entries: list[CriteriaEntry]) -> str:
    """The id in the URL where the list has it, else the best; for a screen that shows no list."""
    ids = [entry.criteria_id for entry in entries]
    wanted = state.url_id("criteria")
    picked = wanted if wanted in ids else ids[0]
    state.put_in_url(criteria=picked)
    st.session_state[state.OPENED] = picked
    return picked


def of_run(entries: list[CriteriaEntry], run_id: str) -> list[CriteriaEntry]:
    """Criteria that a run scored, and what people and rounds made from them since; all of them for no run."""
    kept = {entry.criteria_id for entry in entries if not run_id or any(a.run_id == run_id for a in entry.alignments)}
    for entry in sorted(entries, key=lambda entry: entry.created_at):
        if entry.origin in ("edit", "refine") and kept & set(entry.parents):
            kept.add(entry.criteria_id)
    return [entry for entry in entries if entry.criteria_id in kept]
