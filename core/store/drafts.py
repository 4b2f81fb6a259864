"""Texts that people are typing and have not saved: one row for each text and person, overwritten at every pause.

They are nobody's record: a version saved from one is.  So they are not logged, and they do not leave with a project.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import sqlalchemy as sa

from core.store.database import Database
from core.store.patience import Part
from core.store.rows import DraftRow
from core.store.schema import drafts


class Drafts(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def keep(self, project_id: str, subject: str, author: str, text: str, base: str) -> DraftRow:
        """Write `text` over what `author` had typed there before; returns the row as it was kept."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            row = DraftRow(project_id, subject, author, text, base, began_at=now, kept_at=now)
            insert = self._db.insert_or_replace(drafts, keep=["began_at"]).returning(drafts.c.began_at)
            began_at = connection.execute(insert, asdict(row)).scalar_one()
            return replace(row, began_at=began_at)

    def of(self, project_id: str, subject: str) -> list[DraftRow]:
        """What anybody has typed of one text and not saved, the newest first."""
        query = sa.select(drafts).where(*_of(project_id, subject)).order_by(drafts.c.kept_at.desc(), drafts.c.author)
        with self._db.read() as connection:
            return [DraftRow(**row._mapping) for row in connection.execute(query)]

    def drop(self, project_id: str, subject: str, authors: Sequence[str]) -> None:
        """Take the drafts of these people away; none there is no error."""
        with self._db.write() as connection:
            connection.execute(sa.delete(drafts).where(*_of(project_id, subject), drafts.c.author.in_(authors)))


def _of(project_id: str, subject: str) -> tuple[sa.ColumnElement[bool], ...]:
    return drafts.c.project_id == project_id, drafts.c.subject == subject
