"""Define tables, run transactions, and convert records to JSON text and blobs.

Every change of the tables needs a new `HEAD`. A database with a different `HEAD` is refused. Text from users, files or
models is `SafeText`. Times are seconds since 1970 (UTC) by the clock of the database's machine.

SQLite runs in WAL mode, so readers never wait for the writer. A writer waits up to 15 s for another writer. A write
transaction takes the write lock at its start, so two processes never deadlock. The file survives a killed process. A
power cut can lose the last transactions (`synchronous=NORMAL`), but never damages the file.

If the connection to a server is lost before the commit, the server rolls the transaction back. The store then retries
the transaction for up to `PATIENCE` seconds. If the connection is lost during the commit, the store asks the server for
the outcome (`pg_xact_status`), and retries only a transaction that was rolled back.
"""

from __future__ import annotations

import inspect
import json
import logging
import math
import shutil
import sqlite3
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import sqlalchemy as sa
from pydantic_core import CoreSchema, SchemaValidator
from pydantic_core import core_schema as schemas
from sqlalchemy.dialects import postgresql, sqlite

from core.errors import LostConnectionError, StoreError, StoreFullError
from core.files import make_private
from core.project_records import moment

HEAD = "2"


class SafeText(sa.types.TypeDecorator[str]):
    """Text of any origin, stored as a JSON string so that every character survives."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Any) -> str | None:
        return None if value is None else str(json.loads(value))


metadata = sa.MetaData()
_TYPES: dict[str, Any] = {
    "key": sa.String(80),
    "word": sa.String(40),
    "short": sa.String(20),
    "safe": SafeText,
    "json": sa.Text,
    "int": sa.Integer,
    "bool": sa.Boolean,
    "real": sa.Double,
    "bytes": sa.LargeBinary,
}
_DEFAULTS = {"key": "", "word": "", "short": "", "safe": "", "int": 0, "bool": False}


def _table(name: str, columns: str, *constraints: Any) -> sa.Table:
    """Define a table of columns ``name:type``; `*` marks the primary key, `?` a nullable column.

    ``>table`` instead of a type is a foreign key to the column of that name.  Texts, integers and booleans default to
    "", 0 and False.
    """
    made = []
    for word in columns.split():
        column, kind = word.lstrip("*").rstrip("?").split(":")
        refers = [sa.ForeignKey(f"{kind[1:]}.{column}")] if kind.startswith(">") else []
        key, nullable = word.startswith("*"), word.endswith("?")
        default = None if key or refers or nullable else _DEFAULTS.get(kind)
        kind = "key" if refers else kind
        made.append(sa.Column(column, _TYPES[kind], *refers, primary_key=key, nullable=nullable, default=default))
    return sa.Table(name, metadata, *made, *constraints)


def _of_criteria(column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id", column], ["criteria.project_id", "criteria.criteria_id"])


projects = _table("projects", "*project_id:key name:safe created_at:real imported_at:real?")

goldens = _table(
    "goldens",
    "*golden_id:key kind:word n_items:int n_sources:int n_systems:int n_ratings:int aspects:json body:json "
    "ratings:json created_at:real",
)

golden_items = _table("golden_items", "*golden_id:>goldens *position:int body:json")

project_goldens = _table("project_goldens", "*project_id:>projects *golden_id:>goldens name:safe created_at:real")

runs = _table(
    "runs",
    "*run_id:key project_id:>projects golden_id:>goldens kind:word title:safe aspect:safe judge_spec:safe request:json "
    "status:short phase:safe message:safe error:safe calls:int calls_expected:int usage:json attempt:int snapshots:int "
    "begun_by:word cancel_requested:bool worker_id:safe version:int created_at:real updated_at:real started_at:real? "
    "finished_at:real?",
    sa.Index("ix_runs_project_id", "project_id"),
    sa.Index("ix_runs_status", "status"),
)

documents = _table("run_documents", "*run_id:>runs *name:word body:json blob:bytes")

scores = _table("run_scores", "*run_id:>runs *criteria_id:key body:json blob:bytes")

criteria = _table(
    "criteria",
    "*project_id:>projects *criteria_id:key golden_id:key aspect:safe body:json created_at:real",
)

edits = _table(
    "criteria_edits",
    "*number:int project_id:key parent_id:key criteria_id:key created_at:real",
    sa.UniqueConstraint("project_id", "parent_id", "criteria_id", name="criteria_edits_once"),
    _of_criteria("parent_id"),
    _of_criteria("criteria_id"),
)

alignments = _table(
    "criteria_alignments",
    "*project_id:key *criteria_id:key *run_id:>runs *side:short status:short body:json created_at:real",
    _of_criteria("criteria_id"),
)

judges = _table(
    "judges",
    "*project_id:>projects *judge_id:key golden_id:>goldens aspect:safe name:safe body:json blob:bytes replies:bytes? "
    "created_at:real",
)

labels = _table(
    "labels",
    "*number:int project_id:>projects golden_id:>goldens pass_id:key rater:safe item_id:safe aspect:safe value:real? "
    "comment:safe form:key created_at:real taken_from:key",
    sa.UniqueConstraint("project_id", "rater", "form", "aspect", name="labels_once"),
    sa.Index("labels_of_golden", "project_id", "golden_id"),
    sa.Index("labels_of_pass", "project_id", "pass_id", "rater"),
)

events = _table(
    "events",
    "*number:int project_id:>projects kind:word subject:safe actor:safe role:short form:key body:safe created_at:real",
    sa.UniqueConstraint("project_id", "form", name="events_once"),
    sa.Index("events_of_kind", "project_id", "kind"),
)

drafts = _table(
    "drafts", "*project_id:>projects *subject:safe *author:safe text:safe base:key began_at:real kept_at:real"
)

replies = _table("replies", "*reply_key:key body:safe created_at:real")

run_replies = _table("run_replies", "*run_id:>runs *reply_key:key paid:bool body:safe?")

blocks = _table("blocks", "*block_key:key body:json created_at:real")

# `workers.capability` and `labels.taken_from` are unused columns of earlier versions, always ""
workers = _table("workers", "*worker_id:safe place:safe pid:int started_at:real beat_at:real capability:short")


# ── transactions ──────────────────────────────────────────────────────────────────────────────────────────────────


T = TypeVar("T")
Rows = dict[str, Any] | list[dict[str, Any]]
PATIENCE = 60.0
"""Seconds to wait for a lost connection."""
_BUSY_MS = 15_000
_WRITE = "concord_write"
_MAKING_LOCK = 0x636F6E63  # "conc": the advisory lock of Postgres for the process that creates the tables
_SCHEMA_VERSION = sa.Table("alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))
"""One row: the `HEAD` of the tables."""
_LIBPQ = {
    "connect_timeout": 10,
    "tcp_user_timeout": 20_000,  # a silent server counts as lost after 20 s instead of many minutes
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}
log = logging.getLogger("concord")


def say_in_log() -> None:
    """Log that the program is waiting for the database."""
    log.warning("the database doesn't respond; waiting up to %g s", PATIENCE)


def sqlalchemy_url(url: str) -> sa.URL:
    """Parse a database URL (sqlite:///…, postgres://… or postgresql://…).

    Raises StoreError for any other URL.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        parsed = sa.URL.create("unknown")
    dialect = parsed.get_backend_name()
    if dialect == "sqlite":
        return parsed
    if dialect in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise StoreError("The database URL must look like sqlite:///path or postgresql://user@host/name.")


def record_of(kind: type[T], row: sa.Row[Any], **other: Any) -> T:
    """Make a record of type `kind` from the columns of `row` that are named after its fields.

    `other` sets further fields. Columns called ``…_at`` contain seconds since 1970, which become UTC times. 0 becomes
    None (a worker stores 0 when it signs off).
    """
    columns, values = row._mapping, dict(other)
    for name in (field.name for field in fields(kind)):  # type: ignore[arg-type]
        if name in columns and name not in other:
            value = columns[name]
            values[name] = (moment(value) if value else None) if name.endswith("_at") else value
    return kind(**values)


def row_of(table: sa.Table, record: object, **other: Any) -> dict[str, Any]:
    """Make a row of `table` from the equally named fields of `record`. `other` sets or replaces columns."""
    names = [c.name for c in table.columns if c.name not in (*other, "number") and hasattr(record, c.name)]
    return {name: getattr(record, name) for name in names} | other


def given(**columns: Any) -> dict[str, Any]:
    """Return the given filters (column=value), without those whose value is None."""
    return {name: value for name, value in columns.items() if value is not None}


def in_chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield `items` in chunks of 500, one chunk for each ``IN (…)`` of a query.

    SQLite takes up to 32,766 parameters, and older builds 999.
    """
    listed = list(items)
    for start in range(0, len(listed), 500):
        yield listed[start : start + 500]


class Transaction:
    """Queries and changes that are committed together."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.execute = connection.execute
        self._dialect: Any = sqlite if connection.dialect.name == "sqlite" else postgresql

    @property
    def now(self) -> float:
        """Seconds since 1970, by the clock of the database server, or of this machine for SQLite."""
        if self._dialect is sqlite:  # its own clock counts milliseconds, so two transactions could get the same time
            return time.time()
        return float(self.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        return self.execute(query).all()

    def insert_new(self, table: sa.Table, rows: Rows) -> None:
        """Insert rows; existing rows with the same key stay unchanged.

        Rows without `created_at` get the current time, if the table has that column.
        """
        if rows:
            self.execute(self._dialect.insert(table).on_conflict_do_nothing(), self._stamped(table, rows))

    def upsert(self, table: sa.Table, rows: Rows, keep: str = "") -> None:
        """Insert rows; overwrite existing rows with the same key, except for the column `keep`.

        Sets `created_at` as `insert_new` does.
        """
        insert, keys = self._dialect.insert(table), [column.name for column in table.primary_key]
        changed = {c.name: insert.excluded[c.name] for c in table.columns if c.name not in (*keys, keep)}
        if rows:
            self.execute(insert.on_conflict_do_update(index_elements=keys, set_=changed), self._stamped(table, rows))

    def _stamped(self, table: sa.Table, rows: Rows) -> list[dict[str, Any]]:
        listed = rows if isinstance(rows, list) else [rows]
        if "created_at" not in table.c or "created_at" in listed[0]:
            return listed
        now = self.now
        return [row | {"created_at": now} for row in listed]


class Database:
    """Transactions on one database; thread-safe, one per process."""

    def __init__(self, url: str) -> None:
        """Connect, and create the tables of a new database.  StoreError if that fails."""
        parsed = sqlalchemy_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.folder: Path | None = None
        self.say_waiting: Callable[[], None] = say_in_log
        self._thread = threading.local()
        if self.is_sqlite:
            if not parsed.database or parsed.database == ":memory:":
                raise StoreError("The database URL must contain the path of a file: sqlite:///path/to/concord.sqlite.")
            self.folder = Path(parsed.database).parent
            try:
                make_private(self.folder)
            except OSError as error:
                raise StoreError(
                    f"Concord can't create {self.folder}: {error.strerror}. Set CONCORD_HOME to another folder."
                ) from error
            self.engine = sa.create_engine(parsed, connect_args={"timeout": _BUSY_MS / 1000}, max_overflow=10)
            sa.event.listen(self.engine, "connect", _set_up_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        else:
            self.engine = sa.create_engine(parsed, max_overflow=5, connect_args=_LIBPQ)
            sa.event.listen(self.engine, "connect", _set_up_postgres)
        try:
            self._make_tables()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def read(self, isolation: str = "AUTOCOMMIT") -> Iterator[Transaction]:
        """Open a read-only transaction.

        On Postgres each query has its own snapshot, which saves two round trips; with "REPEATABLE READ" all queries
        share a snapshot, as on SQLite.
        """
        if (joined := self.joined) is not None:
            yield joined
            return
        options = {} if self.is_sqlite else {"isolation_level": isolation}
        with (
            translated_errors(self.folder),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield Transaction(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that is committed completely at the end, or not at all.

        Within `joining`, the transaction that is already open is yielded instead.

        Raises:
            LostConnectionError: The connection was lost, and nothing was committed.
            StoreError: The connection was lost, and the outcome is unknown.
        """
        if (joined := self.joined) is not None:
            yield joined
            return
        options, number = {_WRITE: True}, None
        with translated_errors(self.folder):
            try:
                with self.engine.connect().execution_options(**options) as connection, connection.begin():
                    yield Transaction(connection)
                    if not self.is_sqlite:  # None if nothing was changed
                        number = connection.execute(sa.text(_OWN_NUMBER)).scalar_one()
            except sa.exc.DBAPIError as error:
                if number is None or not is_lost(error) or not self._was_committed(number):
                    raise

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Open a transaction that every `read` and `write` in this thread joins."""
        with self.write() as transaction:
            self._thread.joined = transaction
            try:
                yield
            finally:
                self._thread.joined = None

    @property
    def joined(self) -> Transaction | None:
        """The transaction that this thread opened with `joining`, or None."""
        return getattr(self._thread, "joined", None)

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """Return all rows of a query."""
        with self.read() as transaction:
            return transaction.rows(query)

    def row(self, query: sa.Select[Any]) -> sa.Row[Any] | None:
        """Return the row that a query finds, or None. Raises an error if it finds several."""
        with self.read() as transaction:
            return transaction.execute(query).one_or_none()

    def pauses(self) -> Iterator[float]:
        """Wait for the database: yield after each of several increasing pauses, for up to `PATIENCE` seconds."""
        self.say_waiting()
        until, pause = time.monotonic() + PATIENCE, 0.1
        while time.monotonic() + pause <= until:
            time.sleep(pause)
            yield pause
            pause = min(2 * pause, 2.0)

    def _was_committed(self, number: str) -> bool:
        """Ask the server whether this transaction was committed.  StoreError without an answer in time."""
        for _ in self.pauses():
            try:
                with self.engine.connect() as connection:
                    status = connection.execute(sa.text(_STATUS), {"number": number}).scalar_one()
            except sa.exc.DBAPIError as error:
                if not is_lost(error):
                    break
            else:
                if status in ("committed", "aborted"):
                    return bool(status == "committed")
                if status != "in progress":  # too long ago: the server no longer knows
                    break
        raise StoreError(
            "The database connection was lost during a save, so Concord doesn't know whether the save succeeded. "
            "Before you try again, check whether your change was saved."
        )

    def _make_tables(self) -> None:
        """Create the tables if the database is new.  StoreError if its version is not `HEAD`."""
        with self.read() as transaction:
            if _version(transaction.connection) == HEAD:
                return
        with self.write() as transaction:
            if not self.is_sqlite:
                transaction.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MAKING_LOCK})
            version = _version(transaction.connection)
            if version is None:
                for tables in (metadata, _SCHEMA_VERSION.metadata):
                    tables.create_all(transaction.connection, checkfirst=False)
                transaction.execute(sa.insert(_SCHEMA_VERSION), {"version_num": HEAD})
            elif version != HEAD:
                raise StoreError(
                    f"The database is at version {version!r}, but this version of Concord needs {HEAD!r}. Install a "
                    "newer version of Concord, or use another CONCORD_HOME."
                )


_OWN_NUMBER = "SELECT CAST(pg_current_xact_id_if_assigned() AS text)"
_STATUS = "SELECT pg_xact_status(CAST(:number AS xid8))"


def _set_up_postgres(connection: Any, _: object) -> None:
    """Set a timeout for idle transactions, so that a frozen process does not keep rows locked."""
    connection.execute("SET idle_in_transaction_session_timeout = '30s'")
    connection.commit()


def _set_up_sqlite(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # SQLAlchemy begins transactions, not sqlite3 at the first change
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", f"busy_timeout={_BUSY_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(_SCHEMA_VERSION.name):
        return None
    return connection.execute(sa.select(_SCHEMA_VERSION.c.version_num)).scalar()


# ── parts of the store ───────────────────────────────────────────────────────────────────────────────────────


class StorePart:
    """A part of the store: each public method is one transaction, retried after a lost connection.

    Generators are not retried, because their first rows have already been used.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and not name.startswith("_") and not inspect.isgeneratorfunction(method):
                setattr(cls, name, _retried(method))


def _retried(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def retried(self: StorePart, *args: Any, **kwargs: Any) -> Any:
        if self._db.joined is not None:  # a joined transaction is retried as a whole
            return method(self, *args, **kwargs)
        pauses: Iterator[float] | None = None
        while True:
            try:
                return method(self, *args, **kwargs)
            except LostConnectionError as error:
                if error.patience_ended or (pauses is not None and next(pauses, None) is None):
                    error.patience_ended = True
                    raise
                pauses = pauses or self._db.pauses()  # the first retry has no pause: an idle connection may have died

    return retried


class Together(StorePart):
    def do(self, writes: Callable[[], T]) -> T:
        """Run `writes`, a function that calls other parts of the store, as one transaction; return its result."""
        with self._db.joining():
            return writes()


# ── translation of driver errors ─────────────────────────────────────────────────────────────────────────────────────

_LOST = ("08", "57P", "25P03")
"""SQLSTATEs: connection exceptions, a server that shuts down or starts up, a session ended as idle."""
_REFUSALS = ("password authentication failed", "no password supplied", "no pg_hba.conf entry", '" does not exist')
"""Parts of messages of a server that refuses a connection; psycopg gives no SQLSTATE then."""
_DISK_FULL = "53100"  # SQLSTATE disk_full
_ROOM = 100_000  # bytes; SQLite allocates 32 KB or a few pages at a time


def is_lost(error: sa.exc.DBAPIError) -> bool:
    """Return whether this Postgres error means that the connection was lost or could not be made."""
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return bool(state.startswith(_LOST))
    return not _is_refused(error) and (error.connection_invalidated or isinstance(error, sa.exc.OperationalError))


def _is_refused(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) is None and any(words in str(error.orig) for words in _REFUSALS)


@contextmanager
def translated_errors(folder: Path | None = None) -> Iterator[None]:
    """Translate database driver errors to Concord's errors; `folder` contains the SQLite file."""
    try:
        yield
    except sa.exc.TimeoutError as error:
        raise StoreError("All database connections are busy. Try again in a moment.") from error
    except (sa.exc.DBAPIError, sqlite3.Error) as error:
        raise _translated(error, folder) from error


def _translated(error: sa.exc.DBAPIError | sqlite3.Error, folder: Path | None) -> StoreError:
    """Convert a driver error to a Concord error, without SQL, parameters or URLs."""
    cause = error if isinstance(error, sqlite3.Error) else error.orig
    if isinstance(error, sa.exc.DBAPIError) and not isinstance(cause, sqlite3.Error):
        if _is_refused(error):
            return StoreError(
                "The database server refused the connection. Check the user, password and database in "
                "CONCORD_DATABASE_URL, and check pg_hba.conf on the server."
            )
        if is_lost(error):
            return LostConnectionError(
                "Concord can't reach the database. Check CONCORD_DATABASE_URL, and make sure that the server is "
                "running."
            )
    code = getattr(cause, "sqlite_errorname", "") or getattr(cause, "sqlstate", "") or ""
    # SQLite reports FULL only for its pages.  Without space for the small files next to the database it reports
    # IOERR_SHMSIZE or another IOERR, as for a file system that it cannot use at all.
    if code in ("SQLITE_FULL", _DISK_FULL) or (code.startswith("SQLITE_IOERR") and _is_full(folder)):
        return StoreFullError("The disk is full. Your stored data is safe. Free some space, and try again.")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError("The database is busy: another process has been writing for 15 s. Try again.")
    return StoreError(
        f"Concord can't read or write the database ({code}). Check that the file in CONCORD_HOME is intact, writable "
        "and on a local disk."
    )


def _is_full(folder: Path | None) -> bool:
    try:
        return folder is not None and shutil.disk_usage(folder).free < _ROOM
    except OSError:
        return False


# ── records as one JSON text and one blob of float64, exactly ────────────────────────────────────────────────────────

# Records become JSON objects of their fields.  A numpy array becomes ``{"shape": […], "offset": k}``, a view of the
# blob (little-endian float64, so NaN and the last bits survive).  Reading follows the type annotations of the record,
# so stored text never names a class.  Missing fields take their defaults, and unknown fields are dropped.
#
# pydantic-core reads with custom schemas: its default ones turn 1 into 1.0, which changes the hash of a golden set,
# and reject lone surrogates, which occur in model outputs.  `json` writes, for the same reasons.


@dataclass(frozen=True, slots=True)
class Packed:
    """A stored value: JSON text, and the numbers of all its arrays in one blob."""

    body: str
    blob: bytes = b""


def pack(value: Any) -> Packed:
    """Convert `value` (records, mappings, sequences, float64 arrays, JSON scalars) to JSON text and a blob.

    Raises TypeError for anything else.
    """
    chunks: list[bytes] = []
    body = json.dumps(plain(value, chunks), ensure_ascii=False, separators=(",", ":"))
    return Packed(body, b"".join(chunks))


def unpack(kind: type[T], packed: Packed | str) -> T:
    """Read the record of type `kind` that `pack` wrote, with its arrays bit for bit.

    `packed` may be the text alone if there are no arrays. Raises pydantic_core.ValidationError (a ValueError) for
    anything else.
    """
    packed = Packed(packed) if isinstance(packed, str) else packed
    annotation: Any = kind
    value: T = _validator(annotation).validate_python(json.loads(packed.body), context=packed.blob)
    return value


def plain(value: Any, chunks: list[bytes]) -> Any:
    """Convert `value` to JSON values; the bytes of its arrays are appended to `chunks`.

    Fields marked "silent" were added later, and are omitted while they are false.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        named = {part.name: getattr(value, part.name) for part in fields(value)}
        kept = [part.name for part in fields(value) if not part.metadata.get("silent") or named[part.name]]
        return {name: plain(named[name], chunks) for name in kept}
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        offset = sum(map(len, chunks)) // 8
        chunks.append(np.ascontiguousarray(value, dtype="<f8").tobytes())
        return {"shape": list(value.shape), "offset": offset}
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item, chunks) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, chunks) for item in value]
    raise TypeError(f"Can't store a {type(value).__name__} such as {str(value)[:40]!r}.")


# ── annotations as schemas ───────────────────────────────────────────────────────────────────────────────────


_WHOLE_NUMBER = schemas.int_schema(strict=True)
_SCALARS: Mapping[Any, CoreSchema] = {
    str: schemas.is_instance_schema(str),
    bool: schemas.bool_schema(strict=True),
    int: _WHOLE_NUMBER,
    float: schemas.union_schema(
        [_WHOLE_NUMBER, schemas.float_schema(strict=True)], mode="left_to_right", custom_error_type="float_type"
    ),
    datetime: schemas.no_info_after_validator_function(datetime.fromisoformat, schemas.str_schema(strict=True)),
    type(None): schemas.none_schema(),
    Any: schemas.any_schema(),
}


@cache
def _validator(kind: Any) -> SchemaValidator:
    return SchemaValidator(_schema(kind))


def _schema(kind: Any) -> CoreSchema:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return _SCALARS[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        return _record(kind)
    if origin is Annotated:
        return _schema(inner[0])  # bounds are checked where users enter values
    if origin in (Union, types.UnionType):
        rest = [_schema(part) for part in inner if part is not type(None)]
        either = rest[0] if len(rest) == 1 else schemas.union_schema([*rest])
        return schemas.nullable_schema(either) if type(None) in inner else either
    if origin is tuple and inner[-1] is Ellipsis:
        return schemas.tuple_schema([_schema(inner[0])], variadic_item_index=0, fail_fast=True)
    if origin is tuple:
        return schemas.tuple_schema([_schema(part) for part in inner])
    if origin is np.ndarray:
        return schemas.with_info_plain_validator_function(_array)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return schemas.dict_schema(values_schema=_schema(inner[1]), fail_fast=True)
    if origin is Literal:
        return schemas.literal_schema(list(inner))
    raise TypeError(f"Can't read fields of type {kind!r}.")


def _record(kind: type) -> CoreSchema:
    hints = get_type_hints(kind, include_extras=True)
    of_each = []
    for field in fields(kind):
        schema = _schema(hints[field.name])
        if field.default_factory is not MISSING:
            schema = schemas.with_default_schema(schema, default_factory=field.default_factory)
        elif field.default is not MISSING:
            schema = schemas.with_default_schema(schema, default=field.default)
        of_each.append(schemas.dataclass_field(field.name, schema))
    return schemas.dataclass_schema(
        kind,
        schemas.dataclass_args_schema(kind.__name__, of_each, extra_behavior="ignore"),
        [field.name for field in fields(kind)],
        post_init=hasattr(kind, "__post_init__"),
        slots=True,
    )


def _array(value: Any, info: schemas.ValidationInfo[bytes]) -> Any:
    """Copy the array from the blob."""
    try:
        shape, offset = value["shape"], 8 * value["offset"]
        numbers = np.frombuffer(info.context or b"", "<f8", math.prod(shape), offset)
        return numbers.reshape(shape).astype(np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("the array's shape or offset doesn't fit the stored bytes") from error
