"""`monitor`: a judge at work on what systems write in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.cli.options import JsonFlag, JudgeFileOptions, MapOption, with_options
from core.cli.output import notes, stages_shown, tell
from core.wording import counted

if TYPE_CHECKING:
    from core.report.monitoring import Monitored

commands = typer.Typer(add_completion=False)

SHOWN = 8


@commands.command(rich_help_panel="Judge")
@with_options
def monitor(
    traffic: Annotated[
        list[Path],
        typer.Argument(help="What systems wrote: tables (CSV, JSON, JSONL, Parquet), some rows with labels."),
    ],
    judge_file: Annotated[Path, typer.Option("--judge-file", help="A judge.yaml, fused.yaml or repeval.yaml.")],
    out: Annotated[Path, typer.Option(help="Folder of its own: page, table, and the verdicts, kept between calls.")],
    *,
    by: Annotated[Literal["day", "week", "version"], typer.Option(help="What is compared.")] = "day",
    anchors: Annotated[
        Path | None,
        typer.Option(help="Golden set that is scored anew at each call: tells whether the judge itself moved."),
    ] = None,
    opened: JudgeFileOptions,
    mapped: MapOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Test whether quality moved in production, and whether systems or judge moved. Exit code 1: it moved.

    Call it as often as you like, with all files or only the newest: no text is scored twice. The chance of any false
    alarm, ever, is 5 %. --map time=COLUMN names the column of times.
    """
    from core.report.monitoring import MonitorSettings
    from core.report.monitoring import monitor as watched

    with stages_shown("texts") as progress:
        monitored = watched(
            traffic,
            judge_file,
            out,
            MonitorSettings(by, anchors, mapped, opened.judge, opened.accept_edited),
            replies=opened.replies(judge_file),
            progress=progress,
        )
    body = monitored.as_json() | {"out": str(out)}
    tell(body, _words(monitored, out), as_json)
    if monitored.alarm:
        raise typer.Exit(1)


def _words(monitored: Monitored, out: Path) -> list[str]:
    from core.findings.over_time import monitor_finding, movement_words
    from core.wording import estimate

    periods = monitored.watched.periods
    rows = [
        f"{period.name:<12} {period.n:>7,} texts  "
        f"{'—' if period.judged is None else f'{period.judged.value:.2f}':>6}  "
        f"{'baseline' if period.in_baseline else movement_words(period.change)}"
        + ("" if period.corrected is None else f"  corrected {estimate(period.corrected)}")
        for period in periods[-SHOWN:]
    ]
    n_unread = sum(period.n_unread for period in periods)
    return [
        *monitor_finding(monitored).lines,
        *([f"The last {SHOWN} of {len(periods)}:"] if len(periods) > SHOWN else []),
        *rows,
        f"{counted(monitored.n_new, 'text')} scored now, {monitored.n_known:,} before; {n_unread:,} unread; "
        f"{monitored.n_labelled:,} with labels.",
        *(f"left out: {n:,} {why}" for why, n in monitored.left_out.items()),
        *notes(*monitored.notes),
        f"page: {out / 'monitor.html'}, table: {out / 'periods.csv'}",
    ]
