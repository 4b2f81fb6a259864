"""What a run was answered belongs to the run: its own answers first, then the cache, then the endpoint.

A run that goes on after a kill reads every answer as it first counted: a reply with what it cost when it was paid, a
reply found in the cache as found, a failure as that failure.  So it takes the same way to the same result, calls and
cost, and no answered request is asked twice.  A new run asks anew what failed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from core.providers.base import Failure, OnReply, Provider, Reply, ReplyStore, Request, RunAnswers
from core.providers.cached import CachedProvider, as_cached, reply_from_json


class AnsweredByRun:
    """Wraps the cached provider of a run."""

    def __init__(self, inner: Provider, answers: RunAnswers) -> None:
        self.inner, self._answers = inner, answers

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `Provider.complete`."""
        keys = [request.key(self.endpoint) for request in requests]
        own = self._answers.answered(keys)
        replies: dict[int, Reply] = {}

        def deliver(index: int, reply: Reply) -> None:
            self._answers.counted.add(keys[index])
            replies[index] = reply
            if on_reply is not None:
                on_reply(index, reply)

        for index, key in enumerate(keys):
            if key in own:
                deliver(index, self._as_it_counted(key, *own[key]))
        missing = [index for index, key in enumerate(keys) if key not in own]
        if missing:
            self.inner.complete(
                [requests[index] for index in missing], on_reply=lambda place, reply: deliver(missing[place], reply)
            )
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        self.inner.close()

    def _as_it_counted(self, key: str, text: str, paid: bool) -> Reply:
        stored = json.loads(text)
        if "failure" in stored:
            return Failure(stored["failure"])
        reply = reply_from_json(text)
        return reply if paid and key not in self._answers.counted else as_cached(reply)


def with_cache(provider: Provider, replies: ReplyStore | None) -> Provider:
    """`provider` answering from `replies` first, where there is a store; a run's own answers before those."""
    if replies is None:
        return provider
    cached = CachedProvider(provider, replies)
    return AnsweredByRun(cached, replies) if isinstance(replies, RunAnswers) else cached
