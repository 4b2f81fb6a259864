"""What was paid for or computed once, by key: replies of endpoints, numbers of metrics.

Replies lie under the key of their request, which makes a repeated request cost nothing (`ReplyStore`).  Those that this
installation paid for serve everybody, unless they cannot be read: a new run asks those again.  Replies that came with
an imported project are anybody's claim, since a key is a hash of the request and says nothing of the reply: they stay
with the imported runs that were answered so, which never run again.

What a run was answered belongs to the run: `of_run` keeps each answer with whether it was paid for, failures and
unusable replies among them, so that a run that goes on takes the same way to the same result, calls and cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from core.store.database import Database
from core.store.reconnecting import Part
from core.store.schema import blocks, replies, run_replies

_CHUNK = 500  # keys in one IN (…): SQLite takes 32,766 parameters, older builds 999


class Replies(Part):
    """Thread-safe; what `put_replies` was given is committed when it returns."""

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored text, for those that are there."""
        if not keys:
            return {}
        with self._db.read() as connection:
            return _shared(connection, keys)

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store (key, text) pairs that serve everybody; storing a key twice keeps the first."""
        if not new:
            return
        with self._db.write() as connection:
            _keep_shared(self._db, connection, new)

    def of_run(self, run_id: str) -> RunReplies:
        """The replies that a run may use, and those that are its own."""
        return RunReplies(self._db, run_id)


class RunReplies(Part):
    """A `ReplyStore` in the hands of one run, and its `RunAnswers` (`core.providers.cached`)."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._db, self._run_id = database, run_id
        self.counted: set[str] = set()

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored text, of those that serve everybody; they become the run's own."""
        with self._db.read() as connection:
            texts = _shared(connection, keys)
        if texts:
            with self._db.write() as connection:
                self._note(connection, dict.fromkeys(texts), paid=False)
        return texts

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store what the run paid for, in one transaction with what serves everybody; the first answer stays."""
        if not new:
            return
        with self._db.write() as connection:
            shared = _keep_shared(self._db, connection, new)
            self._note(connection, {key: None if key in shared else text for key, text in new}, paid=True)

    def put_failures(self, new: Sequence[tuple[str, str]]) -> None:
        """Store requests that were answered by no reply, with the reason as JSON text."""
        with self._db.write() as connection:
            self._note(connection, dict(new), paid=True)

    def unread(self) -> list[str]:
        """The keys of what was answered by no reply, or by one that cannot be read."""
        mine = sa.and_(run_replies.c.run_id == self._run_id, run_replies.c.body.is_not(None))
        with self._db.read() as connection:
            rows = connection.execute(sa.select(run_replies.c.reply_key, run_replies.c.body).where(mine)).all()
        return [row.reply_key for row in rows if not _serves_everybody(row.body)]

    def forget_unread(self) -> None:
        """Ask again what is `unread`: a person resumes a run that failed, perhaps over one of these."""
        keys, mine = self.unread(), run_replies.c.run_id == self._run_id
        with self._db.write() as connection:
            for start in range(0, len(keys), _CHUNK):
                own = run_replies.c.reply_key.in_(keys[start : start + _CHUNK])
                connection.execute(sa.delete(run_replies).where(mine, own))

    def answered(self, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Key → (stored text, whether this run paid for it), for what the run was answered already."""
        mine = run_replies.c
        query = sa.select(mine.reply_key, mine.paid, mine.body).where(mine.run_id == self._run_id)
        with self._db.read() as connection:
            rows = list(_chosen(connection, query, mine.reply_key, keys))
        texts = self.get_replies([row.reply_key for row in rows if row.body is None])
        answers = {row.reply_key: (row.body or texts.get(row.reply_key, ""), bool(row.paid)) for row in rows}
        return {key: answer for key, answer in answers.items() if answer[0]}

    def _note(self, connection: sa.Connection, texts: dict[str, str | None], *, paid: bool) -> None:
        rows = [{"run_id": self._run_id, "reply_key": k, "paid": paid, "body": text} for k, text in texts.items()]
        connection.execute(self._db.insert_new(run_replies), rows)


def _shared(connection: sa.Connection, keys: Sequence[str]) -> dict[str, str]:
    query = sa.select(replies.c.reply_key, replies.c.body)
    return {row.reply_key: row.body for row in _chosen(connection, query, replies.c.reply_key, keys)}


def _keep_shared(database: Database, connection: sa.Connection, new: Sequence[tuple[str, str]]) -> set[str]:
    """Store the texts that serve everybody; the keys whose stored text is now the one given here."""
    serving = {key: text for key, text in reversed(new) if _serves_everybody(text)}
    there = _shared(connection, list(serving))
    now = database.now(connection)
    rows = [{"reply_key": k, "body": text, "created_at": now} for k, text in serving.items() if k not in there]
    if rows:
        connection.execute(database.insert_new(replies), rows)
    return {key for key, text in serving.items() if there.get(key, text) == text}


def _serves_everybody(text: str) -> bool:
    """Whether a reply can be read: what was cut off, refused, empty or beside the point is asked again by the next
    run."""
    reply = json.loads(text)
    whole = reply.get("finish", "stop") == "stop" and bool(str(reply.get("text", "-")).strip())
    return whole and not reply.get("unread") and "failure" not in reply


def _chosen(connection: sa.Connection, query: sa.Select[Any], column: Any, keys: Sequence[str]) -> Iterator[Any]:
    """Rows of `query` with one of `keys` in `column`, some hundred keys a turn."""
    wanted = list(dict.fromkeys(keys))
    for start in range(0, len(wanted), _CHUNK):
        yield from connection.execute(query.where(column.in_(wanted[start : start + _CHUNK])))


# ── numbers of metrics ───────────────────────────────────────────────────────────────────────────────────────────


class Blocks(Part):
    def get(self, key: str) -> str | None:
        """The text under `key`, or None."""
        with self._db.read() as connection:
            text: str | None = connection.execute(sa.select(blocks.c.body).where(blocks.c.block_key == key)).scalar()
        return text

    def put(self, key: str, text: str) -> None:
        """Keep a text; one that is there already stays."""
        with self._db.write() as connection:
            row = {"block_key": key, "body": text, "created_at": self._db.now(connection)}
            connection.execute(self._db.insert_new(blocks), row)
