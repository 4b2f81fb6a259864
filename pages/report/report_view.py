"""The report on screen: the finding with its chart, who signed it off, the files of it; the rest part by part."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

import streamlit as st

from core import projects
from core.project_records import GoldenSummary, Run
from core.projects.more_verdicts import SentVerdicts
from core.report import plots
from core.report.facts import Report
from core.report.findings import better_system, brings, headline, limits, sign_off
from core.report.page import appendix_page, html_page, markdown_page
from core.report.rows import figures_csv
from pages.compare import more_verdicts
from pages.report import report_judge
from pages.ui import charts
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

PARTS = {"report": "Report", "appendix": "Appendix"}
_APPENDIX_HEIGHT = 1_000


@dataclass(frozen=True)
class Files:
    """The report as it is handed out: one page and its appendix as HTML, both as Markdown, and the figures."""

    report: Report
    html: str
    markdown: str
    appendix: str
    appendix_markdown: str
    csv: str


def draw_finding(files: Files, aspect: str) -> None:
    """The result in a sentence, the report to download, and what the result rests on."""
    head = headline(files.report)
    finding(head.claim, step=lambda: _download("Download the report", files.html, aspect, "report", "html", first=True))
    if head.basis:
        st.caption(plain(head.basis))
    if files.report.n_more:
        st.markdown(plain(better_system(files.report)))


def draw(page: Opened, files: Files, aspect: str, part: str) -> None:
    """One of `PARTS`; the appendix is the document itself, whose policy lets nothing run or load."""
    if part == "appendix":
        st.iframe(files.appendix, height=_APPENDIX_HEIGHT, alt="Appendix of the report")
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        _draw_chart(files.report)
        _draw_files(page, files, aspect)
    with right:
        _draw_sign_off(page, files.report)
    _draw_limits(files.report)


def kept_files(page: Opened, golden: GoldenSummary, aspect: str, run: Run) -> Files:
    """The report of a run, gathered anew only where something of the project has changed."""
    store, project_id = page.store, page.project.project_id
    judges = projects.list_judges(store, project_id, golden.golden_id, aspect)
    more = more_verdicts.kept(more_verdicts.Place(golden.golden_id, aspect, run.run_id))
    key = (
        run.run_id,
        None if more is None else more.file_id,
        page.project.name,
        projects.log_page(store, project_id, limit=1).n,
        tuple((past.run_id, past.status) for past in projects.list_runs(store, project_id)),
        tuple((judge.judge_id, judge.name) for judge in judges),
    )
    return _gathered(key, page, golden.golden_id, aspect, run.run_id, None if more is None else more.sent)


@st.cache_resource(max_entries=8, show_spinner="Gathering the report …")
def _gathered(
    key: Hashable, _page: Opened, golden_id: str, aspect: str, run_id: str, _verdicts: SentVerdicts | None
) -> Files:
    report = projects.report(_page.store, _page.project.project_id, golden_id, aspect, run_id, more=_verdicts)
    page, appendix = html_page(report), appendix_page(report)
    return Files(report, page, markdown_page(page), appendix, markdown_page(appendix), figures_csv(report))


def file_name(what: str, aspect: str, ending: str) -> str:
    """``"report-coherence.html"``: letters and digits only, whatever the aspect is called."""
    return f"{what}-" + ("-".join(re.findall(r"[a-z0-9]+", aspect.lower()))[:40] or "judge") + f".{ending}"


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_chart(report: Report) -> None:
    charts.place(plots.sides_plot(report), key="report_sides", alt="Held-out beside calibration")
    like = " Small dots: the judge against the other raters, as the band is." if report.raters.beside else ""
    st.caption(f"Filled: held-out. Hollow: the items that chose the judge (optimistic). Lines: 95 % intervals.{like}")


def _draw_sign_off(page: Opened, report: Report) -> None:
    """Who signed the version off, or the way to do so; what it brings over no criteria."""
    version = report.version
    st.markdown(plain(sign_off(report)))
    if version is not None and not version.in_force and version.measured:
        where = {"golden": report.golden.golden_id, "aspect": report.aspect, "version": str(version.number)}
        link_to("overview", "Sign it off", icon=":material/verified:", **where)
    st.markdown(plain(brings(report)))


def _draw_files(page: Opened, files: Files, aspect: str) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        report_judge.draw_download(page, files.report.run.run_id)
        _download("Appendix", files.appendix, aspect, "appendix", "html")
        with st.popover("More files"):
            _download("Report for a wiki", files.markdown, aspect, "report", "md")
            _download("Appendix for a wiki", files.appendix_markdown, aspect, "appendix", "md")
            _download("Every figure", files.csv, aspect, "figures", "csv")
    st.caption("Report and appendix open without a network, hold no script, and print on A4.")


_MIME = {"html": "text/html", "md": "text/markdown", "csv": "text/csv"}


def _download(label: str, text: str, aspect: str, what: str, ending: str, *, first: bool = False) -> None:
    st.download_button(
        label,
        data=text,
        file_name=file_name(what, aspect, ending),
        mime=_MIME[ending],
        icon=":material/download:",
        type="primary" if first else "secondary",
        on_click="ignore",
    )


def _draw_limits(report: Report) -> None:
    st.subheader("What to keep in mind", anchor=False)
    known_limits = limits(report)
    if not known_limits:
        st.markdown("Nothing is known against this result beyond what its intervals say.")
    st.markdown("\n".join(f"- **{plain(limit.title)}.** {plain(limit.text)}" for limit in known_limits))
    with st.expander("The tests behind the finding"):
        st.markdown("\n".join(f"- {plain(detail)}" for detail in headline(report).details))
