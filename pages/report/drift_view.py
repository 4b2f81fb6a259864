"""Drift: is an exported judge still aligned on newer labels?  A recheck is started here; its history is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core import projects
from core.comparison.recheck import Recheck
from core.errors import ConcordError
from core.project_records import GoldenSummary, Run
from core.projects.analyses import DatedRecheck, RecheckRequest
from core.projects.kinds import RunDetail
from core.projects.reports import MeasuredJudge
from core.records import Alignment
from core.report.figures.style import measure_name
from core.report.figures.trends import Point, history_figure
from core.stats import change_figures, difference_figures, p_figure
from core.stats.claims import number, p_cell
from core.wording import percent
from pages.ui import charts, grid, live, people, run_view, state, tables
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain
from pages.ui.state import widget

FALLS = (0.05, 0.1, 0.15, 0.2)
_DECIDED = {
    "holds": "{0} still holds on the newer labels of {1}",
    "fallen": "{0} agrees with people less than it did, by the newer labels of {1}",
}
_OPEN = "{0}: the newer labels of {1} do not tell whether it still agrees with people as it did"


def draw_finding(page: Opened, aspect: str, judge: MeasuredJudge) -> None:
    """Whether the version still agrees with people, by its newest recheck."""
    newest = next(reversed(_of(judge, projects.list_rechecks(page.store, page.project.project_id, aspect))), None)
    name = "The judge" if judge.version is None else f"{judge.version.name.capitalize()} of the judge"
    if newest is None:
        finding(f"{name} was not rechecked yet: whether it still agrees with people on newer labels is not known")
    else:
        finding(_DECIDED.get(newest.outcome.decision, _OPEN).format(name, newest.outcome.golden_name))


def draw(page: Opened, golden: GoldenSummary, aspect: str, judge: MeasuredJudge) -> None:
    """Progress while a recheck runs, the newest answer in full, the history of all versions, and the form.

    `golden` is the golden set that the version was measured on.
    """
    history = projects.list_rechecks(page.store, page.project.project_id, aspect)
    _draw_run(page, judge.run)
    own = _of(judge, history)
    if own:
        _draw_newest(own[-1].outcome)
    else:
        st.caption(
            "A recheck scores labelled items whose texts the judge was neither calibrated with nor evaluated on. Its "
            "alignment there stands beside its held-out figure; the interval of the change decides."
        )
    _draw_form(page, golden, aspect, judge.run)
    if history:
        _draw_history(own, history, judge.run)


def _of(judge: MeasuredJudge, history: Sequence[DatedRecheck]) -> list[DatedRecheck]:
    """The rechecks of that version, whichever run measured it."""
    number = 0 if judge.version is None else judge.version.number
    return [each for each in history if each.judged_id == judge.run.run_id or (number and each.version == number)]


def _draw_form(page: Opened, golden: GoldenSummary, aspect: str, run: Run) -> None:
    """Which newer golden set, which fall matters; "Recheck"."""
    if run_view.note_imported(page, run):
        return
    newer = [
        summary
        for summary in projects.list_goldens(page.store, page.project.project_id)
        if summary.golden_id != golden.golden_id
    ]
    labelled = {
        summary.golden_id: summary for summary in newer if (labels := summary.aspect(aspect)) and labels.n_labelled > 1
    }
    if not labelled:
        st.info(
            plain(
                f"No other golden set of this project has labels of {aspect}. Bring in a file with newer labels, or "
                "label new items in the app and freeze them."
            ),
            icon=":material/dataset:",
        )
        with st.container(horizontal=True):
            link_to("golden_set", "Bring in newer labels", icon=":material/upload_file:")
            link_to("label", "Label items", icon=":material/edit_note:")
        return
    words = {
        summary.golden_id: f"{summary.name} ({_labels(summary, aspect):,} labels)" for summary in labelled.values()
    }
    left, middle, right = st.columns([3, 1, 2], vertical_alignment="bottom")
    chosen = left.selectbox(
        "Newer labels", list(labelled), format_func=lambda golden_id: words[golden_id], key=widget("drift_golden")
    )
    fall = middle.selectbox(
        "Fall that matters",
        FALLS,
        index=FALLS.index(0.1),
        format_func=lambda fall: f"{fall:.2f}",
        key=widget("drift_fall"),
        help="“Holds” means that a fall of this much or more is ruled out.",
    )
    without = right.toggle(
        "Compare with no criteria",
        value=True,
        key=widget("drift_without"),
        help="The same judge without criteria scores the items too: one more call an item.",
    )
    if people.button(page, "reviewer", "Recheck", type="primary", icon=":material/monitoring:"):
        request = RecheckRequest(
            page.project.project_id,
            chosen or next(iter(labelled)),
            aspect,
            run.run_id,
            fall or 0.1,
            no_criteria=without,
        )
        try:
            projects.start_recheck(page.store, page.settings, request)
        except ConcordError as error:
            st.error(f"The recheck was not started.  \n{plain(str(error))}", icon=":material/error:")
            return
        st.rerun()


def _labels(golden: GoldenSummary, aspect: str) -> int:
    labels = golden.aspect(aspect)
    return 0 if labels is None else labels.n_labelled


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_run(page: Opened, run: Run) -> None:
    """The newest recheck while it goes on, and why it has no answer where it failed."""
    runs = projects.list_runs(page.store, page.project.project_id)
    newest = next((past for past in runs if past.kind == "recheck" and past.aspect == run.aspect), None)
    if newest is None or newest.status == "done":
        return
    run_id = newest.run_id
    live.follow(
        lambda: projects.run_view(page.store, run_id), lambda view: view.finished, lambda view: _draw_view(page, view)
    )


def _draw_view(page: Opened, view: RunDetail) -> None:
    if view.status == "done":
        return
    if view.finished:
        st.error(
            plain(
                f"The newest recheck has no answer: {(view.error or view.status).rstrip('.')}. Runs has the details."
            ),
            icon=":material/error:",
        )
        return
    waiting = view.status == "queued"
    reached = f"{view.message}: {view.calls:,} of {view.calls_expected:,} calls"
    progress = run_view.waiting_words(view) if waiting else reached
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.progress(view.progress or 0.0, text=plain(f"Rechecking, {progress}"))
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
    if waiting and not projects.worker_alive(page.store):
        projects.ensure_worker(page.settings)


def _cancel(page: Opened, run_id: str) -> None:
    try:
        projects.cancel_run(page.store, run_id)
    except ConcordError as error:
        state.leave_notice(str(error), good=False)


# ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────


def _draw_history(own: Sequence[DatedRecheck], history: Sequence[DatedRecheck], run: Run) -> None:
    """The rechecks of the version as a plot, those of all versions as a table."""
    if own:
        points = [
            Point(recheck.created_at, recheck.outcome.golden_name, recheck.outcome.now, recheck.outcome.decision)
            for recheck in own
        ]
        charts.place(
            history_figure(points, own[-1].outcome.then),
            key=f"rechecks_{run.run_id}",
            alt="Alignment at each recheck with its interval, beside the exported figure",
        )
    frame = pd.DataFrame([_row(recheck) for recheck in reversed(history)])
    grid.draw(frame, alt="Rechecks of all versions, newest first")


def _draw_newest(recheck: Recheck) -> None:
    show = {"holds": st.success, "fallen": st.error}.get(recheck.decision, st.warning)
    icons = {"holds": ":material/check_circle:", "fallen": ":material/trending_down:"}
    show(plain(recheck.words), icon=icons.get(recheck.decision, ":material/help:"))
    narrower = recheck.labels is not None and recheck.labels.narrower
    if recheck.labels is not None and narrower:
        st.warning(plain(recheck.labels.words), icon=":material/compress:")
    left, middle, right = st.columns(3)
    left.metric("Now, on newer labels", number(recheck.now.value))
    left.caption(plain(_beside(recheck.now)))
    middle.metric("Then, held-out", number(recheck.then.value))
    middle.caption(plain(_beside(recheck.then)))
    share = recheck.unread_share
    right.metric("Unscored", percent(share, digits=1))
    left_out = sum(recheck.left_out.values())
    known = f"; {left_out:,} others are left out" if left_out else ""
    right.caption(plain(f"of {recheck.n_labelled:,} newer labelled items{known}"))
    shifts = (None if narrower else recheck.labels, recheck.scores)
    lines = [*_tests(recheck), *(shift.words for shift in shifts if shift is not None), *recheck.notes]
    for line in lines:
        st.caption(plain(line))


def _beside(alignment: Alignment) -> str:
    """What belongs to the number: statistic, level, interval, n."""
    left_out = f" ({alignment.n_left_out:,} groups do not vary and are left out)" if alignment.n_left_out else ""
    measure = measure_name(alignment.statistic, alignment.level)
    return f"{measure}; 95 % interval {tables.interval_of(alignment)}; n = {alignment.n:,}{left_out}"


def _tests(recheck: Recheck) -> list[str]:
    lines = []
    change = recheck.change
    if change.p is not None:
        lines.append(f"Fallen, one-sided test of two samples: {p_figure(change.p)}.")
    if change.detectable is not None:
        n = f"{change.n_needed:,} items" if change.n_needed is not None else "no number of new items suffices"
        lines.append(
            f"So many items tell a fall of {change.detectable:.3f} four times in five; a fall of {change.fall:g}: {n}."
        )
    for name, difference in (
        (f"The judge minus {recheck.against_name}", recheck.against),
        ("Now minus before", recheck.paired),
    ):
        if difference is not None and difference.value is not None:
            figures = difference_figures(difference.value, difference.interval, difference.p)
            lines.append(f"{name}, on the same {difference.n:,} items: {figures}.")
    return lines


def _row(recheck: DatedRecheck) -> dict[str, Any]:
    outcome = recheck.outcome
    change = outcome.change
    return {
        "when": f"{recheck.created_at:%Y-%m-%d %H:%M}",
        "judge": recheck.judge_name,
        "newer labels": outcome.golden_name,
        "n": outcome.now.n,
        "left out": sum(outcome.left_out.values()),
        tables.measure_heading(outcome.now): number(outcome.now.value),
        "95 % interval": tables.interval_of(outcome.now),
        "change": tables.DASH if change.value is None else change_figures(change.value, None),
        "p, fallen": p_cell(change.p),
        "unscored": outcome.now.n_unscored,
        "decision": outcome.decision,
    }
