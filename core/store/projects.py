"""Projects, their golden sets, criteria and judges.

A golden set is stored once by content digest, and linked to projects under a name.

An item is a row (so that screens page in SQL); labels and metrics are one JSON text, ratings another, by columns.
What comes back equals what went in, float for float, and carries its digest without hashing again.
"""

from __future__ import annotations

import hashlib
import json
import uuid
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, get_args

import numpy as np
import sqlalchemy as sa

from core.errors import ConflictError, NotFoundError, StoreError
from core.project_records import (
    AspectSummary,
    CriteriaAlignment,
    CriteriaEntry,
    GoldenSummary,
    JudgeEntry,
    ProjectSummary,
)
from core.records import (
    Alignment,
    AspectLabels,
    Criteria,
    GoldenSet,
    Item,
    ItemKind,
    JudgeScores,
    Provenance,
    Rating,
    content_digest,
)
from core.store.database import (
    Database,
    Packed,
    StorePart,
    Transaction,
    alignments,
    criteria,
    edits,
    given,
    golden_items,
    goldens,
    judges,
    metadata,
    pack,
    project_goldens,
    projects,
    record_of,
    row_of,
    runs,
    unpack,
)


class Projects(StorePart):
    def add(self, name: str, project_id: str | None = None) -> str:
        """Enter a project; with a `project_id` that exists already nothing changes.  Returns the id."""
        identity = project_id or f"p{uuid.uuid4().hex[:12]}"
        with self._db.write() as transaction:
            transaction.insert_new(projects, {"project_id": identity, "name": name})
        return identity

    def all(self) -> list[ProjectSummary]:
        """Every project, oldest first."""
        rows = self._db.rows(_counted().order_by(projects.c.created_at, projects.c.project_id))
        return [record_of(ProjectSummary, row) for row in rows]

    def get(self, project_id: str) -> ProjectSummary:
        """NotFoundError for an unknown id."""
        row = self._db.row(_counted().where(projects.c.project_id == project_id))
        if row is None:
            raise NotFoundError(f"There is no project {project_id!r}. It may have been made in another CONCORD_HOME.")
        return record_of(ProjectSummary, row)

    def remove(self, project_id: str) -> None:
        """Delete a project with all that belongs to it alone; golden sets stay, other projects may share them."""
        its_runs = sa.select(runs.c.run_id).filter_by(project_id=project_id)
        with self._db.write() as transaction:
            for table in reversed(metadata.sorted_tables):  # each before those that it refers to
                if "project_id" in table.c:
                    transaction.execute(sa.delete(table).filter_by(project_id=project_id))
                elif "run_id" in table.c:
                    transaction.execute(sa.delete(table).where(table.c.run_id.in_(its_runs)))


def _counted() -> sa.Select[Any]:
    """Projects, each with how many golden sets and runs it has."""
    counts = [
        sa.select(sa.func.count()).where(table.c.project_id == projects.c.project_id).scalar_subquery().label(name)
        for table, name in ((project_goldens, "n_goldens"), (runs, "n_runs"))
    ]
    return sa.select(projects, *counts)


# ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GoldenBody:
    """What a golden set holds next to its items and ratings."""

    aspects: dict[str, AspectLabels]
    metrics: dict[str, tuple[float | None, ...]]
    given_split: tuple[str, ...]
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RatingColumns:
    """Ratings by columns; ids, raters and aspects as codes into lists of names, comments by position."""

    item_id: tuple[int, ...]
    item_ids: tuple[str, ...]
    rater_id: tuple[int, ...]
    rater_ids: tuple[str, ...]
    aspect: tuple[int, ...]
    aspects: tuple[str, ...]
    value: tuple[float, ...]
    comment: dict[str, str]


_Aspects = Mapping[str, tuple[AspectSummary, ...]]
_ItemBody = tuple[str, str, str, str, str, str, tuple[str, ...]]
_CACHED = 4  # loaded golden sets per process; one of 1,600 items and 38,000 ratings takes some 15 MB


