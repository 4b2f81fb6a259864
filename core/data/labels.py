"""Read labels from cells, and determine the scale and the missing values of each aspect.

A cell can hold a gold label, an individual rating or a metric; refused cells become findings.
"""

from __future__ import annotations

from collections import Counter, abc
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.data.cells import (
    CellError,
    aspect_key,
    is_no_value,
    read_id,
    read_list,
    read_number,
    shown,
)
from core.data.columns import Mapping, Sides, pair_in
from core.data.reshape import A_BETTER, B_BETTER, PREFERENCES, TIE
from core.data.tables import LIMITS, FindingLog, Row, Table
from core.errors import GoldenError
from core.records import FloatArray, Item, Scale
from core.wording import capital, counted

MAX_ASPECTS = 200
LONGEST_REASON = 5_000
"""Characters read from a reason, as many as a comment on a label may have."""


@dataclass
class ItemRows:
    """Items, and the table rows that contain them.

    Attributes:
        item_of_row: Position of the item in each table row.
        row_of_item: Row number of each item in the file.
        questions: A question for each row that repeats an earlier id.
    """

    items: list[Item] = field(default_factory=list)
    item_of_row: list[int] = field(default_factory=list)
    row_of_item: list[int] = field(default_factory=list)
    given_split: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


class LabelCell(NamedTuple):
    """A number read from a label cell.

    `position` is the position of its item; `row` and `column` locate the cell in the file. `rater` is None for a gold
    label.
    """

    value: float
    position: int
    row: int
    column: str
    rater: str | None = None
    reason: str = ""


@dataclass(slots=True)
class AspectCells:
    """The labels of one aspect, gold labels first.

    `reasons` maps the position of an item to the reasons given for the item, not for a single rating.
    """

    aspect: str
    n_items: int
    labels: list[LabelCell] = field(default_factory=list)
    reasons: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ratings(self) -> list[LabelCell]:
        """The labels from individual raters."""
        return [label for label in self.labels if label.rater is not None]

    @property
    def given(self) -> dict[int, float]:
        """Gold labels by item position; empty if the file has none."""
        return {label.position: label.value for label in self.labels if label.rater is None}

    @property
    def values(self) -> tuple[float | None, ...]:
        """The gold label of each item, or the mean of its ratings if the file has no gold labels; None if missing."""
        gold = self.given
        if not gold:
            by_item: dict[int, list[float]] = {}
            for label in self.ratings:
                by_item.setdefault(label.position, []).append(label.value)
            gold = {position: fmean(values) for position, values in by_item.items()}
        return tuple(gold.get(k) for k in range(self.n_items))

    @property
    def column(self) -> str | None:
        """The column of the first label; None if there are no labels."""
        return self.labels[0].column if self.labels else None

    def change(self, new: abc.Callable[[LabelCell], float | None]) -> None:
        """Replace each label's value with `new(label)`; remove the label if the result is None."""
        changed = ((label, new(label)) for label in self.labels)
        self.labels = [label._replace(value=value) for label, value in changed if value is not None]


Found = abc.Iterator[tuple[str, Any, LabelCell]]
"""Aspect, cell, and its label, still without the value."""


