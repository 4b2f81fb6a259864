"""The command that joins several judges and metrics into one: fuse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
    AspectOption,
    BootstrapOption,
    Golden,
    JsonFlag,
    LevelOption,
    SeedOption,
    StatisticOption,
    chosen_level,
    reply_cache,
    text_file,
)
from core.cli.words import alignment_line, number, tell

if TYPE_CHECKING:
    pass

commands = typer.Typer(add_completion=False)
WITH = (
    "Names, parted by commas: offline, repeval, overlap, rouge1_source_p, rouge, chrf, similarity, metric_<name>, "
    "judge:FILE, replies:FILE, nli:MODEL, …"
)


@commands.command()
def fuse(
    golden: Golden,
    *,
    aspect: AspectOption,
    with_: Annotated[str, typer.Option("--with", help=WITH)],
    out: Annotated[Path, typer.Option(help="Folder for fused.yaml, verdicts.jsonl and summary.json.")],
    method: Annotated[
        Literal["average", "ridge", "nnls", "llm"], typer.Option(help="llm: a model rates by a plan; needs --judge.")
    ] = "ridge",
    judge: Annotated[str, typer.Option(help="For llm: openai:MODEL[@BASE_URL], scripted[:SEED].")] = "",
    plan: Annotated[
        str, typer.Option(help="For llm: a plan's file, or 'model' to let it write one; else measured.")
    ] = "",
    also: Annotated[
        list[str] | None, typer.Option(help="For llm: another aspect to rate in the same calls; may be repeated.")
    ] = None,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    split: Annotated[Literal["sources", "sources+systems"], typer.Option()] = "sources",
    share: Annotated[float, typer.Option("--calibration-share", help="Share of the sources to fit on.")] = 0.5,
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Fuse several judges and metrics; report the fusion beside its parts on held-out items."""
    from core.api.fused import MODEL_WRITES
    from core.api.fused import fuse as join
    from core.data import load_golden

    loaded = load_golden(golden)
    fused = join(
        loaded,
        aspect,
        [name.strip() for name in with_.split(",") if name.strip()],
        method=method,
        judge=judge,
        plan=plan if method != "llm" or plan in ("", MODEL_WRITES) else text_file(Path(plan), "--plan"),
        also=also or (),
        statistic=statistic,
        level=chosen_level(level),
        split=split,
        calibration_share=share,
        bootstrap=bootstrap,
        seed=seed,
        replies=reply_cache(judge),
        on_part=lambda name: typer.echo(f"{name} …", err=True),
    )
    tell(fused.save(out), as_json, _words)


def _words(body: dict[str, Any]) -> list[str]:
    from core.stats import p_figure

    fused, best, test = body["fused"], body["best_part"], body["against_best"]
    lines = [
        f"{body['aspect']}: {fused['statistic']}, {fused['level']} level, on held-out items; weights and choice on "
        f"{body['n_fit']} calibration items",
        alignment_line(f"fusion, {body['method']}", fused),
    ]
    for name, one in sorted(body["parts"].items(), key=lambda pair: -(pair[1]["value"] or -2)):
        lines.append(alignment_line(name, one, ", left out" if name in body["left_out"] else ""))
    if test is not None and test["value"] is not None:
        lines.append(f"fusion minus {best}, the best part on calibration: {test['value']:+.3f}, {p_figure(test['p'])}")
    lines += [alignment_line(f"{one}, in the same calls", told) for one, told in body.get("also", {}).items()]
    if "requests" in body:
        price = "" if body["cost"] is None else f", ${body['cost']:,.2f}"
        asked = f"{body['calls']:,} calls: {body['requests']:,} sent, {body['cached']:,} from the cache"
        lines.append(f"{asked}; {body['tokens']:,} tokens{price}")
    lines += [f"without {one}: {number(told['value'])}" for one, told in body["without"].items()]
    lines += [f"left out: {name}: {reason}" for name, reason in body["left_out"].items()]
    return [*lines, *(f"Note: {note}" for note in body["notes"]), f"Written to {body['out']}"]
