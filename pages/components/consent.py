"""What an imported run would send where, and the button by which somebody here allows it."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.consent import AskedEndpoint
from pages.components import people, state
from pages.components.page import Opened
from pages.components.screens import plain


def ask(page: Opened, run_id: str) -> bool:
    """Draw the question for every endpoint of this run (or of its judge) that waits for a word; whether there is one.

    Projects that were made here ask nothing.
    """
    if not page.project.imported:
        return False
    waiting = [
        endpoint for endpoint in projects.endpoints_of_run(page.store, page.settings, run_id) if not endpoint.allowed
    ]
    for endpoint in waiting:
        with st.container(border=True):
            _question(page, run_id, endpoint)
    return bool(waiting)


def _question(page: Opened, run_id: str, endpoint: AskedEndpoint) -> None:
    st.warning(
        "This project was imported. Its judge would send the texts of the items to this endpoint"
        + (", with the key of this installation." if endpoint.trusted and endpoint.has_key else ".")
        + " Allow it only if you trust it.",
        icon=":material/key:",
    )
    st.code(f"{endpoint.endpoint}\n{', '.join(endpoint.models)}", language=None, wrap_lines=True)
    key = state.widget(f"consent_{run_id}_{endpoint.endpoint}")
    with_key = False
    if endpoint.has_key and not endpoint.trusted:
        with_key = st.checkbox(
            "Send the key of this installation there too",
            key=f"{key}_key",
            help="Only if it was made for that endpoint.",
        )
    people.button(
        page,
        "reviewer",
        "Allow",
        key=key,
        icon=":material/check:",
        on_click=_allow,
        args=(page, endpoint.endpoint, with_key),
        help=plain("Kept for this project and endpoint, with your name, in the log."),
    )


def _allow(page: Opened, endpoint: str, with_key: bool) -> None:
    try:
        projects.allow_endpoint(page.store, page.settings, page.project.project_id, endpoint, with_key=with_key)
    except ConcordError as error:
        state.leave_notice(f"Not allowed: {error}", good=False)
    else:
        state.leave_notice(f"This project may now ask {endpoint}.", good=True)
