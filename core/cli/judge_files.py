"""The commands that take a judge file to work: score a file with it, recheck it, take it to another tool."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import AspectOption, BootstrapOption, Golden, JsonFlag, SeedOption, reply_cache
from core.cli.output import (
    alignment_words,
    interval_words,
    notes,
    place,
    price,
    probability,
    spent,
    stages_shown,
    tell,
    written_to,
)
from core.errors import ConcordError, UsageError
from core.wording import counted

if TYPE_CHECKING:
    from core.drift.outcome import Recheck
    from core.export.adapters import Adapter
    from core.providers.base import ReplyStore
    from core.records import Finding
    from core.scoring import BatchWritten, FusedScores, ScoredFile
    from core.scoring.request import SureScores

commands = typer.Typer(add_completion=False)

JudgeSpec = Annotated[
    str,
    typer.Option(
        "--judge",
        help="Score with another judge than the one calibrated with; for a repeval.yaml hf:ID_OR_PATH, where its model "
        "lies.",
    ),
]
AcceptEdited = Annotated[bool, typer.Option("--accept-edited", help="Take a judge file changed after its export.")]
BatchFlag = Annotated[
    bool, typer.Option("--batch", help="Ask the endpoint's batches first: half the price, up to 24 h.")
]
BatchRest = Annotated[
    Literal["batch", "direct"], typer.Option(help="Where a batch ends early, ask the rest in another, or directly.")
]
BatchWrite = Annotated[
    Path | None, typer.Option(help="Only write the requests into a batch file, as `vllm run-batch` takes it.")
]
BatchRead = Annotated[
    list[Path] | None, typer.Option(help="Score from this file of results, and ask nobody; may be repeated.")
]
FINDINGS_IN_JSON = 20
FINDINGS_SHOWN = 5
NOTHING_READ = (
    "Not one item has a score: no reply could be read. {out} holds the replies and says why; put that right and run "
    "the same command again, which asks them again."
)


@commands.command()
def score(
    items: Annotated[Path, typer.Argument(help="Items: CSV, JSONL (.gz), Parquet or XLSX; labels are not needed.")],
    judge_file: Annotated[Path, typer.Option("--judge-file", help="A judge.yaml, fused.yaml or repeval.yaml.")],
    out: Annotated[Path, typer.Option(help="Verdicts, one JSON object a line; CSV where the name ends in .csv.")],
    *,
    explain: Annotated[bool, typer.Option("--explain", help="Add the reasons to each verdict.")] = False,
    judge: JudgeSpec = "",
    accept_edited: AcceptEdited = False,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Most calls to make now; the same command again goes on.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Start over, whatever an earlier scoring left.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes for a judge that computes; by default one a core.")
    ] = None,
    keep_unread: Annotated[
        bool, typer.Option("--keep-unread", help="Do not ask again what an earlier, stopped call left unread.")
    ] = False,
    most_unread: Annotated[
        float, typer.Option(min=0, max=1, help="Stop when a larger share of the items comes back unread.")
    ] = 0.5,
    batch: BatchFlag = False,
    batch_rest: BatchRest = "batch",
    batch_write: BatchWrite = None,
    batch_read: BatchRead = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add low, high, width and expected error to each verdict.")
    ] = False,
    coverage: Annotated[
        float, typer.Option(min=0.5, max=0.99, help="Share of people's labels that the intervals hold.")
    ] = 0.9,
    abstain_over: Annotated[
        float | None,
        typer.Option(min=0, help="Mark the least sure verdicts, so that the others err by so much at most."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Apply a calibrated judge to items, in constant memory; a stopped one goes on where it was."""
    from core.export.judge_reading import kind_of_file
    from core.scoring import ScoreRequest, estimate_scoring, score_file, score_fused, write_batch

    fused_file = kind_of_file(judge_file) == "fusion"
    if sum((batch, batch_write is not None, bool(batch_read))) > (0 if fused_file else 1):
        raise UsageError("Take one of --batch, --batch-write and --batch-read, and none with a fused judge.")
    request = ScoreRequest(
        *(items, judge_file, out, judge, accept_edited, explain, budget, again, workers, keep_unread, most_unread),
        *(batch, batch_rest, tuple(batch_read or ())),
        coverage=coverage if intervals or abstain_over is not None else None,
        abstain_over=abstain_over,
    )
    if fused_file:
        fused = score_fused(request, replies=_cache_for(judge_file, "", accept_edited=accept_edited))
        tell(*_fused_scores(fused, out), as_json)
        return
    cache = _cache_for(judge_file, judge, accept_edited=accept_edited)
    if batch_write is not None:
        tell(*_batch_written(write_batch(request, batch_write, replies=cache)), as_json)
        return
    if estimate := estimate_scoring(request):
        tokens = f", about {estimate.prompt_tokens:,} prompt tokens" if estimate.prompt_tokens else ""
        typer.echo(f"At most {estimate.calls:,} calls{tokens}{price(estimate.cost)}.", err=True)
    with stages_shown("items") as progress:
        try:
            scored = score_file(request, replies=cache, progress=progress)
        except ConcordError as error:
            for note in getattr(error, "__notes__", ()):
                typer.echo(note, err=True)
            raise
    for line in _finding_words(scored.findings):
        typer.echo(line, err=True)
    body = _score_body(scored, out)
    tell(body, _score_words(body), as_json)
    if scored.nothing_read:
        typer.echo(NOTHING_READ.format(out=out), err=True)
        raise typer.Exit(1)


