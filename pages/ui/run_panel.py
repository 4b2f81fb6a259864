"""The run panel of every screen: start, follow, cancel, resume and choose runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import Run, RunKind, RunStatus
from core.projects.start_and_resume import RunDetail
from core.wording import counted, duration, money
from pages.ui import chosen, people, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import SCREENS, Screen, draw_notice, plain

POLL_SECONDS = 0.7
NEW = "new"
"""`?section=new`: the form that starts a run."""
BadgeColour = Literal["green", "red", "gray", "orange", "blue"]
STATUS_COLOURS: dict[RunStatus, BadgeColour] = {
    "done": "green",
    "failed": "red",
    "cancelled": "gray",
    "budget": "orange",
    "queued": "gray",
}
ENDED_WITHOUT: dict[RunStatus, str] = {
    "failed": "failed",
    "cancelled": "was cancelled",
    "budget": "used up its budget",
    "done": "ended",
}
RESULTS: dict[RunKind, Screen] = {
    "calibration": "calibrate",
    "rescore": "criteria",
    "round": "misaligned",
    "metrics": "compare",
    "styles": "compare",
    "repeat": "compare",
    "controls": "compare",
    "switch": "compare",
    "repeval": "repeval",
    "fusion": "fusion",
    "version": "overview",
}
"""Kind of run → the screen that shows its result."""
_TURN = threading.RLock()
"""Whoever looks again without having pressed anything waits their turn: fifty open tabs never draw all at once, in the
way of somebody who saves a label (95th percentile of a save with 14 such tabs: 550 → 240 ms, bench_labelling)."""

T = TypeVar("T")


def link_to_result(run: Run) -> str:
    """Draw a link to the screen that shows the result of a run. Return the screen's title; "" if there is none."""
    screen = RESULTS.get(run.kind)
    if screen is None:
        return ""
    ids = {"golden": run.golden_id, "aspect": run.aspect}
    if screen not in ("compare", "overview"):
        ids = {run.kind if screen in ("criteria", "misaligned") else "run": run.run_id}
    link_to(screen, f"Open in {SCREENS[screen].title}", icon=":material/arrow_forward:", **ids)
    return SCREENS[screen].title


def draw_start(
    page: Opened,
    label: str,
    start: Callable[[], str],
    shown: Callable[[str], object] | None = None,
    *,
    icon: str = ":material/play_arrow:",
    key: str | None = None,
    disabled: bool = False,
    kind: Literal["primary", "secondary"] = "primary",
) -> None:
    """Draw a button that starts a run. If the run can't start, the reason is shown.

    Args:
        start: Starts the run and returns its id.
        shown: Called with the id of the run before the screen is redrawn.
    """
    if not people.button(page, "reviewer", label, type=kind, icon=icon, key=key, disabled=disabled):
        return
    try:
        run_id = start()
    except ConcordError as error:
        st.error(f"The run didn't start.  \n{plain(str(error))}", icon=":material/error:")
        return
    if shown is not None:
        shown(run_id)
    st.rerun()


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_run(_page: Opened, run_id: str, version: int) -> RunDetail:
    return projects.run_view(_page.store, run_id)


def read_run(page: Opened, run_id: str) -> RunDetail:
    """Return a run with its details. All sessions share a cached copy until the run changes."""
    return _kept_run(page, run_id, page.store.runs.get(run_id).version)


def follow(
    read: Callable[[], T], over: Callable[[T], bool], draw: Callable[[T], None], *, every: float = POLL_SECONDS
) -> None:
    """Call `draw(read())` every `every` seconds until `over(read())` is true, then rerun the whole screen."""
    waiting = not over(read())

    @st.fragment(run_every=every if waiting else None)
    def part() -> None:
        with _TURN:
            now = read()
            if waiting == over(now):  # it ended, or was resumed
                state.keep_notice()
                st.rerun()
            draw(now)

    part()


def follow_run(
    page: Opened, run_id: str, draw: Callable[[RunDetail], None] | None = None, *, every: float = POLL_SECONDS
) -> None:
    """Redraw a run every `every` seconds until it has finished. `draw` is `draw_status` by default."""
    follow(lambda: read_run(page, run_id), lambda run: run.finished, draw or partial(draw_status, page), every=every)


