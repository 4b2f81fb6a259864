"""Cache replies by request key: asked once, never paid for twice.

`CachedProvider` looks a batch up in one query and sends what is missing. A reply counts only after it is committed. A
writer thread commits replies in groups, so a killed process loses at most those of its last few milliseconds.

What a run was answered belongs to the run (`RunAnswers`): its own answers come first, then the cache, then the
endpoint. A resumed run reads every answer as it first counted: a paid reply with its cost, a cached reply as cached, a
failure as that failure. So it takes the same way to the same result and cost. A new run asks again for what failed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from core.errors import ProviderError, UsageError
from core.providers.completions import (
    Completion,
    Failure,
    OnReply,
    Provider,
    Reply,
    ReplyStore,
    Request,
    RunAnswers,
)
from core.records import Usage

if TYPE_CHECKING:
    from pydantic import TypeAdapter

GATHER = 0.02
"""Seconds in which replies gather for one commit, since many small commits would slow down reading."""


class CachedProvider:
    """Answer from `store`, and ask `inner` for the rest.  Failures are stored only for the run that asked."""

    def __init__(self, inner: Provider, store: ReplyStore) -> None:
        self.inner = inner
        self.store = store
        self._writer = ThreadPoolExecutor(1, "concord-replies")  # one for all batches: it commits in groups
        self._lock = threading.Lock()
        self._arrived: list[tuple[_Batch, str, Reply]] = []
        self._error: Exception | None = None

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `Provider.complete`; a cached reply has `cached` set, `Usage.requests` 0 and `Usage.cached` 1.

        Equal requests within a batch are sent once; the repeats count as cached.
        """
        batch = _Batch(requests, self.endpoint, on_reply, self.store)
        if missing := batch.deliver_known():
            commit: Future[None] | None = None

            def arrived(index: int, reply: Reply) -> None:
                nonlocal commit
                if self._error is not None:
                    raise self._error  # no more are paid for
                with self._lock:
                    self._arrived.append((batch, missing[index], reply))
                commit = self._writer.submit(self._commit)
                batch.deliver_committed()

            try:
                self.inner.complete([batch.request(key) for key in missing], on_reply=arrived)
            finally:
                if commit is not None:
                    commit.result()
            batch.deliver_committed()
        return [batch.replies[index] for index in range(len(requests))]

    def _commit(self) -> None:
        """Commit what has arrived by now, of all batches."""
        if self._arrived:
            time.sleep(GATHER)
        with self._lock:
            group, self._arrived = self._arrived, []
        replies, failures = list[tuple[str, str]](), list[tuple[str, str]]()
        for batch, key, reply in group:
            if isinstance(reply, Failure):
                failures.append((key, failure_to_json(reply)))
            else:
                reads = batch.request(key).reads
                replies.append((key, reply_to_json(reply, unread=reads is not None and not reads(reply))))
        try:
            self.store.put_replies(replies)
            if failures and isinstance(self.store, RunAnswers):
                self.store.put_failures(failures)
        except Exception as error:
            with self._lock:
                self._arrived[:0], self._error = group, error  # the next commit tries again
            raise
        self._error = None
        for batch, key, reply in group:
            batch.committed.put((key, reply))

    def close(self) -> None:
        self.inner.close()


class _Batch:
    """Requests by key, with the places in the batch that wait for each."""

    def __init__(self, requests: Sequence[Request], endpoint: str, on_reply: OnReply | None, store: ReplyStore) -> None:
        self._requests, self._on_reply, self._store = requests, on_reply, store
        self.replies: dict[int, Reply] = {}
        self.committed: SimpleQueue[tuple[str, Reply]] = SimpleQueue()
        self._places: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            self._places.setdefault(request.key(endpoint), []).append(index)

    def request(self, key: str) -> Request:
        return self._requests[self._places[key][0]]

    def deliver_known(self) -> list[str]:
        """Deliver what the run was answered already and what the store holds; returns the keys of the rest."""
        keys, store = list(self._places), self._store
        if isinstance(store, RunAnswers):
            own = store.answered(keys)
            for key in own:
                text, paid = own[key]
                stored, paid = json.loads(text), paid and key not in store.counted
                if "failure" in stored:
                    self._deliver(
                        key, Failure(stored["failure"], Usage(**stored.get("usage", {})) if paid else Usage())
                    )
                else:
                    self._deliver(key, reply_from_json(text) if paid else as_cached(reply_from_json(text)))
            keys = [key for key in keys if key not in own]
        known = store.get_replies(keys) if keys else {}
        for key in filter(known.__contains__, keys):
            self._deliver(key, as_cached(reply_from_json(known[key])))
        return [key for key in keys if key not in known]

    def deliver_committed(self) -> None:
        while not self.committed.empty():
            self._deliver(*self.committed.get())

    def _deliver(self, key: str, reply: Reply) -> None:
        if isinstance(self._store, RunAnswers):
            self._store.counted.add(key)
        for index in self._places[key]:
            self.replies[index] = reply
            if self._on_reply is not None:
                self._on_reply(index, reply)
            reply = as_cached(reply) if isinstance(reply, Completion) else Failure(reply.message)


