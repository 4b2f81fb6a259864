"""Frozen records ↔ one JSON text and one blob of float64, exactly.

Records become JSON objects of their fields; a numpy array becomes ``{"shape": […], "offset": k}``, a view into the
blob (little-endian float64, so NaN and the last bits survive).  Reading back goes by the type annotations of the
record, each field held against its own, so nothing in a stored text can name a class.  Fields that the text lacks take
their defaults, what the record has no field for is left out, and what is annotated `Any` comes back as JSON has it.

pydantic-core does the reading, by schemas of our own: its usual ones would turn 1 into 1.0, which changes the hash of
a golden set, and refuse half a surrogate pair, which texts of models hold.  For the same reasons `json` does the
writing; pydantic also writes 1e16 where stored texts have 1e+16.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic_core import CoreSchema, SchemaValidator
from pydantic_core import core_schema as schemas

T = TypeVar("T")


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
    body = json.dumps(plain(value, chunks), ensure_ascii=False, separators=(",", ":"))
    return Packed(body, b"".join(chunks))


def unpack(kind: type[T], packed: Packed | str) -> T:
    """The record of type `kind` that `pack` was given; equal to it, arrays bit for bit.  Text alone has no arrays."""
    packed = Packed(packed) if isinstance(packed, str) else packed
    value: T = read(kind, json.loads(packed.body), packed.blob)
    return value


def read(kind: Any, value: Any, blob: bytes = b"") -> Any:
    """`value` (parsed JSON) as a `kind`: a record, or any annotation that a record's field may have.

    pydantic_core.ValidationError, a ValueError, for anything else.
    """
    return _validator(kind).validate_python(value, context=blob)


def plain(value: Any, chunks: list[bytes]) -> Any:
    """`value` as JSON has it; bytes of its arrays are put behind `chunks`.

    Fields marked "silent", which came later than records that are stored, are left out where they are false.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        named = {part.name: getattr(value, part.name) for part in fields(value)}
        silent = {part.name for part in fields(value) if part.metadata.get("silent") and not named[part.name]}
        return {name: plain(part, chunks) for name, part in named.items() if name not in silent}
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        offset = sum(map(len, chunks)) // 8
        chunks.append(np.ascontiguousarray(value, dtype="<f8").tobytes())
        return {"shape": list(value.shape), "offset": offset}
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item, chunks) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, chunks) for item in value]
    raise TypeError(f"Cannot store a {type(value).__name__} such as {str(value)[:40]!r}.")


# ── annotations as schemas ───────────────────────────────────────────────────────────────────────────────────


_WHOLE_NUMBER = schemas.int_schema(strict=True)
_SCALARS: Mapping[Any, CoreSchema] = {
    str: schemas.is_instance_schema(str),
    bool: schemas.bool_schema(strict=True),
    int: _WHOLE_NUMBER,
    float: schemas.union_schema(
        [_WHOLE_NUMBER, schemas.float_schema(strict=True)], mode="left_to_right", custom_error_type="float_type"
    ),
    datetime: schemas.no_info_after_validator_function(datetime.fromisoformat, schemas.str_schema(strict=True)),
    type(None): schemas.none_schema(),
    Any: schemas.any_schema(),
}


@cache
def _validator(kind: Any) -> SchemaValidator:
    return SchemaValidator(_schema(kind))


def _schema(kind: Any) -> CoreSchema:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return _SCALARS[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind)
    if origin is Annotated:
        return _schema(inner[0])  # bounds are checked where people give values
    if origin in (Union, types.UnionType):
        rest = [_schema(part) for part in inner if part is not type(None)]
        either = rest[0] if len(rest) == 1 else schemas.union_schema([*rest])
        return schemas.nullable_schema(either) if type(None) in inner else either
    if origin is tuple and inner[-1] is Ellipsis:
        return schemas.tuple_schema([_schema(inner[0])], variadic_item_index=0, fail_fast=True)
    if origin is tuple:
        return schemas.tuple_schema([_schema(part) for part in inner])
    if origin is np.ndarray:
        return schemas.with_info_plain_validator_function(_array)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return schemas.dict_schema(values_schema=_schema(inner[1]), fail_fast=True)
    if origin is Literal:
        return schemas.literal_schema(list(inner))
    raise TypeError(f"No reader for a field of type {kind!r}.")


def _record(kind: type) -> CoreSchema:
    hints = get_type_hints(kind, include_extras=True)
    of_each = []
    for field in fields(kind):
        schema = _schema(hints[field.name])
        if field.default_factory is not MISSING:
            schema = schemas.with_default_schema(schema, default_factory=field.default_factory)
        elif field.default is not MISSING:
            schema = schemas.with_default_schema(schema, default=field.default)
        of_each.append(schemas.dataclass_field(field.name, schema))
    return schemas.dataclass_schema(
        kind,
        schemas.dataclass_args_schema(kind.__name__, of_each, extra_behavior="ignore"),
        [field.name for field in fields(kind)],
        post_init=hasattr(kind, "__post_init__"),
        slots=True,
    )


def _array(value: Any, info: schemas.ValidationInfo[bytes]) -> Any:
    """A copy of what the blob holds at the place that `value` names."""
    if not isinstance(value, dict) or set(value) != {"shape", "offset"} or not isinstance(value["shape"], list):
        raise ValueError("an array")
    blob, shape, offset = info.context or b"", value["shape"], value["offset"]
    sizes = [*shape, offset]
    if len(sizes) > 9 or any(type(size) is not int or size < 0 for size in sizes):
        raise ValueError("an array within its blob")
    if offset + math.prod(shape) > len(blob) // 8:
        raise ValueError("an array within its blob")
    return np.frombuffer(blob, "<f8", math.prod(shape), 8 * offset).reshape(shape).astype(np.float64)
