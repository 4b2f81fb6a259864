"""The reviewer's side of a labelling pass: progress, agreement as it grows, and freezing the labels."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.labelling import LabelPass
from core.projects.pass_results import AspectAgreement, Combine, PassSummary
from core.report.figures.trends import growth_figure
from core.store.store import Store
from core.wording import counted, number, range_words
from pages.label import label_item, label_view
from pages.ui import charts, grid, people, state
from pages.ui.grid import Column
from pages.ui.page import link_to
from pages.ui.screens import plain

LOOK_AGAIN = "10s"
COMBINE_WORDS: dict[Combine, str] = {
    "fill": "Keep them all; new labels only fill gaps",
    "decided": "Replace them where something was decided",
    "replace": "Replace them wherever there is a new label or a decision",
}
MOST_LISTED = 500
RELIABLE, TENTATIVE = 0.8, 0.667
METRIC_WORDS = {
    "nominal": "alike or not",
    "ordinal": "by the ranks of the steps",
    "interval": "by the squared difference",
}


@st.fragment(run_every=LOOK_AGAIN)
def draw_progress(store: Store, passed: LabelPass) -> None:
    """How well raters agree so far and how far they are; looks again by itself."""
    seen = projects.pass_summary(store, passed.project_id, passed.pass_id)
    if not seen.done:
        st.info(
            "Nobody has joined yet. Send raters the address. Each picks a name and labels.",
            icon=":material/group_add:",
        )
        label_view.draw_address(passed)
        return
    agreement = _choose_agreement(passed, seen)
    _draw_agreement(passed, agreement)
    st.markdown(
        f"**{seen.n_touched:,} of {seen.n_items:,} items** have a label; "
        f"{counted(len(passed.raters), 'rater')} of {passed.plan.n_raters} planned joined; "
        f"{counted(len(seen.queue), 'item')} to decide."
    )
    if seen.n_touched:
        golden = store.goldens.get(passed.golden_id)
        where = (store, passed.project_id, golden, agreement.aspect)
        counts = {"n_items": seen.n_touched, "n_ratings": agreement.n_labels, "n_sources": seen.n_sources}
        st.caption(projects.label_planning(*where, **counts).words)
    by_rater, link = st.tabs(["By rater", "Link for raters"])
    with by_rater:
        _draw_raters(seen)
    with link:
        label_view.draw_address(passed)


def _choose_agreement(passed: LabelPass, seen: PassSummary) -> AspectAgreement:
    """The agreement on the aspect to look at."""
    by_aspect = {agreement.aspect: agreement for agreement in seen.agreement}
    aspect = passed.aspects[0]
    if len(by_aspect) > 1:
        key = state.widget(f"progress_aspect_{passed.pass_id}")
        aspect = st.segmented_control("Aspect", list(by_aspect), default=aspect, required=True, key=key)
    return by_aspect[aspect]


def _draw_raters(seen: PassSummary) -> None:
    frame = pd.DataFrame(
        {
            "rater": list(seen.done),
            "labelled": list(seen.done.values()),
            "of": [seen.assigned.get(rater) for rater in seen.done],
            "progress": [_share(seen, rater) for rater in seen.done],
        }
    )
    grid.draw(frame, {"progress": Column(digits=0, unit=" %")}, alt="Progress by rater", rows=8)


def _share(seen: PassSummary, rater: str) -> int | None:
    """Per cent; an item counts once any of its aspects is labelled.  None for whoever has no items of their own."""
    assigned = seen.assigned.get(rater)
    return min(100, round(100 * seen.done[rater] / assigned)) if assigned else None


def _finding(agreement: AspectAgreement, where: str) -> str:
    """How well raters agree, as a sentence; the limits are Krippendorff's (2004, "Content Analysis", chapter 11)."""
    about = f"On **{plain(agreement.aspect)}**, in {plain(where)},"
    if agreement.alpha is None:
        return f"{about} agreement is unknown so far."
    if agreement.alpha >= RELIABLE:
        how = "raters agree well"
    elif agreement.alpha >= TENTATIVE:
        how = "raters agree enough for tentative conclusions"
    else:
        how = "raters agree too little to rely on"
    interval = "" if agreement.interval is None else f" {range_words(agreement.interval)}"
    return f"{about} **{how}**: Krippendorff's alpha {number(agreement.alpha)}{interval}."


