"""State of the item on a rater's screen, and the callbacks of its buttons.

The browser session holds the item on the screen. The store holds the rater's labels, saved after every press.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.labelling import AnnotationSession, LabelAspect, LabelPass, Span
from core.store.store import Store
from pages.label import label_item
from pages.ui import state

Wish = Literal["", "next", "left", "right", "open", "first", "again", "undone"]
AUTO = state.widget("label_auto")
UNDONE = "Your last label was removed. Rate this item again."
WHY = "Why "
MOST_SKIPPED = 5
"""Whoever leaves so many of the lowest and highest labels without a reason is asked for no more of them."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A labelling pass, and the rater's `Store`."""

    store: Store
    passed: LabelPass

    @property
    def aspects(self) -> tuple[LabelAspect, ...]:
        return self.passed.plan.aspects

    def where(self, item_id: str | None) -> tuple[Store, str, str, str]:
        """Return the arguments that identify an item in calls to `core.projects`."""
        return self.store, self.passed.project_id, self.passed.pass_id, str(item_id)


@dataclass(frozen=True, slots=True)
class ShownItem:
    """The item on the labelling screen.

    Attributes:
        item_id: None when all items are done.
        form: Id of the next save. A repeated save with the same id counts once.
        sheet: Id that is new each time an item is shown, so that typed text never appears with another item.
        known: Aspect → saved label.
        reviewed: Whether the item was complete when it was shown.
        redo: Index of the aspect to answer again.
        wish: The move that the user has asked for, such as "next". A key press only records the move, so that a label
            and a quick Enter work in either order.
        note: What to do first, or the result of the last key press.
    """

    pass_id: str
    rater: str
    item_id: str | None
    form: str = ""
    sheet: str = ""
    comment: str = ""
    known: Mapping[str, float | None] = field(default_factory=dict)
    reviewed: bool = False
    redo: int | None = None
    wish: Wish = ""
    problem: str = ""
    note: str = ""
    spans: tuple[Span, ...] = ()


# ── the item on the screen ────────────────────────────────────────────────────────────────────────────────────


def settle(assignment: Assignment, session: AnnotationSession) -> ShownItem:
    """Return the item to show: the requested item, else the current item, else the first unfinished item."""
    shown, order = _on_screen(), session.assigned
    if (
        shown is None
        or (shown.pass_id, shown.rater) != (session.pass_id, session.rater)
        or shown.item_id not in (None, *order)
    ):
        shown = _show_item(assignment, session, session.first_open)
    elif shown.wish == "again":
        shown = replace(shown, wish="", redo=0)
    elif shown.wish == "next" and shown.item_id is not None and shown.item_id not in session.done:
        said = session.values(shown.item_id)
        missing = next(aspect for aspect in assignment.aspects if aspect.aspect not in said)
        on = f" on {missing.aspect}" if len(assignment.aspects) > 1 else ""
        note = f"Rate this item{on} first: {label_item.keys_words(missing)}."
        shown = replace(shown, wish="", note=note)
    elif shown.wish:
        place = -1 if shown.item_id is None else order.index(shown.item_id)
        if shown.item_id is None or shown.wish == "first":
            item_id = order[0]
        elif shown.wish == "undone":
            item_id = shown.item_id
        elif shown.wish in ("left", "right"):
            item_id = order[min(max(place + (1 if shown.wish == "right" else -1), 0), len(order) - 1)]
        else:
            later = order[place + 1 :] if shown.wish == "next" else ()
            item_id = next((item_id for item_id in later if item_id not in session.done), session.first_open)
            if item_id is None and shown.reviewed:  # all are done: on with the review
                item_id = next(iter(later), None)
        shown = replace(_show_item(assignment, session, item_id), note=shown.note)
    if shown.item_id is not None:
        shown = replace(shown, known=session.values(shown.item_id))
    st.session_state[state.LABEL_SHOWN] = shown
    return shown


