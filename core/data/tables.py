"""Read tables: a file of any format becomes rows of plain cells under column names.

`open_table` returns a `TableFile`, whose `rows()` yields one row after the other. `read_table` and `read_upload` return
a `Table`, which holds all rows in memory.

CSV, TSV and JSON lines (also ``.gz``) are read line by line, and Parquet a few rows at a time. JSON documents and
workbooks are read whole. Parquet and XLSX are decoded in a sandbox (`core.sandbox`). Failures raise `GoldenError` with
the file and, if known, the row, column or line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import json
import re
import zlib
from collections import abc
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, cast

from core.data.cells import MAX_DEPTH, cell_at, clean_text, folded, n_values, shown
from core.data.columns import is_role
from core.errors import GoldenError
from core.records import visible_name
from core.sandbox import MORE_ROWS, Job, RefusedError, allowance, parquet_rows, run_job, xlsx_rows
from core.spreadsheets import original_cell
from core.wording import counted

# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────

MOST_ROWS_NAMED = 8
Severity = Literal["error", "warning", "note"]
_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A finding about a file, for the user; `row` is the row number in the file, as in `Rows.number`."""

    severity: Severity
    message: str
    row: int | None = None
    column: str | None = None


class FindingLog:
    """Collects the findings of one file, and merges findings with the same cause.

    Of several findings of one kind in a column, the first is kept and lists all rows.
    """

    def __init__(self, findings: abc.Iterable[FileProblem] = ()) -> None:
        # by kind, column and severity, or by number: the first finding, and the rows of the others, each once
        self._found: dict[Any, tuple[FileProblem, set[int]]] = {k: (own, set()) for k, own in enumerate(findings)}

    def add(
        self, severity: Severity, message: str, *, row: int | None = None, column: str | None = None, kind: str = ""
    ) -> None:
        """Add a finding. If this column already has a finding of this `kind`, add only the row to that finding."""
        key = (kind, column, severity) if kind else len(self._found)
        first, also = self._found.setdefault(key, (FileProblem(severity, message, row, column), set()))
        if row is not None and row != first.row:
            also.add(row)

    def sorted(self) -> tuple[FileProblem, ...]:
        """Return errors, then warnings, then notes, each sorted by row.

        If findings were merged, the message of the first also lists the rows of the others.
        """
        found = [
            replace(first, message=f"{first.message} Also in {rows_words(sorted(also))}.") if also else first
            for first, also in self._found.values()
        ]
        return tuple(sorted(found, key=lambda f: (_ORDER.index(f.severity), f.row is None, f.row or 0)))


def rows_words(rows: abc.Sequence[int]) -> str:
    """List row numbers: ``"row 7"``, ``"rows 7, 8 and 12"``, ``"rows 2, 3, 4, 5, 6, 7, 8, 9 and 240 more"``."""
    *first, last = [f"{row:,}" for row in rows[:MOST_ROWS_NAMED]]
    if len(rows) > MOST_ROWS_NAMED:
        first, last = [*first, last], f"{len(rows) - MOST_ROWS_NAMED:,} more"
    return f"rows {', '.join(first)} and {last}" if first else f"row {last}"


def has_errors(findings: tuple[FileProblem, ...]) -> bool:
    """Return whether any finding prevents use of the file."""
    return any(finding.severity == "error" for finding in findings)


def first_error(findings: tuple[FileProblem, ...], file: str) -> GoldenError:
    """Return the first finding that is an error, as an exception. Its message says how many more errors there are."""
    first, *others = (finding for finding in findings if finding.severity == "error")
    more = f" ({counted(len(others), 'more error')}; run `check` to list all errors.)" if others else ""
    return GoldenError(first.message + more, file=file, row=first.row, column=first.column)


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────

