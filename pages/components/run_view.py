"""One calibration on screen: status line, leaderboard, the picked candidate, and the result when there is one."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from core import projects
from core.calibration.records import Calibration, Candidate, LeaderboardSnapshot
from core.errors import ConcordError
from core.project_records import Run, RunStatus
from core.projects.kinds import RunDetail
from core.records import Alignment
from core.report.figures import describe, measure_name
from core.stats import difference_figures
from pages.components import charts, consent, people, review_view, runs_table, state, tables
from pages.components.page import Opened, link_to
from pages.components.screens import draw_notice, plain

PLAIN_JUDGES = {"offline": "offline, which is no LLM", "scripted": "scripted, a stand-in for demos"}
BadgeColour = Literal["green", "red", "gray", "orange", "blue"]
STATUS_COLOURS: dict[RunStatus, BadgeColour] = {
    "done": "green",
    "failed": "red",
    "cancelled": "gray",
    "budget": "orange",
    "queued": "gray",
}


def run_version(page: Opened, run_id: str) -> int:
    return projects.run_version(page.store, run_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_run(_page: Opened, run_id: str, version: int) -> RunDetail:
    return projects.run_view(_page.store, run_id)


def read_run(page: Opened, run_id: str) -> RunDetail:
    """The run as it stands; read from the store only when its version moved, and shared between sessions."""
    return _kept_run(page, run_id, run_version(page, run_id))


def draw_state(page: Opened, view: Run, message: str, *, kept: str) -> None:
    """A run's status with `message`, and the way to stop it or go on; `kept` says what going on need not do again."""
    draw_notice()  # this part may have been redrawn without the rest of the screen
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.badge(tables.status_words(view), color=STATUS_COLOURS.get(view.status, "blue"))
        st.text(message)
        st.space("stretch")
        if not view.finished:
            st.button(
                "Cancelling …" if view.cancelling else "Cancel",
                key=f"cancel_{view.run_id}",
                icon=":material/stop_circle:",
                on_click=_cancel,
                args=(page, view.run_id),
                **people.gate(page, "reviewer", disabled=view.cancelling),
            )
        elif view.resumable:
            st.button(
                "Resume",
                key=f"resume_{view.run_id}",
                icon=":material/resume:",
                type="primary",
                on_click=_resume,
                args=(page, view.run_id),
                **people.gate(page, "reviewer", help=f"Goes on where it stopped; {kept}."),
            )
    if view.resumable:
        consent.ask(page, view.run_id)


def draw_status(page: Opened, view: Run) -> None:
    """Status, progress, what it has cost, and the way to stop or go on; errors in words."""
    draw_state(page, view, _message(view), kept="what was paid for is not asked for again")
    if not view.finished:
        st.progress(view.progress or 0.0, text=_progress_words(view))
    with st.container(horizontal=True, gap="large"):
        if runs_table.makes_calls(view):
            st.metric("Calls", f"{view.calls:,}", width="content")
            st.metric("Sent / from the cache", f"{view.usage.requests:,} / {view.usage.cached:,}", width="content")
        if view.usage.cost is not None:
            st.metric("Cost", tables.money(view.usage.cost), width="content")
        st.metric("Time left" if not view.finished else "Took", _time(view), width="content")
    if view.error:
        st.error(plain(view.error), icon=":material/error:", title="This run failed")
    if not view.finished and not projects.worker_alive(page.store):
        projects.ensure_worker(page.settings)
        st.warning("No worker is alive yet: the run waits and then goes on. See Runs.", icon=":material/hourglass:")


def draw_snapshot(view: RunDetail, snapshot: LeaderboardSnapshot) -> None:
    """The ranking, the text of the picked candidate, and both figures."""
    known = next((c.alignment for c in snapshot.candidates if c.alignment is not None), None)
    heading = tables.measure_heading(known)
    st.subheader("Ranking on the calibration items", anchor=False)
    if known is None:
        waiting = "" if view.finished else " This tab can be closed; the run goes on."
        st.caption(f"No candidate has been scored yet.{waiting}")
        return
    method = known.interval.method if known.interval else ""
    st.caption(
        f"{measure_name(known.statistic, known.level)}; 95 % intervals{plain(f' by {method}') if method else ''}. "
        "Ranks are on the items that choose the criteria; the result is measured on held-out items. "
        "Mark a row to read it whole."
    )
    ids = [c.criteria.criteria_id for c in snapshot.candidates]
    picked = st.session_state.get(state.PICKED)
    state.hold_row(state.LEADERBOARD, state.LEADERBOARD_IDS, ids, picked)
    st.dataframe(
        tables.leaderboard_frame(snapshot.candidates, heading),
        key=state.LEADERBOARD,
        on_select=_pick,
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(picked)] if picked in ids else []}},
        hide_index=True,
        column_config=tables.alignment_columns(heading),
        row_height=tables.TALL_ROW,
        height=tables.height_for(len(ids), 7, tables.TALL_ROW),
        placeholder=tables.DASH,
        alt="Leaderboard of criteria",
    )
    if picked in ids:
        _draw_picked(view, snapshot.candidates[ids.index(picked)])
    charts.place_snapshot(view, snapshot)


