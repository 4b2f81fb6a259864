"""Label: people rate items one at a time, blind; reviewers watch agreement grow, decide, and freeze the labels."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.label import label_anchors, label_decide, label_setup, label_summary, label_view
from pages.label.label_view import DECIDE, LABEL, NEW, PROGRESS, VIEWS
from pages.ui import people, state
from pages.ui.page import Opened, open_page, stop_with


def first_view(page: Opened, golden_ids: set[str]) -> str:
    """A link from a golden set that nobody labels yet leads to a new pass."""
    wanted = state.url_id("golden")
    if wanted is not None and state.url_id("order"):
        return NEW
    return NEW if wanted is not None and wanted not in golden_ids and not state.url_id("labelling") else LABEL


def show(page: Opened) -> None:
    passes = projects.list_passes(page.store, page.project.project_id)
    if state.is_task():
        label_view.draw_task(page, passes)
        return
    if not passes:
        label_setup.draw(page)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        view = st.segmented_control(
            "View",
            VIEWS,
            default=first_view(page, {passed.golden_id for passed in passes}),
            required=True,
            key=state.LABEL_VIEW,
            label_visibility="collapsed",
        )
        passed = None if view == NEW else label_view.choose_pass(page, passes)
    if passed is None:
        label_setup.draw(page)
        return
    if view == LABEL:
        label_view.draw_session(page, passed)
        return
    if not people.may(page, "reviewer"):
        st.info(
            "What the raters said is for reviewers: nobody who labels should see it before they are done.",
            icon=":material/visibility_off:",
        )
        return
    if page.actor.is_unnamed:
        st.info(
            "Labels of others stay hidden until Concord knows that you are not rating them.",
            icon=":material/visibility_off:",
        )
        if st.button("Enter your name", type="primary", key=state.widget("label_name")):
            people.ask(page)
        return
    if view == DECIDE and label_view.held(page, passed):
        return
    try:
        if view == PROGRESS:
            label_summary.draw_progress(page.store, passed)
            with st.expander("What each level of the scale means", icon=":material/anchor:"):
                label_anchors.draw(page.store, passed)
        else:
            seen = projects.pass_summary(page.store, passed.project_id, passed.pass_id)
            label_decide.draw(page.store, passed, seen)
            st.subheader("Freeze the labels", anchor=False)
            label_summary.draw_freeze(page.store, passed, seen)
    except ConcordError as error:
        stop_with("The labels of this pass cannot be shown.", str(error))


show(open_page("label"))
