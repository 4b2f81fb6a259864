"""Criteria: read a candidate whole, edit it by hand, and see the edit beside its parent."""

import streamlit as st

from core.errors import ConcordError
from core.jobs import tasks
from core.jobs.views import CriteriaSummary, RescoreRequest, RunSummary, RunView
from pages.components import criteria_view, items_view, live, run_view, state, tables
from pages.components.page import Opened, link_to, open_page, plain, stop_with

EVERY_RUN = ""


def choose_run(page: Opened) -> str:
    """The run whose candidates are listed; empty for all criteria of the project."""
    runs = {
        run.run_id: run for run in tasks.list_runs(page.store, page.project.project_id) if run.kind == "calibration"
    }
    options = [*runs, EVERY_RUN]
    wanted = state.url_id("run")
    if wanted not in options:
        linked = state.url_id("criteria") or state.url_id("rescore")
        wanted = EVERY_RUN if linked else next((run_id for run_id in runs if runs[run_id].status == "done"), options[0])
    run_id = st.selectbox(
        "Criteria of",
        options,
        index=options.index(wanted),
        format_func=lambda one: run_words(runs[one]) if one else "every run and every edit of this project",
    )
    state.put_in_url(run=run_id or None)
    return str(run_id)


def run_words(run: RunSummary) -> str:
    """Words that never change for a run: a choice is kept by its words."""
    return f"{run.title}, {run.created_at.astimezone():%d %b %H:%M:%S}"


def choose_criteria(listed: list[CriteriaSummary]) -> str:
    """The list, best first, and the id of the marked row."""
    ids = [one.criteria_id for one in listed]
    picked = state.picked_row(state.CANDIDATES, state.CANDIDATES_IDS)
    wanted = state.url_id("criteria")
    if picked not in ids or st.session_state.get(state.OPENED) != wanted:
        picked = wanted if wanted in ids else ids[0]
    state.put_in_url(criteria=picked)
    st.session_state[state.OPENED] = picked
    state.hold_row(state.CANDIDATES, state.CANDIDATES_IDS, ids, picked)
    frame = tables.criteria_frame(listed)
    st.dataframe(
        frame,
        key=state.CANDIDATES,
        on_select="rerun",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(picked)]}},
        hide_index=True,
        column_config=tables.alignment_columns(str(frame.columns[1])),
        row_height=tables.TALL_ROW,
        height=tables.height_for(len(ids), 4, tables.TALL_ROW),
        placeholder=tables.DASH,
        alt="Criteria, best first",
    )
    return picked


def open_edited(page: Opened, rescore_id: str) -> None:
    """A link to a re-scoring alone opens the edited criteria it was about."""
    try:
        request = run_view.read_run(page, rescore_id).request
    except ConcordError as error:
        stop_with("This re-scoring cannot be shown.", str(error))
    if isinstance(request, RescoreRequest):
        state.put_in_url(criteria=request.criteria_id)


def show_rescore(page: Opened, rescore_id: str) -> None:
    try:
        run_view.read_run(page, rescore_id)
    except ConcordError as error:
        st.error(plain(str(error)), title="This re-scoring cannot be shown", icon=":material/error:")
        return

    def draw(now: RunView) -> None:
        if now.status != "done":
            run_view.draw_status(page, now)
        criteria_view.draw_rescore(page, now)

    live.follow(lambda: run_view.read_run(page, rescore_id), lambda now: now.finished, draw)


def of_run(listed: list[CriteriaSummary], run_id: str) -> list[CriteriaSummary]:
    """Criteria that a run scored, and the edits that descend from them; all of them for no run."""
    kept = {one.criteria_id for one in listed if not run_id or any(a.run_id == run_id for a in one.alignments)}
    for one in sorted(listed, key=lambda criteria: criteria.created_at):
        if one.origin == "edit" and kept & set(one.parents):
            kept.add(one.criteria_id)
    return [one for one in listed if one.criteria_id in kept]


def show(page: Opened) -> None:
    rescore_id = state.url_id("rescore")
    if rescore_id and not state.url_id("criteria"):
        open_edited(page, rescore_id)
    run_id = choose_run(page)
    everything = tasks.list_criteria(page.store, page.project.project_id)
    listed = tables.best_first(of_run(everything, run_id))
    if not listed:
        st.info("No criteria yet: a calibration drafts them, or its drafting has just begun.", icon=":material/rule:")
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return
    picked = choose_criteria(listed)
    try:
        view = tasks.get_criteria(page.store, page.project.project_id, picked)
    except ConcordError as error:
        stop_with("These criteria cannot be shown.", str(error))
    if rescore_id:
        show_rescore(page, rescore_id)
    left, right = st.columns(2, gap="large")
    with left:
        criteria_view.draw_whole(page, view)
        if not rescore_id:
            criteria_view.draw_parent_diff(page, view)
    with right:
        criteria_view.edit_form(page, view, run_id or None)
    items_view.draw_items(page, view)


show(
    open_page(
        "criteria",
        intro="The scoring rules that a judge follows: read them whole, edit them, and measure the edit.",
    )
)
