"""Replies of endpoints by request key: what makes a repeated request cost nothing.  Implements `ReplyStore`.

Replies that this installation paid for serve everybody.  Replies that came with an imported project are anybody's
claim, since a key is a hash of the request and says nothing of the reply: they serve that project's runs alone.
`of_run` gives a run its replies, and notes which it asked for, so that they can leave with its project.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from core.store.database import Database
from core.store.patience import Part
from core.store.schema import project_replies, replies, run_replies

_CHUNK = 500  # keys in one IN (…): SQLite takes 32,766 parameters, older builds 999


class Replies(Part):
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
            for chunk in _chunks(wanted):
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

    def of_run(self, run_id: str, project_id: str) -> RunReplies:
        """The replies that a run may use: everybody's, and those that came with its project."""
        return RunReplies(self._db, self, run_id, project_id)


class RunReplies(Part):
    """A `ReplyStore` in the hands of one run."""

    def __init__(self, database: Database, shared: Replies, run_id: str, project_id: str) -> None:
        self._db, self._shared = database, shared
        self._run_id, self._project_id = run_id, project_id

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored text, for those that are there; everybody's before those that came with the project."""
        found = self._shared.get_replies(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        own = project_replies.c
        query = sa.select(own.reply_key, own.body).where(own.project_id == self._project_id)
        with self._db.read() as connection:
            for chunk in _chunks(missing):
                rows = connection.execute(query.where(own.reply_key.in_(chunk)))
                found.update((row.reply_key, row.body) for row in rows)
        self._note(list(found))
        return found

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """As `Replies.put_replies`."""
        self._shared.put_replies(new)
        self._note([key for key, _ in new])

    def _note(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        rows = [{"run_id": self._run_id, "reply_key": key} for key in keys]
        with self._db.write() as connection:
            connection.execute(self._db.insert_new(run_replies), rows)


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]