@cache
def _form() -> TypeAdapter[Completion]:
    from pydantic import TypeAdapter

    return TypeAdapter(Completion)


def reply_to_json(reply: Completion, *, unread: bool = False) -> str:
    """The stored form of a reply, with the usage that was paid for.  `unread`: it does not say what was asked."""
    fields = _form().dump_python(reply, mode="json", exclude_defaults=True)
    return json.dumps(fields | ({"unread": True} if unread else {}))


def reply_from_json(stored: str) -> Completion:
    """The reply as it was when it was paid for.  ValueError for what is not a stored reply."""
    return _form().validate_json(stored)


def failure_to_json(failure: Failure) -> str:
    """The stored form of a failure, with its cost if any."""
    fields: dict[str, Any] = {"failure": failure.message}
    return json.dumps(fields if failure.usage == Usage() else fields | {"usage": asdict(failure.usage)})


def as_cached(reply: Completion) -> Completion:
    """The same text, marked as cached: nothing sent, nothing paid (cost 0, or None if the price is unknown)."""
    usage = Usage(cached=1, cost=None if reply.usage.cost is None else 0.0)
    return replace(reply, usage=usage, cached=True)


def with_cache(provider: Provider, replies: ReplyStore | None) -> Provider:
    """`provider`, answering from `replies` first if there is a store."""
    return provider if replies is None else CachedProvider(provider, replies)


# ── recorded sessions ────────────────────────────────────────────────────────────────────────────────────────

_LONGEST_PAUSE = 1.0


@dataclass(frozen=True)
class RecordedSession:
    """Stored replies by request key, from which a session with an endpoint runs again anywhere.

    The file is JSONL: a first line ``{"endpoint": URL, "model": NAME}``, then one ``{"key": KEY, "reply": {...}}`` a
    line, the reply as the reply cache stores it.  With ``"pace": N`` in the first line N replies are given a second, so
    that people can watch a replay.
    """

    endpoint: str
    model: str
    replies: dict[str, str]
    pace: float = 0.0


def read_recording(path: Path) -> RecordedSession:
    """The recording at `path`.  UsageError names the line that cannot be read."""
    number, replies, expected = 1, dict[str, str](), '{"endpoint": URL, "model": NAME}'
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        head = json.loads(lines[0])
        endpoint, model, pace = str(head["endpoint"]), str(head["model"]), max(0.0, float(head.get("pace", 0)))
        expected = '{"key": KEY, "reply": {...}}'
        for line in lines[1:]:
            number += 1
            row = json.loads(line)
            reply_from_json(text := json.dumps(row["reply"]))
            replies[str(row["key"])] = text
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The recording {path} cannot be read: {error}") from error
    except (IndexError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path}, line {number}: expected {expected}.") from error
    return RecordedSession(endpoint, model, replies, pace)


def write_recording(
    path: Path, endpoint: str, model: str, replies: Iterable[tuple[str, str]], *, pace: float = 0.0
) -> None:
    """Write (key, stored JSON text) pairs as `read_recording` reads them."""
    head = {"endpoint": endpoint, "model": model} | ({"pace": pace} if pace else {})
    rows = [head, *({"key": key, "reply": json.loads(stored)} for key, stored in replies)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


class RecordedProvider:
    """Answers from a recording; a request that was not recorded is an error, never a guess."""

    def __init__(self, recording: RecordedSession, name: str) -> None:
        self.recording, self.name, self.endpoint = recording, name, recording.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Raises ProviderError at the first request that the recording does not hold."""
        replies: list[Reply] = []
        for index, request in enumerate(requests):
            stored = self.recording.replies.get(request.key(self.endpoint))
            if stored is None:
                raise ProviderError(
                    f"{self.name} holds no reply to request {index + 1} of {len(requests)}.",
                    hint="A recording answers only what was asked when it was made: "
                    "same items, criteria, prompts and settings. Use a live judge for anything else.",
                )
            if self.recording.pace:
                time.sleep(min(_LONGEST_PAUSE, 1 / self.recording.pace))
            replies.append(as_cached(reply_from_json(stored)))
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Nothing is held."""
