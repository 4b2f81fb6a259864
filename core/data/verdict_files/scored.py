"""Scores of a table of any length with the system and source of each item, in columns.

Rows never become records.  What is no plain table of scores (replies, samples, the output of a batch) is not read here:
`read_scored` gives None for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.data.cells import aspect_key, read_id, shown
from core.data.columns import ALIASES, by_name
from core.data.verdict_files.columns import propose_columns
from core.data.verdict_files.match import default_use, number_in
from core.data.verdict_files.recording import CALIBRATION_ITEM, is_marked, open_recording, text_of
from core.errors import GoldenError
from core.records import FloatArray


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
    recording = open_recording(path)
    roles = propose_columns(recording, aspect)
    if recording.of_batch or default_use(roles) == "replies" or "sample" in roles.roles:
        return None
    item, score = roles.roles.get("item_id", ""), roles.roles.get("score", "")
    if not item or not score:
        return None
    system, source = group_columns(recording.columns)
    rated, wanted = roles.roles.get("aspect", "") if aspect else "", aspect_key(aspect)
    scores: dict[str, float] = {}
    systems: list[str] = []
    sources: list[str] = []
    marked: set[str] = set()
    for row, cells in recording.numbered():
        if rated and aspect_key(text_of(cells.get(rated))) != wanted:
            continue
        item_id, number = read_id(cells.get(item)), number_in(cells.get(score))
        if not item_id:
            raise GoldenError("there is no item_id", file=path.name, row=row, column=item)
        if item_id in scores:
            raise GoldenError(f"item {shown(item_id)} stands twice; keep one line an item", file=path.name, row=row)
        if isinstance(number, str):
            raise GoldenError(f"{number} (empty or null means unscored)", file=path.name, row=row, column=score)
        scores[item_id] = np.nan if number is None else number
        if system:
            systems.append(read_id(cells.get(system)))
        if source:
            sources.append(read_id(cells.get(source)))
        if is_marked(cells.get(CALIBRATION_ITEM)):
            marked.add(item_id)
    values = np.fromiter(scores.values(), dtype=np.float64, count=len(scores))
    return ScoredRows(list(scores), values, systems, sources, frozenset(marked))


def read_groups(path: Path) -> dict[str, tuple[str, str]]:
    """item_id → system and source, "" where not named, of a table of replies; empty where it names neither."""
    recording = open_recording(path)
    item, (system, source) = propose_columns(recording).roles.get("item_id", ""), group_columns(recording.columns)
    if recording.of_batch or not item or not system + source:
        return {}
    return {
        read_id(row.get(item)): (read_id(row.get(system) if system else ""), read_id(row.get(source) if source else ""))
        for row in recording.rows
    }


def group_columns(columns: Sequence[str]) -> tuple[str, str]:
    """Those of systems and of sources, "" for none."""
    system, source = (next(iter(by_name(columns, (n, *ALIASES[n]))), "") for n in ("system_id", "source_id"))
    return system, source
