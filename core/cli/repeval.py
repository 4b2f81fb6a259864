"""RepEval from the command line: fit a score on hidden states, and the table of transfer between sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.cli.options import (
    AspectOption,
    BootstrapOption,
    Golden,
    JsonFlag,
    LevelOption,
    RanksOption,
    SeedOption,
    StatisticOption,
    chosen_level,
    chosen_ranks,
)
from core.cli.output import (
    alignment_words,
    notes,
    number,
    progress_bar,
    signed,
    tell,
    written_to,
)
from core.errors import UsageError
from core.wording import counted

if TYPE_CHECKING:
    from core.api.asked import Prompted
    from core.api.transfer_table import Rated
    from core.repeval import RepEvalResult, Transfer

commands = typer.Typer(add_completion=False)

TrainOn = Annotated[
    Path | None, typer.Option("--train-on", help="Another golden set that teaches it; GOLDEN is only rated.")
]
TrainAspect = Annotated[str, typer.Option("--train-aspect", help="The aspect of that set, where it has another name.")]

TextsOption = Annotated[
    Literal["compared", "prompt", "joined", "joined-context"] | None,
    typer.Option(
        help="compared: text, source and context apart, and the distance between (MiniLM's default); prompt: the text "
        "alone or in a template; joined: u-v, |u-v| and u*v of source and text; joined-context: of context and text."
    ),
]
Question = Annotated[
    Path | None,
    typer.Option("--judge-file", help="judge.yaml of an hf: judge: read what it asks; one pass gives its score too."),
]


@commands.command(rich_help_panel="Methods")
def repeval(
    golden: Golden,
    *,
    aspect: AspectOption,
    out: Annotated[Path, typer.Option(help="Folder for repeval.yaml, heatmap.html, scores.jsonl and summary.json.")],
    model: Annotated[str, typer.Option(help="minilm (comes with Concord), a Hugging Face id, or a folder.")] = "minilm",
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a Hugging Face id.")] = None,
    method: Annotated[
        Literal["ridge", "mean-difference", "paper-pca", "published", "paper-svm"], typer.Option()
    ] = "ridge",
    pairs: Annotated[int | None, typer.Option(help="Pairs of a good and a bad text (20; paper-svm 100).")] = None,
    within: Annotated[bool, typer.Option("--within-sources", help="Pair texts of one source only.")] = False,
    good: Annotated[float | None, typer.Option(help="Labels from here on are good (else the best 30 %).")] = None,
    bad: Annotated[float | None, typer.Option(help="Labels up to here are bad (else the worst 30 %).")] = None,
    texts: TextsOption = None,
    template: Annotated[str, typer.Option(help="A prompt by name or as text with {hypothesis}; else the text.")] = "",
    tokens: Annotated[list[str] | None, typer.Option("--token", help="-1, -2, …, first, mean; once for each.")] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longer texts are cut.")] = 2048,
    judge_file: Question = None,
    train_on: TrainOn = None,
    train_aspect: TrainAspect = "",
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    ranks: RanksOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Read text quality out of a model's hidden states, with a heat map."""
    from core.api.fitted import fit_repeval
    from core.data import load_golden

    with progress_bar("texts") as show:
        fitted = fit_repeval(
            load_golden(golden, ranks=chosen_ranks(ranks)),
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
            judge_file=judge_file,
            train_on=None if train_on is None else load_golden(train_on),
            train_aspect=train_aspect,
            statistic=statistic,
            level=chosen_level(level),
            bootstrap=bootstrap,
            seed=seed,
            on_progress=lambda done, of: show("reading texts", done, of),
        )
    body = fitted.save(out)
    moved = [*_prompted_words(fitted.prompted), *_transfer_words(fitted.transfer)]
    words = [*_repeval_words(fitted.result), *moved, *written_to(body["out"])]
    tell(body, words, as_json)


@commands.command("repeval-table", rich_help_panel="Methods")
def repeval_table(
    sets: Annotated[list[str], typer.Argument(metavar="GOLDEN:ASPECT…", help="Golden sets to apply the scores to.")],
    *,
    train_on: Annotated[
        list[str] | None, typer.Option("--train-on", help="GOLDEN:ASPECT that teaches; by default each of the sets.")
    ] = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="METHOD or METHOD:PAIRS; by default those of 003, and ridge.")
    ] = None,
    model: Annotated[str, typer.Option(help="minilm, a Hugging Face id, or a folder.")] = "minilm",
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a Hugging Face id.")] = None,
    template: Annotated[str, typer.Option(help="A prompt by name or as text with {hypothesis}; else the text.")] = "",
    texts: TextsOption = None,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "dataset",
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for table.md and summary.json.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """RepEval fitted on some golden sets and applied to others, beside what 003 prints in its Table 1."""
    from core.api.transfer_table import VARIANTS, transfer_table

    table = transfer_table(
        [_rated(name) for name in sets],
        [_rated(name) for name in train_on or ()],
        variants=variant or VARIANTS,
        model=model,
        revision=revision,
        template=template,
        texts=texts,
        statistic=statistic,
        level=chosen_level(level) or "dataset",
        bootstrap=bootstrap,
        seed=seed,
        on_cell=lambda cell: typer.echo(f"{cell.variant}: {cell.trained_on} → {cell.applied_to}", err=True),
    )
    body = table.as_json() if out is None else table.save(out)
    missing = dict.fromkeys(
        f"{cell.variant}, {cell.trained_on} → {cell.applied_to}: {cell.reason}" for cell in table.cells if cell.reason
    )
    intervals = "95 % interval over sources" if bootstrap else "no intervals, as --bootstrap 0 asks"
    measure = f"{statistic}, {chosen_level(level) or 'dataset'} level, {intervals}"
    words = f"{measure}; own: fitted and evaluated on different sources of the same set"
    lacks = notes(*missing, *table.missing)
    tell(body, [words, "", table.markdown(), *lacks, *written_to(body.get("out", ""))], as_json)


def _rated(name: str) -> Rated:
    from core.api.transfer_table import Rated
    from core.data import load_golden

    path, colon, aspect = name.rpartition(":")
    if not (colon and path and aspect.strip()):
        raise UsageError(f"Name the aspect with each golden set, GOLDEN:ASPECT; {name!r} came.")
    return Rated(load_golden(path), aspect.strip())


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
    return [*lines, *notes(*result.warnings)]


def _prompted_words(prompted: Prompted | None) -> list[str]:
    if prompted is None:
        return []
    from core.stats import difference_figures

    gap = prompted.difference
    first = f", under the first of its {prompted.n_criteria} criteria" if prompted.n_criteria > 1 else ""
    unread = f"; it gave no score to {counted(prompted.n_unread, 'item')}" if prompted.n_unread else ""
    figures = difference_figures(gap.value, gap.interval, gap.p, gap.p_reason)
    return [
        f"judge       {alignment_words(prompted.alignment)}, its own score from the same pass{first}{unread}",
        f"probe minus judge: {figures}, n = {gap.n}; of sources that the judge was not calibrated on",
    ]


def _transfer_words(moved: Transfer | None) -> list[str]:
    if moved is None:
        return []
    lines = [f"The figures above are of {moved.trained_on}. Applied: {alignment_words(moved.transferred)}"]
    return [*lines, *notes(*moved.warnings)]
