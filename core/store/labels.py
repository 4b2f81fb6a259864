"""Store the labels that raters save in labelling passes, and drafts of unsaved texts.

*Labels*: every save adds rows, and nothing is overwritten. In each pass, only a rater's newest row for an item and
aspect counts. A form that is sent twice (a lost connection, a double click) has the same `form` id, and is stored once.

*Drafts* are overwritten whenever the user pauses typing. They are neither logged nor exported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from core.project_records import moment
from core.store.database import StorePart, drafts, given, labels, record_of, row_of
from core.store.log import UNWRITTEN

REMARK = ""
"""Replaces the aspect for a comment on the whole item."""
WITHDRAWN = "undone:"
"""Prefix of the form id of a row that withdraws a label."""


@dataclass(frozen=True, slots=True)
class Label:
    """A rater's label of one item on one aspect in a pass.

    Attributes:
        value: None if the rater saw the item but could not give a label.
        number: Later labels have larger numbers; 0 until the label is saved.
        at: Time of saving; a time in 1970 until the label is saved.
        form: Id of the form that was sent.
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
        """Whether this label withdraws the rater's previous label, so that the item is unlabelled on this aspect."""
        return self.form.startswith(WITHDRAWN)


class LabelStore(StorePart):
    def add(self, project_id: str, golden_id: str, new: Sequence[Label], *, form: str) -> None:
        """Store the labels of one form, at most one per aspect. Storing a form again changes nothing."""
        same = {"project_id": project_id, "golden_id": golden_id, "form": form}
        with self._db.write() as transaction:
            transaction.insert_new(labels, [row_of(labels, label, **same) for label in new])

    def current(self, project_id: str, pass_id: str, rater: str | None = None) -> list[Label]:
        """Return the newest label of each rater for each item and aspect in a pass, in the order saved.

        Withdrawn labels are left out. With `rater`, only this rater's labels are returned.
        """
        same = (labels.c.pass_id, labels.c.rater, labels.c.item_id, labels.c.aspect)
        where = {"project_id": project_id, "pass_id": pass_id} | given(rater=rater)
        newest = sa.select(sa.func.max(labels.c.number)).filter_by(**where).group_by(*same)
        found = self._select(sa.select(labels).where(labels.c.number.in_(newest)))
        return [label for label in found if not label.is_withdrawn]

    def history(self, project_id: str, pass_id: str, rater: str) -> list[Label]:
        """Return all labels of a rater in a pass, oldest first."""
        return self._select(sa.select(labels).filter_by(project_id=project_id, pass_id=pass_id, rater=rater))

    def _select(self, query: sa.Select[Any]) -> list[Label]:
        rows = self._db.rows(query.order_by(labels.c.number))
        return [record_of(Label, row, at=moment(row.created_at)) for row in rows]


# ── drafts ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Draft:
    """Unsaved text of an author ("" = unknown) on a subject such as "criteria:ID".

    `base` is the version that the text started from (`CriteriaEntry.head`), so that a save detects a newer version.
    """

    subject: str
    author: str
    text: str
    base: str
    kept_at: datetime


class Drafts(StorePart):
    def keep(self, project_id: str, subject: str, author: str, text: str, base: str) -> Draft:
        """Overwrite the author's draft of a subject, and return it as stored."""
        key = {"project_id": project_id, "subject": subject, "author": author}
        with self._db.write() as transaction:
            now = transaction.now
            row = key | {"text": text, "base": base, "began_at": now, "kept_at": now}
            transaction.upsert(drafts, row, keep="began_at")
            return record_of(Draft, transaction.execute(sa.select(drafts).filter_by(**key)).one())

    def get(self, project_id: str, subject: str, author: str) -> Draft | None:
        """Return the author's draft of a subject, or None."""
        row = self._db.row(sa.select(drafts).filter_by(project_id=project_id, subject=subject, author=author))
        return None if row is None else record_of(Draft, row)

    def drop(self, project_id: str, subject: str, author: str) -> None:
        """Delete the author's draft of a subject, if there is one."""
        with self._db.write() as transaction:
            own = sa.delete(drafts).filter_by(project_id=project_id, subject=subject, author=author)
            transaction.execute(own)
