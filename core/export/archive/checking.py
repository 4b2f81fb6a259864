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
from itertools import groupby
from typing import Any, NamedTuple

from core.errors import ArchiveError, UsageError
from core.export.archive.container import Archive, FileEntry
from core.export.archive.shapes import FailedReply, KeptReply, check_rows, checked_golden, parsed
from core.people import ROLES
from core.records import Criteria, JudgeScores, Scale
from core.review import KINDS
from core.review.criteria import Comment, CommentSettled
from core.review.log import IMPORTED, Action, Entry
from core.review.passes import LabelPass
from core.store.layout import LAYOUT, Row, decode
from core.store.schema import metadata

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


class Line(NamedTuple):
    """A row as it stands in the file, what would be stored of it, and where it stands."""

    row: Row
    stored: Row
    where: str


Lines = Iterator[Line]


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
    checker = _Checker(archive, shapes, specs_in)
    for entry in archive.manifest.files:
        checker.check(entry)
    checker.check_all()
    return checker.contents


@cache
def _references(table: str) -> tuple[tuple[str, str], ...]:
    """(column, table whose rows it names) of a table's rows; the project is none of them, for no row carries it."""
    columns = metadata.tables[table].c
    keys = [
        (column.name, key.column.table.name) for column in LAYOUT[table] for key in columns[column.name].foreign_keys
    ]
    return (*keys, ("golden_id", "goldens")) if table == "criteria" else tuple(keys)  # it has no foreign key for it


