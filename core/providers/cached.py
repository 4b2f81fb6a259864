"""Replies kept by request key: asked once, never paid for twice.

`CachedProvider` looks a batch up in one query, sends what is missing, and counts a reply as done only after it is
committed.  Commits are grouped: a writer thread stores whatever has arrived since its last commit, so that
throughput stays and a killed process loses at most the replies of its last few milliseconds.

What a run was answered belongs to the run (`RunAnswers`): its own answers first, then the cache, then the endpoint.  A
run that goes on after a kill reads every answer as it first counted: a reply with what it cost when it was paid, a
reply found in the cache as found, a failure as that failure.  So it takes the same way to the same result, calls and
cost, and no answered request is asked twice.  A new run asks anew what failed.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from core.providers.completions import (
    AsyncProvider,
    Completion,
    Failure,
    OnReply,
    Provider,
    Reply,
    ReplyStore,
    Request,
    RunAnswers,
    TokenLogprobs,
)
from core.records import Usage

GATHER = 0.02
"""Seconds in which replies gather for one commit: many small ones would take the time in which others are read."""


class CachedProvider:
    """Wraps `inner` with `store`.  Failures are stored for the run that asked alone, errors never."""

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

    async def complete_async(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `complete`, awaited; where `inner` cannot be awaited, a thread asks it.  `on_reply` runs anywhere."""
        inner = self.inner
        if not isinstance(inner, AsyncProvider):
            return await asyncio.to_thread(self.complete, requests, on_reply=on_reply)
        batch = _Batch(requests, self.endpoint, on_reply)
        if missing := await asyncio.to_thread(self._deliver_known, batch):
            with self._writing() as writer:
                try:
                    await inner.complete_async(
                        [batch.request(key) for key in missing],
                        on_reply=lambda index, reply: writer.add(batch, missing[index], reply),
                    )
                finally:
                    await asyncio.to_thread(writer.finish)
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
        """Deliver what the run was answered already and what the store holds; the keys of the rest."""
        keys = list(batch.places)
        if isinstance(self.store, RunAnswers):
            own, counted = self.store.answered(keys), self.store.counted
            self._deliver(batch, ((k, _as_it_counted(*own[k], again=k in counted)) for k in keys if k in own))
            keys = [key for key in keys if key not in own]
        stored = self.store.get_replies(keys) if keys else {}
        self._deliver(batch, ((key, as_cached(reply_from_json(stored[key]))) for key in keys if key in stored))
        return [key for key in keys if key not in stored]

    def _deliver_kept(self, batch: _Batch) -> None:
        """Deliver the replies that are committed by now."""
        while not batch.kept.empty():
            self._deliver(batch, [batch.kept.get()])

    def _deliver(self, batch: _Batch, answers: Iterable[tuple[str, Reply]]) -> None:
        for key, reply in answers:
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
    """A thread that commits what has queued up, in groups, for all batches that are under way."""

    def __init__(self, store: ReplyStore) -> None:
        self.n_batches = 0
        self.error: Exception | None = None
        self._store = store
        self._queue: queue.SimpleQueue[_Arrived | threading.Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="concord-replies", daemon=True)
        self._thread.start()

    def add(self, batch: _Batch, key: str, reply: Reply) -> None:
        """Queue a reply; raises what the store raised for an earlier one, so that no more are paid for."""
        if self.error is not None:
            raise self.error
        reads = batch.request(key).reads
        if isinstance(reply, Failure):
            text = failure_to_json(reply)
        else:
            text = reply_to_json(reply, unread=reads is not None and not reads(reply))
        self._queue.put(_Arrived(batch.kept, key, reply, text))

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
            if isinstance(group[0], _Arrived):
                time.sleep(GATHER)
            while not self._queue.empty():
                group.append(self._queue.get())
            ended = None in group
            self._commit([entry for entry in group if isinstance(entry, _Arrived)])
            for entry in group:
                if isinstance(entry, threading.Event):
                    entry.set()

    def _commit(self, group: Sequence[_Arrived]) -> None:
        if not group or self.error is not None:
            return
        try:
            self._store.put_replies([(a.key, a.text) for a in group if isinstance(a.reply, Completion)])
            failures = [(a.key, a.text) for a in group if isinstance(a.reply, Failure)]
            if failures and isinstance(self._store, RunAnswers):
                self._store.put_failures(failures)
        except Exception as error:  # handed to the batches, which raise it
            self.error = error
            return
        for arrived in group:
            arrived.kept.put((arrived.key, arrived.reply))


class _Arrived(NamedTuple):
    """A reply with its stored form, and where to put it when it is committed."""

    kept: queue.SimpleQueue[tuple[str, Reply]]
    key: str
    reply: Reply
    text: str


def reply_to_json(reply: Completion, *, unread: bool = False) -> str:
    """The stored form of a reply; the usage is that of the request that was paid for.  `unread`: it says nothing."""
    fields: dict[str, Any] = {"text": reply.text, "finish": reply.finish, "usage": asdict(reply.usage)}
    if unread:
        fields["unread"] = True
    if reply.logprobs:
        fields["logprobs"] = [[place.token, place.top] for place in reply.logprobs]
    if reply.thinking:
        fields["thinking"] = reply.thinking
    if reply.without:
        fields["without"] = reply.without
    if reply.room:
        fields["room"] = reply.room
    return json.dumps(fields)


def reply_from_json(stored: str) -> Completion:
    """The reply as it was when it was paid for."""
    fields = json.loads(stored)
    logprobs = tuple(
        TokenLogprobs(token, tuple((str(other), float(logprob)) for other, logprob in top))
        for token, top in fields.get("logprobs", ())
    )
    return Completion(
        fields["text"],
        fields["finish"],
        Usage(**fields["usage"]),
        logprobs=logprobs,
        thinking=int(fields.get("thinking", 0)),
        without=tuple(map(str, fields.get("without", ()))),
        room=int(fields.get("room", 0)),
    )


def failure_to_json(failure: Failure) -> str:
    """With what it cost, where that is anything."""
    fields: dict[str, Any] = {"failure": failure.message}
    return json.dumps(fields if failure.usage == Usage() else fields | {"usage": asdict(failure.usage)})


def as_cached(reply: Completion) -> Completion:
    """The same text, marked as found: nothing sent, nothing paid (cost 0, or None where the price is unknown)."""
    usage = Usage(cached=1, cost=None if reply.usage.cost is None else 0.0)
    return replace(reply, usage=usage, cached=True)


def _as_it_counted(text: str, paid: bool, *, again: bool) -> Reply:
    """A run's own answer: what it paid for with its cost, unless it has counted since the run was taken up."""
    stored = json.loads(text)
    if "failure" in stored:
        paid_for = Usage(**stored["usage"]) if "usage" in stored and paid and not again else Usage()
        return Failure(stored["failure"], paid_for)
    reply = reply_from_json(text)
    return reply if paid and not again else as_cached(reply)


def with_cache(provider: Provider, replies: ReplyStore | None) -> Provider:
    """`provider` answering from `replies` first, where there is a store."""
    return provider if replies is None else CachedProvider(provider, replies)
