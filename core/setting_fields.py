"""Fields of settings records with their help and bounds, from which checks, options and forms are made."""

from __future__ import annotations

from dataclasses import field, fields
from functools import lru_cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from core.errors import UsageError


def setting(
    default: Any, help_: str = "", *, low: float | None = None, high: float | None = None, flag: str = ""
) -> Any:
    """A dataclass field with a default, a sentence for help texts, and inclusive bounds.

    A command has an option for each field with a help text, called `flag` where that is not the field's name.
    """
    return field(default=default, metadata={"help": help_, "low": low, "high": high, "flag": flag})


@lru_cache(maxsize=64)
def choices(record: type) -> dict[str, tuple[Any, ...]]:
    """Field → the values of its `Literal`, None among them where the field may be None."""
    found = {}
    for name, hint in get_type_hints(record).items():
        among = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        parts = [part for part in among if get_origin(part) is Literal]
        if parts:
            found[name] = (*((None,) if type(None) in among else ()), *get_args(parts[0]))
    return found


def check_settings(record: Any) -> None:
    """UsageError for a value out of its bounds or not among its choices."""
    allowed_values: dict[str, tuple[Any, ...]] = choices(record.__class__)
    for each in fields(record):
        value, (low, high) = getattr(record, each.name), (each.metadata.get(end) for end in ("low", "high"))
        allowed = allowed_values.get(each.name)
        if allowed and value not in allowed:
            raise UsageError(f"{each.name} must be one of {', '.join(map(str, allowed))}, not {value!r}.")
        if value is not None and high is not None and not low <= value <= high:
            raise UsageError(f"{each.name} must lie between {low:,} and {high:,}, not {value}.")
        if value is not None and low is not None and value < low:
            raise UsageError(f"{each.name} must be at least {low:,}, not {value}.")
