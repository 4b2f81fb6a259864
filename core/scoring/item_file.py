"""A first look at a whole file before anything is scored: is every row readable, are ids unique, how many are there?

Scoring may take hours and money, so what is wrong with the file is said before it starts.  The look costs a few
per cent of what the offline judge takes, and memory for 8 bytes a row: the hashes of the ids.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, abc
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from core.data import Mapping, load_items
from core.data.check import check_mapping
from core.data.columns import METRIC, mapping_of
from core.data.item_rows import EmptyTexts, RowReader, repeated_id
from core.data.sources import LIMITS, FileFinding, FindingLog, first_error, has_errors
from core.data.tables import TableFile, open_table
from core.errors import GoldenError
from core.judge_files.judge_reading import kept_columns
from core.judge_files.loaded import LoadedJudge
from core.records import Item
from core.scoring.request import ScoreRequest
from core.texts import is_blank

OnRows = abc.Callable[[int], None]
"""Called with the number of rows looked at so far."""

HEAD_ROWS = 1_000
"""Rows looked at before the columns' roles are settled."""

_TEXTS = ("item_id", "target", "source", "context", "references", "source_id", "system_id")
_TOLD = 5_000
"""Rows between two words on how far the look is."""


@dataclass(frozen=True)
class ItemFile:
    """Items of a file, ready to be read as often as wanted: either from `table` one batch at a time, or from `kept`.

    `digest` is the SHA-256 of the file's bytes; `filled` counts the items that have a source, a context, references.
    `hashes` (n_items,) are those of the ids.
    """

    path: Path
    digest: str
    n_items: int
    filled: abc.Mapping[str, int]
    findings: tuple[FileFinding, ...] = ()
    table: TableFile | None = None
    mapping: Mapping | None = None
    kept: tuple[Item, ...] = field(default=(), repr=False)
    hashes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.uint64), repr=False)

    def batches(self, size: int, start: int = 0) -> abc.Iterator[tuple[Item, ...]]:
        """The items after the first `start`, in file order, `size` at a time."""
        items = iter(self.kept[start:]) if self.table is None else self._read(start)
        while batch := tuple(itertools.islice(items, size)):
            yield batch

    def _read(self, start: int) -> abc.Iterator[Item]:
        assert self.table is not None and self.mapping is not None
        reader = RowReader(self.mapping, FindingLog())  # what the first look told is no news
        for place, row in enumerate(rows := self.table.rows(start), start=start + 1):
            yield reader.read(place, rows.number, row)


def file_digest(path: Path) -> str:
    """``"sha256:" + 64 hex digits`` of a file's bytes.  OSError when it cannot be read."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def items_of(request: ScoreRequest, judge: LoadedJudge, on_rows: OnRows = lambda n: None) -> ItemFile:
    """As `validate_items`, of the items of `request`, with the columns that it names or that the judge's file keeps."""
    return validate_items(request.items, on_rows, request.mapping, columns_behind(judge))


def columns_behind(judge: LoadedJudge) -> dict[str, str]:
    """Role → column of texts and metrics, as the judge's file keeps it."""
    kept = kept_columns(judge.card)
    return {role: column for role, column in kept.items() if role in _TEXTS or role.startswith(METRIC)}


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
    mapping = mapping_of(first.columns, head, given, kept)
    if mapping.layout == "long":
        return _joined(path, digest, given, kept)
    log = FindingLog()
    look, columns = _look_at_table(table, mapping, log, on_rows)
    if columns != mapping.columns:  # JSON lines: a column may first come in a late row
        again = mapping_of(columns, head, given, kept)
        if again.layout == "long":
            return _joined(path, digest, given, kept)
        if any(again.roles.get(role) != mapping.roles.get(role) for role in _TEXTS):
            mapping, log = again, FindingLog()
            look, _ = _look_at_table(table, mapping, log, on_rows)
    findings = log.sorted()
    if has_errors(findings):
        raise first_error(findings, path.name)
    findings = (*table.findings, *findings)
    return ItemFile(path, digest, look.n_rows, look.filled, findings, table, mapping, hashes=look.hashes)


