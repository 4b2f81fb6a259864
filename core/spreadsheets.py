"""Cells of files that people open in a spreadsheet: text in them must never run as a formula."""

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
    return f"'{value}" if value.lstrip(" ").startswith(_STARTS) else value


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A CSV file with `header` and `rows`, every cell safe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_cell(cell) for cell in header])
    writer.writerows([safe_cell(cell) for cell in row] for row in rows)
    return out.getvalue()