_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
SUFFIXES = (*(f"{suffix}.gz" for suffix in _TEXTS), *_TEXTS, ".parquet", ".xlsx")
USUAL_MB = 200
MAX_ROWS = 1_048_576
MAX_COLUMNS, MAX_NAME, MAX_CELLS = 2000, 200, 5_000_000
MAX_VALUES, VALUES_A_ROW = 5_000_000, 12
"""Cells of a file that is read whole, with the entries of lists and objects in them; more if more rows are allowed."""
UNPACKED_FREELY, UNPACKED_TIMES = 32 << 20, 100
"""A packed file may unpack to the first number of bytes plus the second number times its own size."""
LONGEST_LINE = 16 << 20
"""Characters of a line, or of a CSV cell, in a file of any length; a longer one is refused before it fills memory."""
SMALL = 1 << 20
"""Plain text up to this many bytes is read without a sandbox."""
HEAD = 64 * 1024
_GZIP, _MB = b"\x1f\x8b", 1 << 20
_EMPTY = "The file is empty. Save it again, or choose another file."


class GoldenLimits:
    """Limits on the size of a golden set. In memory, a golden set needs about 5 KB per item.

    `items` is the maximum number of items, which a process reads from the settings when it starts. The other limits
    follow from `items`.
    """

    def __init__(self, items: int = 250_000) -> None:
        self.items = items

    @property
    def labels(self) -> int:
        """Maximum number of labels, including individual ratings; also the maximum of items × aspects."""
        return 4 * self.items

    @property
    def mb(self) -> float:
        """Maximum size of the file in MB, packed and unpacked."""
        return max(USUAL_MB, self.items * USUAL_MB / 250_000)


LIMITS = GoldenLimits()
"""The limits of this process."""

