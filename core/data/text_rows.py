"""CSV and JSON: lines of text → rows.  Nothing is evaluated, everything is bounded."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import abc
from typing import Any

from core.data import files
from core.data.cells import clean_text, folded
from core.data.columns import is_role
from core.data.files import Source, check_names
from core.errors import GoldenError
from core.records import Finding

DELIMITERS = (",", ";", "\t", "|")
_ODD_NAME = re.compile("^\\s|\\s$|^$|[\ud800-\udfff\x00]").search
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def column_names(cells: abc.Sequence[Any], source: Source) -> tuple[str, ...]:
    """Column names of a header, trimmed; a blank one becomes "(column 3)".  GoldenError for none or a repeated one."""
    names = [
        clean_text("" if cell is None else str(cell)).strip() or f"(column {place})"
        for place, cell in enumerate(cells, start=1)
    ]
    if not names:
        raise source.refuse("The file is empty: there is not even a header line.")
    check_names(names, source)
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise source.refuse("Two columns have this name; rename one.", column=twice)
    return tuple(names)


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────


def csv_rows(
    lines: abc.Iterable[str], delimiter: str, source: Source, report: abc.Callable[[Finding], None]
) -> tuple[tuple[str, ...], abc.Iterator[dict[str, Any]]]:
    """The columns of CSV text with a header line, and its rows; `report` gets a finding for rows with too few cells.

    GoldenError for a broken header at once, for a broken row when it is reached.
    """
    csv.field_size_limit(max(csv.field_size_limit(), source.longest_line))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next((cells for cells in reader if any(cell.strip() for cell in cells)), [])
    except csv.Error as problem:
        raise _broken_csv(problem, reader.line_num, 1, source) from problem
    columns = column_names(header, source)

    def rows() -> abc.Iterator[dict[str, Any]]:
        number = 0
        try:
            for cells in reader:
                if cells and (len(cells) > 1 or cells[0].strip() or len(columns) == 1):
                    number += 1
                    if len(cells) != len(columns):
                        _check_width(columns, cells, number, source, report)
                    yield dict(zip(columns, cells, strict=False))
        except csv.Error as problem:
            raise _broken_csv(problem, reader.line_num, number + 1, source) from problem

    return columns, rows()


def _broken_csv(problem: csv.Error, line: int, row: int, source: Source) -> GoldenError:
    return source.refuse(f"The CSV is broken at line {line}: {problem}. A quotation mark may be missing.", row=row)


def _check_width(
    columns: tuple[str, ...], cells: list[str], row: int, source: Source, report: abc.Callable[[Finding], None]
) -> None:
    came = f"{len(cells)} cells came where the header names {len(columns)};"
    if len(cells) > len(columns):
        raise source.refuse(f"{came} a text with the delimiter must be quoted.", row=row)
    report(Finding("warning", f"{came} the rest is read as empty.", row=row, column=columns[len(cells)]))


def sniff_delimiter(text: str) -> str:
    """The delimiter that gives the most known column names, then the most even rows, then the most columns."""

    def fitness(delimiter: str) -> tuple[int, bool, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            head = [cells for cells in itertools.islice(reader, 20) if cells]
        except csv.Error:
            head = []
        known = sum(is_role(folded(cell)) for cell in head[0]) if head else 0
        even = len(head) > 1 and len({len(cells) for cells in head[:-1]}) == 1
        width = len(head[0]) if head else 0
        return known, even and width > 1, width

    return max(DELIMITERS, key=fitness)


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────


def jsonl_rows(lines: abc.Iterable[str], source: Source, start: int = 0) -> abc.Iterator[dict[str, Any]]:
    """The object on each line that is not blank, after the first `start`.  GoldenError with line and row."""
    row = 0
    for number, line in enumerate(lines, start=1):
        if line.isspace():
            continue
        row += 1
        if row <= start:
            continue
        source.bound_values(_values_in(line), row=row)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise source.refuse(f"Line {number} is not JSON: {_reason(problem)}.", row=row) from problem
        if not isinstance(value, dict):
            raise source.refuse(f"Line {number} must be a JSON object, a {type(value).__name__} came.", row=row)
        yield _with_plain_names(value, row, source)


def json_rows(text: str, source: Source) -> list[dict[str, Any]] | None:
    """The objects of a JSON array, alone or as the ``data`` of one page of an API's list; None for JSON lines."""
    lone = text.lstrip()[:1] == "{"
    source.bound_values(_values_in(text))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        if lone:
            return None
        where = f" at line {problem.lineno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise source.refuse(f"The file is not JSON{where}: {_reason(problem)}.") from problem
    if isinstance(value, dict):
        value = value["data"] if isinstance(value.get("data"), list) else [value]
    if not isinstance(value, list):
        raise source.refuse(f"A JSON array of objects was expected, a {type(value).__name__} came.")
    for row, entry in enumerate(value, start=1):
        if not isinstance(entry, dict):
            raise source.refuse(f"A JSON object was expected, a {type(entry).__name__} came.", row=row)
    return [_with_plain_names(entry, row, source) for row, entry in enumerate(value, start=1)]


def _with_plain_names(value: dict[str, Any], row: int, source: Source) -> dict[str, Any]:
    """The row under column names as every format has them: trimmed, without halves of characters."""
    if not any(map(_ODD_NAME, value)):
        return value
    named = {clean_text(name).strip() or "(no name)": cell for name, cell in value.items()}
    if len(named) < len(value):
        raise source.refuse("Two columns have the same name but for spaces or damaged characters.", row=row)
    return named


def _reason(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg} at character {problem.colno}"
    return "it is nested too deeply" if isinstance(problem, RecursionError) else "a number in it is too long"


def _values_in(text: str) -> int:
    """How many values JSON text holds at most, known before it is read; exact only where there are too many."""
    count = _commas_and_brackets(text)
    return count if count <= files.MAX_VALUES else _commas_and_brackets(_JSON_TEXT.sub("", text))


def _commas_and_brackets(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{") + 1
