"""How the rows of a project look outside the store: which tables and columns leave it, and in which form.

A row becomes a JSON object.  Stored JSON stays JSON, so that a file of rows can be read by anybody; arrays of float64
become base64 of their little-endian bytes, which keeps every bit (NaN = unscored among them) and is read back with
``numpy.frombuffer(base64.b64decode(text), "<f8")``.  No row carries the id of its project: whose it is, the file says.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from core.store import schema

Kind = Literal["key", "text", "int", "bool", "real", "json", "floats", "replies"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column outside the store; `longest` counts the letters of a key, 0 = no bound."""

    name: str
    kind: Kind
    nullable: bool = False
    longest: int = 0


OF_THE_WORKER: Row = {
    "worker_id": "",
    "version": 1,
    "snapshots": 0,
    "begun_by": "",
    "cancel_requested": False,
}
"""Columns of a run that say something of the worker here, and stay; how they begin in a store that takes it in."""


_STAYING = {"project_id", *OF_THE_WORKER}
_NUMBERED = ("criteria_edits", "labels")
"""Tables whose numbers nothing refers to, so that they stay too."""
_JSON = {("events", "body"), ("run_replies", "body")}
"""Columns of SafeText that hold JSON."""


_KINDS: dict[type, Kind] = {
    schema.SafeText: "text",
    sa.Text: "json",
    sa.Integer: "int",
    sa.Boolean: "bool",
    sa.Double: "real",
    sa.LargeBinary: "floats",
    sa.String: "key",
}


def _columns(table: sa.Table) -> tuple[TableColumn, ...]:
    columns = []
    for column in table.columns:
        kind = _KINDS[type(column.type)]
        if (table.name, column.name) in _JSON:
            kind = "json"
        elif column.name == "replies":
            kind = "replies"
        longest = column.type.length if kind == "key" else 0  # type: ignore[attr-defined]
        if column.name not in _STAYING and (column.name != "number" or table.name not in _NUMBERED):
            columns.append(TableColumn(column.name, kind, bool(column.nullable), longest))
    return tuple(columns)


LAYOUT: dict[str, tuple[TableColumn, ...]] = {
    table.name: _columns(table)
    for table in (
        *(schema.goldens, schema.golden_items, schema.project_goldens),
        *(schema.runs, schema.documents, schema.scores),
        *(schema.criteria, schema.edits, schema.alignments, schema.judges),
        *(schema.labels, schema.events, schema.run_replies),
    )
}
"""Every table of a project with its columns in order, each table after those that it refers to.

`drafts` is none of them: what somebody has typed and not saved is theirs, and no part of what a project hands on.
"""


def encode(table: str, stored: Row) -> dict[str, Any]:
    """A stored row as a JSON object."""
    return {column.name: _encoded(column.kind, stored[column.name]) for column in LAYOUT[table]}


def decode(table: str, row: Row) -> dict[str, Any]:
    """The row to store, from an object whose columns are all there and of their kinds.  ValueError otherwise."""
    return {column.name: _decoded(column.kind, row[column.name]) for column in LAYOUT[table]}


def _encoded(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind == "json":
        try:
            parsed = json.loads(value, parse_constant=_refuse)
        except ValueError:  # it holds what JSON has no word for (NaN), and leaves as the text that it is
            return value
        return value if isinstance(parsed, str) else parsed
    if kind == "floats":
        return base64.b64encode(value).decode("ascii")
    return json.loads(zlib.decompress(value)) if kind == "replies" else value


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _decoded(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind == "json":
        return value if isinstance(value, str) else json_text(value)
    if kind == "floats":
        try:
            return base64.b64decode(value, validate=True)
        except ValueError as error:
            raise ValueError("is not base64") from error
    return zlib.compress(json_text(value).encode()) if kind == "replies" else value


def json_text(value: Any) -> str:
    """A value as stored JSON; escaped throughout where it holds half a surrogate pair, which no encoding takes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text
