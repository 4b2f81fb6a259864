"""Show reviewers the progress of a labelling pass: agreement, raters, and the meaning of each level."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from core import projects
from core.errors import ConcordError, ConflictError
from core.projects.label_passes import AspectAgreement
from core.projects.labelling import LONGEST_ANCHOR, AnchorsSet, LabelAspect, LabelPass
from core.report.figures.svg import shortened
from core.store.store import Store
from core.wording import counted, number
from pages.ui import grid, people, state
from pages.ui.accounts import auth_section
from pages.ui.page import finding
from pages.ui.screens import plain

RELIABLE, TENTATIVE = 0.8, 0.667
"""Limits of Krippendorff's alpha by Krippendorff (2004), "Content Analysis", chapter 11."""
LONGEST = 60


def draw(store: Store, passed: LabelPass) -> None:
    _draw_progress(store, passed)
    with st.expander("Meaning of each level", icon=":material/anchor:"):
        st.markdown(
            "Describe each level in one sentence. Raters see the descriptions next to the buttons, in this pass and "
            "in later ones. Judges that you calibrate from now on see them too."
        )
        for aspect in passed.plan.aspects:
            _draw_anchors(store, passed, aspect)


@st.fragment(run_every="10s")
def _draw_progress(store: Store, passed: LabelPass) -> None:
    """Draw the agreement and progress of the raters, refreshed automatically."""
    seen = projects.pass_summary(store, passed.project_id, passed.pass_id)
    if not seen.done:
        finding("No one has joined yet")
        _draw_address(passed)
        return
    by_aspect = {agreement.aspect: agreement for agreement in seen.agreement}
    aspect = passed.aspects[0]
    if len(by_aspect) > 1:
        key = state.widget(f"progress_aspect_{passed.pass_id}")
        aspect = st.segmented_control("Aspect", list(by_aspect), default=aspect, required=True, key=key)
    agreement = by_aspect[aspect]
    _draw_agreement(passed, agreement)
    st.markdown(
        f"**{seen.n_touched:,} of {len(passed.plan.positions):,} items** have a label; "
        f"{counted(len(passed.raters), 'rater')} joined ({passed.plan.n_raters} planned); "
        f"{counted(len(seen.queue), 'item needs', 'items need')} a decision."
    )
    labelled, of = zip(*seen.done.values(), strict=True)
    grid.draw({"rater": list(seen.done), "labelled": labelled, "of": of}, alt="Progress by rater", rows=8)
    _draw_address(passed)


def _draw_agreement(passed: LabelPass, agreement: AspectAgreement) -> None:
    about = f"on {shortened(agreement.aspect, LONGEST)}"
    if agreement.alpha is None:
        finding(f"Agreement {about} can't be computed yet")
        st.caption(
            "To compute Krippendorff's alpha, Concord needs items rated by at least two raters and labels that "
            "aren't all the same."
        )
        return
    if agreement.alpha >= RELIABLE:
        finding(f"Raters agree well {about}")
    elif agreement.alpha >= TENTATIVE:
        finding(f"Raters agree well enough {about} for tentative conclusions")
    else:
        finding(f"Raters don't agree enough {about} for reliable labels")
    st.caption(
        f"Krippendorff's alpha {number(agreement.alpha)} ({agreement.alpha_metric}; 1 is perfect agreement, 0 is "
        f"chance), n = {agreement.n_double:,} items with two or more raters, {agreement.n_labels:,} labels in all"
    )


def _draw_address(passed: LabelPass) -> None:
    """Draw the link for raters, which opens only the task and shows no names."""
    if auth_section() is None:
        st.caption(
            "Raters can label on this computer. To let them use their own computers, set up sign-in (see "
            "core/jobs/README.md)."
        )
    elif st.context.url:
        ids = urlencode({"project": passed.project_id, "labelling": passed.pass_id, "task": "1"})
        st.markdown("Send this link to raters. The link opens only their task:")
        st.code(f"{st.context.url.split('?')[0]}?{ids}", language=None)


# ── level descriptions ───────────────────────────────────────────────────────────────────────────────────────


def _draw_anchors(store: Store, passed: LabelPass, aspect: LabelAspect) -> None:
    anchors = projects.get_anchors(store, passed.project_id, passed.golden_id, aspect.aspect)
    key = state.widget(f"anchors_{passed.golden_id}_{aspect.aspect}_{anchors.number}")
    low, high = aspect.scale.low, aspect.scale.high
    levels = aspect.choices() or tuple(sorted({low, high, *anchors.texts}))
    with st.form(key):
        st.markdown(f"**{plain(aspect.aspect)}**" + (f": {plain(aspect.definition)}" if aspect.definition else ""))
        for level in levels:
            st.text_input(
                f"{level:g}{ {low: ' (lowest)', high: ' (highest)'}.get(level, '') }",
                value=anchors.texts.get(level, ""),
                key=f"{key}_{level:g}",
                max_chars=LONGEST_ANCHOR,
                placeholder="Describe a typical item at this level",
            )
        people.submit(
            store,
            "reviewer",
            f"Save the level descriptions for {plain(aspect.aspect)}",
            type="primary",
            icon=":material/anchor:",
            on_click=_save,
            args=(store, passed, aspect, {level: f"{key}_{level:g}" for level in levels}, anchors),
        )


def _save(store: Store, passed: LabelPass, aspect: LabelAspect, boxes: Mapping[float, str], seen: AnchorsSet) -> None:
    """Save the level descriptions (level → key of its box), unless another user saved first."""
    texts = {level: str(st.session_state[box]) for level, box in boxes.items()}
    where = (store, passed.project_id, passed.golden_id, aspect.aspect)
    try:
        projects.set_anchors(*where, texts, expected=seen.number)
    except ConflictError as error:
        mine = "; ".join(f"{level:g}: {text}" for level, text in texts.items() if text != seen.texts.get(level, ""))
        state.set_notice(f"{error} You wrote: {mine}", good=False)
    except ConcordError as error:
        state.set_notice(f"Nothing was saved: {error}", good=False)
    else:
        state.set_notice(
            f"The level descriptions for {aspect.aspect} are saved. Raters see them next to the buttons.", good=True
        )
