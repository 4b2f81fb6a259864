"""A file → a recording: its rows flattened, its shape recognised, its content hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.data.files import MAX_COLUMNS, USUAL_MB, open_source, suffix_of
from core.data.tables import Table, read_table
from core.data.verdict_files.shapes import Shape, flat_row, shape_of
from core.errors import GoldenError
from core.records import Finding

MAX_ROWS = 400_000
"""Rows of a recording: one an item, or one an item and sample."""

ReadTable = Callable[..., Table]


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
    file: str | Path | bytes, name: str | None = None, *, max_mb: float = USUAL_MB, read: ReadTable = read_table
) -> Recording:
    """Read a file of recorded replies or scores; one of an unknown ending is taken for JSON lines, plain or gzip.

    `file` is a path or the bytes of an upload (then `name` gives its ending); `max_mb` bounds it, packed and unpacked;
    `read` reads its table (`core.data.read_upload` for a file of unknown origin).  GoldenError names the row that
    cannot be read.
    """
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    suffix = (suffix_of(label) or ".jsonl").removesuffix(".gz")
    data = file if isinstance(file, bytes) else open_source(file, suffix=suffix, max_mb=max_mb).data()
    table = read(data, label, suffix=suffix, max_mb=max_mb, max_rows=MAX_ROWS)
    shape = shape_of(table.columns, table.rows[0])
    rows = tuple(flat_row(shape, row) for row in table.rows)
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    if len(columns) > MAX_COLUMNS:
        raise GoldenError(f"{len(columns)} columns came; at most {MAX_COLUMNS} are read", file=label)
    return Recording(label, shape, columns, rows, hashlib.sha256(data).hexdigest(), table.findings)