def read_labels(table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> dict[str, AspectCells]:
    """Return the labels of each aspect. Refused cells become findings in `log`.

    Aspects are in the order of their columns. In a long file (one label per row), they are in the order of first
    appearance. Raises GoldenError if there are too many labels or aspects.
    """
    long, n_items = mapping.layout == "long", len(items.items)
    aspects = {} if long else {aspect: AspectCells(aspect, n_items) for aspect in mapping.aspects}
    first_rows: dict[tuple[int, str, str], int] = {}
    unnamed: Counter[tuple[int, str]] = Counter()
    read = _long_cells if long else _wide_cells
    for n_labels, (aspect, cell, label) in enumerate(read(table, mapping, items, log), start=1):
        _check_limits(table, mapping, max(n_labels, n_items * len(aspects)), len(aspects))
        value = _number(cell, label, aspect, log, pairs=mapping.kind == "pair")
        if value is None:
            continue
        rater = label.rater
        if rater == "":  # r1, r2, … in the order of an item's unnamed ratings
            unnamed[label.position, aspect] += 1
            rater = f"r{unnamed[label.position, aspect]}"
        if long and (first := first_rows.setdefault((label.position, aspect, rater or ""), label.row)) != label.row:
            message = f"{shown(rater)} already rated {aspect} for this item in row {first}. Keep one of the ratings."
            log.add("error", message, row=label.row, column=label.column, kind="twice")
            continue
        of_aspect = aspects.setdefault(aspect, AspectCells(aspect, n_items))
        of_aspect.labels.append(label._replace(value=value, rater=rater))
    for cells in aspects.values():
        once_each = len({label.position for label in cells.labels}) == len(cells.labels)
        if not long:
            _read_reasons(cells, table, mapping, items)
        elif once_each and "annotator_id" not in mapping.roles:  # one label per item is its gold label
            cells.reasons = {label.position: (label.reason,) for label in cells.labels if label.reason}
            cells.labels = [label._replace(rater=None) for label in cells.labels]
    return aspects


def _check_limits(table: Table, mapping: Mapping, n_labels: int, n_aspects: int) -> None:
    """Raise GoldenError for too many aspects or labels; `n_labels` is at least the number of items × aspects."""
    if n_aspects > MAX_ASPECTS:
        message = f"The file has labels for more than {MAX_ASPECTS} aspects. Check that you chose the right column."
        raise GoldenError(message, file=table.name, column=mapping.roles.get("aspect"))
    if n_labels > LIMITS.labels:
        message = f"The file has more labels than the limit of {LIMITS.labels:,}. Split the file."
        raise GoldenError(message, file=table.name)


def _number(cell: Any, label: LabelCell, aspect: str, log: FindingLog, *, pairs: bool) -> float | None:
    """Read the label in a cell; None, with a finding, for "no value" or an unreadable cell."""
    row, column = label.row, label.column
    if is_no_value(cell):
        message = f"{shown(cell)} is treated as a missing label."
        log.add("warning", message, row=row, column=column, kind=message)
        return None
    try:
        return read_number(cell)
    except CellError as problem:
        message = f"{capital(str(problem))}."
        if label.rater is None and read_list(cell) != [cell]:
            message = (
                f"Expected one number, got {shown(cell)}. If the column contains lists of ratings, name it "
                f"ann_{aspect}."
            )
        elif pairs and isinstance(cell, str):
            form = "A preference must be A, B, tie, a number, or the name of one of the two systems"
            message = f"{form}; got {shown(cell)}. If there is no preference, leave the cell empty."
        log.add("error", message, row=row, column=column, kind="label")
        return None


def _filled(
    table: Table, items: ItemRows, column: str, *, long: bool = False
) -> abc.Iterator[tuple[int, Row, int, Any]]:
    """Yield row number, row, position of the item, and cell for each cell that is not empty.

    Rows of a wide file that repeat an id are skipped, because they are errors already.
    """
    for (number, row), position in zip(table.numbered(), items.item_of_row, strict=True):
        cell = row.get(column)
        if cell is not None and cell != "" and (long or items.row_of_item[position] == number):
            yield number, row, position, cell


def _wide_cells(table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> Found:
    """Yield gold labels, then lists of ratings.

    A rater named twice in one row counts as two raters ("W4", "W4 (2)"), so that no rating is lost.
    """
    for aspect, column in mapping.gold_columns.items():
        for number, _, position, cell in _filled(table, items, column):
            yield aspect, cell, LabelCell(0.0, position, number, column)
    for column, aspect, panel, raters_column in mapping.rating_columns:
        own = table.joined.get(column, ())
        for number, row, position, cell in _filled(table, items, column):
            entries = read_list(cell)
            raters = [read_id(name) for name in read_list(row.get(raters_column))] if raters_column else []
            if raters_column and len(raters) != len(entries):
                message = f"The row has {len(entries)} ratings but {len(raters)} rater names, so raters are numbered."
                log.add("warning", message, row=number, column=raters_column, kind="raters")
                raters = []
            texts = (read_list(row.get(name)) for name in mapping.reason_columns(aspect))
            reasons = next((each for each in texts if len(each) == len(entries)), [None] * len(entries))
            for slot, (entry, reason) in enumerate(zip(entries, reasons, strict=True), start=1):
                rater = raters[slot - 1] if raters else ""
                times = raters[:slot].count(rater)
                name = f"{rater} ({times})" if rater and times > 1 else rater or f"{panel or 'r'}{slot}"
                place = own[slot - 1] if own else column
                yield aspect, entry, LabelCell(0.0, position, number, place, name, _reason(reason))


def _read_reasons(cells: AspectCells, table: Table, mapping: Mapping, items: ItemRows) -> None:
    """Read the reasons in a wide file that apply to an item and not to a single rating."""
    lists = [column for column, aspect, _, _ in mapping.rating_columns if aspect == cells.aspect]
    for column in mapping.reason_columns(cells.aspect):
        for _, row, position, cell in _filled(table, items, column):
            texts = read_list(cell)
            if all(len(texts) != len(read_list(row.get(name))) for name in lists):
                cells.reasons[position] = (*cells.reasons.get(position, ()), *filter(None, map(_reason, texts)))


def _long_cells(table: Table, mapping: Mapping, items: ItemRows, log: FindingLog) -> Found:
    """Yield one rating per row.  The aspect is in a cell, or is the name of the column."""
    roles, names = mapping.roles, dict(mapping.values.names)
    columns = {column: aspect for aspect, column in mapping.gold_columns.items()}
    if {"aspect", "value"} <= roles.keys():
        columns = {roles["value"]: ""}
    spellings = _spellings(table, roles.get("aspect", ""))
    for column, aspect_of_column in columns.items():
        for number, row, position, cell in _filled(table, items, column, long=True):
            aspect = aspect_of_column
            if not aspect:
                written = read_id(row.get(roles["aspect"]))[:200]
                aspect = spellings.get(aspect_key(written) or written, "")
                if aspect != written:
                    message = f"{shown(written)} and {shown(aspect)} are treated as the same aspect."
                    log.add("note", message, column=roles["aspect"], kind=message)
                aspect = names.get(aspect, aspect)
            if not aspect:
                log.add("error", "The aspect is missing.", row=number, column=roles["aspect"], kind="aspect")
                continue
            said = (_reason(row.get(name)) for name in mapping.reason_columns(aspect))
            rater, reason = read_id(row.get(roles.get("annotator_id", ""))), "\n".join(filter(None, said))
            yield aspect, cell, LabelCell(0.0, position, number, column, rater, reason)


def read_metrics(
    table: Table, mapping: Mapping, items: ItemRows, log: FindingLog
) -> dict[str, tuple[float | None, ...]]:
    """Return one value per item for each metric. Cells that are not numbers are skipped, with a finding."""
    metrics: dict[str, tuple[float | None, ...]] = {}
    for name, column in mapping.metric_columns.items():
        values: list[float | None] = [None] * len(items.items)
        for number, _, position, cell in _filled(table, items, column, long=mapping.layout == "long"):
            try:
                values[position] = read_number(cell)
            except CellError as problem:
                message = f"{capital(str(problem))}. Concord ignores the metric for this item."
                log.add("warning", message, row=number, column=column, kind="metric")
        metrics[name] = tuple(values)
    return metrics


def aspects_in(table: Table, column: str) -> list[str]:
    """List the aspects named in `column` of a long file, each in its first spelling."""
    return list(_spellings(table, column).values())


def _spellings(table: Table, column: str) -> dict[str, str]:
    """Map each normalised aspect in a column to its first spelling."""
    spellings: dict[str, str] = {}
    for row in table.rows:
        if written := read_id(row.get(column))[:200]:
            spellings.setdefault(aspect_key(written) or written, written)
    return spellings


def _reason(cell: Any) -> str:
    return "" if cell is None or is_no_value(cell) else str(cell).strip()[:LONGEST_REASON]


# ── meaning of the numbers ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the user must answer before the file can be used.

    Attributes:
        kind: "ids" asks whether the rows with the same id are different items. "missing" asks whether numbers are
            labels or mean "no label".
        aspect: The aspect in question; for "ids", the repeated id.
        numbers: The numbers in question, only for "missing".
        rows: The row numbers in question.
    """

    kind: Literal["ids", "missing"]
    aspect: str
    numbers: tuple[float, ...] = ()
    rows: tuple[int, ...] = ()


def leave_out_missing(aspects: abc.Mapping[str, AspectCells], mapping: Mapping, log: FindingLog) -> None:
    """Remove, in place, all labels whose value the user declared to mean "missing". Log their number."""
    for aspect, cells in aspects.items():
        lost = [label for label in cells.labels if mapping.values.is_missing(label.value, aspect)]
        if lost:
            cells.change(lambda label, lost=set(lost): None if label in lost else label.value)  # type: ignore[misc]
            what = f"{counted(len(lost), 'label')} of {aspect}"
            message = f"Ignored as missing: {what} ({_listed(lost)})."
            log.add("note", message, row=lost[0].row, column=lost[0].column)


def settle(
    cells: AspectCells,
    confirmed: Scale | None,
    mapping: Mapping,
    worded: abc.Collection[str],
    log: FindingLog,
) -> tuple[Scale, list[Question]]:
    """Determine the scale of an aspect, and the questions that the user must answer. Changes `cells` in place.

    Args:
        cells: Labels of the aspect.
        confirmed: Scale that the user confirmed, or None.
        worded: Columns in which preferences were words, which have been converted to 1, 2 and 3.

    Raises:
        GoldenError: The confirmed scale does not run from low to high.
    """
    aspect, values, scale, pairs = cells.aspect, mapping.values, confirmed, mapping.kind == "pair"
    asked: list[Question] = []
    all_count = values.is_missing(None, aspect)
    numbers = np.array([label.value for label in cells.labels])
    if confirmed is not None and not confirmed.low < confirmed.high:
        raise GoldenError(f"The scale for {aspect!r} must go from low to high; got {confirmed}.")
    if confirmed is None and not all_count and (found := strays(numbers)):
        rows = sorted({label.row for label in cells.labels if label.value in found})
        asked.append(Question("missing", aspect, found, tuple(rows)))
    elif confirmed is None and pairs:
        scale = _settle_preferences(cells, mapping, worded, log)
    if scale is None:
        scale = find_scale([*cells.given.values()], [label.value for label in cells.ratings], all_count=all_count)
        if not is_usual(scale):
            message = (
                f"The labels for {aspect} don't match any of the usual scales. Concord uses the range of the values, "
                f"{scale}."
            )
            log.add("warning", message, column=cells.column)
        if not (asked or all_count or pairs) and (odd := _odd_one_out(cells.labels)):
            message = f"Only one label for {aspect} is {odd.value:g}. Correct this label, or confirm the scale {scale}."
            log.add("warning", message, row=odd.row, column=odd.column)
    fitted = "" if scale.given else " that the other labels use"
    for label in cells.labels:
        if not scale.holds(label.value):
            by = f" by {label.rater}" if label.rater else ""
            number = f"{label.value:g}"
            fix = "Correct the label or the scale."
            if not scale.given:
                fix = (
                    f"If the value means “no label”, add --values missing={number}. If the value is a real label, add "
                    "--values missing=none."
                )
            message = f"{number}{by} is outside the scale {scale}{fitted}. {fix}"
            log.add("error", message, row=label.row, column=label.column, kind="scale")
    if values.best_of(aspect) == "low" and not pairs:
        cells.change(lambda label: scale.low + scale.high - label.value)
        message = (
            f"The labels of {aspect} are reversed so that higher is better: {scale.low:g}, the best label in the file, "
            f"becomes {scale.high:g}."
        )
        log.add("note", message, column=cells.column)
    return scale, asked


def _settle_preferences(
    cells: AspectCells, mapping: Mapping, worded: abc.Collection[str], log: FindingLog
) -> Scale | None:
    """Convert codes for a choice between two texts to 1, 2 and 3, in place.

    Returns the scale of these choices; None for a graded scale, which is still to be found.
    """
    labels = cells.labels
    numbers, column = {label.value for label in labels}, labels[0].column
    pair = pair_in(mapping.roles.get(role, "") for role in ("target", "context"))
    codes = codes_of(numbers, pair and pair[1])
    if codes == "scale" or any(label.column in worded for label in labels):
        return PREFERENCES if numbers <= {A_BETTER, TIE, B_BETTER} else None
    if codes is None:
        message = f"{cells.aspect} contains the choices {_listed(labels)}, but it's unclear what each choice means."
        log.add("error", f"{message} Write A, B or tie; or 1 for A, 3 for B and 2 for a tie.", column=column)
        return None
    first, second, tie = codes
    meanings = {first: A_BETTER, second: B_BETTER, tie: TIE}
    cells.change(lambda label: meanings[label.value])
    words = f"{first:g} means the first text, {second:g} the second text, and {tie:g} a tie"
    log.add("note", f"In {cells.aspect}, {words}.", column=column)
    return PREFERENCES


def codes_of(numbers: abc.Set[float], sides: Sides | None) -> tuple[float, float, float] | Literal["scale"] | None:
    """Determine how `numbers` encode preferences between two texts.

    Args:
        numbers: Distinct numbers in the label column.
        sides: Endings of the names of the two text columns. With _1 and _2, the numbers 1 and 2 stand for the texts.
            With _0 and _1, the numbers 0 and 1 stand for the texts.

    Returns:
        - The codes for the first text, the second text and a tie.
        - "scale" if the numbers form a scale on which high numbers mean that the second text is better.
        - None if the numbers are ambiguous.
    """
    if sides == ("1", "2") and numbers <= {1, 1.5, 2}:
        return 1.0, 2.0, 1.5
    if sides == ("0", "1") and numbers <= {0, 0.5, 1}:
        return 0.0, 1.0, 0.5
    if numbers <= {1, 2, 3}:
        unnumbered = sides not in (("1", "2"), ("0", "1"))
        return "scale" if 3 in numbers and (unnumbered or numbers == {1, 3}) else None
    around_zero = -min(numbers) == max(numbers) > 1
    return "scale" if around_zero or (len(numbers) > 3 and max(numbers) > 3) else None


def _listed(labels: abc.Iterable[LabelCell]) -> str:
    first = sorted({label.value for label in labels})
    return ", ".join(f"{number:g}" for number in first[:8]) + (" …" if len(first) > 8 else "")


# ── scales, and numbers that are not labels ──────────────────────────────────────────────────────────────────────

USUAL = tuple(
    Scale(float(low), float(high))
    for low, high in (
        *((0, 1), (-1, 1), (1, 3), (0, 2), (1, 4), (0, 3), (1, 5), (0, 4), (1, 6), (0, 5), (1, 7)),
        *((-2, 2), (-3, 3), (1, 10), (0, 10), (0, 100)),
    )
)
"""Usual scales in the order of trial: the first that contains all values is proposed."""

MAX_STEPS = 20

CODES = frozenset(
    map(float, "8 9 77 88 97 98 99 777 888 999 7777 8888 9999 -1 -2 -3 -7 -8 -9 -77 -88 -98 -99 -999 -9999".split())
)
"""Usual codes for "no answer"; other numbers off the scale are typing errors."""

_FAR = 2.0
"""A typing error is farther from the other labels than this, half their scale, and twice their widest gap."""
_FAR_CODES = 70
"""Negative codes farther than this from the labels do not continue a scale around 0."""
_SLIPS, _LEAST_NEXT_TO_SLIP = 0.05, 5
_MANY = 20
"""Fewest labels to report a single one off the scale of the others."""
_MANY_OFF = 0.05
"""Largest share of scores off the scale that count as typing errors; with more, the judge has its own scale."""


def find_scale(gold: abc.Sequence[float], ratings: abc.Sequence[float] = (), *, all_count: bool = False) -> Scale:
    """Return the narrowest usual scale that contains the values, with a step of 1, 0.5 or None (continuous).

    The user must confirm the scale: if nobody chose 5 on a scale of 1 to 5, the result is 1 to 4. If no usual scale
    contains the values, the scale is their range, rounded outwards to whole numbers. A scale with more than 20 steps
    counts as continuous.

    Args:
        gold: Gold labels.
        ratings: Individual ratings. If there are any, they determine the step, because gold labels can be means.
        all_count: Include values that `strays` finds. By default, such values are ignored.

    Raises:
        ValueError: There are no values.
    """
    values = np.asarray([*gold, *ratings], dtype=np.float64)
    if not values.size:
        raise ValueError("finding a scale requires at least one value")
    if not all_count:
        values = values[~np.isin(values, strays(values))]
    low, high = values.min(), values.max()
    scale = next((usual for usual in USUAL if usual.low <= low and high <= usual.high), None)
    if scale is None:
        low, high = float(np.floor(low)), float(np.ceil(high))
        scale = Scale(low, high if high > low else low + 1)
    own = np.asarray(ratings if len(ratings) else gold, dtype=np.float64)
    own = own[(own >= scale.low) & (own <= scale.high)]
    for step in (1.0, 0.5):
        if (scale.high - scale.low) / step <= MAX_STEPS and np.array_equal(np.round(own / step), own / step):
            return Scale(scale.low, scale.high, step)
    return scale


def _odd_one_out(labels: abc.Sequence[LabelCell]) -> LabelCell | None:
    """Find a single label just above a scale from 1 to 5 or 1 to 7 that many others use, such as a 6."""
    highest = max(labels, key=lambda label: label.value)
    others = [label.value for label in labels if label is not highest]
    filled = len(others) >= _MANY and min(others) >= 1 and max(others) in (5, 7)
    return highest if filled and highest.value > max(others) else None


def is_usual(scale: Scale) -> bool:
    """Return whether the scale is a usual one, such as 1 to 5."""
    return Scale(scale.low, scale.high) in USUAL


def strays(values: FloatArray) -> tuple[float, ...]:
    """Return the distinct values that don't fit the scale of the other values: typing errors and codes for "no answer".

    - A code, such as 99 or -1, can occur any number of times.
    - A typing error is rare and far from all other labels.
    - A 0 does not fit if the other labels use a scale from 1 to 5, 6 or 7.
    """
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    for usual in USUAL:
        inside = (different >= usual.low) & (different <= usual.high)
        if inside.all():
            break
        width = usual.high - usual.low
        if _are_strays(different[~inside], counts[~inside], different[inside], counts[inside], width):
            return tuple(different[~inside].tolist())
    if different.size <= 4 or different[0] != 0:
        return ()
    second, top = different[1], different[-1]
    if np.array_equal(different, np.round(different)):
        return (0.0,) if second <= 2 and top in (5, 6, 7) else ()
    return (0.0,) if different.size > 7 and second >= 1 and 4 < top <= 5 else ()


def _are_strays(off: FloatArray, n_off: NDArray[Any], on: FloatArray, n_on: NDArray[Any], width: float) -> bool:
    """Return whether the values `off` a scale are codes or typing errors next to those `on` it.

    `n_off` and `n_on` count the occurrences of each value.
    """
    if on.size < 2:
        return False
    widest_gap, away = float(np.diff(on).max()), np.maximum(on.min() - off, off - on.max())
    if off.tolist() == [-1.0] and on[0] == 0 and on[-1] >= 3:
        return True  # no scale runs from -1 to 3
    if set(off.tolist()) <= CODES:
        # 8 and 9 can continue the scale, as can negative numbers on a scale around 0
        around_zero = on.min() <= 0 and on.max() <= 3 if width > 1 else on.size < 4
        apart = np.where(off < 0, (not around_zero) | (away > _FAR_CODES), away > widest_gap)
        return bool((apart & ((on.size > 2) | (away > 10))).all())
    rare = n_off.sum() <= max(2, _SLIPS * n_on.sum()) and n_on.sum() >= _LEAST_NEXT_TO_SLIP
    return bool(rare and on.size > 2 and (away > max(_FAR, width / 2, 2 * widest_gap)).all())


def off_scale(scores: FloatArray, scale: Scale) -> tuple[NDArray[np.bool_], bool]:
    """Find the scores of a judge that are typing errors, or codes for "unread".

    Args:
        scores: Scores (n,), NaN for no score.
        scale: Scale of the labels.

    Returns:
        A mask (n,) of the scores that do not count, and whether the judge has its own scale. The judge has its own
        scale if many other scores lie outside `scale`.
    """
    known = ~np.isnan(scores)
    off = known & ~((scores >= scale.low - 1e-9) & (scores <= scale.high + 1e-9))
    codes = np.isin(scores, [value for value in strays(scores) if value in CODES])
    inside, outside = np.unique(scores[known & ~off]), set(scores[off].tolist())
    # -1 and 0 next to scores above the middle; with 8 and 9 a scale to 10 is possible
    unread = len(outside) <= 2 and outside <= (CODES | {0.0}) - {8.0, 9.0}
    unread = unread and inside.size > 1 and inside[-1] > (scale.low + scale.high) / 2
    if unread or (off & ~codes).sum() <= _MANY_OFF * known.sum():
        return off, False
    return codes, True
