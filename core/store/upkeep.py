"""What the store holds in bytes, what can go because it can be asked again, and a copy of all of it in one file.

A backup is a SQLite file with the same tables, whatever database it was made of, so it also carries an installation
from one kind of database to the other.  It is made while everything runs, as of one moment.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from core.errors import NotFoundError, StoreError
from core.files import saving
from core.project_records import FINISHED, RESUMABLE
from core.store.database import Database, in_our_words
from core.store.reconnecting import Part, only_once
from core.store.schema import blocks, documents, metadata, project_replies, replies, run_replies, runs, scores, workers

_CHUNK = 500
_HELD: dict[str, tuple[sa.Table, ...]] = {
    "replies": (replies, project_replies, run_replies),
    "results of runs": (documents, scores),
    "metric values": (blocks,),
}


@dataclass(frozen=True, slots=True)
class Held:
    """`n` rows of about `n_bytes` in all; `oldest_at` in seconds since 1970, None where no date is kept."""

    what: str
    n: int
    n_bytes: int
    oldest_at: float | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """Replies that went, or would go: what it took to get them, and so what asking again would take."""

    n: int = 0
    n_bytes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Upkeep(Part):
    def held(self) -> tuple[Held, ...]:
        """What takes room, the largest first; the rest of the tables are labels, texts and the log, under one name."""
        with self._db.read() as connection:
            listed = [_held(connection, what, tables) for what, tables in _HELD.items()]
            named = {table.name for tables in _HELD.values() for table in tables}
            rest = tuple(table for table in metadata.sorted_tables if table.name not in named)
            listed.append(_held(connection, "golden sets, criteria, labels and the log", rest))
        return tuple(sorted(listed, key=lambda held: -held.n_bytes))

    @only_once
    def prune_replies(self, *, before: float | None = None, project_id: str = "", really: bool = False) -> Pruned:
        """Let go of replies that came before a time, or that only the runs of a project were answered with, or both.

        Replies of runs that have not ended, or that can be resumed, stay.  Without `really` nothing goes.
        Scores, criteria and reports stay: only the models' own words are lost, and would have to be asked for again.
        """
        removed = Pruned()
        with self._db.write() as connection:
            for table, keys in _prunable(connection, before, project_id):
                for start in range(0, len(keys), _CHUNK):
                    chosen: sa.ColumnElement[bool] = table.c.reply_key.in_(keys[start : start + _CHUNK])
                    if table is project_replies and project_id:
                        chosen = sa.and_(chosen, table.c.project_id == project_id)
                    for text in connection.execute(sa.select(table.c.body).where(chosen)).scalars():
                        removed = _counted(removed, text)
                    if really:
                        connection.execute(sa.delete(table).where(chosen))
                        own = run_replies.c.reply_key.in_(keys[start : start + _CHUNK])
                        connection.execute(sa.delete(run_replies).where(own))
        return removed

    def copy_to(self, path: Path) -> int:
        """Write everything, as of now, into a new SQLite file; its size in bytes.  StoreError where it cannot be."""
        with saving(path, StoreError) as unfinished, tempfile.TemporaryDirectory(dir=path.parent) as folder:
            copy = Path(folder, "backup.sqlite")
            if self._db.is_sqlite:
                self._alone("VACUUM INTO ?", str(copy))
            else:
                with closing(Database(f"sqlite:///{copy}")) as backup:
                    _carry(self._db, backup)
            copy.chmod(0o600)
            copy.replace(unfinished)
        return path.stat().st_size

    def shrink(self) -> None:
        """Give the room of what went back to the disk; a server does that by itself."""
        if self._db.is_sqlite:
            self._alone("VACUUM")

    def _alone(self, statement: str, *arguments: str) -> None:
        """A statement of SQLite's that no transaction may hold."""
        with in_our_words(self._db.folder), closing(self._db.engine.raw_connection()) as connection:
            connection.cursor().execute(statement, arguments)

    @only_once
    def take_from(self, path: Path) -> int:
        """Fill this store, which must be empty, with a backup; how many projects came.

        NotFoundError where there is no such file; StoreError for what is no backup, or that of a newer Concord, and
        where something is kept here already.
        """
        if not path.is_file():
            raise NotFoundError(f"There is no file {path}.")
        self._require_empty()
        with tempfile.TemporaryDirectory(prefix="concord-restore-") as folder:
            copy = Path(folder, "backup.sqlite")
            shutil.copyfile(path, copy)
            with closing(Database(f"sqlite:///{copy}")) as backup:  # brought to this schema; the file stays as it is
                return _carry(backup, self._db)

    def _require_empty(self) -> None:
        with self._db.read() as connection:
            for table in metadata.sorted_tables:
                if table is not workers and connection.execute(sa.select(sa.literal(1)).select_from(table)).first():
                    raise StoreError(
                        "This store is not empty, and a backup is never mixed with what is there. Set CONCORD_HOME or "
                        "CONCORD_DATABASE_URL to a new place and restore there."
                    )


