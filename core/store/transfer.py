"""Export a project as rows of JSON, and import such rows into another store.

An export is a snapshot of the store. Stored JSON stays JSON, so the file is readable without Concord. Arrays of float64
become base64 of their little-endian bytes: ``numpy.frombuffer(base64.b64decode(text), "<f8")``. In the arrays, NaN
means unscored.

An import expects rows that `core.projects.project_files` has checked. Everything is stored in a new project, or nothing
at all if an error occurs. A run gets a new id if its id is taken, and references to the run are updated.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import Any

import sqlalchemy as sa

from core.errors import StoreError
from core.store import database as schema
from core.store.database import StorePart, in_chunks, translated_errors
from core.store.log import IMPORTED

Row = Mapping[str, Any]
UNFINISHED = ("queued", "running")
OF_THE_WORKER: Row = {"worker_id": "", "version": 1, "snapshots": 0, "begun_by": "", "cancel_requested": False}
"""Columns of a run about its worker, which exports omit, with their values after an import."""
_STAYING = {"project_id", *OF_THE_WORKER, "criteria_edits.number", "labels.number"}
_KINDS: dict[Any, str] = {
    schema.SafeText: "text",
    sa.Text: "json",
    sa.Integer: "int",
    sa.Boolean: "bool",
    sa.Double: "real",
    sa.LargeBinary: "floats",
    sa.String: "key",
    "judges.replies": "replies",  # compressed JSON
    "events.body": "json",
    "run_replies.body": "json",
}
_TABLES = (
    "goldens golden_items project_goldens runs run_documents run_scores criteria criteria_edits criteria_alignments "
    "judges labels events run_replies"
)
LAYOUT: dict[str, dict[str, str]] = {
    name: {
        column.name: _KINDS.get(str(column)) or _KINDS[type(column.type)]
        for column in schema.metadata.tables[name].columns
        if not {column.name, str(column)} & _STAYING
    }
    for name in _TABLES.split()
}
"""Table → column → kind, each table after those that it refers to.

`drafts` is not exported: unsaved text belongs to the user who typed it.
"""
RUN_ID = re.compile(r"(?<![0-9A-Za-z])r[0-9a-f]{12}(?![0-9A-Za-z])")
_ROWS = 200
_SHARED = ("goldens", "golden_items")  # stored under the hash of their content: an existing row is the same


def _encoded(kind: str, value: Any) -> Any:
    """Convert a stored value to a JSON value."""
    if value is None or kind not in ("json", "floats", "replies"):
        return value
    if kind == "floats":
        return base64.b64encode(value).decode("ascii")
    if kind == "replies":
        return json.loads(zlib.decompress(value))
    try:
        parsed = json.loads(value, parse_constant=_refuse)
    except ValueError:  # JSON has no NaN, so it is exported as text
        return value
    return value if isinstance(parsed, str) else parsed


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _decoded(kind: str, value: Any) -> Any:
    """Convert a JSON value to the value to store.  ValueError for another kind."""
    if value is None or kind not in ("json", "floats", "replies"):
        return value
    if kind == "floats":
        return base64.b64decode(value, validate=True)
    if kind == "replies":
        return zlib.compress(json_text(value).encode())
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """Return `value` as the JSON text to store.

    Text with a lone surrogate, which can't be encoded in UTF-8, is escaped to ASCII.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


