"""What was read of a database is handed out again until anybody has changed the file.

A screen asks for the same few lists from several of its parts, and again at every press.  SQLite tells every
connection, for 10 µs, whether another one (of this process or any other) has committed since it last asked.
"""

from __future__ import annotations

import copy
import inspect
import sqlite3
import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from core.store.reconnecting import Part

F = TypeVar("F", bound=Callable[..., Any])
_MOST = 256


class Readings:
    """Answers of queries, good for one state of the SQLite file at `path`; thread-safe."""

    def __init__(self, path: str) -> None:
        self._asking = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._state, self._kept = 0, dict[Hashable, Any]()

    def close(self) -> None:
        with self._asking:
            self._connection.close()

    def get(self, query: Hashable, read: Callable[[], Any]) -> Any:
        """What `read` gives, or gave since the file last changed; lists and dicts are the caller's own."""
        kept = self._current()
        if query not in kept:
            answer = read()
            if len(kept) < _MOST:
                kept[query] = answer
        else:
            answer = kept[query]
        return copy.copy(answer) if isinstance(answer, list | dict) else answer

    def _current(self) -> dict[Hashable, Any]:
        """The answers that still hold.  Asked before the query: what it reads is never older than that."""
        with self._asking:
            try:
                (state,) = self._connection.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error:  # the query itself says what is wrong, in our words
                return {}
            if state != self._state:
                self._state, self._kept = state, {}
            return self._kept


def read_once(method: F) -> F:
    """For a reading method of a `Part` that takes hashable arguments and does not look at the clock."""
    signature = inspect.signature(method)

    @wraps(method)
    def reading(self: Part, *args: Any, **kwargs: Any) -> Any:
        readings = self._db.readings
        if readings is None or self._db.joined is not None:  # what is not committed is nobody else's, and may go again
            return method(self, *args, **kwargs)
        asked = signature.bind(self, *args, **kwargs).arguments
        query = (method.__qualname__, *((name, value) for name, value in asked.items() if name != "self"))
        return readings.get(query, lambda: method(self, *args, **kwargs))

    return reading  # type: ignore[return-value]
