"""Ratings in JSON: the whole reply, a code fence, or what stands between the outermost braces; nested to any depth."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from core.judging.reading.stated import STRUCTURED, Statement
from core.judging.reading.wording import plain
from core.records import Scale

ReadText = Callable[[str], float | None]

_NAMES = frozenset(
    "rating score verdict grade mark label answer evaluation assessment stars points result value choice "
    "bewertung note punktzahl wertung puntuacion calificacion valoracion nota puntaje notation "
    "评分 得分 分数 评级 打分".split()
)
_FINAL = frozenset("final overall total 最终 总".split())
_PARTS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class _Field:
    strength: int
    value: Any


def from_json(reply: str, scale: Scale, aspect: str, read_text: ReadText) -> list[Statement]:
    """The rating field of the reply's JSON object, if it has one; `read_text` reads fields that hold words.

    A field named after the aspect is taken before "final" or "overall", that before "rating", "score" and the like;
    of equals the last.  A field of null states that there is no rating.
    """
    start, end = reply.find("{"), reply.rfind("}") + 1
    if start < 0 or end <= start or '"' not in reply:
        return []
    body = _parsed(reply[start:end])
    if body is None:
        return []
    fields = list(_fields(body, frozenset(_words(aspect)), named=False))
    if not fields:
        return []
    best = max(field.strength for field in fields)
    value = [field.value for field in fields if field.strength == best][-1]
    return _statement(value, start, end, scale, read_text)


def _parsed(text: str) -> Any | None:
    """The JSON object, or None when it is none (prose with braces, cut off, nested past the parser's depth)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _words(name: str) -> list[str]:
    return _PARTS.findall(plain(_HUMP.sub(" ", name)))


def _fields(body: Any, own: frozenset[str], *, named: bool) -> Iterator[_Field]:
    """Fields that may hold the rating, in document order; walked with a stack, so depth is no danger."""
    stack: list[tuple[str, Any, bool]] = [("", body, named)]
    while stack:
        name, value, inside = stack.pop()
        words = frozenset(_words(name))
        strength = _strength(words, own)
        if isinstance(value, dict):
            stack += [(str(key), part, inside or bool(strength == 3)) for key, part in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(name, part, inside) for part in (reversed(value) if len(value) == 1 or _records(value) else ())]
        elif strength:
            yield _Field(strength + (2 if inside else 0), value)


def _records(values: list[Any]) -> bool:
    return any(isinstance(value, dict) for value in values)


def _strength(words: frozenset[str], own: frozenset[str]) -> int:
    if own and own <= words:
        return 3
    if not words & _NAMES:
        return 0
    return 2 if words & _FINAL else 1


def _statement(value: Any, start: int, end: int, scale: Scale, read_text: ReadText) -> list[Statement]:
    if value is None:
        return [Statement(STRUCTURED, start, end, None)]
    if isinstance(value, bool):
        return [Statement(STRUCTURED, start, end, float(value))] if (scale.low, scale.high) == (0, 1) else []
    if isinstance(value, (int, float)):
        return [Statement(STRUCTURED, start, end, float(value) if abs(value) < 1e15 else float("inf"))]
    read = read_text(str(value))
    return [] if read is None else [Statement(STRUCTURED, start, end, read)]
