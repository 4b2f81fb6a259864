"""What the store holds in bytes, and deleting of what can be asked again."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass

import sqlalchemy as sa

from core.project_records import FINISHED, RESUMABLE
from core.store.database import StorePart, Transaction, in_chunks
from core.store.driver_errors import in_our_words
from core.store.schema import blocks, documents, metadata, replies, run_replies, runs, scores

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
