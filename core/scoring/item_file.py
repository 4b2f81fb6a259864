"""A first look at a whole file before anything is scored: is every row readable, are ids unique, how many are there?

Scoring may take hours and money, so what is wrong with the file is said before it starts.  The look costs a few
per cent of what the offline judge takes, and memory for a number a row: the hashes of the ids.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, abc
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core.data import Mapping, load_items
from core.data.columns import METRIC, mapping_of
from core.data.golden import ITEM_ROLES, RowReader, check_mapping, checked_texts, repeated_id
from core.data.tables import LIMITS, FileFinding, FindingLog, TableFile, first_error, has_errors, open_table
from core.errors import GoldenError
from core.judge_files.documents import kept_columns
from core.judge_files.loaded import LoadedJudge
from core.records import Item, is_blank

OnRows = abc.Callable[[int], None]
"""Called with the number of rows looked at so far."""

HEAD_ROWS = 1_000
"""Rows looked at before the columns' roles are settled."""

_TOLD = 5_000
"""Rows between two words on how far the look is."""


@dataclass(frozen=True)
class ItemFile:
    """Items of a file, ready to be read as often as wanted: either from `table` one batch at a time, or from `kept`.

    `digest` is the SHA-256 of the file's bytes; `filled` counts the items that have a source, a context, references.
    """

    path: Path
    digest: str
    n_items: int
    filled: abc.Mapping[str, int]
    findings: tuple[FileFinding, ...] = ()
    table: TableFile | None = None
    mapping: Mapping | None = None
    kept: tuple[Item, ...] = field(default=(), repr=False)

    def batches(self, size: int, start: int = 0) -> abc.Iterator[tuple[Item, ...]]:
        """The items after the first `start`, in file order, `size` at a time."""
        items = iter(self.kept[start:])
        if self.table is not None and self.mapping is not None:
            reader, rows = RowReader(self.mapping, FindingLog()), self.table.rows()  # findings were told before
            later = itertools.islice(enumerate(rows, start=1), start, None)
            items = (reader.read(place, rows.number, row) for place, row in later)
        while batch := tuple(itertools.islice(items, size)):
            yield batch


def require_parts(
    needs: abc.Sequence[str], there: abc.Container[str], columns: abc.Sequence[str], file_name: str
) -> None:
    """GoldenError when no item has a part (source, context, references) that the judge needs."""
    if lacking := [part for part in needs if part not in there]:
        raise GoldenError(
            f"The judge rates each item with its {' and '.join(lacking)}, and no item has one. The file has: "
            f"{', '.join(columns)[:500]}. Add a column {lacking[0]!r}, or name the one that holds it so.",
            file=file_name,
        )


def file_digest(path: Path) -> str:
    """``"sha256:" + 64 hex digits`` of a file's bytes.  OSError when it cannot be read."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def columns_behind(judge: LoadedJudge) -> dict[str, str]:
    """Role → column of texts and metrics, as the judge's file keeps it."""
    kept = kept_columns(judge.card)
    return {role: column for role, column in kept.items() if role in ITEM_ROLES or role.startswith(METRIC)}


def validate_items(
    path: Path,
    on_rows: OnRows = lambda n: None,
    given: abc.Mapping[str, str] = MappingProxyType({}),
    kept: abc.Mapping[str, str] = MappingProxyType({}),
) -> ItemFile:
    """Look at every row of `path`.  GoldenError with row and column for the first thing that forbids its use.

    `given` and `kept`: role → column, as `load_golden` takes them.
    """
    table = open_table(path, max_mb=None, max_rows=LIMITS.items, paths={*given.values(), *kept.values()})
    digest, first = file_digest(path), table.rows()
    head = list(itertools.islice(first, HEAD_ROWS))
    columns, looked = first.columns, None
    while True:  # JSON lines: a column, and with it a role, may first come in a late row
        mapping = mapping_of(columns, head, given, kept)
        if mapping.layout == "long":  # several rows an item: they are joined in memory
            items = load_items(path, mapping=given, kept=kept).items
            return ItemFile(path, digest, len(items), Counter(p for i in items for p in _filled(i)), kept=items)
        roles = {role: mapping.roles.get(role) for role in ITEM_ROLES}
        if roles == looked:
            break
        log, looked, n_items, filled = FindingLog(), roles, 0, Counter[str]()
        if check_mapping(mapping, mapping.columns, log, labels_needed=False):
            rows = table.rows(log=log)
            n_items, filled = look_at(((rows.number, row) for row in rows), mapping, log, on_rows)
            columns = rows.columns
    if has_errors(findings := log.sorted()):
        raise first_error(findings, path.name)
    return ItemFile(path, digest, n_items, filled, (*table.findings, *findings), table, mapping)


def look_at(
    rows: abc.Iterable[tuple[int, abc.Mapping[str, Any]]], mapping: Mapping, log: FindingLog, on_rows: OnRows
) -> tuple[int, Counter[str]]:
    """Look at every one of `rows`, each with its number; what is wrong goes into `log`.

    Returns how many there are, and how many have a source, a context, references.
    """
    reader, filled, n_rows = RowReader(mapping, log), Counter[str](), 0
    row_of: dict[int, int] = {}  # by a hash of 64 bits: of a million ids two have the same in 1 of 40 million files
    items = ((number, reader.read(place, number, row)) for place, (number, row) in enumerate(rows, start=1))
    for n_rows, (number, item) in enumerate(checked_texts(items, mapping, log), start=1):
        filled.update(_filled(item))
        if (before := row_of.setdefault(hash(item.item_id), number)) != number:
            message = f"{repeated_id(item.item_id, before, number)} Give each item an id of its own."
            log.add("error", message, row=number, column=mapping.roles.get("item_id"), kind="duplicate")
        if n_rows % _TOLD == 0:
            on_rows(n_rows)
    return n_rows, filled


def _filled(item: Item) -> list[str]:
    texts = {"source": item.source, "context": item.context, "references": "".join(item.references)}
    return [part for part, text in texts.items() if text and not is_blank(text)]
