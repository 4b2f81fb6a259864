"""What people give and type: labels, and texts that they have not saved yet.

*Labels* are one row for each time somebody saved one, so nothing is ever overwritten.  A label belongs to the pass it
was given in; what a rater thinks now is their newest row of the pass for an item and aspect.  A form that is sent twice
(a lost connection, a double click) carries the same `form` id and is kept once.

*Drafts* are overwritten at every pause in typing.  They are nobody's record: a version saved from one is.  So they are
not logged, and do not leave with a project.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import sqlalchemy as sa

from core.project_records import moment
from core.store.database import record_of
from core.store.log import UNWRITTEN
from core.store.reconnecting import Part
from core.store.schema import drafts, labels
from core.store.unchanged import read_once

REMARK = ""
"""Stands in an aspect's place for a comment, which is of the item and not of one label."""
WITHDRAWN, RESTORED = "undone:", "undone-to:"
"""How the forms of labels begin that undo one: nothing is said any more, or what was said before."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a rater said of one item on one aspect in a pass; `value` None = looked at, and no label can be given.

    `taken_from` is the earlier pass that it was taken over from, "" for none.  `number` grows with time; it is 0, and
    `at` in 1970, until the label is saved.
    """

    rater: str
    item_id: str
    aspect: str
    value: float | None
    comment: str = ""
    pass_id: str = ""
    taken_from: str = ""
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


_SAID = ("rater", "item_id", "aspect", "value", "comment", "pass_id", "taken_from")


class Labels(Part):
    def add(self, project_id: str, golden_id: str, new: Sequence[Label], *, form: str) -> None:
        """Keep what one form said (one label an aspect); the same form a second time changes nothing."""
        self._insert(project_id, golden_id, ((label, form) for label in new))

    def take_over(self, project_id: str, golden_id: str, pass_id: str, earlier: Sequence[Label]) -> None:
        """Copy labels of earlier passes into a pass, in this order; each says where it came from.  Twice is once."""
        taken = (replace(label, pass_id=pass_id, taken_from=label.pass_id) for label in earlier)
        self._insert(project_id, golden_id, ((label, _form_of(label)) for label in taken))

    def current(self, project_id: str, pass_id: str, rater: str | None = None) -> list[Label]:
        """The newest label of each rater (or of one) of a pass for each item and aspect, in the order of saving.

        One that was withdrawn is none.
        """
        return self._newest(_of_pass(project_id, pass_id, rater))

    def of_golden(self, project_id: str, golden_id: str) -> list[Label]:
        """As `current`, of all passes over a golden set."""
        return self._newest(sa.and_(labels.c.project_id == project_id, labels.c.golden_id == golden_id))

    def since(self, project_id: str, pass_id: str, rater: str, number: int) -> list[Label]:
        """What a rater said in a pass after label `number` (0: everything), oldest first."""
        return self._select(sa.and_(_of_pass(project_id, pass_id, rater), labels.c.number > number))

    def history(self, project_id: str, pass_id: str, item_id: str) -> list[Label]:
        """Everything ever said of one item in a pass, oldest first."""
        return self._select(sa.and_(_of_pass(project_id, pass_id, None), labels.c.item_id == item_id))

    def raters(self, project_id: str) -> list[str]:
        """The names of all who labelled something in a project, sorted."""
        query = sa.select(labels.c.rater).where(labels.c.project_id == project_id).distinct()
        with self._db.read() as connection:
            return sorted(connection.scalars(query))

    def by_rater(self, project_id: str) -> dict[str, tuple[int, datetime]]:
        """Rater → how often they said something of an item, and when last."""
        columns = (labels.c.rater, sa.func.count(), sa.func.max(labels.c.created_at))
        query = sa.select(*columns).where(labels.c.project_id == project_id).group_by(labels.c.rater)
        with self._db.read() as connection:
            return {rater: (n, moment(at)) for rater, n, at in connection.execute(query)}

    def _insert(self, project_id: str, golden_id: str, new: Iterable[tuple[Label, str]]) -> None:
        """Labels, each with the id of the form that said it."""
        with self._db.write() as connection:
            where = {"project_id": project_id, "golden_id": golden_id, "created_at": self._db.now(connection)}
            rows = [{**where, "form": form, **{name: getattr(label, name) for name in _SAID}} for label, form in new]
            if rows:
                connection.execute(self._db.insert_new(labels), rows)

    def _newest(self, where: sa.ColumnElement[bool]) -> list[Label]:
        same = (labels.c.pass_id, labels.c.rater, labels.c.item_id, labels.c.aspect)
        newest = labels.c.number.in_(sa.select(sa.func.max(labels.c.number)).where(where).group_by(*same))
        return [label for label in self._select(newest) if not label.is_withdrawn]

    def _select(self, where: sa.ColumnElement[bool]) -> list[Label]:
        query = sa.select(labels).where(where).order_by(labels.c.number)
        with self._db.read() as connection:
            return [record_of(Label, row, at=moment(row.created_at)) for row in connection.execute(query)]


def _of_pass(project_id: str, pass_id: str, rater: str | None) -> sa.ColumnElement[bool]:
    where = sa.and_(labels.c.project_id == project_id, labels.c.pass_id == pass_id)
    return where if rater is None else sa.and_(where, labels.c.rater == rater)


def _form_of(taken: Label) -> str:
    key = f"{taken.pass_id}\0{taken.taken_from}\0{taken.rater}\0{taken.item_id}"
    return f"taken:{uuid.uuid5(uuid.NAMESPACE_OID, key).hex}"


# ── drafts ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Drafts(Part):
    def keep(self, project_id: str, subject: str, author: str, text: str, base: str) -> Draft:
        """Write `text` over what `author` had typed there before; returns the draft as it was kept."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            row = {"project_id": project_id, "subject": subject, "author": author, "text": text, "base": base}
            insert = self._db.insert_or_replace(drafts, keep=["began_at"]).returning(*drafts.c)
            row_kept = connection.execute(insert, {**row, "began_at": now, "kept_at": now}).one()
            return record_of(Draft, row_kept)

    @read_once
    def of(self, project_id: str, subject: str) -> list[Draft]:
        """What anybody has typed of one text and not saved, the newest first."""
        query = sa.select(drafts).where(*_draft_of(project_id, subject))
        query = query.order_by(drafts.c.kept_at.desc(), drafts.c.author)
        with self._db.read() as connection:
            return [record_of(Draft, row) for row in connection.execute(query)]

    def drop(self, project_id: str, subject: str, authors: Sequence[str]) -> None:
        """Take the drafts of these people away; none there is no error."""
        with self._db.write() as connection:
            connection.execute(sa.delete(drafts).where(*_draft_of(project_id, subject), drafts.c.author.in_(authors)))


def _draft_of(project_id: str, subject: str) -> tuple[sa.ColumnElement[bool], ...]:
    return drafts.c.project_id == project_id, drafts.c.subject == subject
