"""The adjudication queue of a labelling pass: one item in full, who said what, and a decision with its reason."""

from __future__ import annotations

import uuid

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.labelling import LabelAspect, LabelPass
from core.projects.pass_results import Disagreement, PassSummary
from core.store.store import Store
from core.wording import counted
from pages.label import label_item
from pages.ui import grid, people, state, tables
from pages.ui.screens import plain


def draw(store: Store, passed: LabelPass, seen: PassSummary) -> None:
    """The items to decide, furthest apart first; what was decided stands below."""
    if not seen.queue:
        st.info(
            "Nothing to decide: no two raters differ by more than a step, and no triage called a label wrong."
            if not seen.decided
            else "All is decided. Freeze the labels below.",
            icon=":material/balance:",
        )
        _draw_decided(seen)
        return
    st.markdown(
        f"**{counted(len(seen.queue), 'item')} to decide.** Here raters differ by more than one step of the scale "
        "(a tenth of its range where it has no steps), or somebody's triage called the label wrong."
    )
    waiting = {(disagreement.aspect, disagreement.item_id): disagreement for disagreement in seen.queue}
    places = {which: place for place, which in enumerate(waiting, 1)}
    chosen = st.selectbox(
        "Item",
        list(waiting),
        key=state.widget(f"decide_{passed.pass_id}_{len(seen.decided)}"),
        format_func=lambda which: f"{places[which]} of {len(places)}: {_in_short(waiting[which])}",
        label_visibility="collapsed",
    )
    _draw_one(store, passed, seen, waiting[chosen])
    _draw_decided(seen)


def _in_short(disagreement: Disagreement) -> str:
    said = ", ".join(f"{label.rater} {label.value:g}" for label in disagreement.labels[:6])
    return f"{disagreement.item_id}, {disagreement.aspect} ({said or 'no ratings here'})"


def _draw_one(store: Store, passed: LabelPass, seen: PassSummary, disagreement: Disagreement) -> None:
    item = label_item.item_of(passed.golden_id, store, disagreement.item_id)
    left, right = st.columns([3, 2], gap="large")
    with left:
        kind = label_item.kind_of(passed.golden_id, store)
        label_item.draw_target(item, kind)
        label_item.draw_beside(item, kind)
    with right:
        _draw_said(disagreement)
        _draw_marked(store, passed, disagreement.item_id)
        flag = seen.flagged.get((disagreement.aspect, disagreement.item_id))
        if flag is not None:
            note = f": {flag.note}" if flag.note else ""
            st.markdown(plain(f"Triage by {flag.actor or 'somebody'}: label wrong{note}"))
        golden = label_item.kept_golden(passed.golden_id, store)
        if disagreement.aspect in golden.aspects:
            old = golden.aspects[disagreement.aspect].values[golden.item_ids.index(disagreement.item_id)]
            st.markdown(f"Label in the golden set: **{tables.DASH if old is None else f'{old:g}'}**")
        aspect = next(known for known in passed.plan.aspects if known.aspect == disagreement.aspect)
        _draw_form(store, passed, disagreement, aspect)


def _draw_said(disagreement: Disagreement) -> None:
    frame = pd.DataFrame(
        {
            "rater": [label.rater for label in disagreement.labels],
            disagreement.aspect: [label.value for label in disagreement.labels],
            "comment": [label.comment for label in disagreement.labels],
        }
    )
    if len(frame):
        grid.draw(frame, alt="Who said what", rows=8, undefined="")
    else:
        st.caption("Nobody has rated this item in this pass.")


def _draw_marked(store: Store, passed: LabelPass, item_id: str) -> None:
    """The words of the text that raters gave as their reason."""
    marked = projects.item_highlights(store, passed.project_id, passed.pass_id, item_id)
    if marked:
        st.text("\n".join(f"{rater} marked: {'; '.join(span.words for span in marked[rater])}" for rater in marked))


def _draw_form(store: Store, passed: LabelPass, disagreement: Disagreement, aspect: LabelAspect) -> None:
    key = state.widget(f"decide_{passed.pass_id}_{disagreement.aspect}_{disagreement.item_id}")
    choices = aspect.choices()
    with st.form(f"{key}_form"):
        st.markdown(
            f"**Decide {plain(disagreement.aspect)}**" + (f": {plain(aspect.definition)}" if aspect.definition else "")
        )
        if choices:
            st.segmented_control("Label", choices, key=f"{key}_value", format_func="{:g}".format)
        else:
            st.number_input(
                f"A number from {aspect.scale.low:g} to {aspect.scale.high:g}",
                float(aspect.scale.low),
                float(aspect.scale.high),
                value=None,
                key=f"{key}_value",
            )
        st.text_area("Reason, for those who read it later", key=f"{key}_reason", max_chars=2_000, height=80)
        form = st.session_state.setdefault(f"{key}_form_id", f"decide:{uuid.uuid4().hex}")
        people.submit(
            store,
            "reviewer",
            "Decide",
            type="primary",
            icon=":material/gavel:",
            on_click=_decide,
            args=(store, passed, disagreement, key, form),
        )


def _decide(store: Store, passed: LabelPass, disagreement: Disagreement, key: str, form: str) -> None:
    value, reason = st.session_state[f"{key}_value"], st.session_state[f"{key}_reason"]
    if value is None:
        state.leave_notice("Choose a label to decide on.", good=False)
        return
    where = (store, passed.project_id, passed.pass_id, disagreement.item_id)
    try:
        projects.adjudicate(*where, aspect=disagreement.aspect, value=float(value), reason=reason, form=form)
    except ConcordError as error:
        state.leave_notice(f"Nothing was decided: {error}", good=False)
        return
    st.session_state.pop(f"{key}_form_id", None)
    state.leave_notice(f"{disagreement.item_id} is decided: {disagreement.aspect} {float(value):g}.", good=True)


def _draw_decided(seen: PassSummary) -> None:
    if not seen.decided:
        return
    with st.expander(f"Decided so far: {len(seen.decided)}"):
        frame = pd.DataFrame(
            [{"item": item_id, "aspect": aspect, "label": value} for (aspect, item_id), value in seen.decided.items()]
        )
        grid.draw(frame, alt="Decided labels", rows=8)
