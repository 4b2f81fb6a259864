"""A file as it came: bounded, unpacked, decoded line by line; and the findings on it.

Every limit of reading stands here.  Every failure is a `GoldenError` that names the file.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections import Counter, abc
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, cast

from core.data.cells import shown
from core.errors import GoldenError

_TEXTS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
SUFFIXES = (*(f"{suffix}.gz" for suffix in _TEXTS), *_TEXTS, ".parquet", ".xlsx")
USUAL_MB = 200
MAX_ROWS = 1_048_576
MAX_COLUMNS, MAX_NAME = 2000, 200
MAX_VALUES = 5_000_000
"""Values of a file (`Source.values`), unless more rows were asked for."""

MORE_ROWS = "Split it, or, if it is a golden set and there is memory, set CONCORD_MAX_GOLDEN_ITEMS."
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
            raise self.refuse(f"{len(columns)} columns came; at most {MAX_COLUMNS} are read.")
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
            by its mark or by its zeros.

        Raises:
            GoldenError: There is no text, more of it than may be, bytes of no encoding, or a workbook, Parquet, gzip
                or HTML file under the name of a text.
        """
        with self.reading() as file:
            head = file.read(HEAD)
        if len(head) < HEAD and not head.strip():
            raise self.refuse(_EMPTY)
        for magic, kind in ((b"PK\x03\x04", ".xlsx"), (b"PAR1", ".parquet"), (_GZIP, ".gz")):
            if head.startswith(magic):
                raise self.refuse(f"The content is that of a {kind} file; give it that ending.")
        if head.removeprefix(codecs.BOM_UTF8).lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
            raise self.refuse("This is a web page (HTML), not a table; was it saved from a sign-in page?")
        encoding, start = "utf-8-sig", head[:1000]
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = "utf-16"
        elif start[1::2].count(0) > len(start) * 0.3:
            encoding = "utf-16-le"
        elif start[0::2].count(0) > len(start) * 0.3:
            encoding = "utf-16-be"
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
    return f"{what} is too large: at most {limit / _MB:.4g} MB are read, {came} came. Split it, or raise the limit."


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────

SHOWN_EACH = 10
Severity = Literal["error", "warning", "note"]
_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class FileFinding:
    """Something a person should know about a file; `row` is a number in the file, as `Rows.number`."""

    severity: Severity
    message: str
    row: int | None = None
    column: str | None = None


@dataclass
class FindingLog:
    """Findings of one file; the first ten of each kind and column are kept, the rest counted.

    `broken`: the number of every row with an error → the first error in it.
    """

    kept: list[FileFinding] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    _counts: Counter[tuple[str, str | None, Severity]] = field(default_factory=Counter)

    def add(
        self, severity: Severity, message: str, *, row: int | None = None, column: str | None = None, kind: str = ""
    ) -> None:
        """Keep a finding; those of one `kind` (and column) beyond the tenth are counted only."""
        if severity == "error" and row is not None:
            self.broken.setdefault(row, message)
        if kind:
            self._counts[kind, column, severity] += 1
        if not kind or self._counts[kind, column, severity] <= SHOWN_EACH:
            self.kept.append(FileFinding(severity, message, row, column))

    def once(self, severity: Severity, message: str, *, row: int | None = None, column: str | None = None) -> None:
        """Keep a finding unless that column has the same message already."""
        key = (message, column, severity)
        if key not in self._counts:
            self._counts[key] = 1
            self.kept.append(FileFinding(severity, message, row, column))

    def sorted(self) -> tuple[FileFinding, ...]:
        """Errors first, then warnings, then notes, each by row; "12 more like this" where some were only counted."""
        more = [
            FileFinding(severity, f"{count - SHOWN_EACH} more like this in this column.", None, column)
            for (_, column, severity), count in self._counts.items()
            if count > SHOWN_EACH
        ]
        return tuple(sorted([*self.kept, *more], key=lambda f: (_ORDER.index(f.severity), f.row is None, f.row or 0)))


def has_errors(findings: tuple[FileFinding, ...]) -> bool:
    """Whether any finding forbids the use of the file."""
    return any(finding.severity == "error" for finding in findings)


def first_error(findings: tuple[FileFinding, ...], file: str) -> GoldenError:
    """The first error finding as the error to raise; it counts the others."""
    first, *others = (finding for finding in findings if finding.severity == "error")
    more = f" ({len(others)} more errors; `check` lists them.)" if others else ""
    return GoldenError(first.message + more, file=file, row=first.row, column=first.column)
