"""Commands that use a judge file: score, recheck, repeat, switch, monitor and adapt."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
    AcceptEdited,
    AspectOption,
    ForceFlag,
    GoldenFile,
    JudgeFileOptions,
    MapOption,
    command,
    reply_cache,
)
from core.cli.output import because, finding_lines, notes, place, spent, stages_shown, tell, wants_json, written_to
from core.comparison.recheck import RecheckSettings
from core.comparison.steadiness import RepeatSettings
from core.errors import ConcordError, UsageError
from core.files import require_new
from core.scoring.output import ScoreSettings
from core.wording import counted, difference_figures, estimate, money, number, percent, price_words

if TYPE_CHECKING:
    from core.judge_files.adapters import Adapter
    from core.scoring import ScoredFile

FINDINGS_SHOWN = 5
NOTHING_READ = (
    "Concord couldn't read any reply, so no item has a score. To see why, open {out}. Fix the cause, "
    "then run the command again with --force."
)


@command("Judge")
def score(
    source: Annotated[
        str,
        typer.Argument(
            metavar="ITEMS", help="CSV, JSONL (.gz), Parquet or XLSX file of items to score. Labels aren't required."
        ),
    ],
    judge_file: Annotated[Path, typer.Option(help="Path of a judge.yaml, fused.yaml or repeval.yaml file.")],
    target: Annotated[
        str, typer.Option("--out", help="Verdict file to write: JSON Lines, or CSV if the name ends in .csv.")
    ],
    *,
    settings: ScoreSettings,
    opened: JudgeFileOptions,
    ray: Annotated[
        str,
        typer.Option(
            help="Score on a Ray cluster: HOST:PORT, or auto. ITEMS must be JSONL or Parquet: a file, a folder, or an "
            "address such as s3://BUCKET/FOLDER. --out must be a folder for JSONL parts."
        ),
    ] = "",
    mapped: MapOption = None,
    force: ForceFlag = False,
) -> None:
    """Score texts with a judge file. To resume after an interruption, run the same command again."""
    from core.data.columns import read_map
    from core.scoring import ScoreRequest, estimate_scoring, score_file, write_batch

    out = Path(target)
    request = ScoreRequest(
        Path(source), judge_file, out, **asdict(opened), **asdict(settings), mapping=read_map(mapped)
    )
    if ray:
        from core.cluster import ray_output_to_stderr
        from core.scoring.on_ray import score_on_ray
        from core.settings import ray_address

        if force:
            raise UsageError("You can't combine --ray with --force. To start over, delete the --out folder.")
        with ray_output_to_stderr(), stages_shown("items") as progress:
            scored = score_on_ray(ray_address(ray, "--ray"), request, source, target, progress=progress)
        _tell_scored(scored, target)
        return
    cache = opened.replies(judge_file)
    if request.batch_write is not None:
        n_requests, files = write_batch(request, replies=cache)
        lines = ["All replies are already cached, so no requests were written."]
        if files:
            lines = [
                f"{counted(n_requests, 'request')}: {', '.join(map(str, files))}",
                "Send these requests to a batch endpoint. Then run the same command with --batch-read RESULTS instead "
                "of --batch-write.",
            ]
        tell({"n_requests": n_requests, "files": [str(file) for file in files]}, lines)
        return
    begun = out.with_name(f"{out.name}.progress.json")
    require_new([out], force=force or begun.exists())
    if force:
        begun.unlink(missing_ok=True)  # so that an earlier unfinished scoring is not resumed
    if first := estimate_scoring(request):
        tokens = f", about {first.prompt_tokens:,} prompt tokens" if first.prompt_tokens else ""
        typer.echo(f"At most {first.calls:,} calls{tokens}{price_words(first.cost)}.", err=True)
    with stages_shown("items") as progress:
        try:
            scored = score_file(request, replies=cache, progress=progress)
        except ConcordError as error:
            for note in getattr(error, "__notes__", ()):
                typer.echo(note, err=True)
            raise
    _tell_scored(scored, target)


def _tell_scored(scored: ScoredFile, out: str) -> None:
    warnings = [f for f in scored.findings if f.severity == "warning"]
    for finding in warnings[:FINDINGS_SHOWN]:
        typer.echo(f"Warning: {finding.message}{place(finding.row, finding.column)}", err=True)
    if (rest := len(warnings) - FINDINGS_SHOWN) > 0:
        typer.echo(f"{counted(rest, 'more warning')}. To see all warnings, run `check`.", err=True)
    body = scored.as_json() | {"out": out}
    tell(body, _score_words(body))
    if scored.nothing_read:
        typer.echo(NOTHING_READ.format(out=out), err=True)
        raise typer.Exit(1)


@command("Judge")
def recheck(
    judge_file: Annotated[
        Path, typer.Argument(metavar="JUDGE", help="Path of a judge.yaml, fused.yaml or repeval.yaml file.")
    ],
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            help="File of the judge's verdicts on these items. Without this option, the judge scores the items now."
        ),
    ] = None,
    settings: RecheckSettings,
    opened: JudgeFileOptions,
) -> None:
    """Test whether a judge still agrees with newer labels.

    Exit code 1 means that agreement fell, or that there are no newer labels. A label is newer if the judge was neither
    calibrated nor evaluated on its text. Item ids don't matter.
    """
    from core.comparison.recheck import recheck as recheck_judge
    from core.findings.over_time import recheck_finding
    from core.judge_files.documents import kept_columns, read_card
    from core.judge_files.loaded import load_judge

    edited = opened.accept_edited
    kept = kept_columns(read_card(judge_file, accept_edited=edited))
    newer = golden.load(kept=kept)
    replies = None if verdicts is not None else opened.replies(judge_file)
    with closing(load_judge(judge_file, judge=opened.judge or None, replies=replies, accept_edited=edited)) as loaded:
        outcome = recheck_judge(loaded, newer, aspect, settings=settings, verdicts=verdicts)
    said = recheck_finding(outcome)
    body = outcome.as_json() | {"words": said.headline}
    tell(body, finding_lines(said))
    if outcome.decision == "fallen":
        raise typer.Exit(1)


@command("Measure")
def repeat(
    golden: GoldenFile,
    *,
    judge_file: Annotated[Path, typer.Option("--judge-file", help="Path of a judge.yaml file from a calibration.")],
    settings: RepeatSettings,
    opened: JudgeFileOptions,
) -> None:
    """Send the same questions to a judge again, and measure how much its scores change.

    Replies are neither read from the cache nor added to it. GOLDEN must contain the items that the judge was calibrated
    on.
    """
    from core.comparison.steadiness import items_to_repeat, steadiness
    from core.findings.over_time import steadiness_finding
    from core.judge_files.loaded import load_judge

    loaded, edited = golden.load(), opened.accept_edited
    with (
        closing(load_judge(judge_file, judge=opened.judge or None, accept_edited=edited)) as asked,
        stages_shown() as progress,
    ):
        found = steadiness(asked, items_to_repeat(asked, loaded, settings), settings, progress=progress)
    said = steadiness_finding(found)
    spending = f"{counted(found.usage.requests, 'request')}{spent(asdict(found.usage))}."
    lines = finding_lines(said, [spending])
    tell(found.as_json() | {"words": said.headline}, lines)


@command("Judge")
def switch(
    judge_file: Annotated[Path, typer.Argument(metavar="JUDGE", help="Path of a judge.yaml file.")],
    golden: GoldenFile,
    *,
    judge: Annotated[
        list[str], typer.Option("--judge", help="SPEC of a model to try. To try up to five models, repeat the option.")
    ],
) -> None:
    """Try other models with a judge's criteria. Shows agreement, paired difference, price and unreadable replies."""
    from core.comparison.switching import switch as switched
    from core.findings.over_time import switch_finding
    from core.judge_files.documents import kept_columns, read_card
    from core.judge_files.loaded import LoadedJudge, load_judge

    card = read_card(judge_file)
    own = str(card.get("judge", {}).get("spec", ""))
    loaded = golden.load(kept=kept_columns(card))

    def opened(spec: str | None) -> LoadedJudge:
        return load_judge(judge_file, judge=spec, replies=reply_cache(spec or own))

    with stages_shown() as progress:
        found = switched(opened, loaded, judge, progress=progress)
    rows = []
    for one in found:
        gap = one.difference
        versus = f", difference {difference_figures(gap.value, gap.interval, one.p_holm)}" if gap else ""
        cost = f"{money(one.cost)} per 1,000 items, {percent(one.unread_share)} of replies couldn't be read"
        rows.append(f"{one.judge}: held-out {estimate(one.held_out)}{versus}; {cost}")
    said = switch_finding(found)
    body = {"words": said.headline, "candidates": [one.as_json() for one in found]}
    tell(body, finding_lines(said, rows))


