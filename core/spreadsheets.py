"""Escape cells so that no spreadsheet runs their text as a formula, and read escaped cells back."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

Cell = str | float | int | None
"""What a cell may hold; None is an empty one."""

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


def safe_cell(value: Cell) -> str | float | int:
    """`value` as a spreadsheet may have it: an apostrophe before what it would run, "" for None; numbers unchanged."""
    if value is None:
        return ""
    if not isinstance(value, str) or _NUMBER.match(value):
        return value
    return f"'{value}" if _is_escaped_or_formula(value) else value


def original_cell(cell: str) -> str:
    """Undo `safe_cell`: drop the apostrophe that it put before a text."""
    return cell[1:] if cell[:1] == "'" and _is_escaped_or_formula(cell[1:]) else cell


def _is_escaped_or_formula(text: str) -> bool:
    """Whether `text` starts like a formula, behind any apostrophes.

    Counting "'=1" in gives it a second apostrophe, so that it does not come back as "=1".
    """
    return text.lstrip("'").lstrip(" ").startswith(_STARTS)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A CSV file with `header` and `rows`, every cell safe."""
    return "".join(map(csv_line, (header, *rows)))


def csv_line(cells: Iterable[Cell]) -> str:
    """One row of a CSV file, every cell safe, with "\\n" at its end."""
    out = io.StringIO()
    # Python quotes a cell with a lone "\r" only where lines end in "\r\n"; unquoted, it would end the row.
    csv.writer(out, lineterminator="\r\n").writerow([safe_cell(cell) for cell in cells])
    return out.getvalue()[:-2] + "\n"
