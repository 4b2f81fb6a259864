"""From rows to items: ids, groups, texts; in long files the rows of one item are joined."""

from __future__ import annotations

import re
from collections import abc
from dataclasses import dataclass, field, replace
from typing import Any

from core.data.cells import read_id, shown
from core.data.columns import Mapping
from core.data.findings import FindingLog
from core.data.kinds import reference_texts, source_text, target_text
from core.data.tables import Table
from core.records import Item

LONG_TEXT = 100_000
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
    positions: dict[str, int] = field(default_factory=dict)


def read_items(table: Table, mapping: Mapping, log: FindingLog) -> ItemRows:
    """The items of a file.  A repeated id is an error in a wide file.

    Missing ids are made from the places of the data rows, from 1, whatever their numbers in the file.
    """
    builder = _Builder(mapping, log)
    for place, number, row in table.placed():
        builder.add(place, number, row)
    builder.name_groups()
    return builder.done


def repeated_id(item_id: str, first: int, again: int) -> str:
    """What to say of an id in two rows of a file with one row an item."""
    return (
        f"The id {shown(item_id)} stands in row {first} and again in row {again}; ids must differ. "
        "If each row is one person's rating, name the column of raters annotator_id."
    )


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
        return Item(
            item_id=self.item_id(place, number, item_id),
            target=self.text(number, "target", target),
            source_id=self.name(number, "source_id", source_id),
            system_id=self.name(number, "system_id", system_id),
            source=self.text(number, "source", source),
            context=self.text(number, "context", context),
            references=self.references(number, references),
        )

    def name(self, number: int, role: str, cell: Any) -> str:
        name = "" if cell is None else read_id(cell)
        if len(name) > LONGEST_NAME:
            came = f"The {role} has {len(name)} characters; at most {LONGEST_NAME} are allowed"
            self.log.add(
                "error", f"{came}: is this the right column?", row=number, column=self.roles[role], kind="name"
            )
        return name[:LONGEST_NAME]

    def references(self, number: int, cell: Any) -> tuple[str, ...]:
        if cell is None or cell == "":
            return ()
        texts = reference_texts(cell)
        for text in texts:
            if len(text) > LONG_TEXT:
                self.examine(number, "references", text)
        return texts

    def item_id(self, place: int, number: int, cell: Any) -> str:
        item_id = self.name(number, "item_id", cell)
        if item_id:
            return item_id
        if self.long:
            message = "An item id is needed in every row of a long file: it tells which rows belong together."
            self.log.add("error", message, row=number, column=self.roles.get("item_id"), kind="id")
        elif "item_id" not in self.roles:
            self.log.once("note", "There is no item_id column; ids were made from row numbers (row-1, row-2, …).")
        else:
            message = f"The id is missing; row-{place} is used."
            self.log.add("note", message, row=number, column=self.roles["item_id"], kind="id")
        return f"row-{place}"

    def text(self, number: int, role: str, cell: Any) -> str:
        if cell is None or cell == "":
            return ""
        key = cell if role != "target" and isinstance(cell, str) else None
        if key is not None and key in self.texts:
            return self.texts[key]
        text = target_text(cell) if role == "target" else source_text(cell)
        self.examine(number, role, text)
        if key is not None:
            if len(self.texts) >= KEPT_TEXTS:
                self.texts.clear()
            self.texts[key] = text
        return text

    def examine(self, number: int, role: str, text: str) -> None:
        column = self.roles[role]
        if len(text) > LONGEST_TEXT:
            message = f"The text has {len(text)} characters; at most {LONGEST_TEXT} can be used."
            self.log.add("error", message, row=number, column=column, kind="long")
        elif len(text) > LONG_TEXT:
            message = f"The text has {len(text)} characters; many models cannot read over {LONG_TEXT}."
            self.log.add("warning", message, row=number, column=column, kind="long")
        if not text.isascii() and (match := _MOJIBAKE.search(text)):
            message = f"Characters look damaged ({shown(text[max(match.start() - 8, 0) : match.end() + 8])}): encoding?"
            self.log.add("warning", message, row=number, column=column, kind="mojibake")


class _Builder(RowReader):
    def __init__(self, mapping: Mapping, log: FindingLog) -> None:
        super().__init__(mapping, log)
        self.done = ItemRows()

    def add(self, place: int, number: int, row: abc.Mapping[str, Any]) -> None:
        item, done = self.read(place, number, row), self.done
        position = done.positions.setdefault(item.item_id, len(done.items))
        if position == len(done.items):
            done.items.append(item)
            done.row_of_item.append(number)
            done.given_split.append(read_id(row.get(self.roles.get("split", ""))))
        elif self.long:
            self.join(number, position, item)
        else:
            message = repeated_id(item.item_id, done.row_of_item[position], number)
            self.log.add("error", message, row=number, column=self.roles.get("item_id"), kind="duplicate")
        done.item_of_row.append(position)

    def join(self, number: int, position: int, item: Item) -> None:
        """Fill what earlier rows of the item left empty; two different texts for one id are an error."""
        first = self.done.items[position]
        changes: dict[str, Any] = {}
        for role in ("target", "source", "context", "source_id", "system_id", "references"):
            ours, theirs = getattr(first, role), getattr(item, role)
            if theirs and not ours:
                changes[role] = theirs
            elif theirs and theirs != ours:
                row = self.done.row_of_item[position]
                message = f"Item {shown(item.item_id)} has another {role} in row {number} than in row {row}."
                self.log.add("error", message, row=number, column=self.roles[role], kind="conflict")
        if changes:
            self.done.items[position] = replace(first, **changes)

    def name_groups(self) -> None:
        """Give every item a source_id: equal sources are one group where no column says so."""
        items, column = self.done.items, self.roles.get("source_id")
        names: dict[tuple[str, str], str] = {}
        for position, item in enumerate(items):
            if column is None:
                name = names.setdefault((item.source, item.context), item.item_id) if item.source else item.item_id
                items[position] = replace(item, source_id=name)
            elif not item.source_id:
                items[position] = replace(item, source_id=item.item_id)
                message = "The source_id is missing; the item is a group of its own."
                self.log.add("warning", message, row=self.done.row_of_item[position], column=column, kind="group")
        if column is None:
            n_groups = len({item.source_id for item in items})
            how = (
                "each item is a group of its own, so only dataset and system level apply."
                if n_groups == len(items)
                else f"items with equal sources form the {n_groups} groups."
            )
            self.log.once("note", f"There is no source_id column: {how}")
