"""Replies of endpoints by request key: what makes a repeated request cost nothing.  Implements `ReplyStore`."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from core.store.database import Database
from core.store.schema import replies

_CHUNK = 500  # keys in one IN (…): SQLite takes 32,766 parameters, older builds 999


class Replies:
    """Thread-safe; what `put_replies` was given is committed when it returns."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored text, for those that are there."""
        found: dict[str, str] = {}
        wanted = list(dict.fromkeys(keys))
        if not wanted:
            return found
        query = sa.select(replies.c.reply_key, replies.c.body)
        with self._db.read() as connection:
            for start in range(0, len(wanted), _CHUNK):
                chunk = wanted[start : start + _CHUNK]
                rows = connection.execute(query.where(replies.c.reply_key.in_(chunk)))
                found.update((row.reply_key, row.body) for row in rows)
        return found

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store (key, text) pairs; storing a key twice keeps the first."""
        if not new:
            return
        with self._db.write() as connection:
            now = self._db.now(connection)
            rows = [{"reply_key": key, "body": body, "created_at": now} for key, body in new]
            connection.execute(self._db.insert_new(replies), rows)
