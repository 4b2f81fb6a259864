"""What every file format works with: bounded bytes in, named columns and rows out."""

from __future__ import annotations

import re
from collections import abc
from dataclasses import dataclass, field
from typing import Any

from core.data.cells import MAX_DEPTH, clean_text
from core.errors import GoldenError
from core.records import Finding

MAX_ROWS = 1_048_576
MAX_COLUMNS = 2000
MAX_VALUES = 5_000_000
"""Cells, and entries of the lists and objects in them, of a file that is read whole."""

MAX_GOLDEN_ROWS, MAX_LABELS = 250_000, 1_000_000
"""Rows of a file that is made a golden set; labels and ratings in it, and room for them (items times aspects)."""

UNPACKED_FREELY, UNPACKED_TIMES = 32 * 1024 * 1024, 100
"""A packed file may unpack to so many bytes, and to so many times its own size beyond that."""

_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Content:
    """The unpacked bytes of a file, its name for messages, and the size limit in bytes; `packed`: its bytes before.

    `rows`: how many are read at most, fewer than `MAX_ROWS`.
    """

    name: str
    data: bytes
    limit: int
    packed: int = 0
    rows: int | None = None

    @property
    def unpacked(self) -> int:
        """How many bytes the content may unpack to."""
        return unpacked_limit(self.packed or len(self.data), self.limit)

    def refuse(self, message: str, *, row: int | None = None, column: str | None = None) -> GoldenError:
        return GoldenError(message, file=self.name, row=row, column=column)


@dataclass
class Parsed:
    """Columns in file order, rows, and what the reading has to tell."""

    columns: tuple[str, ...]
    rows: tuple[abc.Mapping[str, Any], ...]
    findings: list[Finding] = field(default_factory=list)


def unpacked_limit(packed: int, limit: int) -> int:
    """How many bytes a file of `packed` bytes may unpack to, `limit` at most."""
    return min(limit, UNPACKED_FREELY + UNPACKED_TIMES * packed)


def column_names(cells: abc.Sequence[Any], content: Content) -> tuple[str, ...]:
    """Column names, trimmed; a blank one becomes "(column 3)".  GoldenError for none or a repeated one."""
    if len(cells) > MAX_COLUMNS:
        raise content.refuse(f"{len(cells)} columns came; at most {MAX_COLUMNS} are read.")
    names = [
        clean_text("" if cell is None else str(cell)).strip() or f"(column {place})"
        for place, cell in enumerate(cells, start=1)
    ]
    if not names:
        raise content.refuse("The file is empty: there is not even a header line.")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise content.refuse("Two columns have this name; rename one.", column=name[:200])
        seen.add(name)
    return tuple(names)


def without_blank_columns(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """`columns` less those without a name and without a single cell, as spreadsheets leave at the right."""
    blank = [c for c in columns if c.startswith("(column ") and all(row.get(c) in (None, "") for row in rows)]
    return tuple(column for column in columns if column not in blank)


def bound_rows(n_rows: int, content: Content) -> None:
    """GoldenError when a file has more rows than are read."""
    if n_rows > most_rows(content):
        raise content.refuse(f"The file has too many rows; at most {most_rows(content)} are read.")


def most_rows(content: Content) -> int:
    """How many rows of a file are read."""
    return MAX_ROWS if content.rows is None else min(MAX_ROWS, content.rows)


def bound_values(n_values: int, content: Content, *, row: int | None = None) -> None:
    """GoldenError when a file has more values than are read."""
    if n_values > MAX_VALUES:
        raise content.refuse(f"The file holds too many values; at most {MAX_VALUES:,} are read. Split it.", row=row)


def checked_values(row: abc.Mapping[str, Any] | list[Any], content: Content, number: int) -> int:
    """How many values a row of plain JSON holds: its cells, and all within their lists and objects.

    GoldenError for a row that is nested too deeply.
    """
    count, depth = 0, 0
    level: list[abc.Mapping[str, Any] | list[Any]] = [row]
    while level:
        count += sum(map(len, level))
        depth += 1
        if depth > MAX_DEPTH:
            raise content.refuse(f"The row is nested too deeply: more than {MAX_DEPTH} levels.", row=number)
        level = [
            inner
            for held in level
            for inner in (held.values() if isinstance(held, abc.Mapping) else held)
            if isinstance(inner, (list, dict)) and inner
        ]
    return count


def values_in_json(text: str, most: int) -> int:
    """How many values the JSON `text` holds at most, told before it is read; exact enough only beyond `most`."""
    count = _marks(text)
    return count if count <= most else _marks(_JSON_TEXT.sub("", text))


def _marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{") + 1
