"""Store the log: who did what, when and why.

Entries never change. States such as an approval or a lock are computed from the entries. Undoing an action adds an
entry.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import sqlalchemy as sa

from core.errors import ConflictError
from core.project_records import Actor, moment
from core.store.database import (
    StorePart,
    events,
    given,
    pack,
    plain,
    projects,
    row_of,
    unpack,
)

ENTRY_KINDS: dict[str, type[Entry]] = {}
"""Name in the store → record; every kind of entry registers itself."""
RETIRED = {
    "lock": "locked or unlocked criteria",
    "fusion plan": "saved a fusion plan",
    "comment": "commented on criteria",
    "comment settled": "resolved a comment",
    "criteria name": "named criteria",
    "proposal": "decided on a proposal",
}
"""Kinds that earlier versions wrote → description."""
UNWRITTEN = datetime.fromtimestamp(0, UTC)
IMPORTED = " (imported)"
"""Suffix of the role of entries made before the project was imported; no action writes it."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Base class of log entries: an action of a user.

    A subclass defines `kind` and `does`. Its positional fields are stored as JSON, and its keyword fields as columns.

    Attributes:
        kind: Name of the subclass in the store.
        does: Format string for the description of the action.
        subject: What the action is about.
        number: Grows with time; 0 before the entry is written.
        actor: Name of the user; "" if unknown.
        at: Time of the action; `UNWRITTEN` before the entry is written.
    """

    kind: ClassVar[str]
    does: ClassVar[str]
    subject: str = ""
    number: int = 0
    project_id: str = ""
    actor: str = ""
    role: str = ""
    at: datetime = UNWRITTEN

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            ENTRY_KINDS[cls.kind] = cls

    @classmethod
    def body_fields(cls) -> tuple[str, ...]:
        """Return the names of the fields that are stored as JSON: the positional fields."""
        return tuple(entry_field.name for entry_field in fields(cls) if not entry_field.kw_only)

    @property
    def body(self) -> Mapping[str, Any]:
        """The positional fields as JSON."""
        return {name: plain(getattr(self, name), []) for name in self.body_fields()}

    @property
    def description(self) -> str:
        """The action in words, without the name of the actor."""
        return self.does.format(self)

    @property
    def sentence(self) -> str:
        """The action in words with its aspect, without actor and time."""
        aspect = getattr(self, "aspect", "")
        return f"{self.description} ({aspect})" if aspect else self.description


@dataclass(frozen=True)
class Action(Entry):
    """A log entry for a change that is stored elsewhere, such as a started run.

    `done` describes the change, and `about` has details as JSON.
    """

    kind = "audit"
    does = "{0.done}"
    done: str
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def aspect(self) -> str:
        return str(self.about.get("aspect") or "")

    @property
    def body(self) -> Mapping[str, Any]:
        return {"did": self.done, **self.about}


E = TypeVar("E", bound=Entry)


class Events(StorePart):
    def add(self, project_id: str, entry: Entry, actor: Actor, *, form: str = "", expected: int | None = None) -> int:
        """Write an entry of `actor` and return its number.

        Args:
            form: Id of the submitted form. If this form has already written an entry, nothing is written, and the
                number of that entry is returned.
            expected: Number of the newest entry of this kind and subject that the user saw; 0 if there was none. None
                skips the check for newer entries.

        Raises:
            ConflictError: There is a newer entry.
        """
        form = form or uuid.uuid4().hex
        newest = sa.select(events).filter_by(project_id=project_id).order_by(events.c.number.desc()).limit(1)
        with self._db.write() as transaction:
            if expected is not None:  # lock, so that nobody writes in between
                transaction.execute(sa.select(projects.c.name).filter_by(project_id=project_id).with_for_update())
            if first := transaction.execute(newest.filter_by(form=form)).one_or_none():
                return int(first.number)
            body = pack({name: getattr(entry, name) for name in entry.body_fields()}).body
            if expected is not None:
                same = transaction.execute(newest.filter_by(kind=entry.kind, subject=entry.subject)).one_or_none()
                if same is not None and same.number != expected:
                    raise ConflictError(
                        f"{same.actor or 'Someone else'} recorded a decision while you had this open. Nothing was "
                        "overwritten. Review the other decision, then decide again.",
                    )
            who = {"project_id": project_id, "actor": actor.name, "role": actor.role, "form": form, "body": body}
            transaction.insert_new(events, row_of(events, entry, **who))
            return int(transaction.execute(newest.filter_by(form=form)).one().number)

    def all(self, project_id: str, kind: type[E], subject: str | None = None) -> list[E]:
        """Return the entries of class `kind` in a project, oldest first. `subject` None means all subjects."""
        kinds = [name for name, record in ENTRY_KINDS.items() if issubclass(record, kind)]
        query = sa.select(events).filter_by(project_id=project_id, **given(subject=subject))
        return [_entry(row) for row in self._db.rows(query.where(events.c.kind.in_(kinds)).order_by(events.c.number))]

    def page(self, project_id: str, offset: int = 0, limit: int | None = None) -> list[Entry]:
        """Return up to `limit` entries of a project, newest first, after skipping `offset` entries."""
        query = sa.select(events).filter_by(project_id=project_id).order_by(events.c.number.desc())
        return [_entry(row) for row in self._db.rows(query.offset(offset).limit(limit))]

    def count(self, project_id: str) -> int:
        (row,) = self._db.rows(sa.select(sa.func.count()).select_from(events).filter_by(project_id=project_id))
        return int(row[0])


@lru_cache(maxsize=256)
def _said(kind: str, body: str) -> Entry:
    """Read the body of an entry; cached, since entries never change and every screen reads some of them."""
    if kind in RETIRED:
        about = json.loads(body)
        return Action(RETIRED[kind], about if isinstance(about, dict) else {})
    return unpack(ENTRY_KINDS[kind], body)


def _entry(row: sa.Row[Any]) -> Any:
    columns = {name: row._mapping[name] for name in ("subject", "number", "project_id", "actor", "role")}
    return replace(_said(row.kind, row.body), **columns, at=moment(row.created_at))
