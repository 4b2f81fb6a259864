"""One engine per database: connections, transactions, the schema's version, and errors put in our words.

SQLite runs in WAL mode (readers never wait for the writer), waits up to 15 s for another writer, and is durable
against a killed process (`synchronous=NORMAL`: a power cut may take the last transactions, never the file).
A write transaction takes SQLite's write lock at its start, so two processes never deadlock half-way.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from core.errors import LostConnectionError, StoreError, StoreFullError
from core.owner_only import make_private
from core.project_records import moment
from core.store.reconnecting import is_lost, number_of, refusal, say_in_log, was_committed
from core.store.schema import HEAD
from core.store.unchanged import Readings

T = TypeVar("T")
_BUSY_MS = 15_000
_WRITE = "concord_write"
_MIGRATION_LOCK = 0x636F6E63  # "conc": the advisory lock of Postgres that one migrating process holds


def sqlalchemy_url(url: str) -> sa.URL:
    """`url` (sqlite:///…, postgres://… or postgresql://…) with our drivers.  StoreError for anything else."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise StoreError(
            "The database URL cannot be read; it looks like sqlite:///path or postgresql://user@host/name."
        ) from error
    dialect = parsed.get_backend_name()
    if dialect == "sqlite":
        return parsed
    if dialect in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise StoreError(f"The database URL names {dialect!r}; sqlite and postgresql are supported.")


def record_of(kind: type[T], row: sa.Row[Any], **other: Any) -> T:
    """The record of type `kind` with the columns of `row` that are named as its fields, and `other`.

    Seconds since 1970 (columns `…_at`) become UTC; 0, of a worker that signed off, becomes None.
    """
    hashable: Any = kind
    columns = row._mapping
    values = {name: columns[name] for name in _field_names(hashable) if name in columns and name not in other}
    times = {name: moment(value) if value else None for name, value in values.items() if name.endswith("_at")}
    return kind(**values | times | other)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


class Database:
    """Transactions on one database; thread-safe, one per process."""

    def __init__(self, url: str) -> None:
        """Connect and bring the schema to `HEAD`.  StoreError where that is impossible."""
        parsed = sqlalchemy_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            _make_folder(parsed)
        self.folder = Path(str(parsed.database)).parent if self.is_sqlite else None
        self.engine = _engine(parsed, self.is_sqlite)
        self.readings: Readings | None = None
        self.say_waiting: Callable[[], None] = say_in_log
        self._joined = threading.local()
        try:
            self._migrate()
            if self.is_sqlite:
                self.readings = Readings(str(parsed.database))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.engine.dispose()
        if self.readings is not None:
            self.readings.close()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A read-only look at the database; of Postgres at the moment of each query, with no transaction around it.

        Its usual transaction would show each query its own moment too, for two more ways to the server and back.
        """
        if (joined := self.joined) is not None:
            yield joined
            return
        options: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        with (
            in_our_words(self.folder),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """As `read`, for many queries that must all see the same moment."""
        options: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with (
            in_our_words(self.folder),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction: committed whole at the end, or not at all.

        Within another one (`joining`) it is a part of that.  LostConnectionError where the database went away and it
        was not committed; StoreError where nobody can tell.
        """
        if (joined := self.joined) is not None:
            yield joined
            return
        options, number = {_WRITE: True}, None
        with in_our_words(self.folder):
            try:
                with self.engine.connect().execution_options(**options) as connection, connection.begin():
                    yield connection
                    number = None if self.is_sqlite else number_of(connection)
            except sa.exc.DBAPIError as error:
                if number is None or not is_lost(error) or not was_committed(self.engine, number, self.say_waiting):
                    raise

    @contextmanager
    def joining(self) -> Iterator[None]:
        """A transaction that every `read` and `write` of this thread within it is a part of."""
        with self.write() as connection:
            self._joined.connection = connection
            try:
                yield
            finally:
                self._joined.connection = None

    @property
    def joined(self) -> sa.Connection | None:
        """The connection of the transaction that this thread is `joining`, if it is."""
        return getattr(self._joined, "connection", None)

    def now(self, connection: sa.Connection) -> float:
        """Seconds since 1970 by the clock that all workers share: the database's, or this machine's for a file.

        SQLite's own clock counts whole milliseconds, and two transactions fit into one: what is listed by its time
        would then come in any order.
        """
        return time.time() if self.is_sqlite else float(connection.execute(sa.text(_POSTGRES_CLOCK)).scalar_one())

    def insert_new(self, table: sa.Table) -> Any:
        """INSERT that leaves a row with the same key as it is."""
        return self._insert(table).on_conflict_do_nothing()

    def insert_or_replace(self, table: sa.Table, keep: Sequence[str] = ()) -> Any:
        """INSERT that overwrites a row with the same key, all but its key and the columns named in `keep`."""
        insert = self._insert(table)
        keys = [column.name for column in table.primary_key]
        changed = {c.name: insert.excluded[c.name] for c in table.columns if c.name not in (*keys, *keep)}
        return insert.on_conflict_do_update(index_elements=keys, set_=changed)

    def _insert(self, table: sa.Table) -> Any:
        if self.is_sqlite:
            from sqlalchemy.dialects import sqlite

            return sqlite.insert(table)
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)

    # ── the schema's version ─────────────────────────────────────────────────────────────────────────────────

    def _migrate(self) -> None:
        with self.read() as connection:
            if _version(connection) == HEAD:
                return
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            if _version(connection) != HEAD:
                upgrade(connection)


