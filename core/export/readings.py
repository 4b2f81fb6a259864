"""Recorded replies → ratings: the command `read-ratings` (DESIGN §3).

A replies file is JSONL, plain or gzip, one object a line: ``{"item_id", "responses": [...]}``.  An item's score is the
mean of its readable replies; an item without one has the score null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from core.data.cells import shown
from core.data.tables import open_table
from core.errors import GoldenError, UsageError
from core.files import json_lines, write_text
from core.judging.parse import read_rating, read_rating_as_paper
from core.records import Scale, UnscoredReason
from core.verdicts import Reading

Parser = Literal["concord", "paper"]
PARSERS: tuple[Parser, ...] = get_args(Parser)


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
        write_text(Path(out), json_lines(one.as_json() for one in readings))
    return counts(readings)


def reader(parser: Parser, scale: Scale, aspect: str = "", *, letters: bool = False) -> Callable[[str], Reading]:
    """The named parser as a function of the reply."""
    if parser == "paper":
        return read_rating_as_paper
    if parser == "concord":
        return lambda reply: read_rating(reply, scale, aspect, letters=letters)
    raise UsageError(f"Unknown parser {parser!r}: use {' or '.join(PARSERS)}.")


def read_replies(path: Path | str, read: Callable[[str], Reading]) -> Iterator[ItemReadings]:
    """The readings of each item of a replies file, in its order."""
    name = Path(path).name
    seen: set[str] = set()
    for row, cells in _rows(Path(path)):
        item_id = _item_id(cells, name, row)
        if item_id in seen:
            raise GoldenError(f"item {shown(item_id)} stands twice; keep one line an item", file=name, row=row)
        seen.add(item_id)
        yield item_readings(item_id, _responses(cells, name, row), read)


def item_readings(item_id: str, replies: Sequence[str], read: Callable[[str], Reading]) -> ItemReadings:
    """Read `replies` and average what was read."""
    found = [read(reply) for reply in replies]
    values = [reading.value for reading in found if reading.value is not None]
    unread = tuple(reading.reason or "no verdict" for reading in found if reading.value is None)
    return ItemReadings(item_id, sum(values) / len(values) if values else None, len(values), unread)


def counts(readings: Iterable[ItemReadings]) -> dict[str, Any]:
    """The counts over all items, reasons by falling frequency."""
    n_items = n_read = 0
    reasons: Counter[str] = Counter()
    for one in readings:
        n_items += 1
        n_read += one.n_read
        reasons.update(one.unread)
    n_unread = reasons.total()
    return {
        "n_items": n_items,
        "n_replies": n_read + n_unread,
        "n_read": n_read,
        "n_unread": n_unread,
        "reasons": dict(reasons.most_common()),
    }


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(row from 1, object) of each line that is not blank."""
    table = open_table(path, suffix=".jsonl", max_mb=None)
    if table.encoding == "cp1252":
        raise table.source.refuse("The text is not UTF-8; save the file as UTF-8.")
    yield from enumerate(table.rows(), start=1)


def _item_id(cells: Mapping[str, Any], name: str, row: int) -> str:
    item_id = cells.get("item_id")
    if isinstance(item_id, bool) or not isinstance(item_id, (str, int)) or not str(item_id).strip():
        raise GoldenError("an item_id is missing", file=name, row=row, column="item_id")
    if not str(item_id).isprintable():
        raise GoldenError("an item_id holds characters that cannot be shown", file=name, row=row, column="item_id")
    return str(item_id).strip()


def _responses(cells: Mapping[str, Any], name: str, row: int) -> list[str]:
    """The replies as text; null (a call that failed) is an empty reply."""
    replies = cells.get("responses")
    replies = [replies] if isinstance(replies, str) else replies
    if not isinstance(replies, list) or not all(reply is None or isinstance(reply, str) for reply in replies):
        raise GoldenError("'responses' must be a list of texts", file=name, row=row, column="responses")
    return [reply or "" for reply in replies]
