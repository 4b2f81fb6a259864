"""Import a project from another installation, after a look inside its file."""

from __future__ import annotations

import hashlib
import io

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.ui import people, state
from pages.ui.cached import cached
from pages.ui.page import Opened, stop_with
from pages.ui.screens import plain

MOST_NAMES = 12  # of golden sets


def bring_in_project(page: Opened) -> None:
    """Upload → what is in it → a project of its own."""
    st.subheader("Import a project", anchor=False)
    st.markdown("A zip exported from another installation. It becomes a project of its own. Nothing here changes.")
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
    data, (store, settings) = upload.getvalue(), (page.store, page.settings)
    key = ("project file", hashlib.sha256(data).hexdigest())
    try:
        arriving = cached(key, lambda: projects.preview_project(store, settings, io.BytesIO(data)))
    except ConcordError as error:
        stop_with("This file was refused; nothing of it was kept.", str(error))
    st.text(arriving.project)
    st.caption(plain(f"Exported {arriving.exported} by Concord {arriving.concord}, {arriving.size / 1e3:,.0f} kB."))
    st.text(arriving.words)
    if arriving.golden_names:
        names = ", ".join(" ".join(name.split())[:60] for name in arriving.golden_names[:MOST_NAMES])
        st.text(f"Golden sets: {names}{' and more' if len(arriving.golden_names) > MOST_NAMES else ''}")
    if arriving.holds["runs"]:
        st.caption("Its runs will be read-only. Golden sets, labels and criteria can be used.")
    key_of_name = state.widget(f"transfer_name_{arriving.digest[:16]}")
    name = st.text_input("Name of the project here", value=arriving.project[:80], max_chars=80, key=key_of_name)
    off = not name.strip()
    if not people.button(page, "admin", "Import this project", disabled=off, type="primary", icon=":material/input:"):
        return
    try:
        with st.spinner("Importing …"):
            arrived = projects.import_project(store, settings, io.BytesIO(data), name=name)
    except ConcordError as error:
        stop_with("The project was not imported; nothing of it was kept.", str(error))
    under = f" as {arrived.project.name}, since its name is taken" if arrived.renamed else ""
    state.leave_notice(f"{name.strip()} was imported{under}: {arrived.file.words}.", good=True)
    state.leave_project()
    state.remember_project(arrived.project_id)
    st.rerun()
