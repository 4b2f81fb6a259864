"""The one reader of tables: a file of any format → its rows, one after the other, as plain cells under column names.

::

    open_table(file) ── TableFile ── rows() ──> Rows (columns and findings as far as it has come)
    read_table(file) ── Table: all rows at once;   read_upload(data, name): the same in a confined process

CSV, TSV and JSON lines (also ``.gz``) are read line by line, Parquet a few rows at a time; JSON documents and workbooks
have no rows before they were read whole.  Parquet and XLSX are decoded in a confined process (`core.sandbox`).  A
failure is a `GoldenError` with the file, and the row and column or line where there is one.
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Literal, cast

from core.data.cells import MAX_DEPTH, cell_at, clean_text, folded, n_values, shown
from core.data.columns import is_role
from core.errors import GoldenError
from core.records import visible_name
from core.sandbox import Reader, RefusedError, allowance
from core.spreadsheets import original_cell

# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────

MOST_ROWS_NAMED = 8
Severity = Literal["error", "warning", "note"]
_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A finding about a file, for the user; `row` is a number in the file, as `Rows.number`."""

    severity: Severity
    message: str
    row: int | None = None
    column: str | None = None


@dataclass
class FindingLog:
    """Findings of one file, one for each cause: the first of a kind in a column, which names the rows of the others.

    `broken`: the number of every row with an error → the first error in it.
    """

    kept: list[FileProblem] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    _also: dict[int, dict[int, None]] = field(default_factory=dict)  # place in `kept` → rows of the others, each once
    _first: dict[tuple[str, str | None, Severity], int] = field(default_factory=dict)

    def add(
        self, severity: Severity, message: str, *, row: int | None = None, column: str | None = None, kind: str = ""
    ) -> None:
        """Keep a finding; of those of one `kind` and column after the first, only the row."""
        if severity == "error" and row is not None:
            self.broken.setdefault(row, message)
        first = self._first.setdefault((kind, column, severity), len(self.kept)) if kind else len(self.kept)
        if first == len(self.kept):
            self.kept.append(FileProblem(severity, message, row, column))
        elif row is not None and row != self.kept[first].row:
            self._also.setdefault(first, {})[row] = None

    def once(self, severity: Severity, message: str, *, row: int | None = None, column: str | None = None) -> None:
        """Keep a finding unless that column has the same message already."""
        if (message, column, severity) not in self._first:
            self.add(severity, message, row=row, column=column, kind=message)

    def sorted(self) -> tuple[FileProblem, ...]:
        """Errors first, then warnings, then notes, each by row; each names the other rows of the same cause."""
        found = [
            replace(finding, message=f"{finding.message} The same in {rows_words(sorted(also))}.") if also else finding
            for finding, also in ((finding, self._also.get(k)) for k, finding in enumerate(self.kept))
        ]
        return tuple(sorted(found, key=lambda f: (_ORDER.index(f.severity), f.row is None, f.row or 0)))


def rows_words(rows: abc.Sequence[int]) -> str:
    """``"row 7"``, ``"rows 7, 8 and 12"``, ``"rows 2, 3, 4, 5, 6, 7, 8, 9 and 240 more"``."""
    *first, last = [f"{row:,}" for row in rows[:MOST_ROWS_NAMED]]
    if len(rows) > MOST_ROWS_NAMED:
        first, last = [*first, last], f"{len(rows) - MOST_ROWS_NAMED:,} more"
    return f"rows {', '.join(first)} and {last}" if first else f"row {last}"


def has_errors(findings: tuple[FileProblem, ...]) -> bool:
    """Whether any finding forbids the use of the file."""
    return any(finding.severity == "error" for finding in findings)


def first_error(findings: tuple[FileProblem, ...], file: str) -> GoldenError:
    """The first error finding as the error to raise; it counts the others."""
    first, *others = (finding for finding in findings if finding.severity == "error")
    more = f" ({len(others)} more errors; `check` lists them.)" if others else ""
    return GoldenError(first.message + more, file=file, row=first.row, column=first.column)


# ── a file as it came ────────────────────────────────────────────────────────────────────────────────────────

