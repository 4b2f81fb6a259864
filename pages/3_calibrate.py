"""Calibrate: start a calibration, watch drafts ranked by alignment while it runs, read the result."""

from typing import NoReturn

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import RunKind
from core.projects.calibration import CalibrationRequest
from core.projects.kinds import RunDetail
from pages.components import forms, live, people, run_view, state
from pages.components.page import Opened, link_to, open_page, stop_with
from pages.components.screens import SCREENS, Screen, plain

ELSEWHERE: dict[RunKind, tuple[str, Screen, tuple[str, ...]]] = {
    "rescore": ("re-scored edited criteria", "criteria", ("rescore",)),
    "trial": ("tried criteria on one item", "criteria", ("trial",)),
    "round": ("judged again after people had looked", "misaligned", ("round",)),
    "ablation": ("took a calibration's parts away", "compare", ("golden", "aspect")),
    "metrics": ("computed metrics", "compare", ("golden", "aspect")),
    "styles": ("asked a judge in several styles", "compare", ("golden", "aspect")),
    "repeval": ("read quality out of hidden states", "repeval", ("run",)),
    "fusion": ("fused judges", "fusion", ("run",)),
    "recheck": ("rechecked a judge on newer labels", "runs", ("run",)),
}
"""Run of another kind → what it did, the screen of its result, and the ids by which that screen finds it."""


def show_run(page: Opened, run_id: str) -> None:
    try:
        view = run_view.read_run(page, run_id)
    except ConcordError as error:
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        stop_with("This run cannot be shown.", str(error))
    if not isinstance(view.request, CalibrationRequest):
        point_elsewhere(view)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(view.title)
        st.space("stretch")
        st.button("New calibration", icon=":material/add:", on_click=state.put_in_url, kwargs={"run": None})
    live.follow(lambda: run_view.read_run(page, run_id), lambda now: now.finished, lambda now: draw(page, now))


def point_elsewhere(view: RunDetail) -> NoReturn:
    """A run of another kind: what it did, and the screen where its result stands."""
    did, screen, named = ELSEWHERE.get(view.kind, ("did something else", "runs", ("run",)))
    known = {"rescore": view.run_id, "trial": view.run_id, "round": view.run_id, "run": view.run_id}
    known |= {"golden": view.golden_id, "aspect": view.aspect}
    title = SCREENS[screen].title
    link_to(screen, f"Open in {title}", icon=":material/arrow_forward:", **{name: known[name] for name in named})
    stop_with("This run is no calibration.", f"It {did}; its result stands in {title}.")


def draw(page: Opened, view: RunDetail) -> None:
    run_view.draw_status(page, view)
    if view.calibration is not None:
        run_view.draw_result(page, view, view.calibration)
    if view.standing is not None:
        run_view.draw_snapshot(view, view.standing)
    elif not view.finished:
        st.caption("Criteria appear here as soon as they are drafted. This tab can be closed; the run goes on.")


def show_form(page: Opened) -> None:
    goldens = projects.list_goldens(page.store, page.project.project_id)
    if not goldens:
        st.info(
            "This project has no golden set yet. Bring in a file with human labels first.", icon=":material/dataset:"
        )
        link_to("golden_set", "Bring in a golden set", icon=":material/upload_file:")
        st.stop()
    show_going_on(page)
    choice = forms.choose_calibration(page.settings, page.project.project_id, goldens, state.url_id("golden"))
    if choice.request is None:
        st.warning(plain(choice.missing), icon=":material/edit:")
        st.stop()
    st.subheader("Before the start", anchor=False)
    try:
        forms.show_estimate(projects.estimate(page.store, page.settings, choice.request))
    except ConcordError as error:
        stop_with("This calibration cannot be started as it stands.", str(error))
    gate = people.gate(page, "reviewer")
    if st.button("Start the calibration", type="primary", icon=":material/play_arrow:", **gate):
        start(page, choice.request)


def show_going_on(page: Opened) -> None:
    runs = [run for run in projects.list_runs(page.store, page.project.project_id) if run.kind == "calibration"]
    for run in [run for run in runs if not run.finished][:3]:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.badge("going on", color="blue")
            st.text(f"{run.title}: {run.phase} {run.message}".strip())
            link_to("calibrate", "Watch it", icon=":material/visibility:", run=run.run_id)
    if finished := next((run for run in runs if run.finished), None):
        link_to("calibrate", f"Last run: {plain(finished.title)}", icon=":material/history:", run=finished.run_id)


def start(page: Opened, request: CalibrationRequest) -> None:
    try:
        run_id = projects.start_calibration(page.store, page.settings, request)
    except ConcordError as error:
        stop_with("The calibration was not started.", str(error))
    state.put_in_url(run=run_id, golden=None)
    st.rerun()


page = open_page(
    "calibrate",
    intro="Criteria drafted from labels, ranked by agreement, refined, tested.",
)
if run_id := state.url_id("run"):
    show_run(page, run_id)
else:
    show_form(page)
