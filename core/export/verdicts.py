"""Verdict files: JSONL (or CSV on the way in) with `item_id` and `score`, null where unscored."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.data import read_table
from core.data.cells import AmbiguousCommaError, CellError, parse_json, read_id, read_number, shown
from core.errors import GoldenError
from core.export.readings import item_readings, reader
from core.records import FloatArray, Scale, Unscored, Verdict


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """One line of a verdict file."""
    if isinstance(verdict, Unscored):
        told = {"reason": verdict.reason, "detail": verdict.detail, "raw": list(verdict.raw)}
        return {"item_id": verdict.item_id, "score": None} | told
    return {
        "item_id": verdict.item_id,
        "score": verdict.value,
        "calibrated": verdict.calibrated,
        "n_read": verdict.n_read,
        "n_unread": verdict.n_unread,
        "explanation": verdict.explanation,
    }


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """The lines of a verdict file, each with its line end."""
    for verdict in verdicts:
        yield json.dumps(verdict_row(verdict), ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class VerdictTable:
    """Scores by item id, NaN = unscored; `n_unread` counts the replies or rows without a readable score."""

    scores: Mapping[str, float]
    n_unread: int

    def aligned(self, item_ids: Sequence[str]) -> FloatArray:
        """(n_items,) scores in the order of `item_ids`, NaN where this table has none."""
        return np.array([self.scores.get(item_id, np.nan) for item_id in item_ids], dtype=np.float64)


def read_verdicts(path: Path | str, scale: Scale | None = None, aspect: str = "") -> VerdictTable:
    """Scores out of a verdict file (`item_id`, `score`) or a replies file (`item_id`, `responses`).

    A replies file needs `scale`; an item's score is the mean of its readable replies.  GoldenError names the row
    of a missing or doubled id and of a score that is no number.
    """
    table = read_table(path)
    name = Path(path).name
    scores: dict[str, float] = {}
    n_unread = 0
    for row, cells in enumerate(table.rows, start=1):
        item_id = read_id(cells.get("item_id"))
        if not item_id:
            raise GoldenError("an item_id is missing", file=name, row=row, column="item_id")
        if item_id in scores:
            raise GoldenError(f"item {shown(item_id)} stands twice; keep one line an item", file=name, row=row)
        if "responses" in cells:
            value = _mean_reading(cells["responses"], scale, aspect, (name, row))
        elif "score" in cells:
            value = _number(cells["score"], (name, row))
        else:
            raise GoldenError("neither a 'score' nor 'responses' column is there", file=name, row=row)
        scores[item_id] = value
        n_unread += math.isnan(value)
    return VerdictTable(scores, n_unread)


def _number(cell: Any, where: tuple[str, int]) -> float:
    if isinstance(cell, float) and math.isnan(cell):
        return math.nan
    try:
        value = read_number(cell)
    except CellError as problem:
        ambiguous = isinstance(problem, AmbiguousCommaError)
        told = f"{problem}: write it with a decimal point" if ambiguous else f"{shown(cell)} is no number"
        raise GoldenError(f"{told} (empty or null means unscored)", file=where[0], row=where[1]) from None
    return math.nan if value is None else value


def _mean_reading(cell: Any, scale: Scale | None, aspect: str, where: tuple[str, int]) -> float:
    replies = parse_json(cell) if isinstance(cell, str) and cell.lstrip().startswith("[") else cell
    replies = [replies] if isinstance(replies, str) else replies
    if not isinstance(replies, list) or scale is None:
        raise GoldenError("'responses' must be a list of texts", file=where[0], row=where[1], column="responses")
    found = item_readings("", [str(reply) for reply in replies], reader("concord", scale, aspect))
    return math.nan if found.score is None else found.score
