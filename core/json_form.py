"""The JSON form of a record: one way for all that are written field by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any


def json_fields(record: Any, but: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass by name, without those in `but`: "" is null, tuples are lists, records what their
    `as_json` says; `interval` is `[low, high]`, its method beside it as `interval_method`.  Fields marked "silent" are
    left out where they are false.
    """
    names = [
        field.name
        for field in fields(record)
        if field.name not in but and (getattr(record, field.name) or not field.metadata.get("silent"))
    ]
    body = {name: _json_value(getattr(record, name)) for name in names}
    return body | ({"interval_method": getattr(record.interval, "method", None)} if "interval" in body else {})


def _json_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json_value(inner) for inner in value]
    return value.as_json() if hasattr(value, "as_json") else None if isinstance(value, str) and not value else value


class JsonRecord:
    """A record whose JSON form is that of `json_fields`."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)
