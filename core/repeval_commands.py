"""The command that reads text quality out of a model's hidden states: repeval."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.commands import (
    AspectOption,
    BootstrapOption,
    Golden,
    JsonFlag,
    LevelOption,
    SeedOption,
    StatisticOption,
    chosen_level,
    number,
    tell,
)

if TYPE_CHECKING:
    from core.records import GoldenSet
    from core.repeval import Extraction, ModelSpec, RepEvalResult, States

reading = typer.Typer(add_completion=False)
Progress = Callable[[int, int], None]


@reading.command()
def repeval(
    golden: Golden,
    *,
    aspect: AspectOption,
    out: Annotated[Path, typer.Option(help="Folder for heatmap.html, scores.jsonl and summary.json.")],
    model: Annotated[str, typer.Option(help="minilm (comes with Concord), a Hugging Face id, or a folder.")] = "minilm",
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a Hugging Face id.")] = None,
    method: Annotated[
        Literal["ridge", "mean-difference", "paper-pca", "published", "paper-svm"], typer.Option()
    ] = "ridge",
    pairs: Annotated[int | None, typer.Option(help="Pairs of a good and a bad text (20; paper-svm 100).")] = None,
    within: Annotated[bool, typer.Option("--within-sources", help="Pair texts of one source only.")] = False,
    good: Annotated[float | None, typer.Option(help="Labels from here on are good (else the best 30 %).")] = None,
    bad: Annotated[float | None, typer.Option(help="Labels up to here are bad (else the worst 30 %).")] = None,
    texts: Annotated[
        Literal["prompt", "joined", "joined-context"],
        typer.Option(help="joined: source and text apart and compared; joined-context: context and text."),
    ] = "prompt",
    template: Annotated[str, typer.Option(help="A prompt by name or as text with {hypothesis}; else the text.")] = "",
    tokens: Annotated[list[str] | None, typer.Option("--token", help="-1, -2, …, first, mean; once for each.")] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longer texts are cut.")] = 2048,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Read hidden states, choose layer and token on validation, tell the alignment on test; heat map as HTML."""
    from dataclasses import replace

    from core.comparison import usual_level
    from core.data import load_golden
    from core.public import task_of
    from core.repeval import Extraction, ModelSpec, RepEvalSettings, run
    from core.repeval.drive import pairs_for, split_three

    loaded = load_golden(golden)
    task_of(loaded, aspect)
    level_used = chosen_level(level) or usual_level(loaded, aspect)
    settings = RepEvalSettings(method=method, statistic=statistic, level=level_used, seed=seed, resamples=bootstrap)
    rule = replace(settings.pair_rule, within_source=within, good=good, bad=bad)
    settings = replace(settings, pairs=rule if pairs is None else replace(rule, n=pairs))
    extraction = Extraction(template, aspect, texts, tuple(tokens or ()), max_tokens=max_tokens)
    pairs_for(loaded, aspect, split_three(loaded, aspect, settings), settings)  # what is wrong shows before the reading
    states = _states(loaded, ModelSpec(model, revision), extraction)
    result = run(loaded, aspect, states, settings)
    body = result.as_json() | {"out": str(out)}
    _write(out, loaded, result, body)
    tell(body, as_json, lambda _: _words(result, body))


def _states(golden: GoldenSet, spec: ModelSpec, extraction: Extraction) -> States:
    """The states of all items; kept in CONCORD_HOME, so that a command that was stopped goes on."""
    from core.repeval import extract
    from core.settings import Settings

    with _progress() as show:
        settings = Settings.from_environment()
        return extract(golden, spec, extraction, settings.home, show, ray=settings.ray, code=settings.remote_code)


def _write(out: Path, golden: GoldenSet, result: RepEvalResult, body: dict[str, Any]) -> None:
    from core.export import write_text

    parts = {k: name for name in ("train", "validation", "test") for k in getattr(result.parts, name)}
    lines = [
        json.dumps({"item_id": item_id, "score": value, "part": parts.get(k)}, ensure_ascii=False, allow_nan=False)
        for k, (item_id, value) in enumerate(zip(golden.item_ids, result.scores.tolist(), strict=True))
    ]
    write_text(out / "heatmap.html", heat_page(result))
    write_text(out / "scores.jsonl", "".join(line + "\n" for line in lines))
    write_text(out / "summary.json", json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def heat_page(result: RepEvalResult) -> str:
    """One HTML page that needs no network: the heat map, the curve over layers, the random directions."""
    import html

    from core.report.figures import describe, measure_name
    from core.report.figures.repeval import Heat, heat_figure, layers_figure, random_figure

    measure = measure_name(result.settings.statistic, result.settings.level)
    used = tuple((cell.layer, cell.token) for cell in result.members[1:])
    heat = Heat(result.layers, result.tokens, result.cells, (result.chosen.layer, result.chosen.token), used)
    figures = [heat_figure(heat, measure=measure), layers_figure(heat, measure=measure)]
    if result.random is not None:
        told = result.random
        figures.append(random_figure(told.values, told.flipped, told.projection, measure=measure))
    shown = [
        figure.to_html(full_html=False, include_plotlyjs=place == 0, config={"displaylogo": False})
        for place, figure in enumerate(figures)
    ]
    title = html.escape(f"RepEval: {result.aspect}, {result.method}, {result.model}")
    said = html.escape(
        f"{measure}. Test {describe(result.test)}, n = {result.test.n}; validation {describe(result.validation)}, "
        f"n = {result.validation.n}. Thick frame: the best cell on validation; dotted: averaged into the score; grey "
        "and hatched: undefined."
    )
    style = "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2rem auto;color:#14202E}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"</head><body><h1>{title}</h1><p>{said}</p>{''.join(shown)}</body></html>\n"
    )


def _words(result: RepEvalResult, body: dict[str, Any]) -> list[str]:
    from core.commands import in_words

    k = f", k {result.chosen.k}" if result.chosen.k else ""
    several = f"mean of {len(result.members)} cells, the best at " if len(result.members) > 1 else ""
    learnt = f"{result.n_pairs} pairs" if result.n_pairs else f"{len(result.parts.train)} training labels"
    lines = [
        f"{result.aspect}: {result.method} from {learnt}; {several}layer {result.chosen.layer}, "
        f"token {result.chosen.token}{k}",
        f"test        {in_words(result.test)}",
        f"validation  {in_words(result.validation)}",
    ]
    if result.optimism is not None:
        lines.append(f"validation minus test: {result.optimism:+.3f}; the choice was made on validation, believe test")
    if result.random is not None and result.random.percentile is not None:
        lines.append(
            f"best cell: test {number(result.random.projection)}, above {result.random.percentile:.1f} % of "
            f"{result.random.values.size:,} random directions"
        )
    if result.states["tokens"]:
        pace = result.states["tokens"] / max(result.states["seconds"], 1e-9)
        lines.append(f"{result.states['tokens']:,} tokens read on {result.states['device']}, {pace:,.0f} tokens/s")
    return [*lines, *(f"Note: {one}" for one in result.warnings), f"Written to {body['out']}"]


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on standard error, in texts."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("reading texts"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task("", total=None)
        yield lambda done, total: bar.update(job, completed=done, total=total)
