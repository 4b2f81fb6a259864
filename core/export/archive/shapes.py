"""Rows of unknown origin against what they claim to be: the columns of a table, the golden set of a content hash.

The types are those of the records and of the columns themselves, and the store's own reader (`core.store.codec`) does
the looking.  A golden set is shared by everybody who has the same content, so nobody may bring one under a hash that
is not its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic_core import ValidationError
from pydantic_core import core_schema as schemas

from core.errors import ArchiveError
from core.export.faults import InconsistentError, fault_words
from core.records import Alignment, GoldenSet, ItemKind, Usage
from core.store.codec import NUMBER, Checked, read
from core.store.judges import CriteriaBody
from core.store.layout import LAYOUT, Column, Row, decode
from core.store.projects import GoldenBody, RatingColumns, golden_row, item_rows, rebuilt
from core.store.results import Reasons

_LAST_SECOND = 253_402_300_800  # the year 10000, where dates end
_MOST_INT = 2**31 - 1  # what an integer column of Postgres holds


def parsed(kind: Any, value: Any, where: object, *, whole: str = "it", blob: bytes = b"") -> Any:
    """`value` (parsed JSON, called `whole`) as a `kind`; its arrays lie in `blob`.  ArchiveError where it is none."""
    try:
        return read(kind, value, blob)
    except ValidationError as error:
        raise ArchiveError(f"{where}: {fault_words(kind, error, whole)[0]}") from error


def check_rows(table: str, rows: Sequence[Any], name: str, first: int) -> None:
    """ArchiveError for the first of `rows` (parsed JSON) that is no row of `table`; `first` is its line in `name`."""
    row = row_type(table)
    try:
        read(tuple[row, ...], rows)  # type: ignore[valid-type]
    except ValidationError:
        for line, value in enumerate(rows, start=first):
            parsed(row, value, f"{name}, line {line}", whole="the row")


# ── what a row holds ─────────────────────────────────────────────────────────────────────────────────────────


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


HOLDS: Mapping[tuple[str, str], Any] = {
    ("goldens", "kind"): ItemKind,
    ("goldens", "body"): GoldenBody,
    ("goldens", "ratings"): RatingColumns,
    ("golden_items", "body"): tuple[str, str, str, str, str, str, tuple[str, ...]],
    ("runs", "status"): Literal["done", "budget", "failed", "cancelled"],  # a run that leaves is over
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
    columns = [(column.name, _column_type(table, column)) for column in LAYOUT[table]]
    return make_dataclass(table, columns, namespace={"__pydantic_config__": {"extra": "forbid"}})


def _column_type(table: str, column: Column) -> Any:
    kind = HOLDS.get((table, column.name)) or _by_kind(column)
    return kind | None if column.nullable else kind


def _moment(seconds: float) -> float:
    if not 0 <= seconds < _LAST_SECOND:
        raise ValueError("a moment in seconds since 1970")
    return seconds


Moment = Annotated[float, Checked(schemas.no_info_after_validator_function(_moment, NUMBER))]


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


# ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────────


def checked_golden(row: Row, items: Sequence[Row]) -> GoldenSet:
    """The golden set of a row of `goldens` and its rows of `golden_items`, in order, each of the right shape.

    ArchiveError where the rows are no golden set, or not the one whose hash they carry.
    """
    where = f"golden set {row['golden_id'][:24]}"
    if [item["position"] for item in items] != list(range(len(items))):
        raise ArchiveError(f"{where}: its items do not stand at positions 0 to {len(items) - 1}.")
    try:
        stored, bodies = decode("goldens", row), [decode("golden_items", item)["body"] for item in items]
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
    texts = ("aspects", "ratings")
    same = all(ours[name] == stored[name] for name in ours if name not in (*texts, "body"))
    same = same and all(json.loads(ours[name]) == json.loads(stored[name]) for name in texts)
    # the demo's golden sets name no columns
    same = same and json.loads(ours["body"]) == {"columns": {}} | json.loads(stored["body"])
    if not same or [json.loads(item["body"]) for item in item_rows(golden)] != [json.loads(body) for body in bodies]:
        raise ArchiveError(f"{where}: its counts are not those of its content.")


def _check_labels(golden: GoldenSet, where: str) -> None:
    """Every label and rating on its scale, every rating of an item and an aspect that are there."""
    for name, labels in golden.aspects.items():
        labelled = [value for value in labels.values if value is not None]
        labelled += [rating.value for rating in golden.ratings if rating.aspect == name]
        stray = next((value for value in labelled if not labels.scale.holds(value)), None)
        if stray is not None:
            raise ArchiveError(f"{where}: a label of {name[:40]!r} is {stray:g}; the scale is {labels.scale}.")
    if strange := {rating.aspect for rating in golden.ratings} - golden.aspects.keys():
        raise ArchiveError(f"{where}: there are ratings of {min(strange)[:40]!r}, which is none of its aspects.")
    if {rating.item_id for rating in golden.ratings} - set(golden.item_ids):
        raise ArchiveError(f"{where}: there are ratings of items that it does not have.")
