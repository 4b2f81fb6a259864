"""Labels that people give in the app: one row for each time somebody saved one, so nothing is ever overwritten.

A label belongs to the pass it was given in.  What a rater thinks now is their newest row of the pass for an item and
aspect.  A form that is sent twice (a lost connection, a double click) carries the same `form` id and is kept once.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import fields

import sqlalchemy as sa

from core.store.database import Database
from core.store.patience import Part
from core.store.rows import LabelRow, NewLabel
from core.store.schema import labels

_COLUMNS = tuple(labels.c[column.name] for column in fields(LabelRow))


class Labels(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self, project_id: str, golden_id: str, pass_id: str, rater: str, new: Sequence[NewLabel], *, form: str
    ) -> None:
        """Keep what one form said (one label an aspect); the same form a second time changes nothing."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            where = {"project_id": project_id, "golden_id": golden_id, "pass_id": pass_id, "rater": rater}
            rows = [
                {
                    **{**where, "form": form, "created_at": now, "taken_from": ""},
                    **{"item_id": label.item_id, "aspect": label.aspect},
                    **{"value": label.value, "comment": label.comment},
                }
                for label in new
            ]
            if rows:
                connection.execute(self._db.insert_new(labels), rows)

    def take_over(self, project_id: str, golden_id: str, pass_id: str, earlier: Sequence[LabelRow]) -> None:
        """Copy labels of earlier passes into a pass, in this order; each says where it came from.  Twice is once."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            rows = [
                {
                    **{"project_id": project_id, "golden_id": golden_id, "pass_id": pass_id, "rater": row.rater},
                    **{"item_id": row.item_id, "aspect": row.aspect, "value": row.value, "comment": row.comment},
                    **{"form": _form_of(pass_id, row), "created_at": now, "taken_from": row.pass_id},
                }
                for row in earlier
            ]
            if rows:
                connection.execute(self._db.insert_new(labels), rows)

    def current(self, project_id: str, pass_id: str, rater: str | None = None) -> list[LabelRow]:
        """The newest label of each rater (or of one) of a pass for each item and aspect, in the order of saving."""
        return self._newest(_of_pass(project_id, pass_id, rater))

    def of_golden(self, project_id: str, golden_id: str) -> list[LabelRow]:
        """As `current`, of all passes over a golden set."""
        return self._newest(sa.and_(labels.c.project_id == project_id, labels.c.golden_id == golden_id))

    def since(self, project_id: str, pass_id: str, rater: str, number: int) -> list[tuple[int, LabelRow]]:
        """What a rater said in a pass after row `number` (0: everything), oldest first, each with its number."""
        where = sa.and_(_of_pass(project_id, pass_id, rater), labels.c.number > number)
        query = sa.select(labels.c.number, *_COLUMNS).where(where).order_by(labels.c.number)
        with self._db.read() as connection:
            return [(number, LabelRow(*rest)) for number, *rest in connection.execute(query)]

    def history(self, project_id: str, pass_id: str, item_id: str) -> list[LabelRow]:
        """Everything ever said of one item in a pass, oldest first."""
        return self._select(sa.and_(_of_pass(project_id, pass_id, None), labels.c.item_id == item_id))

    def raters(self, project_id: str) -> list[str]:
        """The names of all who labelled something in a project, sorted."""
        query = sa.select(labels.c.rater).where(labels.c.project_id == project_id).distinct()
        with self._db.read() as connection:
            return sorted(connection.scalars(query))

    def _newest(self, where: sa.ColumnElement[bool]) -> list[LabelRow]:
        same = (labels.c.pass_id, labels.c.rater, labels.c.item_id, labels.c.aspect)
        return self._select(labels.c.number.in_(sa.select(sa.func.max(labels.c.number)).where(where).group_by(*same)))

    def _select(self, where: sa.ColumnElement[bool]) -> list[LabelRow]:
        query = sa.select(*_COLUMNS).where(where).order_by(labels.c.number)
        with self._db.read() as connection:
            return [LabelRow(*row) for row in connection.execute(query)]


def _of_pass(project_id: str, pass_id: str, rater: str | None) -> sa.ColumnElement[bool]:
    where = sa.and_(labels.c.project_id == project_id, labels.c.pass_id == pass_id)
    return where if rater is None else sa.and_(where, labels.c.rater == rater)


def _form_of(pass_id: str, row: LabelRow) -> str:
    said = f"{pass_id}\0{row.pass_id}\0{row.rater}\0{row.item_id}"
    return f"taken:{uuid.uuid5(uuid.NAMESPACE_OID, said).hex}"
