"""What a person should know about a golden set: findings on labels, scales and groups, and the facts they rest on."""

from __future__ import annotations

import math
from array import array
from collections import Counter, abc
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.data.cells import aspect_key, folded, shown
from core.data.columns import CHOSEN, LONGEST_ASPECT, Mapping
from core.data.findings import FindingLog, Severity
from core.data.items import ItemRows
from core.data.label_cells import AspectCells, Label
from core.data.pairs import systems_of
from core.records import FloatArray, Item, Scale
from core.texts import is_blank
from core.wording import counted

_ROUNDING = 0.01
_MOST_NAMED = 5
_FEW_UNLABELLED = 0.1
"""Share of items without a label up to which they look like an oversight."""
_REPEATED: dict[str, tuple[Severity, str, str]] = {
    "source": (
        "warning",
        "under another source",
        "A judge may be calibrated on one and measured on the other, which is optimistic. Give both one source_id, or "
        "leave one out.",
    ),
    "both": (
        "warning",
        "of the same source and system",
        "The text counts twice in every figure; leave one out.",
    ),
    "system": ("note", "of another system on the same source", "Each counts for the system that wrote it."),
}
"""By what differs between the two items."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """How the labels of an aspect spread over its groups (items of one source_id).

    `n_groups` hold a label; `n_small` of them fewer than 3 labels (too few for a sample-level coefficient that means
    something), `n_constant` hold 2 or more labels, all equal (left out at sample level); `example` names one.
    """

    n_groups: int
    n_small: int
    n_constant: int
    example: str = ""


def group_facts(labels: FloatArray, items: abc.Sequence[Item]) -> GroupFacts:
    """Group facts from (n_items,) labels, NaN where unlabelled."""
    groups: dict[str, list[float]] = {}
    for item, value in zip(items, labels.tolist(), strict=True):
        if not math.isnan(value):
            groups.setdefault(item.source_id, []).append(value)
    constant = [name for name, values in groups.items() if len(values) > 1 and min(values) == max(values)]
    small = sum(len(values) < 3 for values in groups.values())
    return GroupFacts(len(groups), small, len(constant), constant[0] if constant else "")


def check_mapping(mapping: Mapping, columns: abc.Collection[str], log: FindingLog, *, labels_needed: bool) -> bool:
    """Findings on the `columns` of the file; False when there is nothing to build items from."""
    file_has = f"The file has: {', '.join(mapping.columns)[:500]}."
    for role, column in mapping.roles.items():
        if column not in columns:
            log.add("error", f"The mapping reads {role} from a column that the file does not have.", column=column)
    for note in mapping.notes:
        log.add("note", note)
    for role in mapping.aliased:
        log.add("note", f"Column {mapping.roles[role]!r} is read as {role}.", column=mapping.roles[role])
    for role in mapping.guessed:
        message = f"Column {mapping.roles[role]!r} is taken for {role} by what it holds, not by its name."
        log.add("note", message, column=mapping.roles[role])
    if labels_needed:
        _check_names_of_aspects(mapping, log)
    if mapping.layout == "long":
        for rating in mapping.rating_columns:
            log.add("note", "Lists of ratings are not read where each row is one rating.", column=rating.column)
    if mapping.unused:
        log.add("note", f"Columns that play no part: {', '.join(mapping.unused)[:500]}.")
    if labels_needed and not mapping.aspects and "value" not in mapping.roles:
        way = "Add --map human_NAME=COLUMN."
        log.add("error", f"No column of human labels was found (human_<aspect>). {way} {file_has}")
    if "target" not in mapping.roles:
        way = "Add --map target=COLUMN, or choose it on the Golden set screen."
        if set(map(folded, mapping.columns)) >= CHOSEN:
            way = (
                "For pairs, write chosen and rejected as text_a and text_b in random order, with a column winner. For "
                "single texts, add --map target=COLUMN."
            )
        log.add("error", f"No column was recognised as target, the text that is judged. {way} {file_has}")
        return False
    return True


def _check_names_of_aspects(mapping: Mapping, log: FindingLog) -> None:
    """An error for a name that is too long, and for two that differ in case, spaces or marks alone."""
    first: dict[str, str] = {}
    for aspect in mapping.aspects:
        if len(aspect) > LONGEST_ASPECT:
            message = (
                f"The name of an aspect has {len(aspect)} characters, at most {LONGEST_ASPECT} are allowed. Rename it."
            )
            log.add("error", message, column=mapping.gold_columns.get(aspect))
        known = first.setdefault(aspect_key(aspect) or aspect, aspect)
        if known != aspect:
            message = f"{shown(known)} and {shown(aspect)} are one aspect in two spellings. Rename or remove a column."
            log.add("error", message, column=mapping.gold_columns.get(aspect))


def check_items(rows: ItemRows, mapping: Mapping, log: FindingLog) -> None:
    """Findings on texts and systems: empty targets, empty sources, one system or none."""
    empty = EmptyTexts(mapping, log)
    for item, row in zip(rows.items, rows.row_of_item, strict=True):
        empty.look(item, row)
    empty.tell()
    if mapping.kind == "pair":
        _check_systems_of_pairs(rows, log)
    named = {item.system_id for item in rows.items if item.system_id}
    if len(named) < 2:
        only = "All pairs are of the same two systems" if mapping.kind == "pair" else "Only one system is named"
        why = only if named else "Systems are not named"
        log.add("note", f"{why}: system-level alignment and splits by system are not available.")


def _check_systems_of_pairs(rows: ItemRows, log: FindingLog) -> None:
    """Pairs that cannot tell which of two systems is better, where others can."""
    pairs = [systems_of(item.system_id) for item in rows.items]
    some = any(pairs)
    for place, pair in enumerate(pairs):
        row, named = rows.row_of_item[place], shown(rows.items[place].item_id)
        rest = "It counts for how often a judge agrees, not for how strong a system is"
        if pair is None and some:
            message = f"Pair {named} does not say which two systems wrote it. {rest}; name both."
            log.add("warning", message, row=row, kind="systems of pairs")
        elif pair is not None and pair[0] == pair[1]:
            message = f"Pair {named} is of {shown(pair[0])} with itself. {rest}; correct a name if one is wrong."
            log.add("warning", message, row=row, kind="systems of pairs")


def check_repeated(rows: ItemRows, aspects: abc.Mapping[str, AspectCells], log: FindingLog) -> None:
    """Findings on texts under two ids: how many, which, and what that does to the figures."""
    found: dict[str, list[tuple[int, int]]] = {}
    for again, first in repeated_texts(enumerate(rows.items)):
        one, other = rows.items[again], rows.items[first]
        kind = (
            "source" if one.source_id != other.source_id else "system" if one.system_id != other.system_id else "both"
        )
        found.setdefault(kind, []).append((again, first))
    for kind, (severity, where, effect) in _REPEATED.items():
        if pairs := found.get(kind):
            message = f"{_repeated_words(pairs, rows, where)}. {effect}{_labels_apart(pairs, aspects)}"
            log.add(severity, message, row=rows.row_of_item[pairs[0][0]])


def _repeated_words(pairs: abc.Sequence[tuple[int, int]], rows: ItemRows, where: str) -> str:
    """``"2 items repeat the text of an earlier item under another source: 'x' (row 9) that of 'a' (row 1), …"``."""

    def named(place: int) -> str:
        return f"{shown(rows.items[place].item_id)} (row {rows.row_of_item[place]:,})"

    named_pairs = ", ".join(f"{named(again)} that of {named(first)}" for again, first in pairs[:_MOST_NAMED])
    more = f" and {len(pairs) - _MOST_NAMED:,} more" if len(pairs) > _MOST_NAMED else ""
    n = counted(len(pairs), "item repeats", "items repeat")
    return f"{n} the text of an earlier item {where}, white space and case aside: {named_pairs}{more}"


def _labels_apart(pairs: abc.Sequence[tuple[int, int]], aspects: abc.Mapping[str, AspectCells]) -> str:
    """In how many of the `pairs` people's labels differ, by aspect; "" where they differ in none."""
    differ: dict[str, int] = {}
    for aspect, cells in aspects.items():
        labels = [(cells.gold[again], cells.gold[first]) for again, first in pairs]
        n = sum(one is not None and other is not None and one.value != other.value for one, other in labels)
        if n:
            differ[aspect] = n
    if not differ:
        return ""
    where = ", ".join(f"{aspect} in {n:,}" for aspect, n in differ.items())
    return f" Their labels differ ({where}), and no judge can agree with both, so alignment stays lower than it might."


