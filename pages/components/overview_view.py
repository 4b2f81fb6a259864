"""The parts of Overview: the finding, the stages, what waits, all aspects, and how an empty project begins."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.overview import Overview, StageName, Task, Waiting
from core.records import Alignment, Measure
from core.report.figures import describe
from core.review.judge_versions import JudgeVersion
from pages.components import judge_view, people, state, tables
from pages.components.page import Opened, finding, link_to
from pages.components.screens import Screen, plain

PLACES: dict[StageName, Screen] = {
    "golden set": "golden_set",
    "labels": "label",
    "calibration": "calibrate",
    "review": "criteria",
    "approved": "compare",
    "in use": "report",
}
TASKS: dict[Task, tuple[Screen, str, str]] = {
    "label": ("label", "Go on labelling", "labelling"),
    "sign off": ("overview", "Look and sign off", "version"),
    "measure": ("overview", "Measure it", "version"),
    "decide": ("misaligned", "Decide", "round"),
    "meet": ("criteria", "Join the meeting", "meeting"),
    "comment": ("criteria", "Read them", ""),
    "triage": ("misaligned", "Look at them", ""),
    "grow": ("overview", "", ""),
}
"""Task → screen, words, and what its subject is called in the URL."""


def sentence(page: Opened, now: Overview) -> str:
    """The judge in use beside the human ceiling, or how far the project has come."""
    version = now.line.default
    if version is None or version.newest is None:
        return f"No judge of {now.aspect} yet: {now.golden.name} has {now.stages[1].figure or 'no labels'}."
    words = judge_view.finding_of(version)
    people_at = _ceiling(now.golden.golden_id, now.aspect, version.newest.evidence.alignment.measure, page)
    return f"{words}." if people_at is None else f"{words}, one person with the others at {describe(people_at)}."


@st.cache_resource(max_entries=32, show_spinner=False)
def _ceiling(golden_id: str, aspect: str, measure: Measure, _page: Opened) -> Alignment | None:
    from core.api.measures import ceiling

    try:
        golden = projects.load_golden_set(_page.store, golden_id)
        return ceiling(golden, aspect, statistic=measure.statistic, level=measure.level).leave_one_out.alignment
    except ConcordError:
        return None


def draw_stages(now: Overview) -> None:
    """The way from the golden set to a judge in use, a place a stage."""
    at = {"golden": now.golden.golden_id, "aspect": now.aspect}
    for column, stage in zip(st.columns(len(now.stages), gap="small"), now.stages, strict=True):
        with column, st.container(border=True, height=104, gap="small"):
            icon = ":material/check_circle:" if stage.done else ":material/radio_button_unchecked:"
            link_to(PLACES[stage.name], stage.name.capitalize(), icon=icon, **at)
            st.caption(plain(stage.figure or "not yet"))


def draw_next(page: Opened, now: Overview) -> None:
    """The one next action."""
    at = {"golden": now.golden.golden_id, "aspect": now.aspect}
    if now.waiting and now.waiting[0].task in ("sign off", "measure"):
        return  # its buttons are in view
    if now.waiting and now.waiting[0].task != "triage":
        _draw_way(page, now, now.waiting[0], place="head")
    elif now.line.default is None:
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", **at)
    elif now.line.current is not None:
        link_to("report", "Take the judge away", icon=":material/download:", section="judge", **at)
    else:
        link_to("misaligned", "See where they differ", icon=":material/difference:", **at)


def draw_waiting(page: Opened, now: Overview, shown: JudgeVersion | None) -> None:
    """What waits for whoever looks, each with the way there; version `shown` is in view beside it."""
    st.subheader("Waits for you", anchor=False)
    if not now.waiting:
        st.caption("Nothing. Edit criteria, look at misaligned items, or label more to make the judge better.")
    for waiting in now.waiting:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", border=True):
            words = waiting.words if waiting.n == 1 else f"{waiting.n:,} {waiting.words}"
            st.markdown(plain(words[:1].upper() + words[1:]), width="stretch")
            in_view = waiting.task in ("sign off", "measure") and shown and waiting.subject == str(shown.number)
            if not in_view:
                _draw_way(page, now, waiting, place="list")


def _draw_way(page: Opened, now: Overview, waiting: Waiting, *, place: str) -> None:
    at = {"golden": now.golden.golden_id, "aspect": now.aspect}
    if waiting.task == "grow":
        version = now.line.get(int(waiting.subject))
        st.button(
            "Measure it here",
            icon=":material/play_arrow:",
            key=state.widget(f"grow_{place}"),
            on_click=judge_view.measure,
            args=(page, now.line, version, now.golden.golden_id),
            **people.gate(page, "reviewer"),
        )
        return
    screen, words, name = TASKS[waiting.task]
    ids = at | ({name: waiting.subject} if name and waiting.subject else {})
    link_to(screen, words, icon=":material/arrow_forward:", **ids)


def draw_aspects(page: Opened, golden: GoldenSummary) -> None:
    """The judge of every aspect of the golden set, a row each."""
    lines = projects.judge_lines(page.store, page.project.project_id)
    rows = []
    for aspect in golden.aspects:
        line = lines.get(aspect.aspect)
        version = None if line is None else line.default
        evidence = None if version is None or version.newest is None else version.newest.evidence
        rows.append(
            {
                "aspect": aspect.aspect,
                "labelled": aspect.n_labelled,
                "judge": "—" if version is None else f"version {version.number}",
                "state": "—" if version is None else judge_view.WORDS[version.state],
                "agreement": "—" if evidence is None else describe(evidence.alignment),
                "on": "—" if evidence is None else evidence.side,
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, height=tables.height_for(len(rows)))


def draw_beginning(page: Opened) -> None:
    """An empty project: the ways to begin."""
    finding("A judge begins with texts that people have rated.")
    ways: tuple[tuple[str, str, str], ...] = (
        ("Your own data", "A table of texts with human labels: CSV, JSON lines, Parquet, Excel.", "Bring in a file"),
        ("Label texts first", "Texts without labels: bring them in and label them by keys.", "Bring in texts"),
        ("Look around first", "In the demo project all is done once, from labels to a judge in use.", ""),
    )
    for column, (title, words, label) in zip(st.columns(3, gap="medium"), ways, strict=True):
        with column, st.container(border=True, height=190):
            st.subheader(title, anchor=False)
            st.markdown(words)
            if label:
                link_to("golden_set", label, icon=":material/upload_file:", section=state.UPLOAD_SECTION)
            else:
                st.caption("Choose it under Project in the menu.")
