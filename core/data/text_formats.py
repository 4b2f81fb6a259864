"""CSV and JSON: text → columns and rows.  Nothing is evaluated, everything is bounded."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import abc
from typing import Any

from core.data import content as limits
from core.data.cells import clean_text
from core.data.content import (
    Content,
    Parsed,
    bound_rows,
    bound_values,
    checked_values,
    column_names,
    values_in_json,
    without_blank_columns,
)
from core.data.fields import folded, is_role
from core.data.findings import FindingLog
from core.errors import GoldenError
from core.records import Finding

DELIMITERS = (",", ";", "\t", "|")
_SNIFFED = 64 * 1024
_ODD_NAME = re.compile("^\\s|\\s$|^$|[\ud800-\udfff\x00]").search


def refuse_disguises(content: Content) -> None:
    """GoldenError when a text format was expected and a workbook, Parquet, gzip or HTML file came."""
    head = content.data[:512].lstrip()
    for magic, kind in ((b"PK\x03\x04", ".xlsx"), (b"PAR1", ".parquet"), (b"\x1f\x8b", ".gz")):
        if content.data.startswith(magic):
            raise content.refuse(f"The content is that of a {kind} file; give it that ending.")
    if head[:9].lower() == b"<!doctype" or head[:5].lower() == b"<html":
        raise content.refuse("This is a web page (HTML), not a table; was it saved from a sign-in page?")


def encoding_of(content: Content, findings: list[Finding], header_lines: int = 0) -> str:
    """How `content` is to be decoded: UTF-8 or UTF-16 (by mark or by its zeros), else Windows-1252 with a finding.

    GoldenError for bytes that are neither.
    """
    data = content.data
    encoding = utf16_of(data) or "utf-8-sig"
    try:
        data.decode(encoding)
        return encoding
    except UnicodeDecodeError as problem:
        if encoding != "utf-8-sig":
            raise content.refuse(f"The text is broken: it began as UTF-16, but {problem.reason}.") from problem
        line = data.count(b"\n", 0, problem.start) + 1
    try:
        data.decode("cp1252")
    except UnicodeDecodeError as problem:
        raise content.refuse(
            f"The text is neither UTF-8 (line {line}) nor Windows-1252. Save the file as UTF-8."
        ) from problem
    message = f"The file is not UTF-8 (first at line {line}); it was read as Windows-1252. Check accented letters."
    findings.append(Finding("warning", message, row=max(line - header_lines, 1)))
    return "cp1252"


def text_lines(content: Content, encoding: str, newline: str) -> io.TextIOWrapper:
    """The text of `content`, decoded as it is read: whole it would take several times the memory."""
    return io.TextIOWrapper(io.BytesIO(content.data), encoding=encoding, newline=newline)


def utf8_lines(content: Content) -> abc.Iterator[str]:
    """The lines of `content`, which has to be UTF-8; GoldenError otherwise."""
    try:
        yield from text_lines(content, "utf-8-sig", "\n")
    except UnicodeDecodeError as problem:
        raise content.refuse(f"The text is not UTF-8 ({problem.reason}); save the file as UTF-8.") from problem


def utf16_of(data: bytes) -> str | None:
    """The UTF-16 codec that `data` (the beginning of a text) asks for by its mark or its zeros; None for others."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    head = data[:1000]
    if head[1::2].count(0) > len(head) * 0.3:
        return "utf-16-le"
    return "utf-16-be" if head[0::2].count(0) > len(head) * 0.3 else None


# ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_csv(content: Content) -> Parsed:
    """CSV with a header line; the delimiter is found among comma, semicolon, tab and bar."""
    findings: list[Finding] = []
    encoding = encoding_of(content, findings, header_lines=1)
    csv.field_size_limit(max(csv.field_size_limit(), content.limit))
    delimiter = sniff_delimiter(text_lines(content, encoding, "").read(_SNIFFED))
    short = FindingLog()
    columns, lines = csv_rows(text_lines(content, encoding, ""), delimiter, content, short.keep)
    rows: list[dict[str, Any]] = []
    n_values = 0
    for row in lines:
        rows.append(row)
        n_values += len(row)
        bound_rows(len(rows), content)
        bound_values(n_values, content)
    return Parsed(without_blank_columns(columns, rows), tuple(rows), [*findings, *short.sorted()])


