"""Parts of the Overview screen: the finding, the stages, the to-do list, and the start of an empty project."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.findings import Finding
from core.findings.system_quality import pair_finding
from core.projects.judge_line import JudgeVersion
from core.projects.overview import Overview, StageName, ToDo, Waiting
from core.report.figures.chart import HALF
from core.report.figures.svg import shortened
from core.report.figures.whiskers import standing_figure
from core.report.headline import basis_words, measure, readiness, steady
from core.report.report_facts import Report
from core.wording import counted, number
from pages.overview import judge_view
from pages.ui import charts, people, state
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import Screen, plain

PLACES: dict[StageName, Screen] = {
    "golden set": "golden_set",
    "labels": "label",
    "calibration": "calibrate",
    "review": "criteria",
    "version": "report",
}
TASKS: dict[ToDo, tuple[Screen, str, str]] = {
    "label": ("label", "Continue labelling", "labelling"),
    "sign off": ("overview", "Review and approve", "version"),
    "decide": ("criteria", "Open the review", ""),
    "vote": ("criteria", "Open the review", ""),
    "use": ("compare", "Compare it", ""),
    "triage": ("misaligned", "Review the items", ""),
    "grow": ("overview", "", ""),
}
"""Task → screen, words, and what its subject is called in the URL."""
LONGEST = 60
"""Letters of a name within a sentence."""


def report_of(page: Opened, now: Overview) -> Report | None:
    """Return the report on the current judge; None if there is no judge, or no held-out measurement of the judge."""
    version = now.line.default
    measured = None if version is None else version.newest
    if version is None or measured is None or measured.held_out is None:
        return None
    return judge_view.report_of(page, measured.golden_id, version.aspect, measured.run_id)


def finding_of(now: Overview, report: Report | None) -> Finding:
    """Return the verdict on the judge, or the project's progress if there is no verdict yet."""
    if report is not None:
        return readiness(report)
    version, name = now.line.default, shortened(now.golden.name, LONGEST)
    aspect = shortened(now.line.aspect, 2 * LONGEST)
    if version is not None and version.newest is not None:
        figure = f"{judge_view.finding_of(version)}. {judge_view.measured_on(version)}."
        return Finding(f"Not yet: version {version.number} hasn't been measured on held-out items.", figure)
    if not now.line.aspect:
        return Finding(
            f"{name} has {counted(now.golden.n_items, 'item')} but no labels yet. Concord measures a judge by its "
            "agreement with raters."
        )
    if now.calibrating is not None:
        return Finding(f"A calibration for {aspect} is running. It will propose the first version of the judge.")
    if now.stages["calibration"][0]:
        return Finding(
            f"There is no judge for {aspect} yet, but a calibration has finished. You can turn its criteria into a "
            "judge."
        )
    return Finding(f"There is no judge for {aspect} yet: {name} has {now.stages['labels'][1]} items.")


def draw_agreement(now: Overview, report: Report) -> None:
    """Draw the judge's agreement with raters, the agreement between raters, and a chart with the baseline."""
    held, raters = report.held_out, report.raters.ceiling
    judge, others = st.columns(2)
    judge.metric("Agreement with raters", number(held.value))
    others.metric("Agreement between raters", number(raters.value))
    # the reason is too long for a row, so it is drawn below
    baseline = report.calibration.no_criteria.held_out
    rows = {"raters": replace(raters, reason=""), report.judge_name: held, "baseline": baseline}
    drawn = standing_figure(rows, measure=measure(held), width=HALF)
    charts.place(drawn, key="standing", alt="Agreement of the judge, compared with the raters and the baseline")
    st.caption(plain(f"Held-out: {basis_words(held)}, 95 % intervals. {steady(report)}"))
    if raters.value is None:
        st.caption(plain(raters.reason))
    link_to("compare", "Try another model", icon=":material/swap_horiz:", section="errors", what="probes", **_at(now))


def draw_systems(now: Overview, report: Report) -> None:
    """Draw two boxes to choose systems, and show whether the first is better than the second."""
    means = report.means
    names = [system.name for system in means.corrected]
    if len(names) < 2 or not means.differences:
        return
    st.subheader("Is one system better than another?", anchor=False)
    left, right = st.columns(2)
    first = left.selectbox("System", names, key=state.widget("system_first"))
    names.remove(first)
    second = right.selectbox("compared with", names, len(names) - 1, key=state.widget("system_second"))
    said = pair_finding(means, report.aspect, first, second)
    st.markdown(f"**{plain(said.headline)}**")
    st.caption(plain(said.detail))
    link_to("compare", "See all systems", icon=":material/leaderboard:", section="systems", **_at(now))