_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
SUFFIXES = (*(f"{suffix}.gz" for suffix in _TEXTS), *_TEXTS, ".parquet", ".xlsx")
USUAL_MB = 200
MAX_ROWS = 1_048_576
MAX_COLUMNS, MAX_NAME = 2000, 200
MAX_VALUES = 5_000_000
"""Values of a file (`Source.values`), unless more rows were asked for."""

MORE_ROWS = "Split it, or, for a golden set, raise CONCORD_MAX_GOLDEN_ITEMS if there is enough memory."
VALUES_A_ROW = 12
"""Values that a file may hold for each of the rows that were asked for, where these are more than `MAX_VALUES`."""

UNPACKED_FREELY, UNPACKED_TIMES = 32 << 20, 100
"""A packed file may unpack to so many bytes, and to so many times its own size beyond that."""

LONGEST_LINE = 16 << 20
"""Characters of a line, or of a CSV cell, of a file of any length; a longer one is refused before it fills memory."""

HEAD = 64 * 1024
_GZIP, _MB = b"\x1f\x8b", 1 << 20
_EMPTY = "The file is empty (0 bytes): write it anew, or name another."


class GoldenLimits:
    """How large a golden set may be: it is held in memory whole, at some 5 KB per item.

    Whoever starts a process sets `items` by its settings; the rest follows from it.
    """

    def __init__(self, items: int = 250_000) -> None:
        self.items = items

    @property
    def labels(self) -> int:
        """Labels and ratings, and room for them: items times aspects."""
        return 4 * self.items

    @property
    def mb(self) -> float:
        """The size of its file, packed and unpacked."""
        return max(USUAL_MB, self.items * USUAL_MB / 250_000)


LIMITS = GoldenLimits()
"""The limits of this process."""


@dataclass(frozen=True, slots=True)
class Source:
    """The content of a file: its name for messages, its format (``".csv"``), whether it is gzip, its size in bytes.

    `limit` bounds its bytes, packed and unpacked; None for a file of any length that is read row by row.  `values`
    bounds the cells, and entries of the lists and objects in them, of a file that is read whole, or of one line.
    """

    name: str
    content: Path | bytes
    suffix: str
    packed: bool
    size: int
    limit: int | None
    values: int

    def refuse(self, message: str, *, row: int | None = None, column: str | None = None) -> GoldenError:
        """Make the error that names this file."""
        return GoldenError(message, file=self.name, row=row, column=column)

    @property
    def unpacked(self) -> int:
        """How many bytes the content may have when it is unpacked."""
        most = UNPACKED_FREELY + UNPACKED_TIMES * self.size
        return most if self.limit is None else min(most, self.limit)

    @property
    def longest_line(self) -> int:
        """How many characters a line may have."""
        return self.limit or LONGEST_LINE

    def bound_values(self, n_values: int, *, row: int | None = None) -> None:
        """Raise GoldenError for more values than are read."""
        if n_values > self.values:
            raise self.refuse(f"The file holds too many values; at most {self.values:,} are read. Split it.", row=row)

    def check_names(self, columns: abc.Collection[str]) -> None:
        """Raise GoldenError for more columns, or longer names, than a table may have."""
        if len(columns) > MAX_COLUMNS:
            raise self.refuse(f"{len(columns)} columns are too many; at most {MAX_COLUMNS} are read.")
        if long := next((name for name in columns if len(name) > MAX_NAME), None):
            raise self.refuse(f"A column name is longer than {MAX_NAME} characters: {shown(long)}.")

    @contextmanager
    def reading(self) -> abc.Iterator[IO[bytes]]:
        """Open the unpacked bytes at their beginning."""
        try:
            place = io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content.open("rb")
            with place, gzip.GzipFile(fileobj=place) if self.packed else place as file:
                yield cast(IO[bytes], file)
        except (OSError, EOFError, zlib.error) as problem:
            if self.packed and not getattr(problem, "errno", None):
                raise self.refuse(f"The gzip data is broken or cut off ({problem}).") from problem
            raise _unopened(problem, self.content if isinstance(self.content, Path) else self.name) from problem

    def encoding(self) -> tuple[str, int | None]:
        """Find out how the text is decoded.

        Returns:
            The codec, and the first line that is not UTF-8 where the text is taken for Windows-1252.  UTF-16 is known
            by its mark.

        Raises:
            GoldenError: There is no text, more of it than may be, bytes of no encoding, or a workbook, Parquet or
                gzip file under the name of a text.
        """
        with self.reading() as file:
            head = file.read(HEAD)
        if len(head) < HEAD and not head.strip():
            raise self.refuse(_EMPTY)
        for magic, kind in ((b"PK\x03\x04", ".xlsx"), (b"PAR1", ".parquet"), (_GZIP, ".gz")):
            if head.startswith(magic):
                raise self.refuse(f"The content is that of a {kind} file; give it that ending.")
        encoding = "utf-8-sig"
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = "utf-16"
        damage = self._first_damage(encoding)
        if damage is None:
            return encoding, None
        line, reason = damage
        if encoding != "utf-8-sig":
            raise self.refuse(f"The text is broken: it began as UTF-16, but {reason}.")
        if self._first_damage("cp1252") is not None:
            raise self.refuse(f"The text is neither UTF-8 (line {line}) nor Windows-1252. Save the file as UTF-8.")
        return "cp1252", line

    def _first_damage(self, encoding: str) -> tuple[int, str] | None:
        """The first line that cannot be decoded, and why; None where all can.  GoldenError for too many bytes."""
        decoder = codecs.getincrementaldecoder(encoding)()
        line, size, plain = 1, 0, not encoding.startswith("utf-16")
        with self.reading() as file:
            while True:
                chunk = file.read(_MB)
                size += len(chunk)
                if size > self.unpacked:
                    raise self.refuse(_too_large("Unpacked, it", "more than that", self.unpacked))
                try:
                    if not (plain and chunk and chunk.isascii()) or decoder.getstate()[0]:
                        decoder.decode(chunk, final=not chunk)
                except UnicodeDecodeError as problem:
                    return line + problem.object.count(b"\n", 0, problem.start), problem.reason
                if not chunk:
                    return None
                line += chunk.count(b"\n")

    def lines(self, encoding: str, newline: str) -> abc.Generator[str, None, None]:
        """The text's lines, decoded as they are read: whole they would take several times the memory."""
        with self.reading() as file, io.TextIOWrapper(file, encoding, newline=newline) as text:
            number, longest = 0, self.longest_line
            try:
                while line := text.readline(longest):
                    number += 1
                    if len(line) == longest and not line.endswith("\n"):
                        most = longest >> 20
                        raise self.refuse(f"Line {number} is longer than {most} million characters; is it a table?")
                    yield line
            except UnicodeDecodeError as problem:
                raise self.refuse(f"The text is broken at line {number + 1} ({problem.reason}).") from problem


