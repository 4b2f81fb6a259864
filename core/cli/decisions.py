"""The commands about decisions: yes or no from a score, and which of two texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.cli.options import (
    VERDICTS,
    AspectOption,
    GoldenFile,
    JsonFlag,
    SeenOptions,
    read_table,
    with_options,
)
from core.cli.output import noted, notes, seen_counts, seen_words, tell

commands = typer.Typer(add_completion=False)


@commands.command(rich_help_panel="Measure")
@with_options
def threshold(
    golden: GoldenFile,
    verdicts: Annotated[Path, typer.Argument(help=VERDICTS)],
    *,
    aspect: AspectOption,
    yes_from: Annotated[float | None, typer.Option(help="Lowest label that is a yes, on other scales.")] = None,
    miss_cost: Annotated[float, typer.Option(help="What it costs where people say yes and the judge no.")] = 1.0,
    alarm_cost: Annotated[float, typer.Option(help="What it costs where the judge says yes and people no.")] = 1.0,
    seen: SeenOptions,
    as_json: JsonFlag = False,
) -> None:
    """Find the score from which on to say yes, and how often that is right."""
    from core.comparison.decisions import choose_threshold
    from core.findings.yes_or_no import yes_no_finding

    loaded = golden.load()
    table, _, off = read_table(loaded, verdicts, aspect, golden.values)
    chosen = choose_threshold(
        loaded,
        table,
        aspect,
        yes_from=yes_from,
        miss_cost=miss_cost,
        alarm_cost=alarm_cost,
        judge_file=seen.judge_file,
        all_items=seen.all_items,
    )
    lines = [*yes_no_finding(chosen).lines, *off, *seen_words(chosen)]
    tell(chosen.as_json() | noted(off) | seen_counts(chosen), lines, as_json)


@commands.command(rich_help_panel="Measure")
@with_options
def preferences(
    golden: GoldenFile,
    verdicts: Annotated[Path | None, typer.Argument(help=f"A judge to compare with the raters. {VERDICTS}")] = None,
    *,
    aspect: Annotated[str, typer.Option("--aspect", help="The human_<aspect> to use.")] = "preference",
    seen: SeenOptions,
    as_json: JsonFlag = False,
) -> None:
    """Rank systems from pairs of texts, by raters and by a judge."""
    from core.comparison.decisions import preferences as preferred
    from core.findings.system_quality import strength_lines
    from core.findings.yes_or_no import agreement_words

    loaded, table, off = golden.load(), None, list[str]()
    if verdicts is not None:
        table, _, off = read_table(loaded, verdicts, aspect, golden.values)
    outcome = preferred(loaded, aspect, table, judge_file=seen.judge_file, all_items=seen.all_items)
    lines = strength_lines("raters", outcome.by_people)
    if outcome.by_judge is not None and outcome.agreement is not None:
        lines = [agreement_words(outcome.agreement), *lines, *strength_lines("the judge", outcome.by_judge)]
    lines += [*off, *(notes(outcome.caution) if outcome.caution else []), *seen_words(outcome)]
    tell(outcome.as_json() | noted(off) | seen_counts(outcome), lines, as_json)
