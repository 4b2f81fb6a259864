"""What was paid for or computed once, by key: replies of endpoints, numbers of metrics; its bytes, and its deletion.

Replies lie under the key of their request, which makes a repeated request cost nothing (`ReplyStore`).  Those that this
installation paid for serve everybody, unless they cannot be read: a new run asks those again.  Replies that came with
an imported project are anybody's claim, since a key is a hash of the request and says nothing of the reply: they stay
with the imported runs that were answered so, which never run again.

What a run was answered belongs to the run: `of_run` stores each answer with whether it was paid for, failures and
unusable replies among them, so that a resumed run takes the same way to the same result, calls and cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from core.project_records import FINISHED, RESUMABLE
from core.store.database import Database, StorePart, Transaction, in_chunks, in_our_words
from core.store.schema import blocks, documents, metadata, replies, run_replies, runs, scores


class Replies(StorePart):
    """Thread-safe; what `put_replies` was given is committed when it returns."""

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored text, for those that are there."""
        if not keys:
            return {}
        with self._db.read() as transaction:
            return _shared(transaction, keys)

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store (key, text) pairs that serve everybody; storing a key twice keeps the first."""
        if new:
            with self._db.write() as transaction:
                _share(transaction, new)

    def of_run(self, run_id: str) -> RunReplies:
        """The replies that a run may use, and those that are its own."""
        return RunReplies(self._db, run_id)


class RunReplies(StorePart):
    """A `ReplyStore` in the hands of one run, and its `RunAnswers` (`core.providers.cached`)."""

    def __init__(self, database: Database, run_id: str) -> None:
        super().__init__(database)
        self._run_id = run_id
        self.counted: set[str] = set()

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored text, of those that serve everybody; they become the run's own."""
        with self._db.read() as transaction:
            texts = _shared(transaction, keys)
        if texts:
            self._note(dict.fromkeys(texts), paid=False)
        return texts

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store what the run paid for, in one transaction with what serves everybody; the first answer stays."""
        if new:
            with self._db.joining():
                with self._db.write() as transaction:
                    shared = _share(transaction, new)
                self._note({key: None if key in shared else text for key, text in new}, paid=True)

    def put_failures(self, new: Sequence[tuple[str, str]]) -> None:
        """Store requests that were answered by no reply, with the reason as JSON text."""
        self._note(dict(new), paid=True)

    def unread(self) -> list[str]:
        """The keys of what was answered by no reply, or by one that cannot be read."""
        query = sa.select(run_replies).filter_by(run_id=self._run_id).where(run_replies.c.body.is_not(None))
        return [row.reply_key for row in self._db.rows(query) if not _serves_everybody(row.body)]

    def forget_unread(self) -> None:
        """Ask again what is `unread`: a person resumes a run that failed, perhaps over one of these."""
        with self._db.write() as transaction:
            for keys in in_chunks(self.unread()):
                own = sa.delete(run_replies).filter_by(run_id=self._run_id)
                transaction.execute(own.where(run_replies.c.reply_key.in_(keys)))

    def answered(self, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Key → (stored text, whether this run paid for it), for what the run was answered already."""
        query = sa.select(run_replies).filter_by(run_id=self._run_id)
        with self._db.read() as transaction:
            rows = list(_chosen(transaction, query, run_replies.c.reply_key, keys))
        texts = self.get_replies([row.reply_key for row in rows if row.body is None])
        answers = {row.reply_key: (row.body or texts.get(row.reply_key, ""), bool(row.paid)) for row in rows}
        return {key: answer for key, answer in answers.items() if answer[0]}

    def _note(self, texts: dict[str, str | None] | dict[str, str], *, paid: bool) -> None:
        rows = [{"run_id": self._run_id, "reply_key": k, "paid": paid, "body": text} for k, text in texts.items()]
        with self._db.write() as transaction:
            transaction.insert_new(run_replies, rows)


def _shared(transaction: Transaction, keys: Sequence[str]) -> dict[str, str]:
    query = sa.select(replies.c.reply_key, replies.c.body)
    return {row.reply_key: row.body for row in _chosen(transaction, query, replies.c.reply_key, keys)}


def _share(transaction: Transaction, new: Sequence[tuple[str, str]]) -> set[str]:
    """Store the texts that serve everybody; the keys whose stored text is now the one given here."""
    serving = {key: text for key, text in reversed(new) if _serves_everybody(text)}
    there, now = _shared(transaction, list(serving)), transaction.now
    rows = [{"reply_key": k, "body": text, "created_at": now} for k, text in serving.items() if k not in there]
    transaction.insert_new(replies, rows)
    return {key for key, text in serving.items() if there.get(key, text) == text}


def _serves_everybody(text: str) -> bool:
    """Whether a reply can be read.  The next run asks again for one that was cut off, refused or empty."""
    reply = json.loads(text)
    whole = reply.get("finish", "stop") == "stop" and bool(str(reply.get("text", "-")).strip())
    return whole and not reply.get("unread") and "failure" not in reply


