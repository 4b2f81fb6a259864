"""What people did in a project, newest first: filtered by person and kind, in pages, and as a file for admins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core import projects
from core.wording import counted
from pages.ui import grid, people, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, finding

ROWS = 50
NOBODY = "nobody named"
UNNAMED = " "
"""In the URL: entries of nobody in particular.  No person is called so."""
KIND_WORDS = {"audit": "runs, edits and other changes"}
SAID = ("reason", "text", "note")


def draw(page: Opened) -> None:
    """Filters and place, all kept in the URL, a page of the log, and the way to take all of it away."""
    project_id, number = page.project.project_id, number_in_url(1)
    actor = state.url_id("who")
    log = page.store.events.page(
        project_id,
        actor="" if actor == UNNAMED else actor,
        kind=state.url_id("what"),
        offset=(number - 1) * ROWS,
        limit=ROWS,
    )
    if not log.people:
        st.info(
            "Nobody has changed anything in this project yet. Every change appears here, with its author and time.",
            icon=":material/history:",
        )
        return
    words = f"{counted(log.n, 'action')}, newest first"
    if log.entries and number == 1:
        last = log.entries[0]
        words = f"{counted(log.n, 'action')}; the last by {last.actor or NOBODY}, {tables.ago(last.at)}"
    finding(words)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        _filter("Who", "everybody", "who", [name or UNNAMED for name in log.people], {UNNAMED: NOBODY})
        _filter("What", "everything", "what", log.kinds, KIND_WORDS)
        st.download_button(
            "Download the log",
            data=lambda: projects.log_csv(page.store, project_id),
            file_name="log.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            **people.gate(page, "admin", help="The whole log as CSV, every detail of every entry."),
        )
        st.space("stretch")
        with st.container(width="content"):  # new entries push the older ones down
            pages_of(max(1, -(-log.n // ROWS)))
    if not log.entries:
        st.info("Nothing in the log fits this link.", icon=":material/filter_alt_off:")
        key, nothing = state.widget("log_everything"), {"who": None, "what": None, "page": None}
        st.button("Show everything", key=key, on_click=state.put_in_url, kwargs=nothing)
        return
    lines = projects.log_lines(page.store, project_id, log.entries)
    said = [" · ".join(str(entry.body[name]) for name in SAID if entry.body.get(name)) for entry in log.entries]
    grid.draw(
        {
            "when": [entry.at for entry in log.entries],
            "who": [entry.actor or NOBODY for entry in log.entries],
            "what": [tables.one_line(did) for did, _ in lines],
            "about": [about for _, about in lines],
            "said": [tables.one_line(words) for words in said],
            "role": [entry.role for entry in log.entries],
        },
        {"said": Column(help="the reason, comment or note that came with it"), "who": Column(width=140)},
        alt="Log of all changes",
        rows=16,
    )


def _filter(label: str, placeholder: str, name: str, options: Sequence[str], words: Mapping[str, str]) -> None:
    """A filter that stands in the URL under `name`."""
    key = state.widget(f"log_{name}")
    wanted = state.url_id(name)
    st.session_state[key] = wanted if wanted in options else None
    st.selectbox(
        label,
        options,
        index=None,
        placeholder=placeholder,
        format_func=lambda option: words.get(option, option),
        key=key,
        width=260,
        on_change=state.when_changed(key, lambda: state.put_in_url(**{name: st.session_state[key]}, page=None)),
    )


def number_in_url(default: int) -> int:
    """The page that the URL names, from 1; `default` where it names none."""
    said = state.url_id("page") or ""
    return max(1, int(said)) if said.isdecimal() and len(said) < 7 else default


def pages_of(n_pages: int, *, default: int = 1) -> int:
    """The page that the URL names, from 1, else `default`; draws the way to the others where there are any."""
    number = min(number_in_url(default), n_pages)
    if n_pages > 1:
        key = state.widget(f"page_{number}_of_{n_pages}")  # another one for each page, for the URL says which it is
        turn = lambda: state.put_in_url(page=str(st.session_state[key]))  # noqa: E731 - where the number stands then
        st.pagination(n_pages, default=number, key=key, on_change=turn)
    return number
