"""Runs screen: progress, cost and errors of all runs, with buttons to cancel or resume, and the log of changes."""

import streamlit as st

from core.project_records import Run
from core.projects.method_runs import RecheckRequest
from core.store.log import Action
from pages.runs import log_view, runs_table
from pages.runs.log_view import pages_of
from pages.ui import grid, run_panel, state
from pages.ui.page import Opened, finding, link_to, open_page
from pages.ui.screens import plain

RUNS, LOG = SECTIONS = ("Runs", "Log")
LOOK_SECONDS = 2.0
ROWS = 25


def draw(page: Opened, runs: list[Run]) -> None:
    if not runs:
        st.info("This project has no runs yet.", icon=":material/list_alt:")
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return
    finding(runs_table.finding(runs))
    if not all(run.finished for run in runs):
        draw_worker(page)
    # the page in the URL, else the page with the run in the URL
    place = next((k // ROWS + 1 for k, run in enumerate(runs) if run.run_id == state.url_id("run")), 1)
    number = pages_of(max(1, -(-len(runs) // ROWS)), default=place)
    shown = runs[(number - 1) * ROWS : number * ROWS]
    ids = [run.run_id for run in shown]
    wanted = state.url_id("run") or grid.picked(state.RUNS)
    picked = wanted if wanted in ids else runs_table.foremost(shown).run_id
    draw_picked(page, shown[ids.index(picked)])
    begun = reversed(page.store.events.all(page.project.project_id, Action))  # the oldest entry of a run wins
    starters = {entry.subject: entry.actor for entry in begun}
    goldens = {golden.golden_id: golden.name for golden in page.store.goldens.all(page.project.project_id)}
    grid.draw(
        runs_table.columns(shown, starters, goldens),
        runs_table.COLUMNS,
        alt="Runs in this project, newest first",
        key=state.RUNS,
        pick=grid.Pick(ids, picked, lambda: state.put_in_url(run=grid.picked(state.RUNS))),
    )


def draw_worker(page: Opened) -> None:
    """Show the running workers, or explain how to start one."""
    if workers := page.store.workers.alive():
        words = "A worker is running" if len(workers) == 1 else f"{len(workers)} workers are running"
        names = ", ".join(worker.worker_id for worker in workers)
        st.markdown(f":material/check_circle: {plain(f'{words}: {names}')}")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("No worker is running", icon=":material/error:", color="red")
        if page.settings.worker == "auto":
            st.text("A worker should start within seconds. If it doesn't, check worker.log in CONCORD_HOME.")
        else:
            st.text(
                "Concord doesn't start workers here, because CONCORD_WORKER is set to external. Start one with: "
                "python -m core worker"
            )


def draw_picked(page: Opened, run: Run) -> None:
    with st.container(border=True):
        if run.status == "done":
            st.markdown(f"**{plain(run.title)}**")
            st.markdown(f":green-badge[done] {plain(runs_table.ended_words(run))}")
            run_panel.note_imported(page, run)
        else:
            run_panel.draw_status(page, run)
        if run.status in ("done", "budget"):
            run_panel.draw_unread(page, run)
        if run.kind == "recheck":
            # a judge's history belongs to the golden set that it was calibrated on
            request = run_panel.read_run(page, run.run_id).request
            if isinstance(request, RecheckRequest):
                home = run_panel.read_run(page, request.run_id)
                where = {"golden": home.golden_id, "aspect": home.aspect, "section": "drift"}
                link_to("report", "Open the drift report", icon=":material/monitoring:", **where)
        else:
            run_panel.link_to_result(run)


def switch_view() -> None:
    section = "log" if st.session_state[state.RUNS_VIEW] == LOG else None
    state.put_in_url(section=section, page=None, who=None, what=None)


page = open_page("runs", intro="You can close this tab. Runs continue in the background.")
st.session_state[state.RUNS_VIEW] = LOG if state.url_id("section") == "log" else RUNS
view = st.segmented_control(
    "View",
    SECTIONS,
    required=True,
    key=state.RUNS_VIEW,
    label_visibility="collapsed",
    on_change=state.when_changed(state.RUNS_VIEW, switch_view),
)
if view == LOG:
    log_view.draw(page)
else:
    run_panel.follow(
        lambda: page.store.runs.all(page.project.project_id),
        lambda runs: all(run.finished for run in runs),
        lambda runs: draw(page, runs),
        every=LOOK_SECONDS,
    )
