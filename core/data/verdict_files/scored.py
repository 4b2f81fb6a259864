"""Scores of a table of any length with the system and source of each item, in columns: a million rows in seconds.

Rows are taken many at a time and never become records.  What is no plain table of scores (replies, samples, the outputs
of batches and evals) is not read here: `read_scored` gives None for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from core.data.cells import aspect_key, read_id, shown
from core.data.columns import ALIASES, by_name
from core.data.tables import TableFile, column_names, csv_cells
from core.data.verdict_files.columns import propose_columns
from core.data.verdict_files.json_columns import ROWS, Chunk, json_columns
from core.data.verdict_files.match import default_use, number_in
from core.data.verdict_files.recording import (
    CALIBRATION_ITEM,
    is_marked,
    open_recorded,
    open_recording,
    recording_in,
    text_of,
)
from core.errors import GoldenError
from core.records import FloatArray

_NUMBERS = {int, float, type(None)}


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """A row an item: ids, `scores` (n,) with NaN for unscored, and the names of its system and source.

    `systems` and `sources` are empty where the file has no such column.  `calibration_items` are the ids that the file
    marks: their labels chose or fitted the judge.
    """

    item_ids: Sequence[str]
    scores: FloatArray
    systems: Sequence[str] = ()
    sources: Sequence[str] = ()
    calibration_items: frozenset[str] = frozenset()


def read_scored(path: Path, aspect: str = "") -> ScoredRows | None:
    """The scores of a file of any length; None for one that is no plain table of scores.

    Where a column names the aspect of each row, only the rows of `aspect` count.  GoldenError names the row of a
    missing or doubled id and of a score that is no number.
    """
    table = open_recorded(path)
    recording = recording_in(table)
    roles = propose_columns(recording, aspect)
    if recording.shape != "table" or default_use(roles) == "replies" or "sample" in roles.roles:
        return None
    item, score = roles.roles.get("item_id", ""), roles.roles.get("score", "")
    if not item or not score or "." in item + score:  # a dot: it lies within an object
        return None
    system, source = group_columns(recording.columns)
    mark = CALIBRATION_ITEM if CALIBRATION_ITEM in recording.columns else ""
    rated, wanted = roles.roles.get("aspect", "") if aspect else "", aspect_key(aspect)
    ids: list[str] = []
    scores: list[FloatArray] = []
    groups: dict[str, list[str]] = {system: [], source: []}
    marked: set[str] = set()
    columns = [name for name in dict.fromkeys((item, score, system, source, rated, mark)) if name]
    chunks = _chunks_of_csv(table, columns) if table.delimiter else json_columns(table, columns, score)
    for rows, chunk in chunks:
        kept = [k for k, cell in enumerate(chunk[rated]) if aspect_key(text_of(cell)) == wanted] if rated else []
        cells = {name: [column[k] for k in kept] for name, column in chunk.items()} if rated else chunk
        numbers = [rows[k] for k in kept] if rated else rows
        own = _ids(cells[item], path.name, item, numbers)
        ids += own
        if mark:
            marked.update(item_id for item_id, cell in zip(own, cells[mark], strict=True) if is_marked(cell))
        scores.append(_scores(cells[score], path.name, score, numbers))
        for name in {system, source} - {""}:
            groups[name] += _names(cells[name])
    _check_once(ids, path.name)
    return ScoredRows(
        ids,
        np.concatenate([np.empty(0), *scores]),
        groups[system] if system else (),
        groups[source] if source else (),
        frozenset(marked),
    )


def read_groups(path: Path) -> dict[str, tuple[str, str]]:
    """item_id → system and source, "" where not named, of a table of replies; empty where it names neither."""
    recording = open_recording(path)
    item, (system, source) = propose_columns(recording).roles.get("item_id", ""), group_columns(recording.columns)
    if recording.shape != "table" or not item or not system + source:
        return {}
    return {
        read_id(row.get(item)): (read_id(row.get(system) if system else ""), read_id(row.get(source) if source else ""))
        for row in recording.rows
    }


def group_columns(columns: Sequence[str]) -> tuple[str, str]:
    """Those of systems and of sources, "" for none."""
    system, source = (next(iter(by_name(columns, (n, *ALIASES[n]))), "") for n in ("system_id", "source_id"))
    return system, source


def _chunks_of_csv(table: TableFile, wanted: Sequence[str]) -> Iterator[tuple[Sequence[int], Chunk]]:
    """As `json_columns`."""
    lines = csv_cells(table.lines(), table.delimiter, table.source)
    columns = column_names(next(lines, (0, []))[1], table.source)
    places = [columns.index(name) for name in wanted]
    while some := list(islice(lines, ROWS)):
        numbers, rows = zip(*some, strict=True)
        for number, row in some:
            if len(row) != len(columns):
                came = f"{len(row)} cells came where the header names {len(columns)}"
                raise table.source.refuse(f"{came}; a text with the delimiter must be quoted.", row=number)
        yield numbers, {name: [row[place] for row in rows] for name, place in zip(wanted, places, strict=True)}


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────


def _ids(cells: Sequence[Any], file: str, column: str, rows: Sequence[int]) -> list[str]:
    ids = _names(cells)
    if not all(ids):
        raise GoldenError("there is no item_id", file=file, row=rows[ids.index("")], column=column)
    return ids


def _names(cells: Sequence[Any]) -> list[str]:
    """Each cell as `read_id` reads it; plain text all at once."""
    if set(map(type, cells)) == {str}:
        text = "".join(cells)
        if text.isascii() and "\x00" not in text:
            return list(cells) if text.split(None, 1) == [text] else [cell.strip() for cell in cells]
    return list(map(read_id, cells))


def _scores(cells: Sequence[Any], file: str, column: str, rows: Sequence[int]) -> FloatArray:
    """(n,) numbers, NaN for an empty cell.  GoldenError for anything else, infinity included."""
    if set(map(type, cells)) <= _NUMBERS:
        values = np.array(cells, dtype=np.float64)
    else:
        values = np.array([_number(cell, file, column, row) for cell, row in zip(cells, rows, strict=True)])
    if np.isinf(values).any():
        row = rows[int(np.flatnonzero(np.isinf(values))[0])]
        raise GoldenError("the score is infinite (empty or null means unscored)", file=file, row=row, column=column)
    return values


def _number(cell: Any, file: str, column: str, row: int) -> float:
    if type(cell) is str and cell.isascii() and "_" not in cell:
        with suppress(ValueError):
            return float(cell)
    return _read(cell, file, column, row)


def _read(cell: Any, file: str, column: str, row: int) -> float:
    number = number_in(cell)
    if isinstance(number, str):
        raise GoldenError(f"{number} (empty or null means unscored)", file=file, row=row, column=column)
    return np.nan if number is None else number


def _check_once(ids: Sequence[str], file: str) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for item_id in ids:
        if item_id in seen:
            raise GoldenError(f"item {shown(item_id)} stands twice; keep one line an item", file=file)
        seen.add(item_id)
