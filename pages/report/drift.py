"""Show whether a judge still agrees with raters on newer labels, and start rechecks."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import projects
from core.comparison.recheck import Recheck
from core.findings.over_time import recheck_finding
from core.project_records import GoldenSummary
from core.projects.method_runs import RecheckRequest
from core.projects.reports import MeasuredJudge
from core.wording import change_figures, number
from pages.ui import grid, run_panel, tables
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain
from pages.ui.state import widget

SHOWN = {
    "holds": (st.success, ":material/check_circle:"),
    "fallen": (st.error, ":material/trending_down:"),
}


def draw(page: Opened, golden: GoldenSummary, aspect: str, judge: MeasuredJudge, above: DeltaGenerator) -> None:
    """Draw the newest recheck of a judge, the progress of a running recheck, the form, and the history of all versions.

    Args:
        above: Container for the finding.
    """
    history = projects.list_rechecks(page.store, page.project.project_id, aspect)
    run, number_of = judge.run, 0 if judge.version is None else judge.version.number
    own = [each for each in history if each.judged_id == run.run_id or (number_of and each.version == number_of)]
    names = {each.golden_id: each.name for each in page.store.goldens.all(page.project.project_id)}
    picked = names.get(st.session_state.get(widget("drift_golden"), ""))  # the picker below chooses what is shown
    if picked is not None:
        own = [each for each in own if each.outcome.golden_name == picked]
    name = "The judge" if judge.version is None else judge.version.name.capitalize()
    with above:
        finding(
            recheck_finding(own[-1].outcome).headline
            if own
            else f"{name} hasn't been rechecked on {picked or 'newer labels'} yet."
        )
    runs = page.store.runs.all(page.project.project_id)
    last = next((past for past in runs if past.kind == "recheck" and past.aspect == run.aspect), None)
    if last is not None and last.status != "done":
        run_panel.follow_run(page, last.run_id)
    if own:
        _draw_newest(own[-1].outcome, f"{name}, {tables.when(own[-1].created_at)}")
    else:
        st.caption(
            "A recheck scores newer labelled items that weren't used to calibrate or evaluate the judge. It "
            "compares the agreement on these items with the held-out agreement. The interval of the change shows "
            "whether the judge has drifted."
        )
    if not run_panel.note_imported(page, run):
        _draw_form(page, golden, aspect, run.run_id, own[-1].outcome.golden_name if own else "")
    if earlier := [each for each in reversed(history) if each not in own[-1:]]:
        st.caption("Other rechecks")
        rows = [
            {
                "when": tables.when(each.created_at),
                "judge": f"version {each.version}" if each.version else "a calibration",
                "newer labels": each.outcome.golden_name,
                "n": each.outcome.now.n,
                tables.measure_heading(each.outcome.now): number(each.outcome.now.value),
                "95 % interval": tables.interval_of(each.outcome.now),
                "change": tables.DASH
                if (moved := each.outcome.change.value) is None
                else change_figures(moved, each.outcome.change.interval),
                "decision": each.outcome.decision,
            }
            for each in earlier
        ]
        columns = {"newer labels": grid.Column(width=130)}
        grid.draw(pd.DataFrame(rows), columns, alt="Other rechecks, newest first")


def _draw_form(page: Opened, golden: GoldenSummary, aspect: str, run_id: str, shown: str) -> None:
    """Draw the form that starts a recheck on a newer golden set; `shown` is the name of the one shown."""
    n_labels = {
        summary.golden_id: (summary.name, labels.n_labelled)
        for summary in page.store.goldens.all(page.project.project_id)
        if summary.golden_id != golden.golden_id and (labels := summary.aspect(aspect)) and labels.n_labelled > 1
    }
    if not n_labels:
        words = f"No other golden set in this project has labels for {aspect}."
        st.info(
            plain(f"{words} Upload newer labels, or label new items in the app and freeze them."),
            icon=":material/dataset:",
        )
        with st.container(horizontal=True):
            link_to("golden_set", "Upload newer labels", icon=":material/upload_file:")
            link_to("label", "Label items", icon=":material/edit_note:")
        return
    words_of = {golden_id: f"{name} ({n:,} labels)" for golden_id, (name, n) in n_labels.items()}
    at = next((k for k, (name, _) in enumerate(n_labels.values()) if name == shown), 0)
    key = widget("drift_golden")
    chosen = st.selectbox("Newer labels", list(words_of), at, format_func=words_of.__getitem__, key=key)
    request = RecheckRequest(page.project.project_id, chosen, aspect, run_id)
    run_panel.draw_start(
        page,
        "Recheck",
        lambda: projects.start_run(page.store, page.settings, request),
        icon=":material/monitoring:",
    )


def _draw_newest(recheck: Recheck, about: str) -> None:
    """Draw the verdict, the figures now and then, and the test of the change."""
    said = recheck_finding(recheck)
    show, icon = SHOWN.get(recheck.decision, (st.warning, ":material/help:"))
    show(plain(" ".join(filter(None, (f"{about}, on {recheck.golden_name}.", said.detail, said.next_step)))), icon=icon)
    left, unscored = sum(recheck.left_out.values()), recheck.now.n_unscored
    if left or unscored:
        st.caption(f"{unscored:,} of {recheck.n_labelled:,} newer labelled items are unscored; {left:,} were left out.")
    for line in said.cautions:
        st.caption(plain(line))
