"""A run on screen: how far it is and what it costs, and a calibration's ranking while it goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal

import streamlit as st

from core import projects
from core.calibration.records import Candidate, LeaderboardSnapshot
from core.errors import ConcordError
from core.project_records import Run, RunStatus
from core.projects.kinds import RunDetail
from core.report.figures import describe, measure_name
from core.stats import change_figures
from core.wording import counted, duration, money
from pages.ui import charts, grid, people, runs_table, state, tables
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import draw_notice, plain
from pages.ui.tables import value_of

MOMENT = 0.5
"""Seconds; an offline judge scores an edit on 1,600 items in .2, and a look every .3 would show it after up to .6."""
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
    "budget": "came to the end of its budget",
    "done": "ended",
}


def run_version(page: Opened, run_id: str) -> int:
    return projects.run_version(page.store, run_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_run(_page: Opened, run_id: str, version: int) -> RunDetail:
    return projects.run_view(_page.store, run_id)


def read_run(page: Opened, run_id: str) -> RunDetail:
    """The run as it stands; read from the store only when its version moved, and shared between sessions."""
    return _kept_run(page, run_id, run_version(page, run_id))


def give_a_moment(page: Opened, run_id: str) -> None:
    """Waits up to `MOMENT` for a run that a press has begun: what ends at once is drawn once, with its result."""
    end = time.monotonic() + MOMENT
    while not read_run(page, run_id).finished and time.monotonic() < end:
        time.sleep(MOMENT / 20)


def draw_state(page: Opened, view: Run, message: str, *, kept: str) -> None:
    """A run's status with `message`, and the way to stop it or go on; `kept` says what going on need not do again."""
    draw_notice()  # this part may have been redrawn without the rest of the screen
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.badge(tables.status_words(view), color=STATUS_COLOURS.get(view.status, "blue"))
        st.text(message)
        st.space("stretch")
        if not view.finished:
            people.button(
                page,
                "reviewer",
                "Cancelling …" if view.cancelling else "Cancel",
                key=f"cancel_{view.run_id}",
                icon=":material/stop_circle:",
                on_click=_cancel,
                args=(page, view.run_id),
                disabled=view.cancelling,
            )
        elif view.resumable and not page.project.came_with(view):
            people.button(
                page,
                "reviewer",
                "Resume",
                key=f"resume_{view.run_id}",
                icon=":material/resume:",
                type="primary",
                on_click=_resume,
                args=(page, view.run_id),
                help=f"Goes on where it stopped; {kept}.",
            )
    note_imported(page, view)


def note_imported(page: Opened, run: Run) -> bool:
    """Say that an imported run is read-only; whether it is one."""
    if not page.project.came_with(run):
        return False
    st.info(
        "This run was imported and is read-only. To run anything here, start a calibration with a judge that you "
        "choose.",
        icon=":material/inventory_2:",
    )
    return True


def draw_status(page: Opened, view: Run) -> None:
    """Status, progress, what it has cost, and the way to stop or go on; errors in words."""
    draw_state(page, view, _message(view), kept="what was paid for is not asked for again")
    if view.status == "queued" and not view.calls:
        _draw_waiting(page)
        return
    if not view.finished:
        st.progress(view.progress or 0.0, text=_progress_words(view))
    with st.container(horizontal=True, gap="large"):
        if runs_table.makes_calls(view):
            st.metric("Calls", f"{view.calls:,}", width="content")
            st.metric("Sent / from the cache", f"{view.usage.requests:,} / {view.usage.cached:,}", width="content")
            st.metric("Cost", money(view.usage.cost), width="content")
        st.metric("Time left" if not view.finished else "Took", _time(view), width="content")
    if view.error:
        st.error(plain(view.error), icon=":material/error:", title="This run failed")
    if not view.finished:
        _draw_waiting(page)


def _draw_waiting(page: Opened) -> None:
    """Says so where nobody is there to take the run, and calls for a worker."""
    if not projects.worker_alive(page.store):
        projects.ensure_worker(page.settings)
        st.caption(":material/hourglass: No worker is alive yet: the run goes on once one is. See Runs.")


# ── the ranking, while a run goes on and after ─────────────────────────────────────────────────────────────────


def draw_going_on(page: Opened, view: RunDetail) -> None:
    """A run without a result: the best so far in a sentence, how far it is, and the ranking as it changes."""
    finding(_so_far(page, view))
    draw_status(page, view)
    if view.standing is not None and view.standing.candidates:
        draw_ranking(page, view, view.standing)
    elif not view.finished:
        st.caption("Criteria appear here as soon as they are drafted. This tab can be closed; the run goes on.")


