"""All rows of a project's file, before anything is made of them: shapes, keys, references, counts.

Each row is held against its type (`core.export.archive.shapes`) and its references (the foreign keys of the store's
schema); what no type can say of a table stands in a method of `_Checker`.  Only what the file itself brings may be
referred to: golden sets and runs are found by id in the whole store, so an id that is not in the file could be somebody
else's there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from core.errors import ArchiveError, UsageError
from core.export.archive.container import Archive
from core.export.archive.shapes import FailedReply, KeptReply, check_rows, checked_golden, mismatch
from core.people import ROLES
from core.records import Criteria, JudgeScores, Scale
from core.review import KINDS
from core.review.criteria import Comment, CommentSettled
from core.review.log import Action, Entry
from core.review.passes import LabelPass
from core.store.codec import Packed, unpack
from core.store.layout import LAYOUT, Row, decode, is_plain
from core.store.schema import metadata
from core.store.transfer import IMPORTED

Shapes = Mapping[tuple[str, str], Any]
"""(kind of run, "request" or name of a document) → the record that it is."""
SpecsIn = Callable[[Any], Iterable[str]]
"""Parsed JSON → the judge specs in it that ask an endpoint or read a file."""
_ASKING = ("runs", "run_documents", "judges", "events")
"""Tables whose rows programs read to find out whom to ask, or that say whom they asked."""
_RUN = re.compile(r"r[0-9a-f]{12}")
_NAMED = re.compile(r'(?<!\\)"(r[0-9a-f]{12}|golden:[0-9a-f]{64})(?::[^"\\]*)?"')
_WORDS = {"goldens": "golden set", "runs": "run", "criteria": "criteria"}
"""Tables that rows refer to, in words."""


class Place(NamedTuple):
    """Where a row stands: the file in the zip, and its line from 1."""

    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.name}, line {self.line}"


@dataclass
class Contents:
    """What a project's file holds: what a person wants to know before it is imported.

    `goldens` maps id → name; `judges_asked` are the specs of judges that occur anywhere in its runs, judges and log;
    `models` the models other than judges that its runs load; `people` the names in its log and labels.  How many rows
    there are, the manifest says.
    """

    goldens: dict[str, str] = field(default_factory=dict)
    run_ids: list[str] = field(default_factory=list)
    judges_asked: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    people: set[str] = field(default_factory=set)


def check_archive(archive: Archive, shapes: Shapes, specs_in: SpecsIn) -> Contents:
    """Read every row of an archive and hold it against all that is known.  ArchiveError for the first that is wrong."""
    checker = _Checker(shapes, specs_in)
    for entry in archive.manifest.files:
        for first, rows in archive.batches(entry.table):
            check_rows(entry.table, rows, entry.name, first)
            for line, row in enumerate(rows, start=first):
                _check(checker, entry.table, row, Place(entry.name, line))
        checker.table_done(entry.table)
    checker.all_done()
    return checker.contents


def _check(checker: _Checker, table: str, row: Row, where: Place) -> None:
    """Hold a row, which has the right columns, against all before it."""
    layout = LAYOUT[table]
    if is_plain(layout):
        checker.check(table, row, row, where)
        return
    try:
        checker.check(table, row, decode(layout, row), where)
    except (ValueError, RecursionError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise ArchiveError(f"{where}: cannot be read ({str(error)[:120]}).") from error


@cache
def _references(table: str) -> tuple[tuple[str, str], ...]:
    """(column, table whose rows it names) of a table's rows; the project is none of them, for no row carries it."""
    columns = metadata.tables[table].c
    keys = [
        (column.name, key.column.table.name)
        for column in LAYOUT[table].columns
        for key in columns[column.name].foreign_keys
    ]
    return (*keys, ("golden_id", "goldens")) if table == "criteria" else tuple(keys)  # it has no foreign key for it


