"""The command that asks a judge in several styles, side by side: styles."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
    BootstrapOption,
    Golden,
    JsonFlag,
    LevelOption,
    MapOption,
    RanksOption,
    ReferencesOption,
    SeedOption,
    SheetOption,
    StatisticOption,
    StepsOption,
    ValuesOption,
    WeightedOption,
    chosen_level,
    chosen_ranks,
    reply_cache,
)
from core.cli.output import alignment_words, interval_words, notes, number, price, spent, stages_shown, tell, written_to

if TYPE_CHECKING:
    from core.comparison.styles import StylesEstimate
    from core.comparison.styles_run import GridResult
    from core.stats.pilot import Forecast


commands = typer.Typer(add_completion=False)
FORMS = "score_only, free_text, stars, rate_explain, analyze_rate, mix, likelihood (hf: alone); once each."


@commands.command(rich_help_panel="Methods")
def styles(
    golden: Golden,
    *,
    aspects: Annotated[list[str], typer.Option("--aspect", help="A human_<aspect>; once for each.")],
    judge: Annotated[str, typer.Option(help="openai:MODEL, openai:MODEL@URL, hf:ID_OR_PATH, scripted[:SEED].")],
    forms: Annotated[list[str] | None, typer.Option("--form", help=FORMS)] = None,
    samples: Annotated[int, typer.Option(help="Replies that a score is the mean of.")] = 1,
    temperature: Annotated[float | None, typer.Option(help="0 for one sample, 1 for several.")] = None,
    top_p: Annotated[float, typer.Option("--top-p", help="Share of the probability that tokens are taken from.")] = 1.0,
    persona: Annotated[Literal["none", "helpful", "annotator"], typer.Option()] = "none",
    steps: StepsOption = False,
    weighted: WeightedOption = False,
    with_references: ReferencesOption = False,
    pilot: Annotated[int | None, typer.Option(help="About that many items, of whole sources; else all.")] = None,
    criteria: Annotated[Path | None, typer.Option(help="A judge.yaml, or a text file of criteria.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most replies to ask for.")] = None,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the verdicts, a file a style.")] = None,
    ranks: RanksOption = None,
    values: ValuesOption = None,
    mapped: MapOption = None,
    sheet: SheetOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask a language model in several styles and compare their agreement."""
    from core.api.styles import FileCriteria, criteria_from, save_styles, styles_of
    from core.comparison.styles import StyleGrid, StylesRequest, estimate_grid
    from core.comparison.styles_run import run_grid
    from core.data import load_golden
    from core.settings import Settings

    loaded, settings = (
        load_golden(golden, ranks=chosen_ranks(ranks), values=values, mapping=mapped, sheet=sheet),
        Settings.from_environment(),
    )
    common: dict[str, Any] = {"top_p": top_p, "persona": persona, "references": with_references}
    chosen = styles_of(forms or ["rate_explain"], samples, temperature, weighted=weighted, **common)
    request = StylesRequest(
        project_id="",
        golden_id=loaded.digest,
        aspect=aspects[0],
        aspects=tuple(aspects),
        judge_spec=judge,
        styles=chosen,
        auto_steps=steps,
        n_items=pilot,
        budget=budget,
        seed=seed,
        statistic=statistic,
        level=chosen_level(level),
        resamples=bootstrap,
    )
    own = FileCriteria() if criteria is None else criteria_from(criteria, loaded, aspects)
    grid = StyleGrid(loaded, request, own.criteria, own.seen, own.notes)
    typer.echo("\n".join(_estimate_words(estimate_grid(grid, settings))), err=True)
    with stages_shown() as progress:
        result = run_grid(grid, settings, reply_cache(judge), keep_finished=True, progress=progress)
    body = save_styles(grid, result, out)
    tell(body, [*_words(result), *written_to(body["out"])], as_json)
    if not result.view.cells:
        raise typer.Exit(1)


def _estimate_words(estimate: StylesEstimate) -> list[str]:
    lines = []
    for cell in estimate.cells:
        left_out = "" if cell.affordable else ", beyond the budget"
        lines.append(f"  {cell.aspect}, {cell.style}: {cell.calls:,} calls{price(cell.cost)}{left_out}")
    tokens = "" if estimate.prompt_tokens is None else f", about {estimate.prompt_tokens:,} prompt tokens"
    return [*lines, f"About {estimate.calls:,} calls{tokens}{price(estimate.cost)}.", *estimate.notes]


def _words(result: GridResult) -> list[str]:
    lines = []
    for cell in result.view.cells:
        seen = f", {cell.n_seen} seen by the criteria left out" if cell.n_seen else ""
        unread = f"{cell.n_unread:,} of {cell.n_replies:,} replies unread"
        lines += [
            f"{cell.aspect}, {cell.name}",
            f"  {alignment_words(cell.alignment)}{seen}",
            f"  {unread}, {cell.calls:,} calls{spent(asdict(cell.usage))}",
            *([] if cell.forecast is None else _forecast_words(cell.forecast)),
        ]
    lines += [f"not run: {style.aspect}, {style.name}: {style.reason}" for style in result.view.unfinished]
    return [*lines, *notes(*result.view.notes)]


def _forecast_words(forecast: Forecast) -> list[str]:
    if forecast.reason:
        return [f"  no forecast: {forecast.reason}"]
    lines = [f"  forecast from {forecast.n_items} items, {forecast.statistic}, {forecast.level} level:"]
    for point in forecast.points:
        calls = f"{point.calls:,} calls on {forecast.n_labelled:,} items{price(point.cost)}"
        lines.append(f"    {point.n:>3} calls an item: {number(point.value)}{interval_words(point.interval)}, {calls}")
    return lines