def open_source(
    file: str | Path | bytes,
    name: str | None = None,
    *,
    suffix: str | None = None,
    max_mb: float | None = USUAL_MB,
    max_rows: int | None = None,
) -> Source:
    """Look at a file to be read, by its path or by the bytes of an upload (then `name` gives its format).

    `suffix` is the format whatever the name says; gzip is then known by its content.  `max_mb` bounds the file and
    what it unpacks to, which is never more than 32 MB and 100 times its own size; None takes a file of any length.
    `max_rows` are those that will be read at most.  GoldenError for one that is missing, empty, too large or of no
    known format.
    """
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    named = suffix_of(label) if suffix is None else suffix
    if named is None:
        allowed = f"{', '.join(suffix for suffix in SUFFIXES if suffix[-3:] != '.gz')}, or .csv.gz, .jsonl.gz and so on"
        raise GoldenError(f"The file type is not known: it must be one of {allowed}.", file=label or "(unnamed)")
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
        raise GoldenError(_too_large("It", f"{size / _MB:.0f} MB", limit), file=label)
    if not size:
        raise GoldenError(_EMPTY, file=label)
    packed = named.endswith(".gz") if suffix is None else start == _GZIP
    values = max(MAX_VALUES, VALUES_A_ROW * (max_rows or 0))
    return Source(label, content, named.removesuffix(".gz"), packed, size, limit, values)


def suffix_of(name: str) -> str | None:
    """The ending that gives the format, such as ``".jsonl.gz"``; None for one that is not known."""
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), None)


def _unopened(problem: Exception, place: Path | str) -> GoldenError:
    if isinstance(problem, FileNotFoundError):
        return GoldenError("There is no such file.", file=str(place))
    reason = getattr(problem, "strerror", None) or problem
    return GoldenError(f"The file cannot be opened: {reason}.", file=str(place))


