"""`score`: a judge file applied to items, in constant memory, by batch or at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import JsonFlag, JudgeFileOptions, MapOption, with_options
from core.cli.output import because, notes, place, spent, stages_shown, tell, written_to
from core.errors import ConcordError, UsageError
from core.files import require_new
from core.setting_fields import setting
from core.wording import counted, number, percent, price_words

if TYPE_CHECKING:
    from core.scoring import ScoredFile

commands = typer.Typer(add_completion=False)

FINDINGS_SHOWN = 5
NOTHING_READ = (
    "No item has a score: no reply could be read. {out} holds the replies and the reasons. Correct the cause and run "
    "the command with --again, which asks these items once more."
)


@dataclass(frozen=True)
class ScoringOptions:
    """How much is asked, of whom, what an earlier scoring left, and how sure each verdict is."""

    explain: bool = setting(False, "Add the reasons to each verdict.")
    budget: int | None = setting(None, "Most calls to make now; the same command resumes.", low=1)
    again: bool = setting(False, "Start over, whatever an earlier scoring left, and replace --out.")
    most_unread: float = setting(0.5, "Stop when a larger share of the items comes back unread.", low=0, high=1)
    batch_write: Path | None = setting(None, "Only write the requests into a batch file, as `vllm run-batch` takes it.")
    batch_read: tuple[Path, ...] = setting((), "Score from this file of results, and ask nobody; may be repeated.")
    ray: str = setting(
        "",
        "Score on the Ray cluster at HOST:PORT, or auto. ITEMS are then JSONL or Parquet: a file, a folder, a "
        "pattern or an address such as s3://…; --out is a folder of JSONL parts.",
    )
    intervals: bool = setting(False, "Add low, high, width and expected error to each verdict.")
    coverage: float = setting(0.9, "Share of the raters' labels that the intervals hold.", low=0.5, high=0.99)
    abstain_over: float | None = setting(
        None, "Mark the least sure verdicts, so that the others err by so much at most.", low=0
    )


@commands.command(rich_help_panel="Judge")
@with_options
def score(
    source: Annotated[
        str, typer.Argument(metavar="ITEMS", help="CSV, JSONL (.gz), Parquet or XLSX; labels are not needed.")
    ],
    judge_file: Annotated[Path, typer.Option(help="A judge.yaml, fused.yaml or repeval.yaml.")],
    target: Annotated[
        str, typer.Option("--out", help="Verdicts, one JSON object a line; CSV where the name ends in .csv.")
    ],
    *,
    how: ScoringOptions,
    opened: JudgeFileOptions,
    mapped: MapOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Rate texts with a judge file; a stopped run resumes."""
    from core.data.columns import read_map
    from core.scoring import ScoreRequest, estimate_scoring, score_file, write_batch

    if how.batch_write is not None and how.batch_read:
        raise UsageError("Take either --batch-write or --batch-read.")
    out = Path(target)
    request = ScoreRequest(
        Path(source),
        judge_file,
        out,
        judge=opened.judge,
        accept_edited=opened.accept_edited,
        explain=how.explain,
        budget=how.budget,
        again=how.again,
        most_unread=how.most_unread,
        batch_read=how.batch_read,
        coverage=how.coverage if how.intervals or how.abstain_over is not None else None,
        abstain_over=how.abstain_over,
        mapping=read_map(mapped),
    )
    if how.ray:
        from core.cluster import output_kept_clean
        from core.scoring.on_ray import score_on_ray
        from core.settings import ray_address

        with output_kept_clean(), stages_shown("items") as progress:
            scored = score_on_ray(ray_address(how.ray, "--ray"), request, source, target, progress=progress)
        _tell_scored(scored, target, as_json)
        return
    cache = opened.replies(judge_file)
    if how.batch_write is not None:
        n_items, n_requests, files = write_batch(request, how.batch_write, replies=cache)
        body = {"n_items": n_items, "n_requests": n_requests, "files": [str(file) for file in files]}
        about = f"{counted(n_requests, 'request')} about {counted(n_items, 'item')}: {', '.join(map(str, files))}"
        lines = [about, "Have them answered, and give the files of results to the same command with --batch-read."]
        if not files:
            lines = [f"The reply cache answers all requests about {counted(n_items, 'item')}; nothing was written."]
        tell(body, lines, as_json)
        return
    begun = out.with_name(f"{out.name}.progress.json").exists()
    require_new([out], force=how.again or begun, how="add --again to replace it")
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
    _tell_scored(scored, target, as_json)


def _tell_scored(scored: ScoredFile, out: str, as_json: bool) -> None:
    warnings = [f for f in scored.findings if f.severity == "warning"]  # notes are left to `check`
    for finding in warnings[:FINDINGS_SHOWN]:
        typer.echo(f"warning: {finding.message}{place(finding.row, finding.column)}", err=True)
    if (rest := len(warnings) - FINDINGS_SHOWN) > 0:
        typer.echo(f"{rest} more warnings; `check` lists them.", err=True)
    body = scored.as_json() | {"out": out}
    tell(body, _score_words(body), as_json)
    if scored.nothing_read:
        typer.echo(NOTHING_READ.format(out=out), err=True)
        raise typer.Exit(1)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def _score_words(body: dict[str, Any]) -> list[str]:
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in body["reasons"].items())
    unscored = f", {body['n_unscored']:,} unscored{because(reasons)}" if body["n_unscored"] else ""
    pace = f", {body['items_per_second']:,.0f} items/s" if body["items_per_second"] else ""
    scored = f"Rated {body['n_scored']:,} of {counted(body['n_items'], 'item')}{unscored}"
    lines = [f"{scored}{pace}{spent(body)}."]
    if not body["finished"]:
        lines = [f"The budget is spent. {scored}, {body['n_left']:,} left{spent(body)}."]
    if body["resumed_from"]:
        lines.append(f"Resumed after {body['resumed_from']:,} items of an earlier run.")
    if batch := body.get("batch"):
        failed = f", {sum(batch['failed'].values()):,} failed there" if batch["failed"] else ""
        lines.append(f"{batch['answered']:,} requests answered by batch{failed}.")
    if "used" in body:
        lines.append(f"computed: {', '.join(body['used'])}")
        lines += [f"missing: {name}: {reason}" for name, reason in body["missing"].items()]
        if body["missing"]:
            lines.append("Missing parts count as their mean; the alignment in the file was measured with all parts.")
    else:
        lines += notes(*body["marks"], *body["remarks"])
    lines += _sure_words(body) if "intervals" in body else []
    if body["finished"]:
        return [*lines, *written_to(body["out"])]
    return [*lines, f"The verdicts are in {body['out']}.part. Run the same command again to resume."]


def _sure_words(body: dict[str, Any]) -> list[str]:
    """How wide the intervals are, and what became of the wish for a smaller error."""
    made, gone = body["intervals"], body.get("abstention")
    width = f"{number(made['mean_width'])} points wide on average"
    lines = [f"Intervals of {percent(made['coverage'])} around {made['n']:,} verdicts, {width}."]
    if made["reason"]:
        lines = [f"No intervals: {made['reason']}."]
    if gone is None:
        return lines
    aim = f"an error of {gone['wanted']:g} (all verdicts of the calibration: {gone['overall']:.3g})"
    if gone["share"] == 0:
        return [*lines, f"No choice of sure verdicts comes down to {aim}: all are marked as unsure."]
    marked = f"{gone['n_abstained']:,} verdicts are marked as unsure, {percent(gone['share_kept'])} remain"
    return [*lines, f"For {aim}: {marked} ({percent(gone['share'])} on calibration)."]
