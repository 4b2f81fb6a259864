"""JSON of unknown origin against what it claims to be: a record, a row of a table, the golden set of a content hash.

The store's own reader (`core.store.codec`) trusts what it wrote itself.  Here every field is looked at: names, kinds of
scalars, choices, ranges, and that arrays lie within their blob.  The types are those of the records and of the columns
themselves; pydantic-core does the looking, for 38,000 ratings one by one in Python would take a second.

A golden set is shared by everybody who has the same content, so nobody may bring one under a hash that is not its own.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic_core import CoreSchema, SchemaValidator, ValidationError
from pydantic_core import core_schema as schemas

from core.errors import ArchiveError
from core.export.faults import InconsistentError, fault_words
from core.records import Alignment, AspectLabels, GoldenSet, ItemKind, Provenance, Unscored, Usage
from core.store.layout import LAYOUT, Column, decode
from core.store.projects import golden_row, item_rows, rebuilt

_LAST_SECOND = 253_402_300_800  # the year 10000, where dates end
_MOST_INT = 2**31 - 1  # what an integer column of Postgres holds


def _text_of_moment(value: Any) -> Any:
    """A moment as the store's codec writes it."""
    if not isinstance(value, str):
        raise ValueError("a moment as text")
    datetime.fromisoformat(value)  # ValueError for anything else
    return value


_SCALARS: Mapping[Any, CoreSchema] = {
    str: schemas.is_instance_schema(str),  # also with half a surrogate pair, which pydantic's own text refuses
    bool: schemas.bool_schema(strict=True),
    int: schemas.int_schema(strict=True),
    float: schemas.float_schema(strict=True),
    datetime: schemas.no_info_plain_validator_function(_text_of_moment),
    type(None): schemas.none_schema(),
    Any: schemas.any_schema(),
}


def mismatch(kind: Any, value: Any, n_floats: int = 0, whole: str = "") -> str:
    """Where `value` (parsed JSON) is no `kind`, in a sentence; "" where it is one.

    `whole` is what the sentence calls it, else by its type.  `n_floats` is how many numbers the blob behind it holds,
    for the arrays that point into it.
    """
    try:
        _validator(kind).validate_python(value, context=n_floats)
    except ValidationError as error:
        return fault_words(kind, error, whole or getattr(kind, "__name__", "it"))[0]
    return ""


def check_rows(table: str, rows: Sequence[Any], name: str, first: int) -> None:
    """ArchiveError for the first of `rows` (parsed JSON) that is no row of `table`; `first` is its line in `name`."""
    row = row_type(table)
    try:
        _validator(list[row]).validate_python(rows)  # type: ignore[valid-type]
    except ValidationError:
        words = ((line, mismatch(row, value, whole="the row")) for line, value in enumerate(rows, start=first))
        line, problem = next(one for one in words if one[1])
        raise ArchiveError(f"{name}, line {line}: {problem}") from None


def _moment(seconds: float) -> float:
    if not 0 <= seconds < _LAST_SECOND:
        raise ValueError("a moment in seconds since 1970")
    return seconds


@dataclass(frozen=True, eq=False)
class Checked:
    """How a value is checked, beside its type; in `Annotated`."""

    schema: CoreSchema


Moment = Annotated[float, Checked(schemas.no_info_after_validator_function(_moment, _SCALARS[float]))]


# ── what a row holds ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class GoldenBody:
    """What a golden set holds beside its items and ratings (`core.store.projects`)."""

    aspects: dict[str, AspectLabels]
    metrics: dict[str, tuple[float | None, ...]]
    given_split: tuple[str, ...]


@dataclass(frozen=True)
class RatingColumns:
    """Ratings by columns; ids, raters and aspects as codes into lists of names (`core.store.projects`)."""

    item_id: tuple[int, ...]
    rater_id: tuple[int, ...]
    aspect: tuple[int, ...]
    item_ids: tuple[str, ...]
    rater_ids: tuple[str, ...]
    aspects: tuple[str, ...]
    value: tuple[float, ...]
    comment: dict[str, str]


