"""A downloaded file → checked rows: every field is asked for by name and type, and a wrong shape says which.

JSON, JSONL and CSV only; nothing is evaluated.  `Fields` is one record with its place in the file; its methods raise
GoldenError with file, row (from 1) and field when something is missing, of another type or out of its scale.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from core.errors import GoldenError

Format = Literal["json", "jsonl", "csv"]
Number = int | float


@dataclass(frozen=True)
class Fields:
    """One record of `file`; `path` is where it stands inside its row (``"responses[2]."``)."""

    file: str
    row: int
    values: dict[str, Any]
    path: str = ""

    def has(self, name: str) -> bool:
        """Whether the field is there and holds something."""
        return self.values.get(name) not in (None, "")

    def text(self, name: str) -> str:
        """A text, without white space at its ends and without lone surrogates, which no file takes."""
        return self._text(name, self.require(name))

    def name(self, name: str) -> str:
        """A text or whole number that names something and is not empty."""
        value = self.require(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(name, "a name", value)
        return self.text(name)

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> Number:
        """A number from `low` to `high`; whole numbers as int.  CSV cells are read as numbers."""
        return self._number(name, self.require(name), low, high)

    def numbers(self, name: str, low: float, high: float) -> list[Number]:
        """A list of numbers from `low` to `high` that is not empty."""
        entries = self._list(name)
        return [self._number(f"{name}[{slot}]", entry, low, high) for slot, entry in enumerate(entries)]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        return [self._text(f"{name}[{slot}]", entry) for slot, entry in enumerate(self._list(name))]

    def inside(self, name: str) -> Fields:
        """The record in the field `name`."""
        value = self.require(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object", value)
        return Fields(self.file, self.row, value, f"{self.path}{name}.")

    def each(self, name: str) -> list[Fields]:
        """The records in the list `name`, at least one."""
        found = []
        for slot, entry in enumerate(self._list(name)):
            if not isinstance(entry, dict):
                raise self.wrong(f"{name}[{slot}]", "an object", entry)
            found.append(Fields(self.file, self.row, entry, f"{self.path}{name}[{slot}]."))
        return found

    def wrong(self, name: str, wanted: str, came: object) -> GoldenError:
        """The error for a field that holds something else than what is `wanted`."""
        return self.error(f"{wanted} was expected, {_shown(came)} came.", name)

    def error(self, message: str, name: str) -> GoldenError:
        """An error at the field `name` of this record."""
        return GoldenError(f"{message} {_HELP}", file=self.file, row=self.row, column=f"{self.path}{name}")

    def require(self, name: str) -> Any:
        """Whatever the field holds; GoldenError when it is missing."""
        if name not in self.values:
            known = ", ".join(map(repr, list(self.values)[:12])) or "none"
            raise self.error(f"the field is missing; there are: {known}.", name)
        return self.values[name]

    def _text(self, name: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong(name, "a text", value)
        return value.encode("utf-8", "replace").decode("utf-8").strip()

    def _list(self, name: str) -> list[Any]:
        value = self.require(name)
        if not isinstance(value, list) or not value:
            raise self.wrong(name, "a list with something in it", value)
        return value

    def _number(self, name: str, value: object, low: float, high: float) -> Number:
        try:
            given = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            given = math.nan
        if not math.isfinite(given):
            raise self.wrong(name, "a number", value)
        if not low <= given <= high:
            raise self.wrong(name, f"a number from {low:g} to {high:g}", value)
        return int(given) if given.is_integer() else given


_HELP = "Is this the file that the catalogue names (`fetch --list --json`)?"


def read_fields(path: Path, kind: Format, columns: Sequence[str], max_bytes: int) -> list[Fields]:
    """The rows of a file, each with at least `columns`; GoldenError when it is too large or no such file."""
    try:
        data = path.read_bytes() if path.stat().st_size <= max_bytes else None
    except OSError as problem:
        raise GoldenError(f"the file cannot be read: {problem.strerror or problem}.", file=str(path)) from problem
    if data is None:
        raise GoldenError(f"the file is larger than the {max_bytes / 1e6:,.0f} MB it may have.", file=path.name)
    if data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html")):
        raise GoldenError(f"this is a web page (HTML), not {kind.upper()}. {_HELP}", file=path.name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise GoldenError(f"the file is not UTF-8 (byte {problem.start:,}). {_HELP}", file=path.name) from problem
    read = {"json": _read_json, "jsonl": _read_jsonl, "csv": _read_csv}[kind]
    rows = [Fields(path.name, number, values) for number, values in enumerate(read(text, path.name), 1)]
    if not rows:
        raise GoldenError(f"the file holds no rows. {_HELP}", file=path.name)
    for row in rows:
        for name in columns:
            row.require(name)
    return rows


def _read_json(text: str, file: str) -> Iterable[dict[str, Any]]:
    found = _parsed(text, file, None)
    if not isinstance(found, list):
        raise GoldenError(f"a JSON list of objects was expected, {_shown(found)} came. {_HELP}", file=file)
    return (_record(entry, file, row) for row, entry in enumerate(found, 1))


def _read_jsonl(text: str, file: str) -> Iterable[dict[str, Any]]:
    lines = [line for line in text.split("\n") if line.strip()]
    return (_record(_parsed(line, file, row), file, row) for row, line in enumerate(lines, 1))


def _parsed(text: str, file: str, row: int | None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise GoldenError(f"this is no JSON ({problem}); cut off? {_HELP}", file=file, row=row) from problem


def _record(entry: object, file: str, row: int) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise GoldenError(f"an object was expected, {_shown(entry)} came. {_HELP}", file=file, row=row)
    return entry


def _read_csv(text: str, file: str) -> Iterable[dict[str, Any]]:
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [cells for cells in reader if cells]
    except csv.Error as problem:
        raise GoldenError(f"the CSV is broken at line {reader.line_num}: {problem}. {_HELP}", file=file) from problem
    head = rows[0] if rows else []
    for row, cells in enumerate(rows[1:], 1):
        if len(cells) != len(head):
            message = f"{len(cells)} cells came where the header names {len(head)}; cut off? {_HELP}"
            raise GoldenError(message, file=file, row=row)
        yield dict(zip(head, cells, strict=True))


def _shown(value: object) -> str:
    """A short form of what came, for messages."""
    if isinstance(value, dict):
        return f"an object with the fields {', '.join(map(repr, list(value)[:6])) or '—'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