def _show_item(assignment: Assignment, session: AnnotationSession, item_id: str | None) -> ShownItem:
    """Return an item with its saved labels and a fresh form."""
    shown = ShownItem(session.pass_id, session.rater, item_id, _new_form(), uuid.uuid4().hex[:12])
    if item_id is None:
        return shown
    whose, kept = (session.pass_id, session.rater), st.session_state.get(state.LABEL_MARKED)
    if kept is None or kept[0] != whose:  # once per session, because it reads the marks of all raters
        marked = projects.my_highlights(assignment.store, assignment.passed.project_id, session.pass_id)
        kept = st.session_state[state.LABEL_MARKED] = (whose, marked)
    comment, known = session.comments.get(item_id, ""), session.values(item_id)
    spans, reviewed = kept[1].get(item_id, ()), item_id in session.done
    return replace(shown, comment=comment, known=known, spans=spans, reviewed=reviewed)


def _on_screen() -> ShownItem | None:
    shown: ShownItem | None = st.session_state.get(state.LABEL_SHOWN)
    return shown


def _meant(assignment: Assignment, item_id: str) -> ShownItem | None:
    """Return the shown item if a press belongs to it, this pass and this rater; else None."""
    shown, wanted = _on_screen(), (assignment.passed.pass_id, assignment.store.actor.name, item_id)
    return shown if shown is not None and (shown.pass_id, shown.rater, shown.item_id) == wanted else None


def _new_form() -> str:
    return f"label:{uuid.uuid4().hex}"


def comment_key(shown: ShownItem) -> str:
    return state.widget(f"label_comment_{shown.sheet}")


def box_key(shown: ShownItem, place: int) -> str:
    """Return the widget key of an aspect's number box. It is new for each item, so the box starts empty."""
    return state.widget(f"label_number_{shown.sheet}_{place}")


def press_key(shown: ShownItem, *which: object) -> str:
    """Return the key of a button, unique per item, pass and rater. `which` names the button."""
    return state.widget("_".join(map(str, ("label", shown.pass_id, shown.rater, shown.item_id, *which))))


# ── actions of the buttons ───────────────────────────────────────────────────────────────────────────────────


def answer(assignment: Assignment, item_id: str, aspect: str, value: float | None) -> None:
    """Save one label immediately.

    A repeated press is ignored, and so is a late press for an item that the rater has already left with Enter.
    """
    shown = _meant(assignment, item_id)
    if shown is None or (shown.wish and aspect in shown.known):
        return
    if aspect not in shown.known or shown.known[aspect] != value:
        shown = _save(assignment, shown, {aspect: value})
    if shown.redo is not None and not shown.problem:
        shown = replace(shown, redo=shown.redo + 1 if shown.redo + 1 < len(assignment.aspects) else None)
    why = "" if shown.problem or shown.wish or shown.redo is not None else _asks_why(assignment, shown)
    if st.session_state.get(AUTO) and shown.redo is None and not why:
        shown = _on_if_complete(assignment, shown)
    st.session_state[state.LABEL_SHOWN] = replace(shown, note=why)


def _asks_why(assignment: Assignment, shown: ShownItem) -> str:
    """Ask for a reason if the item is complete and a label is the lowest or highest; else "".

    Doesn't depend on other raters' labels, so the pass stays blind. Never asks on scales with two steps.
    """
    ends = {each.aspect: (each.scale.low, each.scale.high) for each in assignment.aspects if not each.scale.two_steps}

    def extreme(values: Mapping[str, float | None]) -> float | None:
        return next((value for aspect, value in values.items() if value in ends.get(aspect, ())), None)

    value, session = extreme(shown.known), st.session_state.get(state.LABEL_SESSION)
    written = str(st.session_state.get(comment_key(shown), shown.comment)).strip()
    if session is None or value is None or written or len(shown.known) < len(assignment.aspects):
        return ""
    others = [item_id for item_id in session.done if item_id != shown.item_id and not session.comments.get(item_id)]
    if sum(extreme(session.values(item_id)) is not None for item_id in others) >= MOST_SKIPPED:
        return ""
    return f"{WHY}{value:g}? A comment helps the judge."


def _on_if_complete(assignment: Assignment, shown: ShownItem) -> ShownItem:
    done = not shown.problem and all(aspect.aspect in shown.known for aspect in assignment.aspects)
    return replace(shown, wish="next") if done else shown


