"""The command that calibrates a judge: calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
    AspectOption,
    Golden,
    JsonFlag,
    LevelOption,
    SeedOption,
    StatisticOption,
    chosen_level,
    read_scale,
    reply_cache,
)
from core.cli.progress import calls_shown
from core.cli.words import alignment_line, tell

if TYPE_CHECKING:
    from core.calibration.records import Estimate

commands = typer.Typer(add_completion=False)


@commands.command()
def calibrate(
    golden: Golden,
    *,
    aspect: AspectOption,
    judge: Annotated[str, typer.Option(help="offline, openai:MODEL[@BASE_URL], scripted[:SEED].")] = "offline",
    preset: Annotated[str, typer.Option(help="summarisation, data-to-text, hallucination, quick.")] = "summarisation",
    revisit: Annotated[Literal["racing", "full"], typer.Option()] = "racing",
    rounds: Annotated[int, typer.Option(help="Refinement rounds.")] = 1,
    keep: Annotated[int, typer.Option(help="Criteria refined in each round (K).")] = 4,
    ensemble: Annotated[int, typer.Option(help="Best criteria averaged in the final judge; 1 = argmax.")] = 3,
    budget: Annotated[int | None, typer.Option(help="Most calls the run may make.")] = None,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    split: Annotated[Literal["sources", "sources+systems"], typer.Option()] = "sources",
    share: Annotated[float, typer.Option("--calibration-share", help="Share of the sources for calibration.")] = 0.5,
    scale: Annotated[str, typer.Option(help="LO-HI, where the labels do not show the whole scale.")] = "",
    definition: Annotated[str, typer.Option(help="The aspect in a sentence, for the judge.")] = "",
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for judge.yaml and the other files.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Draft, rank and refine criteria; report the calibrated judge on held-out items."""
    from core.api.calibrated import calibrate as run
    from core.api.calibrated import estimate
    from core.calibration.settings import CalibrationSettings
    from core.data import load_golden

    chosen = CalibrationSettings(
        preset=preset,
        revisit=revisit,
        rounds=rounds,
        keep=keep,
        ensemble=ensemble,
        budget=budget,
        statistic=statistic,
        level=chosen_level(level),
        split=split,
        calibration_share=share,
        seed=seed,
    )
    loaded = load_golden(golden, scales={aspect: read_scale(scale)} if scale else None)
    typer.echo(_words_of_estimate(estimate(loaded, aspect, judge, settings=chosen)), err=True)
    cache = reply_cache(judge)
    with calls_shown() as progress:
        result = run(loaded, aspect, judge, settings=chosen, definition=definition, replies=cache, progress=progress)
    tell(result.as_json() if out is None else result.save(out), as_json, _words_of_calibration)


def _words_of_estimate(told: Estimate) -> str:
    tokens = f", about {told.prompt_tokens:,} prompt tokens" if told.prompt_tokens else ""
    price = f", about ${told.cost:,.2f}" if told.cost else ""
    sides = f"{told.n_calibration} calibration and {told.n_held_out} held-out items"
    few = f"\n{told.few_labels}" if told.few_labels else ""
    lines = [f"About {told.calls:,} calls{tokens}{price} on {sides}.{few}", *(f"Note: {one}" for one in told.notes)]
    return "\n".join(lines)


def _words_of_calibration(body: dict[str, Any]) -> list[str]:
    measured = body["held_out"]
    lines = [
        f"{body['aspect']}: {body['candidates']} criteria, {body['calls']} calls, {body['seconds']:.1f} s",
        body["work"]["words"],
        f"{measured['statistic']}, {measured['level']} level",
        alignment_line("held-out", body["held_out"]),
        alignment_line("held-out, no criteria", body["no_criteria"]["held_out"]),
        _words_of_gain(body["gain"]),
        alignment_line("calibration (flatters)", body["calibration"]),
        alignment_line("calibration, no criteria", body["no_criteria"]["calibration"]),
        "Criteria of the final judge:",
        *(f"  - {' '.join(text.split())}" for text in body["criteria"]),
        *(f"Note: {warning}" for warning in body["warnings"]),
        *(f"Note: {one}" for one in body["work"]["left_out"]),
    ]
    return [*lines, f"Written to {body['out']}"] if body["out"] else lines


def _words_of_gain(gain: dict[str, Any]) -> str:
    from core.records import Interval
    from core.stats import difference_figures

    ends = None if gain["interval"] is None else Interval(*gain["interval"])
    figures = difference_figures(gain["value"], ends, gain["p"])
    return f"  {'gain over no criteria':<28}{figures}, n = {gain['n']} that both scored"
