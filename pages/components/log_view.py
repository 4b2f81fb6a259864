"""What people did in a project, newest first: filtered by person and kind, in pages, and as a file for admins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core import projects
from core.review.log import Entry, LogPage
from pages.components import people, state, tables
from pages.components.page import Opened

ROWS = 50
NOBODY = "nobody named"
CHANGES = {"audit": "other changes"}
SAID = ("reason", "text", "note")
ID_LETTERS = 24


def draw(page: Opened) -> None:
    """Filters, a page of the log, and the way to take all of it away."""
    st.subheader("What people did", anchor=False)
    project_id = page.project.project_id
    who, what = state.widget(f"log_who_{project_id}"), state.widget(f"log_what_{project_id}")
    actor, kind = st.session_state.get(who), st.session_state.get(what)
    place = state.widget(f"log_page_{project_id}_{actor}_{kind}")
    first = (int(st.session_state.get(place) or 1) - 1) * ROWS
    log = projects.log_page(page.store, project_id, actor=actor, kind=kind, offset=first, limit=ROWS)
    if not log.people:
        st.info(
            "Nobody has done anything in this project yet. Every change will stand here, with who made it and when.",
            icon=":material/history:",
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        _filter("Who", "everybody", who, log.people, {"": NOBODY})
        _filter("What", "everything", what, log.kinds, CHANGES)
        _offer_file(page)
    _draw_place(log, first, place)
    _draw_rows(log)


def _filter(label: str, placeholder: str, key: str, options: Sequence[str], words: Mapping[str, str]) -> None:
    st.selectbox(
        label,
        options,
        index=None,
        placeholder=placeholder,
        format_func=lambda option: words.get(option, option),
        key=key,
        width=280,
    )


def _offer_file(page: Opened) -> None:
    st.download_button(
        "Download the log",
        data=lambda: projects.log_csv(page.store, page.project.project_id),
        file_name="log.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        **people.gate(page, "admin", help="The whole log as CSV, every detail of every entry."),
    )


def _draw_place(log: LogPage, first: int, place: str) -> None:
    """Which part of the log is shown, and the way to the others; new entries push the older ones down."""
    n_pages = max(1, -(-log.n // ROWS))
    with st.container(horizontal=True, vertical_alignment="center"):
        shown = f"{first + 1:,} to {first + len(log.entries):,} of " if n_pages > 1 and log.entries else ""
        st.caption(f"{shown}{tables.count_words(log.n, 'action')}, newest first")
        st.space("stretch")
        if n_pages > 1:
            st.pagination(n_pages, key=place)


def _draw_rows(log: LogPage) -> None:
    if not log.entries:
        st.info("Nothing in the log fits these filters.", icon=":material/filter_alt_off:")
        return
    st.dataframe(
        log_frame(log.entries),
        hide_index=True,
        height=tables.height_for(len(log.entries), 16),
        column_config={
            "when": st.column_config.DatetimeColumn(
                format="YYYY-MM-DD HH:mm:ss", timezone=st.context.timezone, width=165
            ),
            "who": st.column_config.TextColumn(width=190),
            "role": st.column_config.TextColumn(width=85),
            "what": st.column_config.TextColumn(width=330),
            "said": st.column_config.TextColumn(width=300, help="the reason, comment or note that came with it"),
            "about": st.column_config.TextColumn(width=180),
        },
        alt="Log of what people did",
    )


def log_frame(entries: Sequence[Entry]) -> pd.DataFrame:
    """A row an entry; long texts on one line."""
    return pd.DataFrame(
        {
            "when": pd.to_datetime([entry.at for entry in entries], utc=True),
            "who": [entry.actor or NOBODY for entry in entries],
            "role": [entry.role for entry in entries],
            "what": [tables.one_line(entry.sentence) for entry in entries],
            "said": [_said(entry.body) for entry in entries],
            "about": [entry.subject[:ID_LETTERS] for entry in entries],
        }
    )


def _said(body: Mapping[str, Any]) -> str:
    return tables.one_line(" · ".join(str(body[name]) for name in SAID if body.get(name)))
