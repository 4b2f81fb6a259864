"""Cache replies by request key: asked once, never paid for twice.

`CachedProvider` looks a batch up in one query and sends what is missing. A reply counts only after it is committed. A
writer thread commits replies in groups, so a killed process loses at most those of its last few milliseconds.

What a run was answered belongs to the run (`RunAnswers`): its own answers come first, then the cache, then the
endpoint. A resumed run reads every answer as it first counted: a paid reply with its cost, a cached reply as cached, a
failure as that failure. So it takes the same way to the same result and cost. A new run asks again for what failed.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

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
        self._lock = threading.Lock()
        self._writer: _Writer | None = None

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `Provider.complete`; a cached reply has `cached` set, `Usage.requests` 0 and `Usage.cached` 1.

        Equal requests within a batch are sent once; the repeats count as cached.
        """
        batch = _Batch(requests, self.endpoint, on_reply)
        if missing := self._deliver_known(batch):
            with self._writing() as writer:

                def arrived(index: int, reply: Reply) -> None:
                    writer.add(batch, missing[index], reply)
                    self._deliver_kept(batch)

                try:
                    self.inner.complete([batch.request(key) for key in missing], on_reply=arrived)
                finally:
                    writer.finish()
                self._deliver_kept(batch)
        return batch.replies()

    @contextmanager
    def _writing(self) -> Iterator[_Writer]:
        """One writer serves all batches in progress: each alone would wait for the others' commits."""
        with self._lock:
            writer = self._writer = self._writer or _Writer(self.store)
            writer.n_batches += 1
        try:
            yield writer
        finally:
            with self._lock:
                writer.n_batches -= 1
                if writer.n_batches == 0 and self._writer is writer:
                    self._writer = None
                    writer.end()

    def close(self) -> None:
        self.inner.close()

    def _deliver_known(self, batch: _Batch) -> list[str]:
        """Deliver what the run was answered already and what the store holds; returns the keys of the rest."""
        keys = list(batch.places)
        if isinstance(self.store, RunAnswers):
            own = self.store.answered(keys)
            for key in own:
                text, paid = own[key]
                stored, paid = json.loads(text), paid and key not in self.store.counted
                if "failure" in stored:
                    reply: Reply = Failure(stored["failure"], Usage(**stored.get("usage", {})) if paid else Usage())
                else:
                    reply = reply_from_json(text) if paid else as_cached(reply_from_json(text))
                self._deliver(batch, key, reply)
            keys = [key for key in keys if key not in own]
        stored_replies = self.store.get_replies(keys) if keys else {}
        for key in filter(stored_replies.__contains__, keys):
            self._deliver(batch, key, as_cached(reply_from_json(stored_replies[key])))
        return [key for key in keys if key not in stored_replies]

    def _deliver_kept(self, batch: _Batch) -> None:
        """Deliver the replies that are committed by now."""
        while not batch.kept.empty():
            self._deliver(batch, *batch.kept.get())

    def _deliver(self, batch: _Batch, key: str, reply: Reply) -> None:
        if isinstance(self.store, RunAnswers):
            self.store.counted.add(key)
        batch.deliver(key, reply)


class _Batch:
    """Requests by key, with the places in the batch that wait for each; `kept` holds replies that are committed."""

    def __init__(self, requests: Sequence[Request], endpoint: str, on_reply: OnReply | None) -> None:
        self._requests = requests
        self._on_reply = on_reply
        self._replies: dict[int, Reply] = {}
        self.kept: queue.SimpleQueue[tuple[str, Reply]] = queue.SimpleQueue()
        self.places: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            self.places.setdefault(request.key(endpoint), []).append(index)

    def request(self, key: str) -> Request:
        return self._requests[self.places[key][0]]

    def deliver(self, key: str, reply: Reply) -> None:
        for index in self.places[key]:
            self._replies[index] = reply
            if self._on_reply is not None:
                self._on_reply(index, reply)
            reply = as_cached(reply) if isinstance(reply, Completion) else Failure(reply.message)

    def replies(self) -> list[Reply]:
        return [self._replies[index] for index in range(len(self._requests))]


class _Writer:
    """A thread that commits what has queued up, in groups, for all running batches."""

    def __init__(self, store: ReplyStore) -> None:
        self.n_batches = 0
        self.error: Exception | None = None
        self._store = store
        self._queue: queue.SimpleQueue[tuple[_Batch, str, Reply] | threading.Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="concord-replies", daemon=True)
        self._thread.start()

    def add(self, batch: _Batch, key: str, reply: Reply) -> None:
        """Queue a reply; raises what the store raised for an earlier one, so that no more are paid for."""
        if self.error is not None:
            raise self.error
        self._queue.put((batch, key, reply))

    def finish(self) -> None:
        """Wait until all that was added is committed; raises what the store raised."""
        committed = threading.Event()
        self._queue.put(committed)
        committed.wait()
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            group = [self._queue.get()]
            if isinstance(group[0], tuple):
                time.sleep(GATHER)
            while not self._queue.empty():
                group.append(self._queue.get())
            ended = None in group
            try:
                self._commit([entry for entry in group if isinstance(entry, tuple)])
            except Exception as error:  # handed to the batches, which raise it
                self.error = error
            for entry in group:
                if isinstance(entry, threading.Event):
                    entry.set()

    def _commit(self, group: Sequence[tuple[_Batch, str, Reply]]) -> None:
        if not group or self.error is not None:
            return
        replies, failures = list[tuple[str, str]](), list[tuple[str, str]]()
        for batch, key, reply in group:
            if isinstance(reply, Failure):
                failures.append((key, failure_to_json(reply)))
            else:
                reads = batch.request(key).reads
                replies.append((key, reply_to_json(reply, unread=reads is not None and not reads(reply))))
        self._store.put_replies(replies)
        if failures and isinstance(self._store, RunAnswers):
            self._store.put_failures(failures)
        for batch, key, reply in group:
            batch.kept.put((key, reply))


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
