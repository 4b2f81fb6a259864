"""Labels that people give in the app: one row for each time somebody saved one, so nothing is ever overwritten.

What a rater thinks now is their newest row for an item and aspect.  A form that is sent twice (a lost connection, a
double click) carries the same `form` id and is kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from core.store.database import Database
from core.store.rows import LabelRow, NewLabel
from core.store.schema import labels

_COLUMNS = tuple(labels.c[one.name] for one in fields(LabelRow))


class Labels:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, project_id: str, golden_id: str, rater: str, form: str, new: Sequence[NewLabel]) -> None:
        """Keep what one form said (one label an aspect); the same form a second time changes nothing."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            where = {"project_id": project_id, "golden_id": golden_id, "rater": rater, "form": form, "created_at": now}
            rows = [
                {**where, "item_id": one.item_id, "aspect": one.aspect, "value": one.value, "comment": one.comment}
                for one in new
            ]
            if rows:
                connection.execute(self._db.insert_new(labels), rows)

    def current(self, project_id: str, golden_id: str, rater: str | None = None) -> list[LabelRow]:
        """The newest label of each rater (or of one) for each item and aspect, in the order they were saved."""
        newest = (
            sa.select(sa.func.max(labels.c.number))
            .where(*_of(project_id, golden_id, rater))
            .group_by(labels.c.rater, labels.c.item_id, labels.c.aspect)
        )
        return self._select(labels.c.number.in_(newest))

    def since(self, project_id: str, golden_id: str, rater: str, number: int) -> list[tuple[int, LabelRow]]:
        """What a rater said of a golden set after row `number` (0: everything), oldest first, each with its number."""
        where = sa.and_(*_of(project_id, golden_id, rater), labels.c.number > number)
        query = sa.select(labels.c.number, *_COLUMNS).where(where).order_by(labels.c.number)
        with self._db.read() as connection:
            return [(number, LabelRow(*rest)) for number, *rest in connection.execute(query)]

    def history(self, project_id: str, golden_id: str, item_id: str) -> list[LabelRow]:
        """Everything ever said of one item, oldest first."""
        return self._select(sa.and_(*_of(project_id, golden_id, None), labels.c.item_id == item_id))

    def raters(self, project_id: str) -> list[str]:
        """The names of all who labelled something in a project, sorted."""
        query = sa.select(labels.c.rater).where(labels.c.project_id == project_id).distinct()
        with self._db.read() as connection:
            return sorted(connection.scalars(query))

    def _select(self, where: sa.ColumnElement[bool]) -> list[LabelRow]:
        query = sa.select(*_COLUMNS).where(where).order_by(labels.c.number)
        with self._db.read() as connection:
            return [LabelRow(*row) for row in connection.execute(query)]


def _of(project_id: str, golden_id: str, rater: str | None) -> list[Any]:
    where = [labels.c.project_id == project_id, labels.c.golden_id == golden_id]
    return where if rater is None else [*where, labels.c.rater == rater]
