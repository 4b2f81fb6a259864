"""The log of what people did.

The *log* holds entries (`Entry`), and none is ever changed.  The state of a thing (an approval, a lock, a
comment that was settled) is what its entries add up to, so who did what, when and why is never lost, and undoing
something is one more entry.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import sqlalchemy as sa

from core.errors import ConflictError
from core.people import Actor
from core.project_records import moment
from core.store.codec import pack, plain, unpack
from core.store.database import StorePart, given
from core.store.schema import events, projects

KINDS: dict[str, type[Entry]] = {}
"""Name in the store → record; every kind of entry enters itself."""
RETIRED = {"lock": "locked or unlocked criteria"}
"""Kinds that earlier versions wrote → what was done."""
UNWRITTEN = datetime.fromtimestamp(0, UTC)
IMPORTED = " (imported)"
"""Stands behind the role of who did something before the project was brought here; no action writes it."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Somebody did something to `subject`: who ("" = nobody said), in which role, and when.

    A kind of entry says how it is stored (`kind`) and how it reads (`does`, a format of the entry).  What it adds in
    positional fields is its *body*, stored as JSON; keyword fields are columns of the log, or follow from later
    entries.  `number` grows with time; it is 0, and `at` in 1970, until the entry is written.
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
            KINDS[cls.kind] = cls

    @classmethod
    def body_fields(cls) -> tuple[str, ...]:
        """The names of what is stored as JSON."""
        return tuple(entry_field.name for entry_field in fields(cls) if not entry_field.kw_only)

    @property
    def body(self) -> Mapping[str, Any]:
        """What the entry says beyond who, when and of what, as JSON."""
        return {name: plain(getattr(self, name), []) for name in self.body_fields()}

    @property
    def did(self) -> str:
        """What was done, as the end of a sentence that begins with who did it."""
        return self.does.format(self)

    @property
    def sentence(self) -> str:
        """What was done, and on which aspect, without who and when."""
        aspect = getattr(self, "aspect", "")
        return f"{self.did} ({aspect})" if aspect else self.did


@dataclass(frozen=True)
class Action(Entry):
    """A change that is kept elsewhere: a run begun, a golden set added; `about` are the words it was asked with."""

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


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of the log, newest first: `n` entries fit the filters; `people` and `kinds` are what the whole log has."""

    entries: tuple[Entry, ...]
    n: int
    people: tuple[str, ...]
    kinds: tuple[str, ...]


E = TypeVar("E", bound=Entry)


class Events(StorePart):
    def add(self, project_id: str, entry: Entry, actor: Actor, *, form: str = "", expected: int | None = None) -> int:
        """Write an entry of `actor`; returns its number.

        `form` is the id of the form that was sent: a second entry of it is not written, the first's number comes back.
        With `expected` (the number of the newest entry of this kind and subject that the person saw, 0 for none)
        ConflictError when somebody was faster.
        """
        form = form or uuid.uuid4().hex
        newest = sa.select(events).filter_by(project_id=project_id).order_by(events.c.number.desc()).limit(1)
        with self._db.write() as transaction:
            if expected is not None:  # one at a time, so that nobody slips in between looking and writing
                transaction.execute(sa.select(projects.c.name).filter_by(project_id=project_id).with_for_update())
            if first := transaction.execute(newest.filter_by(form=form)).one_or_none():
                return int(first.number)
            if expected is not None:
                same = transaction.execute(newest.filter_by(kind=entry.kind, subject=entry.subject)).one_or_none()
                if same is not None and same.number != expected:
                    raise ConflictError(
                        f"{same.actor or 'Somebody'} decided on this while you were looking at it. Look at what they "
                        "did, then decide again; nothing was overwritten.",
                        theirs=same.body,
                        yours=_body_text(entry),
                    )
            transaction.insert_new(events, event_row(project_id, entry, actor, form, transaction.now))
            return int(transaction.execute(newest.filter_by(form=form)).one().number)

    def all(self, project_id: str, kind: type[E], subject: str | None = None) -> list[E]:
        """The project's entries of a kind, or of all kinds of a class of them (about one subject), oldest first."""
        kinds = [name for name, record in KINDS.items() if issubclass(record, kind)]
        query = sa.select(events).filter_by(project_id=project_id, **given(subject=subject))
        return [_entry(row) for row in self._db.rows(query.where(events.c.kind.in_(kinds)).order_by(events.c.number))]

    def page(
        self, project_id: str, *, actor: str | None = None, kind: str | None = None, offset: int = 0, limit: int = 50
    ) -> LogPage:
        """Up to `limit` entries from `offset` on, newest first; of one person ("": nobody said) or kind."""
        where = {"project_id": project_id, **given(actor=actor, kind=kind)}
        query = sa.select(events).filter_by(**where).order_by(events.c.number.desc()).offset(offset).limit(limit)
        with self._db.read() as transaction:
            rows = transaction.rows(query)
            n = transaction.execute(sa.select(sa.func.count()).select_from(events).filter_by(**where)).scalar_one()
        return LogPage(tuple(_entry(row) for row in rows), n, *self.occurring(project_id))

    def first_actors(self, project_id: str, kind: type[Entry], subjects: Sequence[str]) -> dict[str, str]:
        """Subject → who acted in the oldest entry of this kind about it; no key for a subject without one."""
        query = sa.select(events.c.subject, events.c.actor).filter_by(project_id=project_id, kind=kind.kind)
        query = query.where(events.c.subject.in_(subjects)).order_by(events.c.number.desc())
        return {row.subject: row.actor for row in self._db.rows(query)}

    def occurring(self, project_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of all who did something ("" where nobody said), and the kinds of what they did; both sorted."""
        rows = self._db.rows(sa.select(events.c.actor, events.c.kind).filter_by(project_id=project_id).distinct())
        return tuple(sorted({row.actor for row in rows})), tuple(sorted({row.kind for row in rows}))


def event_row(project_id: str, entry: Entry, actor: Actor, form: str, now: float) -> dict[str, Any]:
    """The row of an entry that `actor` writes now; the store numbers it."""
    return {
        "project_id": project_id,
        "kind": entry.kind,
        "subject": entry.subject,
        "actor": actor.name,
        "role": actor.role,
        "form": form,
        "body": _body_text(entry),
        "created_at": now,
    }


def _body_text(entry: Entry) -> str:
    return pack({name: getattr(entry, name) for name in entry.body_fields()}).body


@lru_cache(maxsize=256)
def _said(kind: str, body: str) -> Entry:
    """What was logged never changes, and every press reads some of it: the last few are handed out again."""
    if kind in RETIRED:
        about = json.loads(body)
        return Action(RETIRED[kind], about if isinstance(about, dict) else {})
    return unpack(KINDS[kind], body)


def _entry(row: sa.Row[Any]) -> Any:
    columns = {name: row._mapping[name] for name in ("subject", "number", "project_id", "actor", "role")}
    return replace(_said(row.kind, row.body), **columns, at=moment(row.created_at))
