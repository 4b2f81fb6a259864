"""From label cells to numbers, and what the numbers of each aspect mean.

Cells become gold labels, individual ratings and metrics, with a finding for every cell refused.  Then a person's
answers are applied, and a question is asked where an answer is needed.

A rank, 1 the best, becomes the share of the other texts of its source that rank below it, (n − rank) / (n − 1) with n
texts: 1 the best, 0 the last, whatever other sources hold.  Texts of one source may share a rank, or the mean of the
places that they share (2.5 and 2.5: half a win each), and some may have none; of a source of one text nothing is known.
"""

from __future__ import annotations

import re
from collections import Counter, abc
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np

from core.data.cells import (
    AmbiguousCommaError,
    CellError,
    aspect_key,
    folded,
    has_decimal_commas,
    is_no_value,
    read_id,
    read_list,
    read_number,
    shown,
)
from core.data.columns import Mapping, Sides, pair_in
from core.data.item_rows import ItemRows
from core.data.reshape import A_BETTER, B_BETTER, PREFERENCES, TIE
from core.data.scale import CODES, Best, Codes, find_scale, is_usual, strays
from core.data.sources import LIMITS, FindingLog
from core.data.tables import Row, Table
from core.errors import AspectError, GoldenError
from core.records import Scale
from core.wording import capital, counted

MAX_ASPECTS = 200


class LabelCell(NamedTuple):
    """A number and its cell: the position of its item, data row (from 1) and column; its rater and panel, if named."""

    value: float
    position: int
    row: int
    column: str
    rater: str = ""
    panel: str = ""


@dataclass(slots=True)
class AspectCells:
    """The labels of one aspect: gold by the position of the item, and ratings.

    `gold_given` is False when gold labels are the means of the ratings (then each stands where the first of them does).
    """

    aspect: str
    n_items: int
    gold: dict[int, LabelCell] = field(default_factory=dict)
    ratings: list[LabelCell] = field(default_factory=list)
    gold_given: bool = True

    @property
    def values(self) -> tuple[float | None, ...]:
        """Gold per item, None where missing."""
        return tuple(self.gold[k].value if k in self.gold else None for k in range(self.n_items))

    @property
    def column(self) -> str | None:
        """Where the first gold label stands."""
        return next((label.column for label in self.gold.values()), None)

    @property
    def labels(self) -> list[LabelCell]:
        """All labels that were read from cells, ratings first."""
        return [*self.ratings, *(self.gold.values() if self.gold_given else ())]

    def means(self) -> dict[int, float]:
        """Position of an item → the mean of its ratings."""
        by_item: dict[int, list[float]] = {}
        for label in self.ratings:
            by_item.setdefault(label.position, []).append(label.value)
        return {position: fmean(values) for position, values in by_item.items()}

    def gold_from_ratings(self) -> None:
        """Make the gold labels the means of the ratings of each item."""
        means, self.gold, self.gold_given = self.means(), {}, False
        for label in self.ratings:
            mean = LabelCell(means[label.position], label.position, label.row, label.column)
            self.gold.setdefault(label.position, mean)

    def change(self, new: abc.Callable[[LabelCell], float | None]) -> None:
        """Give each label a new value, or take it out (None); gold labels that are means of ratings follow."""
        changed = [(label, new(label)) for label in self.labels]
        kept = [label._replace(value=value) for label, value in changed if value is not None]
        n_ratings = sum(value is not None for _, value in changed[: len(self.ratings)])
        self.ratings = kept[:n_ratings]
        if self.gold_given:
            self.gold = {label.position: label for label in kept[n_ratings:]}
        else:
            self.gold_from_ratings()