Row = abc.Mapping[str, Any]
Numbered = abc.Iterator[tuple[int, list[Any]]]


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Table:
    """Rows as read from a file. A row maps columns to cells; empty cells are absent.

    Attributes:
        numbers: Row numbers in the file, as in `Rows.number`. If empty, rows are numbered from 1.
        worded: Columns whose preferences were words, which have been converted to numbers from 1 to 3.
        joined: Column of lists of ratings → the columns of the file (one per rater) from which it was made. `rows`
            contains both kinds of columns.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    findings: tuple[FileProblem, ...] = ()
    numbers: tuple[int, ...] = ()
    worded: frozenset[str] = frozenset()
    joined: abc.Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def numbered(self) -> abc.Iterator[tuple[int, Row]]:
        """Yield every row with its number in the file."""
        return zip(self.numbers or range(1, len(self.rows) + 1), self.rows, strict=True)


@dataclass(frozen=True)
class TableFile:
    """A file whose rows can be read repeatedly.

    Attributes:
        suffix: Format of the file, such as ".csv".
        packed: Whether the file is a gzip file.
        size: Size of the file in bytes.
        limit: Maximum number of bytes, packed and unpacked. None allows any length, read row by row.
        most_rows: Maximum number of rows; None means no limit.
        most_values: Maximum number of values held in memory.
        paths: Paths into nested JSON, such as ``output.choices[0].text``, that count as columns.
        encoding: "" if the format has none.
        delimiter: "" if the format has none.
        document: Numbered rows of a JSON document or workbook; None for other formats.
        findings: Problems of the file as a whole.
    """

    name: str
    content: Path | bytes
    suffix: str
    packed: bool
    size: int
    limit: int | None
    most_rows: int | None
    most_values: int
    paths: tuple[str, ...] = ()
    encoding: str = ""
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    document: tuple[tuple[int, Row], ...] | None = None
    findings: tuple[FileProblem, ...] = ()

    def rows(self, log: FindingLog | None = None) -> Rows:
        """Return an iterator over the rows; findings on the rows go to `log`."""
        return Rows(self, FindingLog() if log is None else log)

    def numbered(self) -> abc.Iterator[tuple[int, Row]]:
        """Yield the number of each row in the file, and the row."""
        for row in (rows := self.rows()):
            yield rows.number, row

    def refuse(self, message: str, *, row: int | None = None, column: str | None = None) -> GoldenError:
        """Return an error that names this file."""
        return GoldenError(message, file=self.name, row=row, column=column)

    @property
    def unpacked(self) -> int:
        """Maximum number of bytes after unpacking."""
        most = UNPACKED_FREELY + UNPACKED_TIMES * self.size
        return most if self.limit is None else min(most, self.limit)

    def check_names(self, columns: abc.Collection[str]) -> None:
        """Raise GoldenError if there are too many columns, or if a name is too long."""
        if len(columns) > MAX_COLUMNS:
            raise self.refuse(
                f"The file has {len(columns)} columns, but the limit is {MAX_COLUMNS}. Remove the columns that you "
                "don't need."
            )
        if long := next((name for name in columns if len(name) > MAX_NAME), None):
            raise self.refuse(f"A column name is longer than {MAX_NAME} characters: {shown(long)}. Shorten the name.")

    @contextmanager
    def reading(self) -> abc.Iterator[IO[bytes]]:
        """Open the unpacked content of the file, positioned at its beginning."""
        try:
            place = io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open("rb")
            with place, gzip.GzipFile(fileobj=place) if self.packed else place as file:
                yield cast(IO[bytes], file)
        except (OSError, EOFError, zlib.error) as problem:
            if self.packed and not getattr(problem, "errno", None):
                raise self.refuse(
                    f"The gzip file is damaged or incomplete ({problem}). Compress the file again."
                ) from problem
            raise _unopened(problem, self.content if isinstance(self.content, Path) else self.name) from problem

    def lines(self) -> abc.Generator[str, None, None]:
        """Yield the lines of the text; to save memory, each line is decoded only when it is read."""
        longest = self.limit or LONGEST_LINE
        newline = "" if self.delimiter else "\n"
        with self.reading() as file, io.TextIOWrapper(file, self.encoding, newline=newline) as text:
            number = 0
            try:
                while line := text.readline(longest):
                    number += 1
                    if len(line) == longest and not line.endswith("\n"):
                        most = longest >> 20
                        raise self.refuse(
                            f"Line {number} is longer than {most} million characters. Check that the file is a table."
                        )
                    yield line
            except UnicodeDecodeError as problem:
                raise self.refuse(
                    f"Concord can't decode line {number + 1} ({problem.reason}). Save the file as UTF-8."
                ) from problem


class Rows:
    """One pass over the rows of a file. It can be iterated only once.

    `columns` and `findings` include only the rows read so far. Iteration raises GoldenError for a broken row, a row
    beyond a limit, or a file without rows.

    Attributes:
        number: Number of the current row for messages. In a table with a header, the header is row 1, as in a
            spreadsheet. In JSON lines, the number is the line; in JSON arrays and Parquet files, it is the position.
    """

    def __init__(self, file: TableFile, log: FindingLog) -> None:
        self.file, self.number, self._log = file, 0, log
        self._columns = dict.fromkeys(file.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in file order."""
        return tuple(self._columns)

    @property
    def findings(self) -> tuple[FileProblem, ...]:
        """List findings on the file, then on its rows."""
        return (*self.file.findings, *self._log.sorted())

    def __iter__(self) -> abc.Iterator[Row]:
        file, n_held, place = self.file, 0, 0
        with closing(self._plain_rows()) as rows:
            for place, (number, row) in enumerate(rows, start=1):
                self.number = number
                if file.most_rows is not None and place > file.most_rows:
                    raise file.refuse(
                        f"The file has too many rows; at most {file.most_rows:,} are allowed. {MORE_ROWS}"
                    )
                held = len(row) if file.delimiter else n_values(row)  # JSON: values at any depth
                if held is None:
                    message = f"The row is nested more than {MAX_DEPTH} levels deep. Flatten the row."
                    raise file.refuse(message, row=number)
                n_held += held
                if file.most_rows is not None and n_held > file.most_values:
                    message = f"The file has more than {file.most_values:,} values. Split the file."
                    raise file.refuse(message)
                found = {path: cell for path in file.paths if (cell := cell_at(row, path)) is not None}
                self._columns |= dict.fromkeys(found)
                yield {**row, **found} if found else row
        if not place:
            raise file.refuse("The file has no data rows.")

    def _plain_rows(self) -> abc.Generator[tuple[int, Row], None, None]:
        file = self.file
        if file.document is not None:
            yield from file.document
        elif file.suffix == ".parquet":
            allowed = allowance(file.size, streaming=file.most_rows is None)
            most = 0 if file.most_rows is None else file.unpacked
            with closing(_decoded("parquet", file, {"rows": file.most_rows}, allowed, most)) as cells:
                yield from self._under_header(enumerate(cells))
        else:
            with closing(file.lines()) as lines:
                if file.delimiter:
                    yield from self._under_header(_csv_rows(lines, file))
                    return
                for number, line in enumerate(lines, start=1):
                    if line.isspace():
                        continue
                    row = _json_row(_json_value(line, file, f"Line {number}", number), file, number, "Line")
                    if not row.keys() <= self._columns.keys():
                        self._columns |= dict.fromkeys(row)
                        file.check_names(self._columns)
                    yield number, row

    def _under_header(self, lines: Numbered) -> abc.Iterator[tuple[int, Row]]:
        """Yield the numbered rows after the header."""
        columns, file = _column_names(next(lines, (0, []))[1], self.file), self.file
        self._columns = dict.fromkeys(columns)
        for number, cells in lines:
            if len(cells) != len(columns):
                came = f"The row has {counted(len(cells), 'cell')}, but the header has {len(columns)}."
                if len(cells) > len(columns):
                    raise file.refuse(
                        f"{came} Put quotation marks around texts that contain the delimiter.", row=number
                    )
                message = f"{came} Concord treats the missing cells as empty."
                self._log.add("warning", message, row=number, column=columns[len(cells)], kind="row")
            yield number, dict(zip(columns, cells, strict=False))


# ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────


def open_table(
    file: str | Path | bytes,
    name: str | None = None,
    *,
    suffix: str | None = None,
    max_mb: float | None = USUAL_MB,
    max_rows: int | None = None,
    paths: abc.Collection[str] = (),
) -> TableFile:
    """Open a file as a table, and detect its format, encoding and delimiter.

    Args:
        file: A path, or the bytes of an upload.
        name: Name for messages. For an upload, its extension determines the format.
        suffix: Format, overriding the extension. gzip is then detected from the content.
        max_mb: Maximum size in MB, before and after decompression. None means no limit, except for JSON documents and
            workbooks. A file may never decompress to more than 32 MB plus 100 times its size.
        max_rows: Maximum number of rows to read.
        paths: Paths into nested JSON that count as columns, as in `TableFile`.

    Raises:
        GoldenError: The file is missing, empty or too large, has an unknown format, or cannot be decoded.
    """
    opened = _looked_at(file, name, suffix, max_mb, max_rows)
    if opened.limit is None and opened.suffix in (".json", ".xlsx"):
        opened = _looked_at(file, name, suffix, USUAL_MB, max_rows)
    opened = replace(opened, paths=tuple(path for path in dict.fromkeys(paths) if "." in path or "[" in path))
    if opened.suffix == ".xlsx":
        return _with_sheet(opened)
    if opened.suffix == ".parquet":
        return opened
    opened = _with_encoding(opened)
    if opened.suffix in (".csv", ".tsv"):
        with opened.reading() as text:
            return replace(opened, delimiter=_delimiter_of(text.read(HEAD).decode(opened.encoding, "replace")))
    return _with_json_document(opened) if opened.suffix == ".json" else opened