def _chosen(transaction: Transaction, query: sa.Select[Any], column: Any, keys: Sequence[str]) -> Iterator[Any]:
    """Rows of `query` with one of `keys` in `column`."""
    for some in in_chunks(dict.fromkeys(keys)):
        yield from transaction.rows(query.where(column.in_(some)))


# ── numbers of metrics ───────────────────────────────────────────────────────────────────────────────────────────


class MetricBlocks(StorePart):
    def get(self, key: str) -> str | None:
        """The text under `key`, or None."""
        row = self._db.row(sa.select(blocks).filter_by(block_key=key))
        return None if row is None else row.body

    def put(self, key: str, text: str) -> None:
        """Store a text; one that is there already stays."""
        with self._db.write() as transaction:
            transaction.insert_new(blocks, {"block_key": key, "body": text, "created_at": transaction.now})


# ── what takes room ──────────────────────────────────────────────────────────────────────────────────────────────────


_HELD: dict[str, tuple[sa.Table, ...]] = {
    "replies": (replies, run_replies),
    "results of runs": (documents, scores),
    "metric values": (blocks,),
}


@dataclass(frozen=True, slots=True)
class StoredSize:
    """`n` rows of about `n_bytes` in all; `oldest_at` in seconds since 1970, None where no date is kept."""

    what: str
    n: int
    n_bytes: int
    oldest_at: float | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """Replies that are old: what it took to get them, and so what asking again would take."""

    n: int
    n_bytes: int
    prompt_tokens: int
    completion_tokens: int


class Upkeep(StorePart):
    def held(self) -> tuple[StoredSize, ...]:
        """What takes room, the largest first; the rest of the tables are labels, texts and the log, under one name."""
        with self._db.read() as transaction:
            listed = [_held(transaction, what, tables) for what, tables in _HELD.items()]
            named = {table.name for tables in _HELD.values() for table in tables}
            rest = tuple(table for table in metadata.sorted_tables if table.name not in named)
            listed.append(_held(transaction, "golden sets, criteria, labels and the log", rest))
        return tuple(sorted(listed, key=lambda held: -held.n_bytes))

    def prune_replies(self, before: float, *, delete: bool = False) -> Pruned:
        """Delete replies that came before a time; without `delete` only count them.

        Replies of runs that have not ended, or that can be resumed, stay.  Scores, criteria and reports stay: only the
        models' own words are lost, and would have to be asked for again.
        """
        over = [status for status in FINISHED if status not in RESUMABLE]
        unfinished = sa.select(runs.c.run_id).where(runs.c.status.not_in(over))
        needed = sa.select(run_replies.c.reply_key).where(run_replies.c.run_id.in_(unfinished))
        n = n_bytes = prompt_tokens = completion_tokens = 0
        with self._db.write() as transaction:
            key = replies.c.reply_key
            old = transaction.rows(sa.select(key).where(key.not_in(needed), replies.c.created_at < before))
            for some in in_chunks([row.reply_key for row in old]):
                for row in transaction.rows(sa.select(replies.c.body).where(key.in_(some))):
                    usage = json.loads(row.body).get("usage") or {}
                    n, n_bytes = n + 1, n_bytes + len(row.body)
                    prompt_tokens += int(usage.get("prompt_tokens", 0))
                    completion_tokens += int(usage.get("completion_tokens", 0))
                if delete:
                    transaction.execute(sa.delete(replies).where(key.in_(some)))
                    transaction.execute(sa.delete(run_replies).where(run_replies.c.reply_key.in_(some)))
        return Pruned(n, n_bytes, prompt_tokens, completion_tokens)

    def shrink(self) -> None:
        """Give the room of deleted rows back to the disk; a server does that by itself."""
        if self._db.is_sqlite:  # VACUUM takes no transaction
            with in_our_words(self._db.folder), closing(self._db.engine.raw_connection()) as connection:
                connection.cursor().execute("VACUUM")


def _held(transaction: Transaction, what: str, tables: tuple[sa.Table, ...]) -> StoredSize:
    n = n_bytes = 0
    oldest: list[float] = []
    for table in tables:
        lengths = [
            sa.func.coalesce(sa.func.sum(sa.func.length(column, type_=sa.Integer)), 0)
            for column in table.columns
            if isinstance(column.type, sa.Text | sa.LargeBinary | sa.types.TypeDecorator)
        ]
        since = [sa.func.min(table.c.created_at)] if "created_at" in table.c else []
        row = transaction.execute(sa.select(sa.func.count(), *since, *lengths).select_from(table)).one()
        n += int(row[0]) if table is not run_replies else 0  # which run was answered by which is no reply more
        n_bytes += sum(int(size) for size in row[1 + len(since) :])
        oldest += [float(row[1])] if since and row[1] is not None else []
    return StoredSize(what, n, n_bytes, min(oldest) if oldest else None)
