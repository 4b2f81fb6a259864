"""Numbers computed once, by the content of what they were computed from: another run, or host, finds them."""

from __future__ import annotations

import sqlalchemy as sa

from core.store.database import Database
from core.store.patience import Part
from core.store.schema import blocks


class Blocks(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, key: str) -> str | None:
        """The text under `key`, or None."""
        with self._db.read() as connection:
            found: str | None = connection.execute(sa.select(blocks.c.body).where(blocks.c.block_key == key)).scalar()
        return found

    def put(self, key: str, text: str) -> None:
        """Keep a text; one that is there already stays."""
        with self._db.write() as connection:
            row = {"block_key": key, "body": text, "created_at": self._db.now(connection)}
            connection.execute(self._db.insert_new(blocks), row)