class EmptyTexts:
    """Items without a target, or without a source where a column holds sources; `tell` when all were looked at."""

    def __init__(self, mapping: Mapping, log: FindingLog) -> None:
        self._target, self._source, self._log = mapping.roles.get("target"), mapping.roles.get("source"), log
        self._n, self._rows = 0, array("Q")

    def look(self, item: Item, row: int) -> None:
        self._n += 1
        if is_blank(item.target):
            self._rows.append(row)
        if self._source is not None and is_blank(item.source):
            self._log.add("warning", "The source is empty.", row=row, column=self._source, kind="empty source")

    def tell(self) -> None:
        if len(self._rows) == self._n:
            self._log.add("error", "Every target is empty: there is nothing to judge.", column=self._target)
            return
        for row in self._rows:
            message = "The target is empty; judges leave such items unscored."
            self._log.add("warning", message, row=row, column=self._target, kind="empty target")


def check_scale(cells: AspectCells, scale: Scale, log: FindingLog) -> None:
    """An error for every gold label or rating outside `scale`, with its row and column."""
    fitted = "" if scale.given else " that the other labels fit"
    for label in (*(cells.gold if cells.gold_given else ()), *cells.ratings):
        if label is not None and not scale.holds(label.value):
            by = f" by {label.rater}" if label.rater else ""
            right = "correct it" if scale.given else "if it is right, add --values missing=none"
            message = (
                f"{label.value:g}{by} lies outside the scale {scale}{fitted}. If it means no label, add --values "
                f"missing={label.value:g}; {right}."
            )
            log.add("error", message, row=label.row, column=label.column, kind="scale")


