"""The commands that take a judge file to work: score a file with it, and recheck it on newer labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import AspectOption, BootstrapOption, Golden, JsonFlag, SeedOption, reply_cache
from core.cli.progress import progress_bar
from core.cli.words import in_words, probability, tell
from core.errors import ConcordError, UsageError

if TYPE_CHECKING:
    from core.drift.outcome import Recheck
    from core.providers.base import ReplyStore
    from core.records import Finding
    from core.scoring import ScoredFile


commands = typer.Typer(add_completion=False)

Items = Annotated[Path, typer.Argument(help="Items: CSV, JSONL (.gz), Parquet or XLSX; labels are not needed.")]
JudgeSpec = Annotated[str, typer.Option("--judge", help="Score with another judge than the one calibrated with.")]
AcceptEdited = Annotated[bool, typer.Option("--accept-edited", help="Take a judge file changed after its export.")]
_TOLD = 20
_SHOWN = 5


@commands.command()
def score(
    golden: Items,
    judge_file: Annotated[Path, typer.Option("--judge-file", help="A judge.yaml or fused.yaml.")],
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
    as_json: JsonFlag = False,
) -> None:
    """Apply a calibrated judge to items, in constant memory; a stopped one goes on where it was."""
    from core.export.judge_reading import is_fused_file
    from core.scoring import ScoreRequest, score_file

    if is_fused_file(judge_file):
        if judge or budget is not None:
            raise UsageError(f"{judge_file}: is a fused judge, which takes no --judge and no --budget.")
        _score_fused(golden, judge_file, out, accept_edited=accept_edited, as_json=as_json)
        return
    request = ScoreRequest(golden, judge_file, out, judge, accept_edited, explain, budget, again, workers)
    cache = _cache_for(judge_file, judge, accept_edited=accept_edited)
    with progress_bar("items") as show, _notes_shown():
        found = score_file(request, replies=cache, on_pace=lambda pace: show(pace.phase, pace.done, pace.total))
    for line in _words_of_findings(found.findings):
        typer.echo(line, err=True)
    tell(_body(found, out), as_json, _words)


@commands.command()
def recheck(
    judge_file: Annotated[Path, typer.Argument(metavar="JUDGE", help="A judge.yaml or fused.yaml.")],
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
    from core.drift.recheck import Asked
    from core.drift.recheck import recheck as look_again

    found = look_again(
        judge_file,
        load_golden(golden),
        aspect,
        verdicts=verdicts,
        before=before,
        old=None if old is None else load_golden(old),
        against=against,
        asked=Asked(statistic, level, alpha, fall, bootstrap, seed),
        model=judge or None,
        accept_edited=accept_edited,
        replies=None if verdicts is not None else _cache_for(judge_file, judge, accept_edited=accept_edited),
    )
    tell(found.as_json(), as_json, lambda _: _words_of_recheck(found))
    if found.decision == "fallen" or (strict and found.decision == "cannot be told"):
        raise typer.Exit(1)


def _words_of_recheck(found: Recheck) -> list[str]:
    unread = f"{found.unread_share:.1%}" if found.unread_share is not None else "—"
    lines = [
        found.words,
        f"  now:  {in_words(found.now)}; {unread} of the newer items unscored",
        f"  then: {in_words(found.then)} (held-out, as the file tells)",
    ]
    change = found.change
    if change.p is not None:
        lines.append(
            f"  fallen, one-sided: {probability(change.p)}; {change.interval.method if change.interval else ''}"
        )
    if change.detectable is not None:
        n = (
            f"takes {change.n_needed:,} items"
            if change.n_needed is not None
            else "cannot be told by any number of them"
        )
        told = f"told with 80 % power: a fall of {change.detectable:.3f}"
        lines.append(f"  {told}; a fall of {change.fall:g} {n}")
    for name, one in ((f"the judge minus {found.against_name}", found.against), ("now minus before", found.paired)):
        if one is not None and one.value is not None:
            ends = f" [{one.interval.low:+.3f}, {one.interval.high:+.3f}]" if one.interval else ""
            lines.append(f"  {name}, on {one.n} common items: {one.value:+.3f}{ends}, {probability(one.p)}")
    shifts = [one.words for one in (found.labels, found.scores) if one is not None]
    return [*lines, *shifts, *(f"Note: {note}" for note in found.notes)]


def _body(found: ScoredFile, out: Path) -> dict[str, Any]:
    pace = found.per_second
    return {
        "n_items": found.n_items,
        "n_scored": found.n_scored,
        "n_unscored": found.n_unscored,
        "n_left": found.n_items - found.n_done,
        "finished": found.finished,
        "reasons": dict(found.reasons),
        "calls": found.calls,
        "resumed_from": found.n_before,
        "seconds": round(found.seconds, 3),
        "items_per_second": None if pace is None else round(pace, 1),
        "marks": list(found.marks),
        "findings": [asdict(finding) for finding in found.findings[:_TOLD]],
        "out": str(out),
    }


def _words(body: dict[str, Any]) -> list[str]:
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in body["reasons"].items())
    unscored = f", {body['n_unscored']} unscored{f' ({reasons})' if reasons else ''}"
    pace = f", {body['items_per_second']:,.0f} items/s" if body["items_per_second"] else ""
    went_on = f"Went on after {body['resumed_from']:,} items of an earlier call."
    lines = [*([went_on] if body["resumed_from"] else []), *(f"Note: {mark}" for mark in body["marks"])]
    if body["finished"]:
        return [f"{body['n_scored']} of {body['n_items']} items scored{unscored}: {body['out']}{pace}", *lines]
    return [
        f"The budget is spent: {body['n_scored']} of {body['n_items']} items scored{unscored}, {body['n_left']} left.",
        *lines,
        f"They are kept in {body['out']}.part; run the same command again to go on. {body['out']} appears at the end.",
    ]


def _words_of_findings(findings: tuple[Finding, ...]) -> list[str]:
    """Warnings about the rows, the first few; notes are left to `check`."""
    warnings = [one for one in findings if one.severity == "warning"]
    lines = []
    for one in warnings[:_SHOWN]:
        places = ("row", one.row), ("column", one.column)
        where = ", ".join(f"{name} {value}" for name, value in places if value is not None)
        lines.append(f"warning: {one.message}{f' ({where})' if where else ''}")
    rest = len(warnings) - _SHOWN
    return [*lines, f"{rest} more warnings; `check` lists them."] if rest > 0 else lines


@contextmanager
def _notes_shown() -> Iterator[None]:
    """What an error says beside its message (that work is kept, say) goes to standard error."""
    try:
        yield
    except ConcordError as error:
        for note in getattr(error, "__notes__", ()):
            typer.echo(note, err=True)
        raise


def _cache_for(judge_file: Path, judge: str, *, accept_edited: bool) -> ReplyStore | None:
    """The reply cache for the judge of a file; None for a fused one, which asks no endpoint."""
    from core.export.judge_reading import is_fused_file, open_file

    if is_fused_file(judge_file):
        return None
    return reply_cache(judge or str(open_file(judge_file, accept_edited=accept_edited).card["judge"]["spec"]))


def _score_fused(golden: Path, judge_file: Path, out: Path, *, accept_edited: bool = False, as_json: bool) -> None:
    """`score` with a fused judge: verdicts into `out` with the judge's marks, and which parts were missing."""
    from core.api.loading import load_judge
    from core.data import load_items
    from core.export.fused_judge import FusedJudge
    from core.files import write_text
    from core.scoring.output import form_of, header_of, written

    judge = load_judge(judge_file, accept_edited=accept_edited)
    assert isinstance(judge, FusedJudge)
    items = load_items(golden)
    try:
        verdicts = judge.score(items.items, metrics=items.metrics)
    finally:
        judge.close()
    found = written(verdicts, judge.marks, form_of(out))
    write_text(out, header_of(form_of(out)) + found.text)
    body = {
        "n_items": len(items.items),
        "n_scored": found.n_scored,
        "n_unscored": found.n_items - found.n_scored,
        "used": [part.name for part in judge.parts if part.name not in judge.missing],
        "missing": dict(judge.missing),
        "marks": list(judge.marks),
        "out": str(out),
    }
    tell(body, as_json, _words_of_fused_scores)


def _words_of_fused_scores(body: dict[str, Any]) -> list[str]:
    lines = [f"{body['n_scored']} of {body['n_items']} items scored, {body['n_unscored']} unscored: {body['out']}"]
    lines.append(f"computed: {', '.join(body['used'])}")
    lines += [f"missing: {name}: {reason}" for name, reason in body["missing"].items()]
    if body["missing"]:
        lines.append("Missing parts count as their mean; the alignment in the file was measured with all parts.")
    return lines
