"""The labelling session of one rater: one item at a time, by keys or taps, blind to judges and to other raters.

All of it is one fragment, so nothing else of the page is drawn again.  Text and buttons stand side by side; on a phone
the buttons stay at the bottom of the screen.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.labelling import AnnotationSession, LabelAspect
from core.store.store import Store
from core.wording import duration
from pages.label import label_item, label_keys, label_number, label_shown
from pages.label.label_shown import Assignment, Shown, Wish, comment_key, press_key
from pages.ui import state
from pages.ui.screens import plain

LONGEST_COMMENT = 5_000
PAUSE = "1.5s"
"""A comment is kept once typing rests for this long."""
LONGEST_QUOTE = 60


@st.fragment
def draw(assignment: Assignment) -> None:
    """The session as it stands: progress, the item, and beside it a row of labels an aspect and the way on."""
    try:
        session = _session(assignment)
    except ConcordError as error:
        st.error(plain(f"Labelling cannot go on: {error}"), icon=":material/error:")
        return
    shown = label_shown.settle(assignment, session)
    _draw_head(assignment, session, shown)
    if shown.problem:
        st.error(plain(f"This was not saved: {shown.problem}"), icon=":material/error:")
    if shown.item_id is None:
        _draw_done(session)
        return
    item = label_item.item_of(assignment.passed.golden_id, assignment.store, shown.item_id)
    kind = label_item.kind_of(assignment.passed.golden_id, assignment.store)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        with st.container(key=label_keys.TEXT):
            label_item.draw_target(item, kind)
        _draw_marked(assignment, shown)
        label_item.draw_beside(item, kind)
    with right, st.container(key=label_keys.DESK):
        with st.container(key=label_keys.PRESS, gap="small"):
            _draw_answers(assignment, shown)
            _draw_ways(assignment, shown)
        _draw_comment(assignment, shown)
        if not assignment.passed.plan.blind:
            _draw_others(assignment, shown)


def draw_preview(assignment: Assignment, draw_way_in: Callable[[], None]) -> None:
    """The first item as those who rate see it; nothing can be pressed yet but the way in, beside it."""
    golden = label_item.kept_golden(assignment.passed.golden_id, assignment.store)
    item = golden.items[assignment.passed.plan.positions[0]]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        label_item.draw_target(item, golden.kind)
        label_item.draw_beside(item, golden.kind)
    with right:
        for aspect in assignment.aspects:
            meaning = f": {plain(aspect.definition)}" if aspect.definition else ""
            st.markdown(f"**{plain(aspect.aspect)}**{meaning}  \n:gray[{label_item.scale_words(aspect, golden.kind)}]")
            with st.container(horizontal=True, gap="xsmall"):
                for value in aspect.choices():
                    key = state.widget(f"label_preview_{aspect.aspect}_{value:g}")
                    st.button(f"**{value:g}**", key=key, disabled=True)
        with st.container(key="way_in"):
            draw_way_in()


def _session(assignment: Assignment) -> AnnotationSession:
    """The session as the store has it; read whole only when something was saved since the last drawing."""
    seen: AnnotationSession | None = st.session_state.get(state.LABEL_SESSION)
    session = projects.join_pass(assignment.store, assignment.passed.project_id, assignment.passed.pass_id, seen=seen)
    st.session_state[state.LABEL_SESSION] = session
    return session


def _draw_head(assignment: Assignment, session: AnnotationSession, shown: Shown) -> None:
    """How far I am and how far all are; what can be looked up behind a press."""
    n, done = len(session.assigned), session.n_done
    place = f"**{session.assigned.index(shown.item_id) + 1} of {n}**" if shown.item_id else f"**{n} of {n}**"
    left = "" if session.seconds_left is None or done == n else f", about {duration(session.seconds_left)} left"
    by_rater, planned = _team(assignment.store, assignment.passed.project_id, session.pass_id)
    given = (by_rater | {session.rater: done}).values()  # mine as of now: what is kept may be older
    all_of_us = f" · the team has {sum(given):,} of {planned:,} ratings" if assignment.passed.plan.n_raters > 1 else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.progress(done / n if n else 0.0, text=f"{place} · {done} done{left}{all_of_us}")
        st.toggle(
            "Open the next item by itself",
            key=label_shown.AUTO,
            help="The next item comes as soon as this one is rated.",
        )
        if assignment.passed.plan.instructions:
            with st.popover("Instructions", key=state.widget("label_instructions")):
                label_item.draw_text(assignment.passed.plan.instructions)
        label_keys.draw_sheet(label_item.keys_of(assignment.aspects[0]))


@st.cache_data(ttl=10, max_entries=64, show_spinner=False)
def _team(_store: Store, project_id: str, pass_id: str) -> tuple[dict[str, int], int]:
    """Kept for some seconds: every press of everybody asks."""
    return projects.team_progress(_store, project_id, pass_id)


def _draw_done(session: AnnotationSession) -> None:
    st.success(f"All {len(session.assigned)} of your items are labelled. Thank you.", icon=":material/task_alt:")
    st.button("Look at them again", key=state.widget("label_first"), on_click=label_shown.go, args=(None, "first"))


def _active(assignment: Assignment, shown: Shown) -> int | None:
    """The place of the aspect that the keys answer: the first open one; a single aspect keeps them."""
    if shown.redo is not None:
        return shown.redo
    open_ones = [k for k, aspect in enumerate(assignment.aspects) if aspect.aspect not in shown.known]
    return open_ones[0] if open_ones else (0 if len(assignment.aspects) == 1 else None)


def _draw_marked(assignment: Assignment, shown: Shown) -> None:
    """The words marked in the text, each with a press that takes it away, and the button that marks more."""
    key, item_id = press_key(shown, "mark"), str(shown.item_id)
    presses = {name: press_key(shown, "way", name) for name in ("next", "left", "right")}
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        label_keys.draw(key, presses, shown.spans, lambda: label_shown.mark(assignment, item_id, key))
        for span in shown.spans:
            words = " ".join(span.words.split())
            short = words if len(words) <= LONGEST_QUOTE else f"{words[:LONGEST_QUOTE]} …"
            st.button(
                plain(f"“{short}”"),
                key=press_key(shown, "span", span.start, span.end),
                icon=":material/close:",
                type="tertiary",
                help="Take this mark away",
                on_click=label_shown.unmark,
                args=(assignment, item_id, span),
            )


def _draw_answers(assignment: Assignment, shown: Shown) -> None:
    active, kind = _active(assignment, shown), label_item.kind_of(assignment.passed.golden_id, assignment.store)
    for place, aspect in enumerate(assignment.aspects):
        here = place == active
        mark = ":primary[:material/keyboard:] " if here and len(assignment.aspects) > 1 else ""
        done = " :green[:material/check:]" if aspect.aspect in shown.known else ""
        meaning = f": {plain(aspect.definition)}" if aspect.definition else ""
        said = shown.missing or shown.told if place == (active or 0) else ""
        ends = f":orange[**{plain(said)}**]" if said else f":gray[{label_item.scale_words(aspect, kind)}]"
        st.markdown(f"{mark}**{plain(aspect.aspect)}**{meaning}{done}  \n{ends}")
        if aspect.choices():
            _draw_choices(assignment, shown, place, here)
        else:
            _draw_number(assignment, shown, place, here)
    wanted = (
        None if active is None or assignment.aspects[active].choices() else label_number.box_key(shown.sheet, active)
    )
    if any(not aspect.choices() for aspect in assignment.aspects):
        label_number.draw_cursor(wanted)


def _draw_choices(assignment: Assignment, shown: Shown, place: int, here: bool) -> None:
    """A button a level, beside it what it means where that is written."""
    aspect = assignment.aspects[place]
    choices = aspect.choices()
    keys = label_item.keys_for(choices)
    same = here and keys == tuple(f"{value:g}" for value in choices)
    anchors = _anchors(assignment, aspect)
    with st.container(
        horizontal=not anchors, gap="xsmall", key=state.widget(f"label_{'same' if same else 'own'}_{place}")
    ):
        for value, key in zip(choices, keys, strict=True):
            anchor = anchors.get(value, "") if anchors else None
            _draw_choice(assignment, shown, aspect.aspect, value, key if here else None, anchor=anchor)
    _draw_choice(assignment, shown, aspect.aspect, None, "X" if here else None)


def _anchors(assignment: Assignment, aspect: LabelAspect) -> Mapping[float, str]:
    passed = assignment.passed
    written = _written(assignment.store, passed.project_id, passed.golden_id, aspect.aspect)
    return written or label_item.levels_of(aspect, label_item.kind_of(passed.golden_id, assignment.store))


@st.cache_data(ttl=10, max_entries=64, show_spinner=False)
def _written(_store: Store, project_id: str, golden_id: str, aspect: str) -> Mapping[float, str]:
    """As `_team`."""
    return projects.get_anchors(_store, project_id, golden_id, aspect).texts


def _draw_choice(
    assignment: Assignment,
    shown: Shown,
    aspect: str,
    value: float | None,
    shortcut: str | None,
    *,
    anchor: str | None = None,
) -> None:
    """A button; with an anchor ("" where this level has none) it takes the whole width."""
    chosen = aspect in shown.known and shown.known[aspect] == value
    label = "Cannot tell" if value is None else f"**{plain(f'{value:g}')}**"
    st.button(
        f"{label} {plain(anchor)}" if anchor else label,
        key=press_key(shown, aspect, value),
        type="primary" if chosen else "secondary",
        shortcut=shortcut,
        width="content" if anchor is None else "stretch",
        wrap=anchor is not None or None,
        on_click=label_shown.answer,
        args=(assignment, shown.item_id, aspect, value),
    )


def _draw_number(assignment: Assignment, shown: Shown, place: int, here: bool) -> None:
    aspect, key = assignment.aspects[place], label_number.box_key(shown.sheet, place)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        known = shown.known.get(aspect.aspect)
        label_number.draw(aspect, key, known, label_shown.answer_number, (assignment, shown.item_id, place, key))
        _draw_choice(assignment, shown, aspect.aspect, None, "X" if here else None)


def _draw_comment(assignment: Assignment, shown: Shown) -> None:
    st.text_input(
        "Comment",
        value=shown.comment,
        key=comment_key(shown),
        max_chars=LONGEST_COMMENT,
        placeholder="A comment; kept as you type. Esc leaves it.",
        label_visibility="collapsed",
        live=PAUSE,
        on_change=label_shown.comment_on,
        args=(assignment, shown.item_id),
    )


def _draw_others(assignment: Assignment, shown: Shown) -> None:
    """What others said, in a pass that is not blind; not before this person has rated the item."""
    if any(aspect.aspect not in shown.known for aspect in assignment.aspects):
        st.caption("What others said is shown once you have rated this item.")
        return
    where = (assignment.store, assignment.passed.project_id, assignment.passed.pass_id, str(shown.item_id))
    try:
        said = projects.others_said(*where)
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
            key=press_key(shown, "way", wish),
            type="primary" if main else "secondary",
            shortcut=shortcut,
            on_click=label_shown.go,
            args=(shown.item_id, wish),
        )

    with st.container(horizontal=True, gap="xsmall"):
        way("Save and next", "next", "Enter", main=True)
        way("Back", "left", "Left")
        way("Forward", "right", "Right")
        st.button(
            "Undo",
            key=press_key(shown, "undo"),
            shortcut="Z",
            on_click=label_shown.undo,
            args=(assignment, shown.item_id, uuid.uuid4().hex),
        )
        way("First unfinished", "open", "U")
        if len(assignment.aspects) > 1 and len(shown.known) == len(assignment.aspects):
            way("Answer again", "again", "Backspace")