def draw_stages(now: Overview) -> None:
    """Draw the steps from the golden set to the current judge, in one line."""
    with st.container(key="stages"):
        for place, (name, (done, figure)) in enumerate(now.stages.items()):
            with st.container(key=f"stage_{'done' if done else 'open'}_{place}", gap=None):
                icon = ":material/check_circle:" if done else ":material/radio_button_unchecked:"
                section = {"section": "review"} if name == "review" else {}
                link_to(PLACES[name], name.capitalize(), icon=icon, **_at(now), **section)
                st.caption(plain(figure or "not yet"))


def draw_next(page: Opened, now: Overview, shown: JudgeVersion | None) -> None:
    """Draw a link to the next step.

    There is no link if the step is to approve version `shown`, because the version is already in view.
    """
    at, first = _at(now), now.waiting[0] if now.waiting else None
    if first is not None and first.task != "triage":
        if not _in_view(first, shown):
            _draw_way(page, now, first, place="head")
    elif not now.line.aspect:
        link_to("label", "Have raters label these items", icon=":material/edit_note:", **at)
    elif now.line.current is not None:
        link_to("report", "Export the judge", icon=":material/download:", section="export", **at)
    elif now.line.default is not None:
        link_to("misaligned", "See where the judge and raters disagree", icon=":material/difference:", **at)
    elif now.calibrating is not None:
        link_to("calibrate", "Watch it", icon=":material/tune:", run=now.calibrating.run_id)
    elif now.stages["calibration"][0]:
        link_to("criteria", "Choose criteria", icon=":material/rule:", **at)
    else:
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", **at)


def draw_to_do(page: Opened, now: Overview, shown: JudgeVersion | None) -> None:
    """Draw the user's to-do list, with a link to each task.

    A task to approve version `shown` has no link, because the version is already in view.
    """
    st.subheader("To do", anchor=False)
    if not now.waiting:
        st.caption(
            "Nothing to do. To improve the judge, edit its criteria, review misaligned items, or label more items."
        )
    for waiting in now.waiting:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
            st.markdown(plain(waiting.words[:1].upper() + waiting.words[1:]), width="stretch")
            if not _in_view(waiting, shown):
                _draw_way(page, now, waiting, place="list")


def _in_view(waiting: Waiting, shown: JudgeVersion | None) -> bool:
    return waiting.task == "sign off" and shown is not None and waiting.subject == str(shown.number)


def _at(now: Overview) -> dict[str, str]:
    return {"golden": now.golden.golden_id} | ({"aspect": now.line.aspect} if now.line.aspect else {})


def _draw_way(page: Opened, now: Overview, waiting: Waiting, *, place: str) -> None:
    at = _at(now)
    if waiting.task == "grow":
        version = now.line.get(int(waiting.subject))
        people.button(
            page,
            "reviewer",
            "Measure on this golden set",
            icon=":material/play_arrow:",
            key=state.widget(f"grow_{place}"),
            on_click=judge_view.measure,
            args=(page, now.line, version, now.golden.golden_id),
        )
        return
    screen, words, name = TASKS[waiting.task]
    ids = at | ({name: waiting.subject} if name else {}) | ({"section": "review"} if screen == "criteria" else {})
    link_to(screen, words, icon=":material/arrow_forward:", key=place, **ids)


def draw_start_options(page: Opened) -> None:
    """Draw three ways to start with an empty project, one button each."""
    from pages.golden import golden_upload

    finding("Start with a file of texts.")
    with st.container(key="ways"):
        with st.container(border=True, height="stretch"):
            st.markdown(
                "**Your own data.** Upload a table of texts. If it has no human labels, you can add them in Concord."
            )
            icon = ":material/upload_file:"
            link_to("golden_set", "Upload a file", icon=icon, section=state.UPLOAD_SECTION)
        with st.container(border=True, height="stretch"):
            golden_upload.offer_sample(page)
        with st.container(border=True, height="stretch"):
            golden_upload.offer_demo(page)
