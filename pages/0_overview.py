"""Overview screen: is the judge good enough, what to do next, the current version and its history."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.judge_line import JudgeVersion
from core.projects.overview import Overview
from pages.overview import judge_view, overview_view
from pages.ui import chosen, state
from pages.ui.page import Opened, finding, open_page, stop_with
from pages.ui.screens import plain

PARTS = {"now": "Now", "history": "History"}


def choose_version(now: Overview) -> JudgeVersion | None:
    """Return the version in the URL, else the newest version that waits for approval, else the current version."""
    named = state.url_id("version")
    if named is not None and named.isdigit() and 0 < int(named) <= len(now.line.versions):
        return now.line.get(int(named))
    waiting = now.line.waiting
    return waiting[0] if waiting else now.line.default


def show(page: Opened) -> None:
    if not page.store.goldens.all(page.project.project_id):
        overview_view.draw_start_options(page)
        return
    golden = chosen.choose_golden(page)
    labelled = any(aspect.n_labelled for aspect in golden.aspects)
    aspect = chosen.choose_aspect(page, golden) if labelled else ""
    try:
        now = projects.overview(page.store, page.project.project_id, golden.golden_id, aspect)
    except ConcordError as error:
        stop_with("Concord can't show the overview.", str(error))
    part, version = chosen.in_url("section", PARTS, "now"), choose_version(now)
    shown = version if part == "now" else None
    report = overview_view.report_of(page, now)
    said = overview_view.finding_of(now, report)
    finding(said.headline, step=lambda: overview_view.draw_next(page, now, shown))
    if words := " ".join(filter(None, (said.detail, said.next_step))):
        st.caption(plain(words))
    overview_view.draw_stages(now)
    if now.line.versions:
        chosen.choose_part("Part", "section", PARTS, "now", label_visibility="collapsed")
    if part == "history":
        judge_view.draw_history(page, now.line)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        if report is not None:
            overview_view.draw_agreement(now, report)
            overview_view.draw_systems(now, report)
        elif now.waiting or now.line.versions:  # otherwise the headline has the only step
            overview_view.draw_to_do(page, now, version)
    with right:
        if report is not None:
            overview_view.draw_to_do(page, now, version)
        if version is not None:
            judge_view.draw_version(page, now.line, version)


show(open_page("overview"))