class Transfers(StorePart):
    def dump(self, project_id: str) -> Generator[tuple[str, Iterator[dict[str, Any]]], None, None]:
        """Yield each table of `LAYOUT` with its rows, from one snapshot.

        Read all rows of a table before the next table. Unfinished runs are exported as cancelled.
        """
        numbers = count(1)

        def leaving(name: str, query: sa.Select[Any]) -> Iterator[dict[str, Any]]:
            with translated_errors():
                for stored in transaction.connection.execution_options(yield_per=_ROWS).execute(query):
                    row = {column: _encoded(kind, getattr(stored, column)) for column, kind in LAYOUT[name].items()}
                    if name == "runs" and row["status"] in UNFINISHED:
                        row |= {"status": "cancelled", "message": "hadn't finished when the project was exported"}
                        row["finished_at"] = row["updated_at"]
                    if name == "events":
                        row["number"] = next(numbers)
                    yield _of_project(row, "") if name == "runs" else row

        with self._db.read("REPEATABLE READ") as transaction:
            for name in LAYOUT:
                yield name, leaving(name, _rows_of(name, project_id))

    def taken(self, run_ids: Iterable[str]) -> set[str]:
        """Return which of the given ids are already used by runs of this store."""
        ids = schema.runs.c.run_id
        chunks = in_chunks(sorted(run_ids))
        return {row.run_id for some in chunks for row in self._db.rows(sa.select(ids).where(ids.in_(some)))}

    def restore(
        self, name: str, tables: Iterable[tuple[str, Iterable[Row]]], *, runs: Mapping[str, str], project_id: str = ""
    ) -> str:
        """Create a project from checked rows and return its id. If an error occurs, nothing is stored.

        Args:
            tables: Each table as a pair: its name and its rows.
            runs: Maps the old id of each run to its new id.
            project_id: Set only for a project that ships with Concord, which does not count as imported.

        Raises:
            StoreError: Two rows have the same key, or a row refers to a missing row.
        """
        new_id = project_id or f"p{uuid.uuid4().hex[:12]}"

        def arriving(table: str, row: Row) -> dict[str, Any]:
            """Return the row to store, with this project's id and the new ids of its runs."""
            row = _of_project(row, new_id) if table == "runs" else row
            stored = {column: _decoded(kind, row[column]) for column, kind in LAYOUT[table].items()}
            if runs and table not in _SHARED:
                for column, value in stored.items():
                    if isinstance(value, str):
                        stored[column] = RUN_ID.sub(lambda match: runs.get(match[0], match[0]), value)
            if table == "runs":  # not the file's time: a run newer than the import counts as made here
                stored |= {**OF_THE_WORKER, "created_at": min(float(stored["created_at"]), now)}
            if table == "events":  # renumbered in the order of their rows
                del stored["number"]
                stored["role"] = stored["role"].removesuffix(IMPORTED) + IMPORTED
            return stored | ({"project_id": new_id} if "project_id" in schema.metadata.tables[table].c else {})

        with self._db.write() as transaction:
            now = transaction.now
            project = {"project_id": new_id, "name": name, "created_at": now}
            project["imported_at"] = None if project_id else now
            try:
                transaction.execute(sa.insert(schema.projects), project)
                for table, rows in tables:
                    into, left = schema.metadata.tables[table], iter(rows)
                    size = 1 if table == "events" else _ROWS
                    while chunk := [arriving(table, row) for row in islice(left, size)]:
                        if table in _SHARED:
                            transaction.insert_new(into, chunk)
                        else:
                            transaction.execute(sa.insert(into), chunk)
            except sa.exc.IntegrityError as error:
                words = "Two rows have the same key, or a row refers to a missing row. Nothing was imported."
                raise StoreError(words) from error
        return new_id


def _rows_of(name: str, project_id: str) -> sa.Select[Any]:
    """Select the rows of table `name` that belong to a project, by time if they have one."""
    table, runs = schema.metadata.tables[name], schema.runs.c
    columns, query = table.c, sa.select(table)
    ids = [key for key in table.primary_key.columns if key.name != "project_id"]
    if "project_id" in columns:
        first = () if "number" in columns else (columns.created_at,)
        return query.where(columns.project_id == project_id).order_by(*first, *ids)
    if "run_id" not in columns:  # golden sets that the project has, or that its rows refer to
        with_golden = [t for t in schema.metadata.sorted_tables if {"project_id", "golden_id"} <= set(t.c.keys())]
        used = sa.union(*(sa.select(t.c.golden_id).where(t.c.project_id == project_id) for t in with_golden))
        return query.where(columns.golden_id.in_(used)).order_by(*ids)
    if name == "run_replies":  # with its text, which may be that of a shared reply
        shared = schema.replies
        text = sa.func.coalesce(columns.body, shared.c.body).label("body")
        query = sa.select(columns.run_id, columns.reply_key, columns.paid, text).select_from(table)
        query = query.outerjoin(shared, shared.c.reply_key == columns.reply_key)
    query = query.join(schema.runs, runs.run_id == columns.run_id)
    return query.where(runs.project_id == project_id).order_by(runs.created_at, *ids)


def _of_project(row: Row, project_id: str) -> dict[str, Any]:
    """Return the row of a run with `project_id` in its request."""
    request = row["request"]
    known = isinstance(request, dict)
    return {**row, "request": request | {"project_id": project_id} if known else request}
