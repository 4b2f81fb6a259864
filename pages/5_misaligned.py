"""Misaligned screen: items on which judge and raters disagree, their triage, and refinement rounds."""

import streamlit as st

from core.errors import ConcordError
from pages.label import label_blind
from pages.misaligned import (
    misaligned_filters,
    misaligned_list,
    misaligned_selection,
    misaligned_view,
    rounds_view,
)
from pages.ui import state
from pages.ui.page import Opened, open_page, stop_with

ITEMS, LIST, ROUNDS = SECTIONS = ("Items", "List", "Rounds")


def choose_section() -> str:
    """Let the user choose a section, and return the chosen section. The URL keeps the choice."""
    linked = (state.url_id("section") or "").capitalize()
    section = ROUNDS if state.url_id("round") else linked if linked in SECTIONS else ITEMS
    key = state.MISALIGNED_VIEW
    st.session_state[key] = section

    def switch() -> None:
        chosen = str(st.session_state[key])
        state.put_in_url(section=None if chosen == ITEMS else chosen.lower(), round=None)

    changed = state.when_changed(key, switch)
    st.segmented_control("Section", SECTIONS, required=True, key=key, on_change=changed, label_visibility="collapsed")
    return section


def show(page: Opened) -> None:
    sentence = st.empty()
    sentence.container(height=78, border=False)  # reserve space for the finding, so that nothing moves when it appears
    row = st.container(horizontal=True, vertical_alignment="center")
    sections = row.container(width="content")
    try:
        selection = misaligned_selection.choose(page, row)
        if selection is None or not label_blind.may_see(page, selection.run.golden_id, [selection.run.aspect]):
            sentence.empty()
            return
        with sections:
            section = choose_section()
        if section != ROUNDS:
            with row:
                misaligned_filters.draw(selection)
        if section == ITEMS:
            misaligned_view.draw(selection, sentence)  # also redraws the finding after each press
        else:
            misaligned_selection.draw_finding(selection, sentence)
            (rounds_view.draw if section == ROUNDS else misaligned_list.draw_list)(selection)
    except ConcordError as error:
        stop_with("Concord can't show misaligned items.", str(error))


show(open_page("misaligned"))