def _so_far(page: Opened, view: RunDetail) -> str:
    if view.status in ENDED_WITHOUT:
        return f"The calibration of {view.aspect} {ENDED_WITHOUT[view.status]} before it had a result."
    candidates = () if view.standing is None else view.standing.candidates
    best = next((c for c in candidates if value_of(c.alignment) is not None), None)
    if best is None:
        return f"Calibrating {view.aspect}: criteria are being drafted and have no figures yet."
    name = tables.name_of(best.criteria, names_of(page, view, candidates))
    figure = describe(best.alignment)
    return f"Calibrating {view.aspect}: “{name}” agrees best with people so far, at {figure} on calibration items."


def names_of(page: Opened, view: Run, candidates: Sequence[Candidate]) -> Mapping[str, str]:
    """Criteria id → name, for the criteria of a run and all others of its aspect."""
    own = [candidate.criteria for candidate in candidates]
    return projects.criteria_names(page.store, view.project_id, view.aspect, own)


def draw_ranking(page: Opened, view: RunDetail, snapshot: LeaderboardSnapshot) -> None:
    """The candidates best first, and the text of the picked one."""
    known = next((c.alignment for c in snapshot.candidates if c.alignment is not None), None)
    if known is None:
        st.caption("No candidate has been scored yet.")
        return
    names, heading = names_of(page, view, snapshot.candidates), tables.measure_heading(known)
    method = f" by {known.interval.method}" if known.interval else ""
    st.caption(
        plain(
            f"Ranking on calibration items, which choose the criteria: {measure_name(known.statistic, known.level)}, "
            f"95 % intervals{method}. Mark a row to read it whole."
        )
    )
    ids = [c.criteria.criteria_id for c in snapshot.candidates]
    picked = grid.picked(state.LEADERBOARD)
    grid.draw(
        tables.leaderboard_frame(snapshot.candidates, heading, names),
        tables.alignment_columns(heading),
        alt="Leaderboard of criteria",
        rows=12,
        key=state.LEADERBOARD,
        ids=ids,
        chosen=picked,
    )
    if picked in ids:
        _draw_picked(view, snapshot.candidates[ids.index(picked)], names)


def draw_search(page: Opened, view: RunDetail, snapshot: LeaderboardSnapshot) -> None:
    """How the ranking came about, in figures."""
    charts.place_snapshot(view, snapshot, names_of(page, view, snapshot.candidates))


def _draw_picked(view: RunDetail, candidate: Candidate, names: Mapping[str, str]) -> None:
    criteria = candidate.criteria
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.text(
                f"{tables.name_of(criteria, names)} · {candidate.status} · {tables.describe_n(candidate.alignment)}"
            )
            st.space("stretch")
            link_to(
                "criteria", "Open in Criteria", icon=":material/rule:", run=view.run_id, criteria=criteria.criteria_id
            )
        st.text(criteria.text or "No criteria: the judge is asked for a rating without any.")
        if candidate.inner_gain is not None:
            gain = change_figures(candidate.inner_gain, None)
            st.caption(
                f"{gain} against its parent on the inner fold, by which refinements are accepted; this is not tested."
            )


def _cancel(page: Opened, run_id: str) -> None:
    try:
        projects.cancel_run(page.store, run_id)
    except ConcordError as error:
        state.leave_notice(f"Not cancelled: {error}", good=False)


def _resume(page: Opened, run_id: str) -> None:
    try:
        projects.resume_run(page.store, page.settings, run_id)
    except ConcordError as error:
        state.leave_notice(f"Not resumed: {error}", good=False)


def draw_unread(page: Opened, run: Run) -> None:
    """The way to ask again what could not be read, where there is such."""
    if page.project.came_with(run) or not (n := projects.unread_replies(page.store, run.run_id)):
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"{counted(n, 'reply', 'replies')} could not be read. Asked again, only these cost anything.")
        people.button(
            page,
            "reviewer",
            "Ask again",
            icon=":material/refresh:",
            key=state.widget(f"ask_again_{run.run_id}"),
            on_click=_ask_again,
            args=(page, run.run_id),
        )


def _ask_again(page: Opened, run_id: str) -> None:
    try:
        state.put_in_url(run=projects.ask_again(page.store, page.settings, run_id))
    except ConcordError as error:
        state.leave_notice(f"Not asked again: {error}", good=False)


def _message(view: Run) -> str:
    if view.status == "queued":
        words = waiting_words(view)
        return f"{words[0].upper()}{words[1:]}."
    if view.status == "done":
        return f"finished {tables.ago(view.finished_at)}"
    return " · ".join(part for part in (view.phase, view.message, view.placement) if part and part != view.status)


def waiting_words(view: Run) -> str:
    """Why a queued run waits."""
    return view.placement or "waiting for a worker"


def _progress_words(view: Run) -> str:
    if view.progress is None:
        return "Starting …"
    of = f" of about {view.calls_expected:,} calls" if runs_table.makes_calls(view) else ""
    return f"{100 * view.progress:.0f} %{of}"


def _time(view: Run) -> str:
    if not view.finished:
        return duration(view.seconds_left)
    return duration(tables.seconds_taken(view, view.updated_at))
