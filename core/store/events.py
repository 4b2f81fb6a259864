"""The log of what people did: comments, triage, votes, sign-off, openings of held-out items, and every other change.

Append-only.  The state of a thing (an approval, a lock, a comment that was settled) is what its events add up to, so
who did what, when and why is never lost, and undoing something is one more event.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from core.errors import ConflictError
from core.people import Actor
from core.store.database import Database
from core.store.patience import Part
from core.store.rows import EventRow
from core.store.schema import events, projects


class Events(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self,
        project_id: str,
        kind: str,
        subject: str,
        actor: Actor,
        body: Mapping[str, Any] | None = None,
        *,
        form: str = "",
        expected: int | None = None,
    ) -> int:
        """Write an event; returns its number.

        `form` is the id of the form that was sent: a second event of it is not written, the first's number comes back.
        With `expected` (the number of the newest event of this kind and subject that the person saw, 0 for none)
        ConflictError when somebody was faster.
        """
        form = form or uuid.uuid4().hex
        said = json.dumps(dict(body or {}), ensure_ascii=False)
        with self._db.write() as connection:
            if expected is not None:  # one at a time, so that nobody slips in between looking and writing
                connection.execute(
                    sa.select(projects.c.name).where(projects.c.project_id == project_id).with_for_update()
                )
            known = connection.execute(_newest(project_id, events.c.form == form)).one_or_none()
            if known is not None:
                return int(known.number)
            if expected is not None:
                same = sa.and_(events.c.kind == kind, events.c.subject == subject)
                _check_unchanged(connection.execute(_newest(project_id, same)).one_or_none(), expected, said)
            row = {
                **{"project_id": project_id, "kind": kind, "subject": subject, "actor": actor.name},
                **{"role": actor.role, "form": form, "body": said, "created_at": self._db.now(connection)},
            }
            connection.execute(self._db.insert_new(events), row)
            return int(connection.execute(_newest(project_id, events.c.form == form)).one().number)

    def all(
        self, project_id: str, kind: str | tuple[str, ...] | None = None, subject: str | None = None
    ) -> list[EventRow]:
        """The project's events (of one kind or several, about one subject), oldest first."""
        query = sa.select(*(column for column in events.c if column.name != "form"))
        query = query.where(events.c.project_id == project_id)
        if kind is not None:
            query = query.where(events.c.kind == kind if isinstance(kind, str) else events.c.kind.in_(kind))
        if subject is not None:
            query = query.where(events.c.subject == subject)
        with self._db.read() as connection:
            found = connection.execute(query.order_by(events.c.number)).all()
        return [EventRow(**{**row._mapping, "body": json.loads(row.body)}) for row in found]

    def page(
        self, project_id: str, *, actor: str | None = None, kind: str | None = None, offset: int = 0, limit: int = 50
    ) -> tuple[list[EventRow], int]:
        """`limit` events from `offset` on, newest first, and how many there are in all; of one person or kind."""
        where = [events.c.project_id == project_id]
        where += [] if actor is None else [events.c.actor == actor]
        where += [] if kind is None else [events.c.kind == kind]
        query = sa.select(*(column for column in events.c if column.name != "form")).where(*where)
        with self._db.read() as connection:
            found = connection.execute(query.order_by(events.c.number.desc()).offset(offset).limit(limit)).all()
            n = int(connection.execute(sa.select(sa.func.count()).select_from(events).where(*where)).scalar_one())
        return [EventRow(**{**row._mapping, "body": json.loads(row.body)}) for row in found], n

    def occurring(self, project_id: str) -> tuple[list[str], list[str]]:
        """The names of all who did something ("" where nobody said), and the kinds of what they did; both sorted."""
        with self._db.read() as connection:
            actors, kinds = (
                sorted(connection.scalars(sa.select(column).where(events.c.project_id == project_id).distinct()))
                for column in (events.c.actor, events.c.kind)
            )
        return actors, kinds


def _newest(project_id: str, which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    query = sa.select(events.c.number, events.c.actor, events.c.body).where(events.c.project_id == project_id, which)
    return query.order_by(events.c.number.desc()).limit(1)


def _check_unchanged(newest: Any, expected: int, yours: str) -> None:
    if newest is None or newest.number == expected:
        return
    raise ConflictError(
        f"{newest.actor or 'Somebody'} decided on this while you were looking at it. Look at what they did, then "
        "decide again; nothing was overwritten.",
        theirs=newest.body,
        yours=yours,
    )
