"""Calibrate: what the newest calibration found, drafts ranked while one runs, and the form that starts another."""

from typing import NoReturn

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import RunKind
from core.projects.calibration import CalibrationRequest
from core.projects.run_kinds import RunDetail
from pages.calibrate import calibration_view, ranking
from pages.ui import forms, run_panel, state
from pages.ui.page import Opened, link_to, open_page, stop_with
from pages.ui.screens import SCREENS, Screen, plain

ELSEWHERE: dict[RunKind, Screen] = {
    "rescore": "criteria",
    "trial": "criteria",
    "round": "misaligned",
    "metrics": "compare",
    "styles": "compare",
    "repeval": "repeval",
    "fusion": "fusion",
    "version": "overview",
}
"""Run of another kind → the screen of its result."""


def show_run(page: Opened, run_id: str) -> None:
    try:
        view = run_panel.read_run(page, run_id)
    except ConcordError as error:
        stop_with("This run cannot be shown.", str(error))
    if not isinstance(view.request, CalibrationRequest):
        point_elsewhere(view)
    run_panel.follow_run(page, run_id, lambda now: draw(page, now))


def point_elsewhere(view: RunDetail) -> NoReturn:
    """A run of another kind: the screen that shows its result."""
    screen = ELSEWHERE.get(view.kind, "runs")
    ids = {"golden": view.golden_id, "aspect": view.aspect}
    if screen not in ("compare", "overview"):
        ids = {view.kind if screen in ("criteria", "misaligned") else "run": view.run_id}
    title = SCREENS[screen].title
    link_to(screen, f"Open in {title}", icon=":material/arrow_forward:", **ids)
    stop_with("This run is not a calibration.", f"{title} shows its result: {view.title}.")


def draw(page: Opened, view: RunDetail) -> None:
    if view.calibration is None:
        ranking.draw_going_on(page, view)
    else:
        calibration_view.draw(page, view, view.calibration)


def show_form(page: Opened) -> None:
    goldens = page.store.goldens.all(page.project.project_id)
    if not goldens:
        st.info("This project has no golden set yet. Upload a file with human labels first.", icon=":material/dataset:")
        link_to("golden_set", "Upload a golden set", icon=":material/upload_file:")
        st.stop()
    wanted = state.url_id("golden"), state.url_id("aspect")
    choice = forms.choose_calibration(page.settings, page.project.project_id, goldens, wanted)
    if choice.request is None:
        st.warning(plain(choice.missing), icon=":material/edit:")
        st.stop()
    st.subheader("Before the start", anchor=False)
    request = choice.request
    try:
        forms.show_estimate(projects.estimate(page.store, page.settings, request))
        kept = projects.keeping_sides(page.store, request).split_from
    except ConcordError as error:
        stop_with("This calibration cannot start with these settings.", str(error))
    if kept:
        st.info(plain(calibration_view.kept_words(page, kept)), icon=":material/call_split:")
    run_panel.draw_start(
        page,
        "Start the calibration",
        lambda: projects.start_calibration(page.store, page.settings, request),
        run_panel.show_started,
    )


page = open_page(
    "calibrate",
    intro="Criteria drafted from labels, ranked by agreement, refined, tested.",
)
if run_id := run_panel.choose_run(page, "calibration", new="New calibration"):
    show_run(page, run_id)
else:
    show_form(page)