def read_table(
    file: str | Path | bytes,
    name: str | None = None,
    *,
    suffix: str | None = None,
    max_mb: float = USUAL_MB,
    max_rows: int | None = None,
    paths: abc.Collection[str] = (),
) -> Table:
    """Read all rows of a CSV, TSV, JSONL, JSON, Parquet or XLSX file (text formats also ``.gz``).

    The arguments are as in `open_table`. Formulas in a workbook stay text. Raises GoldenError if the file cannot be
    read.
    """
    rows = open_table(file, name, suffix=suffix, max_mb=max_mb, max_rows=max_rows, paths=paths).rows()
    numbered = [(rows.number, row) for row in rows]
    return _table_of(rows.file.name, rows.columns, rows.findings, numbered)


def read_upload(
    data: bytes, name: str, *, suffix: str | None = None, max_mb: float = USUAL_MB, max_rows: int | None = None
) -> Table:
    """Read an uploaded file as `read_table` does, but in a sandbox unless it is small plain text.

    The sandbox has little memory, little time and no secrets, and returns only plain values.
    """
    opened = _looked_at(data, name, suffix, max_mb, max_rows)
    if opened.suffix in (".parquet", ".xlsx") or (opened.size <= SMALL and not opened.packed):
        return read_table(data, name, suffix=suffix, max_mb=max_mb, max_rows=max_rows)
    options = {"name": name, "suffix": suffix, "max_mb": max_mb, "max_rows": max_rows}
    with closing(_decoded("table", opened, options, allowance(min(opened.unpacked, 10 * opened.size)))) as lines:
        head = next(lines)
        numbered = list(lines)
    return _table_of(name, head["columns"], (FileProblem(**finding) for finding in head["findings"]), numbered)


def table_rows(file: IO[bytes], options: Row) -> abc.Iterator[Any]:
    """Yield columns and findings of a text file, then numbered rows. `options` are as in `read_table`."""
    table = read_table(file.read(), **options)
    yield {"columns": table.columns, "findings": [asdict(finding) for finding in table.findings]}
    yield from table.numbered()


JOBS: abc.Mapping[str, Job] = {"parquet": parquet_rows, "xlsx": xlsx_rows, "table": table_rows}
"""Jobs of the sandbox."""


def suffix_of(name: str) -> str | None:
    """Return the file extension that names the format, such as ``".jsonl.gz"``; None if unknown."""
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)


def _table_of(
    name: str, columns: abc.Iterable[str], findings: abc.Iterable[FileProblem], numbered: abc.Sequence[tuple[int, Row]]
) -> Table:
    rows, numbers = tuple(row for _, row in numbered), tuple(number for number, _ in numbered)
    return Table(name, tuple(columns), rows, tuple(findings), numbers)


def _looked_at(
    file: str | Path | bytes, name: str | None, suffix: str | None, max_mb: float | None, max_rows: int | None
) -> TableFile:
    """Check the name and size of a file."""
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    named = suffix_of(label) if suffix is None else suffix
    if named is None:
        allowed = ", ".join(suffix for suffix in SUFFIXES if suffix[-3:] != ".gz")
        raise GoldenError(
            f"Unknown file type. Use {allowed}, or a compressed text file such as .csv.gz.", file=label or "(unnamed)"
        )
    content = file if isinstance(file, bytes) else Path(file)
    if isinstance(content, bytes):
        size, start = len(content), content[:2]
    else:
        try:
            with content.open("rb") as opened:
                size, start = content.stat().st_size, opened.read(2)
        except OSError as problem:
            raise _unopened(problem, content) from problem
    limit = None if max_mb is None else int(max_mb * _MB)
    if limit is not None and size > limit:
        raise GoldenError(_too_large("The file", limit), file=label)
    if not size:
        raise GoldenError(_EMPTY, file=label)
    most = None if max_mb is None else min(MAX_ROWS, max_rows or MAX_ROWS)
    values = max(MAX_VALUES, VALUES_A_ROW * (max_rows or 0))
    packed = named.endswith(".gz") if suffix is None else start == _GZIP
    return TableFile(label, content, named.removesuffix(".gz"), packed, size, limit, most, values)


