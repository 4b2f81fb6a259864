"""A first look at a whole file before anything is scored: is every row readable, are ids unique, how many are there?

Scoring may take hours and money, so what is wrong with the file is said before it starts.  The look costs a few
per cent of what the offline judge takes, and memory for 12 bytes a row (ids are remembered by 8-byte hashes).
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, abc
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from core.data import load_items, propose_mapping
from core.data.cells import shown
from core.data.check import check_mapping
from core.data.fields import Mapping
from core.data.findings import FindingLog, first_error, has_errors
from core.data.items import RowReader
from core.errors import GoldenError
from core.records import Finding, Item
from core.scoring.rows import HEAD_ROWS, Row, RowFile, streams

OnRows = abc.Callable[[int], None]
"""Called with the number of rows looked at so far."""

_TEXTS = ("item_id", "target", "source", "context", "references", "source_id", "system_id")
_TOLD = 5_000
_BATCH = 2_000


@dataclass(frozen=True)
class ItemFile:
    """Items of a file, ready to be read as often as wanted: either from `rows` one batch at a time, or from `kept`.

    `digest` is the SHA-256 of the file's bytes; `filled` counts the items that have a source, a context, references.
    """

    path: Path
    digest: str
    n_items: int
    filled: abc.Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    rows: RowFile | None = None
    mapping: Mapping | None = None
    kept: tuple[Item, ...] = field(default=(), repr=False)

    def batches(self, size: int, start: int = 0) -> abc.Iterator[tuple[Item, ...]]:
        """The items after the first `start`, in file order, `size` at a time."""
        items = iter(self.kept[start:]) if self.rows is None else self._read(start)
        while batch := tuple(itertools.islice(items, size)):
            yield batch

    def _read(self, start: int) -> abc.Iterator[Item]:
        assert self.rows is not None and self.mapping is not None
        reader = RowReader(self.mapping, FindingLog())
        for number, row in self.rows.rows(_hear_nothing, start):
            yield reader.read(number, row)


def file_digest(path: Path) -> str:
    """``"sha256:" + 64 hex digits`` of a file's bytes.  GoldenError when it cannot be read."""
    try:
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except FileNotFoundError:
        raise GoldenError("There is no such file.", file=str(path)) from None
    except OSError as problem:
        raise GoldenError(f"The file cannot be opened: {problem.strerror or problem}.", file=str(path)) from problem


def survey(path: Path, on_rows: OnRows | None = None) -> ItemFile:
    """Look at every row of `path`.  GoldenError with row and column for the first thing that forbids its use."""
    if not streams(path):
        return _whole(path)
    digest, rows = file_digest(path), RowFile.open(path)
    try:
        return _surveyed(rows, digest, on_rows)
    except UnicodeDecodeError as problem:
        if not rows.encoding.startswith("utf-8"):
            raise GoldenError(
                f"The text is broken: it began as UTF-16, but {problem.reason}.", file=path.name
            ) from None
    try:
        found = _surveyed(rows.as_windows_text(), digest, on_rows)
    except UnicodeDecodeError:
        raise GoldenError(
            "The text is neither UTF-8 nor Windows-1252. Save the file as UTF-8.", file=path.name
        ) from None
    told = Finding("warning", "The file is not UTF-8; it was read as Windows-1252. Check accented letters.")
    return replace(found, findings=(told, *found.findings))


def check_needs(items: ItemFile, needs: abc.Sequence[str]) -> None:
    """GoldenError when not one item has a part (source, context, references) that the judge needs."""
    lacking = [part for part in needs if not items.filled.get(part)]
    if lacking:
        columns = "" if items.mapping is None else f" The file has: {', '.join(items.mapping.columns)[:500]}."
        raise GoldenError(
            f"The judge rates each item beside its {' and '.join(lacking)}, and no item has one.{columns} Add a column "
            f"{lacking[0]!r}, or name the one that holds it so.",
            file=items.path.name,
        )


def _whole(path: Path) -> ItemFile:
    digest, golden = file_digest(path), load_items(path)
    filled = Counter(part for item in golden.items for part in _filled(item))
    return ItemFile(path, digest, len(golden.items), filled, kept=golden.items)


def _filled(item: Item) -> list[str]:
    found = [part for part, text in (("source", item.source), ("context", item.context)) if text and not text.isspace()]
    return [*found, "references"] if "".join(item.references).strip() else found


def _surveyed(rows: RowFile, digest: str, on_rows: OnRows | None) -> ItemFile:
    head = [row for _, row in itertools.islice(rows.rows(_hear_nothing), HEAD_ROWS)]
    columns = rows.columns(head)
    mapping = propose_mapping(columns, head)
    if mapping.layout == "long":
        return _whole(rows.path)
    look = _Look(rows, mapping, on_rows)
    if late := look.late_columns:  # JSONL: a column may first come in a late row
        rows.check_columns((*columns, *late))
        again = propose_mapping((*columns, *late), head)
        if again.layout == "long":
            return _whole(rows.path)
        if any(again.roles.get(role) != mapping.roles.get(role) for role in _TEXTS):
            look = _Look(rows, again, on_rows)
    findings = look.log.sorted()
    if has_errors(findings):
        raise first_error(findings, rows.path.name)
    return ItemFile(rows.path, digest, look.n_rows, look.filled, findings, rows, look.mapping)


