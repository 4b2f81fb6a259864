"""Calibrate screen: the newest result, the drafts ranked during a run, and the form that starts a calibration."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.calibration import CalibrationRequest
from core.projects.start_and_resume import RunDetail
from pages.calibrate import calibration_view, ranking
from pages.ui import forms, run_panel, state
from pages.ui.page import Opened, link_to, open_page, stop_with
from pages.ui.screens import plain


def show_run(page: Opened, run_id: str) -> None:
    try:
        view = run_panel.read_run(page, run_id)
    except ConcordError as error:
        stop_with("Concord can't show this run.", str(error))
    if not isinstance(view.request, CalibrationRequest):
        title = run_panel.link_to_result(view) or "Runs"
        stop_with("This run isn't a calibration.", f"To see the result of {view.title}, open {title}.")
    run_panel.follow_run(page, run_id, lambda now: draw(page, now))


def draw(page: Opened, view: RunDetail) -> None:
    if view.calibration is None:
        ranking.draw_unfinished(page, view)
    else:
        calibration_view.draw(page, view, view.calibration)


def show_form(page: Opened) -> None:
    goldens = page.store.goldens.all(page.project.project_id)
    if not goldens:
        st.info("This project has no golden set yet. Upload a file with human labels first.", icon=":material/dataset:")
        link_to("golden_set", "Upload a golden set", icon=":material/upload_file:")
        st.stop()
    wanted = state.url_id("golden"), state.url_id("aspect")
    choice = forms.choose_calibration(page, goldens, wanted)
    if choice.request is None:
        st.button("Start the calibration", icon=":material/play_arrow:", disabled=True, key="form_start_off")
        st.caption(plain(choice.missing))
        st.stop()
    st.subheader("Before you start", anchor=False)
    request = choice.request
    try:
        offline = request.judge_spec == "offline"
        forms.show_estimate(projects.estimate(page.store, page.settings, request), offline=offline)
        kept = projects.with_kept_split(page.store, request).split_from
    except ConcordError as error:
        stop_with("Concord can't start the calibration with these settings.", str(error))
    if kept:
        st.info(plain(calibration_view.kept_words(page, kept)), icon=":material/call_split:")
    run_panel.draw_start(
        page,
        "Start the calibration",
        lambda: projects.start_run(page.store, page.settings, request),
        run_panel.show_started,
    )


page = open_page(
    "calibrate",
    intro="Draft criteria from labels, then rank, refine and test them.",
)
if run_id := run_panel.choose_run(page, "calibration", new="New calibration"):
    show_run(page, run_id)
else:
    show_form(page)
