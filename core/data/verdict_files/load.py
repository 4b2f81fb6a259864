"""A file → a recording: its rows flattened, its shape recognised, its content hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.data import Table, read_table
from core.data.content import MAX_COLUMNS, MAX_VALUES, Content, bound_values, values_in_json
from core.data.table import PACKED, SUFFIXES
from core.data.verdict_files.shapes import Shape, flat_row, shape_of
from core.errors import GoldenError
from core.records import Finding

MAX_ROWS = 400_000
"""Rows of a recording: one an item, or one an item and sample."""

ReadTable = Callable[..., Table]
_GZIP = b"\x1f\x8b"
_MB = 1024 * 1024


@dataclass(frozen=True)
class Recording:
    """What the file holds: flat rows (column → cell, an absent key is an empty cell) and the columns in their order.

    `digest` is the hash of the bytes that were read; `findings` tell of the reading itself.
    """

    name: str
    shape: Shape
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    digest: str = ""
    findings: tuple[Finding, ...] = ()


def load_recording(
    file: str | Path | bytes, name: str | None = None, *, max_mb: float = 200, read: ReadTable = read_table
) -> Recording:
    """Read a file of recorded replies or scores; one of an unknown ending is taken for JSONL, plain or gzip.

    `file` is a path or the bytes of an upload (then `name` gives its ending); `max_mb` bounds it, packed and unpacked;
    `read` reads its table (`core.data.read_upload` for a file of unknown origin).  GoldenError names the row that
    cannot be read.
    """
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    data = file if isinstance(file, bytes) else _bytes_of(Path(file), max_mb)
    table = _table(data, label, max_mb, read)
    if not table.rows:
        raise GoldenError("the file holds no rows", file=label)
    shape = shape_of(table.columns, table.rows[0])
    rows = tuple(flat_row(shape, row) for row in table.rows)
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    if len(columns) > MAX_COLUMNS:
        raise GoldenError(f"{len(columns)} columns came; at most {MAX_COLUMNS} are read", file=label)
    return Recording(label, shape, columns, rows, hashlib.sha256(data).hexdigest(), table.findings)


def _table(data: bytes, label: str, max_mb: float, read: ReadTable) -> Table:
    known = label.lower().endswith((*SUFFIXES, *PACKED))
    packed = data[:2] == _GZIP
    if label.lower().endswith(".json"):
        data = _unwrapped(data, label)
    if known and not (packed and not label.lower().endswith(".gz")):
        return read(data, label, max_mb=max_mb, max_rows=MAX_ROWS)
    table = read(data, f"{label}.jsonl{'.gz' if packed else ''}", max_mb=max_mb, max_rows=MAX_ROWS)
    return Table(label, table.columns, table.rows, table.findings)


def _unwrapped(data: bytes, label: str) -> bytes:
    """The rows of one page of an API's list, ``{"object": "list", "data": [...]}``; anything else as it came."""
    if data.lstrip()[:1] != b"{":
        return data
    try:
        text = data.decode("utf-8")
        bound_values(values_in_json(text, MAX_VALUES), Content(label, data, len(data)))
        value = json.loads(text)
        rows = value.get("data") if isinstance(value, dict) else None
        return json.dumps(rows if isinstance(rows, list) else [value]).encode()
    except (ValueError, RecursionError):
        return data  # a JSON object a line, or broken: the table's reader tells


def _bytes_of(path: Path, max_mb: float) -> bytes:
    try:
        if path.stat().st_size > max_mb * _MB:
            raise GoldenError(f"the file is larger than the {max_mb:g} MB that are read", file=path.name)
        return path.read_bytes()
    except OSError as error:
        raise GoldenError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
