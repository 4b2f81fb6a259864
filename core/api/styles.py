"""A judge asked in several styles, from Python or the command line: what is asked, and what comes back as files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.api.measures import split_for
from core.calibration.settings import CalibrationSettings
from core.comparison.styles import StyleCell, StyleGrid
from core.comparison.styles_run import FinishedStyle, GridResult
from core.errors import JudgeError, UsageError
from core.export import read_card
from core.files import small_text, write_json, write_text
from core.json_form import json_fields
from core.judging.styles import Style
from core.records import Criteria, GoldenSet
from core.stats.pilot import Forecast


def styles_of(
    forms: Sequence[str], samples: int = 1, temperature: float | None = None, *, weighted: bool = False, **others: Any
) -> tuple[Style, ...]:
    """A style for each of `forms`; `temperature` None is 0 for one sample and 1 for several.

    `others` are fields of `Style` that all have in common; a likelihood is read once, whatever `samples` says.
    UsageError for a form that is none, and for `weighted` without the form score_only, which alone is weighted.
    """
    if weighted and "score_only" not in forms:
        raise UsageError("--weighted needs --form score_only: the other forms hold no bare number to weigh.")
    if temperature is None:
        temperature = 1.0 if samples > 1 else 0.0
    common = {"samples": samples, "temperature": temperature, **others}
    return tuple(
        Style.from_json(
            common
            | {"form": form, "weighted": weighted and form == "score_only"}
            | ({"samples": 1, "temperature": 0.0} if form == "likelihood" else {})
        )
        for form in forms
    )


@dataclass(frozen=True)
class FileCriteria:
    """Criteria from a file, by aspect, with the positions that they saw and what there is to say about that."""

    criteria: Mapping[str, Criteria] = field(default_factory=dict)
    seen: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def criteria_from(path: Path, golden: GoldenSet, aspects: Sequence[str]) -> FileCriteria:
    """The criteria of a text file, or the best single criteria of a judge file, for the only one of `aspects`.

    What criteria of a judge file saw follows from its split, on the same golden set.
    """
    if len(aspects) > 1:
        raise UsageError("--criteria is for one --aspect: criteria belong to the aspect they were written for.")
    aspect = aspects[0]
    if path.suffix not in (".yaml", ".yml"):
        text = small_text(path, "--criteria").strip()
        if not text:
            raise UsageError(f"--criteria: {path} is empty. Leave the option out to judge without criteria.")
        origin = "Where the criteria come from is not known: if their author saw labels of these items, alignment"
        return FileCriteria({aspect: Criteria(text, aspect)}, notes=(f"{origin} is optimistic.",))
    card = read_card(path)
    try:
        own_aspect, digest = str(card["task"]["aspect"]), str(card["golden"]["digest"])
        criteria = {aspect: Criteria(str(card["criteria"][0]["text"]), own_aspect)}
        chosen = CalibrationSettings.from_json(card["settings"])
    except (KeyError, TypeError, IndexError) as error:
        raise JudgeError(f"{path}: a part is missing or damaged ({error!r}). Export it again.") from error
    if own_aspect != aspect:
        raise UsageError(f"--criteria: {path} was calibrated on {own_aspect!r} and cannot judge {aspect!r}.")
    several = f"{path.name} averages {len(card['criteria'])} criteria; here the best single one is used."
    notes = [several] if len(card["criteria"]) > 1 else []
    if digest != golden.digest:
        notes.append("The criteria were calibrated on another golden set: if it shares items, alignment is optimistic.")
        return FileCriteria(criteria, notes=tuple(notes))
    seen = split_for(golden, aspect, chosen).calibration
    notes.append(f"Measured without the {len(seen)} items that the criteria were calibrated on.")
    return FileCriteria(criteria, {aspect: seen}, tuple(notes))


def save_styles(grid: StyleGrid, result: GridResult, out: Path | None) -> dict[str, Any]:
    """What `styles --json` prints; with `out` the verdicts, a file a style, and `styles.json` are written there."""
    view = result.view
    names = _file_names([f"{cell.aspect} {cell.name}" for cell in view.cells])
    body = {
        "judge": grid.request.judge_spec,
        "golden": grid.golden.name,
        "styles": [
            _cell_json(cell) | {"out": None if out is None else str(_write(out / name, finished, grid.golden))}
            for cell, name, finished in zip(view.cells, names, result.finished, strict=True)
        ],
        "unfinished": [{"aspect": cell.aspect, "style": cell.name, "reason": cell.reason} for cell in view.unfinished],
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
        write_json(out / "styles.json", body, indent=2)
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


def _forecast_json(forecast: Forecast) -> dict[str, Any]:
    points = [
        json_fields(point, but=("interval",)) | {"interval": point.interval and point.interval.as_json()}
        for point in forecast.points
    ]
    return json_fields(forecast, but=("points",)) | {"points": points}


def _file_names(titles: Sequence[str]) -> list[str]:
    """A file name for each title, none twice; short enough for any disk in any script (255 bytes)."""
    names: list[str] = []
    for title in titles:
        stem = re.sub(r"[^\w.]+", "-", title).strip("-.")
        stem = stem.encode("utf-8")[:150].decode("utf-8", "ignore") or "style"
        tries = (stem, *(f"{stem}-{n}" for n in range(2, len(titles) + 2)))
        taken = {name.casefold() for name in names}
        names.append(next(f"{one}.jsonl" for one in tries if f"{one}.jsonl".casefold() not in taken))
    return names


def _write(file: Path, finished: FinishedStyle, golden: GoldenSet) -> Path:
    """The verdicts of one style: a line an item that was asked, null where there is no score, with its replies."""
    unscored = {verdict.item_id: verdict for verdict in finished.judge.unscored}
    lines = []
    for item_id, value in zip(golden.item_ids, finished.judge.values.tolist(), strict=True):
        row: dict[str, Any] = {"item_id": item_id, "score": value, "replies": finished.replies.get(item_id, ())}
        if verdict := unscored.get(item_id):
            row |= {"score": None, "reason": verdict.reason, "detail": verdict.detail}
        elif item_id not in finished.replies:
            continue
        lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(file, "".join(lines))
    return file
