"""Frozen records ↔ one JSON text and one blob of float64, exactly.

Records become JSON objects of their fields; a numpy array becomes ``{"shape": […], "offset": k}``, a view into the
blob (little-endian float64, so NaN and the last bits survive).  Reading back is guided by the type annotations of
the record, so nothing in a stored text can name a class.  What is annotated `Any` comes back as JSON has it: lists
for tuples.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")
_Reader = Callable[[Any, memoryview], Any]


@dataclass(frozen=True, slots=True)
class Packed:
    """A stored value: JSON text, and the numbers of all its arrays behind one another."""

    body: str
    blob: bytes = b""


def pack(value: Any) -> Packed:
    """`value` (records, mappings, sequences, arrays, JSON scalars) as JSON text and blob.

    TypeError for anything else, arrays other than float64 among it.
    """
    chunks: list[bytes] = []
    body = json.dumps(_plain(value, chunks), ensure_ascii=False, separators=(",", ":"))
    return Packed(body, b"".join(chunks))


def unpack(kind: type[T], packed: Packed | str) -> T:
    """The record of type `kind` that `pack` was given; equal to it, arrays bit for bit.  Text alone has no arrays."""
    hashable: Any = kind
    packed = Packed(packed) if isinstance(packed, str) else packed
    value: T = _reader(hashable)(json.loads(packed.body), memoryview(packed.blob))
    return value


def _plain(value: Any, chunks: list[bytes]) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name), chunks) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return _array_reference(value, chunks)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_text_key(key): _plain(item, chunks) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, chunks) for item in value]
    raise TypeError(f"Cannot store a {type(value).__name__}.")


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"Cannot store a mapping with a {type(key).__name__} as key; only text.")
    return key


def _array_reference(array: np.ndarray[Any, Any], chunks: list[bytes]) -> dict[str, Any]:
    if array.dtype != np.float64:
        raise TypeError(f"Cannot store an array of {array.dtype}; only float64.")
    offset = sum(len(chunk) for chunk in chunks) // 8
    chunks.append(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return {"shape": list(array.shape), "offset": offset}


# ── reading, by annotation ───────────────────────────────────────────────────────────────────────────────────


@cache
def _reader(kind: Any) -> _Reader:
    if isinstance(kind, type) and is_dataclass(kind):
        return _record_reader(kind)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _union_reader(get_args(kind))
    if origin is tuple:
        return _tuple_reader(get_args(kind))
    if origin is np.ndarray:
        return _read_array
    if kind is datetime:
        return lambda value, _: datetime.fromisoformat(value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_reader(get_args(kind)[1])
    if kind is Any or origin is Literal or kind in (str, bool, int, float, type(None)):
        return _as_is
    raise TypeError(f"No reader for a field of type {kind!r}.")


def _as_is(value: Any, _: memoryview) -> Any:
    return value


def _record_reader(kind: type) -> _Reader:
    hints = get_type_hints(kind)
    readers = [(f.name, _reader(hints[f.name])) for f in fields(kind)]

    def read(value: Any, blob: memoryview) -> Any:
        return kind(**{name: reader(value[name], blob) for name, reader in readers if name in value})

    return read


def _union_reader(kinds: tuple[Any, ...]) -> _Reader:
    """Optional records, and unions of plain scalars; a union of two records has no reader."""
    readers = {reader for kind in kinds if kind is not type(None) and (reader := _reader(kind)) is not _as_is}
    if not readers:
        return _as_is
    if len(readers) > 1:
        raise TypeError(f"No reader for a union of {kinds!r}.")
    inner = readers.pop()
    return lambda value, blob: None if value is None else inner(value, blob)


def _tuple_reader(kinds: tuple[Any, ...]) -> _Reader:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        inner = _reader(kinds[0])
        if inner is _as_is:
            return lambda value, _: tuple(value)
        return lambda value, blob: tuple([inner(item, blob) for item in value])
    readers = [_reader(kind) for kind in kinds]
    return lambda value, blob: tuple(reader(item, blob) for reader, item in zip(readers, value, strict=True))


def _mapping_reader(kind: Any) -> _Reader:
    inner = _reader(kind)
    if inner is _as_is:
        return lambda value, _: dict(value)
    return lambda value, blob: {key: inner(item, blob) for key, item in value.items()}


def _read_array(value: Any, blob: memoryview) -> Any:
    shape = tuple(value["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(blob, dtype="<f8", count=count, offset=8 * value["offset"]).reshape(shape).astype(np.float64)
