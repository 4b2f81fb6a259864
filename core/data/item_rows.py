"""From rows to items: ids, groups, texts, and findings on them; in long files the rows of one item are joined."""

from __future__ import annotations

import re
from array import array
from collections import abc
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from core.data.cells import read_id, reference_texts, shown, source_text, target_text
from core.data.columns import Mapping
from core.data.sources import FindingLog
from core.data.tables import Table
from core.records import Item
from core.texts import is_blank
from core.wording import counted

LONGEST_TEXT = 1_000_000
LONGEST_NAME = 500
KEPT_TEXTS = 1_000
"""Sources kept while reading, so that the items of one source share its text; far apart they are read anew."""
ITEM_ROLES = ("item_id", "target", "source_id", "system_id", "source", "context", "references")
_NO_COLUMN = "\0"
"""No column has this name: readers of files replace the character."""

_MOJIBAKE = re.compile("Ã[\x80-\xbf]|â€[™œ\x9d“”\x80-\xa0]|\ufffd")


@dataclass
class ItemRows:
    """Items with the rows they came from: `item_of_row[i]` is the item of table row i, `row_of_item` its number."""

    items: list[Item] = field(default_factory=list)
    item_of_row: list[int] = field(default_factory=list)
    row_of_item: list[int] = field(default_factory=list)
    given_split: list[str] = field(default_factory=list)


class RowReader:
    """Reads one row after the other into an item; what is wrong with a row goes to `log`.  Holds few texts."""

    def __init__(self, mapping: Mapping, log: FindingLog) -> None:
        self.roles, self.log = mapping.roles, log
        self.columns = [mapping.roles.get(role, _NO_COLUMN) for role in ITEM_ROLES]
        self.long = mapping.layout == "long"
        self.texts: dict[str, str] = {}

    def read(self, place: int, number: int, row: abc.Mapping[str, Any]) -> Item:
        """The item of the data row at `place` (from 1), which messages call `number`, its number in the file.

        Its `source_id` is empty where the row names none.
        """
        item_id, target, source_id, system_id, source, context, references = map(row.get, self.columns)
        texts = () if references is None or references == "" else reference_texts(references)
        for text in texts:
            self._examine(number, "references", text, damaged=False)
        return Item(
            item_id=self._name(number, "item_id", item_id) or self._made_id(place, number),
            target=self._text(number, "target", target),
            source_id=self._name(number, "source_id", source_id),
            system_id=self._name(number, "system_id", system_id),
            source=self._text(number, "source", source),
            context=self._text(number, "context", context),
            references=texts,
        )

    def _name(self, number: int, role: str, cell: Any) -> str:
        name = "" if cell is None else read_id(cell)
        if len(name) > LONGEST_NAME:
            message = (
                f"The {role} has {len(name)} characters; at most {LONGEST_NAME} are allowed: is this the right column?"
            )
            self.log.add("error", message, row=number, column=self.roles[role], kind="name")
        return name[:LONGEST_NAME]

    def _made_id(self, place: int, number: int) -> str:
        column = self.roles.get("item_id")
        if self.long:
            message = "An item id is needed in every row of a long file: it tells which rows belong together."
            self.log.add("error", message, row=number, column=column, kind="id")
        elif column is None:
            self.log.once("note", "There is no item_id column; ids were made from row numbers (row-1, row-2, …).")
        else:
            self.log.add("note", f"The id is missing; row-{place} is used.", row=number, column=column, kind="id")
        return f"row-{place}"

    def _text(self, number: int, role: str, cell: Any) -> str:
        if cell is None or cell == "":
            return ""
        key = cell if role != "target" and isinstance(cell, str) else None
        if key is not None and key in self.texts:
            return self.texts[key]
        text = target_text(cell) if role == "target" else source_text(cell)
        self._examine(number, role, text)
        if key is not None:
            if len(self.texts) >= KEPT_TEXTS:
                self.texts.clear()
            self.texts[key] = text
        return text

    def _examine(self, number: int, role: str, text: str, *, damaged: bool = True) -> None:
        column = self.roles[role]
        if len(text) > LONGEST_TEXT:
            message = f"The text has {len(text)} characters; at most {LONGEST_TEXT} can be used."
            self.log.add("error", message, row=number, column=column, kind="long")
        if damaged and not text.isascii() and (match := _MOJIBAKE.search(text)):
            message = f"Characters look damaged ({shown(text[max(match.start() - 8, 0) : match.end() + 8])}): encoding?"
            self.log.add("warning", message, row=number, column=column, kind="mojibake")


