"""One row of a project's file against the columns of its table."""

from __future__ import annotations

import math
from typing import Any

from core.errors import ArchiveError
from core.store.layout import Column, Layout

_MOST_INT = 2**31 - 1  # what an integer column of Postgres holds
_LAST_SECOND = 253_402_300_800  # the year 10000, where dates end
_ELSEWHERE = {"value"}  # a real that is no moment


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
            return "" if isinstance(value, dict | list | str) else f"is {_kind_of(value)}, not an object or a list."


def _key_problem(column: Column, value: Any) -> str:
    if type(value) is not str:
        return f"is {_kind_of(value)}, not text."
    if len(value) > column.longest:
        return f"has {len(value):,} characters and may have {column.longest}."
    return "" if value.isprintable() else "holds characters that no name or id has."


def _real_problem(column: Column, value: Any) -> str:
    if type(value) not in (int, float) or not math.isfinite(value):
        return f"is {str(value)[:40]}, not a number."
    if column.name not in _ELSEWHERE and not 0 <= value < _LAST_SECOND:
        return f"is {value:g}, not a moment in seconds since 1970."
    return ""


def _kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
