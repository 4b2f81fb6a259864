"""A whole project as one file: prepared and downloaded; brought in from another installation, after a look inside."""

from __future__ import annotations

import hashlib
import io
import re

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.project_files import ProjectFile
from pages.ui import people, state
from pages.ui.page import Opened, stop_with
from pages.ui.screens import plain

MOST_NAMES = 12  # of golden sets; the rest is counted


def draw_transfer(page: Opened) -> None:
    """Export the project, or import another."""
    left, right = st.columns(2, gap="large")
    with left:
        _export(page)
    with right:
        bring_in_project(page)


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _export(page: Opened) -> None:
    st.subheader("Take this project away", anchor=False)
    st.markdown(
        "One zip with golden sets, runs, criteria with their versions, judges, labels, decisions and the log, to keep "
        "or to import in another installation. It holds the texts and the names of people, and never a key."
    )
    replies = st.checkbox(
        "With the replies that were paid for",
        value=True,
        key=state.widget("transfer_replies"),
        help="With them the judge's own words on each item can be read elsewhere. They can be large.",
    )
    why = "The log is part of it, so only an admin takes a project away."
    key = state.widget("transfer_prepare")
    prepared, project_id = state.widget("transfer_prepared"), page.project.project_id
    if people.button(page, "admin", "Prepare the file", help=why, icon=":material/package_2:", key=key):
        path = page.settings.home / "exports" / f"{project_id}{'' if replies else '-without-replies'}.zip"
        try:
            with st.spinner("Writing the file …"):
                made = projects.export_project(page.store, page.settings, project_id, path, replies=replies)
        except ConcordError as error:
            stop_with("The project was not exported.", str(error))
        st.session_state[prepared] = (project_id, replies, path, made)
    kept = st.session_state.get(prepared)
    if kept is None or kept[:2] != (project_id, replies) or not kept[2].is_file():
        return
    path, exported = kept[2:]
    st.success(f"Ready: {size_words(exported.size)}.", icon=":material/check:")
    st.text(exported.holds.words)
    if exported.unfinished:
        st.warning(f"{exported.unfinished} of its runs are not over: in the file they are cancelled.")
    st.download_button(
        "Download the project",
        data=path.read_bytes,
        file_name=f"{re.sub(r'[^A-Za-z0-9]+', '-', exported.project).strip('-') or 'project'}.zip",
        mime="application/zip",
        icon=":material/download:",
        type="primary",
        on_click="ignore",
        key=state.widget("transfer_download"),
        **people.gate(page, "admin"),
    )


# ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────


def bring_in_project(page: Opened) -> None:
    """Upload → what is in it → a project of its own.  Also part of the screen where a newcomer begins."""
    st.subheader("Bring in a project", anchor=False)
    st.markdown(
        "A zip that somebody took away from another installation. It becomes a project of its own; nothing that is "
        "here changes."
    )
    if not people.may(page, "admin"):
        st.info(f"Importing a project needs the role admin. Your role is {page.actor.role}.", icon=":material/lock:")
        return
    upload = st.file_uploader(
        "The file of a project",
        type=["zip"],
        key=state.widget("transfer_upload"),
        max_upload_size=page.settings.max_upload_mb,
    )
    if upload is None:
        return
    data = upload.getvalue()
    try:
        arriving = _looked_into(hashlib.sha256(data).hexdigest(), page, data)
    except ConcordError as error:
        stop_with("This file was refused; nothing of it was kept.", str(error))
    st.text(arriving.project)
    st.caption(plain(f"Exported {arriving.exported} by Concord {arriving.concord}, {size_words(arriving.size)}."))
    st.text(arriving.holds.words)
    if arriving.golden_names:
        more = len(arriving.golden_names) - MOST_NAMES
        names = ", ".join(" ".join(name.split())[:60] for name in arriving.golden_names[:MOST_NAMES])
        st.text(f"Golden sets: {names}{f' and {more} more' if more > 0 else ''}")
    if arriving.holds.runs:
        st.caption("Its runs will be read-only. Golden sets, labels and criteria can be used.")
    key = state.widget(f"transfer_name_{arriving.digest[:16]}")
    name = st.text_input("Name of the project here", value=arriving.project[:80], max_chars=80, key=key)
    off = not name.strip()
    if not people.button(page, "admin", "Import this project", disabled=off, type="primary", icon=":material/input:"):
        return
    try:
        with st.spinner("Importing …"):
            arrived = projects.import_project(page.store, page.settings, io.BytesIO(data), name=name)
    except ConcordError as error:
        stop_with("The project was not imported; nothing of it was kept.", str(error))
    under = f" as {arrived.project.name}, since its name is taken" if arrived.renamed else ""
    state.leave_notice(f"{name.strip()} was imported{under}: {arrived.holds.words}.", good=True)
    state.leave_project()
    state.remember_project(arrived.project_id)
    st.rerun()


@st.cache_resource(max_entries=2, show_spinner="Looking into the file …")
def _looked_into(digest: str, _page: Opened, _data: bytes) -> ProjectFile:
    return projects.preview_project(_page.store, _page.settings, io.BytesIO(_data))


def size_words(size: int) -> str:
    """Bytes for people: in MB, or in kB where that would be 0."""
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
