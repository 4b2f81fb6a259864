"""The command that asks a judge in several styles, side by side: styles."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli.options import (
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
from core.cli.progress import calls_shown
from core.cli.words import in_words, number, tell
from core.errors import UsageError

if TYPE_CHECKING:
    from core.comparison.styles.records import StyleCell, StyleForecast, StylesEstimate
    from core.comparison.styles.run import FinishedStyle, GridResult, StyleGrid
    from core.judging.styles import Style
    from core.records import Criteria, GoldenSet

commands = typer.Typer(add_completion=False)


@commands.command()
def styles(
    golden: Golden,
    *,
    aspects: Annotated[list[str], typer.Option("--aspect", help="A human_<aspect>; once for each.")],
    judge: Annotated[str, typer.Option(help="openai:MODEL[@BASE_URL], scripted[:SEED].")],
    forms: Annotated[
        list[str] | None,
        typer.Option("--form", help="score_only, free_text, rate_explain, analyze_rate, mix; once for each."),
    ] = None,
    samples: Annotated[int, typer.Option(help="Replies that a score is the mean of.")] = 1,
    temperature: Annotated[float | None, typer.Option(help="0 for one sample, 1 for several.")] = None,
    top_p: Annotated[float, typer.Option("--top-p", help="Share of the probability that tokens are taken from.")] = 1.0,
    persona: Annotated[Literal["none", "helpful", "annotator"], typer.Option()] = "none",
    steps: Annotated[bool, typer.Option("--steps", help="The model writes evaluation steps first.")] = False,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="score_only by probability, where the endpoint tells it.")
    ] = False,
    pilot: Annotated[int | None, typer.Option(help="About that many items, of whole sources; else all.")] = None,
    criteria: Annotated[Path | None, typer.Option(help="A judge.yaml, or a text file of criteria.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most replies to ask for.")] = None,
    statistic: StatisticOption = "spearman",
    level: LevelOption = "auto",
    bootstrap: BootstrapOption = 1000,
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the verdicts, a file a style.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask a language model in several styles and align each with the people."""
    from core.comparison.styles.records import StylesRequest
    from core.comparison.styles.run import StyleGrid, estimate_grid, run_grid
    from core.data import load_golden
    from core.settings import Settings

    loaded = load_golden(golden)
    heat = temperature if temperature is not None else 1.0 if samples > 1 else 0.0
    chosen = _styles(forms or ["rate_explain"], samples, heat, top_p=top_p, persona=persona, weighted=weighted)
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
    given = _given_criteria(criteria, loaded, aspects)
    files = StyleGrid(loaded, request, given.criteria, given.seen, given.notes)
    settings = Settings.from_environment()
    typer.echo("\n".join(_words_of_estimate(estimate_grid(files, settings))), err=True)
    with calls_shown() as progress:
        found = run_grid(files, settings, reply_cache(judge), progress=progress)
    body = _body(found, files, out)
    tell(body, as_json, lambda _: _words(found, body))


# ── what is asked for ────────────────────────────────────────────────────────────────────────────────────────


def _styles(
    forms: Sequence[str], samples: int, temperature: float, *, weighted: bool, **others: Any
) -> tuple[Style, ...]:
    from core.judging.styles import Style

    if weighted and "score_only" not in forms:
        raise UsageError("--weighted needs --form score_only: the other forms hold no bare number to weigh.")
    return tuple(
        Style.from_json(
            {"form": form, "samples": samples, "temperature": temperature}
            | {"weighted": weighted and form == "score_only", **others}
        )
        for form in forms
    )


