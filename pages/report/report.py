"""Draw the report: its version, the finding with its chart, the approval, and the download buttons."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import streamlit as st

from core import projects
from core.comparison import unique_names
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.calibration import VersionRequest
from core.projects.judge_line import JudgeVersion
from core.projects.reports import MeasuredJudge
from core.report.headline import gained, headline, headline_notes, limits, sign_off
from core.report.page import appendix_page, figures_csv, html_page, sides_plot
from core.report.report_facts import Report
from core.wording import in_short, price_words
from pages.overview import judge_view
from pages.report import export
from pages.ui import charts, people, state
from pages.ui.chosen import choose_in_url, distinct
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

_MIME = {"html": "text/html", "csv": "text/csv"}


# ── version ──────────────────────────────────────────────────────────────────────────────────────────────────


def choose(page: Opened, judges: Sequence[MeasuredJudge]) -> MeasuredJudge | None:
    """Return the version in the URL, by run or by number, else the current one; None if there is no version."""
    if not judges:
        return None
    run_id, number = state.url_id("run"), state.url_id("version")
    named = None if run_id is None else judge_view.line_of(page, judges[0].run.aspect).of_run(run_id)
    of_version = [judge for judge in judges if judge.version is not None]
    linked = [
        *(judge for judge in judges if judge.run.run_id == run_id),
        *(judge for judge in of_version if judge.version == named),
        *(judge for judge in of_version if judge.version and str(judge.version.number) == number),
        *judges,
    ]
    by_run = {judge.run.run_id: judge for judge in judges}
    words = distinct({run_id: judge.words for run_id, judge in by_run.items()})
    with nullcontext() if page.head is None else page.head:
        return by_run[choose_in_url("Judge", "run", linked[0].run.run_id, words, width=240)]


def draw_none(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Explain why there is no report, and how to get one: measure the current version, or calibrate."""
    version, where = judge_view.line_of(page, aspect).default, {"golden": golden.golden_id, "aspect": aspect}
    if version is not None:
        words = f"{version.name.capitalize()} hasn't been measured on this golden set"
        draw_measuring(page, golden, version, words)
        return
    about = "calibration", golden.golden_id, aspect
    runs = page.store.runs.all(page.project.project_id)
    going = [run.run_id for run in runs if (run.kind, run.golden_id, run.aspect) == about and not run.finished]
    if going:
        finding(
            f"A calibration for {aspect} is running. Its report appears here when the run is finished",
            step=lambda: link_to("calibrate", "Watch it", icon=":material/visibility:", run=going[0]),
        )
        return
    finding(
        f"There is no judge for {aspect} yet, because no calibration on this golden set has finished",
        step=lambda: link_to("calibrate", "Start a calibration", icon=":material/tune:", **where),
    )
    judges = page.store.judges.all(page.project.project_id, golden.golden_id, aspect)
    if judges:
        names = in_short(unique_names([entry.judge for entry in judges]))
        st.caption(plain(f"Only judges calibrated in this project have a report. For {names}, see the Compare page."))
        link_to("compare", "Compare with the raters", icon=":material/leaderboard:", **where)


def draw_measuring(page: Opened, golden: GoldenSummary, version: JudgeVersion | None, words: str) -> None:
    """Draw `words` about a version that isn't measured, and the button that measures it, with the cost."""
    if version is None:
        finding(words)
        return
    project_id, aspect = page.project.project_id, version.aspect
    run = projects.version_run(page.store, project_id, aspect, version.number)
    if run is not None and not run.finished and run.golden_id == golden.golden_id:
        finding(
            f"Concord is measuring {version.name}",
            step=lambda: link_to("runs", "Watch it", icon=":material/visibility:", run=run.run_id),
        )
        return

    def measure() -> None:
        judge_view.measure(page, judge_view.line_of(page, aspect), version, golden.golden_id)
        state.put_in_url(run=None)

    def offer() -> None:
        people.button(
            page,
            "reviewer",
            "Measure it",
            type="primary",
            icon=":material/play_arrow:",
            key=state.widget(f"report_measure_{version.number}"),
            on_click=measure,
        )

    finding(words, step=offer)
    try:
        made = version.made
        request = VersionRequest(
            project_id, aspect, made.criteria_ids, golden.golden_id, made.base_run, judge_spec=made.judge_spec
        )
        asked = projects.estimate_version(page.store, page.settings, request)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/error:")
        return
    st.caption(
        f"Concord requests at most {asked.calls:,} scores{plain(price_words(asked.cost))}. Cached replies cost "
        "nothing. This uses the held-out items once more."
    )


# ── the report ───────────────────────────────────────────────────────────────────────────────────────────────


def draw_finding(report: Report) -> None:
    """Draw the result in a sentence, the figures behind it, and a button to download the report."""
    head = headline(report)
    finding(head.headline, step=lambda: _download("Download the report", html_page, report, "report.html", first=True))
    st.caption(plain(head.detail))


def draw(page: Opened, report: Report) -> None:
    """Draw the chart, the approval, and the gain over the baseline."""
    version = report.version
    left, right = st.columns([2, 1], gap="large")
    with left:
        charts.place(sides_plot(report), key="report_sides", alt="Agreement on held-out items")
        st.caption("Held-out items, 95 % intervals.")
        st.markdown(plain(sign_off(report)))
    with right:
        said = gained(report)
        st.markdown(f"**{plain(said.headline)}**")
        st.caption(plain(" ".join(filter(None, (said.detail, said.next_step)))))
        if version is not None and not version.in_force and version.measured:
            where = {"golden": report.golden.golden_id, "aspect": report.aspect, "version": str(version.number)}
            link_to("overview", "Approve it", icon=":material/verified:", **where)
        export.draw_download(page, report.run.run_id)


def draw_evidence(report: Report) -> None:
    """Draw the cautions, the tests behind the finding, and buttons to download the figures."""
    st.subheader("Limitations", anchor=False)
    known = [f"- **{plain(limit.headline)}.** {plain(limit.detail)}" for limit in limits(report)]
    st.markdown("\n".join(known) or "There are no limitations apart from the width of the intervals.")
    st.subheader("The tests behind the finding", anchor=False)
    st.markdown("\n".join(f"- {plain(detail)}" for detail in headline_notes(report)))
    with st.container(horizontal=True, gap="small"):
        _download("Appendix", appendix_page, report, "appendix.html")
        _download("Figures as CSV", figures_csv, report, "figures.csv")


def _download(label: str, make: Callable[[Report], str], report: Report, name: str, *, first: bool = False) -> None:
    """Draw a download button for the text that `make` returns, for example `report-coherence.html`."""
    what, ending = name.split(".")
    aspect = "-".join(re.findall(r"[a-z0-9]+", report.aspect.lower()))[:40] or "judge"
    st.download_button(
        label,
        data=lambda: make(report),
        file_name=f"{what}-{aspect}.{ending}",
        mime=_MIME[ending],
        icon=":material/download:",
        type="primary" if first else "secondary",
        on_click="ignore",
    )