def answer_number(assignment: Assignment, item_id: str, place: int, key: str) -> None:
    """Save the number typed into the box `key` for the aspect at index `place`.

    Then the next item is shown, unless the item still lacks a label.
    """
    shown = _meant(assignment, item_id)
    if shown is None or key != box_key(shown, place):
        return
    value, wrong = read_number(str(st.session_state[key]), assignment.aspects[place])
    if wrong:
        st.session_state[state.LABEL_SHOWN] = replace(shown, note=wrong)
        return
    answer(assignment, item_id, assignment.aspects[place].aspect, value)
    if (shown := _meant(assignment, item_id)) is not None:
        st.session_state[state.LABEL_SHOWN] = _on_if_complete(assignment, shown)


def read_number(typed: str, aspect: LabelAspect) -> tuple[float | None, str]:
    """Read a typed label; return (label, ""), or (None, error message).

    A typed x means "cannot tell" and returns (None, "").
    """
    text, ends = typed.strip(), f"from {aspect.scale.low:g} to {aspect.scale.high:g}"
    if text.lower() == "x":
        return None, ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        what = f"“{text}” isn't a number. " if text else ""
        point = " (with a decimal point, such as 3.5)" if "," in text else ""
        return None, f"{what}Rate this item first: type a number {ends}{point}, then press Enter."
    if not aspect.takes(value):
        steps = f" in steps of {aspect.scale.step:g}" if aspect.scale.step else ""
        return None, f"{text} isn't on the scale. Type a number {ends}{steps}."
    return value, ""


def comment_on(assignment: Assignment, item_id: str) -> None:
    """Save the rater's comment when typing pauses, even if the item has no label yet."""
    shown = _meant(assignment, item_id)
    if shown is not None:
        st.session_state[state.LABEL_SHOWN] = _save(assignment, shown, {})


def _save(assignment: Assignment, shown: ShownItem, values: Mapping[str, float | None]) -> ShownItem:
    """Save these labels with the current comment; without labels, save only the comment."""
    comment = str(st.session_state.get(comment_key(shown), shown.comment))
    try:
        projects.save_label(*assignment.where(shown.item_id), values, comment=comment, form=shown.form)
    except ConcordError as error:
        return replace(shown, problem=str(error))
    return replace(shown, form=_new_form(), known={**shown.known, **values}, problem="")


def go(item_id: str | None, wish: Wish) -> None:
    """Request another item. A second Enter on the same item does not skip the next item."""
    shown = _on_screen()
    if shown is not None and shown.item_id == item_id:
        st.session_state[state.LABEL_SHOWN] = replace(shown, wish=wish, note="")


def undo(assignment: Assignment, item_id: str, form: str) -> None:
    """Undo the last label and show its item."""
    shown = _meant(assignment, item_id)
    if shown is None:
        return
    store, project_id, pass_id, _ = assignment.where(item_id)
    try:
        undone = projects.undo_label(store, project_id, pass_id, form=form)
    except ConcordError as error:
        shown = replace(shown, problem=str(error))
    else:
        if undone is None:
            shown = replace(shown, wish="", note="There is no label to undo.")
        else:
            shown = replace(shown, item_id=undone, wish="undone", note=UNDONE)
    st.session_state[state.LABEL_SHOWN] = shown


# ── marked words ─────────────────────────────────────────────────────────────────────────────────────────────


def highlight(assignment: Assignment, item_id: str, key: str) -> None:
    """Highlight the words that the rater selected in the text."""
    selected = st.session_state[key].get("selected") or {}
    words, near = selected.get("words"), selected.get("near")
    if isinstance(words, str) and isinstance(near, int):
        where = assignment.where(item_id)
        _remark(assignment, item_id, lambda: projects.add_highlight(*where, words, near=near, form=_new_form()))


def remove_highlight(assignment: Assignment, item_id: str, span: Span) -> None:
    where = assignment.where(item_id)
    _remark(assignment, item_id, lambda: projects.remove_highlight(*where, span, form=_new_form()))


def _remark(assignment: Assignment, item_id: str, change: Callable[[], tuple[Span, ...]]) -> None:
    shown = _meant(assignment, item_id)
    if shown is None:
        return
    try:
        shown = replace(shown, spans=change(), note="")
        st.session_state[state.LABEL_MARKED][1][item_id] = shown.spans
    except ConcordError as error:
        shown = replace(shown, note=str(error))
    st.session_state[state.LABEL_SHOWN] = shown