@dataclass(frozen=True)
class CriteriaBody:
    """Criteria without their aspect, which is a column."""

    text: str
    provenance: Provenance


@dataclass(frozen=True)
class Reasons:
    """Why items have no score."""

    unscored: tuple[Unscored, ...]


@dataclass(frozen=True)
class KeptReply:
    """What an endpoint answered."""

    text: str
    finish: str
    usage: Usage


@dataclass(frozen=True)
class FailedReply:
    """Why an endpoint gave no answer."""

    failure: str


OVER = Literal["done", "budget", "failed", "cancelled"]
"""A run that leaves is over."""
HOLDS: Mapping[tuple[str, str], Any] = {
    ("goldens", "kind"): ItemKind,
    ("goldens", "body"): GoldenBody,
    ("goldens", "ratings"): RatingColumns,
    ("golden_items", "body"): tuple[str, str, str, str, str, str, tuple[str, ...]],
    ("runs", "status"): OVER,
    ("runs", "usage"): Usage,
    ("run_scores", "body"): Reasons,
    ("criteria", "body"): CriteriaBody,
    ("criteria_alignments", "body"): Alignment,
    ("judges", "replies"): dict[str, tuple[str, ...]],
    ("events", "body"): dict[str, Any],
    ("replies", "body"): KeptReply,
}
"""(table, column) → what stands in it, where that is always the same; any other column goes by its kind."""


@cache
def row_type(table: str) -> type:
    """The record that a row of `table` is: exactly its columns in `core.store.layout`."""
    columns = [(column.name, _column_type(table, column)) for column in LAYOUT[table].columns]
    return make_dataclass(table, columns, namespace={"__pydantic_config__": {"extra": "forbid"}})


def _column_type(table: str, column: Column) -> Any:
    kind = HOLDS.get((table, column.name)) or _by_kind(column)
    return kind | None if column.nullable else kind


def _by_kind(column: Column) -> Any:
    match column.kind:
        case "key":
            text = schemas.str_schema(max_length=column.longest)
            return Annotated[str, Checked(schemas.no_info_after_validator_function(_printable, text))]
        case "int":
            return Annotated[int, Checked(schemas.int_schema(ge=0, le=_MOST_INT, strict=True))]
        case "real" if column.name == "value":
            return Annotated[float, Checked(schemas.float_schema(allow_inf_nan=False, strict=True))]
        case "real":
            return Moment
        case "json":
            return Annotated[dict[str, Any], Checked(schemas.no_info_plain_validator_function(_json))]
        case "bool":
            return bool
    return str


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a name or an id, of characters that can be seen")
    return text


