"""A file as a table: suffix → unpacked, size-checked bytes → rows (`text_formats`, `binary_formats`).

Every failure is a `GoldenError` that names the file, and the row and column or line where there is one.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections import abc
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.confined.asking import Allowance, RefusedError
from core.data import binary_formats, text_formats
from core.data.cells import shown
from core.data.content import MAX_COLUMNS, Content, Parsed, unpacked_limit
from core.errors import GoldenError
from core.records import Finding

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
PACKED = tuple(f"{suffix}.gz" for suffix in (".csv", ".tsv", ".jsonl", ".ndjson", ".json"))
MAX_NAME = 200
SMALL = 1024 * 1024
"""Bytes of plain text that cost too little to need a process of their own."""

_UNPACKED_USUALLY = 10
_MB = 1024 * 1024
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Table:
    """Rows as they came: column → cell; an absent key is an empty cell.  `findings` tell of the reading itself."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[abc.Mapping[str, Any], ...]
    findings: tuple[Finding, ...] = ()


def read_table(
    file: str | Path | bytes, name: str | None = None, *, max_mb: float = 200, max_rows: int | None = None
) -> Table:
    """Read a CSV, TSV, JSONL, JSON, Parquet or XLSX file (text formats also ``.gz``).

    `file` is a path or the bytes of an upload (then `name` gives the suffix).  `max_mb` bounds the file and what it
    unpacks to, which is never more than 32 MB and 100 times its own size; rows, columns and values are bounded too.
    Parquet and XLSX are decoded in a confined process (`core.confined`).  XLSX: the first sheet; formulas stay text.
    GoldenError for anything that cannot be read.
    """
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    suffix = _suffix(label)
    limit = int(max_mb * _MB)
    data = file if isinstance(file, bytes) else _read_path(Path(file), label, limit)
    if len(data) > limit:
        raise GoldenError(_too_large("It", len(data), limit), file=label)
    if not data:
        raise GoldenError("The file is empty.", file=label)
    packed = len(data)
    if suffix.endswith(".gz"):
        data, suffix = _unpack(data, label, unpacked_limit(packed, limit)), suffix.removesuffix(".gz")
    content = Content(label, data, limit, packed, max_rows)
    parsed = _parse(suffix, content)
    _check_columns(parsed.columns, label)
    if not parsed.rows:
        raise GoldenError("The file holds no data rows.", file=label)
    return Table(label, parsed.columns, parsed.rows, tuple(parsed.findings))


def read_upload(data: bytes, name: str, *, max_mb: float = 200, max_rows: int | None = None) -> Table:
    """As `read_table`, for a file that somebody sent: whatever is not small plain text is read in a confined process.

    The process has little memory, little time and no secrets, and only plain values come back from it.
    """
    suffix = _suffix(name)
    small = len(data) <= SMALL and not suffix.endswith(".gz")
    if small or suffix in (".parquet", ".xlsx"):
        return read_table(data, name, max_mb=max_mb, max_rows=max_rows)
    allowance = Allowance.of(min(unpacked_limit(len(data), int(max_mb * _MB)), _UNPACKED_USUALLY * len(data)))
    options = {"name": name, "max_mb": max_mb, "max_rows": max_rows}
    try:
        with closing(binary_formats.READER.ask("table", data, options, allowance)) as lines:
            head = next(lines)
            rows = tuple(lines)
    except RefusedError as refused:
        raise GoldenError(refused.message, file=name, row=refused.row, column=refused.column) from refused
    return Table(name, tuple(head["columns"]), rows, tuple(Finding(**finding) for finding in head["findings"]))


def read_content(path: Path, *, max_mb: float = 200) -> Content:
    """The bytes of a text file, unpacked where they are gzip whatever its name.  GoldenError as `read_table`."""
    limit = int(max_mb * _MB)
    data = _read_path(path, path.name, limit)
    if data[:2] == _GZIP:
        return Content(path.name, _unpack(data, path.name, unpacked_limit(len(data), limit)), limit, len(data))
    return Content(path.name, data, limit)


def _suffix(name: str) -> str:
    low = name.lower()
    for suffix in (*PACKED, *SUFFIXES):
        if low.endswith(suffix):
            return suffix
    raise GoldenError(
        f"The file type is not known: it must be one of {', '.join(SUFFIXES)}, or .csv.gz, .jsonl.gz and the like.",
        file=name or "(unnamed)",
    )


def _parse(suffix: str, content: Content) -> Parsed:
    if suffix == ".parquet":
        return binary_formats.parse_parquet(content)
    if suffix == ".xlsx":
        return binary_formats.parse_xlsx(content)
    text_formats.refuse_disguises(content)
    if suffix in (".csv", ".tsv"):
        return text_formats.parse_csv(content)
    if suffix == ".json":
        return text_formats.parse_json_document(content)
    return text_formats.parse_jsonl(content)


def _read_path(path: Path, label: str, limit: int) -> bytes:
    try:
        size = path.stat().st_size
        if size > limit:
            raise GoldenError(_too_large("It", size, limit), file=label)
        return path.read_bytes()
    except FileNotFoundError:
        raise GoldenError("There is no such file.", file=str(path)) from None
    except OSError as problem:
        raise GoldenError(f"The file cannot be opened: {problem.strerror or problem}.", file=str(path)) from problem


def _unpack(data: bytes, label: str, limit: int) -> bytes:
    """At most `limit` bytes are ever unpacked, so that a bomb costs no more than a large file."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            unpacked = packed.read(limit + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise GoldenError(f"The gzip data is broken or cut off ({problem}).", file=label) from problem
    if len(unpacked) > limit:
        raise GoldenError(_too_large("Unpacked, it", None, limit), file=label)
    if not unpacked.strip():
        raise GoldenError("The file is empty.", file=label)
    return unpacked


def _too_large(what: str, size: int | None, limit: int) -> str:
    came = f"{size / _MB:.0f} MB" if size is not None else "more than that"
    return f"{what} is too large: at most {limit / _MB:.4g} MB are read, {came} came. Split it, or raise the limit."


def _check_columns(columns: tuple[str, ...], label: str) -> None:
    if len(columns) > MAX_COLUMNS:
        raise GoldenError(f"{len(columns)} columns came; at most {MAX_COLUMNS} are read.", file=label)
    for column in columns:
        if len(column) > MAX_NAME:
            raise GoldenError(f"A column name is longer than {MAX_NAME} characters: {shown(column)}.", file=label)