def csv_rows(
    lines: abc.Iterable[str], delimiter: str, content: Content, tell: abc.Callable[[Finding], None]
) -> tuple[tuple[str, ...], abc.Iterator[dict[str, Any]]]:
    """The columns of CSV text and its rows, one at a time; `tell` hears of rows with too few cells.

    GoldenError for a broken header at once, for a broken row when it is reached.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next((cells for cells in reader if any(cell.strip() for cell in cells)), [])
    except csv.Error as problem:
        raise _broken_csv(problem, reader.line_num, 1, content) from problem
    columns = column_names(header, content)

    def rows() -> abc.Iterator[dict[str, Any]]:
        number = 0
        try:
            for cells in reader:
                if cells and (len(cells) > 1 or cells[0].strip() or len(columns) == 1):
                    number += 1
                    yield _csv_row(columns, cells, number, content, tell)
        except csv.Error as problem:
            raise _broken_csv(problem, reader.line_num, number + 1, content) from problem

    return columns, rows()


def _broken_csv(problem: csv.Error, line: int, row: int, content: Content) -> GoldenError:
    return content.refuse(f"The CSV is broken at line {line}: {problem}. A quotation mark may be missing.", row=row)


def sniff_delimiter(text: str) -> str:
    """The delimiter that gives the most known column names, then the most even rows, then the most columns."""

    def fitness(delimiter: str) -> tuple[int, bool, int]:
        reader = csv.reader(io.StringIO(text[:_SNIFFED], newline=""), delimiter=delimiter)
        try:
            head = [cells for cells in itertools.islice(reader, 20) if cells]
        except csv.Error:
            head = []
        known = sum(is_role(folded(cell)) for cell in head[0]) if head else 0
        even = len(head) > 1 and len({len(cells) for cells in head[:-1]}) == 1
        width = len(head[0]) if head else 0
        return known, even and width > 1, width

    return max(DELIMITERS, key=fitness)


def _csv_row(
    columns: tuple[str, ...], cells: list[str], row: int, content: Content, tell: abc.Callable[[Finding], None]
) -> dict[str, Any]:
    if len(cells) > len(columns):
        raise content.refuse(
            f"{len(cells)} cells came where the header names {len(columns)}; a text with the delimiter must be quoted.",
            row=row,
        )
    if len(cells) < len(columns):
        message = f"{len(cells)} cells came where the header names {len(columns)}; the rest is read as empty."
        tell(Finding("warning", message, row=row, column=columns[len(cells)]))
    return dict(zip(columns, cells, strict=False))


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_jsonl(content: Content) -> Parsed:
    """One JSON object a line; blank lines are skipped."""
    findings: list[Finding] = []
    rows: list[dict[str, Any]] = []
    n_values = 0
    encoding = encoding_of(content, findings)
    for line_number, line in enumerate(text_lines(content, encoding, "\n"), start=1):
        if line.strip():
            row = json_object(line, line_number, len(rows) + 1, content)
            rows.append(row)
            n_values += checked_values(row, content, len(rows))
            bound_rows(len(rows), content)
            bound_values(n_values, content, row=len(rows))
    return Parsed(_json_columns(rows), tuple(rows), findings)


def json_object(line: str, line_number: int, row: int, content: Content) -> dict[str, Any]:
    """The object on a line of JSONL; GoldenError, with line and row, for anything else."""
    bound_values(values_in_json(line, limits.MAX_VALUES), content, row=row)
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise content.refuse(f"Line {line_number} is not JSON: {_told(problem)}.", row=row) from problem
    if not isinstance(value, dict):
        raise content.refuse(f"Line {line_number} must be a JSON object, a {type(value).__name__} came.", row=row)
    checked_values(value, content, row)
    return _with_plain_names(value, row, content)


def _with_plain_names(value: dict[str, Any], row: int, content: Content) -> dict[str, Any]:
    """The row under column names as every format has them: trimmed, without halves of characters."""
    if not any(map(_ODD_NAME, value)):
        return value
    named = {clean_text(name).strip() or "(no name)": cell for name, cell in value.items()}
    if len(named) < len(value):
        raise content.refuse("Two columns have the same name but for spaces or damaged characters.", row=row)
    return named


def _told(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg} at character {problem.colno}"
    return "it is nested too deeply" if isinstance(problem, RecursionError) else "a number in it is too long"


def parse_json_document(content: Content) -> Parsed:
    """A JSON array of objects; objects one a line are read as JSONL."""
    findings: list[Finding] = []
    encoding = encoding_of(content, findings)
    if text_lines(content, encoding, "\n").read(_SNIFFED).lstrip().startswith("{"):
        return parse_jsonl(content)
    text = content.data.decode(encoding)
    bound_values(values_in_json(text, limits.MAX_VALUES), content)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        where = f" at line {problem.lineno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise content.refuse(f"The file is not JSON{where}: {_told(problem)}.") from problem
    if not isinstance(value, list):
        raise content.refuse(f"A JSON array of objects was expected, a {type(value).__name__} came.")
    bound_rows(len(value), content)
    for row, entry in enumerate(value, start=1):
        if not isinstance(entry, dict):
            raise content.refuse(f"A JSON object was expected, a {type(entry).__name__} came.", row=row)
        checked_values(entry, content, row)
    rows = tuple(_with_plain_names(entry, row, content) for row, entry in enumerate(value, start=1))
    return Parsed(_json_columns(rows), rows, findings)


def _json_columns(rows: abc.Iterable[abc.Mapping[str, Any]]) -> tuple[str, ...]:
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(row))
    return tuple(columns)
