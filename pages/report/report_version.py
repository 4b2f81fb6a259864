"""Which version of the judge Report, its file and Drift speak of; and what to do where nothing is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import streamlit as st

from core import projects
from core.comparison import unique_names
from core.comparison.leaderboard import in_short
from core.errors import ConcordError
from core.project_records import GoldenSummary, Run
from core.projects.judge_line import JudgeVersion
from core.projects.reports import MeasuredJudge
from core.wording import price_words
from pages.overview import judge_view
from pages.ui import people, state
from pages.ui.chosen import choose_in_url, distinct
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain


def choose(page: Opened, judges: Sequence[MeasuredJudge]) -> MeasuredJudge | None:
    """The version that the URL names, by number or by a run of it, else the one in use; None where there is none."""
    if not judges:
        return None
    by_run = {judge.run.run_id: judge for judge in judges}
    linked = _linked(page, judges)
    words = distinct({run_id: judge.words for run_id, judge in by_run.items()})
    with nullcontext() if page.head is None else page.head:
        return by_run[choose_in_url("Judge", "run", linked.run.run_id, words, width=240)]


def _linked(page: Opened, judges: Sequence[MeasuredJudge]) -> MeasuredJudge:
    run_id, number = state.url_id("run"), state.url_id("version")
    aspect = judges[0].run.aspect
    named = None if run_id is None else judge_view.line_of(page, aspect).of_run(run_id)
    for judge in judges:
        if judge.run.run_id == run_id or (judge.version is not None and judge.version == named):
            return judge
    numbered = [judge for judge in judges if judge.version is not None and str(judge.version.number) == number]
    return (numbered or judges)[0]


def draw_none(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Nothing was measured on this golden set yet: measure the version in use on it, or calibrate."""
    version = judge_view.line_of(page, aspect).default
    if version is not None:
        words = f"{version.name.capitalize()} of the judge has not been measured on this golden set"
        _draw_measuring(page, golden, aspect, version, words)
        return
    going = _going_on(page, golden, aspect)
    if going is None:
        finding(
            f"There is no judge of {aspect} yet: no calibration on this golden set has come to a result",
            step=lambda: link_to(
                "calibrate", "Start a calibration", icon=":material/tune:", golden=golden.golden_id, aspect=aspect
            ),
        )
        _draw_others(page, golden, aspect)
    else:
        finding(
            f"A calibration of {aspect} is going on; its report stands here as soon as it is done",
            step=lambda: link_to("calibrate", "Watch it", icon=":material/visibility:", run=going.run_id),
        )


def _draw_others(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """The way to what is known of judges that nobody calibrated here: no report is made of those."""
    judges = projects.list_judges(page.store, page.project.project_id, golden.golden_id, aspect)
    if judges:
        names = in_short(unique_names([entry.judge for entry in judges]))
        st.caption(
            plain(f"A report is about a judge that was calibrated here. What is known of {names} is on Compare.")
        )
        where = {"golden": golden.golden_id, "aspect": aspect}
        link_to("compare", "See it beside the people", icon=":material/leaderboard:", **where)
        link_to("compare", "See which system is better by it", icon=":material/hub:", section="systems", **where)


def draw_unmeasured(page: Opened, golden: GoldenSummary, aspect: str, judge: MeasuredJudge) -> None:
    """A version whose held-out figure nobody has asked for: it is offered."""
    name = "The judge" if judge.version is None else f"{judge.version.name.capitalize()} of the judge"
    words = f"{name} was not measured on held-out items, so there is nothing to report yet"
    if judge.version is None:
        finding(words)
        return
    _draw_measuring(page, golden, aspect, judge.version, words)


def _draw_measuring(page: Opened, golden: GoldenSummary, aspect: str, version: JudgeVersion, words: str) -> None:
    run = projects.version_run(page.store, page.project.project_id, aspect, version.number)
    if run is not None and not run.finished and run.golden_id == golden.golden_id:
        finding(
            f"{version.name.capitalize()} of the judge is being measured",
            step=lambda: link_to("runs", "Watch it", icon=":material/visibility:", run=run.run_id),
        )
        return
    finding(words, step=lambda: _offer(page, golden, aspect, version))
    try:
        asked = projects.estimate_version(
            *(page.store, page.settings, page.project.project_id, aspect, version.criteria_ids),
            base_run=version.made.base_run,
            golden_id=golden.golden_id,
        )
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/error:")
        return
    cost = plain(price_words(asked.cost))
    st.caption(
        f"At most {asked.calls:,} scores on {asked.n_calibration:,} calibration and {asked.n_held_out:,} held-out items"
        f"{cost}; what was asked before is not paid again. This is one more look at the held-out items."
    )


def _offer(page: Opened, golden: GoldenSummary, aspect: str, version: JudgeVersion) -> None:
    people.button(
        page,
        "reviewer",
        "Measure it",
        type="primary",
        icon=":material/play_arrow:",
        key=state.widget(f"report_measure_{version.number}"),
        on_click=_measure,
        args=(page, golden, aspect, version),
    )


def _measure(page: Opened, golden: GoldenSummary, aspect: str, version: JudgeVersion) -> None:
    judge_view.measure(page, judge_view.line_of(page, aspect), version, golden.golden_id)
    state.put_in_url(run=None)


def _going_on(page: Opened, golden: GoldenSummary, aspect: str) -> Run | None:
    wanted = "calibration", golden.golden_id, aspect
    for run in projects.list_runs(page.store, page.project.project_id):
        if (run.kind, run.golden_id, run.aspect) == wanted and not run.finished:
            return run
    return None
