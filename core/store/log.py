"""What people did, said and typed: the log, labels, and texts that they have not saved yet.

The *log* holds entries (`Entry`), and none is ever changed.  The state of a thing (an approval, a lock, a
comment that was settled) is what its entries add up to, so who did what, when and why is never lost, and undoing
something is one more entry.

*Labels* are one row for each time somebody saved one, so nothing is ever overwritten.  A label belongs to the pass it
was given in; what a rater thinks now is their newest row of the pass for an item and aspect.  A form that is sent twice
(a lost connection, a double click) carries the same `form` id and is kept once.

*Drafts* are overwritten at every pause in typing.  They are nobody's record: a version saved from one is.  So they are
not logged, and do not leave with a project.
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
from core.project_records import Actor, moment
from core.store.database import (
    StorePart,
    drafts,
    events,
    given,
    labels,
    pack,
    plain,
    projects,
    record_of,
    row_of,
    unpack,
)

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
            row = event_row(project_id, entry, actor, form)
            if expected is not None:
                same = transaction.execute(newest.filter_by(kind=entry.kind, subject=entry.subject)).one_or_none()
                if same is not None and same.number != expected:
                    raise ConflictError(
                        f"{same.actor or 'Somebody'} decided on this while you were looking at it. Look at what they "
                        "did, then decide again; nothing was overwritten.",
                        theirs=same.body,
                        yours=row["body"],
                    )
            transaction.insert_new(events, row)
            return int(transaction.execute(newest.filter_by(form=form)).one().number)

    def all(self, project_id: str, kind: type[E], subject: str | None = None) -> list[E]:
        """The project's entries of a kind, or of all kinds of a class of them (about one subject), oldest first."""
        kinds = [name for name, record in KINDS.items() if issubclass(record, kind)]
        query = sa.select(events).filter_by(project_id=project_id, **given(subject=subject))
        return [_entry(row) for row in self._db.rows(query.where(events.c.kind.in_(kinds)).order_by(events.c.number))]

    def page(self, project_id: str, offset: int = 0, limit: int | None = None) -> list[Entry]:
        """The entries from `offset` on, newest first, up to `limit`."""
        query = sa.select(events).filter_by(project_id=project_id).order_by(events.c.number.desc())
        return [_entry(row) for row in self._db.rows(query.offset(offset).limit(limit))]

    def count(self, project_id: str) -> int:
        """How many entries the project's log has."""
        (row,) = self._db.rows(sa.select(sa.func.count()).select_from(events).filter_by(project_id=project_id))
        return int(row[0])


def event_row(project_id: str, entry: Entry, actor: Actor, form: str) -> dict[str, Any]:
    """The row of an entry that `actor` writes now; the store numbers it."""
    body = pack({name: getattr(entry, name) for name in entry.body_fields()}).body
    return row_of(events, entry, project_id=project_id, actor=actor.name, role=actor.role, form=form, body=body)


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


# ── labels ─────────────────────────────────────────────────────────────────────────────────────────────────────────


