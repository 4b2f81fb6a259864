"""The report on screen, in short: the result to read aloud, what limits it, plots, criteria; and the files of it."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core import projects
from core.project_records import GoldenSummary, Run
from core.report import plots
from core.report.facts import Report
from core.report.findings import headline, limits
from core.report.page import html_page, markdown_page
from core.report.rows import figures_csv
from core.report.words import (
    ORIGIN_WORDS,
    basis_words,
    bounded,
    counted,
    day,
    duration,
    estimate,
    measure,
    money,
    number,
    p_words,
    range_words,
    signed,
    signed_range,
)
from pages.components import charts, state
from pages.components.chosen import choose_in_url
from pages.components.page import Opened, link_to
from pages.components.screens import plain

_LONGEST_CRITERIA, _NAME = 20_000, 120


@dataclass(frozen=True)
class Files:
    """The report as it is handed out."""

    report: Report
    html: str
    markdown: str
    csv: str


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """The report on the newest calibration, or the one chosen; without any, what to do first."""
    run = choose_run(page, golden, aspect)
    if run is None:
        return
    files = kept_files(page, golden, aspect, run)
    _draw_result(files)
    _draw_files(files, aspect)
    _draw_limits(files.report)
    _draw_agreement(files.report)
    _draw_criteria(files.report)
    _draw_history(files.report)
    _draw_costs(files.report)


def choose_run(page: Opened, golden: GoldenSummary, aspect: str) -> Run | None:
    """The calibration in the URL, else the newest; None, with what to do, where none has come to a result."""
    runs = {
        run.run_id: run
        for run in projects.calibrations_of(page.store, page.project.project_id, golden.golden_id, aspect)
    }
    if not runs:
        _draw_empty(page, golden, aspect)
        return None
    if len(runs) == 1:
        return next(iter(runs.values()))
    linked = state.url_id("run")
    wanted = linked if linked in runs else next(iter(runs))
    words = {run.run_id: f"{run.judge_spec}, {run.created_at.astimezone():%d %b %Y %H:%M:%S}" for run in runs.values()}
    return runs[choose_in_url("Calibration", "run", wanted, words)]


def _draw_empty(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    going = [
        run
        for run in projects.list_runs(page.store, page.project.project_id)
        if (run.kind, run.golden_id, run.aspect) == ("calibration", golden.golden_id, aspect) and not run.finished
    ]
    st.info(
        f"A calibration of {plain(aspect)} is going on; its report stands here as soon as it is done."
        if going
        else f"No calibration of {plain(aspect)} on this golden set has come to a result, so there is no judge to "
        "report on. Run one; a few minutes later its report stands here.",
        icon=":material/summarize:",
    )
    if going:
        link_to("calibrate", "Watch it", icon=":material/visibility:", run=going[0].run_id)
    else:
        link_to("calibrate", "Start a calibration", icon=":material/tune:", golden=golden.golden_id, aspect=aspect)


def kept_files(page: Opened, golden: GoldenSummary, aspect: str, run: Run) -> Files:
    """The report of a run, gathered anew only where something of the project has changed."""
    store, project_id = page.store, page.project.project_id
    judges = projects.list_judges(store, project_id, golden.golden_id, aspect)
    key = (
        run.run_id,
        page.project.name,
        projects.log_page(store, project_id, limit=1).n,
        tuple((past.run_id, past.status) for past in projects.list_runs(store, project_id)),
        tuple((judge.judge_id, judge.name) for judge in judges),
    )
    return _gathered(key, page, golden.golden_id, aspect, run.run_id)


@st.cache_resource(max_entries=8, show_spinner="Gathering the report …")
def _gathered(key: Hashable, _page: Opened, golden_id: str, aspect: str, run_id: str) -> Files:
    report = projects.report(_page.store, _page.project.project_id, golden_id, aspect, run_id)
    page = html_page(report)
    return Files(report, page, markdown_page(page), figures_csv(report))


def file_stem(aspect: str) -> str:
    """``"report-coherence"``: letters and digits only, whatever the aspect is called."""
    return "report-" + ("-".join(re.findall(r"[a-z0-9]+", aspect.lower()))[:40] or "judge")


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_result(files: Files) -> None:
    report = files.report
    head, held, beside = headline(report), report.held_out, report.raters.beside
    box = st.warning if head.weak else st.success
    box(f"#### {plain(head.sentence)}", icon=":material/record_voice_over:")
    st.markdown("\n".join(f"- {plain(detail)}" for detail in head.details))
    columns = st.columns(4, gap="medium")
    approved = sum(version.state == "approved" for version in report.history.chosen)
    figures = (
        ("Judge and people, held-out", number(held.value), f"{range_words(held.interval)}, {basis_words(held)}"),
        (
            "Judge minus one rater",
            signed(None if beside is None else beside.difference),
            "not known: single ratings are missing"
            if beside is None
            else f"{signed_range(beside.interval)}, each against the other raters",
        ),
        ("Labels", f"{report.labels.n:,}", f"{report.n_held_out:,} held out"),
        (
            "Criteria approved",
            f"{approved} of {len(report.history.chosen)}",
            f"held-out opened {counted(len(report.openings), 'time')}",
        ),
    )
    for column, (name, value, more) in zip(columns, figures, strict=True):
        column.metric(name, value)
        column.caption(plain(more))


def _draw_files(files: Files, aspect: str) -> None:
    stem = file_stem(aspect)
    offered = (
        ("Report as one page (HTML)", files.html, "html", "text/html", "primary"),
        ("For a wiki (Markdown)", files.markdown, "md", "text/markdown", "secondary"),
        ("Every figure (CSV)", files.csv, "csv", "text/csv", "secondary"),
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, text, ending, mime, kind in offered:
            st.download_button(
                label,
                data=text,
                file_name=f"{stem}.{ending}",
                mime=mime,
                icon=":material/download:",
                type="primary" if kind == "primary" else "secondary",
                on_click="ignore",
            )
        st.caption("The page opens without a network, holds no script, and prints on A4.", width="content")


def _draw_limits(report: Report) -> None:
    known_limits = limits(report)
    st.subheader("What to keep in mind", anchor=False)
    if not known_limits:
        st.markdown("Nothing is known against this result beyond what its intervals say.")
    st.markdown("\n".join(f"- **{plain(limit.title)}.** {plain(limit.text)}" for limit in known_limits))


def _draw_agreement(report: Report) -> None:
    st.subheader("How well it agrees", anchor=False)
    st.markdown("**Held-out beside calibration**")
    charts.place(plots.sides_plot(report), key="report_sides", alt="Held-out beside calibration")
    like = " Small dots: the judge against the other raters, as the band is." if report.raters.beside else ""
    st.caption(f"Filled: held-out. Hollow: the items that chose the judge, which flatter. Lines: 95 % intervals.{like}")
    st.markdown("**Beside every other judge**, on items that none has seen")
    if report.judges.board.problem:
        st.warning(plain(report.judges.board.problem), icon=":material/rule:")
    else:
        charts.place(plots.judges_plot(report), key="report_judges", alt="Every judge on unseen items")
        st.caption(f"{measure(report.held_out)}, {counted(report.judges.board.pool.n_common, 'item')}.")
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
    st.dataframe(pd.DataFrame(sides), hide_index=True)
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
                "p (Holm)": p_words(p),
            }
        )
    st.dataframe(pd.DataFrame(judges), hide_index=True)


def _draw_criteria(report: Report) -> None:
    st.subheader("The criteria in full", anchor=False)
    for version in report.history.chosen:
        by = f" by {version.criteria.author}" if version.criteria.author else ""
        approval = version.approval
        signed = (
            f"approved by {approval.actor or 'somebody'} on {day(approval.at)}: {approval.reason}"
            if approval
            else f"{version.state}, nobody has approved it"
        )
        with st.container(border=True):
            st.caption(
                plain(bounded(f"{version.criteria_id}, {ORIGIN_WORDS[version.criteria.origin]}{by}; {signed}", 600))
            )
            st.text(bounded(version.criteria.text, _LONGEST_CRITERIA))
    if not report.history.chosen:
        st.markdown("The judge holds no criteria: it knows the name of the aspect alone.")


def _draw_history(report: Report) -> None:
    history, apart = report.history, report.misaligned
    origins = ", ".join(f"{n:,} {ORIGIN_WORDS[origin]}" for origin, n in history.made.items())
    points = [point for meeting in history.meetings for point in meeting.points]
    lines = [
        f"Versions: {origins or 'none'}.",
        f"Meetings: {len(history.meetings)}, with {sum(point.decision is not None for point in points)} of "
        f"{counted(len(points), 'point')} decided. Refinement rounds that people asked for: {len(history.rounds)}.",
        f"Misaligned: {apart.n_apart:,} of {counted(apart.n_scored, 'calibration item')}; people looked at "
        f"{sum(apart.by_verdict.values())}"
        + "".join(f", {verdict}: {n}" for verdict, n in apart.by_verdict.items())
        + ".",
    ]
    st.subheader("How it came about", anchor=False)
    st.markdown("\n".join(f"- {plain(line)}" for line in lines))


def _draw_costs(report: Report) -> None:
    again = report.reproduce
    with st.expander("What it cost, and how to get the same again"):
        st.dataframe(
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
            hide_index=True,
        )
        st.code(again.command, language="bash", wrap_lines=True)
        st.text(f"Golden set: {report.golden.golden_id}\nJudge: {again.judge_digest}")