def check_aspect(
    cells: AspectCells, scale: Scale, rows: ItemRows, log: FindingLog, *, pairs: bool, ranks: bool
) -> None:
    """Findings on one aspect: unusable, constant labels, constant or small groups, gold against ratings."""
    labels = np.array([np.nan if value is None else value for value in cells.values])
    n = int(np.isfinite(labels).sum())
    if n < 2:
        message = f"{cells.aspect} has {n} label(s) and cannot be used; at least 2 are needed."
        log.add("warning", message, column=cells.column)
    elif np.nanmin(labels) == np.nanmax(labels):
        message = f"All {n} labels of {cells.aspect} are {np.nanmin(labels):g}: no alignment can be computed with them."
        log.add("warning", message, column=cells.column)
    else:
        facts, column = group_facts(labels, rows.items), cells.column
        if facts.n_small == facts.n_groups and not ranks:
            message = (
                f"Every group of {cells.aspect} has fewer than 3 labels, too few for sample level; use dataset level."
            )
            log.add("warning", message, column=column)
        elif facts.n_small and not ranks:
            small = f"{facts.n_small} of {facts.n_groups} groups of {cells.aspect}"
            message = f"{small} have fewer than 3 labels, too few for sample level."
            log.add("note", message, column=column)
        if facts.n_constant:
            message = (
                f"{facts.n_constant} of {facts.n_groups} groups of {cells.aspect} are constant (all labels equal, for "
                f"example {facts.example[:80]!r}); sample level leaves them out."
            )
            log.add("warning" if facts.n_constant > facts.n_groups / 2 else "note", message, column=column)
    missing = np.flatnonzero(~np.isfinite(labels))
    if n and 0 < len(missing) <= _FEW_UNLABELLED * len(labels):
        message = f"{counted(len(missing), 'item')} without a label of {cells.aspect} (first here)."
        log.add("note", message, row=rows.row_of_item[missing[0]], column=cells.column)
    if not cells.gold_given:
        return
    apart = _against_choices(cells) if pairs else _against_means(cells, scale)
    if apart:
        expected = "what most of its raters chose" if pairs else "the mean of its ratings"
        where = counted(len(apart), "item")
        message = f"In {where} the label of {cells.aspect} is not {expected} (first here); the label is used as it is."
        log.add("note", message, row=apart[0].row, column=apart[0].column)


def _against_means(cells: AspectCells, scale: Scale) -> list[Label]:
    """Gold labels that differ from the mean of the unnamed panel's ratings (a median would, and is no fault)."""
    tolerance = _ROUNDING * (scale.high - scale.low)
    apart: list[Label] = []
    for position, mean in cells.means(panels=False).items():
        label = cells.gold[position]
        if label is not None and abs(label.value - mean) > tolerance:
            apart.append(label)
    return apart


def _against_choices(cells: AspectCells) -> list[Label]:
    """Labels of pairs that fewer of the unnamed panel chose than another; where several lead, any label will do."""
    votes: dict[int, Counter[float]] = {}
    for rating in cells.ratings:
        if not rating.panel:
            votes.setdefault(rating.position, Counter())[rating.value] += 1
    apart: list[Label] = []
    for position, counts in votes.items():
        label, (first, *others) = cells.gold[position], counts.most_common()
        if label is not None and label.value != first[0] and not any(n == first[1] for _, n in others):
            apart.append(label)
    return apart


# ── texts under two ids ──────────────────────────────────────────────────────────────────────────────────────

SHORTEST_TEXT = 20
"""Characters, source and context included, from which two items of the same texts are taken for one text twice."""


def repeated_texts(items: Iterable[tuple[int, Item | None]]) -> list[tuple[int, int]]:
    """Of `items` with their places: the place of each that repeats an earlier one, and that of the first to say it.

    Alike are target, source and context together.  Items are looked up by a number of 64 bits and what that finds is
    compared, so no second copy of a text is kept; time grows with the length of all texts.
    """
    first: dict[int, list[tuple[int, Item]]] = {}
    pairs: list[tuple[int, int]] = []
    for place, item in items:
        if item is None or len(item.source) + len(item.context) + len(item.target) < SHORTEST_TEXT or not item.target:
            continue
        known = first.setdefault(hash(tuple(map(_number, _texts(item)))), [])
        earlier = next((at for at, other in known if _same(item, other)), None)
        if earlier is None:
            known.append((place, item))
        else:
            pairs.append((place, earlier))
    return pairs


def _texts(item: Item) -> tuple[str, str, str]:
    return item.target, item.source, item.context


def _same(item: Item, other: Item) -> bool:
    return all(map(_alike, _texts(item), _texts(other)))


def _alike(text: str, other: str) -> bool:
    return text == other or _plain(text) == _plain(other)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


@lru_cache(maxsize=1_000)
def _number(text: str) -> int:
    """The same for texts that are alike; items of one source have its text in common."""
    return hash(_plain(text))