def _draw_agreement(passed: LabelPass, agreement: AspectAgreement) -> None:
    st.markdown(_finding(agreement, passed.name))
    if not passed.plan.blind:
        st.warning("Not blind: raters saw what others said, so agreement looks better than it is.")
    if agreement.alpha is None:
        st.caption("Alpha needs items rated by two raters, and labels that are not all the same.")
    else:
        shared = passed.plan.shared if passed.plan.overlap < 2 else len(passed.plan.positions)
        expected = min(shared, len(passed.plan.positions)) if passed.plan.n_raters > 1 else agreement.n_double
        charts.place(
            growth_figure(agreement, n_expected=expected),
            key=f"growth_{passed.pass_id}_{agreement.aspect}",
            alt=f"Krippendorff's alpha of {agreement.aspect} as items were rated",
        )
    how = (
        "no interval: it takes two sources or more"
        if agreement.interval is None
        else f"95 %, {agreement.interval.method}"
    )
    metric = METRIC_WORDS.get(agreement.alpha_metric, agreement.alpha_metric)
    st.caption(
        f"{agreement.alpha_metric} alpha ({metric}) on n = {agreement.n_double:,} items that two or more have rated; "
        f"{agreement.n_labels:,} labels in all; {how}. 1 is perfect agreement, 0 what chance gives."
    )


def draw_freeze(store: Store, passed: LabelPass, seen: PassSummary) -> None:
    """A new golden set out of the labels of the pass; what becomes of old labels is said and chosen."""
    golden = label_item.kept_golden(passed.golden_id, store)
    if not seen.n_touched and not seen.decided:
        st.info("There are no labels to freeze yet.", icon=":material/ac_unit:")
        return
    st.markdown(
        f"**{seen.n_touched:,} of {seen.n_items:,} items** have a label, {len(seen.decided):,} are decided. "
        "The label of an item is what was decided, else the mean of its raters; single ratings and comments are kept. "
        "The golden set that was labelled stays as it is."
    )
    if seen.queue:
        st.warning(
            f"{counted(len(seen.queue), 'item')} still to decide: frozen now, the mean of their raters "
            "stands for them.",
            icon=":material/balance:",
        )
    combine: Combine = "fill"
    if any(aspect.aspect in golden.aspects for aspect in passed.plan.aspects):
        combine = _choose_combine(store, passed)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input(
            "Name of the new golden set",
            value=f"{golden.name}, {passed.name}",
            max_chars=120,
            key=state.widget(f"label_frozen_{passed.pass_id}"),
        )
        pressed = people.button(store, "reviewer", "Freeze these labels", type="primary", icon=":material/ac_unit:")
    if pressed:
        _freeze(store, passed, name, combine)


def _choose_combine(store: Store, passed: LabelPass) -> Combine:
    """What becomes of golden labels: kept, unless a person chooses to replace them; says which that would be."""
    where = (store, passed.project_id, passed.pass_id)
    changed = {way: projects.replaced_labels(*where, way) for way in ("decided", "replace")}
    counts = {way: f" ({counted(len(changed[way]), 'golden label')})" for way in changed}
    combine: Combine = st.radio(
        "Golden labels that these items have already",
        [way for way in COMBINE_WORDS if way == "fill" or changed[way]],
        format_func=lambda way: COMBINE_WORDS[way] + counts.get(way, ""),
        key=state.widget(f"label_combine_{passed.pass_id}"),
    )
    if combine != "fill":
        frame = pd.DataFrame(changed[combine][:MOST_LISTED], columns=["item", "aspect", "now", "then"])
        grid.draw(frame, alt="Golden labels that would be replaced", rows=6)
    return combine


def _freeze(store: Store, passed: LabelPass, name: str, combine: Combine) -> None:
    where = (store, passed.project_id, passed.pass_id)
    try:
        golden_id = projects.freeze_labels(*where, name=name, combine=combine)
    except ConcordError as error:
        st.error(plain(f"Nothing was frozen: {error}"), icon=":material/error:")
        return
    view = store.goldens.get(golden_id)
    counts = ", ".join(f"{aspect.aspect} on {aspect.n_labelled:,}" for aspect in view.aspects)
    st.success(plain(f"{view.name} is frozen: {view.n_items:,} items with labels of {counts}."))
    with st.container(horizontal=True):
        link_to("golden_set", "Look at it", icon=":material/dataset:", golden=golden_id)
        link_to("calibrate", "Calibrate a judge on it", icon=":material/tune:", golden=golden_id)
