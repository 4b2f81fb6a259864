"""Criteria screen: edit criteria and see the effect, compare versions, and review."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.criteria import (
    criteria_edit,
    criteria_effect,
    criteria_judge,
    criteria_list,
    criteria_text,
    versions_view,
)
from pages.review import review
from pages.ui import run_panel, state
from pages.ui.page import Opened, finding, link_to, open_page, stop_with
from pages.ui.screens import plain

SECTIONS = {None: "Edit", "versions": "Versions", review.SECTION: "Review"}


def choose_section() -> str | None:
    """Let the user choose a section, and return the section in the URL; None means the first section."""
    section = state.url_id("section") if state.url_id("section") in SECTIONS else None
    key = state.CRITERIA_VIEW
    st.session_state[key] = SECTIONS[section]

    def switch() -> None:
        chosen = next(name for name, label in SECTIONS.items() if label == st.session_state[key])
        state.put_in_url(section=chosen, rescore=None, edit=None)

    st.segmented_control(
        "Section",
        list(SECTIONS.values()),
        key=key,
        label_visibility="collapsed",
        on_change=state.when_changed(key, switch),
        required=True,
    )
    return section


def show(page: Opened) -> None:
    section = review.SECTION if review.is_open() else None
    if section is None and page.store.goldens.all(page.project.project_id):
        section = choose_section()
    if section == review.SECTION:
        review.draw(page)
        return
    if (run_id := state.url_id("rescore")) and state.url_id("criteria") is None:  # a link with a run but no criteria
        try:
            linked = getattr(run_panel.read_run(page, run_id).request, "criteria_id", None)
        except ConcordError as error:
            stop_with("Concord can't show this run.", str(error))
        state.put_in_url(criteria=linked)
    run = criteria_effect.run_of(page, state.url_id("rescore"))  # before the criteria, which it measures
    entries = criteria_list.choose(page)
    if not entries:
        st.info("No criteria yet. Run a calibration to draft some.", icon=":material/rule:")
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return
    opened = next(entry for entry in entries if entry.criteria_id == state.url_id("criteria"))
    names = projects.criteria_names(page.store, page.project.project_id, opened.aspect)
    if section == "versions":
        versions_view.draw(page, opened, names)
        return
    rescore_id = criteria_effect.rescore_of(page, opened)
    if run is None or run.run_id != rescore_id:
        run = criteria_effect.run_of(page, rescore_id)
    edit, scoring = (None, False) if run is None else (run.outcome, not run.finished)
    raises = criteria_list.claim_of(edit) == "higher"
    finding(criteria_list.finding(opened, names, edit), step=lambda: criteria_judge.draw(page, opened, raises=raises))
    st.caption(plain(criteria_list.measured_on(opened, entries, edit, scoring=scoring)))
    left, right = st.columns(2, gap="medium")
    beside, conflict = right.container(key="effect"), False
    with left, st.container(border=True):
        criteria_text.draw_head(page, opened, names[opened.criteria_id])
        if state.url_id("edit"):
            conflict = criteria_edit.draw_form(page, opened, beside)
        else:
            criteria_text.draw_lines(opened.text)
            st.caption(plain(criteria_text.origin_words(opened)))
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                criteria_edit.draw_edit_button(page, opened, primary=not (raises or scoring))
    if not conflict:
        said = projects.criteria_references(page.store, page.project.project_id, opened.aspect)
        with beside:
            criteria_effect.draw(page, opened, said, rescore_id, scoring=scoring)
    criteria_list.draw(page, entries, names)
    key = state.widget("criteria_origin")
    part = st.expander("Origin of these criteria", icon=":material/history:", key=key, on_change="rerun")
    if part.open:
        with part:
            criteria_text.draw_origin(page, opened)
            criteria_edit.draw_restore(page, opened)


show(open_page("criteria"))
