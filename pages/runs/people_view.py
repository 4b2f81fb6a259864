"""Who takes part in a project: in which role, how much each did and when last, and what the roles allow."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core import projects
from core.people import ROLES, Role
from core.projects.log_words import Participant
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
    st.header(f"{_count_words(taking_part)}; {_who(last)} was here last, {tables.ago(last.last_at)}.", anchor=False)
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


def _count_words(taking_part: Sequence[Participant]) -> str:
    """How many take part; what was done without a name may be of one or of many, so it counts as nobody."""
    n = sum(bool(person.name) for person in taking_part)
    people_words = "One person takes part" if n == 1 else f"{n} people take part"
    nameless = any(not person.name for person in taking_part)
    return "Nobody has given a name" if not n else people_words + " by name, others without one" * nameless


def _who(person: Participant) -> str:
    return plain(person.name) if person.name else "somebody who gave no name"


def _roles_in_words(page: Opened) -> str:
    allowed = "; ".join(f"a{'n' if role[0] == 'a' else ''} {role} {MAY[role]}" for role in ROLES)
    yours = next(role for role in reversed(ROLES) if people.may(page, role))
    return f"{allowed[0].upper()}{allowed[1:]}. Yours is {yours}."
