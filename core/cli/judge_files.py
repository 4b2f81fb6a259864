"""The commands about a judge file: recheck it, monitor newer texts, take it to another tool."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
    AcceptEdited,
    AspectOption,
    ForceFlag,
    GoldenFile,
    JsonFlag,
    JudgeFileOptions,
    MapOption,
    PrintOptions,
    with_options,
)
from core.cli.output import finding_lines, stages_shown, tell, written_to
from core.comparison.recheck import RecheckSettings
from core.errors import UsageError
from core.setting_fields import setting
from core.wording import counted, estimate, number, percent

if TYPE_CHECKING:
    from core.judge_files.adapters import Adapter

commands = typer.Typer(add_completion=False)
_SHOWN = 8
"""Periods that are printed."""


@dataclass(frozen=True)
class RecheckFiles:
    """What is known of the judge besides its file."""

    verdicts: Path | None = setting(None, "The judge's verdicts on these items; else it scores now.")
    before: Path | None = setting(None, "Its earlier verdicts: a paired test on the common items.")
    old: Path | None = setting(None, "The golden set it was calibrated on: compares its labels with the newer ones.")


@commands.command(rich_help_panel="Judge")
@with_options
def recheck(
    judge_file: Annotated[Path, typer.Argument(metavar="JUDGE", help="A judge.yaml, fused.yaml or repeval.yaml.")],
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    given: RecheckFiles,
    settings: RecheckSettings,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if it is inconclusive, too.")] = False,
    opened: JudgeFileOptions,
    printed: PrintOptions,
) -> None:
    """Test whether a judge still agrees with newer labels. Exit code 1: agreement fell, or no newer labels.

    Newer labels are those of texts that the judge was neither calibrated with nor evaluated on, whatever ids say.
    """
    from core.comparison.recheck import recheck as look_again
    from core.findings.over_time import recheck_details, recheck_finding
    from core.judge_files.judge_reading import kept_columns, read_card
    from core.judge_files.loaded import load_judge

    edited, old = opened.accept_edited, given.old
    kept = kept_columns(read_card(judge_file, accept_edited=edited))
    newer = golden.load(kept=kept)
    replies = None if given.verdicts is not None else opened.replies(judge_file)
    with closing(load_judge(judge_file, judge=opened.judge or None, replies=replies, accept_edited=edited)) as loaded:
        outcome = look_again(
            loaded,
            newer,
            aspect,
            settings=settings,
            verdicts=given.verdicts,
            before=given.before,
            old=None if old is None else replace(golden, golden=old, sheet=None).load(kept=kept),
        )
    said = recheck_finding(outcome)
    unread = f"{percent(outcome.unread_share, digits=1)} of the newer items unscored."
    details = [unread, *recheck_details(outcome)] if printed.verbose else []
    tell(
        outcome.as_json() | {"words": said.headline},
        finding_lines(said, details, verbose=printed.verbose),
        printed.as_json,
    )
    if outcome.decision == "fallen" or (strict and outcome.decision == "inconclusive"):
        raise typer.Exit(1)


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
        typer.Option(help="Golden set that is scored anew at each call: shows whether the judge itself moved."),
    ] = None,
    opened: JudgeFileOptions,
    mapped: MapOption = None,
    printed: PrintOptions,
) -> None:
    """Test whether quality moved in production, and whether systems or judge moved. Exit code 1: it moved.

    Call it as often as you like, with all files or only the newest: no text is scored twice. The chance of any false
    alarm, ever, is 5 %. --map time=COLUMN names the column of times.
    """
    from core.findings.over_time import monitor_finding, movement_words
    from core.report.monitoring import MonitorSettings
    from core.report.monitoring import monitor as watched

    settings = MonitorSettings(by, anchors, mapped, opened.judge, opened.accept_edited)
    with stages_shown("texts") as progress:
        monitored = watched(traffic, judge_file, out, settings, replies=opened.replies(judge_file), progress=progress)
    periods = monitored.watched.periods
    n_unread = sum(period.n_unread for period in periods)
    rows = [f"The last {_SHOWN} of {len(periods)}:" if len(periods) > _SHOWN else ""]
    for period in periods[-_SHOWN:]:
        judged = number(None if period.judged is None else period.judged.value)
        moved = "baseline" if period.in_baseline else movement_words(period.change)
        corrected = "" if period.corrected is None else f"  corrected {estimate(period.corrected)}"
        rows.append(f"{period.name:<12} {period.n:>7,} texts  {judged:>6}  {moved}{corrected}")
    rows += [
        f"{counted(monitored.n_new, 'text')} scored now, {monitored.n_known:,} before; {n_unread:,} unread; "
        f"{monitored.n_labelled:,} with labels.",
        *(f"left out: {n:,} {why}" for why, n in monitored.left_out.items()),
    ]
    lines = finding_lines(monitor_finding(monitored), rows, monitored.notes, verbose=printed.verbose)
    lines.append(f"page: {out / 'monitor.html'}, table: {out / 'periods.csv'}")
    tell(monitored.as_json() | {"out": str(out)}, lines, printed.as_json)
    if monitored.alarm:
        raise typer.Exit(1)


@commands.command(rich_help_panel="Judge")
def adapt(
    judge: Annotated[Path, typer.Argument(help="A judge.yaml.")],
    *,
    to: Annotated[str, typer.Option("--to", help="The tool; --list names them.")] = "",
    out: Annotated[
        str, typer.Option(help="File to write, or a folder (an existing one, or a name that ends in /); else printed.")
    ] = "",
    force: ForceFlag = False,
    listed: Annotated[bool, typer.Option("--list", help="Every tool, with what is kept and lost.")] = False,
    accept_edited: AcceptEdited = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a judge for another tool, with a list of what that tool cannot hold."""
    from core.files import is_folder, require_new, write_text
    from core.judge_files import read_card
    from core.judge_files.adapters import NAMES, adapter, adapters

    if bool(to) == listed:
        raise UsageError(f"Name one tool with --to ({', '.join(NAMES)}), or ask for --list.")
    card = read_card(judge, accept_edited=accept_edited)
    if listed:
        lines = []
        for each in adapters(card):
            lines += [f"{each.name}: {each.title} ({each.file_name})", *(f"  kept: {line}" for line in each.kept)]
            lines += [f"  lost: {line}" for line in each.lost]
        tell({"adapters": [_adapter_json(each) for each in adapters(card)]}, lines, as_json)
        return
    adapted = adapter(card, to)
    for line in adapted.lost:
        typer.echo(f"Lost: {line}", err=True)
    if out:
        path = Path(out) / adapted.file_name if is_folder(out) else Path(out)
        require_new([path], force=force)
        write_text(path, adapted.text)
        tell(_adapter_json(adapted) | {"out": str(path)}, written_to(str(path)), as_json)
    elif as_json:
        tell(_adapter_json(adapted) | {"text": adapted.text}, [], as_json)
    else:
        typer.echo(adapted.text.rstrip("\n"))  # as it is: no line of a file is broken


def _adapter_json(adapted: Adapter) -> dict[str, Any]:
    facts = {"name": adapted.name, "title": adapted.title, "file_name": adapted.file_name}
    return facts | {"kept": list(adapted.kept), "lost": list(adapted.lost)}