class Goldens(StorePart):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._load = lru_cache(maxsize=_CACHED)(self._load_anew)

    def add(self, project_id: str, golden: GoldenSet) -> str:
        """Store and link; a second time changes nothing.  Returns the digest, the golden set's id."""
        known = sa.select(goldens.c.golden_id).filter_by(golden_id=golden.digest)
        items = [
            {"golden_id": golden.digest, "position": k, "body": json.dumps(_item_body(item), ensure_ascii=False)}
            for k, item in enumerate(golden.items)
        ]
        link = {"project_id": project_id, "golden_id": golden.digest, "name": golden.name}
        with self._db.write() as transaction:
            if transaction.execute(known).one_or_none() is None:
                transaction.insert_new(goldens, golden_row(golden))
                transaction.insert_new(golden_items, items)
            transaction.insert_new(project_goldens, link)
        return golden.digest

    def all(self, project_id: str) -> list[GoldenSummary]:
        """The project's golden sets, newest first."""
        query = _summary().where(project_goldens.c.project_id == project_id)
        query = query.order_by(project_goldens.c.created_at.desc(), project_goldens.c.golden_id)
        return [_golden(row) for row in self._db.rows(query)]

    def get(self, golden_id: str) -> GoldenSummary:
        """NotFoundError for an unknown id.  The name is the one it was first linked under."""
        query = _summary().where(goldens.c.golden_id == golden_id).order_by(project_goldens.c.created_at)
        row = self._db.row(query.limit(1))
        if row is None:
            raise NotFoundError(f"There is no golden set {golden_id[:24]!r}. It may have been added to another store.")
        return _golden(row)

    def load(self, golden_id: str) -> GoldenSet:
        """The whole golden set, equal to what was added.  NotFoundError for an unknown id.

        Golden sets never change, so the last few loaded are handed out again.
        """
        return self._load(golden_id)

    def _load_anew(self, golden_id: str) -> GoldenSet:
        name = self.get(golden_id).name
        items = sa.select(golden_items.c.body).filter_by(golden_id=golden_id).order_by(golden_items.c.position)
        with self._db.read() as transaction:
            head = transaction.execute(sa.select(goldens).filter_by(golden_id=golden_id)).one()
            bodies = transaction.execute(items).scalars().all()
        body, ratings = unpack(GoldenBody, head.body), _ratings(head.ratings)
        parts: list[list[Any]] = json.loads(f"[{','.join(bodies)}]")
        texts = tuple([Item(i, t, s, y, source, c, tuple(r)) for i, t, s, y, source, c, r in parts])
        golden = GoldenSet(name, head.kind, texts, body.aspects, ratings, body.metrics, body.given_split, body.columns)
        golden.__dict__["digest"] = golden_id  # it is stored under its own hash: no need to compute it again
        return golden

    def verified(self, golden_id: str) -> GoldenSet:
        """The golden set, read anew.  ValueError and the like where the rows are not what their hash says.

        It is shared by everybody who has the same content, so nobody may bring one under another hash.
        """
        golden, row = self._load_anew(golden_id), self._db.row(sa.select(goldens).filter_by(golden_id=golden_id))
        assert row is not None
        golden = replace(golden, name="")  # without the digest that it was handed out with
        unpack(RatingColumns, row.ratings)
        unpack(tuple[_ItemBody, ...], json.dumps([_item_body(item) for item in golden.items]))
        columns = [*golden.metrics.values(), *(labels.values for labels in golden.aspects.values())]
        if {len(golden.items), *map(len, columns)} != {len(set(golden.item_ids))}:
            raise ValueError("two items have the same id, or labels or a metric do not have one value for each item")
        for aspect, labels in golden.aspects.items():
            values = [rating.value for rating in golden.ratings if rating.aspect == aspect]
            if not all(map(labels.scale.holds, [*values, *(value for value in labels.values if value is not None)])):
                raise ValueError(f"a label of {aspect[:40]!r} is not on its scale")
        told = golden_row(golden)
        same = all(told[name] == row._mapping[name] for name in told if name.startswith("n_"))
        if not same or json.loads(told["aspects"]) != json.loads(row.aspects) or golden.kind not in get_args(ItemKind):
            raise ValueError("the columns of a golden set are not those of its content")
        if golden.digest != golden_id:
            raise ValueError("the content of a golden set has another hash")
        return golden


