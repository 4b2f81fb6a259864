"""One reply as it came, and the replies that a cell holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.data.cells import clean_text, read_list

Finish = Literal["stop", "length", "refusal", "error"]

_DEEPEST = 8
_TOO_DEEP = "(nested too deeply to be read)"


@dataclass(frozen=True, slots=True)
class Reply:
    """A judge's words.  `finish` is how the endpoint ended them; "error": the request failed, `text` says how."""

    text: str
    finish: Finish = "stop"


def replies_in(cell: Any) -> tuple[Reply, ...]:
    """The replies in a cell: a text, a list (or JSON text of one), a chat message; null is an empty reply.

    An empty list holds none.
    """
    if isinstance(cell, tuple):  # made by `shapes`
        return cell
    if cell is None or cell == "":
        return (Reply(""),)
    return tuple(Reply(text_of(one)) for one in read_list(cell))


def text_of(value: Any, depth: int = 0) -> str:
    """The words in a JSON value: itself, the content of a message, the joined texts of its parts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean_text(value)
    if depth > _DEEPEST:
        return _TOO_DEEP
    if isinstance(value, Mapping):
        for name in ("content", "text", "output_text"):
            if name in value:
                return text_of(value[name], depth + 1)
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "".join(text_of(part, depth + 1) for part in value)
    try:
        return clean_text(json.dumps(value, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):
        return _TOO_DEEP if isinstance(value, list | Mapping) else clean_text(str(value))
