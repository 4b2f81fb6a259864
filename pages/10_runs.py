"""Runs: what runs, how far it is, what it cost, what failed and why; cancel, resume, open; and what people did."""

from typing import Any

import streamlit as st

from core import projects
from core.project_records import Run
from core.projects.analyses import RecheckRequest
from pages.components import consent, live, log_view, run_view, state, tables
from pages.components.page import Opened, link_to, open_page
from pages.components.screens import plain

RUNS, LOG = "Runs", "Log"
LOOK_SECONDS = 2.0


def draw(page: Opened, runs: list[Run]) -> None:
    draw_worker(page)
    if not runs:
        st.info("Nothing has been run in this project yet.", icon=":material/list_alt:")
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return
    ids = [run.run_id for run in runs]
    picked = state.picked_row(state.RUNS, state.RUNS_IDS) or state.url_id("run")
    if picked not in ids:
        picked = ids[0]
    state.hold_row(state.RUNS, state.RUNS_IDS, ids, picked)
    st.dataframe(
        tables.runs_frame(runs),
        key=state.RUNS,
        on_select="rerun",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(picked)]}},
        hide_index=True,
        height=tables.height_for(len(runs)),
        placeholder=tables.DASH,
        column_config=columns(),
        alt="Runs of this project",
    )
    draw_picked(page, runs[ids.index(picked)])


def columns() -> dict[str, Any]:
    config = st.column_config
    return {
        "run": config.TextColumn(width=230),
        "judge": config.TextColumn(width=110),
        "worker": config.TextColumn(width=110),
        "progress": config.ProgressColumn(format="%.0f %%", min_value=0, max_value=100, width=110),
        "calls": config.NumberColumn(format="localized", width=80),
        "error": config.TextColumn(width="medium"),
    }


def draw_worker(page: Opened) -> None:
    workers = projects.list_workers(page.store)
    if workers:
        words = "a worker is alive" if len(workers) == 1 else f"{len(workers)} workers are alive"
        with st.container(horizontal=True, gap="small"):
            st.badge(words, icon=":material/check_circle:", color="green")
            for worker in workers:
                st.badge(plain(f"{worker.worker_id} · {worker.capability}"), icon=":material/memory:", color="gray")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("no worker is alive", icon=":material/error:", color="red")
        if page.settings.worker == "auto":
            st.text("One is being started; this takes a few seconds. If it stays so, read worker.log in CONCORD_HOME.")
        else:
            st.text("Workers run elsewhere (CONCORD_WORKER=external). Start one with: python -m core worker")


def draw_picked(page: Opened, run: Run) -> None:
    with st.container(border=True):
        st.text(run.title)
        run_view.draw_status(page, run)
        if run.finished and not run.resumable:
            consent.ask(page, run.run_id)
        if run.kind == "calibration":
            link_to("calibrate", "Open in Calibrate", icon=":material/tune:", run=run.run_id)
        if run.kind == "round":
            link_to("misaligned", "Open its proposals", icon=":material/account_tree:", round=run.run_id)
        if run.kind == "repeval":
            link_to("repeval", "Open in RepEval", icon=":material/grid_on:", run=run.run_id)
        if run.kind == "recheck":
            _link_to_drift(page, run)
        elif run.kind == "rescore":
            link_to("criteria", "Open in Criteria", icon=":material/rule:", rescore=run.run_id)
        elif run.kind == "trial":
            link_to("criteria", "Open in Criteria", icon=":material/rule:", trial=run.run_id)
        elif run.status in ("done", "budget"):
            compare = {"golden": run.golden_id, "aspect": run.aspect}
            link_to("compare", "Compare its judges", icon=":material/leaderboard:", **compare)


def _link_to_drift(page: Opened, run: Run) -> None:
    """To the history of the judge that was rechecked, which stands with the golden set it was calibrated on."""
    request = run_view.read_run(page, run.run_id).request
    if isinstance(request, RecheckRequest):
        home = run_view.read_run(page, request.run_id)
        where = {"golden": home.golden_id, "aspect": home.aspect, "section": "drift"}
        link_to("report", "Open in Report, Drift", icon=":material/monitoring:", **where)


page = open_page("runs", intro="Runs go on in the worker, with this tab open or not.")
view = st.segmented_control(
    "View", [RUNS, LOG], default=RUNS, required=True, key=state.RUNS_VIEW, label_visibility="collapsed"
)
if view == LOG:
    log_view.draw(page)
else:
    live.follow(
        lambda: projects.list_runs(page.store, page.project.project_id),
        lambda runs: all(run.finished for run in runs),
        lambda runs: draw(page, runs),
        every=LOOK_SECONDS,
    )
