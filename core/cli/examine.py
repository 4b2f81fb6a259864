"""The command that examines a judge: where it fails, its biases, its scores beside people's."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.options import (
    VERDICTS,
    AspectOption,
    GoldenFile,
    JsonFlag,
    SeenOptions,
    StatisticOption,
    read_table,
    with_options,
)
from core.cli.output import because, interval_words, noted, number, probability, seen_counts, seen_words, signed, tell

if TYPE_CHECKING:
    from core.comparison.examination import Examination
    from core.comparison.fails import Part

commands = typer.Typer(add_completion=False)


@commands.command(rich_help_panel="Measure")
@with_options
def examine(
    golden: GoldenFile,
    verdicts: Annotated[Path, typer.Argument(help=VERDICTS)],
    *,
    aspect: AspectOption,
    statistic: StatisticOption = "spearman",
    seen: SeenOptions,
    model: Annotated[
        str, typer.Option(help="The judge's model: does it favour systems of its family?  Else from the judge's file.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Find where a judge fails and what it leans on."""
    from core.comparison.examination import examine as examined
    from core.findings.weak_spots import examination_finding

    loaded = golden.load()
    table, _, off = read_table(loaded, verdicts, aspect, golden.values)
    examination = examined(
        loaded,
        table,
        aspect,
        statistic=statistic,
        judge_file=seen.judge_file,
        all_items=seen.all_items,
        model=model,
    )
    lines = [*_words(examination), *off, *seen_words(examination.overall)]
    said = examination_finding(examination)
    body = examination.as_json() | {
        "headline": said.headline,
        "claims": [*[said.headline] * bool(examination.worst), *said.cautions],
    }
    tell(body | noted(off) | seen_counts(examination.overall), lines, as_json)


def _words(examination: Examination) -> list[str]:
    from core.findings.weak_spots import DIVISIONS, bias_figures, distribution_words, examination_finding

    lines = [*examination_finding(examination).lines]
    for division, parts in groupby(examination.parts, key=lambda part: part.division):
        lines.append(f"{DIVISIONS[division]}:")
        lines += [f"  {_part_words(part)}" for part in parts]
    lines += [f"{DIVISIONS[division]}: not divided{because(why)}" for division, why in examination.left_out.items()]
    lines += [f"{bias.kind}: {bias_figures(bias)}" for bias in examination.biases]
    return [*lines, *([distribution_words(examination.distribution)] if examination.distribution else [])]


def _part_words(part: Part) -> str:
    from core.stats.claims import HALF_ALPHA

    aligned = part.alignment
    error = "" if part.error is None else f", error {number(part.error)} ({number(part.expected)} expected)"
    figures = f"{part.name}: {number(aligned.value)}{interval_words(aligned.interval)}, n = {aligned.n}"
    if part.difference is None:
        return f"{figures}{because(aligned.reason)}{error}"
    excess = f"excess over the other parts {signed(part.difference, part.interval)}, {probability(part.p, HALF_ALPHA)}"
    return f"{figures}{error}; {excess}"
