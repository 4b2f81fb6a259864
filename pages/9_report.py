"""Report: what is known of a calibrated judge, to read and to hand out; its file; its drift; the project as a file."""

import streamlit as st

from core.errors import ConcordError
from pages.components import (
    adapters_view,
    chosen,
    drift_view,
    report_judge,
    report_view,
    state,
    transfer_view,
)
from pages.components.page import Opened, open_page, stop_with

SECTIONS = {"report": "Report", "judge": "Judge file", "drift": "Drift", "project": "Project"}


def choose_section() -> str:
    """The section in the URL; a choice goes there, so that a link opens what is seen."""
    key = state.widget("report_section")
    wanted = state.url_id("section")
    st.session_state[key] = wanted if wanted in SECTIONS else "report"
    st.segmented_control(
        "Section",
        list(SECTIONS),
        required=True,
        format_func=lambda section: SECTIONS[section],
        key=key,
        on_change=lambda: state.put_in_url(section=st.session_state[key]),
        label_visibility="collapsed",
    )
    return str(st.session_state[key])


def show(page: Opened) -> None:
    section = choose_section()
    try:
        if section == "project":
            transfer_view.draw(page, None, "")
            return
        left, right = st.columns([4, 3], gap="medium")
        with left:
            golden = chosen.choose_golden(page)
        with right:
            aspect = chosen.choose_aspect(page, golden)
        if section == "report":
            report_view.draw(page, golden, aspect)
        elif section == "judge":
            if report_judge.draw(page, golden, aspect):
                adapters_view.draw(page, golden, aspect)
        else:
            drift_view.draw(page, golden, aspect)
    except ConcordError as error:
        stop_with("This cannot be shown.", str(error))


show(
    open_page(
        "report",
        intro="A calibrated judge to read about, hand out and take along.",
    )
)
