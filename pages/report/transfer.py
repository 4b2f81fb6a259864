"""Import a project from another installation."""

from __future__ import annotations

import io

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.ui import people, state
from pages.ui.page import Opened, stop_with


def import_upload(page: Opened) -> None:
    """Import an uploaded project file as a new project."""
    st.subheader("Import a project", anchor=False)
    st.markdown(
        "Choose a zip file exported from another installation. Concord imports it as a new project. Your other "
        "projects don't change."
    )
    if not people.may(page, "admin"):
        st.info(f"Importing a project requires the admin role. Your role is {page.actor.role}.", icon=":material/lock:")
        return
    upload = st.file_uploader(
        "Project file",
        type=["zip"],
        key=state.widget("transfer_upload"),
        max_upload_size=page.settings.max_upload_mb,
    )
    if upload is None:
        return
    if not people.button(page, "admin", "Import this project", type="primary", icon=":material/input:"):
        return
    try:
        with st.spinner("Importing …"):
            arrived = projects.import_project(page.store, page.settings, io.BytesIO(upload.getvalue()))
    except ConcordError as error:
        stop_with("Concord rejected this file and imported nothing.", str(error))
    under = f" as {arrived.project.name}, because the original name is already taken" if arrived.renamed else ""
    words = f"{arrived.file.project} was imported{under}: {arrived.file.words}."
    if arrived.file.holds["runs"]:
        words += " The imported runs are read-only. You can use the golden sets, labels and criteria."
    state.set_notice(words, good=True)
    state.leave_project()
    state.remember_project(arrived.project_id)
    st.rerun()