def _unopened(problem: Exception, place: Path | str) -> GoldenError:
    if isinstance(problem, FileNotFoundError):
        return GoldenError("File not found.", file=str(place))
    reason = getattr(problem, "strerror", None) or problem
    return GoldenError(f"Concord can't open the file: {reason}.", file=str(place))


def _too_large(what: str, limit: int) -> str:
    return f"{what} is larger than the limit of {limit / _MB:.4g} MB. Split the file, or raise the limit."


def _decoded(
    job: str, file: TableFile, options: Row, allowed: abc.Mapping[str, int], most: int = 0
) -> abc.Generator[Any, None, None]:
    """Yield the values that the sandbox reads from a file; a refusal is an error that names the file."""
    try:
        with closing(run_job("core.data.tables", job, file.content, options, allowed, most=most)) as values:
            yield from values
    except RefusedError as refused:
        raise file.refuse(refused.message, row=refused.row, column=refused.column) from refused


# ── formats: nothing is evaluated, everything is bounded ─────────────────────────────────────────────────────


def _with_encoding(file: TableFile) -> TableFile:
    """Detect the encoding of a text: UTF-16 by its mark, else UTF-8, else Windows-1252 with a warning.

    GoldenError for an empty file, a file that is too large, or binary content.
    """
    with file.reading() as opened:
        head = opened.read(HEAD)
    if len(head) < HEAD and not head.strip():
        raise file.refuse(_EMPTY)
    for magic, kind in ((b"PK\x03\x04", ".xlsx"), (b"PAR1", ".parquet"), (_GZIP, ".gz")):
        if head.startswith(magic):
            raise file.refuse(f"The file contains {kind} data. Change the end of the file name to {kind}.")
    encoding = "utf-16" if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    damaged = _first_damage(file, encoding)
    if damaged is None:
        return replace(file, encoding=encoding)
    if encoding == "utf-16" or _first_damage(file, "cp1252") is not None:
        raise file.refuse(f"Line {damaged} isn't valid Unicode. Save the file as UTF-8.")
    message = f"Line {damaged} isn't UTF-8, so Concord read the file as Windows-1252. Check accented letters."
    return replace(file, encoding="cp1252", findings=(FileProblem("warning", message, row=damaged),))


def _first_damage(file: TableFile, encoding: str) -> int | None:
    """Return the first line that cannot be decoded; None if all can.  GoldenError if the file is too large."""
    decoder, line, size = codecs.getincrementaldecoder(encoding)(), 1, 0
    with file.reading() as opened:
        while True:
            chunk = opened.read(_MB)
            size += len(chunk)
            if size > file.unpacked:
                raise file.refuse(_too_large("When unpacked, the file", file.unpacked))
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as problem:
                return line + problem.object.count(b"\n", 0, problem.start)
            if not chunk:
                return None
            line += chunk.count(b"\n")


def _with_sheet(file: TableFile) -> TableFile:
    """Read the first visible sheet of a workbook; its first filled row is the header."""
    options = {"rows": file.most_rows, "cells": MAX_CELLS, "unpacked": file.unpacked}
    columns: tuple[str, ...] = ()
    rows: list[tuple[int, Row]] = []
    with closing(_decoded("xlsx", file, options, allowance(file.size), 2 * file.unpacked)) as lines:
        notes = tuple(FileProblem("note", message) for message in next(lines))
        for number, cells in lines:
            if not columns:
                columns = _column_names(cells, file)
            elif any(cell not in (None, "") for cell in cells[len(columns) :]):
                raise file.refuse(
                    f"The row has a cell to the right of the {len(columns)} named columns. Name the cell's column, or "
                    "delete the cell.",
                    row=number,
                )
            else:
                rows.append((number, dict(zip(columns, cells, strict=False))))
    if not columns:
        raise file.refuse("The first visible sheet is empty. Move the sheet with the table to the front.")
    return replace(file, columns=columns, document=tuple(rows), findings=notes)


