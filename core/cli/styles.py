"""The `styles` command, which compares styles of asking a judge."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import AspectOption, GoldenFile, StyleOptions, command, reply_cache
from core.cli.output import alignment_words, notes, spent, stages_shown, tell, written_to
from core.errors import UsageError
from core.files import write_json, write_text
from core.records import setting
from core.stats import MeasureSettings
from core.wording import price_words

if TYPE_CHECKING:
    from core.comparison.style_grid import ComparedStyles, Replies, StylesView
    from core.judging.scoring_styles import Style
    from core.records import GoldenSet, JudgeScores


FORMS = "Form of the reply: score_only, free_text, stars, rate_explain or analyze_rate. You can repeat this option."


@dataclass(frozen=True)
class GridOptions:
    """Options for the `styles` command: reply forms, number of items, budget and output."""

    pilot: int | None = setting(
        None, "Approximate number of items to use (default: all). Items from the same source stay together."
    )
    budget_usd: float | None = setting(None, "Maximum cost of the run in dollars.", low=0)
    forms: Annotated[list[str] | None, typer.Option("--form", help=FORMS)] = None
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the verdicts, one file per style.")] = None


@command("Methods")
def styles(
    golden: GoldenFile,
    *,
    aspect: AspectOption,
    judge: Annotated[str, typer.Option(help="openai:MODEL, openai:MODEL@URL, hf:ID_OR_PATH, scripted[:SEED].")],
    how: StyleOptions,
    sampled: GridOptions,
    measured: MeasureSettings,
) -> None:
    """Ask a language model in several styles, and compare how well each style agrees with the raters."""
    from core.comparison.style_grid import StylesSettings, estimate_of_styles
    from core.comparison.style_grid import styles as compared_styles
    from core.judging.judge_specs import NAMED, language_model
    from core.settings import Settings

    loaded = golden.load()
    settings = StylesSettings(
        _styles_of(judge, sampled.forms or ["rate_explain"], how),
        auto_steps=how.steps,
        n_items=sampled.pilot,
        budget_usd=sampled.budget_usd,
        seed=measured.seed,
        statistic=measured.statistic,
        level=measured.level,
    )
    with closing(language_model(judge, Settings.from_environment(), reply_cache(judge), gate=NAMED)) as model:
        first = estimate_of_styles(loaded, aspect, model, settings)
        tokens = "" if first.prompt_tokens is None else f", about {first.prompt_tokens:,} prompt tokens"
        typer.echo(f"About {first.calls:,} calls{tokens}{price_words(first.cost)}.", err=True)
        with stages_shown() as progress:
            result = compared_styles(loaded, aspect, model, settings, progress=progress)
    body = _saved(judge, loaded, aspect, result, sampled.out)
    tell(body, [*_words(result.view, aspect), *written_to(body["out"])])
    if not result.view.cells:
        raise typer.Exit(1)


def _words(view: StylesView, aspect: str) -> list[str]:
    lines = []
    for cell in view.cells:
        unread = f"{cell.n_unread:,} of {cell.n_replies:,} replies unread{spent(asdict(cell.usage))}"
        lines += [f"{aspect}, {cell.name}", f"  {alignment_words(cell.alignment)}", f"  {unread}"]
    lines += [f"not run: {aspect}, {style.name}: {style.reason}" for style in view.unfinished]
    return [*lines, *notes(*view.notes)]


def _styles_of(judge: str, forms: Sequence[str], how: StyleOptions) -> tuple[Style, ...]:
    """Return a style for each form. Only score_only is weighted."""
    if how.weighted and "score_only" not in forms:
        raise UsageError("--weighted requires --form score_only, because the other forms don't return a bare number.")
    how = replace(how, samples=how.samples or 1, steps=False)
    return tuple(replace(how, weighted=how.weighted and form == "score_only").style(judge, form) for form in forms)


def _saved(judge: str, golden: GoldenSet, aspect: str, result: ComparedStyles, out: Path | None) -> dict[str, Any]:
    """Return the JSON of `styles`; with `out`, also write `styles.json` and the verdicts of each style."""
    view = result.view
    titles = [re.sub(r"[^\w.]+", "-", f"{aspect} {cell.name}").encode()[:150] for cell in view.cells]
    names = [f"{n}-{title.decode('utf-8', 'ignore').strip('-')}.jsonl" for n, title in enumerate(titles, 1)]
    body = {
        "judge": judge,
        "golden": golden.name,
        "styles": [
            {
                "aspect": aspect,
                "style": cell.name,
                "settings": cell.style.as_json(),
                "alignment": cell.alignment.as_json(),
                "n_items": cell.n_asked,
                "n_replies": cell.n_replies,
                "n_unread": cell.n_unread,
                "n_unweighted": cell.n_unweighted,
                "calls": cell.n_replies,
                "requests": cell.usage.requests,
                "cost": cell.usage.cost,
                "out": None if out is None else str(_write(out / name, scores, replies, golden)),
            }
            for cell, name, scores, replies in zip(view.cells, names, result.judges, result.replies, strict=True)
        ],
        "unfinished": [{"aspect": aspect, "style": cell.name, "reason": cell.reason} for cell in view.unfinished],
        "steps": dict(view.steps),
        "stopped_early": view.stopped_early,
        "calls": view.calls,
        "requests": view.usage.requests,
        "cached": view.usage.cached,
        "cost": view.usage.cost,
        "notes": list(view.notes),
        "out": None if out is None else str(out),
    }
    if out is not None:
        write_json(out / "styles.json", body, indent=2)
    return body


def _write(file: Path, judge: JudgeScores, replies: Replies, golden: GoldenSet) -> Path:
    """Write the verdicts of a style: one line per judged item, with its replies, and null if unscored."""
    unscored = {verdict.item_id: verdict for verdict in judge.unscored}
    lines = []
    for item_id, value in zip(golden.item_ids, judge.values.tolist(), strict=True):
        row: dict[str, Any] = {"item_id": item_id, "score": value, "replies": replies.get(item_id, ())}
        if verdict := unscored.get(item_id):
            row |= {"score": None, "reason": verdict.reason, "detail": verdict.detail}
        elif item_id not in replies:
            continue
        lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(file, "".join(lines))
    return file
