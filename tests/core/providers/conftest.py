"""The local OpenAI-compatible server, and two small reply stores."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.providers.base import Message, Request
from tests.replies import MemoryReplies


@pytest.fixture(scope="session")
def fake_openai(repository: Path) -> ModuleType:
    """The module `tests/fake_openai.py`."""
    spec = importlib.util.spec_from_file_location("fake_openai", repository / "tests" / "fake_openai.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fake_openai"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server(fake_openai: ModuleType) -> Iterator[Any]:
    """A running server; `server.fake` holds its settings and counts, `server.base_url` its address."""
    running = fake_openai.RunningServer(fake_openai.FakeOpenAI(keep_bodies=True))
    yield running
    running.stop()


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
