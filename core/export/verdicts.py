"""Files of verdicts (`item_id`, `score`; null is unscored) and of replies (`item_id`, `responses`), one item a line.

`read_verdicts` takes either, as JSONL or CSV; `read_replies_file` is the command `read-ratings` (DESIGN §3): recorded
replies → ratings, JSONL alone, plain or gzip and of any size.  An item's score is the mean of its readable replies; an
item without one has the score null.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from core.data import read_table
from core.data.cells import AmbiguousCommaError, CellError, parse_json, read_id, read_number, shown
from core.data.tables import open_table
from core.data.verdict_files.recording import text_of
from core.errors import GoldenError, UsageError
from core.files import json_lines, write_text
from core.judging.parse import read_rating, read_rating_as_paper
from core.records import Scale, Scored, Unscored, UnscoredReason, Verdict
from core.verdicts import Reading, Verdicts, mean_verdict

Parser = Literal["concord", "paper"]


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """One line of a verdict file."""
    if isinstance(verdict, Unscored):
        why = {"reason": verdict.reason, "detail": verdict.detail, "raw": list(verdict.raw)}
        return {"item_id": verdict.item_id, "score": None} | why
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
    name = Path(path).name
    return Verdicts(
        _verdict(item_id, cells, scale, aspect, (name, row))
        for row, item_id, cells in _items(read_table(path).rows, name, read_id)
    )


def _items(
    rows: Iterable[Mapping[str, Any]], name: str, id_of: Callable[[Any], str]
) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """(row from 1, id, cells) of each row.  GoldenError for an id that is missing or comes twice."""
    seen: set[str] = set()
    for row, cells in enumerate(rows, start=1):
        item_id = id_of(cells.get("item_id"))
        if not item_id:
            raise GoldenError("an item_id is missing", file=name, row=row, column="item_id")
        if item_id in seen:
            raise GoldenError(f"item {shown(item_id)} stands twice; keep one line an item", file=name, row=row)
        seen.add(item_id)
        yield row, item_id, cells


def _verdict(
    item_id: str, cells: Mapping[str, Any], scale: Scale | None, aspect: str, where: tuple[str, int]
) -> Verdict:
    name, row = where
    if "responses" in cells:
        cell = cells["responses"]
        cell = parse_json(cell) if isinstance(cell, str) and cell.lstrip().startswith("[") else cell
        if scale is None:
            raise _no_texts(name, row)
        texts = tuple(text_of(reply) for reply in _reply_list(cell, name, row))
        return mean_verdict(item_id, [read_rating(text, scale, aspect=aspect) for text in texts], raw=texts)
    if "score" not in cells:
        raise GoldenError("neither a 'score' nor 'responses' column is there", file=name, row=row)
    score = _number(cells["score"], name, row)
    return Unscored(item_id, "no verdict") if math.isnan(score) else Scored(item_id, score)


def _reply_list(cell: Any, name: str, row: int) -> list[Any]:
    replies = [cell] if isinstance(cell, str) else cell
    if not isinstance(replies, list):
        raise _no_texts(name, row)
    return replies


def _no_texts(name: str, row: int) -> GoldenError:
    return GoldenError("'responses' must be a list of texts", file=name, row=row, column="responses")


def _number(cell: Any, name: str, row: int) -> float:
    if isinstance(cell, float) and math.isnan(cell):
        return math.nan
    try:
        number = read_number(cell)
    except CellError as problem:
        ambiguous = isinstance(problem, AmbiguousCommaError)
        words = f"{problem}: write it with a decimal point" if ambiguous else f"{shown(cell)} is no number"
        raise GoldenError(f"{words} (empty or null means unscored)", file=name, row=row) from None
    return math.nan if number is None else number


# ── replies → ratings ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ItemReadings:
    """What was read for one item: `score` is the mean of the read replies, None where none was; reasons in order."""

    item_id: str
    score: float | None
    n_read: int
    unread: tuple[UnscoredReason, ...]

    def as_json(self) -> dict[str, Any]:
        """One line of the ratings file."""
        return {
            "item_id": self.item_id,
            "score": self.score,
            "n_read": self.n_read,
            "n_unread": len(self.unread),
            "unread": list(self.unread),
        }


def read_replies_file(
    path: Path | str,
    scale: Scale,
    parser: Parser = "concord",
    out: Path | str | None = None,
    *,
    aspect: str = "",
    letters: bool = False,
) -> dict[str, Any]:
    """Read every reply in `path`; write one line an item to `out`, whole or not at all; return the counts.

    `parser` "paper" is 002's and checks no scale.  `aspect` and `letters` are those of `read_rating`.
    Returns ``{"n_items", "n_replies", "n_read", "n_unread", "reasons": {reason: count}}``.  GoldenError names the row
    that cannot be used; UsageError an unknown parser.
    """
    readings = list(read_replies(path, reader(parser, scale, aspect, letters=letters)))
    if out is not None:
        write_text(Path(out), json_lines(item.as_json() for item in readings))
    return _counts(readings)


def reader(parser: Parser, scale: Scale, aspect: str = "", *, letters: bool = False) -> Callable[[str], Reading]:
    """The named parser as a function of the reply."""
    if parser == "paper":
        return read_rating_as_paper
    if parser == "concord":
        return lambda reply: read_rating(reply, scale, aspect, letters=letters)
    raise UsageError(f"Unknown parser {parser!r}: use {' or '.join(get_args(Parser))}.")


def read_replies(path: Path | str, read: Callable[[str], Reading]) -> Iterator[ItemReadings]:
    """The readings of each item of a replies file, in its order."""
    name = Path(path).name
    table = open_table(Path(path), suffix=".jsonl", max_mb=None)
    if table.encoding == "cp1252":
        raise table.source.refuse("The text is not UTF-8; save the file as UTF-8.")
    for row, item_id, cells in _items(table.rows(), name, _whole_id):
        if not item_id.isprintable():
            raise GoldenError("an item_id holds characters that cannot be shown", file=name, row=row, column="item_id")
        replies = _reply_list(cells.get("responses"), name, row)
        if not all(reply is None or isinstance(reply, str) for reply in replies):
            raise _no_texts(name, row)
        yield item_readings(item_id, [reply or "" for reply in replies], read)  # null: a call that failed


def _whole_id(cell: Any) -> str:
    """A text or a whole number as an id; empty for anything else."""
    return str(cell).strip() if isinstance(cell, str | int) and not isinstance(cell, bool) else ""


def item_readings(item_id: str, replies: Sequence[str], read: Callable[[str], Reading]) -> ItemReadings:
    """Read `replies` and average what was read."""
    readings = [read(reply) for reply in replies]
    values = [reading.value for reading in readings if reading.value is not None]
    unread = tuple(reading.reason or "no verdict" for reading in readings if reading.value is None)
    return ItemReadings(item_id, sum(values) / len(values) if values else None, len(values), unread)


def _counts(items: Iterable[ItemReadings]) -> dict[str, Any]:
    """The counts over all items, reasons by falling frequency."""
    n_items = n_read = 0
    reasons: Counter[str] = Counter()
    for item in items:
        n_items += 1
        n_read += item.n_read
        reasons.update(item.unread)
    n_unread = reasons.total()
    return {
        "n_items": n_items,
        "n_replies": n_read + n_unread,
        "n_read": n_read,
        "n_unread": n_unread,
        "reasons": dict(reasons.most_common()),
    }