class _Look:
    """One pass over all rows with one mapping."""

    def __init__(self, rows: RowFile, mapping: Mapping, on_rows: OnRows | None) -> None:
        self.mapping, self.log, self.n_rows = mapping, FindingLog(), 0
        self.late_columns: dict[str, None] = {}
        self.filled: Counter[str] = Counter()
        self._known, self._ids, self._waiting = set(mapping.columns), SeenIds(), list[str]()
        self._empty, self._first_empty = 0, list[int]()
        rows.check_columns(mapping.columns)
        if not check_mapping(mapping, mapping.columns, self.log, labels_needed=False):
            return
        reader = RowReader(mapping, self.log)
        for number, row in rows.rows(self.log.keep):
            self._add(reader, number, row)
            if number % _TOLD == 0 and on_rows is not None:
                on_rows(number)
        self._settle()
        if not self.n_rows:
            raise GoldenError("The file holds no data rows.", file=rows.path.name)
        self._on_empty_targets()

    def _add(self, reader: RowReader, number: int, row: Row) -> None:
        self.n_rows = number
        if not row.keys() <= self._known:
            self.late_columns |= dict.fromkeys(row.keys() - self._known)
            self._known |= row.keys()
        item = reader.read(number, row)
        self.filled.update(_filled(item))
        self._waiting.append(item.item_id)
        if len(self._waiting) >= _BATCH:
            self._settle()
        if not item.target.strip():
            self._empty += 1
            self._first_empty += [number] * (len(self._first_empty) < 100)
        if "source" in self.mapping.roles and not item.source.strip():
            column = self.mapping.roles["source"]
            self.log.add("warning", "The source is empty.", row=number, column=column, kind="empty source")

    def _settle(self) -> None:
        for item_id, row, first in self._ids.add(self._waiting):
            message = f"The id {shown(item_id)} stands in row {first} and again in row {row}; ids must differ."
            self.log.add("error", message, row=row, column=self.mapping.roles.get("item_id"), kind="duplicate")
        self._waiting.clear()

    def _on_empty_targets(self) -> None:
        column = self.mapping.roles["target"]
        if self._empty == self.n_rows:
            self.log.add("error", "Every target is empty: there is nothing to judge.", column=column)
            return
        for row in self._first_empty:
            message = "The target is empty; judges leave such items unscored."
            self.log.add("warning", message, row=row, column=column, kind="empty target")
        if rest := self._empty - len(self._first_empty):
            self.log.add("warning", f"{rest:,} further targets are empty.", column=column)


class SeenIds:
    """Which ids have come, in 12 bytes an id: sorted runs of 8-byte hashes beside their rows, merged as they grow.

    Two of a million different ids have the same hash with a probability of 3 in 100 million.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []
        self._n = 0

    def add(self, ids: abc.Sequence[str]) -> list[tuple[str, int, int]]:
        """Enter the ids of the next rows; returns (id, its row, the row of the same id before) of repeated ones."""
        digests = [hashlib.blake2b(one.encode("utf-8", "replace"), digest_size=8).digest() for one in ids]
        hashes = np.frombuffer(b"".join(digests), dtype=np.uint64)
        rows = np.arange(self._n + 1, self._n + 1 + len(ids), dtype=np.uint32)
        self._n += len(ids)
        order = np.argsort(hashes, kind="stable")
        hashes, rows = hashes[order], rows[order]
        again: dict[int, int] = {}
        for k in np.flatnonzero(hashes[1:] == hashes[:-1]) + 1:
            again[int(rows[k])] = int(rows[np.searchsorted(hashes, hashes[k])])
        for known, where in self._runs:
            at = np.minimum(np.searchsorted(known, hashes), known.size - 1)
            for k in np.flatnonzero(known[at] == hashes):
                row, first = int(rows[k]), int(where[at[k]])
                again[row] = min(first, again.get(row, first))
        if len(ids):
            self._enter(hashes, rows)
        start = self._n - len(ids) + 1
        return [(ids[row - start], row, first) for row, first in sorted(again.items())]

    def _enter(self, hashes: np.ndarray, rows: np.ndarray) -> None:
        while self._runs and self._runs[-1][0].size <= hashes.size:
            known, where = self._runs.pop()
            hashes, rows = np.concatenate([known, hashes]), np.concatenate([where, rows])
            order = np.argsort(hashes, kind="stable")
            hashes, rows = hashes[order], rows[order]
        self._runs.append((hashes, rows))


def _hear_nothing(_: Finding) -> None:
    """What the survey told once is no news when the rows are read again."""