def _column_names(cells: abc.Sequence[Any], file: TableFile) -> tuple[str, ...]:
    """Trim the names in a header; a blank name becomes "(column 3)".  GoldenError for no name or a repeated one."""
    names = [
        visible_name(clean_text("" if cell is None else str(cell))) or f"(column {place})"
        for place, cell in enumerate(cells, start=1)
    ]
    if not names:
        raise file.refuse("The file has no header row. Add a row with the column names.")
    file.check_names(names)
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise file.refuse("Two columns have this name. Rename one of the columns.", column=twice)
    return tuple(names)


def _csv_rows(lines: abc.Iterable[str], file: TableFile) -> Numbered:
    """Yield the header of CSV text, then the cells of each row that is not blank, with its number from 1.

    Row numbers count blank rows, but not line breaks within texts.  GoldenError for a broken row.
    """
    csv.field_size_limit(max(csv.field_size_limit(), file.limit or LONGEST_LINE))
    reader = csv.reader(lines, delimiter=file.delimiter, strict=True)
    width = row = 0
    try:
        for row, cells in enumerate(reader, start=1):
            width = width or (len(cells) if any(cell.strip() for cell in cells) else 0)
            if width and cells and (len(cells) > 1 or cells[0].strip() or width == 1):
                yield row, [original_cell(cell) for cell in cells]
    except csv.Error as problem:
        message = f"Concord can't read CSV line {reader.line_num}: {problem}. Check for a missing quotation mark."
        raise file.refuse(message, row=row + 1) from problem


def _delimiter_of(text: str) -> str:
    """Choose the delimiter by the most known column names, then by equal row lengths, then by the most columns."""

    def fitness(delimiter: str) -> tuple[int, bool, int]:
        try:
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            head = [cells for cells in itertools.islice(reader, 20) if cells] or [[]]
        except csv.Error:
            head = [[]]
        even = len(head) > 1 and len({len(cells) for cells in head[:-1]}) == 1
        return sum(is_role(folded(cell)) for cell in head[0]), even and len(head[0]) > 1, len(head[0])

    return max((",", ";", "\t", "|"), key=fitness)


def _with_json_document(file: TableFile) -> TableFile:
    """Read the objects of a JSON array; leave a file of JSON lines unchanged."""
    with file.reading() as opened:
        text = opened.read().decode(file.encoding, "replace")
    try:
        value = _json_value(text, file, "The file")
    except GoldenError:
        if text.lstrip()[:1] == "{":
            return file
        raise
    value = [value] if isinstance(value, dict) else value
    if not isinstance(value, list):
        raise file.refuse(f"Expected a JSON array of objects; got a {type(value).__name__}.")
    document = tuple((row, _json_row(entry, file, row, "Entry")) for row, entry in enumerate(value, start=1))
    columns = tuple(dict.fromkeys(name for _, row in document for name in row))
    file.check_names(columns)
    return replace(file, columns=columns, document=document)


def _json_value(text: str, file: TableFile, what: str, row: int | None = None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        where = f" at line {problem.lineno}" if row is None else ""
        why = f"{where}: {problem.msg} at character {problem.colno}"
    except (RecursionError, ValueError):  # int() refuses thousands of digits
        why = ": it's nested too deeply, or contains a number that is too long"
    raise file.refuse(f"{what} isn't valid JSON{why}.", row=row)


_ODD_NAME = re.compile("^\\s|\\s$|^$|[\ud800-\udfff\x00]").search


def _json_row(value: Any, file: TableFile, row: int, what: str) -> Row:
    """Return an object with trimmed column names without lone surrogates, as in every other format."""
    if not isinstance(value, dict):
        raise file.refuse(f"{what} {row} must be a JSON object; got a {type(value).__name__}.", row=row)
    if all(name.isascii() for name in value) and not any(map(_ODD_NAME, value)):
        return value
    named = {visible_name(clean_text(name)) or "(no name)": cell for name, cell in value.items()}
    if len(named) < len(value):
        raise file.refuse(
            "Two column names differ only in spaces or in invisible or damaged characters. Rename one of the columns.",
            row=row,
        )
    return named
