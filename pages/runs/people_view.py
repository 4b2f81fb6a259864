"""Who takes part in a project: in which role, how much each did and when last, and what the roles allow."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.people import ROLES, Role
from pages.ui import grid, people, tables
from pages.ui.page import Opened
from pages.ui.screens import plain

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
    n = sum(bool(person.name) for person in taking_part)  # without a name it may be one person or many: nobody
    words = "Nobody has given a name"
    if n:
        words = "One person takes part by name" if n == 1 else f"{n} people take part by name"
        words += ", others without one" if n < len(taking_part) else ""
    who = plain(last.name) if last.name else "somebody who gave no name"
    st.header(f"{words}; {who} was here last, {tables.ago(last.last_at)}.", anchor=False)
    grid.draw(
        {
            "who": [person.name or NOBODY for person in taking_part],
            "role": [person.role or tables.DASH for person in taking_part],
            "labels": [person.n_labels or None for person in taking_part],
            "other actions": [person.n_actions or None for person in taking_part],
            "last here": [tables.ago(person.last_at) for person in taking_part],
        },
        alt="People of this project",
    )
    allowed = "; ".join(f"a{'n' if role[0] == 'a' else ''} {role} {MAY[role]}" for role in ROLES)
    yours = next(role for role in reversed(ROLES) if people.may(page, role))
    said = f"Role: the one in which somebody did something last. {allowed[0].upper()}{allowed[1:]}. Yours is {yours}."
    st.caption(said)
