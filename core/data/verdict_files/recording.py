"""A file → a recording: its rows flattened, its shape recognised, its content hashed; what a row says of an item."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.data.cells import read_id, shown
from core.data.fields import folded
from core.data.files import MAX_COLUMNS, USUAL_MB, open_source, suffix_of
from core.data.tables import Table, read_table
from core.data.verdict_files.columns import Columns
from core.data.verdict_files.shapes import Reply, Shape, flat_row, replies_in, shape_of, text_of
from core.errors import GoldenError
from core.records import Finding

MAX_ROWS = 400_000
"""Rows of a recording: one an item, or one an item and sample."""

_LONGEST_ID = 500

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


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: `row` counts data rows from 1; `replies` None where the row has no such cell; `score` as it came.

    `has_score` tells an empty score (unscored) from a missing cell.  `sample` "" where no column numbers samples.
    """

    row: int
    item_id: str
    replies: tuple[Reply, ...] | None
    score: Any
    has_score: bool
    reason: str = ""
    sample: str = ""
    aspect: str = ""


def entries(recording: Recording, columns: Columns, aspect: str = "") -> Iterator[Entry]:
    """What each row says, in the file's order.

    Where a column names the aspect of each row, only the rows of `aspect` are given.  GoldenError without a column of
    item ids, and for a row whose id is missing or cannot be shown.
    """
    roles = columns.roles
    if "item_id" not in roles:
        raise GoldenError(
            f"there is no item_id; no column is named so, or id, custom_id and the like. There are "
            f"{', '.join(columns.columns)[:300]}",
            file=recording.name,
            row=1,
        )
    id_column, reply_column, score_column = roles["item_id"], roles.get("replies", ""), roles.get("score", "")
    reason, sample, rated = roles.get("reason", ""), roles.get("sample", ""), roles.get("aspect", "")
    wanted = folded(aspect)
    for row, cells in enumerate(recording.rows, start=1):
        row_aspect = text_of(cells.get(rated)) if rated else ""
        if rated and wanted and folded(row_aspect) != wanted:
            continue
        yield Entry(
            row,
            _item_id(cells.get(id_column), recording.name, row, id_column),
            replies_in(cells[reply_column]) if reply_column in cells else None,
            cells.get(score_column) if score_column else None,
            score_column in cells,
            text_of(cells.get(reason)) if reason else "",
            read_id(cells.get(sample)) if sample else "",
            row_aspect,
        )


def doubled_rows(claims: Sequence[Entry]) -> tuple[int, ...]:
    """Rows of one item that no sample number tells apart; empty when each is a sample of its own."""
    by_sample: dict[str, list[int]] = {}
    for entry in claims:
        by_sample.setdefault(entry.sample, []).append(entry.row)
    return next((tuple(rows) for rows in by_sample.values() if len(rows) > 1), ())


def _item_id(cell: Any, name: str, row: int, column: str) -> str:
    item_id = "" if isinstance(cell, bool | list | dict) else read_id(cell)
    if not item_id:
        raise GoldenError("there is no item_id", file=name, row=row, column=column)
    if not item_id.isprintable() or len(item_id) > _LONGEST_ID:
        raise GoldenError(f"the item_id {shown(item_id)} cannot be shown", file=name, row=row, column=column)
    return item_id
