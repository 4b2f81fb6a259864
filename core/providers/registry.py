"""Endpoints and files → providers.  The SDK is imported only when a provider for an endpoint is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.errors import ConsentError
from core.providers.base import Provider, Reply, ReplyStore, Request
from core.providers.cached import CachedProvider
from core.providers.prices import Price

OnReply = Callable[[int, Reply], None]


@dataclass(frozen=True)
class ClosedProvider:
    """Stands where an endpoint may not be asked: kept replies are found under its name, and nothing is ever sent."""

    endpoint: str
    why: ConsentError

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """ConsentError, unless there is nothing to ask."""
        if requests:
            raise ConsentError(str(self.why), self.endpoint)
        return []

    def close(self) -> None:
        """Nothing to release."""


def openai_provider(base_url: str, *, api_key: str | None, concurrency: int, prices: Mapping[str, Price]) -> Provider:
    """A provider for an OpenAI-compatible endpoint."""
    from core.providers.openai_api import OpenAIProvider

    return OpenAIProvider(base_url, api_key=api_key, concurrency=concurrency, prices=prices)


def with_cache(provider: Provider, replies: ReplyStore | None) -> Provider:
    """`provider` answering from `replies` first, where there is a store."""
    return provider if replies is None else CachedProvider(provider, replies)
