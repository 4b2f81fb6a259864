"""The labelling session of one rater: one item at a time, by keys or taps, blind to judges and to other raters.

What is shown lies in the session of the browser; what was said lies in the store, saved with every press.  All of it is
one fragment, so nothing else of the page is drawn again.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.review.passes import AnnotationSession, LabelPass
from core.review.plan import LabelAspect
from core.store.store import Store
from pages.components import label_item, label_number, state, tables
from pages.components.screens import plain

LONGEST_COMMENT = 5_000
PAUSE = "1.5s"
"""A comment is kept once typing rests for this long."""
Wish = Literal["", "next", "left", "right", "open", "first", "again"]


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
    one breath work in either order.  `missing` says what has to be done before going on.
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


@st.fragment
def draw(assignment: Assignment) -> None:
    """The session as it stands: progress, the item, a row of labels an aspect, the way on."""
    try:
        session = _session(assignment)
    except ConcordError as error:
        st.error(plain(f"Labelling cannot go on: {error}"), icon=":material/error:")
        return
    shown = _settle(assignment, session)
    _draw_head(session, shown)
    if shown.problem:
        st.error(plain(f"This was not saved: {shown.problem}"), icon=":material/error:")
    if shown.item_id is None:
        _draw_done(session)
        return
    item = label_item.item_of(assignment.passed.golden_id, assignment.store, shown.item_id)
    left, right = st.columns([3, 2], gap="medium") if label_item.has_side(item) else (st.container(), None)
    with left:  # first, so that a phone shows it above the source
        label_item.draw_target(item)
        _draw_answers(assignment, shown)
        _draw_taken(assignment, session, shown)
        _draw_comment(assignment, shown)
        _draw_ways(assignment, shown)
        if not assignment.passed.plan.blind:
            _draw_others(assignment, shown.item_id)
    if right is not None:
        with right:
            label_item.draw_beside(item)


def _session(assignment: Assignment) -> AnnotationSession:
    """The session as the store has it; read whole only when something was saved since the last drawing."""
    seen: AnnotationSession | None = st.session_state.get(state.LABEL_SESSION)
    session = projects.join_pass(assignment.store, assignment.passed.project_id, assignment.passed.pass_id, seen=seen)
    st.session_state[state.LABEL_SESSION] = session
    return session


# ── the item on the screen ────────────────────────────────────────────────────────────────────────────────────


def _settle(assignment: Assignment, session: AnnotationSession) -> Shown:
    """The item to show: the one on the screen, or where its person wished to go; at first the first unfinished."""
    shown = _on_screen()
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
        shown = _show_item(assignment, session, _where(session, shown))
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
    return Shown(session.pass_id, session.rater, item_id, _new_form(), uuid.uuid4().hex[:12], said.comment, said.values)


def _on_screen() -> Shown | None:
    shown: Shown | None = st.session_state.get(state.LABEL_SHOWN)
    return shown


def _meant(assignment: Assignment, item_id: str) -> Shown | None:
    """What is shown where it is what a press was meant for: this item, in this pass, for this person."""
    shown, wanted = _on_screen(), (assignment.passed.pass_id, assignment.store.actor.name, item_id)
    return shown if shown is not None and (shown.pass_id, shown.rater, shown.item_id) == wanted else None


def _new_form() -> str:
    return f"label:{uuid.uuid4().hex}"


def _comment_key(shown: Shown) -> str:
    return state.widget(f"label_comment_{shown.sheet}")


def _press_key(shown: Shown, *which: object) -> str:
    """Of a button: of this item, in this pass, for this person."""
    return state.widget("_".join(map(str, ("label", shown.pass_id, shown.rater, shown.item_id, *which))))


# ── what a press does ────────────────────────────────────────────────────────────────────────────────────────


def _answer(assignment: Assignment, item_id: str, aspect: str, value: float | None) -> None:
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
    st.session_state[state.LABEL_SHOWN] = replace(shown, missing="")


def _answer_number(assignment: Assignment, item_id: str, place: int, key: str) -> None:
    """Enter in the box of `key`: keep the number and, when it was the last label missing, go on."""
    shown = _meant(assignment, item_id)
    if shown is None or key != label_number.box_key(shown.sheet, place):
        return
    value, wrong = label_number.read(str(st.session_state[key]), assignment.aspects[place])
    if wrong:
        st.session_state[state.LABEL_SHOWN] = replace(shown, missing=wrong)
        return
    _answer(assignment, item_id, assignment.aspects[place].aspect, value)
    shown = _meant(assignment, item_id)
    if shown is not None and len(shown.known) == len(assignment.aspects) and not shown.problem:
        st.session_state[state.LABEL_SHOWN] = replace(shown, wish="next")


def _comment(assignment: Assignment, item_id: str) -> None:
    """Keeps a comment when typing rests, and nothing else: no label is given by it."""
    shown = _meant(assignment, item_id)
    if shown is not None:
        st.session_state[state.LABEL_SHOWN] = _save(assignment, shown, {})


def _save(assignment: Assignment, shown: Shown, values: Mapping[str, float | None]) -> Shown:
    """Keeps these labels with the comment as it stands; without any, the comment alone."""
    comment = str(st.session_state.get(_comment_key(shown), shown.comment))
    where = (assignment.store, assignment.passed.project_id, assignment.passed.pass_id, str(shown.item_id))
    try:
        if values:
            projects.save_label(*where, values, comment=comment, form=shown.form)
        else:
            projects.save_comment(*where, comment, form=shown.form)
    except ConcordError as error:
        return replace(shown, problem=str(error))
    return replace(shown, form=_new_form(), known={**shown.known, **values}, problem="")


def _go(item_id: str | None, wish: Wish) -> None:
    """Notes where to; a second press of Enter on the item that was left does not skip the one that came."""
    shown = _on_screen()
    if shown is not None and shown.item_id == item_id:
        st.session_state[state.LABEL_SHOWN] = replace(shown, wish=wish, missing="")


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_head(session: AnnotationSession, shown: Shown) -> None:
    n, done = len(session.assigned), session.n_done
    place = f"**{session.assigned.index(shown.item_id) + 1} of {n}**" if shown.item_id else f"**{n} of {n}**"
    left = "" if session.seconds_left is None or done == n else f", about {tables.duration(session.seconds_left)} left"
    st.progress(done / n if n else 0.0, text=f"{place} · {done} done{left}")


def _draw_done(session: AnnotationSession) -> None:
    st.success(f"All {len(session.assigned)} of your items are labelled. Thank you.", icon=":material/task_alt:")
    st.button("Look at them again", key=state.widget("label_first"), on_click=_go, args=(None, "first"))


def _active(assignment: Assignment, shown: Shown) -> int | None:
    """The place of the aspect that the keys answer: the first open one; a single aspect keeps them."""
    if shown.redo is not None:
        return shown.redo
    open_ones = [k for k, aspect in enumerate(assignment.aspects) if aspect.aspect not in shown.known]
    return open_ones[0] if open_ones else (0 if len(assignment.aspects) == 1 else None)


def _draw_answers(assignment: Assignment, shown: Shown) -> None:
    active = _active(assignment, shown)
    for place, aspect in enumerate(assignment.aspects):
        here = place == active
        mark = ":primary[:material/keyboard:] " if here else ""
        done = " :green[:material/check:]" if aspect.aspect in shown.known else ""
        meaning = f": {plain(aspect.definition)}" if aspect.definition else ""
        missing = shown.missing if place == (active or 0) else ""
        ends = f":orange[**{plain(missing)}**]" if missing else f":gray[{label_item.scale_words(aspect)}]"
        st.markdown(f"{mark}**{plain(aspect.aspect)}**{meaning}{done} {ends}")
        if aspect.choices():
            with st.container(horizontal=True, gap="small"):
                _draw_choices(assignment, shown, aspect, here)
        else:
            _draw_number(assignment, shown, place, here)
    wanted = (
        None if active is None or assignment.aspects[active].choices() else label_number.box_key(shown.sheet, active)
    )
    if any(not aspect.choices() for aspect in assignment.aspects):
        label_number.draw_cursor(wanted)


def _draw_taken(assignment: Assignment, session: AnnotationSession, shown: Shown) -> None:
    """Which labels of this item were given in an earlier pass and taken over."""
    taken = session.said(str(shown.item_id)).taken
    if taken:
        names = {
            earlier.pass_id: earlier.name
            for earlier in projects.list_passes(assignment.store, assignment.passed.project_id)
        }
        passes = sorted({names.get(pass_id, "an earlier pass") for pass_id in taken.values()})
        st.caption(plain(f"Your label was taken over from {', '.join(passes)}. Rate again to change it."))


def _draw_choices(assignment: Assignment, shown: Shown, aspect: LabelAspect, here: bool) -> None:
    choices = aspect.choices()
    for value, key in zip(choices, label_item.keys_for(choices), strict=True):
        _draw_choice(assignment, shown, aspect.aspect, value, key if here else None)
    _draw_choice(assignment, shown, aspect.aspect, None, "X" if here else None)


def _draw_choice(assignment: Assignment, shown: Shown, aspect: str, value: float | None, shortcut: str | None) -> None:
    chosen = aspect in shown.known and shown.known[aspect] == value
    st.button(
        "Cannot tell" if value is None else f"**{plain(f'{value:g}')}**",
        key=_press_key(shown, aspect, value),
        type="primary" if chosen else "secondary",
        shortcut=shortcut,
        on_click=_answer,
        args=(assignment, shown.item_id, aspect, value),
    )


def _draw_number(assignment: Assignment, shown: Shown, place: int, here: bool) -> None:
    aspect, key = assignment.aspects[place], label_number.box_key(shown.sheet, place)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        known = shown.known.get(aspect.aspect)
        label_number.draw(aspect, key, known, _answer_number, (assignment, shown.item_id, place, key))
        _draw_choice(assignment, shown, aspect.aspect, None, "X" if here else None)


def _draw_comment(assignment: Assignment, shown: Shown) -> None:
    st.text_input(
        "Comment",
        value=shown.comment,
        key=_comment_key(shown),
        max_chars=LONGEST_COMMENT,
        placeholder="A comment, if you like; it is kept as you type. Tab leaves it.",
        label_visibility="collapsed",
        live=PAUSE,
        on_change=_comment,
        args=(assignment, shown.item_id),
    )


def _draw_others(assignment: Assignment, item_id: str) -> None:
    """What others said, in a pass that is not blind."""
    try:
        said = projects.others_said(assignment.store, assignment.passed.project_id, assignment.passed.pass_id, item_id)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/visibility_off:")
        return
    lines = [
        f"{who}: {aspect} {'cannot tell' if value is None else f'{value:g}'}" for who, aspect, value in said.raters
    ]
    lines += [f"{who} (a judge, on its own scale): {aspect} {value:.3g}" for who, aspect, value in said.judges]
    st.caption("Others said (this pass is not blind)")
    st.text("\n".join(lines) or "Nobody has said anything of this item yet.")


def _draw_ways(assignment: Assignment, shown: Shown) -> None:
    def way(label: str, wish: Wish, shortcut: str, *, main: bool = False) -> None:
        st.button(
            label,
            key=_press_key(shown, "way", wish),
            type="primary" if main else "secondary",
            shortcut=shortcut,
            on_click=_go,
            args=(shown.item_id, wish),
        )

    with st.container(horizontal=True, gap="small"):
        way("Save and next", "next", "Enter", main=True)
        way("Back", "left", "Left")
        way("Forward", "right", "Right")
        way("First unfinished", "open", "U")
        if len(assignment.aspects) > 1 and len(shown.known) == len(assignment.aspects):
            way("Answer again", "again", "Backspace")