def read_items(table: Table, mapping: Mapping, log: FindingLog) -> ItemRows:
    """The items of a file.  A repeated id is an error in a wide file.

    Missing ids are made from the places of the data rows, from 1, whatever their numbers in the file.
    """
    reader, done, positions = RowReader(mapping, log), ItemRows(), dict[str, int]()
    items, rows, split = done.items, done.row_of_item, mapping.roles.get("split", _NO_COLUMN)
    for place, (number, row) in enumerate(table.numbered(), start=1):
        item = reader.read(place, number, row)
        position = positions.setdefault(item.item_id, len(items))
        done.item_of_row.append(position)
        if position == len(items):
            items.append(item)
            rows.append(number)
            done.given_split.append(read_id(row.get(split)))
        elif not reader.long:
            message = repeated_id(item.item_id, rows[position], number)
            log.add("error", message, row=number, column=mapping.roles.get("item_id"), kind="duplicate")
        else:  # fill what earlier rows of the item left empty
            first = items[position]
            for role in ITEM_ROLES[1:]:
                ours, theirs = getattr(first, role), getattr(item, role)
                if theirs and not ours:
                    items[position] = replace(items[position], **{role: theirs})
                elif theirs != ours and theirs:
                    message = (
                        f"Item {shown(item.item_id)} has another {role} in row {number} than in row {rows[position]}."
                    )
                    log.add("error", message, row=number, column=mapping.roles[role], kind="conflict")
    column = mapping.roles.get("source_id")
    names: dict[tuple[str, str], str] = {}  # equal sources are one group where no column says so
    for position, item in enumerate(items):
        if column is None:
            name = names.setdefault((item.source, item.context), item.item_id) if item.source else item.item_id
            items[position] = replace(item, source_id=name)
        elif not item.source_id:
            items[position] = replace(item, source_id=item.item_id)
            message = "The source_id is missing; the item is a group of its own."
            log.add("warning", message, row=rows[position], column=column, kind="group")
    if column is None:
        n_groups = len({item.source_id for item in items})
        how = f"items with equal sources form the {n_groups} groups."
        if n_groups == len(items):
            how = "each item is a group of its own, so only dataset and system level apply."
        log.once("note", f"There is no source_id column: {how}")
    return done


def repeated_id(item_id: str, first: int, again: int) -> str:
    """What to say of an id in two rows of a file with one row per item."""
    return (
        f"The id {shown(item_id)} stands in row {first} and again in row {again}; ids must differ. "
        "If each row is one person's rating, name the column of raters annotator_id."
    )


# ── findings on texts and systems ────────────────────────────────────────────────────────────────────────────


def check_items(rows: ItemRows, mapping: Mapping, log: FindingLog) -> None:
    """Findings on texts and systems: empty and repeated texts, one system or none."""
    pair = mapping.kind == "pair"
    for _ in checked_texts(zip(rows.row_of_item, rows.items, strict=True), mapping, log):
        pass
    named = {item.system_id for item in rows.items if item.system_id}
    if len(named) < 2:
        only = "All pairs are of the same two systems" if pair else "Only one system is named"
        why = only if named else "Systems are not named"
        log.add("note", f"{why}: system-level alignment and splits by system are not available.")
    found: dict[str, list[tuple[int, int]]] = {}
    for again, first in repeated_texts(enumerate(rows.items)):
        one, other = rows.items[again], rows.items[first]
        if one.source_id != other.source_id:
            found.setdefault("under another source", []).append((again, first))
        elif one.system_id == other.system_id:
            found.setdefault("of the same source and system", []).append((again, first))
    for where, pairs in found.items():
        again, first = pairs[0]
        message = (
            f"{counted(len(pairs), 'item repeats', 'items repeat')} the text of an earlier item {where}, such as "
            f"{shown(rows.items[again].item_id)} that of {shown(rows.items[first].item_id)} "
            f"(row {rows.row_of_item[first]:,}). {_REPEATED[where]}"
        )
        log.add("warning", message, row=rows.row_of_item[again])


_REPEATED = {
    "under another source": (
        "A judge may be calibrated on one and measured on the other, which is optimistic. Give both one source_id, or "
        "leave one out."
    ),
    "of the same source and system": "The text counts twice in every figure; leave one out.",
}


def checked_texts(
    items: abc.Iterable[tuple[int, Item]], mapping: Mapping, log: FindingLog
) -> abc.Iterator[tuple[int, Item]]:
    """The `items` with their rows as they come; findings on empty sources, and at the end on empty targets."""
    target, source = mapping.roles.get("target"), mapping.roles.get("source")
    filled, empty = 0, array("Q")
    for row, item in items:
        if is_blank(item.target):
            empty.append(row)
        else:
            filled += 1
        if source is not None and is_blank(item.source):
            log.add("warning", "The source is empty.", row=row, column=source, kind="empty source")
        yield row, item
    if not filled:
        log.add("error", "Every target is empty: there is nothing to judge.", column=target)
        return
    for row in empty:
        message = "The target is empty; judges leave such items unscored."
        log.add("warning", message, row=row, column=target, kind="empty target")


SHORTEST_TEXT = 20
"""Characters, source and context included, from which two items of the same texts are taken for one text twice."""


def repeated_texts(items: abc.Iterable[tuple[int, Item | None]]) -> list[tuple[int, int]]:
    """Of `items` with their places: the place of each that repeats an earlier one, and that of the first to say it.

    Alike are target, source and context together, white space and case aside.  Only digests of 128 bits are kept, so
    no second copy of a text; time grows with the length of all texts.
    """
    first: dict[tuple[bytes, ...], int] = {}
    pairs: list[tuple[int, int]] = []
    for place, item in items:
        if item is None or len(item.source) + len(item.context) + len(item.target) < SHORTEST_TEXT or not item.target:
            continue
        at = first.setdefault(tuple(map(_digest, (item.target, item.source, item.context))), place)
        if at != place:
            pairs.append((place, at))
    return pairs


@lru_cache(maxsize=1_000)
def _digest(text: str) -> bytes:
    """The same for texts that are alike; items of one source have its text in common."""
    return blake2b(" ".join(text.split()).casefold().encode(), digest_size=16).digest()