REMARK = ""
"""Stands in an aspect's place for a comment, which is of the item and not of one label."""
WITHDRAWN, RESTORED = "undone:", "undone-to:"
"""How the forms of labels begin that undo one: nothing is said any more, or what was said before."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a rater said of one item on one aspect in a pass; `value` None = looked at, and no label can be given.

    `number` grows with time; it is 0, and `at` in 1970, until the label is saved.
    """

    rater: str
    item_id: str
    aspect: str
    value: float | None
    comment: str = ""
    pass_id: str = ""
    number: int = field(default=0, compare=False)
    at: datetime = UNWRITTEN
    form: str = field(default="", compare=False)

    @property
    def is_withdrawn(self) -> bool:
        """Whether it undoes the only label there was: the item is open again on this aspect."""
        return self.form.startswith(WITHDRAWN)

    @property
    def undoes(self) -> bool:
        return self.is_withdrawn or self.form.startswith(RESTORED)


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody has typed and not saved: nobody's record, so it is not logged.

    `subject` says of what ("criteria:ID"), `author` "" where nobody said who it is, `base` the version it began from
    (`CriteriaView.head` as they saw it), so that a save can tell whether somebody else was faster.
    """

    subject: str
    author: str
    text: str
    base: str
    began_at: datetime
    kept_at: datetime


class LabelStore(StorePart):
    def add(self, project_id: str, golden_id: str, new: Sequence[Label], *, form: str) -> None:
        """Store what one form said (one label an aspect); the same form a second time changes nothing."""
        # `taken_from` is a column of earlier versions, which took labels over from another pass
        same = {"project_id": project_id, "golden_id": golden_id, "form": form, "taken_from": ""}
        with self._db.write() as transaction:
            transaction.insert_new(labels, [row_of(labels, label, **same) for label in new])

    def current(self, project_id: str, pass_id: str, rater: str | None = None) -> list[Label]:
        """The newest label of each rater (or of one) of a pass for each item and aspect, in the order of saving.

        One that was withdrawn is none.
        """
        return self._newest(project_id=project_id, pass_id=pass_id, **given(rater=rater))

    def of_golden(self, project_id: str, golden_id: str) -> list[Label]:
        """As `current`, of all passes over a golden set."""
        return self._newest(project_id=project_id, golden_id=golden_id)

    def since(self, project_id: str, pass_id: str, rater: str, number: int) -> list[Label]:
        """What a rater said in a pass after label `number` (0: everything), oldest first."""
        query = sa.select(labels).filter_by(project_id=project_id, pass_id=pass_id, rater=rater)
        return self._select(query.where(labels.c.number > number))

    def history(self, project_id: str, pass_id: str, item_id: str) -> list[Label]:
        """Everything ever said of one item in a pass, oldest first."""
        return self._select(sa.select(labels).filter_by(project_id=project_id, pass_id=pass_id, item_id=item_id))

    def _newest(self, **where: str) -> list[Label]:
        same = (labels.c.pass_id, labels.c.rater, labels.c.item_id, labels.c.aspect)
        newest = sa.select(sa.func.max(labels.c.number)).filter_by(**where).group_by(*same)
        found = self._select(sa.select(labels).where(labels.c.number.in_(newest)))
        return [label for label in found if not label.is_withdrawn]

    def _select(self, query: sa.Select[Any]) -> list[Label]:
        rows = self._db.rows(query.order_by(labels.c.number))
        return [record_of(Label, row, at=moment(row.created_at)) for row in rows]


# ── drafts ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Drafts(StorePart):
    def keep(self, project_id: str, subject: str, author: str, text: str, base: str) -> Draft:
        """Write `text` over what `author` had typed there before; returns the draft as it was stored."""
        key = {"project_id": project_id, "subject": subject, "author": author}
        with self._db.write() as transaction:
            now = transaction.now
            row = key | {"text": text, "base": base, "began_at": now, "kept_at": now}
            transaction.upsert(drafts, row, keep="began_at")
            return record_of(Draft, transaction.execute(sa.select(drafts).filter_by(**key)).one())

    def of(self, project_id: str, subject: str) -> list[Draft]:
        """What anybody has typed of one text and not saved, the newest first."""
        query = sa.select(drafts).filter_by(project_id=project_id, subject=subject)
        rows = self._db.rows(query.order_by(drafts.c.kept_at.desc(), drafts.c.author))
        return [record_of(Draft, row) for row in rows]

    def drop(self, project_id: str, subject: str, authors: Sequence[str]) -> None:
        """Delete the drafts of these people; none there is no error."""
        theirs = sa.delete(drafts).filter_by(project_id=project_id, subject=subject)
        with self._db.write() as transaction:
            transaction.execute(theirs.where(drafts.c.author.in_(authors)))
