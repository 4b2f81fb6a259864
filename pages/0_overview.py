"""Overview: where the project stands, what waits for whoever looks, the judge in use and how it came about."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.overview import Overview
from core.review.judge_versions import JudgeVersion
from pages.components import chosen, judge_view, overview_view, state
from pages.components.page import Opened, finding, open_page, stop_with

NOW, STORY, TWO, ALL = PARTS = ("Now", "How it came about", "Compare two versions", "All aspects")


def choose_version(now: Overview) -> JudgeVersion | None:
    """The version in the URL, else the newest that waits for sign-off, else the one in use."""
    named = state.url_id("version")
    if named is not None and named.isdigit() and 0 < int(named) <= len(now.line.versions):
        return now.line.get(int(named))
    waiting = now.line.waiting
    return waiting[0] if waiting else now.line.default


def show(page: Opened) -> None:
    if not projects.list_goldens(page.store, page.project.project_id):
        overview_view.draw_beginning(page)
        return
    golden = chosen.choose_golden(page)
    aspect = chosen.choose_aspect(page, golden)
    try:
        now = projects.overview(page.store, page.project.project_id, golden.golden_id, aspect)
    except ConcordError as error:
        stop_with("This cannot be shown.", str(error))
    show_standing(page, golden, now)


def show_standing(page: Opened, golden: GoldenSummary, now: Overview) -> None:
    finding(overview_view.sentence(page, now), step=lambda: overview_view.draw_next(page, now))
    if now.line.default is not None:
        st.caption(judge_view.measured_on(now.line.default))
    overview_view.draw_stages(now)
    key = state.widget("overview_part")
    st.segmented_control("Part", PARTS, default=NOW, required=True, key=key, label_visibility="collapsed")
    part = st.session_state.get(key) or NOW
    if part == STORY:
        judge_view.draw_story(page, now.line)
    elif part == TWO:
        judge_view.draw_two(page, now.line)
    elif part == ALL:
        overview_view.draw_aspects(page, golden)
    else:
        version = choose_version(now)
        left, right = st.columns([2, 3], gap="large")
        with left:
            overview_view.draw_waiting(page, now, version)
        with right:
            if version is None:
                st.info("No judge yet: a calibration drafts criteria and proposes the first.", icon=":material/tune:")
            else:
                judge_view.draw_version(page, golden, now.line, version)


show(open_page("overview"))
