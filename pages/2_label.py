"""Label screen: raters rate items one at a time, blind. Reviewers monitor agreement, then decide and freeze labels."""

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.labelling import LabelPass
from core.wording import counted
from pages.label import label_blind, label_decide, label_item, label_session, label_setup, label_summary
from pages.label.label_shown import Assignment
from pages.ui import people, state
from pages.ui.chosen import choose_in_url, distinct
from pages.ui.page import Opened, finding, open_page, stop_with
from pages.ui.screens import plain

LABEL, PROGRESS, DECIDE, NEW = VIEWS = ("Label", "Progress", "Decide", "New pass")
HIDDEN = ":material/visibility_off:"
ELSEWHERE = "This link points to a labelling pass that isn't in this project."


def show(page: Opened) -> None:
    passes = projects.list_passes(page.store, page.project.project_id)
    if state.is_task():  # a rater opened the link of a pass: draw neither menu nor views
        passed = next((passed for passed in passes if passed.pass_id == state.url_id("labelling")), None)
        if passed is None:
            st.warning(f"{ELSEWHERE} Ask the sender for a new link.", icon=":material/link_off:")
            return
        draw_session(page, passed)
        return
    if not passes:
        label_setup.draw(page)
        return
    golden_id = state.url_id("golden")
    labelled = golden_id is None or golden_id in [passed.golden_id for passed in passes]
    begins = state.url_id("labelling") is None and (state.url_id("order") or not labelled)
    # a new widget, so that a second press, sent with the old choice of view, begins no second pass
    key = f"{state.LABEL_VIEW}_{st.session_state.get(state.LABEL_TURN, 0)}"
    with st.container(horizontal=True, vertical_alignment="center"):
        view = st.segmented_control(
            "View",
            VIEWS,
            default=NEW if begins else LABEL,
            required=True,
            key=key,
            label_visibility="collapsed",
        )
        passed = None if view == NEW else choose_pass(page, passes)
    if passed is None:
        label_setup.draw(page)
    elif view == LABEL:
        draw_session(page, passed)
    elif not people.may(page, "reviewer"):
        st.info("Only reviewers can see all labels, so that raters don't influence each other.", icon=HIDDEN)
    elif view == DECIDE and page.actor.is_unnamed:
        st.info("Enter your name to decide. Concord then checks that you aren't rating the same items.", icon=HIDDEN)
        if st.button("Enter your name", type="primary", key=state.widget("label_name")):
            people.ask(page)
    else:
        try:
            if view == PROGRESS:
                label_summary.draw(page.store, passed)
            elif label_blind.may_see(page, passed.golden_id, passed.aspects, decides=True):
                label_decide.draw(page.store, passed)
        except ConcordError as error:
            stop_with("Concord can't show the labels from this pass.", str(error))


def choose_pass(page: Opened, passes: Sequence[LabelPass]) -> LabelPass:
    """Return the labelling pass in the URL, else the newest for the golden set in the URL, else the newest of all."""
    by_id, wanted = {passed.pass_id: passed for passed in passes}, state.url_id("labelling")
    if wanted not in by_id:
        if wanted is not None:
            st.warning(f"{ELSEWHERE} Concord shows the newest pass instead.", icon=":material/link_off:")
        golden_id = state.url_id("golden")
        wanted = next((passed.pass_id for passed in passes if passed.golden_id == golden_id), passes[0].pass_id)
    if len(passes) == 1:
        state.put_in_url(labelling=wanted)
        return passes[0]
    goldens = {golden.golden_id: golden.name for golden in page.store.goldens.all(page.project.project_id)}
    names = {passed.pass_id: f"{passed.name} · {goldens.get(passed.golden_id, '')}" for passed in passes}
    return by_id[
        choose_in_url("Labelling pass", "labelling", wanted, distinct(names), width=340, label_visibility="collapsed")
    ]


def draw_session(page: Opened, passed: LabelPass) -> None:
    """Draw the labelling session of a rater in this pass. Other users see the first item and a button to join."""
    if page.actor.name in passed.stopped:
        st.info("You have stopped rating in this pass. Your labels still count.", icon=":material/task_alt:")
        return
    if page.actor.name in passed.raters:
        label_session.draw(Assignment(page.store, passed))
        return
    plan, golden = passed.plan, label_item.cached_golden(passed.golden_id, page.store)
    act = ("You couldn't join", projects.join_pass, page.store, passed.project_id, passed.pass_id)
    look = {"type": "primary", "icon": ":material/play_arrow:", "on_click": state.attempt, "args": act}
    items, aspects = counted(len(plan.assigned(len(passed.raters))), "item"), ", ".join(passed.aspects)
    finding(
        f"{items} to label for {aspects}",
        step=lambda: people.button(page.store, "annotator", "Begin labelling", **look),
    )
    left, right = st.columns([3, 2], gap="medium")
    with left:
        item = golden.items[plan.positions[0]]
        label_item.draw_target(item, golden.kind)
        label_item.draw_beside(item, golden.kind)
    with right, st.container(key="way_in", border=True):
        st.markdown(f"**{plain(passed.name)}**")
        label_item.draw_instructions(plan)
        st.caption(
            "Concord saves each label immediately. You can stop and return at any time. You can't see other raters' "
            "labels."
        )


show(open_page("label"))
