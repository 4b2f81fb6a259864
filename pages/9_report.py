"""Report screen: the result of a judge version for stakeholders, its evidence, its files, and its drift."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.overview import judge_view
from pages.report import drift, export, report
from pages.ui import chosen
from pages.ui.page import Opened, open_page, stop_with

SECTIONS = {"report": "Report", "evidence": "Evidence", "export": "Export", "drift": "Drift"}


def show(page: Opened) -> None:
    section = "report"
    if page.store.goldens.all(page.project.project_id):
        section = chosen.choose_part("Section", "section", SECTIONS, section, label_visibility="collapsed")
    above = st.container()
    with above:
        golden = chosen.choose_golden(page)
        aspect = chosen.choose_aspect(page, golden)
        judges = projects.measured_judges(page.store, page.project.project_id, golden.golden_id, aspect)
        judge = report.choose(page, judges)
        if judge is None:
            report.draw_none(page, golden, aspect)
        elif section == "export":
            export.draw_finding(page, judge)
        elif section != "drift" and not judge.held_out:
            name = "The judge" if judge.version is None else judge.version.name.capitalize()
            words = f"There is nothing to report yet: {name} hasn't been measured on held-out items"
            report.draw_measuring(page, golden, judge.version, words)
    if section == "export":
        if judge is not None:
            export.draw(page, golden.golden_id, aspect, judge)
        export.draw_project(page)
    elif judge is not None and section == "drift":
        drift.draw(page, golden, aspect, judge, above)
    elif judge is not None and judge.held_out:
        found = judge_view.report_of(page, golden.golden_id, aspect, judge.run.run_id)
        if section == "evidence":
            report.draw_evidence(found)
        else:
            with above:
                report.draw_finding(found)
            report.draw(page, found)


opened = open_page("report")
try:
    show(opened)
except ConcordError as error:
    stop_with("Concord can't show the report.", str(error))
