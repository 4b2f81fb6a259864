"""`score`: a judge file applied to items, in constant memory, by batch or at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import JsonFlag, JudgeFileOptions, MapOption, with_options
from core.cli.output import because, notes, place, spent, stages_shown, tell, written_to
from core.errors import ConcordError, UsageError
from core.files import require_new
from core.wording import counted, number, percent, price_words

if TYPE_CHECKING:
    from core.providers.completions import ReplyStore
    from core.scoring import ScoredFile, ScoreRequest
    from core.scoring.request import SureScores

commands = typer.Typer(add_completion=False)

FINDINGS_IN_JSON = 20
FINDINGS_SHOWN = 5
NOTHING_READ = (
    "Not one item has a score: no reply could be read. {out} holds the replies and says why; put that right and run "
    "the same command again, which asks them again."
)


@dataclass(frozen=True)
class ScoringOptions:
    """How much is asked, of whom, and what an earlier scoring left."""

    explain: Annotated[bool, typer.Option("--explain", help="Add the reasons to each verdict.")] = False
    budget: Annotated[int | None, typer.Option(min=1, help="Most calls to make now; the same command resumes.")] = None
    again: Annotated[bool, typer.Option("--again", help="Start over, whatever an earlier scoring left.")] = False
    most_unread: Annotated[
        float, typer.Option(min=0, max=1, help="Stop when a larger share of the items comes back unread.")
    ] = 0.5
    batch_write: Annotated[
        Path | None, typer.Option(help="Only write the requests into a batch file, as `vllm run-batch` takes it.")
    ] = None
    batch_read: Annotated[
        list[Path] | None, typer.Option(help="Score from this file of results, and ask nobody; may be repeated.")
    ] = None
    ray: Annotated[
        str,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Score on the Ray cluster at HOST:PORT, or auto. ITEMS are then JSONL or Parquet: a file, a folder, a "
            "pattern or an address such as s3://…; --out is a folder of JSONL parts.",
        ),
    ] = ""


@dataclass(frozen=True)
class SureOptions:
    """How sure each verdict is."""

    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add low, high, width and expected error to each verdict.")
    ] = False
    coverage: Annotated[
        float, typer.Option(min=0.5, max=0.99, help="Share of the raters' labels that the intervals hold.")
    ] = 0.9
    abstain_over: Annotated[
        float | None,
        typer.Option(min=0, help="Mark the least sure verdicts, so that the others err by so much at most."),
    ] = None


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
    sure: SureOptions,
    mapped: MapOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Rate texts with a judge file; a stopped run resumes."""
    from core.data.columns import read_map
    from core.judge_files.judge_reading import kind_of_file
    from core.scoring import ScoreRequest, score_fused, write_batch

    items, out = Path(source), Path(target)
    fused_file = kind_of_file(judge_file) == "fusion"
    batch_read = tuple(how.batch_read or ())
    if (how.batch_write is not None) + bool(batch_read) > (0 if fused_file else 1):
        raise UsageError("Take either --batch-write or --batch-read, and neither with a fused judge.")
    request = ScoreRequest(
        items,
        judge_file,
        out,
        judge=opened.judge,
        accept_edited=opened.accept_edited,
        explain=how.explain,
        budget=how.budget,
        again=how.again,
        most_unread=how.most_unread,
        batch_read=batch_read,
        coverage=sure.coverage if sure.intervals or sure.abstain_over is not None else None,
        abstain_over=sure.abstain_over,
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
    if fused_file:
        with _own_output(request):
            fused = score_fused(request, replies=cache)
        body = asdict(fused) | {"n_unscored": fused.n_items - fused.n_scored, "out": str(out)}
        lines = [f"Rated {fused.n_scored:,} of {counted(fused.n_items, 'item')}: {out}"]
        lines.append(f"computed: {', '.join(fused.used)}")
        lines += [f"missing: {name}: {reason}" for name, reason in fused.missing.items()]
        if fused.missing:
            lines.append("Missing parts count as their mean; the alignment in the file was measured with all parts.")
        tell(body, lines, as_json)
        return
    if how.batch_write is not None:
        written = write_batch(request, how.batch_write, replies=cache)
        files, asked = [str(file) for file in written.files], counted(written.n_items, "item")
        about = f"{counted(written.n_requests, 'request')} about {asked}: {', '.join(files)}"
        lines = [about, "Have them answered, and give the files of results to the same command with --batch-read."]
        if not files:
            lines = [f"The reply cache answers all requests about {asked}; nothing was written."]
        body = {"n_items": written.n_items, "n_requests": written.n_requests, "files": files}
        tell(body, lines, as_json)
        return
    with _own_output(request):
        scored = _scored_here(request, cache)
    _tell_scored(scored, str(out), as_json)


@contextmanager
def _own_output(request: ScoreRequest) -> Iterator[None]:
    """Replace no file but what this very command began or wrote; UsageError for any other, unless --again is given.

    A note in CONCORD_HOME tells which command wrote a file: the same judge file, judge, items and columns.
    """
    from core.settings import Settings

    out = request.out.resolve()
    digest = hashlib.sha256(f"{request.judge}\0{request.items.resolve()}{request.mapping or ''}".encode())
    if request.judge_file.is_file():
        with request.judge_file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    note = Settings.from_environment().home / "scored" / hashlib.sha256(str(out).encode()).hexdigest()[:32]
    begun = out.with_name(f"{out.name}.progress.json").exists()
    own = note.is_file() and note.read_text(encoding="ascii") == digest.hexdigest()
    require_new([request.out], force=request.again or begun or own, how="add --again to replace it")
    yield
    with suppress(OSError):  # it only spares a question
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(digest.hexdigest(), encoding="ascii")


def _scored_here(request: ScoreRequest, cache: ReplyStore | None) -> ScoredFile:
    """Score after saying what it will cost; notes of an error go to standard error."""
    from core.scoring import estimate_scoring, score_file

    if first := estimate_scoring(request):
        tokens = f", about {first.prompt_tokens:,} prompt tokens" if first.prompt_tokens else ""
        typer.echo(f"At most {first.calls:,} calls{tokens}{price_words(first.cost)}.", err=True)
    with stages_shown("items") as progress:
        try:
            return score_file(request, replies=cache, progress=progress)
        except ConcordError as error:
            for note in getattr(error, "__notes__", ()):
                typer.echo(note, err=True)
            raise


def _tell_scored(scored: ScoredFile, out: str, as_json: bool) -> None:
    warnings = [f for f in scored.findings if f.severity == "warning"]  # notes are left to `check`
    for finding in warnings[:FINDINGS_SHOWN]:
        typer.echo(f"warning: {finding.message}{place(finding.row, finding.column)}", err=True)
    if (rest := len(warnings) - FINDINGS_SHOWN) > 0:
        typer.echo(f"{rest} more warnings; `check` lists them.", err=True)
    body = _score_body(scored, out)
    tell(body, _score_words(body), as_json)
    if scored.nothing_read:
        typer.echo(NOTHING_READ.format(out=out), err=True)
        raise typer.Exit(1)


# ── words and JSON ───────────────────────────────────────────────────────────────────────────────────────────


def _score_body(scored: ScoredFile, out: str) -> dict[str, Any]:
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
        "seconds": round(scored.seconds, 3),
        "items_per_second": None if pace is None else round(pace, 1),
        "marks": list(scored.marks),
        "remarks": list(scored.remarks),
        "findings": [asdict(finding) for finding in scored.findings[:FINDINGS_IN_JSON]],
        "out": out,
        **({"batch": dict(scored.batch)} if scored.batch else {}),
        **({} if scored.sure is None else _sure_body(scored.sure)),
    }


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
    if made["reason"]:
        lines = [f"No intervals: {made['reason']}."]
    else:
        width = f"{number(made['mean_width'])} points wide on average"
        lines = [f"Intervals of {percent(made['coverage'])} around {made['n']:,} verdicts, {width}."]
    if gone is None:
        return lines
    aim = f"an error of {gone['wanted']:g} (all verdicts of the calibration: {gone['overall']:.3g})"
    if gone["share"] == 0:
        return [*lines, f"No choice of sure verdicts comes down to {aim}: all are marked as unsure."]
    marked = f"{gone['n_abstained']:,} verdicts are marked as unsure, {percent(gone['share_kept'])} remain"
    return [*lines, f"For {aim}: {marked} ({percent(gone['share'])} on calibration)."]


def _score_words(body: dict[str, Any]) -> list[str]:
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in body["reasons"].items())
    unscored = f", {body['n_unscored']:,} unscored{because(reasons)}" if body["n_unscored"] else ""
    pace = f", {body['items_per_second']:,.0f} items/s" if body["items_per_second"] else ""
    scored = f"Rated {body['n_scored']:,} of {counted(body['n_items'], 'item')}{unscored}"
    lines = [
        f"{scored}{pace}{spent(body)}."
        if body["finished"]
        else f"The budget is spent. {scored}, {body['n_left']:,} left{spent(body)}."
    ]
    if body["resumed_from"]:
        lines.append(f"Resumed after {body['resumed_from']:,} items of an earlier run.")
    if batch := body.get("batch"):
        failed = f", {sum(batch['failed'].values()):,} failed there" if batch["failed"] else ""
        lines.append(f"{batch['answered']:,} requests answered by batch{failed}.")
    lines += [*notes(*body["marks"], *body["remarks"]), *_sure_words(body)]
    if body["finished"]:
        return [*lines, *written_to(body["out"])]
    return [*lines, f"The verdicts are in {body['out']}.part. Run the same command again to resume."]
