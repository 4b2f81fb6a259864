"""From label cells to numbers: gold labels, individual ratings and metrics, with a finding for every cell refused."""

from __future__ import annotations

from collections import Counter, abc
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from core.data.cells import (
    AmbiguousCommaError,
    CellError,
    Comma,
    comma_in,
    has_decimal_comma,
    is_ambiguous,
    read_id,
    read_list,
    read_number,
    shown,
)
from core.data.fields import Mapping, RatingColumn
from core.data.files import MAX_LABELS
from core.data.findings import FindingLog
from core.data.items import ItemRows
from core.data.tables import Table
from core.errors import GoldenError
from core.records import Rating

MAX_ASPECTS = 200
COMMA_ASKED = (
    "Write it with a decimal point or without the comma, or say on the Golden set screen what commas stand for."
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a label stands: data row (from 1) and column."""

    row: int
    column: str


@dataclass(slots=True)
class AspectCells:
    """The labels of one aspect: gold per item (None where missing) with their places, and ratings with theirs.

    `gold_given` is False when gold labels are the means of the ratings.
    """

    aspect: str
    gold: list[float | None]
    gold_places: list[Place | None]
    gold_given: bool = True
    ratings: list[Rating] = field(default_factory=list)
    rating_places: list[Place] = field(default_factory=list)
    panels: list[str] = field(default_factory=list)

    def add_rating(self, rating: Rating, place: Place, panel: str = "") -> None:
        self.ratings.append(rating)
        self.rating_places.append(place)
        self.panels.append(panel)

    def gold_from_ratings(self, positions: abc.Mapping[str, int]) -> None:
        """Gold labels as means of the ratings of each item."""
        self.gold_given = False
        values: dict[int, list[float]] = {}
        for rating, place in zip(self.ratings, self.rating_places, strict=True):
            position = positions[rating.item_id]
            values.setdefault(position, []).append(rating.value)
            self.gold_places[position] = self.gold_places[position] or place
        for position, given in values.items():
            self.gold[position] = fmean(given)


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
            cells.gold_from_ratings(items.positions)
    return reader.aspects


def asks_about_commas(table: Table, mapping: Mapping) -> bool:
    """Whether a column of labels holds a number such as 1,234, and nothing shows what its comma stands for."""
    labels = {*mapping.gold_columns.values(), *(rating.column for rating in mapping.rating_columns)}
    for column in labels | {mapping.roles[role] for role in ("value",) if role in mapping.roles}:
        cells = [entry for row in table.rows for entry in read_list(row.get(column)) if isinstance(entry, str)]
        if comma_in(cells) is None and any(is_ambiguous(cell) for cell in cells):
            return True
    return False


def read_metrics(
    table: Table, mapping: Mapping, items: ItemRows, log: FindingLog
) -> dict[str, tuple[float | None, ...]]:
    """Metric name → one value an item; a list counts by its mean, what is no number is left out with a finding."""
    reader = _Reader(table, mapping, items, log)
    return {name: reader.metric(column) for name, column in mapping.metric_columns.items()}


class _Reader:
    def __init__(self, table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> None:
        self.table, self.items, self.log = table, items, log
        self.long = mapping.layout == "long"
        self.comma = mapping.comma
        self.commas: dict[str, Comma | None] = {}
        self.n_labels = 0
        self.aspects: dict[str, AspectCells] = {}
        self.unnamed: Counter[tuple[int, str]] = Counter()

    def cells_of(self, aspect: str) -> AspectCells:
        if aspect not in self.aspects:
            n = len(self.items.items)
            if n * (len(self.aspects) + 1) > MAX_LABELS:
                raise self.too_many(f"{n:,} items have room for labels on {len(self.aspects)} aspects")
            self.aspects[aspect] = AspectCells(aspect, [None] * n, [None] * n)
        return self.aspects[aspect]

    def filled(self, column: str) -> abc.Iterator[tuple[int, int, Any]]:
        """(position of the row, position of its item, cell) of the cells that are not empty.

        In a wide file a row that repeats an id is left out: it is an error already.
        """
        for index, (row, position) in enumerate(zip(self.table.rows, self.items.item_of_row, strict=True)):
            cell = row.get(column)
            if cell is not None and cell != "" and (self.long or self.items.row_of_item[position] == index + 1):
                yield index, position, cell

    def too_many(self, what: str) -> GoldenError:
        message = f"The file holds too many labels: {what}, and a golden set at most {MAX_LABELS:,}. Split it."
        return GoldenError(message, file=self.table.name)

    def comma_of(self, column: str) -> Comma | None:
        """What commas in a column's numbers stand for: as a person said, else as its other numbers show."""
        if column not in self.commas:
            cells = (entry for row in self.table.rows for entry in read_list(row.get(column)))
            self.commas[column] = self.comma or comma_in(cells)
        return self.commas[column]

    def number(self, cell: Any, row: int, column: str) -> float | None:
        self.n_labels += 1
        if self.n_labels > MAX_LABELS:
            raise self.too_many("there are more ratings")
        comma = self.comma_of(column) if isinstance(cell, str) and "," in cell else None
        try:
            value = read_number(cell, comma)
        except AmbiguousCommaError as problem:
            self.log.add("error", f"{problem}. {COMMA_ASKED}", row=row, column=column, kind="comma")
            return None
        except CellError as problem:
            self.log.add("error", f"{_capital(problem)}.", row=row, column=column, kind="label")
            return None
        if comma == "thousands":
            self.log.once("note", "Commas between thousands were left out.", row=row, column=column)
        elif comma == "decimal" or has_decimal_comma(cell):
            self.log.once("note", "Decimal commas were read as decimal points.", row=row, column=column)
        return value

    def read_gold(self, aspect: str, column: str) -> None:
        cells = self.cells_of(aspect)
        for index, position, cell in self.filled(column):
            if isinstance(cell, (list, tuple)) or (isinstance(cell, str) and cell.lstrip()[:1] == "["):
                message = f"One number was expected, {shown(cell)} came; name a column of lists ann_{aspect}."
                self.log.add("error", message, row=index + 1, column=column, kind="label")
                continue
            cells.gold[position] = self.number(cell, index + 1, column)
            cells.gold_places[position] = Place(index + 1, column)

    def read_ratings(self, spec: RatingColumn) -> None:
        cells = self.cells_of(spec.aspect)
        for index, position, cell in self.filled(spec.column):
            entries = read_list(cell)
            raters = self.raters(spec, index, len(entries))
            place, item_id = Place(index + 1, spec.column), self.items.items[position].item_id
            for slot, entry in enumerate(entries):
                value = self.number(entry, index + 1, spec.column)
                if value is not None:
                    unnamed = f"{spec.panel or 'r'}{slot + 1}"
                    rater = raters[slot] if raters else unnamed
                    cells.add_rating(Rating(item_id, rater or unnamed, spec.aspect, value), place, spec.panel)

    def raters(self, spec: RatingColumn, index: int, n_ratings: int) -> list[str]:
        """Rater ids of a row, or [] when they are not named or do not match the ratings in number.

        A rater named twice in one row counts as two ("W4", "W4 (2)"), so that no rating is lost.
        """
        if spec.raters_column is None:
            return []
        named = [read_id(name) for name in read_list(self.table.rows[index].get(spec.raters_column))]
        where, column = index + 1, spec.raters_column
        if len(named) != n_ratings:
            message = f"{n_ratings} ratings but {len(named)} raters; the raters are numbered here instead."
            self.log.add("warning", message, row=where, column=column, kind="raters")
            return []
        times: Counter[str] = Counter()
        for slot, name in enumerate(named):
            times[name] += 1
            if name and times[name] > 1:
                message = "A rater is named twice in one row; the later rating counts as another rater's."
                self.log.once("note", message, row=where, column=column)
                named[slot] = f"{name} ({times[name]})"
        return named

    def read_long(self, mapping: Mapping) -> dict[str, AspectCells]:
        """One row a rating; gold labels are means over the raters.  The aspect is a cell or the column's name."""
        long_columns = {mapping.roles["value"]: ""} if {"aspect", "value"} <= mapping.roles.keys() else {}
        columns = long_columns or {column: aspect for aspect, column in mapping.gold_columns.items()}
        given: dict[tuple[int, str, str], int] = {}
        for column, name in columns.items():
            for index, position, cell in self.filled(column):
                aspect = name or self.aspect_cell(mapping.roles["aspect"], index)
                value = self.number(cell, index + 1, column)
                if not aspect or value is None:
                    continue
                rater = self.rater_cell(mapping.roles.get("annotator_id"), index, position, aspect)
                first = given.setdefault((position, aspect, rater), index + 1)
                if first != index + 1:
                    message = f"{shown(rater)} rated {aspect} of this item in row {first} already; keep one of the two."
                    self.log.add("error", message, row=index + 1, column=column, kind="twice")
                    continue
                rating = Rating(self.items.items[position].item_id, rater, aspect, value)
                self.cells_of(aspect).add_rating(rating, Place(index + 1, column))
        for cells in self.aspects.values():
            cells.gold_from_ratings(self.items.positions)
            if "annotator_id" not in mapping.roles and len(cells.ratings) == sum(v is not None for v in cells.gold):
                cells.gold_given = True
                cells.ratings, cells.rating_places, cells.panels = [], [], []
        return self.aspects

    def rater_cell(self, column: str | None, index: int, position: int, aspect: str) -> str:
        """The rater's id, or r1, r2, … in the order of an item's unnamed ratings."""
        rater = read_id(self.table.rows[index].get(column)) if column else ""
        if not rater:
            self.unnamed[position, aspect] += 1
            rater = f"r{self.unnamed[position, aspect]}"
        return rater

    def aspect_cell(self, column: str, index: int) -> str:
        aspect = read_id(self.table.rows[index].get(column))[:200]
        if not aspect:
            self.log.add("error", "The aspect is missing.", row=index + 1, column=column, kind="aspect")
        elif aspect not in self.aspects and len(self.aspects) >= MAX_ASPECTS:
            message = f"More than {MAX_ASPECTS} different aspects: is this the right column?"
            self.log.once("error", message, row=index + 1, column=column)
            return ""
        return aspect

    def metric(self, column: str) -> tuple[float | None, ...]:
        values: list[float | None] = [None] * len(self.items.items)
        for index, position, cell in self.filled(column):
            try:
                comma = self.comma_of(column) if isinstance(cell, str) and "," in cell else None
                numbers = [n for n in (read_number(entry, comma) for entry in read_list(cell)) if n is not None]
            except CellError as problem:
                message = f"{_capital(problem)}; the metric is left out for this item."
                self.log.add("warning", message, row=index + 1, column=column, kind="metric")
                continue
            if len(numbers) > 1:
                self.log.once("note", "The metric is a list; its mean is used.", row=index + 1, column=column)
            values[position] = fmean(numbers) if numbers else None
        return tuple(values)


def _capital(problem: Exception) -> str:
    text = str(problem)
    return text[:1].upper() + text[1:]