MIGRATIONS = Path(__file__).with_name("migrations")
_POSTGRES_CLOCK = "SELECT extract(epoch FROM clock_timestamp())"


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    value = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if value is None else str(value)


def upgrade(connection: sa.Connection, to: str = "head") -> None:
    """Run the numbered migrations up to `to` inside the caller's transaction.

    StoreError when the database was written by a newer Concord.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, to)
    except CommandError as error:
        version = _version(connection) or "none"
        if re.fullmatch(r"000\d|1", version):
            raise StoreError(
                f"The database has version {version!r}: it was written by a Concord in development, before the first "
                "release. Export its projects with that Concord, and import them into another CONCORD_HOME."
            ) from error
        raise StoreError(
            f"The database has version {version!r} and this Concord knows up to {HEAD!r}: "
            "it was written by a newer Concord. Update this one, or use another CONCORD_HOME."
        ) from error


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────


def _make_folder(url: sa.URL) -> None:
    if not url.database or url.database == ":memory:":
        raise StoreError("The store needs a file: sqlite:///path/to/concord.sqlite.")
    folder = Path(url.database).parent
    try:
        make_private(folder)
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot be made: {error.strerror}. Set CONCORD_HOME.") from error


def _engine(url: sa.URL, is_sqlite: bool) -> sa.Engine:
    if not is_sqlite:
        engine = sa.create_engine(url, pool_size=5, max_overflow=5, connect_args=_SILENCE)
        sa.event.listen(engine, "connect", _set_up_postgres)
        sa.event.listen(engine, "checkin", _note_use)
        sa.event.listen(engine, "checkout", partial(_ask_whether_there, engine.dialect))
        return engine
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY_MS / 1000}, pool_size=5, max_overflow=10)
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


_SILENCE = {
    **{"connect_timeout": 10, "tcp_user_timeout": 20_000},
    **{"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 2},
}
"""Of libpq: a server that says nothing at all is taken for lost after 20 s, instead of after many minutes."""


def _set_up_postgres(connection: Any, _: object) -> None:
    """A process that froze inside a transaction must not keep others from the rows it had locked."""
    connection.execute("SET idle_in_transaction_session_timeout = '30s'")
    connection.commit()


_FRESH = 5.0
"""Seconds after its last use that a connection is taken to be there: if it is not, what was asked is asked again."""


def _note_use(_: object, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _ask_whether_there(dialect: sa.Dialect, connection: Any, record: Any, _: object) -> None:
    """A connection that has long been idle may be gone; then all of them are made anew."""
    used = record.info.get("used")
    if used is None or time.monotonic() - used < _FRESH:
        return
    try:
        dialect.do_ping(connection)
    except dialect.loaded_dbapi.Error as error:
        raise sa.exc.InvalidatePoolError() from error


def _set_up_sqlite(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says, not at the first change
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={_BUSY_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────

_DISK_FULL = "53100"  # SQLSTATE disk_full
_ROOM = 100_000  # bytes; SQLite asks for 32 KB or a few pages at a time


@contextmanager
def in_our_words(folder: Path | None = None) -> Iterator[None]:
    """Turn what the driver raises within into our errors; `folder` holds the file of SQLite."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if not isinstance(error.orig, sqlite3.Error) and is_lost(error):
            raise LostConnectionError(
                "The database cannot be reached. Check CONCORD_DATABASE_URL and that the server runs."
            ) from error
        raise (StoreError(words) if (words := refusal(error)) else _translated(error.orig, folder)) from error
    except sa.exc.TimeoutError as error:
        raise StoreError("All connections to the store are busy; try again in a moment.") from error
    except sqlite3.Error as error:
        raise _translated(error, folder) from error


def _translated(cause: BaseException | None, folder: Path | None) -> StoreError:
    """Our error for a driver's; says nothing of SQL, parameters or URLs."""
    code = getattr(cause, "sqlite_errorname", "") or ""
    state = getattr(cause, "sqlstate", "") or ""
    # SQLite says FULL only of its pages: without room for the small files next to them it says IOERR_SHMSIZE or another
    # IOERR, as it does of a file system that it cannot use at all.
    if code == "SQLITE_FULL" or state == _DISK_FULL or (code.startswith("SQLITE_IOERR") and _is_full(folder)):
        return StoreFullError("The disk is full. What was stored before is intact; make room and try again.")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError("The store is busy: another process kept writing for 15 s. Try again.")
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return StoreError("The store's file cannot be opened for writing. Check CONCORD_HOME and its permissions.")
    if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return StoreError("The store's file is damaged or no database. Restore a copy or use another CONCORD_HOME.")
    if code.startswith("SQLITE_IOERR"):
        return StoreError(
            f"The disk or folder of the store failed ({code}). Check CONCORD_HOME: SQLite needs a local disk with room."
        )
    return StoreError(f"The store could not be read or written ({code or state}).")


def _is_full(folder: Path | None) -> bool:
    try:
        return folder is not None and shutil.disk_usage(folder).free < _ROOM
    except OSError:
        return False