class _Checker:
    """What was seen so far, and for most tables a method that holds a row against it.

    A method gets the row as it stands in the file, what would be stored of it, and where it stands.
    """

    def __init__(self, shapes: Shapes, specs_in: SpecsIn) -> None:
        self.contents = Contents()
        self._specs_in = specs_in
        self._shapes = shapes
        self._ids: dict[str, set[str]] = {table: set() for table in _WORDS}
        self._heads: dict[str, dict[str, Any]] = {}
        self._items: dict[str, list[dict[str, Any]]] = {}
        self._item_ids: dict[str, frozenset[str]] = {}
        self._runs: dict[str, tuple[str, str]] = {}
        self._comments: set[int] = set()
        self._last_event = 0
        self._asked_for: set[str] = set()
        self._replied: set[str] = set()
        self._named: dict[str, Place] = {}
        self._passes: set[tuple[str, str]] = set()
        self._labelled: dict[tuple[str, str], Place] = {}
        self._scales: dict[tuple[str, str], Scale] = {}
        self._given: dict[tuple[str, str], tuple[tuple[float, Place], tuple[float, Place]]] = {}
        self._tables: Mapping[str, Callable[[Row, Row, Place], None]] = {
            "goldens": self._golden,
            "golden_items": self._golden_item,
            "project_goldens": self._link,
            "runs": self._run,
            "run_documents": self._document,
            "run_scores": self._scores,
            "criteria": self._criteria,
            "judges": self._judge,
            "labels": self._label,
            "events": self._event,
            "run_replies": self._asked,
            "replies": self._reply,
        }

    def check(self, table: str, row: Row, stored: Row, where: Place) -> None:
        """Hold a row of `table` against all before it."""
        for column, target in _references(table):
            if row[column] not in self._ids[target]:
                raise _nowhere(where, _WORDS[target], row[column])
        if table in _WORDS:
            (key,) = (one.name for one in metadata.tables[table].primary_key if one.name != "project_id")
            if row[key] in self._ids[table]:
                raise ArchiveError(f"{where}: the {_WORDS[table]} {row[key][:24]!r} stands there twice.")
            self._ids[table].add(row[key])
        if table in self._tables:
            self._tables[table](row, stored, where)
        if table in _ASKING:
            self._asks(stored)

    def table_done(self, table: str) -> None:
        """A whole table was read."""
        if table == "golden_items":
            for golden_id in self._heads:
                self._golden_done(golden_id)

    def all_done(self) -> None:
        """Everything was read: what was named must have come."""
        if missing := self._asked_for - self._replied:
            raise ArchiveError(f"Runs name {len(missing):,} replies that are not in the file.")
        known = self._ids["runs"].union(self._ids["goldens"], *self._item_ids.values())
        for name, where in self._named.items():
            if name not in known:
                raise _nowhere(where, "golden set" if name.startswith("golden:") else "run", name)
        for (pass_id, golden_id), where in self._labelled.items():
            if pass_id and (pass_id, golden_id) not in self._passes:
                raise _nowhere(where, "labelling pass", pass_id)
        self._labels_done()
        self.contents.run_ids = list(self._runs)

    # ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────

    def _golden(self, row: Row, stored: Row, where: Place) -> None:
        self._heads[row["golden_id"]] = dict(row)

    def _golden_item(self, row: Row, stored: Row, where: Place) -> None:
        golden_id = row["golden_id"]
        if golden_id not in self._items:
            for earlier in list(self._items):
                self._golden_done(earlier)
        if golden_id in self._item_ids:
            raise ArchiveError(f"{where}: the items of {golden_id[:24]} do not stand together.")
        self._items.setdefault(golden_id, []).append(dict(row))

    def _golden_done(self, golden_id: str) -> None:
        """One golden set is in memory at a time."""
        if golden_id in self._item_ids:
            return
        golden = checked_golden(self._heads[golden_id], self._items.pop(golden_id, []))
        self._heads[golden_id] = {}
        self._item_ids[golden_id] = frozenset(golden.item_ids)
        for aspect, labels in golden.aspects.items():
            self._scale(golden_id, aspect, labels.scale, Place("tables/goldens.jsonl", len(self._item_ids)))

    def _link(self, row: Row, stored: Row, where: Place) -> None:
        self.contents.goldens[row["golden_id"]] = row["name"]

    # ── runs, criteria and judges ────────────────────────────────────────────────────────────────────────────

    def _run(self, row: Row, stored: Row, where: Place) -> None:
        run_id, kind = row["run_id"], row["kind"]
        if not _RUN.fullmatch(run_id):
            raise ArchiveError(f"{where}: {run_id[:40]!r} is no id of a run.")
        self._runs[run_id] = (kind, row["golden_id"])
        _require(self._shapes.get((kind, "request"), dict[str, Any]), row["request"], where, "the request")
        if any(named != "" for named in _values_of("project_id", row["request"])):
            raise ArchiveError(f"{where}: the run's request names a project; a project's file names none but itself.")
        self._names(stored["request"], where)
        self.contents.models.update(_models_in(kind, json.loads(stored["request"])))

    def _document(self, row: Row, stored: Row, where: Place) -> None:
        kind, _ = self._runs[row["run_id"]]
        shape = self._shapes.get((kind, row["name"]), Any)
        _require(shape, json.loads(stored["body"]), where, row["name"], len(stored["blob"]) // 8)
        self._names(stored["body"], where)

    def _scores(self, row: Row, stored: Row, where: Place) -> None:
        n_items = len(self._item_ids[self._runs[row["run_id"]][1]])
        if len(stored["blob"]) != 8 * n_items:
            raise ArchiveError(f"{where}: there are {len(stored['blob']) / 8:g} scores for {n_items} items.")

    def _criteria(self, row: Row, stored: Row, where: Place) -> None:
        own = Criteria(row["body"]["text"], row["aspect"]).criteria_id
        if own != row["criteria_id"]:
            raise ArchiveError(f"{where}: the text has the id {own}, not {row['criteria_id'][:40]!r}.")

    def _judge(self, row: Row, stored: Row, where: Place) -> None:
        body, n_items = row["body"], len(self._item_ids[row["golden_id"]])
        _require(JudgeScores, body, where, "the judge", len(stored["blob"]) // 8)
        if body["values"]["shape"] != [n_items] or any(not 0 <= k < n_items for k in body.get("seen", ())):
            raise ArchiveError(f"{where}: its scores, or the items it has seen, are not those of its golden set.")
        if body.get("run_id") and body["run_id"] not in self._runs:
            raise _nowhere(where, "run", body["run_id"])

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────

    def _label(self, row: Row, stored: Row, where: Place) -> None:
        if row["item_id"] not in self._item_ids[row["golden_id"]]:
            raise _nowhere(where, "item", row["item_id"])
        for pass_id in (row["pass_id"], row["taken_from"]):
            self._labelled.setdefault((pass_id, row["golden_id"]), where)
        self.contents.people.add(row["rater"])
        if (value := row["value"]) is not None:
            lowest, highest = self._given.get((row["golden_id"], row["aspect"]), ((value, where), (value, where)))
            ends = min(lowest, (value, where)), max(highest, (value, where))
            self._given[row["golden_id"], row["aspect"]] = ends

    def _scale(self, golden_id: str, aspect: str, scale: Scale, where: Place) -> None:
        """Keep a scale that labels of `aspect` may be on; the widest ends where passes differ."""
        if not scale.low < scale.high:
            raise ArchiveError(f"{where}: the scale of {aspect[:40]!r} runs from {scale.low:g} to {scale.high:g}.")
        known = self._scales.get((golden_id, aspect), scale)
        low, high = min(known.low, scale.low), max(known.high, scale.high)
        self._scales[golden_id, aspect] = Scale(low, high)

    def _labels_done(self) -> None:
        """Every label on the scale that a labelling pass, or the golden set, gave its aspect."""
        for (golden_id, aspect), ends in self._given.items():
            scale = self._scales.get((golden_id, aspect))
            for value, where in ends:
                if scale is None:
                    raise ArchiveError(f"{where}: nothing in the file says on what scale {aspect[:40]!r} was labelled.")
                if not scale.holds(value):
                    raise ArchiveError(f"{where}: the label of {aspect[:40]!r} is {value:g}; the scale is {scale}.")

    def _event(self, row: Row, stored: Row, where: Place) -> None:
        if row["role"].removesuffix(IMPORTED) not in ROLES:
            raise ArchiveError(f"{where}: {row['role']!r} is no role; it is one of {', '.join(ROLES)}.")
        if row["number"] <= self._last_event:
            raise ArchiveError(f"{where}: entries of the log stand in order of their numbers.")
        self._last_event = row["number"]
        entry = checked_entry(row["kind"], row["body"], stored["body"], where)
        match entry:
            case LabelPass():
                self._passes.add((row["subject"], entry.golden_id))
                for one in entry.plan.aspects:
                    self._scale(entry.golden_id, one.aspect, one.scale, where)
            case Comment():
                self._comments.add(row["number"])
            case CommentSettled() if entry.comment not in self._comments:
                raise _nowhere(where, "comment", str(entry.comment))
        if not isinstance(entry, Action):  # nobody follows those up: they may name what is not here
            self._names(stored["body"] + json.dumps(row["subject"]), where)
        self.contents.people.add(row["actor"])

    # ── replies, and what texts name ─────────────────────────────────────────────────────────────────────────

    def _asked(self, row: Row, stored: Row, where: Place) -> None:
        if row["body"] is None:
            self._asked_for.add(row["reply_key"])
        else:  # it serves nobody else
            _require(FailedReply if "failure" in row["body"] else KeptReply, row["body"], where, "the reply")

    def _reply(self, row: Row, stored: Row, where: Place) -> None:
        self._replied.add(row["reply_key"])

    def _asks(self, stored: Row) -> None:
        """Note whom the texts of a row would have asked; a backslash may spell any letter of a spec."""
        for text in stored.values():
            if isinstance(text, str) and ("openai:" in text or "recorded:" in text or "\\u" in text):
                self.contents.judges_asked.update(self._specs_in(_parsed(text)))

    def _names(self, text: str, where: Place) -> None:
        """Keep the runs and golden sets that stored JSON names, for the end."""
        for name in _NAMED.findall(text):
            self._named.setdefault(name, where)


def _require(kind: Any, value: Any, where: Place, whole: str, n_floats: int = 0) -> None:
    if problem := mismatch(kind, value, n_floats, whole):
        raise ArchiveError(f"{where}: {problem}")


def _values_of(name: str, value: Any) -> Iterator[Any]:
    """What stands under `name` anywhere in parsed JSON."""
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _values_of(name, inner)


def _parsed(text: str) -> Any:
    """Stored JSON as a value; text that is none as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _models_in(kind: str, request: Mapping[str, Any]) -> Iterable[str]:
    """Models by name that a run loads: RepEval's, and those of metrics (``kind:MODEL``)."""
    if kind == "repeval":
        name, revision = request.get("model", {}).get("name", ""), request.get("model", {}).get("revision")
        return [f"{name}@{revision}" if revision else name] if name else []
    names = request.get("names", ()) if kind == "metrics" else ()
    return [name for name in names if ":" in name]


def _nowhere(where: Place, what: str, name: str) -> ArchiveError:
    return ArchiveError(
        f"{where}: it refers to the {what} {name[:40]!r}, which is not in the file; a project refers to nothing else."
    )


def checked_entry(kind: str, body: Mapping[str, Any], stored: str, where: object) -> Entry:
    """The entry whose body is `body`, and `stored` as text.  ArchiveError for what the program would not write."""
    record = KINDS.get(kind)
    if record is None:
        raise ArchiveError(f"{where}: {kind!r} is no kind of entry; it is one of {', '.join(KINDS)}.")
    if strange := sorted(set(body) - set(record.body_fields())):
        raise ArchiveError(f"{where}: an entry of kind {kind!r} has {strange[0][:40]}, which such an entry has not.")
    if problem := mismatch(record, body, whole=f"an entry of kind {kind!r}"):
        raise ArchiveError(f"{where}: {problem}")
    try:
        return unpack(record, Packed(stored))
    except UsageError as error:  # a plan that makes no sense
        raise ArchiveError(f"{where}: {error}") from error
