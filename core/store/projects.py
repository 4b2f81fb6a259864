"""Store projects, their golden sets, criteria and judges.

A golden set is stored once under its content digest, and linked to projects under a name. A loaded golden set equals
the stored one exactly, with the same digest.
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
from itertools import starmap
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
        """Add a project and return its id; if a project with `project_id` exists, nothing changes."""
        identity = project_id or f"p{uuid.uuid4().hex[:12]}"
        with self._db.write() as transaction:
            transaction.insert_new(projects, {"project_id": identity, "name": name})
        return identity

    def all(self) -> list[ProjectSummary]:
        """Return every project, oldest first."""
        rows = self._db.rows(_counted().order_by(projects.c.created_at, projects.c.project_id))
        return [record_of(ProjectSummary, row) for row in rows]

    def get(self, project_id: str) -> ProjectSummary:
        """Return a project.  Raises NotFoundError for an unknown id."""
        row = self._db.row(_counted().where(projects.c.project_id == project_id))
        if row is None:
            raise NotFoundError(f"Project {project_id!r} not found. The project may be in another CONCORD_HOME.")
        return record_of(ProjectSummary, row)

    def remove(self, project_id: str) -> None:
        """Delete a project and everything that only it uses; golden sets stay, since other projects may share them."""
        its_runs = sa.select(runs.c.run_id).filter_by(project_id=project_id)
        with self._db.write() as transaction:
            for table in reversed(metadata.sorted_tables):  # a row is deleted before the rows that it refers to
                if "project_id" in table.c:
                    transaction.execute(sa.delete(table).filter_by(project_id=project_id))
                elif "run_id" in table.c:
                    transaction.execute(sa.delete(table).where(table.c.run_id.in_(its_runs)))


def _counted() -> sa.Select[Any]:
    """Select projects with their counts of golden sets and runs."""
    counts = [
        sa.select(sa.func.count()).where(table.c.project_id == projects.c.project_id).scalar_subquery().label(name)
        for table, name in ((project_goldens, "n_goldens"), (runs, "n_runs"))
    ]
    return sa.select(projects, *counts)


# ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GoldenBody:
    """A golden set without its items and ratings."""

    aspects: dict[str, AspectLabels]
    metrics: dict[str, tuple[float | None, ...]]
    given_split: tuple[str, ...]
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RatingColumns:
    """Ratings stored as columns, one entry per rating.

    `item_id`, `rater_id` and `aspect` are indices into `item_ids`, `rater_ids` and `aspects`.  `comment` maps the
    position of a rating to its comment.
    """

    item_id: tuple[int, ...]
    item_ids: tuple[str, ...]
    rater_id: tuple[int, ...]
    rater_ids: tuple[str, ...]
    aspect: tuple[int, ...]
    aspects: tuple[str, ...]
    value: tuple[float, ...]
    comment: dict[str, str]

    def ratings(self) -> tuple[Rating, ...]:
        return tuple(
            Rating(
                self.item_ids[item],
                self.rater_ids[rater],
                self.aspects[aspect],
                value,
                self.comment.get(str(k), ""),
            )
            for k, (item, rater, aspect, value) in enumerate(
                zip(self.item_id, self.rater_id, self.aspect, self.value, strict=True)
            )
        )


_Aspects = Mapping[str, tuple[AspectSummary, ...]]
_Items = tuple[tuple[str, str, str, str, str, str, tuple[str, ...]], ...]
_CACHED = 4  # loaded golden sets per process; one of 1,600 items and 38,000 ratings takes some 15 MB


class Goldens(StorePart):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._load = lru_cache(maxsize=_CACHED)(self._load_anew)

    def add(self, project_id: str, golden: GoldenSet) -> str:
        """Store a golden set, link it to the project, and return its id (its digest).

        Storing it again changes nothing.
        """
        known = sa.select(goldens.c.golden_id).filter_by(golden_id=golden.digest)
        items = [
            {"golden_id": golden.digest, "position": k, "body": json.dumps(body, ensure_ascii=False)}
            for k, body in enumerate(
                [i.item_id, i.target, i.source_id, i.system_id, i.source, i.context, i.references] for i in golden.items
            )
        ]
        link = {"project_id": project_id, "golden_id": golden.digest, "name": golden.name}
        with self._db.write() as transaction:
            if transaction.execute(known).one_or_none() is None:
                transaction.insert_new(goldens, golden_row(golden))
                transaction.insert_new(golden_items, items)
            transaction.insert_new(project_goldens, link)
        return golden.digest

    def all(self, project_id: str) -> list[GoldenSummary]:
        """Return the project's golden sets, newest first."""
        query = _summary().where(project_goldens.c.project_id == project_id)
        query = query.order_by(project_goldens.c.created_at.desc(), project_goldens.c.golden_id)
        return [_golden(row) for row in self._db.rows(query)]

    def get(self, golden_id: str) -> GoldenSummary:
        """Return the summary of a golden set, with the name under which it was first added.

        Raises NotFoundError for an unknown id.
        """
        query = _summary().where(goldens.c.golden_id == golden_id).order_by(project_goldens.c.created_at)
        row = self._db.row(query.limit(1))
        if row is None:
            raise NotFoundError(f"Golden set {golden_id[:24]!r} not found. The golden set may be in another database.")
        return _golden(row)

    def load(self, golden_id: str) -> GoldenSet:
        """Return the whole golden set.  Raises NotFoundError for an unknown id.

        Golden sets never change, so the most recently loaded ones are cached.
        """
        return self._load(golden_id)

    def _load_anew(self, golden_id: str) -> GoldenSet:
        name = self.get(golden_id).name
        items = sa.select(golden_items.c.body).filter_by(golden_id=golden_id).order_by(golden_items.c.position)
        with self._db.read() as transaction:
            head = transaction.execute(sa.select(goldens).filter_by(golden_id=golden_id)).one()
            bodies = transaction.execute(items).scalars().all()
        body, ratings = unpack(GoldenBody, head.body), unpack(RatingColumns, head.ratings).ratings()
        texts = tuple(starmap(Item, unpack(_Items, f"[{','.join(bodies)}]")))
        golden = GoldenSet(name, head.kind, texts, body.aspects, ratings, body.metrics, body.given_split, body.columns)
        golden.__dict__["digest"] = (
            golden_id  # it is stored under its hash, so there is no need to compute the hash again
        )
        return golden

    def verified(self, golden_id: str) -> GoldenSet:
        """Reload the golden set, and check its rows against its hash.

        Projects with the same golden set share its rows. The check prevents imports of other content under that hash.

        Raises:
            ValueError: The rows don't match the hash.
        """
        golden, row = self._load_anew(golden_id), self._db.row(sa.select(goldens).filter_by(golden_id=golden_id))
        golden = replace(golden, name="")  # a copy without the cached digest
        columns = [*golden.metrics.values(), *(labels.values for labels in golden.aspects.values())]
        if {len(golden.items), *map(len, columns)} != {len(set(golden.item_ids))}:
            raise ValueError("two items have the same id, or the labels or a metric don't have one value per item")
        own = golden_row(golden)
        stored = {} if row is None else row._asdict()
        same = all(own[name] == stored[name] for name in own if name.startswith("n_"))
        if not same or json.loads(own["aspects"]) != json.loads(stored["aspects"]):
            raise ValueError("the columns of a golden set don't match its content")
        if golden.digest != golden_id or golden.kind not in get_args(ItemKind):
            raise ValueError("the content of a golden set doesn't match its hash")
        return golden


