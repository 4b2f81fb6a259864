"""What each level of the scale means, written by reviewers and shown at the buttons of whoever labels."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core import projects
from core.errors import ConcordError, ConflictError
from core.projects.anchors import LONGEST_ANCHOR, Anchors
from core.projects.labelling import LabelAspect, LabelPass
from core.store.store import Store
from pages.ui import people, state
from pages.ui.screens import plain


def draw(store: Store, passed: LabelPass) -> None:
    """A form an aspect: one line a level."""
    st.markdown(
        "Write a sentence for each level. Everybody who labels these items sees it at the buttons, in this pass and "
        "in later ones."
    )
    for aspect in passed.plan.aspects:
        _draw_aspect(store, passed, aspect)


def _draw_aspect(store: Store, passed: LabelPass, aspect: LabelAspect) -> None:
    anchors = projects.get_anchors(store, passed.project_id, passed.golden_id, aspect.aspect)
    key = state.widget(f"anchors_{passed.golden_id}_{aspect.aspect}_{anchors.number}")
    levels = aspect.choices() or tuple(sorted({aspect.scale.low, aspect.scale.high, *anchors.texts}))
    with st.form(key):
        st.markdown(f"**{plain(aspect.aspect)}**" + (f": {plain(aspect.definition)}" if aspect.definition else ""))
        for level in levels:
            st.text_input(
                f"{level:g}{_end(aspect, level)}",
                value=anchors.texts.get(level, ""),
                key=f"{key}_{level:g}",
                max_chars=LONGEST_ANCHOR,
                placeholder="What an item of this level is like",
            )
        people.submit(
            store,
            "reviewer",
            f"Save the anchors of {plain(aspect.aspect)}",
            type="primary",
            icon=":material/anchor:",
            on_click=_save,
            args=(store, passed, aspect, {level: f"{key}_{level:g}" for level in levels}, anchors),
        )


def _end(aspect: LabelAspect, level: float) -> str:
    return {aspect.scale.low: " (lowest)", aspect.scale.high: " (highest)"}.get(level, "")


def _save(store: Store, passed: LabelPass, aspect: LabelAspect, boxes: Mapping[float, str], seen: Anchors) -> None:
    """Keeps what stands in the boxes (level → key), unless somebody was faster."""
    texts = {level: str(st.session_state[box]) for level, box in boxes.items()}
    where = (store, passed.project_id, passed.golden_id, aspect.aspect)
    try:
        projects.set_anchors(*where, texts, expected=seen.number)
    except ConflictError as error:
        mine = "; ".join(f"{level:g}: {text}" for level, text in texts.items() if text != seen.texts.get(level, ""))
        state.leave_notice(f"{error} You had written: {mine}", good=False)
    except ConcordError as error:
        state.leave_notice(f"Nothing was saved: {error}", good=False)
    else:
        state.leave_notice(f"The anchors of {aspect.aspect} are saved. Raters see them at the buttons.", good=True)