class ItemLook(NamedTuple):
    """What one pass over rows found: how many, those with a source, a context, references, and (n,) hashes of ids."""

    n_rows: int = 0
    filled: abc.Mapping[str, int] = MappingProxyType({})
    hashes: np.ndarray = np.empty(0, dtype=np.uint64)


def look_at(
    rows: abc.Iterable[tuple[int, abc.Mapping[str, Any]]], mapping: Mapping, log: FindingLog, on_rows: OnRows
) -> ItemLook:
    """Look at every one of `rows`, each with its number; what is wrong goes into `log`."""
    reader, empty, ids = RowReader(mapping, log), EmptyTexts(mapping, log), bytearray()
    filled, n_rows = Counter[str](), 0
    for n_rows, (number, row) in enumerate(rows, start=1):
        item = reader.read(n_rows, number, row)
        filled.update(_filled(item))
        empty.look(item, number)
        ids += short_hash(item.item_id)
        if n_rows % _TOLD == 0:
            on_rows(n_rows)
    empty.tell()
    return ItemLook(n_rows, filled, np.frombuffer(ids, dtype=np.uint64))


def _look_at_table(
    table: TableFile, mapping: Mapping, log: FindingLog, on_rows: OnRows
) -> tuple[ItemLook, abc.Sequence[str]]:
    """Look at a file with one mapping; returns its columns too, which may be more at its end than at its head."""
    if not check_mapping(mapping, mapping.columns, log, labels_needed=False):
        return ItemLook(), mapping.columns
    rows = table.rows(log=log)
    look = look_at(((rows.number, row) for row in rows), mapping, log, on_rows)
    _check_ids(table, mapping, look.hashes, log)
    return look, rows.columns


def _check_ids(table: TableFile, mapping: Mapping, hashes: np.ndarray, log: FindingLog) -> None:
    """An error for each row whose id stood in a row before.

    Two of a million different ids have the same hash with a probability of 3 in 100 million.
    """
    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    again = np.flatnonzero(ranked[1:] == ranked[:-1]) + 1
    if not again.size:
        return
    firsts = order[np.searchsorted(ranked, ranked[again])]
    repeated = dict(zip((order[again] + 1).tolist(), (firsts + 1).tolist(), strict=True))
    reader, column = RowReader(mapping, FindingLog()), mapping.roles.get("item_id")
    numbers = dict.fromkeys(repeated.values(), 0)
    for place, cells in enumerate(rows := table.rows(), start=1):
        if place in numbers:
            numbers[place] = rows.number
        if place in repeated:
            item_id = reader.read(place, rows.number, cells).item_id
            message = repeated_id(item_id, numbers[repeated[place]], rows.number)
            log.add("error", message, row=rows.number, column=column, kind="duplicate")


def check_needs(items: ItemFile, needs: abc.Sequence[str]) -> None:
    """GoldenError when not one item has a part (source, context, references) that the judge needs."""
    lacking = [part for part in needs if not items.filled.get(part)]
    if lacking:
        columns = "" if items.mapping is None else f" The file has: {', '.join(items.mapping.columns)[:500]}."
        raise GoldenError(
            f"The judge rates each item with its {' and '.join(lacking)}, and no item has one.{columns} Add a column "
            f"{lacking[0]!r}, or name the one that holds it so.",
            file=items.path.name,
        )


def _joined(path: Path, digest: str, given: abc.Mapping[str, str], kept: abc.Mapping[str, str]) -> ItemFile:
    """Items of several rows each, held in memory."""
    golden = load_items(path, mapping=given, kept=kept)
    filled = Counter(part for item in golden.items for part in _filled(item))
    hashes = np.frombuffer(b"".join(short_hash(item.item_id) for item in golden.items), dtype=np.uint64)
    return ItemFile(path, digest, len(golden.items), filled, kept=golden.items, hashes=hashes)


def short_hash(text: str) -> bytes:
    """Return 8 bytes that tell texts apart: two of a million have the same with a probability of 3 in 100 million."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


def _filled(item: Item) -> list[str]:
    texts = {"source": item.source, "context": item.context, "references": "".join(item.references)}
    return [part for part, text in texts.items() if text and not is_blank(text)]
