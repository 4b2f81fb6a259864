"""Reading one cell: numbers, lists, ids and texts, the same from every file format.  Nothing is evaluated."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMA = re.compile(r"[+-]?\d+,\d{1,4}", re.ASCII)
_WORDS = {"true": 1.0, "false": 0.0}
_SURROGATES = re.compile("[\ud800-\udfff\x00]")


class CellError(ValueError):
    """A cell cannot be read as what its column should hold; the message says what came."""


def shown(value: object, limit: int = 60) -> str:
    """`value` quoted for a message, cut short: cells are hostile and may be megabytes long."""
    text = repr(value[: limit + 1] if isinstance(value, str) else value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def read_number(cell: Any) -> float | None:
    """The finite number in `cell`; None for an empty one.  Booleans are 1 and 0, a decimal comma is a point.

    CellError for text, NaN, infinity, formulas, and numbers too large for a float.
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, str):
        return _number_in_text(cell)
    if not isinstance(cell, (int, float)):
        raise CellError(f"a number was expected, {shown(cell)} came")
    try:
        value = float(cell)
    except OverflowError:
        raise CellError("the number is too large") from None
    if not math.isfinite(value):
        raise CellError(f"{value} is not a label; leave the cell empty where there is none")
    return value + 0.0


def _number_in_text(cell: str) -> float | None:
    text = cell[:400].strip()
    if not text:
        return None
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if text.startswith("="):
        raise CellError(f"a formula is not evaluated, {shown(text)} came; paste its value")
    if len(cell) > 400 or not _NUMBER.fullmatch(text):
        raise CellError(f"a number was expected, {shown(cell)} came; leave the cell empty where there is no label")
    return read_number(float(text))


def has_decimal_comma(cell: Any) -> bool:
    """Whether `cell` is text like "3,5", which is read as 3.5."""
    return isinstance(cell, str) and _COMMA.fullmatch(cell.strip()) is not None


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
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_id(cell: Any) -> str:
    """An identifier as text, trimmed: 7, 7.0 and "7" are one id; empty for a missing one."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return clean_text(cell if isinstance(cell, str) else str(cell)).strip()


def clean_text(text: str) -> str:
    """`text` with lone surrogates and NUL, which no store or file can hold, replaced by U+FFFD."""
    return text if text.isascii() and "\x00" not in text else _SURROGATES.sub("\ufffd", text)
