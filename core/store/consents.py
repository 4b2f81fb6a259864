"""Which endpoints people have allowed imported projects to ask.  No part of what a project hands on."""

from __future__ import annotations

from dataclasses import asdict, replace

import sqlalchemy as sa

from core.people import Actor
from core.store.database import Database
from core.store.rows import ConsentRow
from core.store.schema import consents


class Consents:
    def __init__(self, database: Database) -> None:
        self._db = database

    def give(self, project_id: str, endpoint: str, actor: Actor, *, with_key: bool) -> None:
        """Note that `actor` allows the project to ask `endpoint`; the newest word on an endpoint counts."""
        row = ConsentRow(project_id, endpoint, with_key, actor.name, actor.role, 0.0)
        with self._db.write() as connection:
            row = replace(row, created_at=self._db.now(connection))
            connection.execute(self._db.insert_or_replace(consents), asdict(row))

    def all(self, project_id: str) -> dict[str, ConsentRow]:
        """Endpoint → what was said of it in this project."""
        query = sa.select(consents).where(consents.c.project_id == project_id)
        with self._db.read() as connection:
            found = [ConsentRow(**row._mapping) for row in connection.execute(query)]
        return {row.endpoint: row for row in found}
