"""Save drafts of long texts while the user types, so that a closed tab or a restart loses nothing.

`begin` returns the initial text of the text area, `watch` saves drafts, and `done` deletes the draft. `drafts.js` sends
the text when typing pauses, because Streamlit sends it only when the text area loses focus or its form is submitted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import streamlit as st

from core import projects
from core.errors import ConcordError, StoreError
from pages.ui import people, state, tables
from pages.ui.page import Opened
from pages.ui.screens import plain

_KEEPER = st.components.v2.component("concord_drafts", js=Path(__file__).with_suffix(".js").read_text("utf-8"))
_log = logging.getLogger("concord")


@dataclass(frozen=True, slots=True)
class Editing:
    """A text that the user is editing in a text area.

    Attributes:
        version: The saved text.
        text: The initial text in the area: the user's draft, or `version` without a draft.
        base: Id of the newest version when editing began.
        turn: How often the area was reset to another text.
        opened_at: Time of the draft in `text`; None without a draft.
        kept_at: Time when a draft was last saved; None if none was.
        heard: Number of the last message from the browser.
        problem: Why the draft could not be saved; "" if it could.
    """

    subject: str
    name: str
    author: str
    version: str
    text: str
    base: str
    turn: int = 0
    opened_at: datetime | None = None
    kept_at: datetime | None = None
    heard: int = 0
    problem: str = ""

    @property
    def key(self) -> str:
        """Key of the text area. A new `turn` has a new key, because Streamlit keeps typed text under the same key."""
        return self.name if self.turn == 0 else f"{self.name}_{self.turn}"


def criteria_subject(criteria_id: str) -> str:
    """Return the name under which drafts of an edit of these criteria are saved."""
    return f"criteria:{criteria_id}"


def begin(page: Opened, subject: str, version: str, name: str, *, base: str = "") -> Editing:
    """Start or continue editing the text of `subject`. Call this just before drawing the text area.

    `version` is the saved text, and `name` is the widget key of the area.
    """
    known = _opened(page).get(subject)
    drawn = known is not None and known.name == name and known.key in st.session_state
    if known is not None and drawn and known.author == page.actor.name:
        return known
    turn = 0 if known is None else known.turn
    draft = projects.get_draft(page.store, page.project.project_id, subject)
    if draft is None or draft.text.strip() == version.strip():
        now = Editing(subject, name, page.actor.name, version, version, base, turn)
    else:
        at = draft.kept_at
        now = Editing(subject, name, page.actor.name, version, draft.text, draft.base or base, turn, at, at)
    if known is not None and drawn:  # another user has taken over this session
        typed_on = draft is None and known.kept_at is None
        now = replace(now, text=known.text, base=known.base) if typed_on else replace(now, turn=turn + 1)
    _opened(page)[subject] = now
    return now


def draw_draft_notice(page: Opened, editing: Editing, head: str = "") -> None:
    """Draw a note that the text area shows a draft, and offer the saved version. `head` is the newest version's id."""
    if editing.opened_at is None:
        return
    moved = (
        " Someone else has saved a new version since you opened this one. When you save your version, you will see "
        "both."
        if head != editing.base
        else ""
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        words = f"Concord kept your unsaved text from {tables.when(editing.opened_at)}.{moved if head else ''}"
        st.markdown(f":material/history: {plain(words)}", width="content")
        st.button(
            "Start over from the saved version",
            key=state.widget(f"again_{editing.key}"),
            type="tertiary",
            icon=":material/undo:",
            on_click=done,
            args=(page, editing),
        )


@st.fragment
def watch(page: Opened, editing: Editing, until: str = "not yet a version") -> None:
    """Save the content of the text area as a draft. Call this after drawing the area, outside a form."""
    if page.actor.is_unnamed or not people.may(page, "reviewer"):
        return
    place = state.widget(f"draft_{editing.key}")
    _take(page, editing, place)
    now = _opened(page).get(editing.subject, editing)
    _KEEPER(
        key=place,
        data={
            "area": editing.key,
            "place": f"{page.project.project_id}/{editing.subject}/{editing.author}",
            "kept": None if now.kept_at is None else now.kept_at.timestamp(),
            "heard": now.heard,
            "problem": now.problem,
            "until": until,
        },
        on_draft_change=lambda: _take(page, editing, place),
    )


def done(page: Opened, editing: Editing) -> None:
    """Delete the draft of a saved or discarded text. The text area then shows the saved version again."""
    try:
        projects.delete_draft(page.store, page.project.project_id, editing.subject)
    except ConcordError as error:  # the text itself is saved
        _log.warning("a draft of %s was not deleted: %s", editing.subject, error)
    _opened(page)[editing.subject] = Editing(
        editing.subject, editing.name, editing.author, editing.version, editing.version, editing.base, editing.turn + 1
    )


def _opened(page: Opened) -> dict[str, Editing]:
    """Return a dict from subject to text opened in this session."""
    opened: dict[str, dict[str, Editing]] = st.session_state.setdefault(state.EDITING, {})
    return opened.setdefault(page.project.project_id, {})


def _take(page: Opened, editing: Editing, place: str) -> None:
    """Save the text that the browser sent, once; a text equal to the version needs no draft."""
    said = (st.session_state.get(place) or {}).get("draft")
    now = _opened(page).get(editing.subject, editing)
    if not isinstance(said, dict) or said.get("n") == now.heard or now.key != editing.key:
        return
    n, text = said.get("n"), said.get("text")
    if not isinstance(n, int) or not isinstance(text, str):
        return
    where = (page.project.project_id, editing.subject)
    try:
        if text.strip() == editing.version.strip():
            projects.delete_draft(page.store, *where)
            kept_at = None
        else:
            kept_at = projects.save_draft(page.store, *where, text, base=editing.base).kept_at
    except StoreError as error:  # the browser tries again
        _opened(page)[editing.subject] = replace(now, problem=str(error))
        return
    except ConcordError as error:
        _opened(page)[editing.subject] = replace(now, heard=n, problem=str(error))
        return
    _opened(page)[editing.subject] = replace(now, heard=n, kept_at=kept_at, problem="")