def _summary() -> sa.Select[Any]:
    columns = [c for c in goldens.c if c.name not in ("body", "ratings", "created_at")]
    link = project_goldens.c
    return sa.select(*columns, link.name, link.created_at).join(goldens, goldens.c.golden_id == link.golden_id)


def _golden(row: sa.Row[Any]) -> GoldenSummary:
    return record_of(GoldenSummary, row, aspects=unpack(_Aspects, row.aspects)["rows"])  # type: ignore[type-abstract]


def golden_row(golden: GoldenSet) -> dict[str, Any]:
    """Return the row of a golden set in the table `goldens`."""
    aspects = [AspectSummary(aspect, labels.scale, labels.n_labelled) for aspect, labels in golden.aspects.items()]
    body = GoldenBody(dict(golden.aspects), dict(golden.metrics), golden.given_split, dict(golden.columns))
    columns: dict[str, Any] = {}
    for name in ("item_id", "rater_id", "aspect"):
        codes: dict[str, int] = {}
        columns[name] = [codes.setdefault(getattr(rating, name), len(codes)) for rating in golden.ratings]
        columns[f"{name}s"] = list(codes)
    columns["value"] = [rating.value for rating in golden.ratings]
    columns["comment"] = {str(k): rating.comment for k, rating in enumerate(golden.ratings) if rating.comment}
    return row_of(
        goldens,
        golden,
        golden_id=golden.digest,
        n_items=len(golden.items),
        n_ratings=len(golden.ratings),
        aspects=pack({"rows": aspects}).body,
        body=pack(body).body,
        ratings=json.dumps(columns),
    )