def read_labels(table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> dict[str, AspectCells]:
    """Aspect → its labels, in column order (long files: order of first appearance)."""
    reader = _Reader(table, mapping, items, log)
    if mapping.layout == "long":
        return reader.read_long()
    for aspect in mapping.aspects:
        reader.cells_of(aspect)
    for aspect, column in mapping.gold_columns.items():
        for number, _, position, cell in reader.filled(column):
            if isinstance(cell, (list, tuple)) or (isinstance(cell, str) and cell.lstrip()[:1] == "["):
                message = f"One number was expected, {shown(cell)} came; name a column of lists ann_{aspect}."
                log.add("error", message, row=number, column=column, kind="label")
            elif (value := reader.number(cell, number, column)) is not None:
                reader.aspects[aspect].gold[position] = LabelCell(value, position, number, column)
    for column, aspect, panel, raters in mapping.rating_columns:
        reader.read_ratings(reader.aspects[aspect], column, panel, raters)
    for aspect, cells in reader.aspects.items():
        if aspect not in mapping.gold_columns:
            cells.gold_from_ratings()
    return reader.aspects


def read_metrics(
    table: Table, mapping: Mapping, items: ItemRows, log: FindingLog
) -> dict[str, tuple[float | None, ...]]:
    """Metric name → one value per item; what is no number is left out with a finding."""
    reader = _Reader(table, mapping, items, log)
    metrics: dict[str, tuple[float | None, ...]] = {}
    for name, column in mapping.metric_columns.items():
        values: list[float | None] = [None] * len(items.items)
        for number, _, position, cell in reader.filled(column):
            try:
                values[position] = reader.read(cell, column)
            except CellError as problem:
                message = f"{capital(str(problem))}; the metric is left out for this item."
                log.add("warning", message, row=number, column=column, kind="metric")
        metrics[name] = tuple(values)
    return metrics


class _Reader:
    def __init__(self, table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> None:
        self.table, self.mapping, self.items, self.log = table, mapping, items, log
        self.long = mapping.layout == "long"
        self.commas: dict[str, bool] = {}
        self.n_labels = 0
        self.aspects: dict[str, AspectCells] = {}

    def cells_of(self, aspect: str) -> AspectCells:
        if aspect not in self.aspects:
            n = len(self.items.items)
            if len(self.aspects) >= MAX_ASPECTS:
                message = f"There are labels of more than {MAX_ASPECTS} aspects: is this the right column?"
                raise GoldenError(message, file=self.table.name, column=self.mapping.roles.get("aspect"))
            self.count(n * (len(self.aspects) + 1))
            self.aspects[aspect] = AspectCells(aspect, n)
        return self.aspects[aspect]

    def filled(self, column: str) -> abc.Iterator[tuple[int, Row, int, Any]]:
        """(number of the row, the row, position of its item, cell) of the cells that are not empty.

        In a wide file a row that repeats an id is left out: it is an error already.
        """
        for (number, row), position in zip(self.table.numbered(), self.items.item_of_row, strict=True):
            cell = row.get(column)
            if cell is not None and cell != "" and (self.long or self.items.row_of_item[position] == number):
                yield number, row, position, cell

    def count(self, n_labels: int) -> None:
        """Raise GoldenError for more labels, or room for them (items times aspects), than a golden set may have."""
        if n_labels > LIMITS.labels:
            message = f"The file holds too many labels: a golden set holds at most {LIMITS.labels:,}. Split it."
            raise GoldenError(message, file=self.table.name)

    def number(self, cell: Any, row: int, column: str) -> float | None:
        """The label in a cell; None, with an error where one came that cannot be read."""
        self.n_labels += 1
        self.count(self.n_labels)
        if is_no_value(cell):
            self.log.once("warning", f"{shown(cell)} counts as no label, first in this row.", row=row, column=column)
            return None
        try:
            value = self.read(cell, column)
        except CellError as problem:
            message = f"{capital(str(problem))}."
            if isinstance(problem, AmbiguousCommaError):
                message += " Write it with a decimal point or without the comma."
            elif self.mapping.kind == "pair" and isinstance(cell, str):
                message = (
                    "A preference is A, B or tie, the name of one of the pair's two systems, or a number; "
                    f"{shown(cell)} came. Leave the cell empty where nobody chose."
                )
            self.log.add("error", message, row=row, column=column, kind="label")
            return None
        if isinstance(cell, str) and "," in cell:
            self.log.once("note", "Decimal commas were read as decimal points.", row=row, column=column)
        return value

    def read(self, cell: Any, column: str) -> float | None:
        """The number in a cell; its comma stands for what the other numbers of its column show."""
        if not isinstance(cell, str) or "," not in cell:
            return read_number(cell)
        if column not in self.commas:
            entries = (entry for row in self.table.rows for entry in read_list(row.get(column)))
            self.commas[column] = has_decimal_commas(entries)
        return read_number(cell, decimal_comma=self.commas[column])

    def read_ratings(self, cells: AspectCells, column: str, panel: str, raters_column: str | None) -> None:
        """Lists of ratings.  A rater named twice in one row counts as two ("W4", "W4 (2)"), so that none is lost."""
        for number, row, position, cell in self.filled(column):
            entries = read_list(cell)
            raters = [] if raters_column is None else [read_id(name) for name in read_list(row.get(raters_column))]
            if raters_column is not None and len(raters) != len(entries):
                message = f"{len(entries)} ratings but {len(raters)} raters; the raters are numbered here instead."
                self.log.add("warning", message, row=number, column=raters_column, kind="raters")
                raters = []
            times: Counter[str] = Counter()
            for slot, (entry, name) in enumerate(zip(entries, raters or [""] * len(entries), strict=True), start=1):
                times[name] += 1
                rater = name or f"{panel or 'r'}{slot}"
                if name and times[name] > 1:
                    message = "A rater is named twice in one row; the later rating counts as another rater's."
                    self.log.once("note", message, row=number, column=raters_column)
                    rater = f"{name} ({times[name]})"
                if (value := self.number(entry, number, column)) is not None:
                    cells.ratings.append(LabelCell(value, position, number, column, rater, panel))

    def read_long(self) -> dict[str, AspectCells]:
        """One row per rating; gold labels are means over the raters.  The aspect is a cell or the column's name."""
        roles = self.mapping.roles
        columns = {column: aspect for aspect, column in self.mapping.gold_columns.items()}
        if {"aspect", "value"} <= roles.keys():
            columns = {roles["value"]: ""}
        spellings: dict[str, str] = {}
        first_rows: dict[tuple[int, str, str], int] = {}
        unnamed: Counter[tuple[int, str]] = Counter()
        for column, name in columns.items():
            for number, row, position, cell in self.filled(column):
                aspect = name
                if not name:
                    written = read_id(row.get(roles["aspect"]))[:200]
                    aspect = spellings.setdefault(aspect_key(written) or written, written)
                    if aspect != written:
                        message = f"{shown(written)} and {shown(aspect)} are read as one aspect."
                        self.log.once("note", message, column=roles["aspect"])
                    if not aspect:
                        message = "The aspect is missing."
                        self.log.add("error", message, row=number, column=roles["aspect"], kind="aspect")
                value = self.number(cell, number, column)
                if not aspect or value is None:
                    continue
                rater = read_id(row.get(roles.get("annotator_id", "")))
                if not rater:  # r1, r2, … in the order of an item's unnamed ratings
                    unnamed[position, aspect] += 1
                    rater = f"r{unnamed[position, aspect]}"
                first = first_rows.setdefault((position, aspect, rater), number)
                if first != number:
                    message = f"{shown(rater)} rated {aspect} of this item in row {first} already; keep one of the two."
                    self.log.add("error", message, row=number, column=column, kind="twice")
                    continue
                self.cells_of(aspect).ratings.append(LabelCell(value, position, number, column, rater))
        for cells in self.aspects.values():
            cells.gold_from_ratings()
            if "annotator_id" not in roles and len(cells.ratings) == len(cells.gold):
                cells.gold_given, cells.ratings = True, []
        return self.aspects


# ── what the numbers mean ────────────────────────────────────────────────────────────────────────────────────

_ONE_IS_BEST = re.compile(
    r"\b1\s*(?:=|:|is|means|→|->|-)?\s*(?:the\s+)?(?:best|excellent|highest|perfect|very good|top|sehr gut)\b"
    r"|\b(?:best|excellent)\s*(?:=|:|is)\s*1\b"
    r"|\b(?!0\b|1\b)\d{1,3}\s*(?:=|:|is|means|→|->|-)?\s*(?:the\s+)?(?:worst|terrible|very bad|very poor|poorest)\b"
    r"|\b(?:lower|low|smaller) (?:is|=|means) (?:better|best|good)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a person has to say of an aspect before the file can be used.

    "missing": are `numbers` labels?  "pairs": which of `numbers` are the first text, the second and a tie?  "best": is
    the lowest label the best?
    """

    kind: Literal["missing", "pairs", "best"]
    aspect: str
    numbers: tuple[float, ...] = ()


def leave_out_missing(aspects: abc.Mapping[str, AspectCells], mapping: Mapping, log: FindingLog) -> None:
    """Take out the labels that a person says are none, in place; a note tells how many."""
    for aspect, cells in aspects.items():
        lost = [label for label in cells.labels if mapping.values.is_missing(label.value, aspect)]
        if lost:
            cells.change(lambda label, lost=set(lost): None if label in lost else label.value)  # type: ignore[misc]
            what = f"{counted(len(lost), 'label')} of {aspect}"
            message = f"{what} left out as missing ({_listed(lost)}), the first here."
            log.add("note", message, row=lost[0].row, column=lost[0].column)


def settle(
    cells: AspectCells,
    confirmed: Scale | None,
    mapping: Mapping,
    worded: abc.Collection[str],
    log: FindingLog,
    *,
    ranks: bool,
) -> tuple[Scale, list[Question]]:
    """The scale of an aspect with labels, and what a person has to say first; labels change in place.

    `worded` are the columns that name the chosen text of a pair in words, which were numbers from 1 to 3 from the
    start.  GoldenError for a confirmed scale that does not run from low to high.
    """
    aspect, values, scale, pairs = cells.aspect, mapping.values, confirmed, mapping.kind == "pair"
    asked: list[Question] = []
    numbers = np.array([label.value for label in cells.labels])
    all_count = values.is_missing(None, aspect)
    if not ranks and not all_count and confirmed is None and (found := strays(numbers)):
        asked.append(Question("missing", aspect, found))
    elif pairs and confirmed is None:
        settled = _settle_preferences(cells, mapping, worded, log)
        scale = settled if isinstance(settled, Scale) else None
        asked += [settled] if isinstance(settled, Question) else []
    if scale is None:
        gold = [label.value for label in cells.gold.values() if cells.gold_given]
        scale = find_scale(gold, [label.value for label in cells.ratings], all_count=all_count)
        short = max(label.value for label in cells.labels) < scale.high  # nobody ever chose the second text
        if pairs and not asked and short and values.pairs is None and scale != PREFERENCES:
            asked.append(_which_is_which(cells, log))
        if not is_usual(scale):
            message = f"The labels of {aspect} fit no usual scale; {scale} is taken from the values. Confirm it."
            log.add("warning", message, column=cells.column)
    elif not scale.low < scale.high:
        raise GoldenError(f"The scale of {aspect!r} must run from low to high, {scale} came.")
    fitted = "" if scale.given else " that the other labels fit"
    right = "correct it" if scale.given else "if it is right, add --values missing=none"
    for label in (*(cells.gold.values() if cells.gold_given else ()), *cells.ratings):
        if not scale.holds(label.value):
            by = f" by {label.rater}" if label.rater else ""
            message = (
                f"{label.value:g}{by} lies outside the scale {scale}{fitted}. If it means no label, add --values "
                f"missing={label.value:g}; {right}."
            )
            log.add("error", message, row=label.row, column=label.column, kind="scale")
    if not ranks and not pairs:
        asked += _settle_best(cells, values.best_of(aspect), scale, log)
    return scale, asked


def _settle_preferences(
    cells: AspectCells, mapping: Mapping, worded: abc.Collection[str], log: FindingLog
) -> Scale | Question | None:
    """Turn codes for a choice between two texts into 1, 2 and 3, in place; or ask which is which.

    Returns the scale of such choices, None for a scale that is to be found, or the question.
    """
    labels, answer = cells.labels, mapping.values.pairs
    numbers = {label.value for label in labels}
    pair = pair_in(mapping.roles.get(role, "") for role in ("target", "context"))
    codes = answer or codes_of(numbers, pair and pair[1])
    if codes == "scale" or any(label.column in worded for label in labels):
        return PREFERENCES if numbers <= {A_BETTER, TIE, B_BETTER} else None
    if codes is None:
        return _which_is_which(cells, log)
    for label in labels:
        if meaning_of(label.value, codes) is None:
            message = f"{label.value:g} is none of the numbers for a choice: {codes_words(codes)}."
            log.add("error", message, row=label.row, column=label.column, kind="choice")
    cells.change(lambda label: meaning_of(label.value, codes) or TIE)
    if answer is None:
        log.add("note", f"Choices of {cells.aspect} are read as {codes_words(codes)}.", column=labels[0].column)
    graded = not {label.value for label in cells.labels} <= {A_BETTER, TIE, B_BETTER}
    return replace(PREFERENCES, step=None) if graded else PREFERENCES


def meaning_of(number: float, codes: Codes) -> float | None:
    """1 (the first text is better), 2 (a tie) or 3 (the second is); None where no code says so.

    What lies between the two codes is as far between 1 and 3, as shares of votes are.  Halfway is a tie next to any
    other code for one.
    """
    first, second, tie = codes
    if number == tie:
        return TIE
    share = (number - first) / (second - first)
    fraction = not number.is_integer() or share in (0.0, 1.0)
    return A_BETTER + share * (B_BETTER - A_BETTER) if 0 <= share <= 1 and fraction else None


def codes_of(numbers: abc.Iterable[float], sides: Sides | None) -> Codes | Literal["scale"] | None:
    """What the different `numbers` of a choice stand for: codes, a scale, or None where that is open.

    On a scale high numbers prefer the second text.  `sides` are the ends of the names of the texts' columns: next to _1
    and _2 the numbers 1 and 2 are the texts, next to _0 and _1 so are 0 and 1.
    """
    given = set(numbers)
    if 1.5 in given and given <= {1, 1.5, 2}:
        return 1.0, 2.0, 1.5
    if sides == ("1", "2"):
        if given <= {0, 1, 1.5, 2} and (2 in given or 0 not in given):
            return 1.0, 2.0, 0.0 if 0 in given else None
        if min(given) >= 1 and max(given) <= 2:  # shares of votes
            return 1.0, 2.0, None
    if sides == ("0", "1") and given <= {0, 0.5, 1}:
        return 0.0, 1.0, 0.5 if 0.5 in given else None
    if given <= {1, 2, 3}:
        own = 3 in given and (sides not in (("1", "2"), ("0", "1")) or given == {1, 3})
        return "scale" if own else None
    few = given - CODES <= {0, 0.5, 1, 1.5, 2} or (len(given) <= 3 and given >= {1, 2} and max(given) > 7)
    return None if given <= {-1, 0, 1} or (few and min(given) != -max(given)) else "scale"


def codes_words(codes: Codes) -> str:
    """``"1 for the first text, 2 for the second, 0 for a tie"``."""
    first, second, tie = codes
    words = f"{first:g} for the first text, {second:g} for the second"
    return words if tie is None else f"{words}, {tie:g} for a tie"


def _which_is_which(cells: AspectCells, log: FindingLog) -> Question:
    numbers = tuple(sorted({label.value for label in cells.labels}))
    first, second = numbers[0], numbers[-1] if len(numbers) > 1 else numbers[0] + 1
    message = (
        f"{cells.aspect} holds the choices {_listed(cells.labels)}. Say which number is the first text, the second and "
        f"a tie, such as --values pairs={first:g}/{second:g}; or --values pairs=scale where high numbers prefer the "
        "second text."
    )
    log.add("error", message, column=cells.labels[0].column)
    return Question("pairs", cells.aspect, numbers)


def _settle_best(cells: AspectCells, best: Best | None, scale: Scale, log: FindingLog) -> list[Question]:
    """Turn an aspect round whose lowest label is the best, in place; or ask where its name says so."""
    column = cells.labels[0].column
    if best == "low":
        cells.change(lambda label: scale.low + scale.high - label.value)
        message = (
            f"The labels of {cells.aspect} are turned round: {scale.low:g} was the best and is {scale.high:g} now. "
            "Higher is better in everything that follows."
        )
        log.add("note", message, column=column)
    elif best is None and any(_ONE_IS_BEST.search(re.sub(r"[_\s]+", " ", name)) for name in (column, cells.aspect)):
        message = (
            f"The name says that low labels of {cells.aspect} are good. Turn them round with --values best=low, or "
            "keep them with --values best=high."
        )
        log.add("error", message, column=column)
        return [Question("best", cells.aspect, (scale.low, scale.high))]
    return []


def sounds_like_ranks(name: str) -> bool:
    """Whether a column or an aspect is called so."""
    return not {"rank", "ranks", "ranking", "ranked"}.isdisjoint(folded(name).split("_"))


def turn_ranks(
    aspects: abc.Mapping[str, AspectCells], mapping: Mapping, rows: ItemRows, log: FindingLog
) -> dict[str, Scale]:
    """Turn the ranks among `aspects` round, in place; aspect → its scale.  Those are `mapping.ranks`, else by name.

    An error is logged for every cell that is no rank among the texts of its source.  AspectError where a person named
    an aspect that there is not.
    """
    if aspects and (unknown := [name for name in mapping.ranks or () if name not in aspects]):
        known = ", ".join(aspects)
        raise AspectError(f"there are no ranks {unknown[0][:100]!r}; columns of labels: {known}. Name one of them.")
    of_source = Counter(item.source_id for item in rows.items)
    sizes = [of_source[item.source_id] for item in rows.items]

    def share(label: LabelCell) -> float | None:
        n = sizes[label.position]
        if not 1 <= label.value <= n:
            why = f"{label.value:g} is no rank: the source has {counted(n, 'text')}, so 1 to {n} was expected."
        elif label.rater and not (2 * label.value).is_integer():  # gold labels may be people's means
            why = f"{label.value:g} is no rank: a whole number was expected, or a half where texts share a place."
        elif n == 1:
            why = "The text is alone in its source, so its rank says nothing; it gets no label."
            log.add("warning", why, row=label.row, column=label.column, kind="alone")
            return None
        else:
            return (n - label.value) / (n - 1)
        log.add("error", why, row=label.row, column=label.column, kind="rank")
        return None

    scales: dict[str, Scale] = {}
    for aspect, cells in aspects.items():
        if not (sounds_like_ranks(aspect) if mapping.ranks is None else aspect in mapping.ranks):
            continue
        if max(sizes, default=0) < 2:
            message = (
                f"{aspect} holds ranks, which compare the texts of one source, and every source here has one text. Say "
                "which column names the source, or that these are no ranks."
            )
            log.add("error", message, column=cells.column)
            continue
        cells.change(share)
        scales[aspect] = Scale(0.0, 1.0, given=True)
        message = (
            f"{aspect} holds ranks, 1 the best of a source: a label is the share of the other texts of its source that "
            "rank below, so that higher is better. Alignment is measured at sample level. --ranks none says otherwise."
        )
        log.add("warning" if mapping.ranks is None else "note", message, column=cells.column)
    return scales


def _listed(labels: abc.Iterable[LabelCell]) -> str:
    first = sorted({label.value for label in labels})
    return ", ".join(f"{number:g}" for number in first[:8]) + (" …" if len(first) > 8 else "")