def _json(value: Any) -> Any:
    """Text in place of an object is stored as it comes, so it has to be JSON (with NaN, which JSON has no word for)."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InconsistentError("is text that is no JSON.") from None
    if not isinstance(value, dict | list):
        raise ValueError("an object or a list")
    return value


# ── annotations as schemas ───────────────────────────────────────────────────────────────────────────────────


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
        own: CoreSchema = kind.__metadata__[0].schema
        return own
    if origin in (Union, types.UnionType):
        rest = [one for one in inner if one is not type(None)]
        either = _schema(rest[0]) if len(rest) == 1 else schemas.union_schema([*map(_schema, rest)])
        return schemas.nullable_schema(either) if type(None) in inner else either
    if origin is list or (origin is tuple and inner[-1] is Ellipsis):
        return schemas.list_schema(_schema(inner[0]), fail_fast=True)
    if origin is tuple:
        return schemas.tuple_schema([_schema(one) for one in inner])
    if origin is np.ndarray:
        return schemas.with_info_plain_validator_function(_array)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return schemas.dict_schema(values_schema=_schema(inner[1]), fail_fast=True)
    if origin is Literal:
        return schemas.literal_schema(list(inner))
    raise TypeError(f"No check for a field of type {kind!r}.")


def _record(kind: type) -> CoreSchema:
    hints = get_type_hints(kind, include_extras=True)
    needed = {one.name: one.default is MISSING and one.default_factory is MISSING for one in fields(kind)}
    return schemas.typed_dict_schema(
        {name: schemas.typed_dict_field(_schema(hints[name]), required=needed[name]) for name in needed},
        extra_behavior=getattr(kind, "__pydantic_config__", {}).get("extra", "ignore"),
    )


def _array(value: Any, info: schemas.ValidationInfo[int]) -> Any:
    """A view into the blob, as `core.store.codec` writes one."""
    n_floats = info.context or 0
    if not isinstance(value, dict) or set(value) != {"shape", "offset"} or not isinstance(value["shape"], list):
        raise ValueError("an array")
    sizes = [*value["shape"], value["offset"]]
    if len(sizes) > 9 or any(type(size) is not int or not 0 <= size <= n_floats for size in sizes):
        raise ValueError("an array within its blob")
    if value["offset"] + math.prod(value["shape"]) > n_floats:
        raise ValueError("an array within its blob")
    return value


# ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────────


def checked_golden(row: dict[str, Any], items: Sequence[dict[str, Any]]) -> GoldenSet:
    """The golden set of a row of `goldens` and its rows of `golden_items`, in order, each of the right shape.

    ArchiveError where the rows are no golden set, or not the one whose hash they carry.
    """
    where = f"golden set {row['golden_id'][:24]}"
    if [item["position"] for item in items] != list(range(len(items))):
        raise ArchiveError(f"{where}: its items do not stand at positions 0 to {len(items) - 1}.")
    try:
        stored, bodies = decode(LAYOUT["goldens"], row), [decode(LAYOUT["golden_items"], one)["body"] for one in items]
        golden = rebuilt(stored, bodies)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ArchiveError(f"{where}: its rows cannot be read ({error!r:.80}).") from error
    _check_content(golden, stored, bodies, where)
    return golden


def _check_content(golden: GoldenSet, stored: dict[str, Any], bodies: list[str], where: str) -> None:
    for name, labels in golden.aspects.items():
        if labels.aspect != name or len(labels.values) != len(golden.items):
            raise ArchiveError(f"{where}: the labels of {name[:40]!r} are not one an item.")
    if any(len(values) != len(golden.items) for values in golden.metrics.values()):
        raise ArchiveError(f"{where}: a metric has not one value an item.")
    _check_labels(golden, where)
    if len(set(golden.item_ids)) != len(golden.items):
        raise ArchiveError(f"{where}: two items have the same id.")
    if golden.digest != stored["golden_id"]:
        raise ArchiveError(
            f"{where}: the content has another hash ({golden.digest[:24]}…). The file was damaged or changed."
        )
    ours = golden_row(golden, stored["created_at"])
    texts = ("aspects", "body", "ratings")
    same = all(ours[name] == stored[name] for name in ours if name not in texts)
    same = same and all(json.loads(ours[name]) == json.loads(stored[name]) for name in texts)
    if not same or [json.loads(one["body"]) for one in item_rows(golden)] != [json.loads(one) for one in bodies]:
        raise ArchiveError(f"{where}: its counts are not those of its content.")


def _check_labels(golden: GoldenSet, where: str) -> None:
    """Every label and rating on its scale, every rating of an item and an aspect that are there."""
    for name, labels in golden.aspects.items():
        if not labels.scale.low < labels.scale.high:
            raise ArchiveError(f"{where}: the scale of {name[:40]!r} runs from {labels.scale.low:g} to no higher.")
        given = [value for value in labels.values if value is not None]
        given += [rating.value for rating in golden.ratings if rating.aspect == name]
        stray = next((value for value in given if not labels.scale.holds(value)), None)
        if stray is not None:
            raise ArchiveError(f"{where}: a label of {name[:40]!r} is {stray:g}; the scale is {labels.scale}.")
    if strange := {rating.aspect for rating in golden.ratings} - golden.aspects.keys():
        raise ArchiveError(f"{where}: there are ratings of {min(strange)[:40]!r}, which is none of its aspects.")
    if {rating.item_id for rating in golden.ratings} - set(golden.item_ids):
        raise ArchiveError(f"{where}: there are ratings of items that it does not have.")
