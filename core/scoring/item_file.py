"""Check a whole file of items before scoring: readable rows and unique ids.

Scoring can take hours and cost money, so errors in the file are reported first. The check takes a few per cent of the
time that the offline judge needs.
"""

from __future__ import annotations

import itertools
from collections import Counter, abc
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core.data import Mapping
from core.data.columns import KEPT_VALUES, METRIC, kept_values, mapping_of
from core.data.golden import (
    ITEM_ROLES,
    RowReader,
    check_mapping,
    checked_texts,
    items_and_findings,
    numbered_id,
    repeated_id,
)
from core.data.tables import LIMITS, FileProblem, FindingLog, Severity, TableFile, first_error, has_errors, open_table
from core.files import file_digest
from core.judge_files.documents import kept_columns
from core.judge_files.loaded import LoadedJudge
from core.records import Item, is_blank

OnRows = abc.Callable[[int], None]
"""Called with the number of rows checked so far."""

HEAD_ROWS = 1_000
"""Rows that decide the roles of the columns."""

_TOLD = 5_000
"""Rows between two reports of progress."""


@dataclass(frozen=True)
class ItemFile:
    """A checked file of items.

    Attributes:
        digest: SHA-256 of the file.
        filled: Name of an optional field (source, context, references) → number of items that have it.
        read_after: Called with n; yields the items after the first n, in file order.
    """

    path: Path
    digest: str
    n_items: int
    filled: abc.Mapping[str, int]
    columns: tuple[str, ...]
    read_after: abc.Callable[[int], abc.Iterator[Item]] = field(repr=False)
    findings: tuple[FileProblem, ...] = ()

    def batches(self, size: int, start: int = 0) -> abc.Iterator[tuple[Item, ...]]:
        """Yield the items after the first `start`, in file order, `size` at a time."""
        items = self.read_after(start)
        while batch := tuple(itertools.islice(items, size)):
            yield batch


def stored_columns(judge: LoadedJudge) -> dict[str, str]:
    """Return the text and metric columns that the golden set's file had, as stored in the judge file."""
    kept, roles = kept_columns(judge.card), (*ITEM_ROLES, KEPT_VALUES)
    return {role: column for role, column in kept.items() if role in roles or role.startswith(METRIC)}


def validate_items(
    path: Path,
    on_rows: OnRows = lambda n: None,
    given: abc.Mapping[str, str] = MappingProxyType({}),
    kept: abc.Mapping[str, str] = MappingProxyType({}),
) -> ItemFile:
    """Check every row of `path`. Raises GoldenError with the row and column of the first error.

    `given` and `kept` map roles to columns, as in `load_golden`.
    """
    table = open_table(path, max_mb=None, max_rows=LIMITS.items, paths={*given.values(), *kept.values()})
    digest, first = file_digest(path), table.rows()
    head = list(itertools.islice(first, HEAD_ROWS))
    mapping = replace(mapping_of(first.columns, head, given, kept), values=kept_values(kept))
    if mapping.layout == "wide":
        log, n_items, filled, repeats = FindingLog(), 0, Counter[str](), frozenset[int]()
        if check_mapping(mapping, mapping.columns, log, labels_needed=False):
            rows = table.rows(log=log)
            n_items, filled, repeats = check_rows(((rows.number, row) for row in rows), mapping, log, on_rows)
        if has_errors(findings := log.sorted()):
            raise first_error(findings, path.name)
        read = partial(_read_rows, table, mapping, repeats)
        return ItemFile(path, digest, n_items, filled, mapping.columns, read, (*table.findings, *findings))
    golden, found = items_and_findings(path, given, kept)  # items with several rows are joined in memory
    filled = Counter(part for item in golden.items for part in _filled(item))
    return ItemFile(
        path, digest, len(golden.items), filled, mapping.columns, lambda start: iter(golden.items[start:]), found
    )


def _read_rows(table: TableFile, mapping: Mapping, repeats: abc.Set[int], start: int) -> abc.Iterator[Item]:
    """Yield the items after the first `start`, one per row.

    `repeats` are the rows (from 1) that repeat an earlier id; the judge file says how to treat them.
    """
    reader, rows = RowReader(mapping, FindingLog()), table.rows()  # drop findings: the check has reported them
    wanted = (at for at in enumerate(rows, start=1) if mapping.values.ids == "number" or at[0] not in repeats)
    for place, row in itertools.islice(wanted, start, None):
        item = reader.read(place, rows.number, row)
        yield numbered_id(item, rows.number) if place in repeats else item


_REPEATS = {
    None: "Give each item a unique id.",
    "number": "Concord adds a number to a repeated id, as it did in the golden set.",
    "first": "Of the rows with the same id, Concord uses only the first, as it did in the golden set.",
}


def check_rows(
    rows: abc.Iterable[tuple[int, abc.Mapping[str, Any]]], mapping: Mapping, log: FindingLog, on_rows: OnRows
) -> tuple[int, Counter[str], frozenset[int]]:
    """Check numbered `rows`, and add errors to `log`.

    Returns:
        The number of items.
        How many items have each optional field (source, context, references).
        The numbers (from 1) of rows that repeat an earlier id.
    """
    repeats, ids = set[int](), mapping.values.ids
    reader, filled, n_rows = RowReader(mapping, log), Counter[str](), 0
    row_of: dict[int, int] = {}  # by 64-bit hash: a million ids collide in 1 of 40 million files
    items = ((number, reader.read(place, number, row)) for place, (number, row) in enumerate(rows, start=1))
    for n_rows, (number, item) in enumerate(checked_texts(items, mapping, log), start=1):
        if (before := row_of.setdefault(hash(item.item_id), number)) != number:
            repeats.add(n_rows)
            message = f"{repeated_id(item.item_id, before, number)} {_REPEATS[ids]}"
            severity: Severity = "error" if ids is None else "note"
            if ids == "number" and row_of.setdefault(hash(numbered_id(item, number).item_id), number) != number:
                severity = "error"  # an earlier row already has the numbered id
            log.add(severity, message, row=number, column=mapping.roles.get("item_id"), kind="duplicate")
        if n_rows not in repeats or ids != "first":
            filled.update(_filled(item))
        if n_rows % _TOLD == 0:
            on_rows(n_rows)
    return n_rows - (len(repeats) if ids == "first" else 0), filled, frozenset(repeats)


def _filled(item: Item) -> list[str]:
    texts = {"source": item.source, "context": item.context, "references": "".join(item.references)}
    return [part for part, text in texts.items() if text and not is_blank(text)]
