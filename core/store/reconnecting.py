"""A database that is away for a moment costs a wait, not a run: what was lost is done again, for up to a minute.

What may be done again is a whole transaction that is known not to have been committed.  A connection lost in the
middle of one says just that, for the server undoes it.  One lost at the commit itself does not: then the server is
asked by the transaction's number what became of it (`pg_xact_status`), and only what was undone is done again.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from core.errors import LostConnectionError, StoreError

if TYPE_CHECKING:
    from core.store.database import Database

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
PATIENCE = 60.0
"""Seconds that a lost connection is waited for."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
log = logging.getLogger("concord")


class Wait:
    """One wait for a database that is away: pauses that grow, within `PATIENCE` seconds."""

    def __init__(self, say: Callable[[], None]) -> None:
        self._until, self._pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
        say()

    def a_while(self) -> bool:
        """Pauses before the next try; False, at once, where there is none left."""
        if time.monotonic() + self._pause > self._until:
            return False
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        return True


class Part:
    """A part of the store: each public method is one transaction, done again where the connection is lost in it.

    Generators are not, for what they gave is gone, nor what is marked `only_once`.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def __init_subclass__(cls) -> None:
        for name, method in list(vars(cls).items()):
            if not inspect.isfunction(method) or name.startswith("_"):
                continue
            if not inspect.isgeneratorfunction(method) and not hasattr(method, "only_once"):
                setattr(cls, name, _patient(method))


def only_once(method: F) -> F:
    """A method whose arguments can be read once, so that it cannot be done again."""
    method.only_once = True  # type: ignore[attr-defined]
    return method


def _patient(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def patient(self: Part, *args: Any, **kwargs: Any) -> Any:
        if self._db.joined is not None:  # a part of a transaction is done again with all of it
            return method(self, *args, **kwargs)
        wait: Wait | None = None
        while True:
            try:
                return method(self, *args, **kwargs)
            except LostConnectionError as error:
                wait = wait or Wait(self._db.say_waiting)
                if error.patience_ended or not wait.a_while():
                    error.patience_ended = True
                    raise

    return patient


class Together(Part):
    def do(self, writes: Callable[[], T]) -> T:
        """What `writes` does by the other parts, as one transaction: all of it stands, or nothing."""
        with self._db.joining():
            return writes()


def say_in_log() -> None:
    """What a wait says where no screen can."""
    log.warning("the database does not answer; waiting for it, up to %g s", PATIENCE)


# ── what Postgres says ───────────────────────────────────────────────────────────────────────────────────────

_LOST = ("08", "57P", "25P03")
"""SQLSTATEs: connection exceptions, a server that shuts down or starts up, a session it ended for its silence."""


_REFUSED = {
    "password authentication failed": "The database refused the user name or password of CONCORD_DATABASE_URL.",
    "no password supplied": "The database asks for a password: put it into CONCORD_DATABASE_URL (USER:PASSWORD@HOST).",
    "no pg_hba.conf entry": (
        "The database lets nobody in from this host with the user and database of CONCORD_DATABASE_URL: it needs a "
        "line for them in pg_hba.conf."
    ),
    '" does not exist': (
        "The database server knows no such database or user as CONCORD_DATABASE_URL names. Create it there, or correct "
        "the address."
    ),
}
"""What a server says of a connection that it does not want (psycopg gives no SQLSTATE then) → our words."""


def refusal(error: sa.exc.DBAPIError) -> str:
    """Why the server let nobody in; "" where it did not answer, or says so in another language."""
    said = str(error.orig) if getattr(error.orig, "sqlstate", None) is None else ""
    return next((ours for theirs, ours in _REFUSED.items() if theirs in said), "")


def is_lost(error: sa.exc.DBAPIError) -> bool:
    """Whether this error of Postgres says that the connection is gone, or could not be made."""
    state = getattr(error.orig, "sqlstate", None)
    if refusal(error):
        return False
    if state is None:
        return error.connection_invalidated or isinstance(error, sa.exc.OperationalError)
    return bool(state.startswith(_LOST))


def number_of(connection: sa.Connection) -> str | None:
    """The number of the transaction in progress; None where it has changed nothing."""
    number = connection.execute(sa.text("SELECT CAST(pg_current_xact_id_if_assigned() AS text)")).scalar_one()
    return None if number is None else str(number)


def was_committed(engine: sa.Engine, number: str, say: Callable[[], None]) -> bool:
    """Whether the transaction of that number was committed, although its connection was lost.

    StoreError where the server does not come back in time to tell.
    """
    wait = Wait(say)
    query = sa.text("SELECT pg_xact_status(CAST(:number AS xid8))")
    while wait.a_while():
        try:
            with engine.connect() as connection:
                status = connection.execute(query, {"number": number}).scalar_one()
        except sa.exc.DBAPIError as error:
            if not is_lost(error):
                break
        else:
            if status in ("committed", "aborted"):
                return bool(status == "committed")
            if status != "in progress":  # so long ago that the server has forgotten
                break
    raise StoreError(
        "The connection to the database was lost while something was being saved, and the database has not said "
        "whether it was. Look at what is there before you do it again."
    )
