"""Replies are asked for once, committed before they count, and survive a killed process."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.errors import AuthError, CancelledRunError, StoreFullError
from core.providers.base import Completion, Failure, Reply, Request
from core.providers.cached import CachedProvider, as_cached, reply_from_json, reply_to_json
from core.providers.scripted import ScriptedProvider
from core.records import Usage
from tests.replies import Listening


def test_a_second_batch_sends_nothing_and_costs_nothing(memory: Any, requests: list[Request]) -> None:
    inner = Listening()
    provider = CachedProvider(inner, memory)
    first = provider.complete(requests)
    seen: dict[int, Reply] = {}
    second = provider.complete(requests, on_reply=seen.__setitem__)
    assert len(inner.asked) == 20
    assert [reply.text for reply in first] == [reply.text for reply in second]
    assert all(not reply.cached and reply.usage.requests == 1 for reply in first)
    assert all(reply.cached and reply.usage == Usage(cached=1, cost=0.0) for reply in second)
    assert [seen[index] for index in range(20)] == second
    assert memory.look_ups == 2, "one query a batch"


def test_only_what_is_missing_is_sent_in_its_order(memory: Any, requests: list[Request]) -> None:
    inner = Listening()
    provider = CachedProvider(inner, memory)
    provider.complete(requests[5:10])
    inner.asked.clear()
    replies = provider.complete(requests)
    assert inner.asked == requests[:5] + requests[10:]
    assert [reply.cached for reply in replies] == [5 <= index < 10 for index in range(20)]


def test_duplicates_in_a_batch_are_sent_once(memory: Any, requests: list[Request]) -> None:
    inner = Listening()
    seen: list[int] = []
    batch = [requests[0], requests[1], requests[0], requests[0]]
    replies = CachedProvider(inner, memory).complete(batch, on_reply=lambda index, _reply: seen.append(index))
    assert inner.asked == requests[:2]
    assert sorted(seen) == [0, 1, 2, 3]
    assert sum((reply.usage for reply in replies), Usage()).requests == 2
    assert [reply.cached for reply in replies] == [False, False, True, True]


def test_failures_are_not_kept(memory: Any, requests: list[Request]) -> None:
    inner = Listening(lambda _request: Failure("Withheld."))
    provider = CachedProvider(inner, memory)
    assert all(isinstance(reply, Failure) for reply in provider.complete(requests))
    assert memory.replies == {}
    provider.complete(requests)
    assert len(inner.asked) == 40


def test_endpoint_and_settings_are_part_of_the_key(memory: Any, requests: list[Request]) -> None:
    CachedProvider(ScriptedProvider(1), memory).complete(requests)
    other = Listening(seed=2)
    CachedProvider(other, memory).complete(requests)
    assert len(other.asked) == 20


class Interrupted(ScriptedProvider):
    """Raises after five replies."""

    def complete(self, requests: Sequence[Request], *, on_reply: Any = None) -> list[Reply]:
        super().complete(requests[:5], on_reply=on_reply)
        raise AuthError("The key was withdrawn.")


def test_what_arrived_before_an_error_is_kept(memory: Any, requests: list[Request]) -> None:
    with pytest.raises(AuthError):
        CachedProvider(Interrupted(), memory).complete(requests)
    assert len(memory.replies) == 5


def test_what_arrived_before_a_cancellation_is_kept(memory: Any, requests: list[Request]) -> None:
    count = 0

    def cancel(_index: int, _reply: Reply) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise CancelledRunError("Cancelled.")

    with pytest.raises(CancelledRunError):
        CachedProvider(ScriptedProvider(), memory).complete(requests, on_reply=cancel)
    assert len(memory.replies) >= 3


class SlowStore:
    """Takes its time for the first commit, so that the others queue up; `committed` is set in the store only."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.committed: set[str] = set()
        self.gate = threading.Event()

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        return {}

    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        self.gate.wait(5)
        self.groups.append(len(replies))
        self.committed |= {key for key, _ in replies}


