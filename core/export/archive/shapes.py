"""JSON of unknown origin against the annotations of the record that it claims to be.

The store's own reader (`core.store.codec`) trusts what it wrote itself; here every field is looked at: names, kinds of
scalars, choices, and that arrays lie within their blob.  What is annotated `Any` may be anything that JSON has.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

_SCALARS: dict[Any, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


def mismatch(kind: Any, value: Any, n_floats: int = 0, at: str = "") -> str:
    """Where `value` (parsed JSON) is no `kind`, in words; "" where it is one.

    `n_floats` is how many numbers the blob behind it holds, for the arrays that point into it.
    """
    origin = get_origin(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind, value, n_floats, at)
    if origin in (Union, types.UnionType):
        return _union(get_args(kind), value, n_floats, at)
    if origin is tuple:
        return _tuple(get_args(kind), value, n_floats, at)
    if origin is np.ndarray:
        return _array(value, n_floats, at)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            return _no(at, "an object", value)
        inner = get_args(kind)[1]
        return _first(mismatch(inner, one, n_floats, f"{at}.{name[:40]}") for name, one in value.items())
    if origin is Literal:
        return "" if isinstance(value, str | int) and value in get_args(kind) else _no(at, "one of its choices", value)
    if kind is Any:
        return ""
    if kind is type(None):
        return "" if value is None else _no(at, "null", value)
    return _scalar(kind, value, at)


def _scalar(kind: Any, value: Any, at: str) -> str:
    allowed = _SCALARS.get(kind)
    if allowed is None:
        raise TypeError(f"No check for a field of type {kind!r}.")
    if type(value) not in allowed:
        return _no(at, kind.__name__, value)
    return ""


@cache
def _hints(kind: type) -> tuple[tuple[str, Any, bool], ...]:
    hints = get_type_hints(kind)
    return tuple(
        (one.name, hints[one.name], one.default is MISSING and one.default_factory is MISSING) for one in fields(kind)
    )


def _record(kind: type, value: Any, n_floats: int, at: str) -> str:
    if not isinstance(value, dict):
        return _no(at, f"a {kind.__name__}", value)
    for name, hint, needed in _hints(kind):
        if name not in value:
            if needed:
                return f"{at or kind.__name__} lacks {name}"
            continue
        if problem := mismatch(hint, value[name], n_floats, f"{at}.{name}"):
            return problem
    return ""


def _union(kinds: tuple[Any, ...], value: Any, n_floats: int, at: str) -> str:
    problems = [mismatch(kind, value, n_floats, at) for kind in kinds]
    return "" if "" in problems else problems[0]


@cache
def _plain(kind: Any) -> frozenset[type]:
    """The types of JSON scalars that are a `kind` and need no further look."""
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    return frozenset(found for one in kinds for found in _SCALARS.get(one, (one,) if one is type(None) else ()))


def _tuple(kinds: tuple[Any, ...], value: Any, n_floats: int, at: str) -> str:
    if not isinstance(value, list):
        return _no(at, "a list", value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        if {type(one) for one in value} <= _plain(kinds[0]):  # 38,000 ratings one by one would take a second
            return ""
        return _first(mismatch(kinds[0], one, n_floats, f"{at}[{k}]") for k, one in enumerate(value))
    if len(value) != len(kinds):
        return f"{at} has {len(value)} parts, not {len(kinds)}"
    pairs = enumerate(zip(kinds, value, strict=True))
    return _first(mismatch(kind, one, n_floats, f"{at}[{k}]") for k, (kind, one) in pairs)


def _array(value: Any, n_floats: int, at: str) -> str:
    if not isinstance(value, dict) or set(value) != {"shape", "offset"} or not isinstance(value["shape"], list):
        return _no(at, "an array", value)
    sizes = [*value["shape"], value["offset"]]
    if len(sizes) > 9 or any(type(one) is not int or not 0 <= one <= n_floats for one in sizes):
        return _no(at, "an array within its blob", value)
    if value["offset"] + math.prod(value["shape"]) > n_floats:
        return _no(at, "an array within its blob", value)
    return ""


def _first(problems: Any) -> str:
    return next((one for one in problems if one), "")


def _no(at: str, wanted: str, value: Any) -> str:
    return f"{at.lstrip('.') or 'it'} is {repr(value)[:60]}, not {wanted}"