@dataclass(frozen=True)
class _Given:
    """Criteria from a file, by aspect, with the positions that they saw and what there is to say about that."""

    criteria: dict[str, Criteria]
    seen: dict[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()


def _given_criteria(path: Path | None, golden: GoldenSet, aspects: Sequence[str]) -> _Given:
    from core.export import read_card
    from core.records import Criteria

    if path is None:
        return _Given({}, {})
    if len(aspects) > 1:
        raise UsageError("--criteria is for one --aspect: criteria belong to the aspect they were written for.")
    aspect = aspects[0]
    if path.suffix in (".yaml", ".yml"):
        return _criteria_of_card(read_card(path), golden, aspect, path)
    text = text_file(path, "--criteria").strip()
    if not text:
        raise UsageError(f"--criteria: {path} is empty. Leave the option out to judge without criteria.")
    note = "Where the criteria come from is not known: if their author saw labels of these items, alignment flatters."
    return _Given({aspect: Criteria(text, aspect)}, {}, (note,))


def _criteria_of_card(card: dict[str, Any], golden: GoldenSet, aspect: str, path: Path) -> _Given:
    """The best single criteria of a judge file; what they saw follows from its split, on the same golden set."""
    from core.api.measures import split_for
    from core.calibration.settings import CalibrationSettings
    from core.errors import JudgeError
    from core.records import Criteria

    try:
        theirs, digest = str(card["task"]["aspect"]), str(card["golden"]["digest"])
        first = Criteria(str(card["criteria"][0]["text"]), theirs)
        chosen = CalibrationSettings.from_json(card["settings"])
    except (KeyError, TypeError, IndexError) as error:
        raise JudgeError(f"{path}: a part is missing or damaged ({error!r}). Export it again.") from error
    if theirs != aspect:
        raise UsageError(f"--criteria: {path} was calibrated on {theirs!r} and cannot judge {aspect!r}.")
    several = f"{path.name} averages {len(card['criteria'])} criteria; here the best single one is used."
    notes = [several] if len(card["criteria"]) > 1 else []
    if digest != golden.digest:
        notes.append("The criteria were calibrated on another golden set: if it shares items, alignment flatters.")
        return _Given({aspect: first}, {}, tuple(notes))
    seen = split_for(golden, aspect, chosen).calibration
    notes.append(f"Measured without the {len(seen)} items that the criteria were calibrated on.")
    return _Given({aspect: first}, {aspect: seen}, tuple(notes))


# ── what came out ────────────────────────────────────────────────────────────────────────────────────────────


def _body(found: GridResult, files: StyleGrid, out: Path | None) -> dict[str, Any]:
    """The one JSON object; writes the verdicts where a folder was named."""
    view = found.view
    body = {
        "judge": files.request.judge_spec,
        "golden": files.golden.name,
        "styles": [
            _cell_json(cell) | {"out": None if out is None else str(_write(out, cell, judge, files.golden))}
            for cell, judge in zip(view.cells, found.finished, strict=True)
        ],
        "unfinished": [{"aspect": one.aspect, "style": one.name, "reason": one.reason} for one in view.unfinished],
        "steps": dict(view.steps),
        "calls": view.calls,
        "requests": view.usage.requests,
        "cached": view.usage.cached,
        "cost": view.usage.cost,
        "stopped_early": view.stopped_early or None,
        "notes": list(view.notes),
        "out": None if out is None else str(out),
    }
    if out is not None:
        from core.files import write_text

        write_text(out / "styles.json", json.dumps(body, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    return body


def _cell_json(cell: StyleCell) -> dict[str, Any]:
    return {
        "aspect": cell.aspect,
        "style": cell.name,
        "settings": cell.style.as_json(),
        "criteria": cell.criteria_id or None,
        "alignment": cell.alignment.as_json(),
        "n_items": cell.n_asked,
        "n_seen": cell.n_seen,
        "n_replies": cell.n_replies,
        "n_unread": cell.n_unread,
        "n_unweighted": cell.n_unweighted,
        "calls": cell.calls,
        "requests": cell.usage.requests,
        "cost": cell.usage.cost,
        "forecast": None if cell.forecast is None else _forecast_json(cell.forecast),
    }


def _forecast_json(told: StyleForecast) -> dict[str, Any]:
    points = [
        {
            "n": point.n,
            "value": point.value,
            "interval": None if point.interval is None else [point.interval.low, point.interval.high],
            "calls": point.calls,
            "cost": point.cost,
        }
        for point in told.points
    ]
    return {
        "statistic": told.statistic,
        "level": told.level,
        "n_items": told.n_items,
        "n_labelled": told.n_labelled,
        "points": points,
        "reason": told.reason or None,
    }


def _write(out: Path, cell: StyleCell, finished: FinishedStyle, golden: GoldenSet) -> Path:
    """The verdicts of one style: a line an item that was asked, null where there is no score, with its replies."""
    from core.files import write_text

    why = {one.item_id: one for one in finished.judge.unscored}
    lines = []
    for item_id, value in zip(golden.item_ids, finished.judge.values.tolist(), strict=True):
        row: dict[str, Any] = {"item_id": item_id, "score": value, "replies": finished.replies.get(item_id, ())}
        if item_id in why:
            row |= {"score": None, "reason": why[item_id].reason, "detail": why[item_id].detail}
        elif item_id not in finished.replies:
            continue
        lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    path = out / f"{_file_name(f'{cell.aspect} {cell.name}')}.jsonl"
    write_text(path, "".join(lines))
    return path


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text).strip("-.")[:100]


def _words_of_estimate(told: StylesEstimate) -> list[str]:
    lines = []
    for cell in told.cells:
        left_out = "" if cell.affordable else ", beyond the budget"
        lines.append(f"  {cell.aspect}, {cell.style}: {cell.calls:,} calls{_price(cell.cost)}{left_out}")
    tokens = "" if told.prompt_tokens is None else f", about {told.prompt_tokens:,} prompt tokens"
    return [*lines, f"About {told.calls:,} calls{tokens}{_price(told.cost)}.", *told.notes]


def _words(found: GridResult, body: dict[str, Any]) -> list[str]:
    lines = []
    for cell in found.view.cells:
        price = _price(cell.usage.cost)
        seen = f", {cell.n_seen} seen by the criteria left out" if cell.n_seen else ""
        lines += [
            f"{cell.aspect}, {cell.name}",
            f"  {in_words(cell.alignment)}{seen}",
            f"  {cell.n_unread:,} of {cell.n_replies:,} replies unread, {cell.calls:,} calls{price}",
        ]
        if cell.forecast is not None:
            lines += _words_of_forecast(cell.forecast)
    lines += [f"not run: {one.aspect}, {one.name}: {one.reason}" for one in found.view.unfinished]
    lines += [f"Note: {note}" for note in found.view.notes]
    return [*lines, f"Written to {body['out']}"] if body["out"] else lines


def _words_of_forecast(told: StyleForecast) -> list[str]:
    if told.reason:
        return [f"  no forecast: {told.reason}"]
    lines = [f"  forecast from {told.n_items} items, {told.statistic}, {told.level} level:"]
    for point in told.points:
        interval = f" [{point.interval.low:.3f}, {point.interval.high:.3f}]" if point.interval else ""
        asked = f"{point.calls:,} calls on {told.n_labelled:,} items{_price(point.cost)}"
        lines.append(f"    {point.n:>3} calls an item: {number(point.value)}{interval}, {asked}")
    return lines


def _price(cost: float | None) -> str:
    return f", about ${cost:,.2f}" if cost else ""
