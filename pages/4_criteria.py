"""Criteria: one text and what its edit changed, the others in order; try it on an item, compare versions, review."""

from collections.abc import Mapping

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.criteria import Review
from pages.criteria import (
    comments_view,
    criteria_edit,
    criteria_effect,
    criteria_judge,
    criteria_list,
    criteria_names,
    criteria_try,
    criteria_view,
    items_view,
    versions_view,
)
from pages.review import review as review_screen
from pages.ui import state, tables
from pages.ui.page import Opened, finding, link_to, open_page, stop_with
from pages.ui.screens import plain

READ, TRY, VERSIONS, REVIEW = VIEWS = ("Read & edit", "Try on an item", "Versions", "Review")
TRYING = "try"
ITEMS, ORIGIN = MORE = ("Item by item", "Where it comes from")
SECTION = state.widget("criteria_section")


def choose_view() -> str:
    """Which part of the screen; a link to the review, a trial or other criteria opens the part that shows it."""
    view = st.session_state.get(state.CRITERIA_VIEW) or READ
    moved = state.url_id("criteria") != st.session_state.get(state.OPENED)
    if state.url_id("section") == review_screen.SECTION:
        view = REVIEW
    elif state.url_id("trial") or state.url_id("section") == TRYING:
        view = TRY
    elif view in (REVIEW, TRY) or moved or state.url_id("rescore"):
        view = READ
    st.session_state[state.CRITERIA_VIEW] = view
    st.segmented_control(
        "Part of the screen",
        VIEWS,
        key=state.CRITERIA_VIEW,
        label_visibility="collapsed",
        on_change=state.when_changed(state.CRITERIA_VIEW, switch_view),
        required=True,
    )
    return view


def switch_view() -> None:
    view = st.session_state[state.CRITERIA_VIEW]
    section = {REVIEW: review_screen.SECTION, TRY: TRYING}.get(view)
    state.put_in_url(section=section, rescore=None, trial=None, edit=None)


def open_linked() -> None:
    """A link to a re-scoring or a trial alone opens the criteria that it was about."""
    if state.url_id("criteria"):
        return
    rescore_id, trial_id = state.url_id("rescore"), state.url_id("trial")
    try:
        linked = criteria_effect.edited_in(page, rescore_id) if rescore_id else None
    except ConcordError as error:
        stop_with("This re-scoring cannot be shown.", str(error))
    linked = linked or (criteria_try.criteria_tried(page, trial_id) if trial_id else None)
    if linked:
        state.put_in_url(criteria=linked)


def show(page: Opened) -> None:
    if review_screen.is_open() or (part := choose_view()) == REVIEW:
        review_screen.draw(page)
        return
    open_linked()
    everything = page.store.criteria.all(page.project.project_id)
    run_id = criteria_list.wanted_run(page)
    entries = tables.best_first(criteria_list.of_run(everything, run_id))
    if not entries:
        st.info("No criteria yet: a calibration drafts them, or its drafting has just begun.", icon=":material/rule:")
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return
    picked = criteria_list.opened_in_list(entries)
    view = next(entry for entry in entries if entry.criteria_id == picked)
    names = criteria_names.names_of(page, view.aspect)
    if part == VERSIONS:
        versions_view.draw(page, view)
    elif part == TRY:
        criteria_try.draw(page, view, names[picked], run_id)
    else:
        read_and_edit(page, view, entries, names)


def read_and_edit(page: Opened, view: CriteriaEntry, entries: list[CriteriaEntry], names: Mapping[str, str]) -> None:
    """One text, its effect beside it, the others below; the rest behind a press."""
    review = projects.review_of(page.store, page.project.project_id, view.criteria_id)
    rescore_id = criteria_effect.rescore_of(page, view, state.url_id("rescore"))
    finding(criteria_list.finding(view, entries, names), step=lambda: criteria_judge.draw_make_judge(page, view))
    scoring = criteria_effect.is_scoring(page, rescore_id)
    st.caption(plain(criteria_list.measured_on(view, scoring=scoring)))
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        draw_text(page, view, review, names[view.criteria_id])
    with right, st.container(key="effect"):
        criteria_effect.draw(page, view, names, rescore_id)
        comments_view.draw_comments(page, view, review)
    criteria_list.choose_run(page, view)
    criteria_list.draw_list(page, entries, names, view.criteria_id)
    draw_more(page, view, rescore_id)


def draw_text(page: Opened, view: CriteriaEntry, review: Review, name: str) -> None:
    """The text, to be read or, after a press, edited in its place."""
    criteria_view.draw_head(page, view, review, name)
    if criteria_edit.is_open(page, view):
        criteria_edit.draw_form(page, view, state.url_id("run"))
        return
    criteria_view.draw_lines(view.text, review)
    st.caption(plain(criteria_view.origin_words(view)))
    with st.container(horizontal=True, gap="small"):
        criteria_edit.draw_way_in(page, view)
        comments_view.draw_comment_form(page, view)
        comments_view.draw_lock(page, view, review)


def draw_more(page: Opened, view: CriteriaEntry, rescore_id: str | None) -> None:
    """What is read now and then: the items one by one, the history."""
    section = st.segmented_control("More", MORE, key=SECTION, label_visibility="collapsed")
    if section == ITEMS:
        criteria_effect.draw_changed(criteria_effect.effect_of(page, view, rescore_id))
        items_view.draw_items(page, view)
    elif section == ORIGIN:
        criteria_view.draw_origin(page, view)
        with st.container(horizontal=True):
            criteria_edit.draw_restore(page, view)


page = open_page("criteria")
show(page)
