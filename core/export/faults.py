"""What pydantic finds wrong with a file, in words: where it is, what goes there, what came."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MOST_READ = 100
"""Faults looked at: a file of nonsense may have very many."""
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_TYPES: Mapping[str, str] = {
    "string": "a text",
    "is_instance_of": "a text",
    "string_unicode": "a text of whole characters",
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


class InconsistentError(ValueError):
    """Values that are each allowed and do not go together; its message stands by itself behind the place."""


def fault_words(kind: Any, error: ValidationError, whole: str = "The file") -> list[str]:
    """A sentence on each fault in a `kind` (a model, a record, a typed dict); `whole` names what was read."""
    faults = error.errors(include_url=False)[:MOST_READ]
    for fault in faults:
        fault["loc"] = _untagged(kind, fault["loc"])
    return list(dict.fromkeys(words for fault in faults for words in _words(kind, fault, faults, whole)))


def _untagged(kind: Any, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """`path` without what names the member of a union, which stands in no file."""
    return tuple(
        part
        for place, part in enumerate(path)
        if isinstance(part, int) or not _is_union(_kind_at(kind, path[:place])) or part in _fields_at(kind, path, place)
    )


def _fields_at(kind: Any, path: Sequence[str | int], place: int) -> Mapping[str, Any]:
    return _fields(_kind_at(kind, path[:place]))


def _is_union(kind: Any) -> bool:
    return get_origin(_bare(kind)) in (Union, UnionType)


def _words(kind: Any, fault: ErrorDetails, faults: Sequence[ErrorDetails], whole: str) -> Iterator[str]:
    *parents, name = fault["loc"] or ("",)
    if fault["type"] == "missing" and isinstance(name, int):
        size = len(get_args(_bare(_kind_at(kind, parents))))
        yield f"{_path(parents, whole)} must be a list of {size}; one of {name} came."
        return
    if fault["type"] in ("missing", *_UNKNOWN):
        alike = (other["loc"] for other in faults if other["type"] == fault["type"])
        same = [str(place[-1]) for place in alike if place[:-1] == (*parents,)]
        if fault["type"] == "missing":
            yield f"{_path(parents, whole)} lacks {', '.join(same)}."
        else:
            allowed = ", ".join(sorted(_fields(_kind_at(kind, parents))))
            yield f"{_path(parents, whole)} may hold {allowed}; {', '.join(map(_shown, same))} came."
        return
    problem = (fault.get("ctx") or {}).get("error")
    if isinstance(problem, InconsistentError):
        yield f"{_path(fault['loc'], whole)}: {problem}"
        return
    expected = _kind_at(kind, (*parents, name))
    came = _shown(fault["input"])
    if fault["type"] in ("too_short", "too_long"):
        came = f"one of {(fault.get('ctx') or {}).get('actual_length')}"
    or_null = " or null" if fault["type"].endswith("_type") and type(None) in get_args(expected) else ""
    yield f"{_path(fault['loc'], whole)} must be {_expected(fault, expected)}{or_null}; {came} came."


def _expected(fault: ErrorDetails, kind: Any) -> str:
    """What goes where the fault is."""
    limits = fault.get("ctx") or {}
    match fault["type"]:
        case "literal_error":
            choices = get_args(_bare(kind))
            return f"one of {', '.join(map(str, choices))}" if len(choices) > 1 else _shown(choices[0])
        case "greater_than_equal":
            return f"at least {_number(limits['ge'])}"
        case "greater_than":
            return f"above {_number(limits['gt'])}"
        case "less_than_equal":
            return f"at most {_number(limits['le'])}"
        case "less_than":
            return f"below {_number(limits['lt'])}"
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


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _kind_at(kind: Any, path: Sequence[str | int]) -> Any:
    """The annotation of the field at `path`, None where there is no such field."""
    for part in path:
        inner = [argument for argument in get_args(_bare(kind)) if argument is not Ellipsis]
        named = _fields(kind)
        kind = named[str(part)] if part in named else inner[-1] if inner else None
    return kind


def _bare(kind: Any) -> Any:
    """An annotation without its limits and without null beside it."""
    while get_origin(kind) is Annotated or type(None) in get_args(kind):
        kind = get_args(kind)[0]
    return kind


def _fields(kind: Any) -> Mapping[str, Any]:
    """Name → annotation of the fields of a model, a record or a typed dict; empty for anything else."""
    kind = _bare(kind)
    if _is_union(kind):
        return {name: value for member in get_args(kind) for name, value in _fields(member).items()}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: hints[field.name] for field in fields(kind)}
    if is_typeddict(kind):
        return get_type_hints(kind)
    return {name: field.annotation for name, field in getattr(kind, "model_fields", {}).items()}


def _path(parts: Sequence[str | int], whole: str) -> str:
    """``task.scale.low``, ``criteria[0].text``; `whole` for the top."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".") or whole


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
