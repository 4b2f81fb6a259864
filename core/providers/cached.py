"""Cache the replies of language models by request, and replay recorded sessions.

`CachedProvider` returns a reply only after the reply is stored. If the process is killed, only the replies of a few
milliseconds are lost.

A run also stores its own replies (`RunAnswers`), with their costs and failures. A request is answered from the run's
own replies if possible, else from the cache, else by the endpoint. So a resumed run reaches the same result at the same
cost. A new run sends failed requests again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
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
"""Seconds to collect replies before a commit, since many small commits would slow down reading."""


class CachedProvider:
    """A provider that answers from `store`, and asks `inner` for the missing replies.

    Failures are stored only for the current run.
    """

    def __init__(self, inner: Provider, store: ReplyStore) -> None:
        self.inner = inner
        self.store = store
        self._writer = ThreadPoolExecutor(1, "concord-replies")  # shared by all batches, so that commits are grouped
        self._lock = threading.Lock()
        self._arrived: list[tuple[Request, str, Reply, SimpleQueue[tuple[str, Reply]]]] = []
        self._error: Exception | None = None

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Complete the requests, from the cache where possible (see `Provider.complete`).

        A cached reply has `cached` set, `Usage.requests` 0 and `Usage.cached` 1. Equal requests in a batch are sent
        once; the other copies count as cached.
        """
        places: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            places.setdefault(request.key(self.endpoint), []).append(index)
        replies: dict[int, Reply] = {}
        committed: SimpleQueue[tuple[str, Reply]] = SimpleQueue()

        def deliver(key: str, reply: Reply) -> None:
            if isinstance(self.store, RunAnswers):
                self.store.counted.add(key)
            for index in places[key]:
                replies[index] = reply
                if on_reply is not None:
                    on_reply(index, reply)
                reply = as_cached(reply) if isinstance(reply, Completion) else Failure(reply.message)

        def deliver_committed() -> None:
            while not committed.empty():
                deliver(*committed.get())

        for key, reply in self._known(list(places)):
            deliver(key, reply)
        missing = [key for key in places if places[key][0] not in replies]
        if not missing:
            return [replies[index] for index in range(len(requests))]
        commit: Future[None] | None = None

        def arrived(number: int, reply: Reply) -> None:
            nonlocal commit
            if self._error is not None:
                raise self._error  # stop paying for replies that can't be stored
            with self._lock:
                key = missing[number]
                self._arrived.append((requests[places[key][0]], key, reply, committed))
            commit = self._writer.submit(self._commit)
            deliver_committed()

        try:
            self.inner.complete([requests[places[key][0]] for key in missing], on_reply=arrived)
        finally:
            if commit is not None:
                commit.result()
        deliver_committed()
        return [replies[index] for index in range(len(requests))]

    def _known(self, keys: list[str]) -> Iterable[tuple[str, Reply]]:
        """Yield (key, reply) for the run's own answers, then for the replies in the store."""
        own = self.store.answered(keys) if isinstance(self.store, RunAnswers) else {}
        for key, (text, paid) in own.items():
            stored, costs = json.loads(text), paid and key not in self.store.counted  # type: ignore[attr-defined]
            if "failure" in stored:
                yield key, Failure(stored["failure"], Usage(**stored.get("usage", {})) if costs else Usage())
            else:
                yield key, reply_from_json(text) if costs else as_cached(reply_from_json(text))
        rest = [key for key in keys if key not in own]
        known = self.store.get_replies(rest) if rest else {}
        yield from ((key, as_cached(reply_from_json(known[key]))) for key in rest if key in known)

    def _commit(self) -> None:
        """Commit the replies of all batches that have arrived."""
        if self._arrived:
            time.sleep(GATHER)
        with self._lock:
            group, self._arrived = self._arrived, []
        replies, failures = list[tuple[str, str]](), list[tuple[str, str]]()
        for request, key, reply, _ in group:
            if isinstance(reply, Failure):
                usage = {} if reply.usage == Usage() else {"usage": asdict(reply.usage)}
                failures.append((key, json.dumps({"failure": reply.message, **usage})))
            else:
                unread = request.reads is not None and not request.reads(reply)
                replies.append((key, reply_to_json(reply, unread=unread)))
        try:
            self.store.put_replies(replies)
            if failures and isinstance(self.store, RunAnswers):
                self.store.put_failures(failures)
        except Exception as error:
            with self._lock:
                self._arrived[:0], self._error = group, error  # the next commit tries again
            raise
        self._error = None
        for _, key, reply, committed in group:
            committed.put((key, reply))

    def close(self) -> None:
        self.inner.close()


@cache
def _form() -> TypeAdapter[Completion]:
    from pydantic import TypeAdapter

    return TypeAdapter(Completion)


def reply_to_json(reply: Completion, *, unread: bool = False) -> str:
    """Return a reply and its usage as JSON for the store. `unread` marks a reply that could not be parsed."""
    fields: dict[str, Any] = _form().dump_python(reply, mode="json", exclude_defaults=True)
    return json.dumps(fields | ({"unread": True} if unread else {}))


def reply_from_json(stored: str) -> Completion:
    """Parse a stored reply, with the usage that was paid for. Raises ValueError for any other text."""
    return _form().validate_json(stored)


def as_cached(reply: Completion) -> Completion:
    """Return the reply marked as cached, with no requests and a cost of 0 (None if the price is unknown)."""
    usage = Usage(cached=1, cost=None if reply.usage.cost is None else 0.0)
    return replace(reply, usage=usage, cached=True)


def with_cache(provider: Provider, replies: ReplyStore | None) -> Provider:
    """Return `provider` with the cache `replies`. If `replies` is None, return `provider` itself."""
    return provider if replies is None else CachedProvider(provider, replies)


# ── recorded sessions ────────────────────────────────────────────────────────────────────────────────────────

_LONGEST_PAUSE = 1.0


class RecordedProvider:
    """A provider that replays a recorded session. It rejects requests that were not recorded.

    The recording is a JSONL file:

    - The first line is ``{"endpoint": URL, "model": NAME}``. An additional ``"pace": N`` limits the replay to N replies
      per second, so that people can watch it.
    - Each other line is ``{"key": KEY, "reply": {...}}``, with the reply in the format of the reply cache.
    """

    def __init__(self, path: Path) -> None:
        """Read the recording. Raises UsageError, which names the line, if it cannot be read."""
        self.name, self.replies, number = path.name, dict[str, str](), 1
        try:
            head, *rows = path.read_text(encoding="utf-8").splitlines() or [""]
            about = json.loads(head)
            self.endpoint, self.model = str(about["endpoint"]), str(about["model"])
            self._pace = float(about.get("pace", 0))
            for line in rows:
                number += 1
                row = json.loads(line)
                reply_from_json(text := json.dumps(row["reply"]))
                self.replies[str(row["key"])] = text
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{path}, line {number}: Concord can't read this recording ({error}).") from error

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Return the recorded replies (see `Provider.complete`).

        Raises ProviderError at the first request that was not recorded.
        """
        replies: list[Reply] = []
        for index, request in enumerate(requests):
            stored = self.replies.get(request.key(self.endpoint))
            if stored is None:
                raise ProviderError(
                    f"The recording {self.name} doesn't contain the reply to request {index + 1} of {len(requests)}.",
                    hint="A recording contains only the replies from one run. Use that run's items, criteria, prompts "
                    "and settings, or use a live judge.",
                )
            if self._pace > 0:
                time.sleep(min(_LONGEST_PAUSE, 1 / self._pace))
            replies.append(as_cached(reply_from_json(stored)))
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Do nothing, because a recording has no connections."""
