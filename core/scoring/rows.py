"""Rows of a table file one after the other, so that a file of any length is read in constant memory.

CSV, TSV and JSONL (also ``.gz``) are read line by line, Parquet a few rows at a time; what a row may be, and the
words for one that is none, are those of `core.data`.  JSON documents and workbooks have no rows before they were
read whole: `streams` says which formats do.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import sys
import zlib
from collections import abc
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.data.binary_formats import parquet_stream
from core.data.content import MAX_COLUMNS, Content, unpacked_limit, without_blank_columns
from core.data.table import MAX_NAME, PACKED, SUFFIXES
from core.data.text_formats import csv_rows, json_object, refuse_disguises, sniff_delimiter, utf16_of
from core.errors import GoldenError
from core.records import Finding

HEAD_BYTES = 64 * 1024
HEAD_ROWS = 1_000
"""Rows looked at before the columns' roles are settled."""

LONGEST_LINE = 16 * 1024 * 1024
"""Characters of a line, or of a CSV cell; a longer one is refused before it fills the memory."""

_LOOKED_EACH = 100

Row = abc.Mapping[str, Any]
Tell = abc.Callable[[Finding], None]


def streams(path: Path) -> bool:
    """Whether the file's format can be read row by row; GoldenError for an ending that is no format at all."""
    return suffix_of(path).removesuffix(".gz") not in (".json", ".xlsx")


def suffix_of(path: Path) -> str:
    """The ending that tells the format, e.g. ``".jsonl.gz"``.  GoldenError for one that is not known."""
    low = path.name.lower()
    for suffix in (*PACKED, *SUFFIXES):
        if low.endswith(suffix):
            return suffix
    allowed = ", ".join(SUFFIXES)
    raise GoldenError(
        f"The file type is not known: it must be one of {allowed}, or .csv.gz, .jsonl.gz and the like.", file=path.name
    )


