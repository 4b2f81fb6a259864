"""What every file format works with: bounded bytes in, named columns and rows out."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field
from typing import Any

from core.errors import GoldenError
from core.golden.cells import clean_text
from core.records import Finding

MAX_ROWS = 1_048_576


@dataclass(frozen=True, slots=True)
class Content:
    """The unpacked bytes of a file, its name for messages, and the size limit in bytes."""

    name: str
    data: bytes
    limit: int

    def refuse(self, message: str, *, row: int | None = None, column: str | None = None) -> GoldenError:
        return GoldenError(message, file=self.name, row=row, column=column)


@dataclass
class Parsed:
    """Columns in file order, rows, and what the reading has to tell."""

    columns: tuple[str, ...]
    rows: tuple[abc.Mapping[str, Any], ...]
    findings: list[Finding] = field(default_factory=list)


def column_names(cells: abc.Sequence[Any], content: Content) -> tuple[str, ...]:
    """Column names, trimmed; a blank one becomes "(column 3)".  GoldenError for none or a repeated one."""
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
    if n_rows > MAX_ROWS:
        raise content.refuse(f"The file has too many rows; at most {MAX_ROWS} are read.")
