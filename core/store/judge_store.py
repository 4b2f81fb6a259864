"""What judges: criteria with their edits and their alignment in each run, and judges with their scores and replies.

Criteria are immutable texts under their content id; an edit names its parent.  A judge is stored under a hash of what
it gave, so that the same file brought in twice, or a run that finishes twice, makes one judge.  Replies are bulky and
rarely looked at: they lie compressed next to the scores and are read on demand.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from core.errors import ConflictError, NotFoundError, StoreError
from core.project_records import CriteriaAlignment, CriteriaEntry, JudgeEntry
from core.records import Alignment, Criteria, JudgeScores, Provenance, content_digest
from core.store.codec import Packed, pack, unpack
from core.store.database import StorePart, Transaction, given, record_of
from core.store.schema import alignments, criteria, edits, goldens, judges


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
        with self._db.write() as transaction:
            now = transaction.now
            rows = [
                {
                    "project_id": project_id,
                    "criteria_id": aligned.criteria_id,
                    "run_id": aligned.run_id,
                    "side": aligned.side,
                    "status": aligned.status,
                    "body": pack(aligned.alignment).body,
                    "created_at": now,
                }
                for aligned in new
            ]
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
                transaction.execute(sa.insert(edits), row | {"created_at": transaction.now})
        return edit.criteria_id


def _insert(transaction: Transaction, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
    now = transaction.now
    rows = [
        {
            "project_id": project_id,
            "criteria_id": text.criteria_id,
            "golden_id": golden_id,
            "aspect": text.aspect,
            "body": pack(CriteriaBody(text.text, text.provenance)).body,
            "created_at": now,
        }
        for text in new
    ]
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
            row = {
                "project_id": project_id,
                "judge_id": judge_id,
                "golden_id": golden_id,
                "aspect": judge.aspect,
                "name": judge.name,
                "body": packed.body,
                "blob": packed.blob,
                "replies": zlib.compress(json.dumps(dict(replies)).encode()) if replies else None,
                "created_at": transaction.now,
            }
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

    def rename(self, project_id: str, judge_id: str, name: str) -> None:
        """NotFoundError for an unknown id."""
        change = sa.update(judges).filter_by(project_id=project_id, judge_id=judge_id).values(name=name)
        with self._db.write() as transaction:
            if not transaction.execute(change).rowcount:
                raise _unknown(judge_id)

    def remove(self, project_id: str, judge_id: str) -> None:
        """Remove a judge; nothing happens when it is gone already."""
        with self._db.write() as transaction:
            transaction.execute(sa.delete(judges).filter_by(project_id=project_id, judge_id=judge_id))


def judge_id_of(golden_id: str, judge: JudgeScores) -> str:
    """``"j" + 12 hex digits`` of what the judge gave, its name left out: renaming does not make another judge."""
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
