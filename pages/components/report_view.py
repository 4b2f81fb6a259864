"""The report on screen: the finding with its chart, who signed it off, the files of it; the rest part by part."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core import projects
from core.project_records import GoldenSummary, Run
from core.projects.more_verdicts import SentVerdicts
from core.report import plots
from core.report.facts import Report
from core.report.findings import better_system, brings, headline, limits, sign_off
from core.report.page import appendix_page, html_page, markdown_page
from core.report.rows import figures_csv
from core.report.words import (
    ORIGIN_WORDS,
    bounded,
    counted,
    day,
    duration,
    estimate,
    measure,
    money,
    signed,
    signed_range,
)
from core.stats.claims import p_cell
from pages.components import charts, grid, more_verdicts, report_judge
from pages.components.page import Opened, finding, link_to
from pages.components.screens import plain

PARTS = {
    "report": "Report",
    "limits": "What limits it",
    "judges": "Beside other judges",
    "criteria": "Criteria",
    "history": "History",
}
_LONGEST_CRITERIA, _NAME = 20_000, 120


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
    """One of `PARTS`."""
    report = files.report
    match part:
        case "limits":
            _draw_limits(report)
        case "judges":
            _draw_judges(report)
        case "criteria":
            _draw_criteria(report)
        case "history":
            _draw_history(report)
        case _:
            left, right = st.columns([3, 2], gap="large")
            with left:
                _draw_chart(report)
                _draw_files(page, files, aspect)
            with right:
                _draw_sign_off(page, report)


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
    known, current = limits(report), report.line.current
    if current is not None and current != version:
        st.markdown(plain(f"{current.name.capitalize()} is the current version."))
    if known:
        st.markdown(plain(f"Gravest limit: {known[0].title[:1].lower()}{known[0].title[1:]}."))


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
    known_limits = limits(report)
    if not known_limits:
        st.markdown("Nothing is known against this result beyond what its intervals say.")
    st.markdown("\n".join(f"- **{plain(limit.title)}.** {plain(limit.text)}" for limit in known_limits))
    with st.expander("The tests behind the finding"):
        st.markdown("\n".join(f"- {plain(detail)}" for detail in headline(report).details))


def _draw_judges(report: Report) -> None:
    if report.judges.board.problem:
        st.warning(plain(report.judges.board.problem), icon=":material/rule:")
    else:
        charts.place(plots.judges_plot(report), key="report_judges", alt="Every judge on unseen items")
        st.caption(
            f"{measure(report.held_out)}, {counted(report.judges.board.pool.n_common, 'item')} that no judge has seen."
        )
    with st.expander("The figures"):
        _draw_table(report)


def _draw_table(report: Report) -> None:
    sides = [
        {
            "judge": side.name,
            "held-out": estimate(side.held_out),
            "n held-out": side.held_out.n,
            "calibration": estimate(side.calibration),
            "n calibration": side.calibration.n,
        }
        for side in report.sides
    ]
    grid.draw(pd.DataFrame(sides), alt="The judge and no criteria")
    judges = []
    for k, row in enumerate(report.judges.rows):
        gap = report.judges.ours_minus(k)
        value, interval, p = (gap.value, gap.interval, gap.p) if gap else (None, None, None)
        judges.append(
            {
                "judge": bounded(row.name, _NAME),
                "kind": row.kind,
                "agreement": estimate(row.alignment),
                "ours minus it": f"{signed(value)} {signed_range(interval)}",
                "p (Holm)": p_cell(p),
            }
        )
    grid.draw(pd.DataFrame(judges), alt="All judges on held-out items")


def _draw_criteria(report: Report) -> None:
    for fact in report.history.chosen:
        by = f" by {fact.criteria.author}" if fact.criteria.author else ""
        words = f"{fact.name}: {ORIGIN_WORDS[fact.criteria.origin]}{by}, {day(fact.criteria.created_at)}"
        with st.expander(plain(bounded(words, 300)), expanded=len(report.history.chosen) == 1):
            st.text(bounded(fact.criteria.text, _LONGEST_CRITERIA))
    if not report.history.chosen:
        st.markdown("The judge holds no criteria: it knows the name of the aspect alone.")


def _draw_history(report: Report) -> None:
    history, apart = report.history, report.misaligned
    origins = ", ".join(f"{n:,} {ORIGIN_WORDS[origin]}" for origin, n in history.made.items())
    lines = [
        f"Sets of criteria: {origins or 'none'}.",
        report.search,
        *([f"Decisions in the review: {len(history.decided):,}."] if history.decided else []),
        *([f"Refinement rounds that people asked for: {len(history.rounds)}."] if history.rounds else []),
        f"Misaligned: {apart.n_apart:,} of {counted(apart.n_scored, 'calibration item')}; people looked at "
        f"{sum(apart.by_verdict.values())}"
        + "".join(f", {verdict}: {n}" for verdict, n in apart.by_verdict.items())
        + ".",
    ]
    st.markdown("\n".join(f"- {plain(line)}" for line in lines))
    _draw_costs(report)


def _draw_costs(report: Report) -> None:
    again = report.reproduce
    with st.expander("What it cost, and how to get the same again"):
        grid.draw(
            pd.DataFrame(
                [
                    {
                        "runs": line.name,
                        "calls": line.calls,
                        "tokens in": line.usage.prompt_tokens,
                        "tokens out": line.usage.completion_tokens,
                        "money": money(line.usage.cost),
                        "time": duration(line.seconds),
                    }
                    for line in report.costs
                ]
            ),
            alt="What each kind of run cost",
        )
        if report.run.kind == "version":
            st.caption("This repeats the calibration that the version goes back to; then take the version's criteria.")
        st.code(again.command, language="bash", wrap_lines=True)
        st.text(f"Golden set: {report.golden.golden_id}\nJudge: {again.judge_digest}")
