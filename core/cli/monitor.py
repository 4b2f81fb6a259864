"""`monitor`: a judge at work on what systems write in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.cli.options import AcceptEdited, JsonFlag, JudgeSpec, MapOption, cache_for
from core.cli.output import notes, stages_shown, tell
from core.wording import counted

if TYPE_CHECKING:
    from core.monitoring.outcome import Monitored

commands = typer.Typer(add_completion=False)

SHOWN = 8


@commands.command(rich_help_panel="Judge")
def monitor(
    traffic: Annotated[
        list[Path],
        typer.Argument(
            help="What systems wrote: tables (CSV, JSONL, Parquet) or exports of Langfuse, Phoenix, MLflow, OpenAI "
            "Evals, promptfoo or Inspect; people's labels among them or in files of their own."
        ),
    ],
    judge_file: Annotated[Path, typer.Option("--judge-file", help="A judge.yaml, fused.yaml or repeval.yaml.")],
    out: Annotated[Path, typer.Option(help="Folder of its own: page, table, and the verdicts, kept between calls.")],
    *,
    by: Annotated[Literal["day", "week", "version"], typer.Option(help="What is held beside what.")] = "day",
    label: Annotated[str, typer.Option(help="Name of people's labels; by default the judge's aspect.")] = "",
    anchors: Annotated[
        Path | None,
        typer.Option(help="Golden set that is scored anew at each call: tells whether the judge itself moved."),
    ] = None,
    baseline: Annotated[
        list[str] | None, typer.Option(help="Period that later ones are held against; may be repeated.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Accepted chance of any false alarm, ever.")] = 0.05,
    abstain_over: Annotated[
        float | None, typer.Option(min=0, help="Count the least sure verdicts, without which others err by so much.")
    ] = None,
    judge: JudgeSpec = "",
    mapped: MapOption = None,
    accept_edited: AcceptEdited = False,
    as_json: JsonFlag = False,
) -> None:
    """Test whether quality moved in production, and whether systems or judge moved. Exit code 1: it moved.

    Call it as often as you like, with all files or the newest ones beside the older: no text is scored twice, and the
    alarms hold at any number of looks.
    """
    from core.monitoring.watching import monitor as watched

    with stages_shown("texts") as progress:
        monitored = watched(
            *(traffic, judge_file, out),
            by=by,
            label=label,
            anchors=anchors,
            baseline=baseline or (),
            alpha=alpha,
            judge=judge,
            accept_edited=accept_edited,
            mapping=mapped,
            abstain_over=abstain_over,
            replies=cache_for(judge_file, judge, accept_edited=accept_edited),
            progress=progress,
        )
    tell(monitored.as_json() | {"out": str(out)}, _words(monitored, out), as_json)
    if monitored.alarm:
        raise typer.Exit(1)


def _words(monitored: Monitored, out: Path) -> list[str]:
    from core.monitoring.outcome import anchor_words, mean_words, movement_words, read_words, unsure_words

    periods = monitored.watched.periods
    rows = [
        f"{period.name:<12} {period.n:>7,} texts  "
        f"{'—' if period.judged is None else f'{period.judged.value:.2f}':>6}  "
        f"{'baseline' if period.in_baseline else movement_words(period.change)}"
        + ("" if period.corrected is None else f"  corrected {mean_words(period.corrected)}")
        + (f"  {unsure_words(period)} unsure" if period.n_unsure is not None else "")
        for period in periods[-SHOWN:]
    ]
    n_unread = sum(period.n_unread for period in periods)
    return [
        monitored.finding,
        *([] if monitored.look is None else [f"Anchors: {anchor_words(monitored.look)}"]),
        *([f"The last {SHOWN} of {len(periods)}:"] if len(periods) > SHOWN else []),
        *rows,
        f"{counted(monitored.n_new, 'text')} scored now, {monitored.n_known:,} before; {n_unread:,} unread; "
        f"{monitored.n_labelled:,} with labels.",
        *read_words(monitored.tools),
        *(f"left out: {n:,} {why}" for why, n in monitored.left_out.items()),
        *notes(*monitored.notes),
        f"page: {out / 'monitor.html'}, table: {out / 'periods.csv'}",
    ]
