"""Turn what the drivers of SQLite and Postgres raise into our errors."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from core.errors import LostConnectionError, StoreError, StoreFullError

_LOST = ("08", "57P", "25P03")
"""SQLSTATEs: connection exceptions, a server that shuts down or starts up, a session it ended for its silence."""
_REFUSALS = ("password authentication failed", "no password supplied", "no pg_hba.conf entry", '" does not exist')
"""What a server says to a connection that it does not want; psycopg gives no SQLSTATE then."""
_DISK_FULL = "53100"  # SQLSTATE disk_full
_ROOM = 100_000  # bytes; SQLite asks for 32 KB or a few pages at a time
_OF_SQLITE = {
    ("SQLITE_BUSY", "SQLITE_LOCKED"): "The store is busy: another process kept writing for 15 s. Try again.",
    ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM"): (
        "The store's file cannot be opened for writing. Check CONCORD_HOME and its permissions."
    ),
    ("SQLITE_NOTADB", "SQLITE_CORRUPT"): (
        "The store's file is damaged or no database. Restore a copy or use another CONCORD_HOME."
    ),
    ("SQLITE_IOERR",): (
        "The disk or folder of the store failed ({code}). Check CONCORD_HOME: SQLite needs a local disk with room."
    ),
}


def is_lost(error: sa.exc.DBAPIError) -> bool:
    """Whether this error of Postgres says that the connection is gone, or could not be made."""
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return bool(state.startswith(_LOST))
    return not _is_refused(error) and (error.connection_invalidated or isinstance(error, sa.exc.OperationalError))


def _is_refused(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) is None and any(words in str(error.orig) for words in _REFUSALS)


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
        if _is_refused(error):
            raise StoreError(
                "The database server refused the connection. Check user, password and database in "
                "CONCORD_DATABASE_URL, and pg_hba.conf on the server."
            ) from error
        raise _translated(error.orig, folder) from error
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
    for codes, words in _OF_SQLITE.items():
        if code.startswith(codes):
            return StoreError(words.format(code=code))
    return StoreError(f"The store could not be read or written ({code or state}).")


def _is_full(folder: Path | None) -> bool:
    try:
        return folder is not None and shutil.disk_usage(folder).free < _ROOM
    except OSError:
        return False
