"""Misaligned: where judge and raters disagree, item by item; the triage feeds the next refinement round."""

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
from pages.misaligned.misaligned_selection import ITEMS, LIST, ROUNDS, VIEWS, Selection
from pages.ui import state
from pages.ui.page import Opened, open_page, stop_with


def first_view() -> str:
    """The view in the link; a link to a round opens the rounds."""
    linked = (state.url_id("section") or "").capitalize()
    return ROUNDS if state.url_id("round") else linked if linked in VIEWS else ITEMS


def leave_round() -> None:
    """Whoever leaves the rounds leaves the round."""
    if st.session_state[state.MISALIGNED_VIEW] != ROUNDS:
        state.put_in_url(round=None)


def show(page: Opened) -> None:
    sentence = st.empty()
    row = st.container(horizontal=True, vertical_alignment="center")
    views = row.container(width="content")
    try:
        selection = misaligned_selection.choose(page, row)
        if selection is None or not label_blind.may_see(page, selection.run.golden_id, [selection.run.aspect]):
            return
        st.session_state.setdefault(state.MISALIGNED_VIEW, first_view())
        view = views.segmented_control(
            "View",
            VIEWS,
            required=True,
            key=state.MISALIGNED_VIEW,
            on_change=state.when_changed(state.MISALIGNED_VIEW, leave_round),
            label_visibility="collapsed",
        )
        state.put_in_url(section=None if view == ITEMS else str(view).lower())  # a link copied opens what is seen
        sentence.markdown(misaligned_selection.finding(selection))
        if view != ROUNDS:
            with row:
                misaligned_filters.draw(selection)
        draw(selection, str(view), sentence)
    except ConcordError as error:
        stop_with("This cannot be shown.", str(error))
    misaligned_selection.draw_accesses(selection)


def draw(selection: Selection, view: str, sentence: st.delta_generator.DeltaGenerator) -> None:
    if view == ITEMS:
        misaligned_view.draw(selection, sentence)
    elif view == LIST:
        misaligned_list.draw_list(selection)
    else:
        rounds_view.draw(selection)


show(open_page("misaligned"))
