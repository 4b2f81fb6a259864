"""A downloaded file → checked rows, and what the converters make golden rows of them with.

JSON, JSONL and CSV only; nothing is evaluated.  `Fields` is one record with its place in the file; its methods raise
GoldenError with file, row (from 1) and field when something is missing, of another type or out of its scale.  A name
with a dot (``"scores.fluency"``) reaches into an object where no field has that very name.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from core.data.cells import CellError, read_number
from core.data.tables import read_table
from core.errors import GoldenError

Format = Literal["json", "jsonl", "csv"]
Number = int | float
Row = dict[str, Any]

_HELP = "Is this the file that the catalogue names (`fetch --list --json`)?"
_MISSING = ("", "NA")
"""Cells of files that R wrote where there is no value."""


@dataclass(frozen=True)
class Fields:
    """One record of `file`; `path` is where it stands inside its row (``"responses[2]."``)."""

    file: str
    row: int
    values: dict[str, Any]
    path: str = ""

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

    def number_or_none(self, name: str, low: float = -math.inf, high: float = math.inf) -> Number | None:
        """As `number`; None for an empty cell or "NA"."""
        return None if self.require(name) in _MISSING else self.number(name, low, high)

    def numbers(self, name: str, low: float, high: float) -> list[Number]:
        """A list of numbers from `low` to `high` that is not empty."""
        entries = self._list(name)
        return [self._number(f"{name}[{slot}]", entry, low, high) for slot, entry in enumerate(entries)]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        return [self._text(f"{name}[{slot}]", entry) for slot, entry in enumerate(self._list(name))]

    def each(self, name: str) -> list[Fields]:
        """The records in the list `name`, at least one."""
        return [self._inside(f"{name}[{slot}]", entry) for slot, entry in enumerate(self._list(name))]

    def wrong(self, name: str, wanted: str, came: object) -> GoldenError:
        """The error for a field that holds something else than what is `wanted`."""
        return self.error(f"{wanted} was expected, {_shown(came)} came.", name)

    def error(self, message: str, name: str) -> GoldenError:
        """An error at the field `name` of this record."""
        return GoldenError(f"{message} {_HELP}", file=self.file, row=self.row, column=f"{self.path}{name}")

    def require(self, name: str) -> Any:
        """Whatever the field holds; GoldenError when it is missing."""
        if name in self.values:
            return self.values[name]
        head, _, rest = name.partition(".")
        if rest and head in self.values:
            return self._inside(head, self.values[head]).require(rest)
        names = ", ".join(map(repr, list(self.values)[:12])) or "none"
        raise self.error(f"the field is missing; there are: {names}.", name)

    def _inside(self, name: str, value: Any) -> Fields:
        if not isinstance(value, dict):
            raise self.wrong(name, "an object", value)
        return Fields(self.file, self.row, value, f"{self.path}{name}.")

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
            number = None if isinstance(value, bool) else read_number(value)
        except CellError:
            number = None
        if number is None:
            raise self.wrong(name, "a number", value)
        if not low <= number <= high:
            raise self.wrong(name, f"a number from {low:g} to {high:g}", value)
        return int(number) if number.is_integer() else number


def read_fields(path: Path, kind: Format, columns: Sequence[str], max_bytes: int) -> list[Fields]:
    """The rows of a file, each with at least `columns`; GoldenError when it is too large or no such file."""
    try:
        table = read_table(path, suffix=f".{kind}", max_mb=max_bytes / (1 << 20))
    except GoldenError as error:
        raise GoldenError(f"{error.message} {_HELP}", file=error.file, row=error.row, column=error.column) from error
    for finding in table.findings:  # a short row, or an encoding that had to be guessed: not the file that is meant
        message = f"{finding.message.partition(';')[0]}. {_HELP}"
        raise GoldenError(message, file=path.name, row=finding.row, column=finding.column)
    rows = [Fields(path.name, number, dict(values)) for number, values in enumerate(table.rows, 1)]
    for row in rows:
        for name in columns:
            row.require(name)
    return rows


def _shown(value: object) -> str:
    """A short form of what came, for messages."""
    if isinstance(value, dict):
        return f"an object with the fields {', '.join(map(repr, list(value)[:6])) or '—'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def grouped(
    rows: Sequence[Fields], by: Sequence[str], same: Sequence[str], what: str
) -> dict[tuple[str, ...], list[Fields]]:
    """Rows with the same names in the fields `by`, in order of first appearance.

    GoldenError for a row of a group that differs from the group's first in one of the fields `same`.
    """
    groups: dict[tuple[str, ...], list[Fields]] = {}
    for row in rows:
        group = groups.setdefault(tuple(row.name(name) for name in by), [])
        group.append(row)
        for name in same:
            if row.text(name) != group[0].text(name):
                raise row.error(f"the text differs from that of row {group[0].row}, same {what}.", name)
    return groups


Parts = Mapping[str, Sequence[Fields]]
"""Role of a downloaded file (``"texts"``, ``"ratings"``) → its rows."""

Rated = Mapping[str, tuple[str, float, float]]
"""Aspect → the field that holds its labels or ratings, and the ends of its scale."""


@dataclass(frozen=True)
class Converted:
    """Golden rows, and what a person should know about how they came about."""

    rows: list[Row]
    notes: tuple[str, ...] = ()


class Ids:
    """Ids in order of first appearance: ``se000`` for a source, ``se000-m11`` for an item of it, ``A1`` for a rater.

    A system that has several texts for one source gets ``-2``, ``-3`` … behind the later ones.  Golden files carry no
    names of people.
    """

    def __init__(self, prefix: str, raters: str = "A") -> None:
        self._prefix, self._rater_prefix = prefix, raters
        self._sources: dict[str, str] = {}
        self._raters: dict[str, str] = {}
        self._taken: Counter[str] = Counter()

    def row(self, source: str, *system: str | None) -> Row:
        """The ids that a golden row begins with; `source` is whatever names the source in its file.

        No `system_id` where the set names no systems, null where this text's is not known.
        """
        source_id = self._sources.setdefault(source, f"{self._prefix}{len(self._sources):03d}")
        plain = "-".join([source_id, *filter(None, system)])
        self._taken[plain] += 1
        item_id = plain if self._taken[plain] == 1 else f"{plain}-{self._taken[plain]}"
        row: Row = {"item_id": item_id, "source_id": source_id}
        if system:
            row["system_id"] = system[0]
        return row

    def rater(self, name: str) -> str:
        """The rater's id."""
        return self._raters.setdefault(name, f"{self._rater_prefix}{len(self._raters) + 1}")


def rated(ratings: Mapping[str, Sequence[Number | None]], annotators: Sequence[str] | None = None) -> Row:
    """The columns of labels, each the mean of its ratings (null without any), and of the ratings by their raters."""
    ratings_of = {aspect: [value for value in values if value is not None] for aspect, values in ratings.items()}
    row: Row = {f"human_{aspect}": mean(values) if values else None for aspect, values in ratings_of.items()}
    if annotators is not None:
        row["annotators"] = annotators
    return row | {f"ann_{aspect}": values for aspect, values in ratings.items()}


def slug(name: str) -> str:
    """``"Nucleus Decoding (p = 0.3)"`` → ``"nucleus-decoding-p-0.3"``."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "unnamed"


def mean(values: Sequence[Number]) -> float:
    """The mean, at ten digits: sums in another order give the same file."""
    return round(fmean(values), 10)