def _too_large(what: str, came: str, limit: int) -> str:
    return f"{what} is too large: at most {limit / _MB:.4g} MB are read; got {came}. Split it, or raise the limit."


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────

SMALL = 1 << 20
"""Bytes of plain text that cost too little to need a process of their own."""
MAX_CELLS = 5_000_000
_UNPACKED_USUALLY = 10
_DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?\s*(?:[\r\n]|\Z)', re.IGNORECASE)
"""The first line by which Excel is told the delimiter."""
_IMPORT_ID = re.compile(r'\{\s*"ImportId"').match
_ODD_NAME = re.compile("^\\s|\\s$|^$|[\ud800-\udfff\x00]").search

READER = Reader("core.data.decoding")
"""One process for all files of this one; it starts with the first."""

Row = abc.Mapping[str, Any]
Numbered = abc.Iterator[tuple[int, list[Any]]]


@dataclass(frozen=True)
class Table:
    """Rows as they came: column → cell, absent where empty.

    `numbers` are the rows' numbers in the file, as `Rows.number`; empty: from 1.  `worded` are the columns in which
    words, now numbers from 1 to 3, say which of two texts is better.  `joined`: a column of lists of ratings → the
    columns of the file that hold them, one for each rater; `rows` has both.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    findings: tuple[FileProblem, ...] = ()
    numbers: tuple[int, ...] = ()
    worded: frozenset[str] = frozenset()
    joined: abc.Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def numbered(self) -> abc.Iterator[tuple[int, Row]]:
        """Every row with its number in the file."""
        return zip(self.numbers or range(1, len(self.rows) + 1), self.rows, strict=True)


@dataclass(frozen=True)
class TableFile:
    """A file whose rows can be read as often as needed.  `most_rows`: how many at most; None for any number.

    `encoding` and `delimiter` are "" where the format has none; `document` holds the rows of a format without rows of
    its own, `numbers` their numbers in a workbook.  `findings` are those of the file as a whole.  `paths` into nested
    JSON, such as ``output.choices[0].text``, are columns too where a row has such a cell.
    """

    source: Source
    most_rows: int | None
    encoding: str = ""
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    document: tuple[Row, ...] | None = None
    findings: tuple[FileProblem, ...] = ()
    numbers: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()

    def rows(self, log: FindingLog | None = None) -> Rows:
        """One pass over the rows; `log` takes the findings on them."""
        return Rows(self, FindingLog() if log is None else log)

    def numbered(self) -> abc.Iterator[tuple[int, Row]]:
        """Every row with its number in the file."""
        for row in (rows := self.rows()):
            yield rows.number, row


class Rows:
    """One pass over the rows of a file, to be iterated once; `columns` and `findings` as far as it has come.

    `number` is that of the row just given, for messages: a table's as a spreadsheet shows it, with a header in row 1,
    the line of JSON lines, and the place of the row in JSON arrays and Parquet files.
    GoldenError, when it is reached, for a row that is broken or beyond a limit, and for a file without rows.
    """

    def __init__(self, file: TableFile, log: FindingLog) -> None:
        self.file, self.number, self._log = file, 0, log
        self._take(file.columns)

    def _take(self, columns: abc.Iterable[str]) -> None:
        self._columns = dict.fromkeys(columns)
        self._blank = {name for name in self._columns if name.startswith("(column ")}

    @property
    def columns(self) -> tuple[str, ...]:
        """In file order, less those without a name and without a cell, as spreadsheets leave at the right."""
        return tuple(name for name in self._columns if name not in self._blank)

    @property
    def findings(self) -> tuple[FileProblem, ...]:
        """On the file, then on its rows."""
        return (*self.file.findings, *self._log.sorted())

    def __iter__(self) -> abc.Iterator[Row]:
        source, most, n_held, place = self.file.source, self.file.most_rows, 0, 0
        with closing(self._plain_rows()) as rows:
            for place, (number, row) in enumerate(rows, start=1):
                self.number = number
                if most is not None and place > most:
                    raise source.refuse(f"The file has too many rows; at most {most:,} are read. {MORE_ROWS}")
                held = len(row) if self.file.delimiter else n_values(row)  # of JSON at any depth
                if held is None:
                    message = f"The row is nested too deeply: more than {MAX_DEPTH} levels."
                    raise source.refuse(message, row=number)
                n_held += held
                if most is not None:
                    source.bound_values(n_held, row=None if self.file.delimiter else number)
                if self._blank:
                    self._blank -= {name for name in self._blank if row.get(name) not in (None, "")}
                found = {path: cell for path in self.file.paths if (cell := cell_at(row, path)) is not None}
                self._columns |= dict.fromkeys(found)
                yield {**row, **found} if found else row
        if not place:
            raise source.refuse("The file holds no data rows.")

    def _plain_rows(self) -> abc.Generator[tuple[int, Row], None, None]:
        file, source = self.file, self.file.source
        if file.document is not None:
            numbers = file.numbers or range(1, len(file.document) + 1)
            yield from zip(numbers, file.document, strict=True)
        elif source.suffix == ".parquet":
            allowed = allowance(source.size, streaming=file.most_rows is None)
            most = 0 if file.most_rows is None else source.unpacked
            with closing(_decoded("parquet", source, {"rows": file.most_rows}, allowed, most)) as cells:
                yield from self._under_header(enumerate(cells))
        else:
            with closing(source.lines(file.encoding, "" if file.delimiter else "\n")) as lines:
                if file.delimiter:
                    yield from self._under_header(_without_questions(_csv_rows(lines, file.delimiter, source)))
                    return
                for number, line in enumerate(lines, start=1):
                    if line.isspace():
                        continue
                    row = _json_line(line, number, source)
                    if not row.keys() <= self._columns.keys():
                        self._columns |= dict.fromkeys(row)
                        source.check_names(self._columns)
                    yield number, row

    def _under_header(self, lines: Numbered) -> abc.Iterator[tuple[int, Row]]:
        """The numbered rows after the first, which holds the names of their columns."""
        columns, source = _column_names(next(lines, (0, []))[1], self.file.source), self.file.source
        self._take(columns)
        for number, cells in lines:
            if len(cells) != len(columns):
                came = f"{len(cells)} cells instead of the {len(columns)} in the header;"
                if len(cells) > len(columns):
                    raise source.refuse(f"{came} a text with the delimiter must be quoted.", row=number)
                message = f"{came} the rest is read as empty."
                self._log.add("warning", message, row=number, column=columns[len(cells)], kind="row")
            yield number, dict(zip(columns, cells, strict=False))


def open_table(
    file: str | Path | bytes,
    name: str | None = None,
    *,
    suffix: str | None = None,
    max_mb: float | None = USUAL_MB,
    max_rows: int | None = None,
    paths: abc.Collection[str] = (),
) -> TableFile:
    """Look at a file: its format, encoding and delimiter.  `file`, `name`, `suffix`, `max_mb` as in `open_source`.

    `max_mb` None reads a file of any length row by row; what has to be read whole is bounded all the same.
    `paths` are columns within nested JSON, as
    `TableFile` has them.
    """
    nested = tuple(path for path in dict.fromkeys(paths) if "." in path or "[" in path)
    source = open_source(file, name, suffix=suffix, max_mb=max_mb, max_rows=max_rows)
    if source.limit is None and source.suffix in (".json", ".xlsx"):
        source = open_source(file, name, suffix=suffix, max_rows=max_rows)
    most = None if source.limit is None else min(MAX_ROWS, max_rows or MAX_ROWS)
    if source.suffix == ".xlsx":
        return _workbook(source, most or MAX_ROWS)
    if source.suffix == ".parquet":
        return TableFile(source, most, paths=nested)
    encoding, damaged = source.encoding()
    findings: tuple[FileProblem, ...] = ()
    if damaged is not None:
        message = (
            f"The file is not UTF-8 (first at line {damaged}); it was read as Windows-1252. Check accented letters."
        )
        findings = (FileProblem("warning", message, row=damaged),)
    document: tuple[Row, ...] | None = None
    columns: tuple[str, ...] = ()
    delimiter = ""
    if source.suffix in (".csv", ".tsv"):
        with source.reading() as text:
            delimiter = _delimiter_of(text.read(HEAD).decode(encoding, "replace"))
    elif source.suffix == ".json" and (document := _json_document(source, encoding)) is not None:
        columns = tuple(dict.fromkeys(itertools.chain.from_iterable(document)))
        source.check_names(columns)
    return TableFile(source, most, encoding, delimiter, columns, document, findings, paths=nested)


def read_table(
    file: str | Path | bytes,
    name: str | None = None,
    *,
    suffix: str | None = None,
    max_mb: float = USUAL_MB,
    max_rows: int | None = None,
    paths: abc.Collection[str] = (),
) -> Table:
    """Read a CSV, TSV, JSONL, JSON, Parquet or XLSX file (text formats also ``.gz``) whole.

    `file` is a path or the bytes of an upload (then `name` gives the suffix).  `max_mb` bounds the file and what it
    unpacks to; rows, columns and values are bounded too.  `paths` as `open_table`; formulas of a workbook
    stay text.  GoldenError for anything that cannot be read.
    """
    rows = open_table(file, name, suffix=suffix, max_mb=max_mb, max_rows=max_rows, paths=paths).rows()
    numbered = [(rows.number, row) for row in rows]
    return _table_of(rows.file.source.name, rows.columns, rows.findings, numbered)


def read_upload(
    data: bytes, name: str, *, suffix: str | None = None, max_mb: float = USUAL_MB, max_rows: int | None = None
) -> Table:
    """As `read_table`, for a file that somebody sent: whatever is not small plain text is read in a confined process.

    The process has little memory, little time and no secrets, and only plain values come back from it.
    """
    source = open_source(data, name, suffix=suffix, max_mb=max_mb)
    if source.suffix in (".parquet", ".xlsx") or (source.size <= SMALL and not source.packed):
        return read_table(data, name, suffix=suffix, max_mb=max_mb, max_rows=max_rows)
    allowed = allowance(min(source.unpacked, _UNPACKED_USUALLY * source.size))
    options = {"name": name, "suffix": suffix, "max_mb": max_mb, "max_rows": max_rows}
    with closing(_decoded("table", source, options, allowed)) as lines:
        head = next(lines)
        numbered = list(lines)
    return _table_of(name, head["columns"], (FileProblem(**finding) for finding in head["findings"]), numbered)


def _table_of(
    name: str, columns: abc.Iterable[str], findings: abc.Iterable[FileProblem], numbered: abc.Sequence[tuple[int, Row]]
) -> Table:
    numbers, rows = (tuple(part[k] for part in numbered) for k in (0, 1))
    return Table(name, tuple(columns), rows, tuple(findings), numbers)  # type: ignore[arg-type]


def _decoded(
    job: str, source: Source, options: Row, allowed: abc.Mapping[str, int], most: int = 0
) -> abc.Generator[Any, None, None]:
    """What the confined process makes of a file; what it refuses, as an error that names the file."""
    try:
        with closing(READER.ask(job, source.content, options, allowed, most=most)) as values:
            yield from values
    except RefusedError as refused:
        raise source.refuse(refused.message, row=refused.row, column=refused.column) from refused


def _workbook(source: Source, most_rows: int) -> TableFile:
    """The first visible sheet of a workbook, its first filled row the header."""
    options = {"rows": most_rows, "cells": MAX_CELLS, "unpacked": source.unpacked}
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    numbers: list[int] = []
    with closing(_decoded("xlsx", source, options, allowance(source.size), 2 * source.unpacked)) as lines:
        notes = tuple(FileProblem(severity, message) for severity, message in next(lines))
        for number, cells in _without_questions(lines):
            if not columns:
                columns = _column_names(cells, source)
            elif any(cell not in (None, "") for cell in cells[len(columns) :]):
                raise source.refuse(f"A cell stands right of the {len(columns)} named columns.", row=number)
            else:
                numbers.append(number)
                rows.append(dict(zip(columns, cells, strict=False)))
    if not columns:
        raise source.refuse("The sheet is empty. Save another sheet as a file.")
    return TableFile(source, most_rows, columns=columns, document=tuple(rows), findings=notes, numbers=tuple(numbers))


# ── text: nothing is evaluated, everything is bounded ───────────────────────────────────────────────────────────


def _column_names(cells: abc.Sequence[Any], source: Source) -> tuple[str, ...]:
    """Column names of a header, trimmed; a blank one becomes "(column 3)".  GoldenError for none or a repeated one."""
    names = [
        visible_name(clean_text("" if cell is None else str(cell))) or f"(column {place})"
        for place, cell in enumerate(cells, start=1)
    ]
    if not names:
        raise source.refuse("The file is empty: it has no header line.")
    source.check_names(names)
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise source.refuse("Two columns have this name; rename one.", column=twice)
    return tuple(names)


def _without_questions(rows: Numbered) -> Numbered:
    """The rows without those in which Qualtrics writes the questions and ids of the columns under their names."""
    start = list(itertools.islice(rows, 3))
    if len(start) == 3 and all(_IMPORT_ID(str(cell)) for cell in start[2][1] if cell is not None):
        del start[1:]
    return itertools.chain(start, rows)


def _csv_rows(lines: abc.Iterable[str], delimiter: str, source: Source) -> Numbered:
    """The header of CSV text, then the cells of each row that is not blank, with its number in the file from 1.

    Blank rows and a first line ``sep=;`` count; a row is one, however many lines its texts have.  GoldenError for a
    broken row.
    """
    csv.field_size_limit(max(csv.field_size_limit(), source.longest_line))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = row = 0
    try:
        for row, cells in enumerate(reader, start=1):
            if not width:  # above the header
                named = any(cell.strip() for cell in cells) and not _SEPARATOR.match(delimiter.join(cells))
                width = len(cells) if named else 0
            if width and cells and (len(cells) > 1 or cells[0].strip() or width == 1):
                yield row, [original_cell(cell) for cell in cells]
    except csv.Error as problem:
        message = f"The CSV is broken at line {reader.line_num}: {problem}. A quotation mark may be missing."
        raise source.refuse(message, row=row + 1) from problem


def _delimiter_of(text: str) -> str:
    """The delimiter that the first line names (``sep=;``), else the one that fits best.

    It gives the most known column names, then the most even rows, then the most columns.
    """

    def fitness(delimiter: str) -> tuple[int, bool, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            head = [cells for cells in itertools.islice(reader, 20) if cells] or [[]]
        except csv.Error:
            head = [[]]
        even = len(head) > 1 and len({len(cells) for cells in head[:-1]}) == 1
        return sum(is_role(folded(cell)) for cell in head[0]), even and len(head[0]) > 1, len(head[0])

    named = _SEPARATOR.match(text.lstrip("\ufeff"))
    return named[1] if named else max(_DELIMITERS, key=fitness)


def _json_line(line: str, number: int, source: Source) -> dict[str, Any]:
    """The object of a line.  GoldenError with the line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise source.refuse(f"Line {number} is not JSON: {_reason(problem)}.", row=number) from problem
    if not isinstance(value, dict):
        raise source.refuse(f"Line {number} must be a JSON object, got a {type(value).__name__}.", row=number)
    return _with_plain_names(value, number, source)


