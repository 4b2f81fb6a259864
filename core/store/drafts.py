"""Texts that people are typing and have not saved: one row for each text and person, overwritten at every pause.

They are nobody's record: a version saved from one is.  So they are not logged, and they do not leave with a project.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from core.review.criteria import Draft
from core.store.database import Database
from core.store.patience import Part
from core.store.schema import drafts

_COLUMNS = tuple(column for column in drafts.c if column.name != "project_id")


class Drafts(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def keep(self, project_id: str, subject: str, author: str, text: str, base: str) -> Draft:
        """Write `text` over what `author` had typed there before; returns the draft as it was kept."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            row = {"project_id": project_id, "subject": subject, "author": author, "text": text, "base": base}
            insert = self._db.insert_or_replace(drafts, keep=["began_at"]).returning(*_COLUMNS)
            return _draft(connection.execute(insert, {**row, "began_at": now, "kept_at": now}).one())

    def of(self, project_id: str, subject: str) -> list[Draft]:
        """What anybody has typed of one text and not saved, the newest first."""
        query = sa.select(*_COLUMNS).where(*_of(project_id, subject)).order_by(drafts.c.kept_at.desc(), drafts.c.author)
        with self._db.read() as connection:
            return [_draft(row) for row in connection.execute(query)]

    def drop(self, project_id: str, subject: str, authors: Sequence[str]) -> None:
        """Take the drafts of these people away; none there is no error."""
        with self._db.write() as connection:
            connection.execute(sa.delete(drafts).where(*_of(project_id, subject), drafts.c.author.in_(authors)))


def _of(project_id: str, subject: str) -> tuple[sa.ColumnElement[bool], ...]:
    return drafts.c.project_id == project_id, drafts.c.subject == subject


def _draft(row: sa.Row[Any]) -> Draft:
    began_at, kept_at = (datetime.fromtimestamp(at, UTC) for at in (row.began_at, row.kept_at))
    return Draft(row.subject, row.author, row.text, row.base, began_at, kept_at)
