"""The files that Concord writes and reads again: versions, schemas, and what is wrong with a file, in words.

`core.export.judge_document` says field by field what the files of judges hold; here they are checked.  A digest or a
content hash never comes from the library that checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from core.errors import JudgeError, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

Kind = Literal["judge", "fusion"]
VERSION = 1
"""Version of the files of judges.  2 and 3 were used in development, so the next one is 4."""
DEVELOPMENT = (2, 3)
"""Versions of files written before the first release, of judges and of projects; none of them is read."""
UPGRADES: dict[Kind, dict[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {"judge": {}, "fusion": {}}
"""Version → what makes of a file of that version one of the next, for versions before the present one."""

FORMATS: Mapping[Kind, str] = {"judge": "concord-judge", "fusion": "concord-fusion"}
FAULTS_SHOWN = 3
"""Faults that one error names."""
FAULTS_READ = 100
"""Faults looked at: a file of nonsense may have very many."""


def judge_schema(kind: Kind = "judge") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `judge.yaml`, or of a fused judge's file.  UsageError for another kind."""
    if kind not in FORMATS:
        raise UsageError(f"There are schemas of a judge and of a fusion, not of {kind!r}.")
    schema = _document(kind).model_json_schema()
    schema["properties"]["version"] |= {"const": VERSION}
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:concord:{kind}:{VERSION}"}
    return named | schema | {"title": f"Concord file of a {kind}, version {VERSION}"}


def version_problem(version: object, present: int, again: str) -> str:
    """Why a file of this version cannot be read by a Concord that writes `present`, in words; "" when it can.

    `again` says how the file is made anew, e.g. "export the judge again".
    """
    if type(version) is not int or version < 1:
        return f"version must be the whole number {present}; {version!r:.40} came."
    if version in DEVELOPMENT:
        return f"was written by a development version of Concord (file version {version}); make it anew: {again}."
    if version > present:
        return (
            f"has version {version}, from a newer Concord; this one reads version {present}. Update Concord, or "
            f"{again} with this one."
        )
    return ""


def in_present_version(card: Mapping[str, Any], kind: Kind, where: str) -> dict[str, Any]:
    """`card` as the present version has it.  JudgeError for a version that cannot be read; `where` names the file."""
    if problem := version_problem(card.get("version"), VERSION, "export the judge again"):
        raise JudgeError(f"{where}: {problem}")
    found = dict(card)
    while found["version"] != VERSION:
        found = UPGRADES[kind][found["version"]](found)
    return found


def check_card(card: Mapping[str, Any], kind: Kind, where: str) -> None:
    """JudgeError for a card that is not what the schema says: path in the file, what was allowed, what came.

    `where` names the file.
    """
    from pydantic import ValidationError

    document = _document(kind)
    try:
        document.model_validate(dict(card))
    except ValidationError as error:
        faults = fault_words(document, error)
        more = f" (and {len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        raise JudgeError(
            f"{where}: {' '.join(faults[:FAULTS_SHOWN])}{more} Correct it, or export the judge again."
        ) from None


def _document(kind: Kind) -> type[BaseModel]:
    from core.export.judge_document import FusionDocument, JudgeDocument

    return JudgeDocument if kind == "judge" else FusionDocument


# ── what is wrong, in words ──────────────────────────────────────────────────────────────────────────────────

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_TYPES: Mapping[str, str] = {
    "string": "a text",
    "float": "a number",
    "finite_number": "a finite number",
    "int": "a whole number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "model": "an object",
    "dataclass": "an object",
    "none": "null",
}


def fault_words(document: type, error: ValidationError) -> list[str]:
    """A sentence on each fault: where in a file of `document` it is, what goes there, what came."""
    faults = error.errors(include_url=False)[:FAULTS_READ]
    return list(dict.fromkeys(words for fault in faults for words in _words(document, fault, faults)))


def _words(document: type, fault: ErrorDetails, faults: Sequence[ErrorDetails]) -> Iterator[str]:
    *parents, name = fault["loc"] or ("",)
    if fault["type"] in ("missing", *_UNKNOWN):
        alike = (one["loc"] for one in faults if one["type"] == fault["type"])
        same = [str(place[-1]) for place in alike if place[:-1] == (*parents,)]
        if fault["type"] == "missing":
            yield f"{_path(parents)} lacks {', '.join(same)}."
        else:
            allowed = ", ".join(sorted(_fields(_kind_at(document, parents))))
            yield f"{_path(parents)} may hold {allowed}; {', '.join(map(_shown, same))} came."
        return
    wanted = _kind_at(document, (*parents, name))
    said, came = _wanted(fault, wanted), _shown(fault["input"])
    if fault["type"] in ("too_short", "too_long"):
        came = f"one of {(fault.get('ctx') or {}).get('actual_length')}"
    yield f"{_path(fault['loc'])} must be {said}{_or_null(fault, wanted)}; {came} came."


def _wanted(fault: ErrorDetails, wanted: Any) -> str:
    """What goes where the fault is."""
    limits = fault.get("ctx") or {}
    match fault["type"]:
        case "literal_error":
            choices = get_args(_bare(wanted))
            return f"one of {', '.join(map(str, choices))}" if len(choices) > 1 else _shown(choices[0])
        case "greater_than_equal":
            return f"at least {limits['ge']:g}"
        case "greater_than":
            return f"above {limits['gt']:g}"
        case "less_than_equal":
            return f"at most {limits['le']:g}"
        case "too_short":
            return f"a list of at least {limits['min_length']}"
        case "too_long":
            return f"a list of at most {limits['max_length']}"
        case "string_too_short":
            return f"a text of at least {limits['min_length']:,} characters"
        case "string_too_long":
            return f"a text of at most {limits['max_length']:,} characters"
        case "string_pattern_mismatch":
            return f"a text of the form {limits['pattern']}"
        case "value_error":
            return str(limits["error"])
        case other:
            return _TYPES.get(other.removesuffix("_type"), fault["msg"][:200])


def _or_null(fault: ErrorDetails, wanted: Any) -> str:
    return " or null" if fault["type"].endswith("_type") and type(None) in get_args(wanted) else ""


def _kind_at(document: type, path: Sequence[str | int]) -> Any:
    """The annotation of the field at `path`, None where there is no such field."""
    kind: Any = document
    for part in path:
        inner = [one for one in get_args(_bare(kind)) if one is not Ellipsis]
        kind = _fields(kind)[str(part)] if part in _fields(kind) else inner[-1] if inner else None
    return kind


def _bare(kind: Any) -> Any:
    """An annotation without its limits and without null beside it."""
    while get_origin(kind) is Annotated or type(None) in get_args(kind):
        kind = get_args(kind)[0]
    return kind


def _fields(kind: Any) -> Mapping[str, Any]:
    """Name → annotation of the fields of a model or a record; empty for anything else."""
    kind = _bare(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: hints[field.name] for field in fields(kind)}
    return {name: field.annotation for name, field in getattr(kind, "model_fields", {}).items()}


def _path(parts: Sequence[str | int]) -> str:
    """``task.scale.low``, ``criteria[0].text``; "The file" for its top."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".") or "The file"


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