class OpensTheGate(ScriptedProvider):
    def __init__(self, store: SlowStore) -> None:
        super().__init__()
        self.store = store

    def complete(self, requests: Sequence[Request], *, on_reply: Any = None) -> list[Reply]:
        replies = super().complete(requests, on_reply=on_reply)
        self.store.gate.set()
        return replies


def test_commits_are_grouped_and_come_before_on_reply(requests: list[Request]) -> None:
    store = SlowStore()
    provider = CachedProvider(OpensTheGate(store), store)
    keys = [request.key(provider.endpoint) for request in requests]
    too_early: list[int] = []
    provider.complete(
        requests, on_reply=lambda index, _reply: too_early.append(index) if keys[index] not in store.committed else None
    )
    assert too_early == []
    assert sum(store.groups) == 20
    assert len(store.groups) <= 3, "what queued up behind the first commit went in together"


class FullStore(SlowStore):
    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        raise StoreFullError("The disk is full.")


def test_a_full_disk_ends_the_batch_with_its_own_error(requests: list[Request]) -> None:
    with pytest.raises(StoreFullError):
        CachedProvider(ScriptedProvider(), FullStore()).complete(requests)


def test_the_stored_form_holds_everything_and_takes_odd_characters() -> None:
    reply = Completion("Score: 4 \ud83d – “quoted”\x00", "length", Usage(1, 0, 10, 3, 0.5, 4))
    stored = reply_to_json(reply)
    assert stored.isascii()
    assert reply_from_json(stored) == reply
    assert as_cached(reply).usage == Usage(cached=1, cost=0.0)
    assert as_cached(Completion("", "stop", Usage(requests=1))).usage.cost is None


CHILD = """
import sys
sys.path.insert(0, {root!r})
import importlib.util
from core.providers.base import Message, Request
from core.providers.cached import CachedProvider
from core.providers.openai_api import OpenAIProvider
spec = importlib.util.spec_from_file_location("stores", {stores!r})
stores = importlib.util.module_from_spec(spec); spec.loader.exec_module(stores)
from pathlib import Path
requests = [Request("fake-judge", (Message("user", f"Prompt {{n}}"),), 0.0, 64) for n in range(400)]
provider = CachedProvider(OpenAIProvider({url!r}, concurrency=8), stores.SqliteReplies(Path({database!r})))
replies = provider.complete(requests, on_reply=lambda index, reply: print(index, flush=True))
print("sent", sum(reply.usage.requests for reply in replies), flush=True)
provider.close()
"""


def _stats(base_url: str) -> dict[str, int]:
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/stats") as reply:
        return dict(json.load(reply))


def test_kill_9_loses_no_reply_that_counted(server: Any, tmp_path: Path, repository: Path) -> None:
    """Killed in the middle and started again: what was reported done is never sent again."""
    server.fake.latency = 0.02
    database = tmp_path / "replies.sqlite"
    stores = repository / "tests" / "core" / "providers" / "conftest.py"
    code = CHILD.format(root=str(repository), stores=str(stores), url=server.base_url, database=str(database))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    done = [int(child.stdout.readline()) for _ in range(100)]
    os.kill(child.pid, signal.SIGKILL)
    done += [int(line) for line in child.stdout if line.strip()]
    child.stdout.close()
    child.wait()
    time.sleep(0.1)
    with sqlite3.connect(database) as connection:
        kept = connection.execute("SELECT count(*) FROM replies").fetchone()[0]
    connection.close()
    before = _stats(server.base_url)
    assert len(done) <= kept <= before["answered"] < 400
    assert before["answered"] - kept <= 3 * 8, "at most what was on its way to the disk"
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    sent = int(again.stdout.splitlines()[-1].removeprefix("sent "))
    assert sent == 400 - kept
    assert _stats(server.base_url)["requests"] - before["requests"] == sent
