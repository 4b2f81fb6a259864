"""The item on the screen of one rater, and what a press does to it: nothing here draws.

What is shown lies in the session of the browser; what was said lies in the store, saved with every press.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.anchors import Span
from core.projects.labelling import AnnotationSession, LabelAspect, LabelPass
from core.store.store import Store
from pages.label import label_item, label_number
from pages.ui import state

Wish = Literal["", "next", "left", "right", "open", "first", "again", "undone"]
AUTO = state.widget("label_auto")


@dataclass(frozen=True, slots=True)
class Assignment:
    """What somebody labels: the pass, and the store as they may use it."""

    store: Store
    passed: LabelPass

    @property
    def aspects(self) -> tuple[LabelAspect, ...]:
        return self.passed.plan.aspects


@dataclass(frozen=True, slots=True)
class Shown:
    """The item on the screen; `item_id` None once all is done.

    `sheet` is made anew each time an item is shown: what is typed on one sheet is of no other item, pass or person.
    `form` is the id under which the next save is sent, made when the item is shown and anew after each save; `known`
    are the labels as saved, `comment` as it stood when the item was shown, `redo` the place of the aspect that is
    answered again.  `wish` is where the person wants to go: a press only notes it, so that a label and Enter pressed in
    one breath work in either order.  `missing` says what has to be done before going on, `told` what
    the last press did.  `spans` are the words that the person has marked in the text.
    """

    pass_id: str
    rater: str
    item_id: str | None
    form: str
    sheet: str = ""
    comment: str = ""
    known: Mapping[str, float | None] = field(default_factory=dict)
    redo: int | None = None
    wish: Wish = ""
    problem: str = ""
    missing: str = ""
    told: str = ""
    spans: tuple[Span, ...] = ()


# ── the item on the screen ────────────────────────────────────────────────────────────────────────────────────


def settle(assignment: Assignment, session: AnnotationSession) -> Shown:
    """The item to show: the one on the screen, or where its person wished to go; at first the first unfinished."""
    shown = on_screen()
    if (
        shown is None
        or (shown.pass_id, shown.rater) != (session.pass_id, session.rater)
        or (shown.item_id is not None and shown.item_id not in session.assigned)
    ):
        shown = _show_item(assignment, session, session.first_open)
    elif shown.wish == "again":
        shown = replace(shown, wish="", redo=0)
    elif shown.wish == "next" and shown.item_id is not None and shown.item_id not in session.saved:
        missing = next(
            aspect for aspect in assignment.aspects if aspect.aspect not in session.said(shown.item_id).values
        )
        shown = replace(shown, wish="", missing=_first(assignment, missing))
    elif shown.wish:
        shown = replace(_show_item(assignment, session, _where(session, shown)), told=shown.told)
    if shown.item_id is not None:
        shown = replace(shown, known=session.said(shown.item_id).values)
    st.session_state[state.LABEL_SHOWN] = shown
    return shown


def _first(assignment: Assignment, aspect: LabelAspect) -> str:
    """What to do before going on, with the keys that do it."""
    on = f" on {aspect.aspect}" if len(assignment.aspects) > 1 else ""
    return f"Rate this item{on} first: {label_item.keys_words(aspect)}."


def _where(session: AnnotationSession, shown: Shown) -> str | None:
    order = session.assigned
    if shown.wish == "undone":
        return shown.item_id if shown.item_id in order else session.first_open
    if shown.item_id is None or shown.wish == "first":
        return order[0]
    place = order.index(shown.item_id)
    if shown.wish == "left":
        return order[max(place - 1, 0)]
    if shown.wish == "right":
        return order[min(place + 1, len(order) - 1)]
    if shown.wish == "open":
        return session.first_open
    return next((item_id for item_id in order[place + 1 :] if item_id not in session.saved), session.first_open)


def _show_item(assignment: Assignment, session: AnnotationSession, item_id: str | None) -> Shown:
    """Shows an item, with what was said of it and a fresh form."""
    if item_id is None:
        return Shown(session.pass_id, session.rater, None, "")
    said = session.said(item_id)
    sheet, marked = uuid.uuid4().hex[:12], _marked(assignment, session).get(item_id, ())
    return Shown(
        *(session.pass_id, session.rater, item_id, _new_form(), sheet, said.comment, said.values), spans=marked
    )


def _marked(assignment: Assignment, session: AnnotationSession) -> dict[str, tuple[Span, ...]]:
    """What this person has marked in the pass, by item: read once a session, and kept up as they mark."""
    kept = st.session_state.get(state.LABEL_MARKED)
    if kept is None or kept[0] != (session.pass_id, session.rater):
        marked = projects.my_highlights(assignment.store, assignment.passed.project_id, session.pass_id)
        kept = st.session_state[state.LABEL_MARKED] = ((session.pass_id, session.rater), marked)
    found: dict[str, tuple[Span, ...]] = kept[1]
    return found


def on_screen() -> Shown | None:
    shown: Shown | None = st.session_state.get(state.LABEL_SHOWN)
    return shown


def _meant(assignment: Assignment, item_id: str) -> Shown | None:
    """What is shown where it is what a press was meant for: this item, in this pass, for this person."""
    shown, wanted = on_screen(), (assignment.passed.pass_id, assignment.store.actor.name, item_id)
    return shown if shown is not None and (shown.pass_id, shown.rater, shown.item_id) == wanted else None


def _new_form() -> str:
    return f"label:{uuid.uuid4().hex}"


def comment_key(shown: Shown) -> str:
    return state.widget(f"label_comment_{shown.sheet}")


def press_key(shown: Shown, *which: object) -> str:
    """Of a button: of this item, in this pass, for this person."""
    return state.widget("_".join(map(str, ("label", shown.pass_id, shown.rater, shown.item_id, *which))))


# ── what a press does ────────────────────────────────────────────────────────────────────────────────────────


def answer(assignment: Assignment, item_id: str, aspect: str, value: float | None) -> None:
    """Saves one label at once.

    A second press of the same does nothing; nor does one meant for another item: its person had pressed Enter already.
    """
    shown = _meant(assignment, item_id)
    if shown is None or (shown.wish and aspect in shown.known):
        return
    if aspect not in shown.known or shown.known[aspect] != value:
        shown = _save(assignment, shown, {aspect: value})
    if shown.redo is not None and not shown.problem:
        shown = replace(shown, redo=shown.redo + 1 if shown.redo + 1 < len(assignment.aspects) else None)
    if st.session_state.get(AUTO) and shown.redo is None and not shown.problem and _is_complete(assignment, shown):
        shown = replace(shown, wish="next")
    st.session_state[state.LABEL_SHOWN] = replace(shown, missing="", told="")


def _is_complete(assignment: Assignment, shown: Shown) -> bool:
    return all(aspect.aspect in shown.known for aspect in assignment.aspects)


def answer_number(assignment: Assignment, item_id: str, place: int, key: str) -> None:
    """Enter in the box of `key`: keep the number and, when it was the last label missing, go on."""
    shown = _meant(assignment, item_id)
    if shown is None or key != label_number.box_key(shown.sheet, place):
        return
    value, wrong = label_number.read(str(st.session_state[key]), assignment.aspects[place])
    if wrong:
        st.session_state[state.LABEL_SHOWN] = replace(shown, missing=wrong)
        return
    answer(assignment, item_id, assignment.aspects[place].aspect, value)
    shown = _meant(assignment, item_id)
    if shown is not None and _is_complete(assignment, shown) and not shown.problem:
        st.session_state[state.LABEL_SHOWN] = replace(shown, wish="next")


def comment_on(assignment: Assignment, item_id: str) -> None:
    """Keeps a comment when typing rests, and nothing else: no label is given by it."""
    shown = _meant(assignment, item_id)
    if shown is not None:
        st.session_state[state.LABEL_SHOWN] = _save(assignment, shown, {})


def _save(assignment: Assignment, shown: Shown, values: Mapping[str, float | None]) -> Shown:
    """Keeps these labels with the comment as it stands; without any, the comment alone."""
    comment = str(st.session_state.get(comment_key(shown), shown.comment))
    where = (assignment.store, assignment.passed.project_id, assignment.passed.pass_id, str(shown.item_id))
    try:
        if values:
            projects.save_label(*where, values, comment=comment, form=shown.form)
        else:
            projects.save_comment(*where, comment, form=shown.form)
    except ConcordError as error:
        return replace(shown, problem=str(error))
    return replace(shown, form=_new_form(), known={**shown.known, **values}, problem="")


def go(item_id: str | None, wish: Wish) -> None:
    """Notes where to; a second press of Enter on the item that was left does not skip the one that came."""
    shown = on_screen()
    if shown is not None and shown.item_id == item_id:
        st.session_state[state.LABEL_SHOWN] = replace(shown, wish=wish, missing="", told="")


def undo(assignment: Assignment, item_id: str | None, form: str) -> None:
    """Takes the last label back and shows its item."""
    shown = on_screen()
    if shown is None or shown.item_id != item_id:
        return
    passed = assignment.passed
    try:
        undone = projects.undo_label(assignment.store, passed.project_id, passed.pass_id, form=form)
    except ConcordError as error:
        st.session_state[state.LABEL_SHOWN] = replace(shown, problem=str(error))
        return
    told = (
        "There is no label of yours to undo." if undone is None else "The last label is undone. Rate this item again."
    )
    wish: Wish = "" if undone is None else "undone"
    st.session_state[state.LABEL_SHOWN] = replace(shown, item_id=undone or item_id, wish=wish, missing="", told=told)


# ── words marked in the text ─────────────────────────────────────────────────────────────────────────────────


def mark(assignment: Assignment, item_id: str, key: str) -> None:
    """Keeps the words that were selected in the text."""
    selected = st.session_state[key].get("selected") or {}
    words, near = selected.get("words"), selected.get("near")
    if not isinstance(words, str) or not isinstance(near, int):
        return
    passed, store = assignment.passed, assignment.store
    where = (store, passed.project_id, passed.pass_id, item_id, words)
    _remark(assignment, item_id, lambda: projects.mark_words(*where, near=near, form=_new_form()))


def unmark(assignment: Assignment, item_id: str, span: Span) -> None:
    passed, store = assignment.passed, assignment.store
    where = (store, passed.project_id, passed.pass_id, item_id, span)
    _remark(assignment, item_id, lambda: projects.unmark_words(*where, form=_new_form()))


def _remark(assignment: Assignment, item_id: str, change: Callable[[], tuple[Span, ...]]) -> None:
    shown = _meant(assignment, item_id)
    if shown is None:
        return
    try:
        spans = change()
    except ConcordError as error:
        st.session_state[state.LABEL_SHOWN] = replace(shown, missing=str(error))
        return
    if (kept := st.session_state.get(state.LABEL_MARKED)) is not None:
        kept[1][item_id] = spans
    st.session_state[state.LABEL_SHOWN] = replace(shown, spans=spans, missing="")