# ── criteria ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CriteriaBody:
    """Criteria without their aspect, which has a separate column."""

    text: str
    provenance: Provenance


class KeptCriteria(StorePart):
    def add(self, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
        """Store criteria; existing criteria keep their first provenance."""
        with self._db.write() as transaction:
            _insert(transaction, project_id, golden_id, new)

    def record(self, project_id: str, new: Sequence[CriteriaAlignment]) -> None:
        """Store the alignments that runs measured for stored criteria; storing them again overwrites the same rows."""
        rows = [row_of(alignments, each, project_id=project_id, body=pack(each.alignment).body) for each in new]
        with self._db.write() as transaction:
            transaction.upsert(alignments, rows, keep="created_at")

    def all(self, project_id: str, aspect: str | None = None, golden_id: str | None = None) -> list[CriteriaEntry]:
        """Return the project's criteria (of an aspect or golden set, if given), newest first."""
        query = sa.select(criteria).filter_by(project_id=project_id, **given(aspect=aspect, golden_id=golden_id))
        with self._db.read() as transaction:
            rows = transaction.rows(query.order_by(criteria.c.created_at.desc(), criteria.c.criteria_id))
            return _entries(transaction, project_id, rows)

    def texts(self, project_id: str, aspect: str) -> list[tuple[Criteria, float]]:
        """Return the criteria of an aspect with the times when they were added (seconds since 1970)."""
        rows = self._db.rows(sa.select(criteria).filter_by(project_id=project_id, aspect=aspect))
        return [(_criteria(row), row.created_at) for row in rows]

    def get(self, project_id: str, criteria_id: str) -> CriteriaEntry:
        """Return criteria.  Raises NotFoundError for an unknown id."""
        with self._db.read() as transaction:
            return _entry(transaction, project_id, criteria_id)

    def save_edit(self, project_id: str, parent_id: str, edit: Criteria, expected_head: str | None) -> str:
        """Store `edit` as the newest edit of the criteria `parent_id`, and return its id.

        An edit that is already stored becomes the newest again. `expected_head` is the id of the newest edit that the
        author saw, or `parent_id` if there was none. With None, edits of other authors are not checked.

        Raises:
            ConflictError: Somebody else has saved an edit since. Nothing is stored.
            NotFoundError: The parent is unknown.
        """
        with self._db.write() as transaction:
            parent = _entry(transaction, project_id, parent_id, lock=True)
            if expected_head is not None and parent.head not in (expected_head, edit.criteria_id):
                theirs = _entry(transaction, project_id, parent.head)
                raise ConflictError(
                    f"{theirs.author or 'Someone else'} saved another edit of these criteria first. Compare the two "
                    "texts, then save yours separately or discard it.",
                    theirs=theirs.text,
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
    """Read an entry; `lock` makes other writers of its row wait (SQLite locks the whole file anyway)."""
    query = sa.select(criteria).filter_by(project_id=project_id, criteria_id=criteria_id)
    rows = transaction.rows(query.with_for_update() if lock else query)
    if not rows:
        raise NotFoundError(f"Criteria {criteria_id!r} not found in project {project_id!r}.")
    return _entries(transaction, project_id, rows, criteria_id)[0]


def _entries(
    transaction: Transaction, project_id: str, rows: Sequence[sa.Row[Any]], criteria_id: str | None = None
) -> list[CriteriaEntry]:
    """Read the entries of `rows`; `criteria_id` is given if all rows share it."""
    aligned, edited = defaultdict[str, list[CriteriaAlignment]](list), defaultdict[str, list[str]](list)
    query = sa.select(alignments).filter_by(project_id=project_id, **given(criteria_id=criteria_id))
    query = query.order_by(alignments.c.created_at.desc(), alignments.c.run_id, alignments.c.side)
    for row in transaction.rows(query):
        aligned[row.criteria_id].append(record_of(CriteriaAlignment, row, alignment=unpack(Alignment, row.body)))
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


# ── judges ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Judges(StorePart):
    def add(
        self,
        project_id: str,
        golden_id: str,
        judge: JudgeScores,
        replies: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Add a judge and return its id.

        The id follows from the content, such as scores and kind. A judge that has the same content and is already
        stored stays unchanged. `replies` maps each item id to the original replies.

        Raises:
            StoreError: The judge doesn't have one score per item.
        """
        judge_id, packed = judge_id_of(golden_id, judge), pack(judge)
        with self._db.write() as transaction:
            n_items = transaction.execute(sa.select(goldens.c.n_items).filter_by(golden_id=golden_id)).scalar()
            if n_items != judge.values.size:
                raise StoreError(f"The judge has {judge.values.size} scores, but its golden set has {n_items} items.")
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
        """Return the project's judges (of a golden set or aspect, if given), oldest first."""
        query = _judges(project_id).filter_by(**given(golden_id=golden_id, aspect=aspect))
        return [_judge(row) for row in self._db.rows(query.order_by(judges.c.created_at, judges.c.judge_id))]

    def get(self, project_id: str, judge_id: str) -> JudgeEntry:
        """Return a judge.  Raises NotFoundError for an unknown id."""
        row = self._db.row(_judges(project_id).filter_by(judge_id=judge_id))
        if row is None:
            raise NotFoundError(f"Judge {judge_id[:24]!r} not found in this project. The judge may have been deleted.")
        return _judge(row)

    def replies(self, project_id: str, judge_id: str) -> dict[str, tuple[str, ...]]:
        """Return a dict from item id to original replies; empty for a judge without replies, or an unknown judge."""
        row = self._db.row(sa.select(judges.c.replies).filter_by(project_id=project_id, judge_id=judge_id))
        replies = {} if row is None or row.replies is None else json.loads(zlib.decompress(row.replies))
        return {item_id: tuple(texts) for item_id, texts in replies.items()}

    def remove(self, project_id: str, judge_id: str) -> None:
        """Remove a judge; an unknown id changes nothing."""
        with self._db.write() as transaction:
            transaction.execute(sa.delete(judges).filter_by(project_id=project_id, judge_id=judge_id))


def judge_id_of(golden_id: str, judge: JudgeScores) -> str:
    """Return "j" and 12 hex digits that identify a judge by its content, so a new name does not change the id."""
    scores = hashlib.sha256(np.ascontiguousarray(judge.values, dtype="<f8").tobytes()).hexdigest()
    body = [golden_id, judge.aspect, judge.kind, judge.run_id, judge.note, scores, list(judge.seen)]
    return "j" + content_digest("judge", body).split(":")[1][:12]


def _judges(project_id: str) -> sa.Select[Any]:
    return sa.select(*(column for column in judges.c if column.name != "replies")).filter_by(project_id=project_id)


def _judge(row: sa.Row[Any]) -> JudgeEntry:
    judge = replace(unpack(JudgeScores, Packed(row.body, row.blob)), name=row.name)
    return record_of(JudgeEntry, row, judge=judge)
