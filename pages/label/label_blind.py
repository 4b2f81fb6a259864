"""Hide labels of other raters from a rater who still has to rate the same items."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.wording import counted
from pages.ui import state
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain


def may_see(page: Opened, golden_id: str, aspects: Sequence[str] | None = None, *, decides: bool = False) -> bool:
    """Return whether to show the labels of a golden set. Raters who still have items to rate see a note instead.

    The note has a button that shows the labels anyway. If the page `decides` on labels, the button instead ends the
    user's part in the labelling pass.
    """
    project_id = page.project.project_id
    rating = projects.still_rating(page.store, project_id, golden_id, aspects)
    key = state.widget(f"label_seen_{project_id}_{golden_id}_{page.actor.name}")
    if not rating or (st.session_state.get(key) and not decides):
        return True
    first, n_open = rating[0]
    st.info(
        plain(
            f"You still have {counted(n_open, 'item')} to rate in {first.name}. Concord hides the labels of these "
            "items so that they don't influence yours."
        ),
        icon=":material/visibility_off:",
    )
    with st.container(horizontal=True):
        if decides:
            st.button(
                "Continue rating",
                type="primary",
                icon=":material/edit_note:",
                on_click=_rate,
                args=(first.pass_id,),
            )
            with st.popover("I'm done", icon=":material/done_all:"):
                st.markdown(plain(f"Stop rating in {first.name}. Your labels still count, but you can't add more."))
                st.button(
                    "Stop rating",
                    on_click=state.attempt,
                    args=("Nothing was changed", projects.stop_rating, page.store, project_id, first.pass_id),
                )
        else:
            link_to("label", "Continue rating", icon=":material/edit_note:", labelling=first.pass_id)
            st.button(
                "Show the labels anyway", key=f"{key}_press", on_click=st.session_state.update, args=({key: True},)
            )
    return False


def _rate(pass_id: str) -> None:
    state.put_in_url(labelling=pass_id)
    st.session_state[state.LABEL_TURN] = st.session_state.get(state.LABEL_TURN, 0) + 1  # back to its first view
