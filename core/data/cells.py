"""Read numbers, lists, ids and texts from table cells, the same for every file format.

Structured cells become texts: a conversation becomes one line per turn, and an object becomes ``key: value`` lines.
Cell content is never executed.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import abc
from typing import Any

from core.records import is_blank, visible_name

MAX_DEPTH = 64
"""Maximum nesting depth of lists and objects."""

LARGEST = 1e100
"""The largest number allowed, so that its square and sums of squares are finite."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMA = re.compile(r"[+-]?\d+,\d{1,4}", re.ASCII)
_UNCLEAR_COMMA = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_NO_VALUE = frozenset("n/a na nan null none nil #n/a #na <na> #null! - -- – —".split())
_PATH = re.compile(r"[^.\[\]]+(?:\[\d{1,6}\]|\.[^.\[\]]+)+")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_SURROGATES = re.compile("[\ud800-\udfff\x00]")


class CellError(ValueError):
    """A cell doesn't fit its column; the message says what was expected and what was found."""


def shown(value: object, limit: int = 60) -> str:
    """Return `value` quoted for a message and shortened, because cells can be megabytes long."""
    text = repr(value[: limit + 1] if isinstance(value, str) else value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def read_number(cell: Any) -> float | None:
    """Return the finite number in `cell`, or None for an empty cell.

    Booleans count as 1 and 0. A decimal comma is accepted: "2,5" is 2.5.

    Raises:
        CellError: The cell has text, NaN, infinity, a formula, a number over 1e100, or an ambiguous comma ("1,234" can
            mean 1.234 or 1234).
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, str):
        text = visible_name(cell[:400]).replace("\u2212", "-")  # a real minus sign
        if not text:
            return None
        if text.lower() in ("true", "false"):
            return float(text.lower() == "true")
        if _UNCLEAR_COMMA.fullmatch(text):
            message = f"{text} can mean {text.replace(',', '.')} or {text.replace(',', '')}"
            raise CellError(f"{message}; write it with a decimal point or without the comma")
        if text.startswith("="):
            raise CellError(f"Concord doesn't evaluate formulas ({shown(text)}); paste the value instead")
        text = text.replace(",", ".") if _COMMA.fullmatch(text) else text
        if len(cell) > 400 or not _NUMBER.fullmatch(text):
            raise CellError(f"expected a number, got {shown(cell)}; if there is no label, leave the cell empty")
        cell = float(text)
    if not isinstance(cell, (int, float)):
        raise CellError(f"expected a number, got {shown(cell)}")
    if abs(cell) > LARGEST and cell not in (math.inf, -math.inf):
        raise CellError("the number is larger than 1e100")
    if not math.isfinite(value := float(cell)):
        raise CellError(f"{value} isn't a label; if there is no label, leave the cell empty")
    return value + 0.0


def read_numbers(cells: abc.Iterable[Any]) -> tuple[list[float], list[str]]:
    """Return the numbers in `cells`, and the errors of the cells that cannot be read; skip empty cells."""
    numbers, problems = list[float](), list[str]()
    for cell in cells:
        try:
            number = None if is_no_value(cell) else read_number(cell)
            numbers += [] if number is None else [number]
        except CellError as problem:
            problems.append(str(problem))
    return numbers, problems


def is_no_value(cell: Any) -> bool:
    """Return whether a cell means "no value", such as N/A, null or a dash; False if the cell is empty."""
    if not isinstance(cell, str) or len(cell) > 40 or cell[:1].isdigit():
        return False
    return visible_name(cell).lower() in _NO_VALUE


def read_list(cell: Any) -> list[Any]:
    """Return the list in `cell`, which is a list, a list as JSON text, or a single value; empty for an empty cell."""
    if cell is None or cell == "":
        return []
    if isinstance(cell, (list, tuple)):
        return list(cell)
    if isinstance(cell, str) and cell.lstrip()[:1] == "[":
        parsed = parse_json(cell)
        if isinstance(parsed, list):
            return parsed
    return [cell]


def parse_json(text: str) -> Any:
    """Return the value of JSON text, or None when it is not JSON or is nested too deeply."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if n_values(value) is None else value


def cell_at(row: abc.Mapping[str, Any], path: str) -> Any:
    """Return the cell at a path into nested JSON, such as ``output.choices[0].text``; None if there is no such cell.

    If a column has the whole path as its name, its cell is returned. JSON text along the path is parsed.
    """
    if path in row or not _PATH.fullmatch(path):
        return row.get(path)
    cell: Any = row
    for name, place in _STEP.findall(path):
        if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "["):
            cell = parse_json(cell)
        if name:
            cell = cell.get(name) if isinstance(cell, abc.Mapping) else None
        else:
            cell = cell[int(place)] if isinstance(cell, list) and int(place) < len(cell) else None
    return cell