@dataclass(frozen=True)
class RowFile:
    """A file that is read row by row.  `delimiter` is "" for other formats than CSV, `encoding` "" for Parquet."""

    path: Path
    suffix: str
    encoding: str = ""
    delimiter: str = ""

    @classmethod
    def open(cls, path: Path) -> RowFile:
        """Look at the beginning of a file.  GoldenError for one that cannot be opened, is empty, or is disguised."""
        suffix = suffix_of(path)
        found = cls(path, suffix)
        if suffix == ".parquet":
            return found
        try:
            with found.bytes() as file:
                head = file.read(HEAD_BYTES)
        except (OSError, EOFError, zlib.error) as problem:
            raise found.broken(problem) from problem
        if not head.strip():
            raise GoldenError("The file is empty.", file=path.name)
        refuse_disguises(Content(path.name, head, LONGEST_LINE))
        encoding = utf16_of(head) or "utf-8-sig"
        delimiter = sniff_delimiter(head.decode(encoding, "replace")) if suffix[:4] in (".csv", ".tsv") else ""
        return replace(found, encoding=encoding, delimiter=delimiter)

    def as_windows_text(self) -> RowFile:
        """The same file read as Windows-1252."""
        return replace(self, encoding="cp1252")

    def rows(self, tell: Tell, start: int = 0) -> abc.Iterator[tuple[int, Row]]:
        """(row number from 1, row) after the first `start` rows.

        GoldenError, with the row, for one that is broken; UnicodeDecodeError where the bytes are not of `encoding`.
        """
        if self.suffix == ".parquet":
            return self._parquet(start)
        return self._csv(tell, start) if self.delimiter else self._jsonl(start)

    def columns(self, head: abc.Sequence[Row]) -> tuple[str, ...]:
        """The columns in file order; for JSONL those that the rows of `head` name."""
        if self.suffix == ".parquet":
            with closing(self._parquet_lines()) as lines:
                return tuple(next(lines))
        if not self.delimiter:
            return tuple(dict.fromkeys(itertools.chain.from_iterable(head)))
        with self.lines() as lines:
            columns, _ = csv_rows(lines, self.delimiter, self._content, _hear_nothing)
        return without_blank_columns(columns, [dict(row) for row in head])

    def check_columns(self, columns: abc.Collection[str]) -> None:
        """GoldenError for more columns, or longer names, than a table may have."""
        if len(columns) > MAX_COLUMNS:
            raise GoldenError(f"{len(columns)} columns came; at most {MAX_COLUMNS} are read.", file=self.path.name)
        long = next((name for name in columns if len(name) > MAX_NAME), None)
        if long is not None:
            raise GoldenError(
                f"A column name is longer than {MAX_NAME} characters: {long[:40]!r}….", file=self.path.name
            )

    def bytes(self) -> io.BufferedReader | gzip.GzipFile:
        """The unpacked bytes of a text file."""
        try:
            return gzip.GzipFile(self.path) if self.suffix.endswith(".gz") else self.path.open("rb")
        except FileNotFoundError:
            raise GoldenError("There is no such file.", file=str(self.path)) from None
        except OSError as problem:
            raise self.broken(problem) from problem

    def broken(self, problem: Exception) -> GoldenError:
        """What to raise when the bytes cannot be read."""
        if self.suffix.endswith(".gz") and not (isinstance(problem, OSError) and problem.errno):
            return GoldenError(f"The gzip data is broken or cut off ({problem}).", file=self.path.name)
        told = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        return GoldenError(f"The file cannot be opened: {told}.", file=str(self.path))

    def lines(self) -> _Lines:
        """The text's lines, none longer than `LONGEST_LINE`."""
        return _Lines(self)

    @property
    def _content(self) -> Content:
        return Content(self.path.name, b"", LONGEST_LINE)

    def _csv(self, tell: Tell, start: int) -> abc.Iterator[tuple[int, Row]]:
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
        with self.lines() as lines:
            _, rows = csv_rows(lines, self.delimiter, self._content, tell)
            yield from itertools.islice(enumerate(rows, start=1), start, None)

    def _jsonl(self, start: int) -> abc.Iterator[tuple[int, Row]]:
        number = 0
        with self.lines() as lines:
            for line_number, line in enumerate(lines, start=1):
                if line.strip():
                    number += 1
                    if number > start:
                        yield number, json_object(line, line_number, number, self._content)

    def _parquet(self, start: int) -> abc.Iterator[tuple[int, Row]]:
        with closing(self._parquet_lines(start)) as lines:
            next(lines)
            for number, row in enumerate(lines, start=start + 1):
                assert not isinstance(row, tuple)
                yield number, row

    def _parquet_lines(self, start: int = 0) -> abc.Generator[tuple[str, ...] | dict[str, Any], None, None]:
        try:
            yield from parquet_stream(self.path, self._content, start)
        except FileNotFoundError:
            raise GoldenError("There is no such file.", file=str(self.path)) from None
        except OSError as problem:
            raise self.broken(problem) from problem


class _Lines:
    """Lines of a text file, as the format's reader wants their ends; used as a context and as an iterator."""

    def __init__(self, file: RowFile) -> None:
        self._file, self._count = file, 0
        ends = "" if file.delimiter else "\n"
        self._bytes = file.bytes()
        self._most = unpacked_limit(file.path.stat().st_size, sys.maxsize)
        self._text = io.TextIOWrapper(self._bytes, encoding=file.encoding, newline=ends)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._text.close()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        try:
            line = self._text.readline(LONGEST_LINE)
        except UnicodeDecodeError:
            raise
        except (OSError, EOFError, zlib.error) as problem:
            raise self._file.broken(problem) from problem
        if not line:
            raise StopIteration
        self._count += 1
        if self._count % _LOOKED_EACH == 0 and self._bytes.tell() > self._most:
            raise GoldenError(
                f"Unpacked, the file is larger than {self._most >> 20} MB, far more than its own size.",
                file=self._file.path.name,
            )
        if len(line) == LONGEST_LINE:
            raise GoldenError(
                f"Line {self._count} is longer than {LONGEST_LINE >> 20} million characters; is it a table?",
                file=self._file.path.name,
            )
        return line


def _hear_nothing(_: Finding) -> None:
    """Findings of a second look are no news."""
