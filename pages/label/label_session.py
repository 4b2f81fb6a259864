"""The labelling session of one rater: one item at a time, by keys or taps.

The rater sees neither judges nor the labels of other raters. The session is a fragment, so that the rest of the page
isn't redrawn. `label_keys.js` marks words and adds keyboard shortcuts, and `label_number.js` focuses the number box.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.labelling import AnnotationSession
from core.store.store import Store
from pages.label import label_item, label_shown
from pages.label.label_shown import Assignment, ShownItem, Wish, box_key, comment_key, press_key
from pages.ui import remembered, state
from pages.ui.page import finding
from pages.ui.screens import plain

LONGEST_COMMENT = 5_000
PAUSE = "1.5s"
"""A comment is saved once typing rests for this long."""
LONGEST_QUOTE = 60
_TEXT, _DESK, _PRESS, _SHEET = (state.widget(f"label_{name}") for name in ("text", "desk", "press", "sheet"))
"""Keys of the parts of the screen that scripts and style sheet know by name."""
_HERE = Path(__file__).parent
_KEYS = st.components.v2.component(
    "concord_label_keys",
    html='<button class="concord-mark" type="button">Mark selected words<kbd>H</kbd></button>',
    css=(_HERE / "label_keys.css").read_text("utf-8"),
    js=(_HERE / "label_keys.js").read_text("utf-8"),
    isolate_styles=False,
)
_CURSOR = st.components.v2.component("concord_cursor", js=(_HERE / "label_number.js").read_text("utf-8"))
_SHEET_ROWS = """
| **X** | can't tell |
| **Enter** | save and go to the next item (also works in a comment) |
| **← →** | previous or next item (also works at the start or end of a comment) |
| **C** | write a comment |
| **U** | go to the first unfinished item |
| **Z** | undo the last label |
| **Backspace** | rate all aspects of the item again |
| **H** | mark the selected words. To select them by keyboard: H, ← → to move, Shift + ← → to extend, H to mark |
| **Esc** | leave the comment |
| **?** | show this list |"""


@st.fragment
def draw(assignment: Assignment) -> None:
    """Draw progress, the item, its label buttons, and the navigation buttons."""
    passed, store = assignment.passed, assignment.store
    try:
        session = projects.join_pass(store, passed.project_id, passed.pass_id)
    except ConcordError as error:
        st.error(plain(f"Labelling can't continue: {error}"), icon=":material/error:")
        return
    st.session_state[state.LABEL_SESSION] = session
    shown = label_shown.settle(assignment, session)
    _draw_head(assignment, session, shown)
    if shown.problem:
        st.error(plain(f"This wasn't saved: {shown.problem}"), icon=":material/error:")
    if shown.item_id is None:
        look = {"key": state.widget("label_first"), "on_click": label_shown.go, "args": (None, "first")}
        words = f"You have labelled all {len(session.assigned)} of your items. Thank you."
        finding(words, step=lambda: st.button("Review your labels", **look))
        st.caption("Your labels are saved. You can close this page.")
        return
    item = label_item.item_of(passed.golden_id, store, shown.item_id)
    kind = label_item.kind_of(passed.golden_id, store)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        with st.container(key=_TEXT):
            label_item.draw_target(item, kind)
        _draw_marked(assignment, shown, shown.item_id)
        label_item.draw_beside(item, kind)
    with right, st.container(key=_DESK):
        with st.container(key=_PRESS, gap="small"):
            _draw_answers(assignment, shown)
            asked = st.container()  # stays in view on a phone
            _draw_ways(assignment, shown)
        with asked if shown.note.startswith(label_shown.WHY) else st.container():
            st.text_input(
                "Comment",
                value=shown.comment,
                key=comment_key(shown),
                max_chars=LONGEST_COMMENT,
                placeholder="Comment, saved as you type",
                label_visibility="collapsed",
                live=PAUSE,
                on_change=label_shown.comment_on,
                args=(assignment, shown.item_id),
            )
        st.session_state.setdefault(label_shown.AUTO, st.session_state.get(state.LABEL_AUTO, remembered.auto_advance()))
        auto = st.session_state[state.LABEL_AUTO] = st.toggle("Open the next item automatically", key=label_shown.AUTO)
        remembered.store_auto_advance(auto)


def _draw_head(assignment: Assignment, session: AnnotationSession, shown: ShownItem) -> None:
    """Draw the progress of the rater, the instructions and the list of keys."""
    n, done = len(session.assigned), len(session.done)
    place = n if shown.item_id is None else session.assigned.index(shown.item_id) + 1
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.progress(done / n if n else 0.0, text=f"**{place} of {n}** · {done} done")
        if shown.item_id is None:
            return
        plan = assignment.passed.plan
        if plan.instructions or any(each.definition for each in plan.aspects):
            with st.popover("Instructions", key=state.widget("label_instructions")):
                label_item.draw_instructions(plan)
        with st.popover("Keys", icon=":material/keyboard:", key=_SHEET):
            rates = f"| **{label_item.keys_of(assignment.aspects[0])}** | rate the selected aspect |"
            st.markdown(f"| Key | Action |\n|:--|:--|\n{rates}{_SHEET_ROWS}")


def _draw_marked(assignment: Assignment, shown: ShownItem, item_id: str) -> None:
    """Draw the button that marks words, and a button for each marked phrase that removes the mark."""
    key = press_key(shown, "mark")
    data: dict[str, object] = {name: press_key(shown, "way", name) for name in ("next", "left", "right")}
    data |= {"sheet": _SHEET, "spans": [{"start": span.start, "words": span.words} for span in shown.spans]}
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _KEYS(key=key, data=data, on_selected_change=lambda: label_shown.highlight(assignment, item_id, key))
        for span in shown.spans:
            words = " ".join(span.words.split())
            short = words if len(words) <= LONGEST_QUOTE else f"{words[:LONGEST_QUOTE]} …"
            st.button(
                plain(f"“{short}”"),
                key=press_key(shown, "span", span.start, span.end),
                icon=":material/close:",
                type="tertiary",
                help="Remove this mark",
                on_click=label_shown.remove_highlight,
                args=(assignment, item_id, span),
            )


def _draw_answers(assignment: Assignment, shown: ShownItem) -> None:
    """Draw the label buttons of each aspect. Keys rate the first unrated aspect, or the only one."""
    passed, aspects = assignment.passed, assignment.aspects
    kind = label_item.kind_of(passed.golden_id, assignment.store)
    usual = 0 if len(aspects) == 1 else None
    active = next((k for k, aspect in enumerate(aspects) if aspect.aspect not in shown.known), usual)
    if shown.redo is not None:
        active = shown.redo
    for place, aspect in enumerate(aspects):
        levels, choices, here = label_item.levels_of(aspect, kind), aspect.choices(), place == active
        mark = ":primary[:material/keyboard:] " if here and len(aspects) > 1 else ""
        done = " :green[:material/check:]" if aspect.aspect in shown.known else ""
        ends = f"{aspect.scale.low:g} is lowest, {aspect.scale.high:g} is highest"
        ends = f":gray[{'Which text is better?' if levels else ends}]"
        note = ends
        if shown.note and place == (active or 0):
            note = f"**{shown.note}**" if shown.note == label_shown.UNDONE else f":orange[**{plain(shown.note)}**]"
        st.markdown(f"{mark}**{plain(aspect.aspect)}**{done} · {note}")
        if aspect.definition:
            with st.container(key=state.widget(f"label_definition_{place}")):  # shown with the instructions on a phone
                st.markdown(plain(aspect.definition))
        cannot_tell = "X" if here else None
        if not choices:
            _draw_box(assignment, shown, place, cannot_tell)
            continue
        keys = label_item.keys_for(choices)
        same = here and keys == tuple(f"{value:g}" for value in choices)
        anchors = _anchors(assignment.store, passed.project_id, passed.golden_id, aspect.aspect) or levels
        place_key = state.widget(f"label_{'same' if same else 'own'}_{place}")
        with st.container(horizontal=not anchors, gap="xsmall", key=place_key):
            for value, key in zip(choices, keys, strict=True):
                anchor = anchors.get(value, "") if anchors else None
                _draw_choice(assignment, shown, aspect.aspect, value, key if here else None, anchor=anchor)
        _draw_choice(assignment, shown, aspect.aspect, None, cannot_tell)
    if any(not aspect.choices() for aspect in aspects):
        # focus the box of the aspect that the keys rate, unless the rater types elsewhere
        wanted = None if active is None or aspects[active].choices() else box_key(shown, active)
        _CURSOR(key=state.widget("label_cursor"), data={"wanted": wanted, "turn": uuid.uuid4().hex})


@st.cache_data(ttl=10, max_entries=64, show_spinner=False)
def _anchors(_store: Store, project_id: str, golden_id: str, aspect: str) -> Mapping[float, str]:
    """Return the description of each level, cached for a few seconds because every press reads it."""
    return projects.get_anchors(_store, project_id, golden_id, aspect).texts


def _draw_choice(
    assignment: Assignment,
    shown: ShownItem,
    aspect: str,
    value: float | None,
    shortcut: str | None,
    *,
    anchor: str | None = None,
) -> None:
    """Draw the button of one label. With an anchor ("" for a level without one), it fills the width."""
    label = "Cannot tell" if value is None else f"**{plain(f'{value:g}')}**"
    st.button(
        f"{label} {plain(anchor)}" if anchor else label,
        key=press_key(shown, aspect, value),
        type="primary" if aspect in shown.known and shown.known[aspect] == value else "secondary",
        shortcut=shortcut,
        width="content" if anchor is None else "stretch",
        wrap=anchor is not None or None,
        on_click=label_shown.answer,
        args=(assignment, shown.item_id, aspect, value),
    )


def _draw_box(assignment: Assignment, shown: ShownItem, place: int, cannot_tell: str | None) -> None:
    """Draw a text box for a typed label, filled with the saved label; Enter or Keep saves it."""
    aspect, key = assignment.aspects[place], box_key(shown, place)
    known, what = shown.known.get(aspect.aspect), "whole number" if aspect.scale.step == 1 else "number"
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        with (
            st.form(f"{key}_form", border=False, width="content"),
            st.container(horizontal=True, gap="small", vertical_alignment="bottom"),
        ):
            st.text_input(
                f"A {what} from {aspect.scale.low:g} to {aspect.scale.high:g}",
                value="" if known is None else repr(known).removesuffix(".0"),
                key=key,
                max_chars=40,
                width=240,
                autocomplete="off",
            )
            args = (assignment, shown.item_id, place, key)
            st.form_submit_button("Keep", on_click=label_shown.answer_number, args=args)
        _draw_choice(assignment, shown, aspect.aspect, None, cannot_tell)


def _draw_ways(assignment: Assignment, shown: ShownItem) -> None:
    """Draw the buttons for other items, and Undo."""
    ways: list[tuple[str, Wish, str]] = [
        ("Save and next", "next", "Enter"),
        ("Back", "left", "Left"),
        ("Forward", "right", "Right"),
        ("First unfinished", "open", "U"),
    ]
    if len(assignment.aspects) > 1 and len(shown.known) == len(assignment.aspects):
        ways.append(("Answer again", "again", "Backspace"))

    def button(label: str, name: str, shortcut: str, act: Callable[..., None], *args: object) -> None:
        look = "primary" if name == "next" else "secondary"
        st.button(label, key=press_key(shown, "way", name), type=look, shortcut=shortcut, on_click=act, args=args)

    with st.container(horizontal=True, gap="xsmall"):
        for label, wish, shortcut in ways:
            button(label, wish, shortcut, label_shown.go, shown.item_id, wish)
        button("Undo", "undo", "Z", label_shown.undo, assignment, shown.item_id, uuid.uuid4().hex)
