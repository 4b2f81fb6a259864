"""Labels on other screens, for somebody who still rates the same items: not before they say that they want to see."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.wording import counted
from pages.ui import state
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain


def may_see(page: Opened, golden_id: str, aspects: Sequence[str] | None = None) -> bool:
    """Whether labels of a golden set (on these aspects) may be drawn; says why not to whoever still rates its items."""
    rating = projects.still_rating(page.store, page.project.project_id, golden_id, aspects)
    key = state.widget(f"label_seen_{page.project.project_id}_{golden_id}_{page.actor.name}")
    if not rating or st.session_state.get(key):
        return True
    rated, n_open = rating[0]
    left = f"{counted(n_open, 'item')} left in {rated.name}"
    st.info(
        plain(f"You still rate: {left}. The labels of these items are hidden, so that yours are your own."),
        icon=":material/visibility_off:",
    )
    with st.container(horizontal=True):
        link_to("label", "Continue rating", icon=":material/edit_note:", labelling=rated.pass_id)
        st.button("Show them all the same", key=f"{key}_press", on_click=_show, args=(key,))
    return False


def _show(key: str) -> None:
    st.session_state[key] = True