def _summary() -> sa.Select[Any]:
    columns = [c for c in goldens.c if c.name not in ("body", "ratings", "created_at")]
    link = project_goldens.c
    return sa.select(*columns, link.name, link.created_at).join(goldens, goldens.c.golden_id == link.golden_id)


def _golden(row: sa.Row[Any]) -> GoldenSummary:
    return record_of(GoldenSummary, row, aspects=unpack(_Aspects, row.aspects)["rows"])  # type: ignore[type-abstract]


def golden_row(golden: GoldenSet) -> dict[str, Any]:
    """The row of `goldens` for a golden set."""
    aspects = [AspectSummary(aspect, labels.scale, labels.n_labelled) for aspect, labels in golden.aspects.items()]
    body = GoldenBody(dict(golden.aspects), dict(golden.metrics), golden.given_split, dict(golden.columns))
    return row_of(
        goldens,
        golden,
        golden_id=golden.digest,
        n_items=len(golden.items),
        n_ratings=len(golden.ratings),
        aspects=pack({"rows": aspects}).body,
        body=pack(body).body,
        ratings=json.dumps(_rating_columns(golden.ratings)),
    )


def _item_body(i: Item) -> list[Any]:
    return [i.item_id, i.target, i.source_id, i.system_id, i.source, i.context, i.references]


def _rating_columns(ratings: Sequence[Rating]) -> dict[str, Any]:
    """The fields of `RatingColumns`, in their order."""
    columns: dict[str, Any] = {}
    for name in ("item_id", "rater_id", "aspect"):
        codes: dict[str, int] = {}
        columns[name] = [codes.setdefault(getattr(rating, name), len(codes)) for rating in ratings]
        columns[f"{name}s"] = list(codes)
    columns["value"] = [rating.value for rating in ratings]
    columns["comment"] = {str(k): rating.comment for k, rating in enumerate(ratings) if rating.comment}
    return columns


def _ratings(text: str) -> tuple[Rating, ...]:
    columns = json.loads(text)
    names = [[columns[f"{n}s"][code] for code in columns[n]] for n in ("item_id", "rater_id", "aspect")]
    comments = [""] * len(columns["value"])
    for position, comment in columns["comment"].items():
        comments[int(position)] = comment
    return tuple(map(Rating, *names, columns["value"], comments))


# ── criteria ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CriteriaBody:
    """Criteria without their aspect, which is a column."""

    text: str
    provenance: Provenance