class _Checker:
    """What was seen so far, and for most tables a method that holds its rows against it; tables come in their order."""

    def __init__(self, archive: Archive, shapes: Shapes, specs_in: SpecsIn) -> None:
        self.contents = Contents()
        self._archive, self._shapes, self._specs_in = archive, shapes, specs_in
        self._where = ""
        self._ids: dict[str, set[str]] = {table: set() for table in _WORDS}
        self._heads: dict[str, Row] = {}
        self._item_ids: dict[str, frozenset[str]] = {}
        self._runs: dict[str, tuple[str, str]] = {}
        self._asked_for: set[str] = set()
        self._named: dict[str, str] = {}
        self._passes: set[tuple[str, str]] = set()
        self._labelled: dict[tuple[str, str], str] = {}
        self._scales: dict[tuple[str, str], Scale] = {}
        self._given: dict[tuple[str, str], tuple[tuple[float, str], tuple[float, str]]] = {}
        self._tables: Mapping[str, Callable[[Lines], None]] = {
            "goldens": self._goldens,
            "golden_items": self._golden_items,
            "project_goldens": self._links,
            "runs": self._requests,
            "run_documents": self._documents,
            "run_scores": self._scores,
            "criteria": self._criteria,
            "judges": self._judges,
            "labels": self._labels,
            "events": self._events,
            "run_replies": self._asked,
            "replies": self._replies,
        }

    def check(self, entry: FileEntry) -> None:
        """Hold every row of a table against all before it."""
        lines = self._lines(entry)
        try:
            if entry.table in self._tables:
                self._tables[entry.table](lines)
            for _ in lines:
                pass
        except (ValueError, RecursionError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise ArchiveError(f"{self._where}: cannot be read ({str(error)[:120]}).") from error

    def _lines(self, entry: FileEntry) -> Lines:
        """The rows of a table, each of the right shape, with an id of its own and referring to what is in the file."""
        table = entry.table
        for first, rows in self._archive.batches(table):
            check_rows(table, rows, entry.name, first)
            for number, row in enumerate(rows, start=first):
                self._where = f"{entry.name}, line {number}"
                self._check_ids(table, row)
                stored = decode(table, row)
                yield Line(row, stored, self._where)
                if table in _ASKING:
                    self._note_judges(stored)

    def _check_ids(self, table: str, row: Row) -> None:
        for column, target in _references(table):
            if row[column] not in self._ids[target]:
                raise _nowhere(self._where, _WORDS[target], row[column])
        if table in _WORDS:
            (key,) = (column.name for column in metadata.tables[table].primary_key if column.name != "project_id")
            if row[key] in self._ids[table]:
                raise ArchiveError(f"{self._where}: the {_WORDS[table]} {row[key][:24]!r} stands there twice.")
            self._ids[table].add(row[key])

    def _note_judges(self, stored: Row) -> None:
        """Note whom the texts of a row would have asked; a backslash may spell any letter of a spec."""
        for text in stored.values():
            if isinstance(text, str) and ("openai:" in text or "recorded:" in text or "\\u" in text):
                self.contents.judges_asked.update(self._specs_in(_parsed(text)))

    def _note_names(self, text: str, where: str) -> None:
        """Keep the runs and golden sets that stored JSON names, for the end."""
        for name in _NAMED.findall(text):
            self._named.setdefault(name, where)

    def check_all(self) -> None:
        """Everything was read: what was named must have come."""
        brought = self._ids["runs"].union(self._ids["goldens"], *self._item_ids.values())
        for name, where in self._named.items():
            if name not in brought:
                raise _nowhere(where, "golden set" if name.startswith("golden:") else "run", name)
        self._check_labels()

    # ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────

    def _goldens(self, lines: Lines) -> None:
        self._heads = {row["golden_id"]: row for row, _, _ in lines}

    def _golden_items(self, lines: Lines) -> None:
        """The items of one golden set are in memory at a time."""
        for golden_id, together in groupby(lines, lambda line: str(line.row["golden_id"])):
            if golden_id in self._item_ids:
                raise ArchiveError(f"{self._where}: the items of {golden_id[:24]} do not stand together.")
            self._add_golden(golden_id, [line.row for line in together])
        for golden_id in list(self._heads):
            self._add_golden(golden_id, [])

    def _add_golden(self, golden_id: str, items: list[Row]) -> None:
        golden = checked_golden(self._heads.pop(golden_id), items)
        self._item_ids[golden_id] = frozenset(golden.item_ids)
        for aspect, labels in golden.aspects.items():
            self._add_scale(golden_id, aspect, labels.scale, f"golden set {golden_id[:24]}")

    def _add_scale(self, golden_id: str, aspect: str, scale: Scale, where: str) -> None:
        """Keep a scale that labels of `aspect` may be on; the widest ends where passes differ."""
        if not scale.low < scale.high:
            raise ArchiveError(f"{where}: the scale of {aspect[:40]!r} runs from {scale.low:g} to {scale.high:g}.")
        earlier = self._scales.get((golden_id, aspect), scale)
        self._scales[golden_id, aspect] = Scale(min(earlier.low, scale.low), max(earlier.high, scale.high))

    def _links(self, lines: Lines) -> None:
        self.contents.goldens = {row["golden_id"]: row["name"] for row, _, _ in lines}

    # ── runs, criteria and judges ────────────────────────────────────────────────────────────────────────────

    def _requests(self, lines: Lines) -> None:
        for row, stored, where in lines:
            run_id, kind = row["run_id"], row["kind"]
            if not _RUN.fullmatch(run_id):
                raise ArchiveError(f"{where}: {run_id[:40]!r} is no id of a run.")
            self._runs[run_id] = (kind, row["golden_id"])
            parsed(self._shapes.get((kind, "request"), dict[str, Any]), row["request"], where, whole="the request")
            if any(named != "" for named in _values_of("project_id", row["request"])):
                raise ArchiveError(
                    f"{where}: the run's request names a project; a project's file names none but itself."
                )
            self._note_names(stored["request"], where)
            self.contents.models.update(_models_in(kind, row["request"]))
        self.contents.run_ids = list(self._runs)

    def _documents(self, lines: Lines) -> None:
        for row, stored, where in lines:
            shape = self._shapes.get((self._runs[row["run_id"]][0], row["name"]), Any)
            parsed(shape, json.loads(stored["body"]), where, whole=row["name"], blob=stored["blob"])
            self._note_names(stored["body"], where)

    def _scores(self, lines: Lines) -> None:
        for row, stored, where in lines:
            n_items = len(self._item_ids[self._runs[row["run_id"]][1]])
            if len(stored["blob"]) not in (8 * n_items, 16 * n_items):  # of pairs: both ways round
                raise ArchiveError(f"{where}: there are {len(stored['blob']) / 8:g} scores for {n_items} items.")

    def _criteria(self, lines: Lines) -> None:
        for row, _, where in lines:
            own = Criteria(row["body"]["text"], row["aspect"]).criteria_id
            if own != row["criteria_id"]:
                raise ArchiveError(f"{where}: the text has the id {own}, not {row['criteria_id'][:40]!r}.")

    def _judges(self, lines: Lines) -> None:
        for row, stored, where in lines:
            n_items = len(self._item_ids[row["golden_id"]])
            judge: JudgeScores = parsed(JudgeScores, row["body"], where, whole="the judge", blob=stored["blob"])
            given = [scores for scores in (judge.values, judge.turned) if scores is not None]
            if any(scores.shape != (n_items,) for scores in given) or any(not 0 <= k < n_items for k in judge.seen):
                raise ArchiveError(f"{where}: its scores, or the items it has seen, are not those of its golden set.")
            if judge.run_id and judge.run_id not in self._runs:
                raise _nowhere(where, "run", judge.run_id)

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────

    def _labels(self, lines: Lines) -> None:
        for row, _, where in lines:
            golden_id, value = row["golden_id"], row["value"]
            if row["item_id"] not in self._item_ids[golden_id]:
                raise _nowhere(where, "item", row["item_id"])
            for pass_id in filter(None, (row["pass_id"], row["taken_from"])):
                self._labelled.setdefault((pass_id, golden_id), where)
            self.contents.people.add(row["rater"])
            if value is not None:
                label = (value, where)
                lowest, highest = self._given.get((golden_id, row["aspect"]), (label, label))
                self._given[golden_id, row["aspect"]] = min(lowest, label), max(highest, label)

    def _events(self, lines: Lines) -> None:
        comments, last = set(), 0
        for row, stored, where in lines:
            if row["role"].removesuffix(IMPORTED) not in ROLES:
                raise ArchiveError(f"{where}: {row['role']!r} is no role; it is one of {', '.join(ROLES)}.")
            if row["number"] <= last:
                raise ArchiveError(f"{where}: entries of the log stand in order of their numbers.")
            last = row["number"]
            entry = _entry(row["kind"], row["body"], where)
            match entry:
                case LabelPass():
                    self._passes.add((row["subject"], entry.golden_id))
                    for labelled in entry.plan.aspects:
                        self._add_scale(entry.golden_id, labelled.aspect, labelled.scale, where)
                case Comment():
                    comments.add(row["number"])
                case CommentSettled() if entry.comment not in comments:
                    raise _nowhere(where, "comment", str(entry.comment))
            if not isinstance(entry, Action):  # nobody follows those up: they may name what is not here
                self._note_names(stored["body"] + json.dumps(row["subject"]), where)
            self.contents.people.add(row["actor"])

    def _check_labels(self) -> None:
        """Every label is of a pass that is there, and on the scale that a pass, or the golden set, gave its aspect."""
        for (pass_id, golden_id), where in self._labelled.items():
            if (pass_id, golden_id) not in self._passes:
                raise _nowhere(where, "labelling pass", pass_id)
        for (golden_id, aspect), ends in self._given.items():
            scale = self._scales.get((golden_id, aspect))
            for value, where in ends:
                if scale is None:
                    raise ArchiveError(f"{where}: nothing in the file says on what scale {aspect[:40]!r} was labelled.")
                if not scale.holds(value):
                    raise ArchiveError(f"{where}: the label of {aspect[:40]!r} is {value:g}; the scale is {scale}.")

    # ── replies ──────────────────────────────────────────────────────────────────────────────────────────────

    def _asked(self, lines: Lines) -> None:
        for row, _, where in lines:
            if row["body"] is None:
                self._asked_for.add(row["reply_key"])
            else:  # it serves nobody else
                parsed(FailedReply if "failure" in row["body"] else KeptReply, row["body"], where, whole="the reply")

    def _replies(self, lines: Lines) -> None:
        if missing := self._asked_for - {row["reply_key"] for row, _, _ in lines}:
            raise ArchiveError(f"Runs name {len(missing):,} replies that are not in the file.")


def _entry(kind: str, body: Mapping[str, Any], where: str) -> Entry:
    """The entry of the log whose body is `body`.  ArchiveError for what the program would not write."""
    record = KINDS.get(kind)
    if record is None:
        raise ArchiveError(f"{where}: {kind!r} is no kind of entry; it is one of {', '.join(KINDS)}.")
    if strange := sorted(set(body) - set(record.body_fields())):
        raise ArchiveError(f"{where}: an entry of kind {kind!r} has {strange[0][:40]}, which such an entry has not.")
    try:
        entry: Entry = parsed(record, body, where, whole=f"an entry of kind {kind!r}")
    except UsageError as error:  # a plan that makes no sense
        raise ArchiveError(f"{where}: {error}") from error
    return entry


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
    """Models by name that a run loads: RepEval's, those of metrics (``kind:MODEL``) and of judge files."""
    if kind == "repeval":
        name, revision = request.get("model", {}).get("name", ""), request.get("model", {}).get("revision")
        return [f"{name}@{revision}" if revision else name] if name else []
    names = request.get("names", ()) if kind == "metrics" else ()
    files = request.get("files", ()) if kind == "metrics" else ()
    return [*(name for name in names if ":" in name), *(file["model"] for file in files if file.get("model"))]


def _nowhere(where: str, what: str, name: str) -> ArchiveError:
    return ArchiveError(
        f"{where}: it refers to the {what} {name[:40]!r}, which is not in the file; a project refers to nothing else."
    )
