"""Criteria: read a version whole, comment, edit by hand and measure the edit, compare versions, meet, sign off."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.kinds import RunDetail
from core.projects.rescore import RescoreRequest
from pages.components import (
    criteria_list,
    criteria_view,
    items_view,
    live,
    meeting_start,
    meeting_view,
    review_view,
    run_view,
    state,
    tables,
    versions_view,
)
from pages.components.page import Opened, link_to, open_page, stop_with
from pages.components.screens import plain

SOON = 0.3
"""Seconds between two looks at a re-scoring: an offline judge is done within two."""
READ, VERSIONS, MEETING = VIEWS = ("Read & edit", "Versions", "Meeting")


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

    def draw(now: RunDetail) -> None:
        if now.status != "done":
            run_view.draw_status(page, now)
        criteria_view.draw_rescore(page, now)

    live.follow(lambda: run_view.read_run(page, rescore_id), lambda now: now.finished, draw, every=SOON)


def choose_view() -> str:
    """Which part of the screen; a link to a meeting, or to other criteria, opens the part that shows it."""
    view = st.session_state.get(state.CRITERIA_VIEW) or READ
    moved = state.url_id("criteria") != st.session_state.get(state.OPENED)
    if state.url_id("meeting"):
        view = MEETING
    elif view == MEETING or moved or state.url_id("rescore"):
        view = READ
    st.session_state[state.CRITERIA_VIEW] = view
    st.segmented_control(
        "Part of the screen",
        VIEWS,
        key=state.CRITERIA_VIEW,
        label_visibility="collapsed",
        on_change=switch_view,
        required=True,
    )
    return view


def switch_view() -> None:
    meeting = st.session_state[state.CRITERIA_VIEW] == MEETING
    state.put_in_url(meeting=meeting_start.NEW if meeting else None, rescore=None)


def show(page: Opened) -> None:
    if meeting_view.is_open():
        meeting_view.draw(page)
        return
    part = choose_view()
    if part == MEETING:
        meeting_view.draw(page)
        return
    rescore_id = state.url_id("rescore")
    if rescore_id and not state.url_id("criteria"):
        open_edited(page, rescore_id)
    run_id = criteria_list.choose_run(page)
    everything = projects.list_criteria(page.store, page.project.project_id)
    entries = tables.best_first(criteria_list.of_run(everything, run_id))
    if not entries:
        st.info("No criteria yet: a calibration drafts them, or its drafting has just begun.", icon=":material/rule:")
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return
    picked = criteria_list.named_in_url(entries) if part == VERSIONS else criteria_list.choose_criteria(page, entries)
    try:
        view = projects.get_criteria(page.store, page.project.project_id, picked)
    except ConcordError as error:
        stop_with("These criteria cannot be shown.", str(error))
    if part == VERSIONS:
        versions_view.draw(page, view)
    else:
        read_and_edit(page, view, run_id, rescore_id)


def read_and_edit(page: Opened, view: CriteriaEntry, run_id: str, rescore_id: str | None) -> None:
    review = projects.review_of(page.store, page.project.project_id, view.criteria_id)
    if rescore_id:
        show_rescore(page, rescore_id)
    left, right = st.columns(2, gap="large")
    with left:
        criteria_view.draw_whole(page, view, review)
        review_view.draw_comments(page, view, review)
    with right:
        review_view.draw_sign_off(page, view, review)
        criteria_view.edit_form(page, view, run_id or None)
        versions_view.draw_copy(page, view)
    criteria_view.draw_made_from(page, view)
    items_view.draw_items(page, view)


show(
    open_page(
        "criteria",
        intro=""
        if state.url_id("meeting")
        else "The scoring rules that a judge follows: read, edit, measure, sign off.",
    )
)
