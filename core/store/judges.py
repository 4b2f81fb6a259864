"""What judges: criteria with their edits and their alignment in each run, and judges with their scores and replies.

Criteria are immutable texts under their content id; an edit names its parent.  A judge is stored under a hash of what
it gave, so that the same file brought in twice, or a run that finishes twice, makes one judge.  Replies are bulky and
rarely looked at: they lie compressed beside the scores and are read on demand.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from core.errors import ConflictError, NotFoundError, StoreError
from core.project_records import CriteriaAlignment, CriteriaEntry, JudgeEntry
from core.records import Alignment, Criteria, JudgeScores, Provenance, content_digest
from core.store.codec import Packed, pack, unpack
from core.store.database import record_of
from core.store.reconnecting import Part
from core.store.schema import alignments, criteria, edits, goldens, judges
from core.store.unchanged import read_once


@dataclass(frozen=True)
class CriteriaBody:
    """Criteria without their aspect, which is a column."""

    text: str
    provenance: Provenance


class KeptCriteria(Part):
    def add(self, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
        """Store criteria; one that is there already keeps its first provenance."""
        if not new:
            return
        with self._db.write() as connection:
            self._insert(connection, project_id, golden_id, new)

    def record(self, project_id: str, new: Sequence[CriteriaAlignment]) -> None:
        """Keep alignments of criteria (stored before) in runs; a repetition overwrites the same."""
        if not new:
            return
        with self._db.write() as connection:
            now = self._db.now(connection)
            rows = [
                {
                    **{"project_id": project_id, "criteria_id": aligned.criteria_id, "run_id": aligned.run_id},
                    **{
                        "side": aligned.side,
                        "status": aligned.status,
                        "body": pack(aligned.alignment).body,
                        "created_at": now,
                    },
                }
                for aligned in new
            ]
            connection.execute(self._db.insert_or_replace(alignments, keep=["created_at"]), rows)

    @read_once
    def all(
        self, project_id: str, aspect: str | None = None, golden_id: str | None = None, run_id: str | None = None
    ) -> list[CriteriaEntry]:
        """The project's criteria, newest first; of one aspect, golden set or run when asked."""
        query = sa.select(criteria).where(criteria.c.project_id == project_id)
        if aspect is not None:
            query = query.where(criteria.c.aspect == aspect)
        if golden_id is not None:
            query = query.where(criteria.c.golden_id == golden_id)
        if run_id is not None:
            scored = sa.select(alignments.c.criteria_id).where(alignments.c.project_id == project_id)
            query = query.where(criteria.c.criteria_id.in_(scored.where(alignments.c.run_id == run_id)))
        with self._db.read() as connection:
            rows = connection.execute(query.order_by(criteria.c.created_at.desc(), criteria.c.criteria_id)).all()
            return _entries(connection, project_id, rows)

    @read_once
    def texts(self, project_id: str, aspect: str) -> list[tuple[Criteria, float]]:
        """The criteria of an aspect, each with the time (seconds since 1970) when it came."""
        query = sa.select(criteria.c.body, criteria.c.created_at)
        query = query.where(criteria.c.project_id == project_id, criteria.c.aspect == aspect)
        with self._db.read() as connection:
            rows = connection.execute(query).all()
        kept = [(unpack(CriteriaBody, row.body), row.created_at) for row in rows]
        return [(Criteria(body.text, aspect, body.provenance), at) for body, at in kept]

    @read_once
    def get(self, project_id: str, criteria_id: str) -> CriteriaEntry:
        """NotFoundError for an unknown id."""
        with self._db.read() as connection:
            return _entry(connection, project_id, criteria_id)

    def alignments(self, project_id: str, criteria_id: str | None = None) -> list[CriteriaAlignment]:
        """Alignments of one set of criteria, or of all of the project, newest run first."""
        with self._db.read() as connection:
            return _alignments(connection, project_id, criteria_id)

    def save_edit(self, project_id: str, parent_id: str, edit: Criteria, expected_head: str | None) -> str:
        """Store `edit` as the newest edit of the parent and return its id.

        With `expected_head` (the newest edit the author had seen, or the parent) ConflictError when somebody else
        saved another edit since; nothing is stored then.  NotFoundError for an unknown parent.
        """
        with self._db.write() as connection:
            parent = _entry(connection, project_id, parent_id, lock=True)
            if expected_head is not None and parent.head not in (expected_head, edit.criteria_id):
                theirs = _entry(connection, project_id, parent.head)
                raise ConflictError(
                    f"{theirs.author or 'Somebody else'} saved another edit of these criteria first. "
                    "Compare the two texts and save yours again, on top of theirs or instead of it.",
                    theirs=theirs.text,
                    yours=edit.text,
                )
            if parent.head != edit.criteria_id:
                self._append(connection, parent, edit)
        return edit.criteria_id

    def _append(self, connection: sa.Connection, parent: CriteriaEntry, edit: Criteria) -> None:
        """Make `edit` the newest edit of `parent`, also where the same text was an older one."""
        self._insert(connection, parent.project_id, parent.golden_id, [edit])
        row = {"project_id": parent.project_id, "parent_id": parent.criteria_id, "criteria_id": edit.criteria_id}
        connection.execute(sa.delete(edits).where(*(edits.c[name] == value for name, value in row.items())))
        connection.execute(sa.insert(edits), row | {"created_at": self._db.now(connection)})

    def _insert(self, connection: sa.Connection, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
        now = self._db.now(connection)
        rows = [
            {
                **{"project_id": project_id, "criteria_id": text.criteria_id, "golden_id": golden_id},
                **{
                    "aspect": text.aspect,
                    "body": pack(CriteriaBody(text.text, text.provenance)).body,
                    "created_at": now,
                },
            }
            for text in new
        ]
        connection.execute(self._db.insert_new(criteria), rows)


def _entry(connection: sa.Connection, project_id: str, criteria_id: str, *, lock: bool = False) -> CriteriaEntry:
    """`lock` keeps other writers of this row waiting (on SQLite a write transaction holds the whole file anyway)."""
    query = sa.select(criteria).where(criteria.c.project_id == project_id, criteria.c.criteria_id == criteria_id)
    rows = connection.execute(query.with_for_update() if lock else query).all()
    if not rows:
        raise NotFoundError(f"There are no criteria {criteria_id!r} in project {project_id!r}.")
    return _entries(connection, project_id, rows, criteria_id)[0]


def _entries(
    connection: sa.Connection, project_id: str, rows: Sequence[sa.Row[Any]], criteria_id: str | None = None
) -> list[CriteriaEntry]:
    """The entries of `rows`, which are those of `criteria_id` alone where it is given."""
    aligned: dict[str, list[CriteriaAlignment]] = {}
    for alignment in _alignments(connection, project_id, criteria_id):
        aligned.setdefault(alignment.criteria_id, []).append(alignment)
    query = sa.select(edits.c.parent_id, edits.c.criteria_id).where(edits.c.project_id == project_id)
    if criteria_id is not None:
        query = query.where(edits.c.parent_id == criteria_id)
    edited: dict[str, list[str]] = {}
    for parent_id, edit_id in connection.execute(query.order_by(edits.c.number)):
        edited.setdefault(parent_id, []).append(edit_id)
    entries = []
    for row in rows:
        body, name = unpack(CriteriaBody, row.body), row.criteria_id
        text = Criteria(body.text, row.aspect, body.provenance)
        gathered = {"alignments": tuple(aligned.get(name, ())), "edits": tuple(edited.get(name, ()))}
        entries.append(record_of(CriteriaEntry, row, criteria=text, **gathered))
    return entries


def _alignments(connection: sa.Connection, project_id: str, criteria_id: str | None) -> list[CriteriaAlignment]:
    query = sa.select(alignments).where(alignments.c.project_id == project_id)
    if criteria_id is not None:
        query = query.where(alignments.c.criteria_id == criteria_id)
    query = query.order_by(alignments.c.created_at.desc(), alignments.c.run_id, alignments.c.side)
    return [
        record_of(CriteriaAlignment, row, alignment=unpack(Alignment, row.body)) for row in connection.execute(query)
    ]


# ── judges ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Judges(Part):
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
        judge_id = judge_id_of(golden_id, judge)
        packed = pack(judge)
        with self._db.write() as connection:
            n_items = connection.execute(sa.select(goldens.c.n_items).where(goldens.c.golden_id == golden_id)).scalar()
            if n_items != judge.values.size:
                raise StoreError(f"The judge has {judge.values.size} scores and its golden set {n_items} items.")
            row = {
                **{"project_id": project_id, "judge_id": judge_id, "golden_id": golden_id, "aspect": judge.aspect},
                **{"name": judge.name, "body": packed.body, "blob": packed.blob},
                **{"replies": _packed_replies(replies), "created_at": self._db.now(connection)},
            }
            connection.execute(self._db.insert_new(judges), row)
        return judge_id

    def all(self, project_id: str, golden_id: str | None = None, aspect: str | None = None) -> list[JudgeEntry]:
        """The project's judges (of a golden set, of an aspect), oldest first."""
        query = _columns().where(judges.c.project_id == project_id)
        if golden_id is not None:
            query = query.where(judges.c.golden_id == golden_id)
        if aspect is not None:
            query = query.where(judges.c.aspect == aspect)
        with self._db.read() as connection:
            rows = connection.execute(query.order_by(judges.c.created_at, judges.c.judge_id)).all()
        return [_row(row) for row in rows]

    def get(self, project_id: str, judge_id: str) -> JudgeEntry:
        """NotFoundError for an unknown id."""
        with self._db.read() as connection:
            row = connection.execute(_columns().where(_is(project_id, judge_id))).one_or_none()
        if row is None:
            raise _unknown(judge_id)
        return _row(row)

    def replies(self, project_id: str, judge_id: str) -> dict[str, tuple[str, ...]]:
        """Item id → replies as they came; empty for a judge that brought none.  NotFoundError for an unknown id."""
        with self._db.read() as connection:
            row = connection.execute(sa.select(judges.c.replies).where(_is(project_id, judge_id))).one_or_none()
        if row is None:
            raise _unknown(judge_id)
        replies = {} if row.replies is None else json.loads(zlib.decompress(row.replies))
        return {item_id: tuple(texts) for item_id, texts in replies.items()}

    def rename(self, project_id: str, judge_id: str, name: str) -> None:
        """NotFoundError for an unknown id."""
        with self._db.write() as connection:
            changed = connection.execute(sa.update(judges).where(_is(project_id, judge_id)).values(name=name))
        if not changed.rowcount:
            raise _unknown(judge_id)

    def remove(self, project_id: str, judge_id: str) -> None:
        """Remove a judge; nothing happens when it is gone already."""
        with self._db.write() as connection:
            connection.execute(sa.delete(judges).where(_is(project_id, judge_id)))


def judge_id_of(golden_id: str, judge: JudgeScores) -> str:
    """``"j" + 12 hex digits`` of what the judge gave, its name left out: renaming does not make another judge."""
    scores = hashlib.sha256(np.ascontiguousarray(judge.values, dtype="<f8").tobytes()).hexdigest()
    body = [golden_id, judge.aspect, judge.kind, judge.run_id, judge.note, scores, list(judge.seen)]
    return "j" + content_digest("judge", body).split(":")[1][:12]


def _columns() -> sa.Select[Any]:
    return sa.select(*(column for column in judges.c if column.name != "replies"))


def _is(project_id: str, judge_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(judges.c.project_id == project_id, judges.c.judge_id == judge_id)


def _row(row: sa.Row[Any]) -> JudgeEntry:
    judge = replace(unpack(JudgeScores, Packed(row.body, row.blob)), name=row.name)
    return record_of(JudgeEntry, row, judge=judge)


def _packed_replies(replies: Mapping[str, Sequence[str]] | None) -> bytes | None:
    if not replies:
        return None
    return zlib.compress(json.dumps({item_id: list(texts) for item_id, texts in replies.items()}).encode())


def _unknown(judge_id: str) -> NotFoundError:
    return NotFoundError(f"There is no judge {judge_id[:24]!r} in this project. It may have been removed.")