@command("Judge")
def monitor(
    traffic: Annotated[
        list[Path],
        typer.Argument(help="Tables of system outputs (CSV, JSON, JSONL or Parquet). Some rows need labels."),
    ],
    judge_file: Annotated[
        Path, typer.Option("--judge-file", help="Path of a judge.yaml, fused.yaml or repeval.yaml file.")
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the verdicts. A later run with the same folder scores only new texts.")
    ],
    *,
    by: Annotated[
        Literal["day", "week", "version"], typer.Option(help="Periods to compare: days, weeks or versions.")
    ] = "day",
    anchors: Annotated[
        Path | None,
        typer.Option(help="Golden set to score again in each run, to detect changes in the judge itself."),
    ] = None,
    opened: JudgeFileOptions,
    mapped: MapOption = None,
) -> None:
    """Test whether quality changed in production, and whether the systems or the judge changed.

    Exit code 1 means that a change was found. Run the command as often as you like, with all files or only the newest.
    No text is scored twice. The probability of any false alarm, over all runs, is at most 5 %. To name the column of
    times, use --map time=COLUMN.
    """
    from core.comparison.monitoring import MonitorSettings
    from core.comparison.monitoring import monitor as watched
    from core.findings.over_time import monitor_finding, movement_words
    from core.report.figures.svg import legible, shortened

    settings = MonitorSettings(by, anchors, mapped, opened.judge, opened.accept_edited)
    with stages_shown("texts") as progress:
        monitored = watched(traffic, judge_file, out, settings, replies=opened.replies(judge_file), progress=progress)
    rows = [f"{by:<16} {'texts':>7} {'unread':>6} {'labels':>6} {'verdicts':>8}  {'corrected':<18} change"]
    for period in monitored.periods:
        counts = f"{period.n:>7,} {period.n_unread:>6,} {period.n_labelled:>6,}"
        judged = number(None if period.judged is None else period.judged.value)
        moved = "baseline" if period.in_baseline else movement_words(period.change)
        name = shortened(legible(period.name), 16)
        rows.append(f"{name:<16} {counts} {judged:>8}  {estimate(period.corrected):<18} {moved}")
    rows.append(
        f"{counted(monitored.n_new, 'text')} scored in this run, {monitored.n_known:,} in earlier runs; "
        f"{monitored.n_labelled:,} are labelled by raters. Judge: {monitored.judge}."
    )
    rows += [f"left out: {n:,} {why}" for why, n in monitored.left_out.items()]
    tell(monitored.as_json() | {"out": str(out)}, finding_lines(monitor_finding(monitored), rows, monitored.notes))
    if monitored.alarm:
        raise typer.Exit(1)


