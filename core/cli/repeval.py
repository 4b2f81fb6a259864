"""The command `repeval`: fit a score on hidden states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.cli.options import (
    AspectOption,
    GoldenFile,
    PrintOptions,
    with_options,
)
from core.cli.output import alignment_words, cautions, stages_shown, tell, written_to
from core.stats import MeasureSettings
from core.wording import number, signed

if TYPE_CHECKING:
    from core.repeval import RepEvalResult

commands = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class ReadingOptions:
    """Which model reads which texts, and how a score is fitted on its states."""

    model: Annotated[str, typer.Option(help="minilm (comes with Concord), a Hugging Face id, or a folder.")] = "minilm"
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a Hugging Face id.")] = None
    method: Annotated[
        Literal["ridge", "paper-pca", "paper-svm"],
        typer.Option(help="ridge: the mean of the best cells; paper-pca and paper-svm: one cell, as in the paper."),
    ] = "ridge"
    pairs: Annotated[int | None, typer.Option(help="Pairs of a good and a bad text (20; paper-svm 100).")] = None
    texts: Annotated[
        Literal["compared", "prompt"] | None,
        typer.Option(
            help="compared: text, source and context apart, and the distance between (MiniLM's default); prompt: the "
            "text alone or in a template."
        ),
    ] = None
    template: Annotated[str, typer.Option(help="A prompt by name or as text with {hypothesis}; else the text.")] = ""
    tokens: Annotated[list[str] | None, typer.Option("--token", help="-1, -2, …, first, mean; once for each.")] = None
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longer texts are cut.")] = 2048


@commands.command(rich_help_panel="Methods")
@with_options
def repeval(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    out: Annotated[Path, typer.Option(help="Folder for repeval.yaml, heatmap.html, scores.jsonl and summary.json.")],
    how: ReadingOptions,
    train_on: Annotated[
        Path | None, typer.Option("--train-on", help="Another golden set that teaches it; GOLDEN is only rated.")
    ] = None,
    train_aspect: Annotated[
        str, typer.Option("--train-aspect", help="The aspect of that set, where it has another name.")
    ] = "",
    measured: MeasureSettings,
    printed: PrintOptions,
) -> None:
    """Read text quality out of a model's hidden states, with a heat map."""
    from core.repeval import Extraction, ModelSpec, RepEvalSettings, usual_texts
    from core.repeval.fitted import fit_repeval

    texts, tokens = how.texts or usual_texts(how.model, how.template), tuple(how.tokens or ())
    settings = RepEvalSettings(
        method=how.method,
        model=ModelSpec(how.model, how.revision),
        reading=Extraction(how.template, aspect, texts, tokens, max_tokens=how.max_tokens),
        statistic=measured.statistic,
        level=measured.level,
        seed=measured.seed,
        resamples=measured.bootstrap,
    )
    if how.pairs is not None:
        settings = replace(settings, pairs=replace(settings.pair_rule, n=how.pairs))
    with stages_shown("texts") as progress:
        fitted = fit_repeval(
            golden.load(),
            aspect,
            settings,
            train_on=None if train_on is None else replace(golden, golden=train_on, ranks=None, sheet=None).load(),
            train_aspect=train_aspect,
            progress=progress,
        )
    body = fitted.save(out)
    lines = _repeval_words(fitted.result)
    warnings, moved = list(fitted.result.warnings), fitted.transfer
    if moved is not None:
        lines.append(f"The figures above are of {fitted.golden.name}. Applied: {alignment_words(moved.alignment)}")
        warnings += moved.warnings
    tell(body, [*lines, *cautions(warnings, printed.verbose), *written_to(body["out"])], printed.as_json)


def _repeval_words(result: RepEvalResult) -> list[str]:
    k = f", k {result.chosen.k}" if result.chosen.k else ""
    several = f"mean of {len(result.members)} cells, the best at " if len(result.members) > 1 else ""
    learnt = f"{result.n_pairs} pairs" if result.n_pairs else f"{len(result.parts.train)} labels"
    lines = [
        f"{result.aspect}: {result.method} from {learnt}; {several}layer {result.chosen.layer}, "
        f"token {result.chosen.token}{k}",
        f"test        {alignment_words(result.test)}",
        f"validation  {alignment_words(result.validation)}",
    ]
    if result.optimism is not None:
        where = "by folds of the same labels" if result.by_folds else "on validation"
        lines.append(f"validation minus test: {signed(result.optimism)}; the choice was made {where}, believe test")
    if result.random is not None and result.random.percentile is not None:
        lines.append(
            f"best cell: test {number(result.random.projection)}, above {result.random.percentile:.1f} % of "
            f"{result.random.values.size:,} random directions"
        )
    if result.states["tokens"]:
        pace = result.states["tokens"] / max(result.states["seconds"], 1e-9)
        lines.append(f"{result.states['tokens']:,} tokens read on {result.states['device']}, {pace:,.0f} tokens/s")
    return lines