def draw_status(page: Opened, run: Run) -> None:
    """Draw status, progress, cost and errors of a run, and the button to cancel or resume it."""
    draw_notice()  # this fragment may be redrawn without the rest of the screen
    if run.status == "queued":
        said = ["waiting for a worker"]
    elif run.status == "done":
        said = [f"finished {tables.when(run.finished_at)}"]
    else:
        said = [part for part in (run.phase, run.message) if part and part != run.status]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.badge(tables.status_words(run), color=STATUS_COLOURS.get(run.status, "blue"))
        st.text(" · ".join([run.title, *said]))
        st.space("stretch")
        look: dict[str, Any] = {"key": f"act_{run.run_id}", "on_click": state.attempt}
        if not run.finished:
            label = "Cancelling …" if run.cancelling else "Cancel"
            cancel = ("Not cancelled", projects.cancel_run, page.store, run.run_id)
            icon = ":material/stop_circle:"
            people.button(page, "reviewer", label, icon=icon, args=cancel, disabled=run.cancelling, **look)
        elif run.resumable and not page.project.came_with(run):
            look |= {"icon": ":material/resume:", "type": "primary"}
            resume = ("Not resumed", projects.resume_run, page.store, page.settings, run.run_id)
            words = "The run resumes where it stopped, because replies and hidden states are cached."
            people.button(page, "reviewer", "Resume", args=resume, help=words, **look)
    note_imported(page, run)
    asks = makes_calls(run)
    if run.status != "queued" or run.calls:
        if not run.finished:
            unit = {"repeval": "texts", "metrics": "scores"}.get(run.kind, "calls" if asks else "")
            of = f" · {run.calls:,} of about {run.calls_expected:,} {unit}" if unit and run.calls_expected else ""
            words = "Starting …" if run.progress is None else f"{100 * run.progress:.0f} %{of}"
            st.progress(run.progress or 0.0, text=words)
        with st.container(horizontal=True, gap="large"):
            if asks:
                st.metric("Calls", f"{run.calls:,}", width="content")
                st.metric("Sent / cached", f"{run.usage.requests:,} / {run.usage.cached:,}", width="content")
                st.metric("Cost", money(run.usage.cost), width="content")
            seconds = tables.seconds_taken(run, run.updated_at) if run.finished else run.seconds_left
            st.metric("Took" if run.finished else "Time left", duration(seconds), width="content")
        if run.error:
            st.error(plain(run.error), icon=":material/error:", title="This run failed")
    if not run.finished and not page.store.workers.alive():
        projects.ensure_worker(page.settings)
        st.caption(":material/hourglass: No worker is running. The run continues when a worker starts (see Runs).")


def makes_calls(run: Run) -> bool:
    """Return whether the run called a model, over the network or from stored replies."""
    return bool(run.usage.requests or run.usage.cached)


def note_imported(page: Opened, run: Run) -> bool:
    """Draw a note that the run is read-only, if it was imported. Return whether it was imported."""
    if not page.project.came_with(run):
        return False
    st.info(
        "This run was imported and is read-only. To continue in this project, start a calibration with a judge "
        "of your choice.",
        icon=":material/inventory_2:",
    )
    return True


def draw_unread(page: Opened, run: Run) -> None:
    """Draw a note with the number of replies that couldn't be read, if any."""
    if n := projects.unread_replies(page.store, run.run_id):
        st.text(
            f"Concord couldn't read {counted(n, 'reply', 'replies')}. If you start the run again, you pay only for "
            "these replies."
        )


def run_words(run: Run) -> str:
    """Return the label of a run in a select box."""
    return f"{run.title}, {tables.when(run.created_at)}"


def choose_run(page: Opened, kind: RunKind, *, new: str) -> str | None:
    """Return the id of the run to show: the run in the URL, else the most relevant run. None means a new run.

    The most relevant run is the first of these: a run in progress, the newest result on an aspect that has a current
    judge, the newest result, the newest run. Golden set and aspect in the URL narrow the choice. A menu next to the
    title offers the other runs, and a button with the label `new` offers a new run.
    """
    runs = [run for run in page.store.runs.all(page.project.project_id) if run.kind == kind]
    shown = state.url_id("run")
    if shown is None and state.url_id("section") != NEW:
        golden, aspect = state.url_id("golden"), state.url_id("aspect")
        about = [run for run in runs if golden in (None, run.golden_id) and aspect in (None, run.aspect)]
        running = [run for run in about if not run.finished]
        with_result = [run for run in about if run.status in ("done", "budget")]
        lines = projects.judge_lines(page.store, page.project.project_id).values()
        in_use = {line.aspect for line in lines if line.current is not None}
        ranked = (*running, *(run for run in with_result if run.aspect in in_use), *with_result, *about)
        shown = next((run.run_id for run in ranked), None)
    with page.head or st.container():
        if shown is not None:
            state.put_in_url(run=shown)
            if len(runs) > 1 and any(run.run_id == shown for run in runs):
                words = chosen.distinct({run.run_id: run_words(run) for run in runs})
                chosen.choose_in_url("Result", "run", shown, words, width=420)
            # golden set and aspect stay in the URL
            form = {"run": None, "section": NEW}
            st.button(new, icon=":material/add:", on_click=state.put_in_url, kwargs=form)
        elif runs:
            leave = {"run": None, "section": None, "golden": None, "aspect": None}
            icon = ":material/arrow_back:"
            st.button("Back to the results", icon=icon, on_click=state.put_in_url, kwargs=leave)
    return shown


def show_started(run_id: str) -> None:
    """Replace the form with the run that was just started."""
    state.put_in_url(run=run_id, section=None, golden=None, aspect=None)
