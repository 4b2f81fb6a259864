"""Criteria: immutable texts by content id, edits that name their parent, and how each stood in each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from core.errors import ConflictError, NotFoundError
from core.records import Alignment, Criteria, Provenance
from core.store.codec import Packed, pack, unpack
from core.store.database import Database
from core.store.patience import Part
from core.store.rows import AlignmentRow, CriteriaRow
from core.store.schema import alignments, criteria, edits


@dataclass(frozen=True, slots=True)
class Stood:
    """How one criteria stood in a run on one side; `status` as on the leaderboard."""

    criteria_id: str
    side: str
    status: str
    alignment: Alignment


@dataclass(frozen=True)
class _Body:
    text: str
    provenance: Provenance


class CriteriaShelf(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
        """Store criteria; one that is there already keeps its first provenance."""
        if not new:
            return
        with self._db.write() as connection:
            self._insert(connection, project_id, golden_id, new)

    def record(self, project_id: str, run_id: str, standings: Sequence[Stood]) -> None:
        """Keep how criteria (stored before) stood in a run; a repetition overwrites the same."""
        if not standings:
            return
        with self._db.write() as connection:
            now = self._db.now(connection)
            rows = [
                {
                    "project_id": project_id,
                    "criteria_id": one.criteria_id,
                    "run_id": run_id,
                    "side": one.side,
                    "status": one.status,
                    "body": pack(one.alignment).body,
                    "created_at": now,
                }
                for one in standings
            ]
            connection.execute(self._db.insert_or_replace(alignments, keep=["created_at"]), rows)

    def all(
        self, project_id: str, *, aspect: str | None = None, golden_id: str | None = None, run_id: str | None = None
    ) -> list[CriteriaRow]:
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
            found = connection.execute(query.order_by(criteria.c.created_at.desc(), criteria.c.criteria_id))
            return [_row(row) for row in found]

    def get(self, project_id: str, criteria_id: str) -> CriteriaRow:
        """NotFoundError for an unknown id."""
        with self._db.read() as connection:
            return _one(connection, project_id, criteria_id)

    def alignments(self, project_id: str, criteria_id: str | None = None) -> list[AlignmentRow]:
        """How criteria stood (one, or all of the project), newest run first."""
        query = sa.select(alignments).where(alignments.c.project_id == project_id)
        if criteria_id is not None:
            query = query.where(alignments.c.criteria_id == criteria_id)
        query = query.order_by(alignments.c.created_at.desc(), alignments.c.run_id, alignments.c.side)
        with self._db.read() as connection:
            found = connection.execute(query).all()
        return [
            AlignmentRow(r.criteria_id, r.run_id, r.side, r.status, unpack(Alignment, Packed(r.body)), r.created_at)
            for r in found
        ]

    def edits(self, project_id: str, parent_id: str) -> list[str]:
        """Ids of the edits made from `parent_id`, oldest first."""
        with self._db.read() as connection:
            return _edits(connection, project_id, parent_id)

    def save_edit(self, project_id: str, parent_id: str, edit: Criteria, expected_head: str | None) -> str:
        """Store `edit` as the newest edit of the parent and return its id.

        With `expected_head` (the newest edit the author had seen, or the parent) ConflictError when somebody else
        saved another edit since; nothing is stored then.  NotFoundError for an unknown parent.
        """
        with self._db.write() as connection:
            parent = _one(connection, project_id, parent_id, lock=True)
            head = [parent_id, *_edits(connection, project_id, parent_id)][-1]
            if expected_head is not None and head not in (expected_head, edit.criteria_id):
                theirs = _one(connection, project_id, head).criteria
                raise ConflictError(
                    f"{theirs.provenance.author or 'Somebody else'} saved another edit of these criteria first. "
                    "Compare the two texts and save yours again, on top of theirs or instead of it.",
                    theirs=theirs.text,
                    yours=edit.text,
                )
            if head != edit.criteria_id:
                self._append(connection, parent, edit)
        return edit.criteria_id

    def _append(self, connection: sa.Connection, parent: CriteriaRow, edit: Criteria) -> None:
        """Make `edit` the newest edit of `parent`, also where the same text was an older one."""
        self._insert(connection, parent.project_id, parent.golden_id, [edit])
        key = {"project_id": parent.project_id, "parent_id": parent.criteria.criteria_id}
        same = sa.and_(
            *(edits.c[name] == value for name, value in key.items()), edits.c.criteria_id == edit.criteria_id
        )
        connection.execute(sa.delete(edits).where(same))
        row = {**key, "criteria_id": edit.criteria_id, "created_at": self._db.now(connection)}
        connection.execute(sa.insert(edits), row)

    def _insert(self, connection: sa.Connection, project_id: str, golden_id: str, new: Sequence[Criteria]) -> None:
        now = self._db.now(connection)
        rows = [
            {
                "project_id": project_id,
                "criteria_id": one.criteria_id,
                "golden_id": golden_id,
                "aspect": one.aspect,
                "body": _body(one),
                "created_at": now,
            }
            for one in new
        ]
        connection.execute(self._db.insert_new(criteria), rows)


def _body(one: Criteria) -> str:
    return pack(_Body(one.text, one.provenance)).body


def _one(connection: sa.Connection, project_id: str, criteria_id: str, *, lock: bool = False) -> CriteriaRow:
    """`lock` keeps other writers of this row waiting (on SQLite a write transaction holds the whole file anyway)."""
    query = sa.select(criteria).where(criteria.c.project_id == project_id, criteria.c.criteria_id == criteria_id)
    found = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if found is None:
        raise NotFoundError(f"There are no criteria {criteria_id!r} in project {project_id!r}.")
    return _row(found)


def _row(found: sa.Row[Any]) -> CriteriaRow:
    body = unpack(_Body, Packed(found.body))
    one = Criteria(body.text, found.aspect, body.provenance)
    return CriteriaRow(one, found.project_id, found.golden_id, found.created_at)


def _edits(connection: sa.Connection, project_id: str, parent_id: str) -> list[str]:
    query = sa.select(edits.c.criteria_id).where(edits.c.project_id == project_id, edits.c.parent_id == parent_id)
    return list(connection.execute(query.order_by(edits.c.number)).scalars())