def _held(connection: sa.Connection, what: str, tables: tuple[sa.Table, ...]) -> Held:
    n = n_bytes = 0
    oldest: list[float] = []
    for table in tables:
        lengths = [
            sa.func.coalesce(sa.func.sum(sa.func.length(column, type_=sa.Integer)), 0)
            for column in table.columns
            if isinstance(column.type, sa.Text | sa.LargeBinary | sa.types.TypeDecorator)
        ]
        since = [sa.func.min(table.c.created_at)] if "created_at" in table.c else []
        row = connection.execute(sa.select(sa.func.count(), *since, *lengths).select_from(table)).one()
        n += int(row[0]) if table is not run_replies else 0  # which run was answered by which is no reply more
        n_bytes += sum(int(size) for size in row[1 + len(since) :])
        oldest += [float(row[1])] if since and row[1] is not None else []
    return Held(what, n, n_bytes, min(oldest) if oldest else None)


def _prunable(connection: sa.Connection, before: float | None, project_id: str) -> Iterator[tuple[sa.Table, list[str]]]:
    """The keys of what may go: of everybody's replies, then of those that came with a project."""
    over = [status for status in FINISHED if status not in RESUMABLE]
    unfinished = sa.select(runs.c.run_id).where(runs.c.status.not_in(over))
    used = sa.select(run_replies.c.reply_key)
    for table in (replies, project_replies):
        key = table.c.reply_key
        query = sa.select(key).distinct().where(key.not_in(used.where(run_replies.c.run_id.in_(unfinished))))
        if before is not None:
            query = query.where(table.c.created_at < before)
        if project_id:
            query = query.where(_of_project_alone(table, project_id))
        yield table, list(connection.execute(query).scalars())


def _of_project_alone(table: sa.Table, project_id: str) -> sa.ColumnElement[bool]:
    """Which replies no other project's run was answered with."""
    if table is project_replies:
        return table.c.project_id == project_id
    used = sa.select(run_replies.c.reply_key).join(runs, runs.c.run_id == run_replies.c.run_id)
    inside, outside = used.where(runs.c.project_id == project_id), used.where(runs.c.project_id != project_id)
    return sa.and_(table.c.reply_key.in_(inside), table.c.reply_key.not_in(outside))


def _counted(so_far: Pruned, text: str) -> Pruned:
    usage = json.loads(text).get("usage") or {}
    return Pruned(
        so_far.n + 1,
        so_far.n_bytes + len(text),
        so_far.prompt_tokens + int(usage.get("prompt_tokens", 0)),
        so_far.completion_tokens + int(usage.get("completion_tokens", 0)),
    )


def _carry(source: Database, target: Database) -> int:
    """Copy every row, those that others refer to first; how many projects there are.  Workers stay where they run."""
    n_projects = 0
    with source.snapshot() as reading, target.write() as writing:
        for table in metadata.sorted_tables:
            if table is workers:
                continue
            rows = reading.execution_options(yield_per=_CHUNK).execute(sa.select(table)).mappings()
            for part in rows.partitions(_CHUNK):
                writing.execute(sa.insert(table), [dict(row) for row in part])
                n_projects += len(part) if table.name == "projects" else 0
            if not target.is_sqlite and "number" in table.primary_key.columns:
                _count_on(writing, table)
    return n_projects


def _count_on(connection: sa.Connection, table: sa.Table) -> None:
    """Postgres numbers new rows by a sequence, which knows nothing of rows that came with their number."""
    highest = connection.execute(sa.select(sa.func.max(table.c.number))).scalar()
    if highest is not None:
        sequence = sa.func.pg_get_serial_sequence(table.name, "number")
        connection.execute(sa.select(sa.func.setval(sequence, highest)))
