"""Misaligned: where judge and people part, item by item; what people found there feeds the next round of refining."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.components import label_blind, lineage_view, misaligned_looked, misaligned_view, rounds_view, state
from pages.components.misaligned_looked import ITEMS, LINEAGE, ROUNDS, Looked
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
        looked = misaligned_looked.choose(page)
        if looked is None or not label_blind.may_see(page, looked.run.golden_id, [looked.run.aspect]):
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
            misaligned_looked.draw_progress(looked)
        draw(page, looked, view)
    except ConcordError as error:
        stop_with("This cannot be shown.", str(error))
    misaligned_looked.draw_openings(looked)


def draw(page: Opened, looked: Looked, view: str) -> None:
    if view == ITEMS:
        misaligned_view.draw(looked)
    elif view == ROUNDS:
        rounds_view.draw(looked)
    else:
        golden = projects.get_golden(page.store, looked.run.golden_id)
        lineage_view.draw(page, golden, looked.run.aspect)


show(
    open_page(
        "misaligned",
        intro="Where judge and people part: read the items, say who is wrong, and let the next round learn from them.",
    )
)