class KeptCriteria(StorePart):
    def add(self, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
        """Store criteria; one that is there already keeps its first provenance."""
        with self._db.write() as transaction:
            _insert(transaction, project_id, golden_id, new)

    def record(self, project_id: str, new: Sequence[CriteriaAlignment]) -> None:
        """Store alignments of criteria (stored before) in runs; a repetition overwrites the same."""
        rows = [row_of(alignments, each, project_id=project_id, body=pack(each.alignment).body) for each in new]
        with self._db.write() as transaction:
            transaction.upsert(alignments, rows, keep="created_at")

    def all(
        self, project_id: str, aspect: str | None = None, golden_id: str | None = None, run_id: str | None = None
    ) -> list[CriteriaEntry]:
        """The project's criteria, newest first; of one aspect, golden set or run when asked."""
        query = sa.select(criteria).filter_by(project_id=project_id, **given(aspect=aspect, golden_id=golden_id))
        if run_id is not None:
            scored = sa.select(alignments.c.criteria_id).filter_by(project_id=project_id, run_id=run_id)
            query = query.where(criteria.c.criteria_id.in_(scored))
        with self._db.read() as transaction:
            rows = transaction.rows(query.order_by(criteria.c.created_at.desc(), criteria.c.criteria_id))
            return _entries(transaction, project_id, rows)

    def texts(self, project_id: str, aspect: str) -> list[tuple[Criteria, float]]:
        """The criteria of an aspect, each with the time (seconds since 1970) when it came."""
        rows = self._db.rows(sa.select(criteria).filter_by(project_id=project_id, aspect=aspect))
        return [(_criteria(row), row.created_at) for row in rows]

    def get(self, project_id: str, criteria_id: str) -> CriteriaEntry:
        """NotFoundError for an unknown id."""
        with self._db.read() as transaction:
            return _entry(transaction, project_id, criteria_id)

    def alignments(self, project_id: str, criteria_id: str | None = None) -> list[CriteriaAlignment]:
        """Alignments of one set of criteria, or of all of the project, newest run first."""
        with self._db.read() as transaction:
            return _alignments(transaction, project_id, criteria_id)

    def save_edit(self, project_id: str, parent_id: str, edit: Criteria, expected_head: str | None) -> str:
        """Store `edit` as the newest edit of the parent, also where it was an older one, and return its id.

        With `expected_head` (the newest edit the author had seen, or the parent) ConflictError when somebody else
        saved another edit since; nothing is stored then.  NotFoundError for an unknown parent.
        """
        with self._db.write() as transaction:
            parent = _entry(transaction, project_id, parent_id, lock=True)
            if expected_head is not None and parent.head not in (expected_head, edit.criteria_id):
                theirs = _entry(transaction, project_id, parent.head)
                raise ConflictError(
                    f"{theirs.author or 'Somebody else'} saved another edit of these criteria first. "
                    "Compare the two texts and save yours again, on top of theirs or instead of it.",
                    theirs=theirs.text,
                    yours=edit.text,
                )
            if parent.head != edit.criteria_id:
                _insert(transaction, project_id, parent.golden_id, [edit])
                row = {"project_id": project_id, "parent_id": parent_id, "criteria_id": edit.criteria_id}
                transaction.execute(sa.delete(edits).filter_by(**row))
                transaction.insert_new(edits, row)
        return edit.criteria_id


def _insert(transaction: Transaction, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
    bodies = [pack(CriteriaBody(each.text, each.provenance)).body for each in new]
    where = {"project_id": project_id, "golden_id": golden_id}
    rows = [row_of(criteria, each, body=body, **where) for each, body in zip(new, bodies, strict=True)]
    transaction.insert_new(criteria, rows)


def _criteria(row: sa.Row[Any]) -> Criteria:
    body = unpack(CriteriaBody, row.body)
    return Criteria(body.text, row.aspect, body.provenance)


def _entry(transaction: Transaction, project_id: str, criteria_id: str, *, lock: bool = False) -> CriteriaEntry:
    """`lock` keeps other writers of this row waiting (on SQLite a write transaction holds the whole file anyway)."""
    query = sa.select(criteria).filter_by(project_id=project_id, criteria_id=criteria_id)
    rows = transaction.rows(query.with_for_update() if lock else query)
    if not rows:
        raise NotFoundError(f"There are no criteria {criteria_id!r} in project {project_id!r}.")
    return _entries(transaction, project_id, rows, criteria_id)[0]


def _entries(
    transaction: Transaction, project_id: str, rows: Sequence[sa.Row[Any]], criteria_id: str | None = None
) -> list[CriteriaEntry]:
    """The entries of `rows`, which are those of `criteria_id` alone where it is given."""
    aligned, edited = defaultdict[str, list[CriteriaAlignment]](list), defaultdict[str, list[str]](list)
    for alignment in _alignments(transaction, project_id, criteria_id):
        aligned[alignment.criteria_id].append(alignment)
    query = sa.select(edits).filter_by(project_id=project_id, **given(parent_id=criteria_id))
    for edit in transaction.rows(query.order_by(edits.c.number)):
        edited[edit.parent_id].append(edit.criteria_id)
    return [
        record_of(
            CriteriaEntry,
            row,
            criteria=_criteria(row),
            alignments=tuple(aligned[row.criteria_id]),
            edits=tuple(edited[row.criteria_id]),
        )
        for row in rows
    ]


def _alignments(transaction: Transaction, project_id: str, criteria_id: str | None) -> list[CriteriaAlignment]:
    query = sa.select(alignments).filter_by(project_id=project_id, **given(criteria_id=criteria_id))
    rows = transaction.rows(query.order_by(alignments.c.created_at.desc(), alignments.c.run_id, alignments.c.side))
    return [record_of(CriteriaAlignment, row, alignment=unpack(Alignment, row.body)) for row in rows]


# ── judges ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Judges(StorePart):
    def add(
        self,
        project_id: str,
        golden_id: str,
        judge: JudgeScores,
        replies: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Enter a judge; one with the same scores and kind stays as it is.  Returns its id.

        `replies` maps item id → replies as they came.  StoreError when the scores are not of this golden set's length.
        """
        judge_id, packed = judge_id_of(golden_id, judge), pack(judge)
        with self._db.write() as transaction:
            n_items = transaction.execute(sa.select(goldens.c.n_items).filter_by(golden_id=golden_id)).scalar()
            if n_items != judge.values.size:
                raise StoreError(f"The judge has {judge.values.size} scores and its golden set {n_items} items.")
            row = row_of(
                judges,
                judge,
                project_id=project_id,
                judge_id=judge_id,
                golden_id=golden_id,
                body=packed.body,
                blob=packed.blob,
                replies=zlib.compress(json.dumps(dict(replies)).encode()) if replies else None,
            )
            transaction.insert_new(judges, row)
        return judge_id

    def all(self, project_id: str, golden_id: str | None = None, aspect: str | None = None) -> list[JudgeEntry]:
        """The project's judges (of a golden set, of an aspect), oldest first."""
        query = _judges(project_id).filter_by(**given(golden_id=golden_id, aspect=aspect))
        return [_judge(row) for row in self._db.rows(query.order_by(judges.c.created_at, judges.c.judge_id))]

    def get(self, project_id: str, judge_id: str) -> JudgeEntry:
        """NotFoundError for an unknown id."""
        row = self._db.row(_judges(project_id).filter_by(judge_id=judge_id))
        if row is None:
            raise _unknown(judge_id)
        return _judge(row)

    def replies(self, project_id: str, judge_id: str) -> dict[str, tuple[str, ...]]:
        """Item id → replies as they came; empty for a judge that brought none.  NotFoundError for an unknown id."""
        row = self._db.row(sa.select(judges.c.replies).filter_by(project_id=project_id, judge_id=judge_id))
        if row is None:
            raise _unknown(judge_id)
        replies = {} if row.replies is None else json.loads(zlib.decompress(row.replies))
        return {item_id: tuple(texts) for item_id, texts in replies.items()}

    def remove(self, project_id: str, judge_id: str) -> None:
        """Remove a judge; nothing happens when it is gone already."""
        with self._db.write() as transaction:
            transaction.execute(sa.delete(judges).filter_by(project_id=project_id, judge_id=judge_id))


def judge_id_of(golden_id: str, judge: JudgeScores) -> str:
    """``"j" + 12 hex digits`` of what the judge gave; its name is left out, for a file is one judge."""
    scores = hashlib.sha256(np.ascontiguousarray(judge.values, dtype="<f8").tobytes()).hexdigest()
    body = [golden_id, judge.aspect, judge.kind, judge.run_id, judge.note, scores, list(judge.seen)]
    return "j" + content_digest("judge", body).split(":")[1][:12]


def _judges(project_id: str) -> sa.Select[Any]:
    return sa.select(*(column for column in judges.c if column.name != "replies")).filter_by(project_id=project_id)


def _judge(row: sa.Row[Any]) -> JudgeEntry:
    judge = replace(unpack(JudgeScores, Packed(row.body, row.blob)), name=row.name)
    return record_of(JudgeEntry, row, judge=judge)


def _unknown(judge_id: str) -> NotFoundError:
    return NotFoundError(f"There is no judge {judge_id[:24]!r} in this project. It may have been removed.")