def draw_result(page: Opened, view: RunDetail, result: Calibration) -> None:
    """The final judge beside the judge without criteria, held-out first, with what flatters named."""
    base = result.no_criteria.get("held_out")
    with st.container(border=True):
        st.subheader("Result", anchor=False)
        st.text(_headline(view, result))
        left, right = st.columns([2, 3], gap="large")
        with left:
            _result_numbers(result, base)
        with right:
            charts.place_sides(view, result)
        st.caption(plain(result.work.words))
        for warning in (*result.warnings, *result.work.left_out):
            st.warning(plain(warning), icon=":material/warning:")
        if result.problems:
            st.text("Left out: " + "; ".join(f"{n} × {why}" for why, n in result.problems.items()))
        with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
            st.download_button(
                review_view.judge_file_label(page, view),
                data=lambda: projects.judge_file(page.store, view.run_id),
                file_name="judge.yaml",
                mime="application/yaml",
                icon=":material/download:",
                type="primary",
                on_click="ignore",
            )
            best = result.chosen[0].criteria_id if result.chosen else ""
            link_to("criteria", "Read and edit the criteria", icon=":material/rule:", run=view.run_id, criteria=best)
            parts = {"run": view.run_id, **({"criteria": best} if best else {})}
            link_to("misaligned", "Where judge and people part", icon=":material/difference:", **parts)
            beside = {"golden": view.golden_id, "aspect": view.aspect}
            link_to("compare", "Compare it with other judges", icon=":material/leaderboard:", **beside)


def _headline(view: RunDetail, result: Calibration) -> str:
    n = len(result.chosen)
    judge = PLAIN_JUDGES.get(view.judge_spec, view.judge_spec)
    what = "No criteria were chosen" if n == 0 else "One set of criteria" if n == 1 else f"The mean of {n} criteria"
    return f"{what}; {result.task.aspect} on {result.task.scale}. Golden set: {result.golden_name}. Judge: {judge}."


def _result_numbers(result: Calibration, base: Alignment | None) -> None:
    held, flattering = result.held_out, result.calibration
    st.metric(f"Held-out, {measure_name(held.statistic, held.level)}", describe(held))
    st.text(
        f"Held-out: {tables.describe_n(held)}\nHeld-out, no criteria: {tables.describe_n(base)}\n"
        f"Calibration: {tables.describe_n(flattering)}"
    )
    gain = result.gain
    figures = difference_figures(gain.value, gain.interval, gain.p)
    st.text(f"Gain over no criteria, held-out: {figures}, n = {gain.n:,} that both scored")
    if result.optimism is not None:
        st.text(_optimism_words(result.optimism))


def _optimism_words(optimism: float) -> str:
    if optimism > 0:
        return (
            f"Calibration stands {optimism:.3f} above held-out: the criteria were chosen on those items, which "
            "flatters. The held-out number is the one to quote."
        )
    return (
        f"Held-out stands {-optimism:.3f} above calibration. The two sides hold other items, so this is no gain. "
        "Quote held-out."
    )


def _draw_picked(view: RunDetail, candidate: Candidate) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.text(
                f"{tables.name_of(candidate.criteria)} · {candidate.status} · {tables.describe_n(candidate.alignment)}"
            )
            st.space("stretch")
            link_to(
                "criteria",
                "Open in Criteria",
                icon=":material/rule:",
                run=view.run_id,
                criteria=candidate.criteria.criteria_id,
            )
        st.text(candidate.criteria.text or "No criteria: the judge is asked for a rating without any.")
        if candidate.inner_gain is not None:
            st.caption(
                f"{candidate.inner_gain:+.3f} against its parent on the inner fold, by which refinements are accepted; "
                "this is not tested."
            )


def _pick() -> None:
    st.session_state[state.PICKED] = state.picked_row(state.LEADERBOARD, state.LEADERBOARD_IDS)


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
        return tables.duration(view.seconds_left)
    return tables.duration(tables.seconds_taken(view, view.updated_at))
