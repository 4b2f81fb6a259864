"""The command that reads text quality out of a model's hidden states: repeval."""

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
)
from core.cli.progress import progress_bar
from core.cli.words import in_words, number, tell

if TYPE_CHECKING:
    from core.repeval import RepEvalResult

commands = typer.Typer(add_completion=False)


@commands.command()
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
    from core.api.fitted import fit_repeval
    from core.data import load_golden

    loaded = load_golden(golden)
    with progress_bar("texts") as show:
        fitted = fit_repeval(
            loaded,
            aspect,
            model=model,
            revision=revision,
            method=method,
            pairs=pairs,
            within_sources=within,
            good=good,
            bad=bad,
            texts=texts,
            template=template,
            tokens=tokens or (),
            max_tokens=max_tokens,
            statistic=statistic,
            level=chosen_level(level),
            bootstrap=bootstrap,
            seed=seed,
            on_progress=lambda done, of: show("reading texts", done, of),
        )
    body = fitted.save(out)
    tell(body, as_json, lambda _: _words(fitted.result, body))


def _words(result: RepEvalResult, body: dict[str, Any]) -> list[str]:

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
