"""Who takes part in a project: in which role, how much each did and when last, and what the roles allow."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.people import ROLES, Role
from pages.components import grid, people, tables
from pages.components.page import Opened
from pages.components.screens import plain

MAY: dict[Role, str] = {
    "viewer": "reads everything",
    "annotator": "also labels, comments and votes",
    "reviewer": "also starts runs, edits, decides and approves",
    "admin": "also makes, exports and imports projects",
}
NOBODY = "nobody named"


def draw(page: Opened) -> None:
    """A sentence, a row a person, and what the roles allow."""
    taking_part = projects.list_participants(page.store, page.project.project_id)
    if not taking_part:
        st.info("Nobody has done anything in this project yet. Label an item, or start a run.", icon=":material/group:")
        return
    last = max(taking_part, key=lambda person: person.last_at)
    n = "One person takes" if len(taking_part) == 1 else f"{len(taking_part)} people take"
    who = plain(last.name or NOBODY)
    st.header(f"{n} part; {who} was here last, {tables.ago(last.last_at)}.", anchor=False)
    grid.draw(
        pd.DataFrame(
            {
                "who": [person.name or NOBODY for person in taking_part],
                "role": [person.role or tables.DASH for person in taking_part],
                "labels": [person.n_labels or None for person in taking_part],
                "other actions": [person.n_actions or None for person in taking_part],
                "last here": [tables.ago(person.last_at) for person in taking_part],
            }
        ),
        alt="People of this project",
    )
    st.caption("Role: the one in which somebody did something last. " + _roles_in_words(page))


def _roles_in_words(page: Opened) -> str:
    allowed = "; ".join(f"a{'n' if role[0] == 'a' else ''} {role} {MAY[role]}" for role in ROLES)
    yours = next(role for role in reversed(ROLES) if people.may(page, role))
    return f"{allowed[0].upper()}{allowed[1:]}. Yours is {yours}."
