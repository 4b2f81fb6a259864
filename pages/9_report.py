"""Report: what is known of a version of the judge, to read and hand out; its file; its drift; the project as a file."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.report import drift, judge_file, report, transfer
from pages.ui import chosen, state
from pages.ui.page import Opened, finding, open_page, stop_with

SECTIONS = {"report": "Report", "judge": "Judge file", "drift": "Drift", "project": "Project"}


def show(page: Opened) -> None:
    """One section; it stands in the URL, so that a link opens what is seen."""
    wanted = state.url_id("section")
    section, key = wanted if wanted in SECTIONS else "report", state.widget("report_section")
    above = st.container()
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
    if section == "project":
        with above:
            finding("A whole project is one file: export this one, or import another")
        transfer.draw_transfer(page)
        return
    with above:
        golden = chosen.choose_golden(page)
        aspect = chosen.choose_aspect(page, golden)
        judges = projects.measured_judges(page.store, page.project.project_id, golden.golden_id, aspect)
        judge = report.choose(page, judges)
        if judge is None:
            report.draw_none(page, golden, aspect)
            return
        if section == "judge":
            judge_file.draw_finding(page, judge)
        elif section == "report" and not judge.held_out:
            name = "The judge" if judge.version is None else f"{judge.version.name.capitalize()} of the judge"
            words = f"{name} was not measured on held-out items, so there is nothing to report yet"
            report.draw_measuring(page, golden, judge.version, words)
            return
        elif section == "report":
            files = report.kept_files(page, golden, aspect, judge.run)
            report.draw_finding(files)
    if section == "judge":
        judge_file.draw(page, golden.golden_id, aspect, judge)
    elif section == "drift":
        drift.draw(page, golden, aspect, judge, above)
    else:
        report.draw(page, files)


opened = open_page("report")
try:
    show(opened)
except ConcordError as error:
    stop_with("This cannot be shown.", str(error))