@command("Judge")
def adapt(
    judge: Annotated[Path, typer.Argument(help="Path of a judge.yaml file.")],
    *,
    to: Annotated[str, typer.Option("--to", help="Tool to export to. Omit it to list all tools.")] = "",
    out: Annotated[
        str,
        typer.Option(
            help="File or folder to write. The name of a new folder must end in /. Without this option, the result is "
            "printed."
        ),
    ] = "",
    force: ForceFlag = False,
    accept_edited: AcceptEdited = False,
) -> None:
    """Export a judge to another tool, and list what the export loses."""
    from core.files import is_folder, write_text
    from core.judge_files import read_card
    from core.judge_files.adapters import adapter, adapters

    card = read_card(judge, accept_edited=accept_edited)
    if not to:
        listed, lines = adapters(card), []
        for each in listed:
            lines += [f"{each.name}: {each.title} ({each.file_name})", *(f"  lost: {line}" for line in each.lost)]
        tell({"adapters": [_adapter_json(each) for each in listed]}, lines)
        return
    adapted = adapter(card, to)
    for line in adapted.lost:
        typer.echo(f"Lost: {line}", err=True)
    body = _adapter_json(adapted)
    if out:
        path = Path(out) / adapted.file_name if is_folder(out) else Path(out)
        require_new([path], force=force)
        write_text(path, adapted.text)
        tell(body | {"out": str(path)}, written_to(str(path)))
    elif wants_json.get():
        tell(body | {"text": adapted.text}, [])
    else:
        typer.echo(adapted.text.rstrip("\n"))  # unwrapped, because it is code


def _adapter_json(adapted: Adapter) -> dict[str, Any]:
    facts = {"name": adapted.name, "title": adapted.title, "file_name": adapted.file_name}
    return facts | {"lost": list(adapted.lost)}


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _score_words(body: dict[str, Any]) -> list[str]:
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in body["reasons"].items())
    unscored = f", {body['n_unscored']:,} unscored{because(reasons)}" if body["n_unscored"] else ""
    scored = f"Rated {body['n_scored']:,} of {counted(body['n_items'], 'item')}{unscored}"
    lines = [f"{scored}{spent(body)}."]
    if not body["finished"]:
        lines = [f"Stopped because the budget is used up. {scored}, {body['n_left']:,} left{spent(body)}."]
    if body["resumed_from"]:
        lines.append(f"Resumed an earlier run after {body['resumed_from']:,} items.")
    if batch := body.get("batch"):
        failed = f", {sum(batch['failed'].values()):,} failed" if batch["failed"] else ""
        lines.append(f"Batch: {batch['answered']:,} requests answered{failed}.")
    if "used" in body:
        lines.append(f"computed: {', '.join(body['used'])}")
        lines += [f"{name} is missing and counts as its mean: {reason}" for name, reason in body["missing"].items()]
    else:
        lines += notes(*body["marks"], *body["remarks"])
    lines += _sure_words(body) if "intervals" in body else []
    if body["finished"]:
        return [*lines, *written_to(body["out"])]
    return [*lines, f"The verdicts so far are in {body['out']}.part. To resume, run the same command again."]


def _sure_words(body: dict[str, Any]) -> list[str]:
    """Describe the intervals and the number of unsure verdicts."""
    made, gone = body["intervals"], body.get("abstention")
    if made["reason"]:
        return [f"No intervals: {made['reason']}."]
    width = f"{number(made['mean_width'])} points wide on average"
    lines = [f"{made['n']:,} verdicts have a {percent(made['coverage'])} interval, {width}."]
    if gone is not None:
        lines.append(
            f"To keep the mean error within {gone['wanted']:g}, {gone['n_abstained']:,} verdicts are marked as unsure. "
            f"The other {percent(gone['share_kept'])} count as sure (on calibration items: {percent(gone['share'])})."
        )
    return lines
