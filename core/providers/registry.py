"""Endpoints and files → providers.  The SDK is imported only when a provider for an endpoint is made."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from core.errors import UsageError
from core.providers.base import Provider, ReplyStore
from core.providers.cached import CachedProvider
from core.providers.prices import Price

OPENAI_URL = "https://api.openai.com/v1"


def openai_provider(base_url: str, *, api_key: str | None, concurrency: int, prices: Mapping[str, Price]) -> Provider:
    """A provider for an OpenAI-compatible endpoint."""
    from core.providers.openai_api import OpenAIProvider

    return OpenAIProvider(base_url, api_key=api_key, concurrency=concurrency, prices=prices)


def with_cache(provider: Provider, replies: ReplyStore | None) -> Provider:
    """`provider` answering from `replies` first, where there is a store."""
    return provider if replies is None else CachedProvider(provider, replies)


def checked_base_url(url: str) -> str:
    """`url` without a trailing slash.  UsageError when it holds a secret or is no http(s) URL; it is never repeated
    in the message, since it may hold one."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise UsageError("The base URL of an endpoint must look like http://127.0.0.1:8000/v1 or https://HOST/v1.")
    if "@" in parts.netloc:
        raise UsageError("The base URL holds a user name or password. Leave it out; the key goes into OPENAI_API_KEY.")
    if parts.query or parts.fragment:
        raise UsageError("The base URL must end with its path: no '?' or '#'. A key goes into OPENAI_API_KEY.")
    return url.rstrip("/")
