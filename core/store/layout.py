"""How the rows of a project look outside the store: which tables and columns leave it, and in which form.

A row becomes a JSON object.  Stored JSON stays JSON, so that a file of rows can be read by anybody; arrays of float64
become base64 of their little-endian bytes, which keeps every bit (NaN = unscored among them) and is read back with
``numpy.frombuffer(base64.b64decode(text), "<f8")``.  No row carries the id of its project: whose it is, the file says.
"""

from __future__ import annotations

import base64
import binascii
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
class Column:
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


def _columns(table: sa.Table) -> tuple[Column, ...]:
    staying = _STAYING | ({"number"} if table.name in _NUMBERED else set())
    return tuple(_column(table, column) for column in table.columns if column.name not in staying)


def _column(table: sa.Table, column: sa.Column[Any]) -> Column:
    kind: Kind
    if isinstance(column.type, schema.SafeText):
        kind = "json" if (table.name, column.name) in _JSON else "text"
    elif isinstance(column.type, sa.String) and column.type.length:
        return Column(column.name, "key", bool(column.nullable), column.type.length)
    elif isinstance(column.type, sa.LargeBinary):
        kind = "replies" if column.name == "replies" else "floats"
    else:
        by_type: dict[type, Kind] = {sa.Text: "json", sa.Integer: "int", sa.Boolean: "bool", sa.Double: "real"}
        kind = next(name for type_, name in by_type.items() if isinstance(column.type, type_))
    return Column(column.name, kind, bool(column.nullable))


LAYOUT: dict[str, tuple[Column, ...]] = {
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
        return as_json(value)
    if kind == "floats":
        return base64.b64encode(value).decode("ascii")
    if kind == "replies":
        return json.loads(zlib.decompress(value))
    return value


def _decoded(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind == "json":
        return value if isinstance(value, str) else json_text(value)
    if kind == "floats":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError("is not base64") from error
    if kind == "replies":
        return zlib.compress(json_text(value).encode())
    return value


def as_json(text: str) -> Any:
    """Stored JSON as a value; the text itself where it holds what JSON has no word for (NaN)."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        return text
    return text if isinstance(value, str) else value


def json_text(value: Any) -> str:
    """A value as stored JSON; escaped throughout where it holds half a surrogate pair, which no encoding takes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
