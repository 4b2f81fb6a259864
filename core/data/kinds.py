"""Item kinds, and texts from structured cells: conversations become turns, data becomes readable lines."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import abc
from typing import Any

from core.data.cells import clean_text, folded, parse_json, read_list
from core.records import ItemKind
from core.texts import is_blank

CONVERSATION_NAMES = frozenset(
    "dialogue dialog conversation messages history dialogue_history dialog_history chat chat_history turns".split()
)
DATA_NAMES = frozenset(
    "mr meaning_representation data triples tripleset triple_set table structured_data record".split()
)
"""Columns that hold a conversation or structured data by their name alone."""

TEXTS_OF_PAIRS = "text response answer output completion summary candidate generation reply target message".split()
PAIRS = tuple((f"{text}_{first}", f"{text}_{second}") for first, second in ("ab", "12") for text in TEXTS_OF_PAIRS)
"""Usual names of two texts, of which people prefer one; `pair_in` finds more."""
Sides = tuple[str, str]
SIDES: tuple[Sides, ...] = (("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"))
_FORMS = ("{text}_{side}", "{side}_{text}", *(f"{who}_{{side}}_{{text}}" for who in ("model", "system", "assistant")))


def side_key(name: str) -> str:
    """`folded`, with digits at the end as a word of their own: ``"Answer1"`` → ``"answer_1"``."""
    return re.sub(r"(?<=[a-z])(?=[0-9]+$)", "_", folded(name))


def pair_in(columns: abc.Iterable[str]) -> tuple[tuple[str, str], Sides] | None:
    """The columns of two texts and how they tell them apart, ("a", "b"), ("1", "2") …; None without both."""
    named = {side_key(column): column for column in reversed(list(columns))}
    for sides, form, text in itertools.product(SIDES, _FORMS, TEXTS_OF_PAIRS):
        first, second, third = (form.format(side=side, text=text) for side in (*sides, "2"))
        if first in named and second in named and (sides != ("0", "1") or third not in named):
            return (named[first], named[second]), sides
    return None


_SPEAKER_KEYS = ("role", "speaker", "from", "author", "name")
_TEXT_KEYS = ("content", "text", "value", "utterance", "message")
_ACT = re.compile(r"\s*\??[A-Za-z_][\w-]*\s*\((?P<slots>.*)\)\s*", re.DOTALL)
_SLOTS = re.compile(r"[\w ]+\[[^\]]*\](,[\w ]+\[[^\]]*\])*")
_TURN = re.compile(
    r"\s*(user|assistant|human|ai|bot|system|agent|customer|(speaker|person|participant)[ _]?\w{1,2}|[ab]|p\d)\s*:",
    re.I,
)
_SAMPLE = 50


def read_turns(value: Any) -> list[str] | None:
    """A list of messages (``{"role" | "speaker", "content" | "text"}``) as ``speaker: text``; None if it is not one."""
    if not isinstance(value, (list, tuple)) or not value:
        return None
    turns = []
    for message in value:
        if not isinstance(message, abc.Mapping):
            return None
        speaker, text = (
            next((message[key] for key in keys if message.get(key) is not None), None)
            for keys in (_SPEAKER_KEYS, _TEXT_KEYS)
        )
        if speaker is None or not isinstance(text, (str, list)):
            return None
        if not isinstance(text, str):  # chat messages may hold a list of parts: their texts, one a line
            text = "\n".join(_scalar(part.get("text") if isinstance(part, abc.Mapping) else part) for part in text)
        turns.append(f"{_scalar(speaker)}: {text}")
    return turns


def source_text(cell: Any) -> str:
    """The text of a source or context cell: text as it is, messages as turns, objects as ``key: value`` lines."""
    value = _unpacked(cell)
    turns = read_turns(value)
    return clean_text("\n".join(turns) if turns else readable(value))


def target_text(cell: Any) -> str:
    """The text of a target cell: as `source_text`, but an object that is judged stays JSON."""
    if isinstance(cell, str):
        turns = read_turns(parse_json(cell)) if cell.lstrip()[:2] == "[{" else None
        return source_text(cell) if turns else clean_text(cell)
    if isinstance(cell, (abc.Mapping, list, tuple)) and not read_turns(cell):
        return clean_text(json.dumps(cell, ensure_ascii=False))
    return source_text(cell)


def reference_texts(cell: Any) -> tuple[str, ...]:
    """The references in a cell (a list, JSON text of one, or one text), empty ones left out."""
    texts = (target_text(entry) for entry in read_list(cell))
    return tuple(text for text in texts if not is_blank(text))


def _unpacked(cell: Any) -> Any:
    """`cell`, or the object or list that its JSON text stands for (as cells of CSV and XLSX files must)."""
    value = parse_json(cell) if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "[") else None
    return value if isinstance(value, (dict, list)) and value else cell


def readable(value: Any, indent: str = "") -> str:
    """Structured data as plain lines in the given order: ``key: value``, rows of a list as ``a | b | c``.

    Null entries are left out, so that an absent key and a null one read the same.
    """
    lines = []
    if isinstance(value, abc.Mapping):
        for key, inner in value.items():
            if not isinstance(inner, (abc.Mapping, list, tuple)):
                words = "" if inner is None else f" {_scalar(inner)}"
            elif isinstance(inner, abc.Mapping) or any(isinstance(v, (abc.Mapping, list, tuple)) for v in inner):
                words = f"\n{readable(inner, indent + '  ')}"
            else:
                words = f" {', '.join(_scalar(v) for v in inner if v is not None)}"
            lines += [f"{indent}{key}:{words}"] if inner is not None else []
        return "\n".join(lines)
    if not isinstance(value, (list, tuple)):
        return indent + _scalar(value)
    for inner in value:
        if isinstance(inner, abc.Mapping):
            lines.append(f"{indent}- {readable(inner, indent + '  ').lstrip()}")
        elif isinstance(inner, (list, tuple)):
            cells = (readable(v) if isinstance(v, (abc.Mapping, list)) else _scalar(v) for v in inner)
            lines.append(indent + " | ".join(cells))
        elif inner is not None:
            lines.append(indent + _scalar(inner))
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def detect_kind(rows: abc.Sequence[abc.Mapping[str, Any]], roles: abc.Mapping[str, str]) -> ItemKind:
    """What the items are, from the roles that are filled and the first 50 sources.

    Columns named as text A and text B make ``pair``.  A context makes ``source_context_target`` (a dialogue with a
    fact, say); else structured sources (objects,
    ``act(slot=value)``, ``slot[value]``, ``a | b | c`` triples, or a column called mr, data, …) make ``data_text``;
    messages, text in turns, or a column called dialogue, messages, … make ``conversation``.
    """
    texts = roles.get("target", ""), roles.get("context", "")
    if (pair := pair_in(texts)) and pair[0] == texts:
        return "pair"

    def cells(role: str) -> list[Any]:
        column = roles.get(role)
        filled = (row[column] for row in rows if column and row.get(column) not in (None, "", [], {}))
        return [_unpacked(cell) for cell in itertools.islice(filled, _SAMPLE)]

    if cells("context"):
        return "source_context_target"
    sources = cells("source")
    if not sources:
        name, values = folded(roles.get("target", "")), cells("target")
        return "conversation" if name in CONVERSATION_NAMES or _mostly(_is_spoken, values) else "single"
    name = folded(roles["source"])
    if name in CONVERSATION_NAMES or _mostly(_is_spoken, sources):
        return "conversation"
    return "data_text" if name in DATA_NAMES or _mostly(_is_data, sources) else "source_target"


def _mostly(test: abc.Callable[[Any], bool], values: abc.Sequence[Any]) -> bool:
    return bool(values) and sum(test(value) for value in values) >= 0.8 * len(values)


def _is_spoken(value: Any) -> bool:
    if not isinstance(value, str):
        return read_turns(value) is not None
    lines = [line for line in value[:5000].split("\n") if line.strip()]
    return len(lines) >= 2 and sum(_TURN.match(line) is not None for line in lines) >= 0.8 * len(lines)


def _is_data(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, (abc.Mapping, list, tuple)) and read_turns(value) is None
    text = value[:5000]
    act = _ACT.fullmatch(text)
    if act and ("=" in act["slots"] or " " not in text.strip()):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    return _SLOTS.fullmatch(text.strip()) is not None or (bool(lines) and all(line.count(" | ") == 2 for line in lines))
