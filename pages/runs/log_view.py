"""History of a project, newest first, in pages and as a file for admins."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.wording import counted
from pages.ui import grid, people, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, finding

ROWS = 100
SAID = ("reason", "text", "note")


def draw(page: Opened) -> None:
    """Draw the page of the log whose number is in the URL, and a button to download the whole log."""
    project_id, number = page.project.project_id, number_in_url(1)
    n, entries = page.store.events.count(project_id), page.store.events.page(project_id, (number - 1) * ROWS, ROWS)
    if not n:
        st.info(
            "There are no changes in this project yet. Each change appears here with its author and time.",
            icon=":material/history:",
        )
        return
    last = f"last: {tables.when(entries[0].at)}" if entries and number == 1 else "newest first"
    finding(f"{counted(n, 'action')}, {last}")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.download_button(
            "Download the log",
            data=lambda: projects.log_csv(page.store, project_id),
            file_name="log.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            **people.gate(page, "admin", help="Download the whole log as CSV, with all details of every entry."),
        )
        st.space("stretch")
        with st.container(width="content"):  # new entries push older ones down
            pages_of(max(1, -(-n // ROWS)))
    lines = projects.log_lines(page.store, project_id, entries)
    said = [" · ".join(str(entry.body[name]) for name in SAID if entry.body.get(name)) for entry in entries]
    grid.draw(
        {
            "when": [tables.when(entry.at) for entry in entries],
            "who": [entry.actor or tables.DASH for entry in entries],
            "what": [tables.one_line(did) for did, _ in lines],
            "about": [about for _, about in lines],
            "said": [tables.one_line(words) for words in said],
            "role": [entry.role for entry in entries],
        },
        {"said": Column(help="Reason, comment or note entered for the change"), "who": Column(width=140)},
        alt="Log of all changes",
        rows=16,
    )


def number_in_url(default: int) -> int:
    """Return the page number in the URL, from 1; if there is none, return `default`."""
    said = state.url_id("page") or ""
    return max(1, int(said)) if said.isdecimal() and len(said) < 7 else default


def pages_of(n_pages: int, *, default: int = 1) -> int:
    """Draw links to the other pages, if any, and return the number of the current page.

    It is the number in the URL, or else `default`. The first page is 1.
    """
    number = min(number_in_url(default), n_pages)
    if n_pages > 1:
        key = state.widget(f"page_{number}_of_{n_pages}")  # a new widget per page, because the URL determines its value
        turn = lambda: state.put_in_url(page=str(st.session_state[key]))  # noqa: E731 - where the number stands then
        st.pagination(n_pages, default=number, key=key, on_change=turn)
    return number
