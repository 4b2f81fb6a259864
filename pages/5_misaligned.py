"""Misaligned: where judge and people part, item by item; what people found there feeds the next round of refining."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.components import label_blind, lineage_view, misaligned_selection, misaligned_view, rounds_view, state
from pages.components.misaligned_selection import ITEMS, LINEAGE, ROUNDS, Selection
from pages.components.page import Opened, open_page, stop_with


def first_view() -> str:
    """A link to a round opens the rounds."""
    return ROUNDS if state.url_id("round") else ITEMS


def switch_view() -> None:
    """Whoever leaves the rounds leaves the round: a link copied then opens what is seen."""
    if st.session_state[state.MISALIGNED_VIEW] != ROUNDS:
        state.put_in_url(round=None)


def show(page: Opened) -> None:
    try:
        selection = misaligned_selection.choose(page)
        if selection is None or not label_blind.may_see(page, selection.run.golden_id, [selection.run.aspect]):
            return
        st.session_state.setdefault(state.MISALIGNED_VIEW, first_view())
        with st.container(horizontal=True, vertical_alignment="center"):
            view = st.segmented_control(
                "View",
                [ITEMS, ROUNDS, LINEAGE],
                required=True,
                key=state.MISALIGNED_VIEW,
                on_change=switch_view,
                label_visibility="collapsed",
            )
            misaligned_selection.draw_progress(selection)
        draw(page, selection, view)
    except ConcordError as error:
        stop_with("This cannot be shown.", str(error))
    misaligned_selection.draw_accesses(selection)


def draw(page: Opened, selection: Selection, view: str) -> None:
    if view == ITEMS:
        misaligned_view.draw(selection)
    elif view == ROUNDS:
        rounds_view.draw(selection)
    else:
        golden = projects.get_golden(page.store, selection.run.golden_id)
        lineage_view.draw(page, golden, selection.run.aspect)


show(
    open_page(
        "misaligned",
        intro="Where judge and people disagree, and who is wrong.",
    )
)
