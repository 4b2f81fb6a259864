"""Reading one cell: numbers, lists, ids and texts, the same from every file format.  Nothing is evaluated.

Of structured cells conversations become turns, and data becomes readable lines.
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
"""Lists and objects within one another; what is deeper is no cell that anybody wrote."""

LARGEST = 1e100
"""Squares and sums of such numbers still are numbers."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMA = re.compile(r"[+-]?\d+,\d{1,4}", re.ASCII)
_OPEN_COMMA = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_NO_VALUE = frozenset("n/a na nan null none nil #n/a #na <na> #null! - -- – —".split())
_PATH = re.compile(r"[^.\[\]]+(?:\[\d{1,6}\]|\.[^.\[\]]+)+")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_SURROGATES = re.compile("[\ud800-\udfff\x00]")


class CellError(ValueError):
    """A cell cannot be read as what its column should hold; the message says what came."""


class AmbiguousCommaError(CellError):
    """A number such as 1,234, whose comma may stand before decimals or between thousands."""


def shown(value: object, limit: int = 60) -> str:
    """`value` quoted for a message, cut short: cells are hostile and may be megabytes long."""
    text = repr(value[: limit + 1] if isinstance(value, str) else value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def read_number(cell: Any, *, decimal_comma: bool = False) -> float | None:
    """Read the finite number in `cell`; None for an empty one.  Booleans are 1 and 0, a decimal comma is a point.

    CellError for text, NaN, infinity, formulas, and numbers too large for a float; AmbiguousCommaError for "1,234" and
    the like, unless commas are known to stand before decimals.
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, str):
        text = visible_name(cell[:400]).replace("\u2212", "-")  # a real minus sign
        if not text:
            return None
        if text.lower() in ("true", "false"):
            return float(text.lower() == "true")
        if _COMMA.fullmatch(text):
            if _OPEN_COMMA.fullmatch(text) and not decimal_comma:
                raise AmbiguousCommaError(f"{text} can mean {text.replace(',', '.')} or {text.replace(',', '')}")
            text = text.replace(",", ".")
        if text.startswith("="):
            raise CellError(f"formulas are not evaluated ({shown(text)}); paste the value")
        if len(cell) > 400 or not _NUMBER.fullmatch(text):
            raise CellError(f"expected a number, got {shown(cell)}; leave the cell empty if there is no label")
        cell = float(text)
    if not isinstance(cell, (int, float)):
        raise CellError(f"expected a number, got {shown(cell)}")
    try:
        value = float(cell)
    except OverflowError:
        raise CellError("the number is too large") from None
    if not math.isfinite(value):
        raise CellError(f"{value} is not a label; leave the cell empty if there is none")
    if abs(value) > LARGEST:
        raise CellError("the number is too large")
    return value + 0.0


def read_numbers(cells: abc.Iterable[Any]) -> tuple[list[float], list[str]]:
    """The numbers in `cells`, and why others are none; empty cells and numbers whose comma is open are neither."""
    numbers, problems = list[float](), list[str]()
    for cell in cells:
        try:
            number = None if is_no_value(cell) else read_number(cell)
            numbers += [] if number is None else [number]
        except AmbiguousCommaError:
            continue
        except CellError as problem:
            problems.append(str(problem))
    return numbers, problems


def is_no_value(cell: Any) -> bool:
    """Whether a cell says in words that it holds nothing: N/A, null, a dash; an empty one says nothing."""
    if not isinstance(cell, str) or len(cell) > 40 or cell[:1].isdigit():
        return False
    return visible_name(cell).lower() in _NO_VALUE


def has_decimal_commas(cells: abc.Iterable[Any]) -> bool:
    """Whether a number such as 2,5 shows that the commas of a column stand before decimals."""
    texts = (cell.strip() for cell in cells if isinstance(cell, str) and len(cell) < 400)
    return any(_COMMA.fullmatch(text) and not _OPEN_COMMA.fullmatch(text) for text in texts)


def read_list(cell: Any) -> list[Any]:
    """The list in `cell`: a list, JSON text of one, or a single value as a list of one; empty for an empty cell."""
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
    """The value of JSON text, or None when it is not JSON (or nested or long beyond reason)."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if n_values(value) is None else value


def cell_at(row: abc.Mapping[str, Any], path: str) -> Any:
    """The cell at a path into nested JSON, such as ``output.choices[0].text``; None where the row has none.

    A column with that very name comes first.  JSON text on the way is parsed.
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
    """How many values lie in lists and objects, at any depth; None where they are nested beyond `MAX_DEPTH`."""
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
    """An identifier as visible text, trimmed: 7, 7.0 and "7" are one id; empty for a missing one."""
    if isinstance(cell, str):
        return visible_name(clean_text(cell))
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return clean_text(str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)).strip()


def clean_text(text: str) -> str:
    """`text` with lone surrogates and NUL, which no store or file can hold, replaced by U+FFFD."""
    return text if text.isascii() and "\x00" not in text else _SURROGATES.sub("\ufffd", text)


def aspect_key(name: str) -> str:
    """The name of an aspect in the form it is compared in: without case, white space and marks, in any script."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unicodedata.normalize("NFKC", name))
    return re.sub(r"[\W_]+", "_", spaced.casefold()).strip("_")


def folded(column: str) -> str:
    """A column name in the form aliases are compared in: ``"Item ID"``, ``"itemId"`` → ``"item_id"``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────

_SPEAKER_KEYS = ("role", "speaker", "from", "author", "name")
_TEXT_KEYS = ("content", "text", "value", "utterance", "message")


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
    value = unpacked(cell)
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


def unpacked(cell: Any) -> Any:
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
