"""Verdict files: JSONL (or CSV on the way in) with `item_id` and `score`, null where unscored."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from core.data import read_table
from core.data.cells import AmbiguousCommaError, CellError, parse_json, read_id, read_number, shown
from core.errors import GoldenError
from core.judging.parse import read_rating
from core.records import Scale, Scored, Unscored, Verdict
from core.verdicts import Verdicts, mean_verdict


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


def read_verdicts(path: Path | str, scale: Scale | None = None, aspect: str = "") -> Verdicts:
    """Verdicts out of a verdict file (`item_id`, `score`) or a replies file (`item_id`, `responses`).

    A replies file needs `scale`; an item's score is the mean of its readable replies.  GoldenError names the row
    of a missing or doubled id and of a score that is no number.
    """
    table = read_table(path)
    name = Path(path).name
    verdicts: dict[str, Verdict] = {}
    for row, cells in enumerate(table.rows, start=1):
        item_id = read_id(cells.get("item_id"))
        if not item_id:
            raise GoldenError("an item_id is missing", file=name, row=row, column="item_id")
        if item_id in verdicts:
            raise GoldenError(f"item {shown(item_id)} stands twice; keep one line an item", file=name, row=row)
        if "responses" in cells:
            verdicts[item_id] = _of_replies(item_id, cells["responses"], scale, aspect, (name, row))
        elif "score" in cells:
            value = _number(cells["score"], (name, row))
            verdicts[item_id] = Unscored(item_id, "no verdict") if math.isnan(value) else Scored(item_id, value)
        else:
            raise GoldenError("neither a 'score' nor 'responses' column is there", file=name, row=row)
    return Verdicts(verdicts.values())


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


def _of_replies(item_id: str, cell: Any, scale: Scale | None, aspect: str, where: tuple[str, int]) -> Verdict:
    replies = parse_json(cell) if isinstance(cell, str) and cell.lstrip().startswith("[") else cell
    replies = [replies] if isinstance(replies, str) else replies
    if not isinstance(replies, list) or scale is None:
        raise GoldenError("'responses' must be a list of texts", file=where[0], row=where[1], column="responses")
    texts = tuple(str(reply) for reply in replies)
    return mean_verdict(item_id, [read_rating(text, scale, aspect=aspect) for text in texts], raw=texts)
