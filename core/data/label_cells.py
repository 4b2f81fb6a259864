"""From label cells to numbers: gold labels, individual ratings and metrics, with a finding for every cell refused."""

from __future__ import annotations

from collections import Counter, abc
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from core.data.cells import (
    AmbiguousCommaError,
    CellError,
    Comma,
    aspect_key,
    comma_in,
    comma_meanings,
    is_no_value,
    read_id,
    read_list,
    read_number,
    shown,
)
from core.data.columns import Mapping, RatingColumn
from core.data.files import LIMITS
from core.data.findings import FindingLog
from core.data.items import ItemRows
from core.data.tables import Row, Table
from core.errors import GoldenError

MAX_ASPECTS = 200
COMMA_ASKED = (
    "Write it with a decimal point or without the comma, or say on the Golden set screen what commas stand for."
)


class Label(NamedTuple):
    """A number and its cell: the position of its item, data row (from 1) and column; its rater and panel, if named."""

    value: float
    position: int
    row: int
    column: str
    rater: str = ""
    panel: str = ""


@dataclass(slots=True)
class AspectCells:
    """The labels of one aspect: gold per item (None where missing), and ratings.

    `gold_given` is False when gold labels are the means of the ratings (then each stands where the first of them does).
    """

    aspect: str
    gold: list[Label | None]
    gold_given: bool = True
    ratings: list[Label] = field(default_factory=list)

    @property
    def values(self) -> tuple[float | None, ...]:
        """Gold per item, None where missing."""
        return tuple(None if label is None else label.value for label in self.gold)

    @property
    def column(self) -> str | None:
        """Where the first gold label stands."""
        return next((label.column for label in self.gold if label is not None), None)

    def means(self, *, panels: bool = True) -> dict[int, float]:
        """Position of an item → the mean of its ratings; `panels`: those of named panels too."""
        by_item: dict[int, list[float]] = {}
        for label in self.ratings:
            if panels or not label.panel:
                by_item.setdefault(label.position, []).append(label.value)
        return {position: fmean(values) for position, values in by_item.items()}

    def gold_from_ratings(self) -> None:
        """Gold labels as means of the ratings of each item."""
        self.gold_given, means = False, self.means()
        for label in self.ratings:
            if self.gold[label.position] is None:
                self.gold[label.position] = Label(means[label.position], label.position, label.row, label.column)


