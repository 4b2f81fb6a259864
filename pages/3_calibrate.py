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

ELSEWHERE: dict[RunKind, tuple[str, Screen, tuple[str, ...]]] = {
    "rescore": ("re-scored edited criteria", "criteria", ("rescore",)),
    "trial": ("tried criteria on one item", "criteria", ("trial",)),
    "round": ("judged again after raters had looked", "misaligned", ("round",)),
    "ablation": ("took a calibration's parts away", "compare", ("golden", "aspect")),
    "metrics": ("computed metrics", "compare", ("golden", "aspect")),
    "styles": ("asked a judge in several styles", "compare", ("golden", "aspect")),
    "repeval": ("read quality out of hidden states", "repeval", ("run",)),
    "fusion": ("fused judges", "fusion", ("run",)),
    "recheck": ("rechecked a judge on newer labels", "runs", ("run",)),
    "version": ("measured a version of the judge", "overview", ("golden", "aspect")),
}
"""Run of another kind → what it did, the screen of its result, and the ids by which that screen finds it."""


def show_run(page: Opened, run_id: str) -> None:
    try:
        view = run_panel.read_run(page, run_id)
    except ConcordError as error:
        stop_with("This run cannot be shown.", str(error))
    if not isinstance(view.request, CalibrationRequest):
        point_elsewhere(view)
    run_panel.follow_run(page, run_id, lambda now: draw(page, now))


def point_elsewhere(view: RunDetail) -> NoReturn:
    """A run of another kind: what it did, and the screen where its result stands."""
    did, screen, named = ELSEWHERE.get(view.kind, ("did something else", "runs", ("run",)))
    known = {"rescore": view.run_id, "trial": view.run_id, "round": view.run_id, "run": view.run_id}
    known |= {"golden": view.golden_id, "aspect": view.aspect}
    title = SCREENS[screen].title
    link_to(screen, f"Open in {title}", icon=":material/arrow_forward:", **{name: known[name] for name in named})
    stop_with("This run is no calibration.", f"It {did}; its result stands in {title}.")


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
    if words := calibration_view.kept_words(page, kept):
        st.info(plain(words), icon=":material/call_split:")
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
