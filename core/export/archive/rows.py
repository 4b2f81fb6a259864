"""One row of a project's file against the columns of its table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from core.errors import ArchiveError
from core.store.layout import Column, Layout

_MOST_INT = 2**31 - 1  # what an integer column of Postgres holds
_LAST_SECOND = 253_402_300_800  # the year 10000, where dates end
_ELSEWHERE = {"value"}  # a real that is no moment
_PLAIN = {"key", "text", "int", "bool", "real"}


class Place(NamedTuple):
    """Where a row stands: the file in the zip, and its line from 1."""

    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.name}, line {self.line}"


def is_plain(layout: Layout) -> bool:
    """Whether the rows of a table are stored as they come: nothing in them is JSON or base64."""
    return all(column.kind in _PLAIN for column in layout.columns)


def are_plain_rows(layout: Layout, rows: Sequence[Any]) -> bool:
    """Whether all `rows` pass `check_row`, told by whole columns; False also where that cannot be told like this."""
    names = [column.name for column in layout.columns]
    if len(names) < 2 or any(type(row) is not dict or len(row) != len(names) for row in rows):
        return False
    try:
        columns = list(zip(*map(itemgetter(*names), rows), strict=True))
    except KeyError:
        return False
    return all(_holds(column, values) for column, values in zip(layout.columns, columns, strict=True))


def _holds(column: Column, values: Sequence[Any]) -> bool:
    kinds = set(map(type, values))
    if column.nullable and type(None) in kinds:
        kinds.discard(type(None))
        values = [value for value in values if value is not None]
    if not values:
        return True
    match column.kind:
        case "key":
            short = kinds == {str} and max(map(len, values)) <= column.longest
            return short and all(map(str.isprintable, set(values)))
        case "text":
            return kinds == {str}
        case "int":
            return kinds == {int} and min(values) >= 0 and max(values) <= _MOST_INT
        case "bool":
            return kinds == {bool}
        case "real":
            finite = kinds <= {int, float} and all(map(_is_finite, values))
            return finite and (column.name in _ELSEWHERE or (min(values) >= 0 and max(values) < _LAST_SECOND))
    return False


def _is_finite(value: float) -> bool:
    """Whether the store can hold a number; a whole number of JSON can be larger than any float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def check_row(layout: Layout, row: Any, where: str) -> dict[str, Any]:
    """`row`, an object of exactly the table's columns, each of its kind.  ArchiveError says what is wrong."""
    if not isinstance(row, dict):
        raise ArchiveError(f"{where}: a row is an object, not {_kind_of(row)}.")
    names = {one.name for one in layout.columns}
    if set(row) != names:
        missing, extra = sorted(names - set(row)), sorted(set(row) - names)
        told = [f"lacks {', '.join(missing)}"] if missing else []
        told += [f"has {', '.join(name[:40] for name in extra[:5])}, which {layout.name} has not"] if extra else []
        raise ArchiveError(f"{where}: the row {' and '.join(told)}.")
    for column in layout.columns:
        problem = _problem(column, row[column.name])
        if problem:
            raise ArchiveError(f"{where}, {column.name}: {problem}")
    return row


def _problem(column: Column, value: Any) -> str:
    if value is None:
        return "" if column.nullable else "nothing is there."
    match column.kind:
        case "key":
            return _key_problem(column, value)
        case "text":
            return "" if type(value) is str else f"is {_kind_of(value)}, not text."
        case "int":
            held = type(value) is int and 0 <= value <= _MOST_INT
            return "" if held else f"is {str(value)[:40]}, not a whole number from 0 to {_MOST_INT}."
        case "bool":
            return "" if type(value) is bool else f"is {_kind_of(value)}, neither true nor false."
        case "real":
            return _real_problem(column, value)
        case "floats":
            held = type(value) is str and len(value) % 4 == 0
            return "" if held else f"is {_kind_of(value)}, not the base64 of float64."
        case "replies":
            return "" if type(value) is dict else f"is {_kind_of(value)}, not an object of replies by item."
        case "json":
            return _json_problem(value)


def _json_problem(value: Any) -> str:
    """Text in place of an object is stored as it comes, so it has to be JSON (with NaN, which JSON has no word for)."""
    if isinstance(value, dict | list):
        return ""
    if not isinstance(value, str):
        return f"is {_kind_of(value)}, not an object or a list."
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return "is text that is no JSON."
    return "" if isinstance(found, dict | list) else f"is text of {_kind_of(found)}, not of an object or a list."


def _key_problem(column: Column, value: Any) -> str:
    if type(value) is not str:
        return f"is {_kind_of(value)}, not text."
    if len(value) > column.longest:
        return f"has {len(value):,} characters and may have {column.longest}."
    return "" if value.isprintable() else "holds characters that no name or id has."


def _real_problem(column: Column, value: Any) -> str:
    if type(value) not in (int, float) or not _is_finite(value):
        return f"is {str(value)[:40]}, not a number."
    if column.name not in _ELSEWHERE and not 0 <= value < _LAST_SECOND:
        return f"is {value:g}, not a moment in seconds since 1970."
    return ""


def _kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
