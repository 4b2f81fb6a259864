"""Decide the labels of items on which raters disagree, and save all labels as a new golden set."""

from __future__ import annotations

import uuid

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.label_passes import Combine, PassSummary, Which
from core.projects.labelling import LabelPass
from core.store.store import Store
from core.wording import counted
from pages.label import label_item
from pages.ui import grid, people, state, tables
from pages.ui.page import finding, link_to
from pages.ui.screens import plain

COMBINE_WORDS: dict[Combine, str] = {
    "fill": "Keep all existing labels, and use new labels only to fill gaps",
    "replace": "Replace the label of each item that has a new label or decision",
}


def draw(store: Store, passed: LabelPass) -> None:
    """Draw the items that need a decision, the decisions so far, and the form that freezes the labels."""
    seen = projects.pass_summary(store, passed.project_id, passed.pass_id)
    if not (seen.queue or seen.decided or seen.n_touched):
        finding("There are no labels to decide on yet")
        return
    if seen.queue:
        finding(f"{counted(len(seen.queue), 'item')} to decide")
        st.caption(
            "Raters differ by more than one step (or a tenth of a scale without steps), or triage marked the label "
            "as wrong."
        )
        _draw_one(store, passed, seen)
    elif seen.decided:
        finding("You have decided on all items. Freeze the labels below.")
    else:
        finding("No item needs a decision")
    if seen.decided:
        with st.expander(f"Decided so far: {len(seen.decided)}"):
            aspects, items = zip(*seen.decided, strict=True)
            frame = {"item": items, "aspect": aspects, "label": list(seen.decided.values())}
            grid.draw(frame, alt="Decided labels", rows=8)
    st.subheader("Freeze the labels", anchor=False)
    _draw_freeze(store, passed, seen)


def _draw_one(store: Store, passed: LabelPass, seen: PassSummary) -> None:
    """Draw one item in full, its ratings, and the form for the decision."""
    golden = label_item.cached_golden(passed.golden_id, store)

    def in_short(which: Which) -> str:
        said = ", ".join(f"{label.rater} {label.value:g}" for label in seen.queue[which][:6])
        return f"{which[1]}, {which[0]} ({said or 'no ratings here'})"

    key = state.widget(f"decide_{passed.pass_id}_{len(seen.decided)}")
    chosen = st.selectbox("Item", list(seen.queue), key=key, format_func=in_short, label_visibility="collapsed")
    aspect, item_id = chosen
    labels = seen.queue[chosen]
    item = label_item.item_of(passed.golden_id, store, item_id)
    left, right = st.columns([3, 2], gap="large")
    with left:
        label_item.draw_target(item, golden.kind)
        label_item.draw_beside(item, golden.kind)
    with right:
        if labels:
            said = (f"**{plain(each.rater)}: {each.value:g}** {plain(each.comment)}" for each in labels)
            st.markdown("  \n".join(said))
        else:
            st.caption("No one has rated this item in this labelling pass.")
        marked = projects.item_highlights(store, passed.project_id, passed.pass_id, item_id)
        for rater, spans in marked.items():
            st.text(f"{rater} marked: {'; '.join(span.words for span in spans)}")
        if (flag := seen.flagged.get(chosen)) is not None:
            note = f": {flag.note}" if flag.note else ""
            st.markdown(plain(f"Triage by {flag.actor or 'somebody'}: label wrong{note}"))
        if aspect in golden.aspects:
            old = golden.aspects[aspect].values[golden.item_ids.index(item_id)]
            st.markdown(f"Label in the golden set: **{tables.DASH if old is None else f'{old:.3g}'}**")
        _draw_form(store, passed, *chosen)


def _draw_form(store: Store, passed: LabelPass, name: str, item_id: str) -> None:
    aspect = next(known for known in passed.plan.aspects if known.aspect == name)
    key = state.widget(f"decide_{passed.pass_id}_{aspect.aspect}_{item_id}")
    with st.form(f"{key}_form"):
        meaning = f": {plain(aspect.definition)}" if aspect.definition else ""
        st.markdown(f"**Decide {plain(aspect.aspect)}**{meaning}")
        low, high = float(aspect.scale.low), float(aspect.scale.high)
        if choices := aspect.choices():
            st.segmented_control("Label", choices, key=f"{key}_value", format_func="{:g}".format)
        else:
            st.number_input(f"A number from {low:g} to {high:g}", low, high, value=None, key=f"{key}_value")
        st.text_area("Reason for the decision", key=f"{key}_reason", max_chars=2_000, height=80, required=True)
        form = st.session_state.setdefault(f"{key}_form_id", f"decide:{uuid.uuid4().hex}")
        people.submit(
            store,
            "reviewer",
            "Decide",
            type="primary",
            icon=":material/gavel:",
            on_click=_decide,
            args=(store, passed, (aspect.aspect, item_id), key, form),
        )


def _decide(store: Store, passed: LabelPass, which: Which, key: str, form: str) -> None:
    aspect, item_id = which
    value, reason = st.session_state[f"{key}_value"], st.session_state[f"{key}_reason"]
    if value is None:
        state.set_notice("Choose a label first.", good=False)
        return
    where = (store, passed.project_id, passed.pass_id, item_id)
    try:
        projects.adjudicate(*where, aspect=aspect, value=float(value), reason=reason, form=form)
    except ConcordError as error:
        state.set_notice(f"Nothing was decided: {error}", good=False)
        return
    st.session_state.pop(f"{key}_form_id", None)
    state.set_notice(f"Decision saved for {item_id}: {aspect} {float(value):g}.", good=True)


def _draw_freeze(store: Store, passed: LabelPass, seen: PassSummary) -> None:
    """Draw the form that freezes the labels as a new golden set, with the choice of what happens to old labels."""
    golden = label_item.cached_golden(passed.golden_id, store)
    st.markdown(
        f"**{seen.n_touched:,} of {len(passed.plan.positions):,} items** have a label, and {len(seen.decided):,} "
        "have a decision. For each item, the new golden set contains the decided label or the mean of its raters' "
        "labels. It keeps individual ratings and comments. The original golden set doesn't change."
    )
    if seen.queue:
        st.warning(f"You haven't decided on {counted(len(seen.queue), 'item')} yet.", icon=":material/balance:")
    combine: Combine = "replace"
    old = [golden.aspects[aspect].values for aspect in passed.aspects if aspect in golden.aspects]
    if any(values[position] is None for values in old for position in passed.plan.positions):
        key = state.widget(f"label_combine_{passed.pass_id}")
        words = "Existing golden labels"
        combine = st.radio(words, list(COMBINE_WORDS), format_func=COMBINE_WORDS.__getitem__, key=key)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key, usual = state.widget(f"label_frozen_{passed.pass_id}"), f"{golden.name}, {passed.name}"
        name = st.text_input("Name of the new golden set", usual, max_chars=120, key=key)
        if not people.button(store, "reviewer", "Freeze these labels", type="primary", icon=":material/ac_unit:"):
            return
    try:
        golden_id = projects.freeze_labels(store, passed.project_id, passed.pass_id, name=name, combine=combine)
    except ConcordError as error:
        st.error(plain(f"Nothing was frozen: {error}"), icon=":material/error:")
        return
    view = store.goldens.get(golden_id)
    st.success(plain(f"{view.name} is frozen, with {view.n_items:,} items."))
    with st.container(horizontal=True):
        link_to("golden_set", "Open it", icon=":material/dataset:", golden=golden_id)
        link_to("calibrate", "Calibrate a judge on this golden set", icon=":material/tune:", golden=golden_id)
