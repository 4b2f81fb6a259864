"""Asking a labeller's name on the screen itself: on a phone the sidebar with its picker is folded away."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.people import Actor
from pages.components import people, state
from pages.components.screens import plain


def ask(known: Sequence[str]) -> None:
    """Asks for a name; `known` people are one press away."""
    st.markdown("**Who are you?** Labels are kept by person, so that nobody's are overwritten.")
    if known:
        with st.container(horizontal=True):
            for place, name in enumerate(known):
                st.button(plain(name), key=state.widget(f"rater_{place}"), on_click=people.pick, args=(name,))
    with st.form(state.widget("rater_form"), border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Your name", key=state.widget("rater_name"), max_chars=people.LONGEST, width=320)
        st.form_submit_button("That is me", type="primary", on_click=_take_typed)


def draw_line(actor: Actor) -> None:
    """Says who labels, with a way out for somebody else; a picked name stands in the URL, so that a reload knows it."""
    if actor.subject:
        return  # signed in; the sidebar says so
    state.put_in_url(rater=actor.name)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"You are **{plain(actor.name)}**.", width="content")
        st.button("Somebody else?", type="tertiary", key=state.widget("rater_other"), on_click=people.pick, args=("",))


def _take_typed() -> None:
    people.pick(st.session_state[state.widget("rater_name")])
