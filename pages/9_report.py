"""Report: what is known of a version of the judge, to read and hand out; its file; its drift; the project as a file."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from pages.report import adapters_view, drift_view, report_judge, report_version, report_view, transfer_view
from pages.ui import chosen, state
from pages.ui.page import Opened, finding, open_page, stop_with

SECTIONS = report_view.PARTS | {"judge": "Judge file", "drift": "Drift", "project": "Project"}


def section_in_url() -> str:
    """The section in the URL, else the report."""
    wanted = state.url_id("section")
    return wanted if wanted in SECTIONS else "report"


def choose_section(section: str) -> None:
    """The sections; a choice goes into the URL, so that a link opens what is seen."""
    key = state.widget("report_section")
    st.session_state[key] = section
    st.segmented_control(
        "Section",
        list(SECTIONS),
        required=True,
        format_func=lambda option: SECTIONS[option],
        key=key,
        on_change=state.when_changed(key, lambda: state.put_in_url(section=st.session_state[key])),
        label_visibility="collapsed",
    )


def show(page: Opened, section: str) -> None:
    if section == "project":
        finding("A whole project is one file: take this one away, or bring another in")
        choose_section(section)
        transfer_view.draw_transfer(page)
        return
    golden = chosen.choose_golden(page)
    show_judge(page, golden, chosen.choose_aspect(page, golden), section)


def show_judge(page: Opened, golden: GoldenSummary, aspect: str, section: str) -> None:
    judges = projects.measured_judges(page.store, page.project.project_id, golden.golden_id, aspect)
    judge = report_version.choose(page, judges)
    if judge is None:
        report_version.draw_none(page, golden, aspect)
        choose_section(section)
    elif section == "judge":
        report_judge.draw_finding(page, judge)
        choose_section(section)
        report_judge.draw(page, judge)
        adapters_view.draw(page, golden, aspect, judge)
    elif section == "drift":
        drift_view.draw_finding(page, aspect, judge)
        choose_section(section)
        drift_view.draw(page, golden, aspect, judge)
    elif not judge.held_out:
        report_version.draw_unmeasured(page, golden, aspect, judge)
        choose_section(section)
    else:
        files = report_view.kept_files(page, golden, aspect, judge.run)
        report_view.draw_finding(files, aspect)
        choose_section(section)
        report_view.draw(page, files, aspect, section)


opened = open_page("report")
try:
    show(opened, section_in_url())
except ConcordError as error:
    stop_with("This cannot be shown.", str(error))