@commands.command()
def recheck(
    judge_file: Annotated[Path, typer.Argument(metavar="JUDGE", help="A judge.yaml, fused.yaml or repeval.yaml.")],
    golden: Golden,
    *,
    aspect: AspectOption,
    verdicts: Annotated[
        Path | None, typer.Option(help="The judge's verdicts on these items; else it scores now.")
    ] = None,
    before: Annotated[
        Path | None, typer.Option(help="Its earlier verdicts: a paired test on the common items.")
    ] = None,
    old: Annotated[Path | None, typer.Option(help="The golden set it was calibrated on: labels beside labels.")] = None,
    against: Annotated[
        str, typer.Option(help="Compare on the new items with 'no criteria', or with another judge file.")
    ] = "nothing",
    statistic: Annotated[
        Literal["pearson", "spearman", "kendall"] | None, typer.Option(help="By default the file's own.")
    ] = None,
    level: Annotated[Literal["dataset", "sample", "system"] | None, typer.Option(help="By default the file's.")] = None,
    alpha: Annotated[float, typer.Option(help="Accepted chance of a false alarm.")] = 0.05,
    fall: Annotated[float, typer.Option(help="The fall that matters: 'holds' rules it out.")] = 0.1,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    judge: JudgeSpec = "",
    accept_edited: AcceptEdited = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 where it cannot be told, too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Has a judge's alignment fallen on newer labels?  Exit 0 holds or cannot be told, 1 fallen or no newer labels.

    Newer labels are those of texts that the judge was neither calibrated with nor evaluated on, whatever ids say.
    """
    from core.data import load_golden
    from core.drift.recheck import RecheckSettings
    from core.drift.recheck import recheck as look_again

    outcome = look_again(
        judge_file,
        load_golden(golden),
        aspect,
        verdicts=verdicts,
        before=before,
        old=None if old is None else load_golden(old),
        against=against,
        settings=RecheckSettings(statistic, level, alpha, fall, bootstrap, seed),
        model=judge or None,
        accept_edited=accept_edited,
        replies=None if verdicts is not None else _cache_for(judge_file, judge, accept_edited=accept_edited),
    )
    tell(outcome.as_json(), _recheck_words(outcome), as_json)
    if outcome.decision == "fallen" or (strict and outcome.decision == "cannot be told"):
        raise typer.Exit(1)


@commands.command()
def adapt(
    judge: Annotated[Path, typer.Argument(help="A judge.yaml.")],
    *,
    to: Annotated[str, typer.Option("--to", help="The tool; --list names them.")] = "",
    out: Annotated[Path | None, typer.Option(help="File or folder to write to; else standard output.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Every tool, with what is kept and lost.")] = False,
    accept_edited: AcceptEdited = False,
    as_json: JsonFlag = False,
) -> None:
    """A calibrated judge as a file for another tool; what the tool cannot hold is said in the file."""
    from core.export import read_card
    from core.export.adapters import NAMES, adapter, adapters
    from core.files import write_text

    if bool(to) == listed:
        raise UsageError(f"Name one tool with --to ({', '.join(NAMES)}), or ask for --list.")
    card = read_card(judge, accept_edited=accept_edited)
    if listed:
        lines = [line for adapted in adapters(card) for line in _adapter_words(adapted)]
        tell({"adapters": [_adapter_json(adapted) for adapted in adapters(card)]}, lines, as_json)
        return
    adapted = adapter(card, to)
    for line in adapted.lost:
        typer.echo(f"Lost: {line}", err=True)
    if out is None:
        tell(_adapter_json(adapted) | {"text": adapted.text}, [adapted.text.rstrip("\n")], as_json)
        return
    path = out / adapted.file_name if out.is_dir() else out
    write_text(path, adapted.text)
    tell(_adapter_json(adapted) | {"out": str(path)}, written_to(str(path)), as_json)


def _cache_for(judge_file: Path, judge: str, *, accept_edited: bool) -> ReplyStore | None:
    """The reply cache for the judge of a file, or for the model of a fused one; None where nobody is asked."""
    from core.export.judge_reading import kind_of_file, open_file

    kind = kind_of_file(judge_file)
    if kind == "repeval":
        return None
    if kind == "fusion":
        fusion = open_file(judge_file, "fusion", accept_edited=accept_edited).card["fusion"]
        return reply_cache(str(fusion["judge"]["spec"])) if fusion["method"] == "llm" else None
    return reply_cache(judge or str(open_file(judge_file, accept_edited=accept_edited).card["judge"]["spec"]))


# ── words and JSON ───────────────────────────────────────────────────────────────────────────────────────────


def _score_body(scored: ScoredFile, out: Path) -> dict[str, Any]:
    pace = scored.per_second
    return {
        "n_items": scored.n_items,
        "n_scored": scored.n_scored,
        "n_unscored": scored.n_unscored,
        "n_left": scored.n_items - scored.n_done,
        "finished": scored.finished,
        "reasons": dict(scored.reasons),
        "calls": scored.calls,
        **{name: getattr(scored.usage, name) for name in ("requests", "cached", "cost")},
        "resumed_from": scored.n_before,
        "asked_again": scored.n_again,
        "seconds": round(scored.seconds, 3),
        "items_per_second": None if pace is None else round(pace, 1),
        "marks": list(scored.marks),
        "findings": [asdict(finding) for finding in scored.findings[:FINDINGS_IN_JSON]],
        "out": str(out),
        **({"batch": dict(scored.batch)} if scored.batch else {}),
        **({} if scored.sure is None else _sure_body(scored.sure)),
    }


def _batch_written(written: BatchWritten) -> tuple[dict[str, Any], list[str]]:
    """As JSON and in lines."""
    files = [str(file) for file in written.files]
    body = {"n_items": written.n_items, "n_requests": written.n_requests, "files": files}
    if not files:
        return body, [f"The reply cache answers all requests about {written.n_items:,} items; nothing was written."]
    about = f"{counted(written.n_requests, 'request')} about {counted(written.n_items, 'item')}: {', '.join(files)}"
    return body, [about, "Have them answered, and give the files of results to the same command with --batch-read."]


def _batch_words(batch: dict[str, Any]) -> str:
    """What came of the lines that a batch was asked."""
    failed = ", ".join(f"{n:,} {reason}" for reason, n in batch["failed"].items())
    parts = [
        f"{batch['answered']:,} requests answered by batch",
        *([f"failed there: {failed}"] if failed else []),
        *(
            f"{batch[name]:,} {words}"
            for name, words in (
                ("untried", "not come to in time"),
                ("repeated", "answered more than once"),
                ("foreign", "lines of other requests, left aside"),
                ("unusable", "lines that are no results, left aside"),
            )
            if batch[name]
        ),
    ]
    return f"{'; '.join(parts)}."


def _sure_body(sure: SureScores) -> dict[str, Any]:
    body: dict[str, Any] = {
        "intervals": {
            "coverage": sure.coverage,
            "n": sure.n,
            "mean_width": sure.width,
            "reason": sure.reason or None,
        }
    }
    if sure.abstention is None:
        return body
    gone = asdict(sure.abstention) | {"n_abstained": sure.n_abstained, "share_kept": sure.share_kept}
    gone["most_expected"] = None if sure.abstention.share in (0.0, 1.0) else sure.abstention.most_expected
    return body | {"abstention": gone}


def _sure_words(body: dict[str, Any]) -> list[str]:
    """How wide the intervals are, and what became of the wish for a smaller error."""
    if "intervals" not in body:
        return []
    made, gone = body["intervals"], body.get("abstention")
    lines = [
        f"No intervals: {made['reason']}."
        if made["reason"]
        else f"Intervals of {made['coverage']:.0%} around {made['n']:,} verdicts, "
        f"{_points(made['mean_width'])} wide on average."
    ]
    if gone is None:
        return lines
    aim = f"an error of {gone['wanted']:g} (all verdicts of the calibration: {gone['overall']:.3g})"
    least = f"at least {gone['least_gone']:.0%} of the verdicts must go for it, whoever chooses"
    if gone["share"] == 0:
        return [*lines, f"No choice of sure verdicts comes down to {aim}: all are marked as unsure; {least}."]
    kept = "—" if gone["share_kept"] is None else f"{gone['share_kept']:.0%}"
    marked = f"{gone['n_abstained']:,} verdicts are marked as unsure, {kept} remain"
    return [*lines, f"For {aim}: {marked} ({gone['share']:.0%} on calibration); {least}."]


def _points(width: float | None) -> str:
    return "—" if width is None else f"{width:.3g} points"


def _score_words(body: dict[str, Any]) -> list[str]:
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in body["reasons"].items())
    unscored = f", {body['n_unscored']} unscored{f' ({reasons})' if reasons else ''}"
    pace = f", {body['items_per_second']:,.0f} items/s" if body["items_per_second"] else ""
    pace += spent(body)
    went_on = f"Went on after {body['resumed_from']:,} items of an earlier call."
    again = f"{body['asked_again']:,} of them had been left unread and were asked again."
    lines = [
        *([went_on] if body["resumed_from"] else []),
        *([again] if body["asked_again"] else []),
        *([_batch_words(body["batch"])] if "batch" in body else []),
        *notes(*body["marks"]),
        *_sure_words(body),
    ]
    if body["finished"]:
        return [f"{body['n_scored']} of {body['n_items']} items scored{unscored}: {body['out']}{pace}", *lines]
    return [
        f"The budget is spent: {body['n_scored']} of {body['n_items']} items scored{unscored}, {body['n_left']} left"
        f"{spent(body)}.",
        *lines,
        f"They are kept in {body['out']}.part; run the same command again to go on. {body['out']} appears at the end.",
    ]


def _finding_words(findings: tuple[Finding, ...]) -> list[str]:
    """Warnings about the rows, the first few; notes are left to `check`."""
    warnings = [f"warning: {f.message}{place(f.row, f.column)}" for f in findings if f.severity == "warning"]
    rest = len(warnings) - FINDINGS_SHOWN
    return warnings[:FINDINGS_SHOWN] + ([f"{rest} more warnings; `check` lists them."] if rest > 0 else [])


def _fused_scores(fused: FusedScores, out: Path) -> tuple[dict[str, Any], list[str]]:
    """As JSON and in lines."""
    n_unscored = fused.n_items - fused.n_scored
    body = asdict(fused) | {"n_unscored": n_unscored, "out": str(out)}
    lines = [f"{fused.n_scored} of {fused.n_items} items scored, {n_unscored} unscored: {out}"]
    lines.append(f"computed: {', '.join(fused.used)}")
    lines += [f"missing: {name}: {reason}" for name, reason in fused.missing.items()]
    if fused.missing:
        lines.append("Missing parts count as their mean; the alignment in the file was measured with all parts.")
    return body, lines


def _recheck_words(outcome: Recheck) -> list[str]:
    unread = f"{outcome.unread_share:.1%}" if outcome.unread_share is not None else "—"
    lines = [
        outcome.words,
        f"  now:  {alignment_words(outcome.now)}; {unread} of the newer items unscored",
        f"  then: {alignment_words(outcome.then)} (held-out, as the file tells)",
    ]
    change = outcome.change
    if change.p is not None and change.interval is not None:
        lines.append(f"  fallen, one-sided: {probability(change.p)}; {change.interval.method}")
    if change.detectable is not None:
        needed = (
            "cannot be told by any number of them" if change.n_needed is None else f"takes {change.n_needed:,} items"
        )
        power = f"told with 80 % power: a fall of {change.detectable:.3f}"
        lines.append(f"  {power}; a fall of {change.fall:g} {needed}")
    beside = (f"the judge minus {outcome.against_name}", outcome.against), ("now minus before", outcome.paired)
    for name, difference in beside:
        if difference is not None and difference.value is not None:
            figures = f"{difference.value:+.3f}{interval_words(difference.interval, '+')}, {probability(difference.p)}"
            lines.append(f"  {name}, on {difference.n} common items: {figures}")
    lines += [shift.words for shift in (outcome.labels, outcome.scores) if shift is not None]
    return [*lines, *notes(*outcome.notes)]


def _adapter_json(adapted: Adapter) -> dict[str, Any]:
    facts = {"name": adapted.name, "title": adapted.title, "file_name": adapted.file_name}
    return facts | {"kept": list(adapted.kept), "lost": list(adapted.lost)}


def _adapter_words(adapted: Adapter) -> list[str]:
    lines = [f"  kept: {line}" for line in adapted.kept] + [f"  lost: {line}" for line in adapted.lost]
    return [f"{adapted.name}: {adapted.title} ({adapted.file_name})", *lines]
