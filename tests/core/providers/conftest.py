"""Providers of the local endpoint, two small reply stores, and requests to ask for."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.providers.base import Message, Request
from core.providers.openai_api import OpenAIProvider
from tests.fake_openai import RunningServer
from tests.replies import MemoryReplies

Make = Callable[..., OpenAIProvider]


@pytest.fixture
def make(server: RunningServer) -> Iterator[Make]:
    """Makes providers for the server and closes them."""
    made: list[OpenAIProvider] = []

    def make_one(**changes: Any) -> OpenAIProvider:
        settings = {"concurrency": 8, "timeout": 10.0, "max_retries": 0} | changes
        made.append(OpenAIProvider(settings.pop("base_url", server.base_url), **settings))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


class SqliteReplies:
    """A `ReplyStore` in a SQLite file, committed when `put_replies` returns."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, body TEXT)")

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        with self._lock:
            rows = self._connection.execute("SELECT key, body FROM replies").fetchall()
        wanted = set(keys)
        return {key: body for key, body in rows if key in wanted}

    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?)", replies)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def memory() -> MemoryReplies:
    return MemoryReplies()


@pytest.fixture
def sqlite_replies(tmp_path: Path) -> Iterator[SqliteReplies]:
    store = SqliteReplies(tmp_path / "replies.sqlite")
    yield store
    store.close()


@pytest.fixture
def requests() -> list[Request]:
    """Twenty different requests."""
    return [
        Request("fake-judge", (Message("user", f"Prompt {n}, not for error messages."),), 0.0, 64) for n in range(20)
    ]