def n_values(value: Any) -> int | None:
    """Return the number of values in nested lists and objects; None if they are nested deeper than `MAX_DEPTH`."""
    level, count = [value] if isinstance(value, (list, dict)) else [], 0
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return count
        count += sum(map(len, level))
        level = [
            inner
            for held in level
            for inner in (held.values() if isinstance(held, dict) else held)
            if isinstance(inner, (list, dict)) and inner
        ]
    return None


def read_id(cell: Any) -> str:
    """Return a trimmed identifier as text: 7, 7.0 and "7" are the same id; "" if missing."""
    if isinstance(cell, str):
        return visible_name(clean_text(cell))
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return clean_text(str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)).strip()


def clean_text(text: str) -> str:
    """Replace lone surrogates and NUL, which no store or file can hold, with U+FFFD."""
    return text if text.isascii() and "\x00" not in text else _SURROGATES.sub("\ufffd", text)


def aspect_key(name: str) -> str:
    """Normalise the name of an aspect for comparison: drop case, spaces and punctuation, in any script."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unicodedata.normalize("NFKC", name))
    # vowel signs are combining marks, and tell names apart in the scripts that have them
    known = (each if each.isalnum() or unicodedata.category(each)[0] == "M" else "_" for each in spaced.casefold())
    return re.sub("_+", "_", "".join(known)).strip("_")


def folded(column: str) -> str:
    """Normalise the name of a column for comparison: ``"Item ID"``, ``"itemId"`` → ``"item_id"``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────

_MESSAGES = re.compile(r"\s*\[\s*\{")
_SPEAKER_KEYS = ("role", "speaker", "from", "author", "name")
_TEXT_KEYS = ("content", "text", "value", "utterance", "message")


def read_turns(value: Any) -> list[str] | None:
    """Return messages as lines of ``speaker: text``; None for any other value.

    A message is ``{"role" | "speaker", "content" | "text"}``.
    """
    if not isinstance(value, (list, tuple)) or not value:
        return None
    turns = []
    for message in value:
        if not isinstance(message, abc.Mapping):
            return None
        speaker = next((message[key] for key in _SPEAKER_KEYS if message.get(key) is not None), None)
        text = next((message[key] for key in _TEXT_KEYS if message.get(key) is not None), None)
        if speaker is None or not isinstance(text, (str, list)):
            return None
        if isinstance(text, list):  # the parts of a chat message: their texts, one per line
            text = "\n".join(_scalar(part.get("text") if isinstance(part, abc.Mapping) else part) for part in text)
        turns.append(f"{_scalar(speaker)}: {text}")
    return turns


def source_text(cell: Any) -> str:
    """Return the text of a source or context: text unchanged, messages as turns, objects as ``key: value`` lines."""
    value = unpacked(cell)
    turns = read_turns(value)
    return clean_text("\n".join(turns) if turns else readable(value))


def target_text(cell: Any) -> str:
    """Return the text of a target as `source_text` does, but keep an object as JSON."""
    value = parse_json(cell) if isinstance(cell, str) and _MESSAGES.match(cell) else cell
    if read_turns(value) or not isinstance(cell, (str, abc.Mapping, list, tuple)):
        return source_text(value)
    return clean_text(cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False))


def reference_texts(cell: Any) -> tuple[str, ...]:
    """Return the non-empty references in a cell: a list, a JSON list, or a single text."""
    texts = (target_text(entry) for entry in read_list(cell))
    return tuple(text for text in texts if not is_blank(text))


def unpacked(cell: Any) -> Any:
    """Parse a cell that holds a JSON object or list as text (CSV, XLSX); return any other cell unchanged."""
    value = parse_json(cell) if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "[") else None
    return value if isinstance(value, (dict, list)) and value else cell


def readable(value: Any, indent: str = "") -> str:
    """Write structured data as lines, in the given order.

    An object becomes ``key: value`` lines. A list of rows becomes one line per row: ``a | b | c``. Null entries are
    omitted, so absent and null keys look the same.
    """
    inner = (abc.Mapping, list, tuple)
    lines = []
    if isinstance(value, abc.Mapping):
        for key, entry in value.items():
            nested = isinstance(entry, inner) and any(isinstance(v, inner) for v in entry)
            if nested or isinstance(entry, abc.Mapping):
                lines.append(f"{indent}{key}:\n{readable(entry, indent + '  ')}")
            elif isinstance(entry, inner):
                lines.append(f"{indent}{key}: {', '.join(_scalar(v) for v in entry if v is not None)}")
            elif entry is not None:
                lines.append(f"{indent}{key}: {_scalar(entry)}")
    elif isinstance(value, (list, tuple)):
        for entry in value:
            if isinstance(entry, abc.Mapping):
                lines.append(f"{indent}- {readable(entry, indent + '  ').lstrip()}")
            elif isinstance(entry, (list, tuple)):
                lines.append(indent + " | ".join(map(readable, entry)))
            elif entry is not None:
                lines.append(indent + _scalar(entry))
    else:
        return indent + _scalar(value)
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)
