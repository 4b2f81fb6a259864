"""Escape cells so that spreadsheets don't run their text as formulas, and read escaped cells back."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

Cell = str | float | int | None
"""Value of a cell; None for an empty cell."""

_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


def safe_cell(value: Cell) -> str | float | int:
    """Escape a cell for spreadsheets: put an apostrophe before a formula; None becomes "", numbers stay."""
    if value is None:
        return ""
    if not isinstance(value, str) or _NUMBER.match(value):
        return value
    return f"'{value}" if _is_escaped_or_formula(value) else value


def original_cell(cell: str) -> str:
    """Undo `safe_cell`: remove the apostrophe that it put before a text."""
    return cell[1:] if cell[:1] == "'" and _is_escaped_or_formula(cell[1:]) else cell


def _is_escaped_or_formula(text: str) -> bool:
    """Return whether `text` starts like a formula, after any apostrophes.

    "'=1" counts too and gets a second apostrophe, so that it is not read back as "=1".
    """
    return text.lstrip("'").lstrip(" ").startswith(_STARTS)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return `header` and `rows` as the text of a CSV file, with every cell escaped."""
    return "".join(map(csv_line, (header, *rows)))


def csv_line(cells: Iterable[Cell]) -> str:
    """Return one row of a CSV file, with every cell escaped and "\\n" at the end."""
    out = io.StringIO()
    # Python quotes a cell with a lone "\r" only if lines end in "\r\n"; unquoted, it would end the row.
    csv.writer(out, lineterminator="\r\n").writerow([safe_cell(cell) for cell in cells])
    return out.getvalue()[:-2] + "\n"
