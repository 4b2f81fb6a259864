"""The `Provider` protocol: requests for completions out, completions in.  No judging here.

A provider answers a *batch* of requests concurrently and in order of submission (so a server's prefix cache
works), and never raises for one bad reply: that one is a `Failure` in its place.  It raises `ProviderError` only
for what makes going on pointless: a refused key, an unknown model, an endpoint that is down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.records import Usage, content_digest


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One completion to ask for.  `sample` tells apart repeated samples of the same prompt at temperature > 0."""

    model: str
    messages: tuple[Message, ...]
    temperature: float
    max_tokens: int
    top_p: float = 1.0
    seed: int | None = None
    sample: int = 0
    json_schema: str = ""

    def key(self, endpoint: str) -> str:
        """Content hash of all that can change the answer, the endpoint's URL among it; no key, no time-out."""
        return content_digest(
            "reply",
            [
                endpoint,
                self.model,
                [[m.role, m.content] for m in self.messages],
                self.temperature,
                self.max_tokens,
                self.top_p,
                self.seed,
                self.sample,
                self.json_schema,
            ],
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply: `finish` is "stop", "length" (truncated) or "refusal"; `cached` when it came from the store."""

    text: str
    finish: str
    usage: Usage
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """This one request could not be answered (content filter, malformed reply); the others were."""

    message: str


Reply = Completion | Failure


class ReplyStore(Protocol):
    """Where replies are kept by request key; implemented by the store, handed to the cached provider."""

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored JSON text, for those that are there."""
        ...

    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        """Store (key, JSON text) pairs; committed when this returns; storing a key twice keeps the first."""
        ...


class Provider(Protocol):
    @property
    def endpoint(self) -> str:
        """URL or name that becomes part of the cache key; never holds a key or user info."""
        ...

    def complete(
        self, requests: Sequence[Request], *, on_reply: Callable[[int, Reply], None] | None = None
    ) -> list[Reply]:
        """Replies in the order of `requests`; `on_reply(index, reply)` as each arrives."""
        ...

    def close(self) -> None: ...
