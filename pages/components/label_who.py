"""Who labels, said on the screen itself: on a phone the sidebar with its picker is folded away."""

from __future__ import annotations

import streamlit as st

from core.people import Actor
from pages.components import people, state
from pages.components.screens import plain


def draw(actor: Actor) -> None:
    """Says who labels, with a way out for somebody else."""
    if actor.subject:
        return  # signed in; the sidebar says so
    with st.popover(plain(actor.name), icon=":material/person:", key=state.widget("rater")):
        st.markdown(f"You are **{plain(actor.name)}**. Labels are kept under this name.")
        st.button("Somebody else?", key=state.widget("rater_other"), on_click=people.pick, args=("",))
