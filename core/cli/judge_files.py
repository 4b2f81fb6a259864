"""The commands about a judge file: recheck it, take it to another tool."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import (
    AcceptEdited,
    AspectOption,
    ForceFlag,
    GoldenFile,
    JsonFlag,
    JudgeFileOptions,
    VerboseFlag,
    with_options,
)
from core.cli.output import (
    cautions,
    tell,
    written_to,
)
from core.errors import UsageError
from core.wording import percent

if TYPE_CHECKING:
    from core.comparison.recheck import Recheck
    from core.judge_files.adapters import Adapter

commands = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class RecheckFiles:
    """What is known of the judge besides its file."""

    verdicts: Annotated[Path | None, typer.Option(help="The judge's verdicts on these items; else it scores now.")] = (
        None
    )
    before: Annotated[Path | None, typer.Option(help="Its earlier verdicts: a paired test on the common items.")] = None
    old: Annotated[
        Path | None, typer.Option(help="The golden set it was calibrated on: compares its labels with the newer ones.")
    ] = None


@dataclass(frozen=True)
class RecheckLimits:
    """What is tested, and what counts as a failure."""

    no_criteria: Annotated[
        bool, typer.Option("--no-criteria", help="Also score the new items without criteria, one more call per item.")
    ] = False
    alpha: Annotated[float, typer.Option(help="Accepted chance of a false alarm.")] = 0.05
    fall: Annotated[float, typer.Option(help="The fall that matters: 'holds' rules it out.")] = 0.1
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if it is inconclusive, too.")] = False


@commands.command(rich_help_panel="Judge")
@with_options
def recheck(
    judge_file: Annotated[Path, typer.Argument(metavar="JUDGE", help="A judge.yaml, fused.yaml or repeval.yaml.")],
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    given: RecheckFiles,
    limits: RecheckLimits,
    opened: JudgeFileOptions,
    verbose: VerboseFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Test whether a judge still agrees with newer labels. Exit code 1: agreement fell, or no newer labels.

    Newer labels are those of texts that the judge was neither calibrated with nor evaluated on, whatever ids say.
    """
    from core.comparison.recheck import RecheckSettings
    from core.comparison.recheck import recheck as look_again
    from core.findings.over_time import recheck_finding
    from core.judge_files.judge_reading import columns_of_file
    from core.judge_files.loading import load_judge

    edited, old = opened.accept_edited, given.old
    kept = columns_of_file(judge_file, accept_edited=edited)
    newer = golden.load(kept=kept)
    replies = None if given.verdicts is not None else opened.replies(judge_file)
    with closing(load_judge(judge_file, judge=opened.judge or None, replies=replies, accept_edited=edited)) as loaded:
        outcome = look_again(
            loaded,
            newer,
            aspect,
            settings=RecheckSettings(limits.alpha, limits.fall, limits.no_criteria),
            verdicts=given.verdicts,
            before=given.before,
            old=None if old is None else replace(golden, golden=old, sheet=None).load(kept=kept),
        )
    body = outcome.as_json() | {"words": recheck_finding(outcome).headline}
    tell(body, _recheck_words(outcome, verbose=verbose), as_json)
    if outcome.decision == "fallen" or (limits.strict and outcome.decision == "inconclusive"):
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
        lines = [line for adapted in adapters(card) for line in _adapter_words(adapted)]
        tell({"adapters": [_adapter_json(adapted) for adapted in adapters(card)]}, lines, as_json)
        return
    adapted = adapter(card, to)
    for line in adapted.lost:
        typer.echo(f"Lost: {line}", err=True)
    if not out:
        if as_json:
            tell(_adapter_json(adapted) | {"text": adapted.text}, [], as_json)
        else:
            typer.echo(adapted.text.rstrip("\n"))  # as it is: no line of a file is broken
        return
    path = Path(out) / adapted.file_name if is_folder(out) else Path(out)
    require_new([path], force=force)
    write_text(path, adapted.text)
    tell(_adapter_json(adapted) | {"out": str(path)}, written_to(str(path)), as_json)


# ── words and JSON ───────────────────────────────────────────────────────────────────────────────────────────


def _recheck_words(outcome: Recheck, *, verbose: bool) -> list[str]:
    from core.findings.over_time import recheck_details, recheck_finding

    said = recheck_finding(outcome)
    unread = [f"{percent(outcome.unread_share, digits=1)} of the newer items unscored."]
    details = [*unread, *recheck_details(outcome)] if verbose else []
    return [said.headline, said.detail, *filter(None, [said.next_step]), *details, *cautions(said.cautions, verbose)]


def _adapter_json(adapted: Adapter) -> dict[str, Any]:
    facts = {"name": adapted.name, "title": adapted.title, "file_name": adapted.file_name}
    return facts | {"kept": list(adapted.kept), "lost": list(adapted.lost)}


def _adapter_words(adapted: Adapter) -> list[str]:
    lines = [f"  kept: {line}" for line in adapted.kept] + [f"  lost: {line}" for line in adapted.lost]
    return [f"{adapted.name}: {adapted.title} ({adapted.file_name})", *lines]