def read_labels(table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> dict[str, AspectCells]:
    """Aspect → its labels, in column order (long files: order of first appearance)."""
    reader = _Reader(table, mapping, items, log)
    if mapping.layout == "long":
        return reader.read_long(mapping)
    if len(mapping.aspects) > MAX_ASPECTS:
        log.add("error", f"{len(mapping.aspects)} columns of labels; a golden set has at most {MAX_ASPECTS} aspects.")
        return {}
    for aspect in mapping.aspects:
        reader.cells_of(aspect)
    for aspect, column in mapping.gold_columns.items():
        reader.read_gold(aspect, column)
    for rating_column in mapping.rating_columns:
        reader.read_ratings(rating_column)
    for aspect, cells in reader.aspects.items():
        if aspect not in mapping.gold_columns:
            cells.gold_from_ratings()
    return reader.aspects


def asks_about_commas(table: Table, mapping: Mapping) -> bool:
    """Whether a column of labels holds a number such as 1,234, and nothing shows what its comma stands for."""
    labels = {*mapping.gold_columns.values(), *(rating.column for rating in mapping.rating_columns)}
    if "value" in mapping.roles:
        labels.add(mapping.roles["value"])
    return any(
        comma_in(texts) is None and any(len(comma_meanings(text)) == 2 for text in texts)
        for texts in (_texts(table, column) for column in labels)
    )


def read_metrics(
    table: Table, mapping: Mapping, items: ItemRows, log: FindingLog
) -> dict[str, tuple[float | None, ...]]:
    """Metric name → one value an item; a list counts by its mean, what is no number is left out with a finding."""
    reader = _Reader(table, mapping, items, log)
    return {name: reader.metric(column) for name, column in mapping.metric_columns.items()}


CHOICE = (
    "A preference is A, B or tie, the name of one of the pair's two systems, or a number; {cell} came. Leave the cell "
    "empty where nobody chose."
)


class _Reader:
    def __init__(self, table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> None:
        self.table, self.items, self.log = table, items, log
        self.long = mapping.layout == "long"
        self.comma, self.pairs = mapping.comma, mapping.kind == "pair"
        self.commas: dict[str, Comma | None] = {}
        self.n_labels = 0
        self.aspects: dict[str, AspectCells] = {}
        self.spellings: dict[str, str] = {}
        self.unnamed: Counter[tuple[int, str]] = Counter()

    def cells_of(self, aspect: str) -> AspectCells:
        if aspect not in self.aspects:
            n = len(self.items.items)
            if n * (len(self.aspects) + 1) > LIMITS.labels:
                raise self.too_many(f"{n:,} items have room for labels on {len(self.aspects)} aspects")
            self.aspects[aspect] = AspectCells(aspect, [None] * n)
        return self.aspects[aspect]

    def filled(self, column: str) -> abc.Iterator[tuple[int, Row, int, Any]]:
        """(number of the row, the row, position of its item, cell) of the cells that are not empty.

        In a wide file a row that repeats an id is left out: it is an error already.
        """
        for (number, row), position in zip(self.table.numbered(), self.items.item_of_row, strict=True):
            cell = row.get(column)
            if cell is not None and cell != "" and (self.long or self.items.row_of_item[position] == number):
                yield number, row, position, cell

    def too_many(self, what: str) -> GoldenError:
        message = f"The file holds too many labels: {what}, and a golden set at most {LIMITS.labels:,}. Split it."
        return GoldenError(message, file=self.table.name)

    def number(self, cell: Any, row: int, column: str) -> float | None:
        """The label in a cell; None, with an error where one came that cannot be read."""
        self.n_labels += 1
        if self.n_labels > LIMITS.labels:
            raise self.too_many("there are more ratings")
        comma = self.comma_of(column, cell)
        if is_no_value(cell):
            self.log.once("warning", f"{shown(cell)} counts as no label, first in this row.", row=row, column=column)
            return None
        try:
            value = read_number(cell, comma)
        except AmbiguousCommaError as problem:
            self.log.add("error", f"{problem}. {COMMA_ASKED}", row=row, column=column, kind="comma")
            return None
        except CellError as problem:
            words = CHOICE.format(cell=shown(cell)) if self.pairs and isinstance(cell, str) else f"{_capital(problem)}."
            self.log.add("error", words, row=row, column=column, kind="label")
            return None
        if comma == "thousands":
            self.log.once("note", "Commas between thousands were left out.", row=row, column=column)
        elif comma == "decimal" or "decimal" in comma_meanings(cell):
            self.log.once("note", "Decimal commas were read as decimal points.", row=row, column=column)
        return value

    def comma_of(self, column: str, cell: Any) -> Comma | None:
        """What a comma in a column's cell stands for: as a person said, else as its other numbers show."""
        if not isinstance(cell, str) or "," not in cell:
            return None
        if column not in self.commas:
            self.commas[column] = self.comma or comma_in(_texts(self.table, column))
        return self.commas[column]

    def read_gold(self, aspect: str, column: str) -> None:
        cells = self.cells_of(aspect)
        for number, _, position, cell in self.filled(column):
            if isinstance(cell, (list, tuple)) or (isinstance(cell, str) and cell.lstrip()[:1] == "["):
                message = f"One number was expected, {shown(cell)} came; name a column of lists ann_{aspect}."
                self.log.add("error", message, row=number, column=column, kind="label")
            elif (value := self.number(cell, number, column)) is not None:
                cells.gold[position] = Label(value, position, number, column)

    def read_ratings(self, spec: RatingColumn) -> None:
        cells = self.cells_of(spec.aspect)
        for number, row, position, cell in self.filled(spec.column):
            entries = read_list(cell)
            raters = self.raters(spec, number, row, len(entries)) or [""] * len(entries)
            for slot, (entry, rater) in enumerate(zip(entries, raters, strict=True), start=1):
                if (value := self.number(entry, number, spec.column)) is not None:
                    name = rater or f"{spec.panel or 'r'}{slot}"
                    cells.ratings.append(Label(value, position, number, spec.column, name, spec.panel))

    def raters(self, spec: RatingColumn, number: int, row: Row, n_ratings: int) -> list[str]:
        """Rater ids of a row, or [] when they are not named or do not match the ratings in number.

        A rater named twice in one row counts as two ("W4", "W4 (2)"), so that no rating is lost.
        """
        column = spec.raters_column
        if column is None:
            return []
        named = [read_id(name) for name in read_list(row.get(column))]
        if len(named) != n_ratings:
            message = f"{n_ratings} ratings but {len(named)} raters; the raters are numbered here instead."
            self.log.add("warning", message, row=number, column=column, kind="raters")
            return []
        times: Counter[str] = Counter()
        for slot, name in enumerate(named):
            times[name] += 1
            if name and times[name] > 1:
                message = "A rater is named twice in one row; the later rating counts as another rater's."
                self.log.once("note", message, row=number, column=column)
                named[slot] = f"{name} ({times[name]})"
        return named

    def read_long(self, mapping: Mapping) -> dict[str, AspectCells]:
        """One row a rating; gold labels are means over the raters.  The aspect is a cell or the column's name."""
        long_columns = {mapping.roles["value"]: ""} if {"aspect", "value"} <= mapping.roles.keys() else {}
        columns = long_columns or {column: aspect for aspect, column in mapping.gold_columns.items()}
        first_rows: dict[tuple[int, str, str], int] = {}
        for column, name in columns.items():
            for number, row, position, cell in self.filled(column):
                aspect = name or self.aspect_cell(mapping.roles["aspect"], number, row)
                value = self.number(cell, number, column)
                if not aspect or value is None:
                    continue
                rater = self.rater_cell(row.get(mapping.roles.get("annotator_id", "")), position, aspect)
                first = first_rows.setdefault((position, aspect, rater), number)
                if first != number:
                    message = f"{shown(rater)} rated {aspect} of this item in row {first} already; keep one of the two."
                    self.log.add("error", message, row=number, column=column, kind="twice")
                    continue
                self.cells_of(aspect).ratings.append(Label(value, position, number, column, rater))
        for cells in self.aspects.values():
            cells.gold_from_ratings()
            if "annotator_id" not in mapping.roles and len(cells.ratings) == len(cells.means()):
                cells.gold_given, cells.ratings = True, []
        return self.aspects

    def rater_cell(self, cell: Any, position: int, aspect: str) -> str:
        """The rater's id, or r1, r2, … in the order of an item's unnamed ratings."""
        if rater := read_id(cell):
            return rater
        self.unnamed[position, aspect] += 1
        return f"r{self.unnamed[position, aspect]}"

    def aspect_cell(self, column: str, number: int, row: Row) -> str:
        aspect = written = read_id(row.get(column))[:200]
        aspect = self.spellings.setdefault(aspect_key(written) or written, written)
        if aspect != written:
            self.log.once("note", f"{shown(written)} and {shown(aspect)} are read as one aspect.", column=column)
        if not aspect:
            self.log.add("error", "The aspect is missing.", row=number, column=column, kind="aspect")
        elif aspect not in self.aspects and len(self.aspects) >= MAX_ASPECTS:
            message = f"More than {MAX_ASPECTS} different aspects: is this the right column?"
            self.log.once("error", message, row=number, column=column)
            return ""
        return aspect

    def metric(self, column: str) -> tuple[float | None, ...]:
        values: list[float | None] = [None] * len(self.items.items)
        for number, _, position, cell in self.filled(column):
            try:
                read = (read_number(entry, self.comma_of(column, entry)) for entry in read_list(cell))
                numbers = [value for value in read if value is not None]
            except CellError as problem:
                message = f"{_capital(problem)}; the metric is left out for this item."
                self.log.add("warning", message, row=number, column=column, kind="metric")
                continue
            if len(numbers) > 1:
                self.log.once("note", "The metric is a list; its mean is used.", row=number, column=column)
            values[position] = fmean(numbers) if numbers else None
        return tuple(values)


def _texts(table: Table, column: str) -> list[str]:
    """The text cells of a column, and the texts in its lists."""
    return [entry for row in table.rows for entry in read_list(row.get(column)) if isinstance(entry, str)]


def _capital(problem: Exception) -> str:
    text = str(problem)
    return text[:1].upper() + text[1:]
