"""Names of criteria on screen, and giving one."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core import projects
from core.project_records import CriteriaEntry
from core.projects.criteria_naming import LONGEST_NAME
from pages.criteria import comments_view
from pages.ui import people, state
from pages.ui.page import Opened
from pages.ui.screens import plain

PROBLEM = state.widget("name_problem")


def names_of(page: Opened, aspect: str) -> Mapping[str, str]:
    """Criteria id → name, for all criteria of the aspect."""
    return projects.criteria_names(page.store, page.project.project_id, aspect)


def draw_rename(page: Opened, view: CriteriaEntry, name: str) -> None:
    """A small form that gives the criteria another name."""
    key = state.widget(f"name_{view.criteria_id}_{name}")
    with st.popover(
        "", icon=":material/edit:", type="tertiary", help="Give these criteria a name", key=f"{key}_opened"
    ):
        with st.form(f"{key}_form", border=False):
            st.text_input("Name of these criteria", value=name, key=key)
            people.submit(page, "reviewer", "Save the name", on_click=_rename, args=(page, view, name, key))
        st.caption(f"One line of at most {LONGEST_NAME} characters, which no other criteria of the aspect have.")
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/error:")


def _rename(page: Opened, view: CriteriaEntry, shown: str, key: str) -> None:
    where, name = (page.project.project_id, view.criteria_id), str(st.session_state.get(key) or "")
    comments_view.attempt(lambda: projects.rename_criteria(page.store, *where, name, shown=shown), PROBLEM)
