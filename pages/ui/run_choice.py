"""Which run a screen of results opens on, and the way to start another."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.project_records import Run, RunKind
from pages.criteria.criteria_list import run_words
from pages.ui import chosen, state
from pages.ui.page import Opened

NEW = "new"
"""`?section=new`: the form that starts a run."""


def choose_run(page: Opened, kind: RunKind, *, new: str) -> str | None:
    """Id of the run to show: that in the URL, else the one that matters most; None where one is to be started.

    The newest that goes on comes first, then the calibration behind the judge in use (of other kinds: the newest result
    on its aspect), then the newest with a result, then one that failed; a golden set and an aspect in the URL narrow
    them.  Beside the title the others can be chosen, and `new` opens the form.
    """
    runs = [run for run in projects.list_runs(page.store, page.project.project_id) if run.kind == kind]
    named = state.url_id("run")
    if named is not None:
        shown: str | None = named
    elif state.url_id("section") == NEW:
        shown = None
    else:
        shown = _foremost(page, [run for run in runs if _is_about(run)])
    with page.head or st.container():
        if shown is None:
            if runs:
                st.button("Back to the results", icon=":material/arrow_back:", on_click=_leave_form)
            return None
        state.put_in_url(run=shown)
        if len(runs) > 1 and any(run.run_id == shown for run in runs):
            words = chosen.distinct({run.run_id: run_words(run) for run in runs})
            chosen.choose_in_url("Result", "run", shown, words, width=420)
        st.button(new, icon=":material/add:", on_click=open_form)
    return shown


def open_form() -> None:
    """The form that starts a run; golden set and aspect in the URL stay."""
    state.put_in_url(run=None, section=NEW)


def show_started(run_id: str) -> None:
    """The run that was just started, in place of the form."""
    state.put_in_url(run=run_id, section=None, golden=None, aspect=None)
    st.rerun()


def _leave_form() -> None:
    state.put_in_url(run=None, section=None, golden=None, aspect=None)


def _is_about(run: Run) -> bool:
    golden, aspect = state.url_id("golden"), state.url_id("aspect")
    return golden in (None, run.golden_id) and aspect in (None, run.aspect)


def _foremost(page: Opened, runs: Sequence[Run]) -> str | None:
    going_on = [run for run in runs if not run.finished]
    with_result = [run for run in runs if run.status in ("done", "budget")]
    return next((run.run_id for run in (*going_on, *behind_judge_in_use(page, with_result), *with_result, *runs)), None)


def behind_judge_in_use(page: Opened, runs: Sequence[Run]) -> list[Run]:
    """Those of `runs` that a judge in use rests on; where none of them is a calibration, those on its aspect."""
    if len(runs) < 2:
        return []
    lines = projects.judge_lines(page.store, page.project.project_id).values()
    in_use = [line.current for line in lines if line.current is not None]
    calibrations, aspects = {version.made.base_run for version in in_use}, {version.aspect for version in in_use}
    return [run for run in runs if (run.run_id in calibrations if run.kind == "calibration" else run.aspect in aspects)]