def _json_document(source: Source, encoding: str) -> tuple[dict[str, Any], ...] | None:
    """The objects of a JSON array; None for JSON lines."""
    with source.reading() as file:
        text = file.read().decode(encoding, "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        if text.lstrip()[:1] == "{":
            return None
        where = f" at line {problem.lineno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise source.refuse(f"The file is not JSON{where}: {_reason(problem)}.") from problem
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise source.refuse(f"Expected a JSON array of objects, got a {type(value).__name__}.")
    for row, entry in enumerate(value, start=1):
        if not isinstance(entry, dict):
            raise source.refuse(f"Expected a JSON object, got a {type(entry).__name__}.", row=row)
    return tuple(_with_plain_names(entry, row, source) for row, entry in enumerate(value, start=1))


def _with_plain_names(value: dict[str, Any], row: int, source: Source) -> dict[str, Any]:
    """The row under column names as every format has them: trimmed, without halves of characters."""
    if all(name.isascii() for name in value) and not any(map(_ODD_NAME, value)):
        return value
    named = {visible_name(clean_text(name)) or "(no name)": cell for name, cell in value.items()}
    if len(named) < len(value):
        raise source.refuse("Two column names differ only in spaces, invisible or damaged characters.", row=row)
    return named


def _reason(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg} at character {problem.colno}"
    return "it is nested too deeply" if isinstance(problem, RecursionError) else "a number in it is too long"
