"""Criteria: immutable texts by content id, edits that name their parent, and their alignment in each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from core.errors import ConflictError, NotFoundError
from core.kept import CriteriaAlignment, CriteriaEntry, moment
from core.records import Alignment, Criteria, Provenance
from core.store.codec import pack, unpack
from core.store.database import Database
from core.store.patience import Part
from core.store.schema import alignments, criteria, edits


@dataclass(frozen=True)
class _Body:
    text: str
    provenance: Provenance


class KeptCriteria(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

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
                    **{"project_id": project_id, "criteria_id": one.criteria_id, "run_id": one.run_id},
                    **{"side": one.side, "status": one.status, "body": pack(one.alignment).body, "created_at": now},
                }
                for one in new
            ]
            connection.execute(self._db.insert_or_replace(alignments, keep=["created_at"]), rows)

    def all(
        self, project_id: str, *, aspect: str | None = None, golden_id: str | None = None, run_id: str | None = None
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
                **{"project_id": project_id, "criteria_id": one.criteria_id, "golden_id": golden_id},
                **{"aspect": one.aspect, "body": pack(_Body(one.text, one.provenance)).body, "created_at": now},
            }
            for one in new
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
        body, name = unpack(_Body, row.body), row.criteria_id
        text = Criteria(body.text, row.aspect, body.provenance)
        known = tuple(aligned.get(name, ())), tuple(edited.get(name, ()))
        entries.append(CriteriaEntry(text, row.project_id, row.golden_id, moment(row.created_at), *known))
    return entries


def _alignments(connection: sa.Connection, project_id: str, criteria_id: str | None) -> list[CriteriaAlignment]:
    query = sa.select(alignments).where(alignments.c.project_id == project_id)
    if criteria_id is not None:
        query = query.where(alignments.c.criteria_id == criteria_id)
    query = query.order_by(alignments.c.created_at.desc(), alignments.c.run_id, alignments.c.side)
    return [
        CriteriaAlignment(row.criteria_id, row.run_id, row.side, unpack(Alignment, row.body), row.status)
        for row in connection.execute(query)
    ]
