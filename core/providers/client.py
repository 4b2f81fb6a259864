"""A client for one endpoint, which sends what it was told to send, to that place alone.

Keys and headers of its own belong to one place (scheme, host, port).  A redirect that leads to another is an error:
what was meant for the one is not sent to the other, neither the key nor the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
from openai import AsyncOpenAI, DefaultAioHttpClient

from core.errors import UsageError
from core.providers.endpoints import place_of
from core.providers.transport import CODINGS, BoundedTransport
from core.secret_values import remember

_NO_KEY = "none"
_CONNECT_SECONDS = 10.0
_OF_THE_SDK = ("host", "accept", "content-", "user-agent", "x-stainless-", "connection", "transfer-encoding")
"""How the names of headers begin that say nothing of who asks."""


class RedirectedError(httpx2.TransportError):
    """The endpoint answered with a redirect to another place; `target` is that place, without path and query."""

    def __init__(self, target: str) -> None:
        super().__init__(f"redirected to {target}")
        self.target = target


class _Client(DefaultAioHttpClient):
    """The SDK's client, with every transport bounded; it makes them in these two methods."""

    def _init_transport(self, *arguments: Any, **named: Any) -> httpx2.AsyncBaseTransport:
        return BoundedTransport(super()._init_transport(*arguments, **named))

    def _init_proxy_transport(self, *arguments: Any, **named: Any) -> httpx2.AsyncBaseTransport:
        return BoundedTransport(super()._init_proxy_transport(*arguments, **named))


def client_of(base_url: str, api_key: str | None, headers: Mapping[str, str], timeout: float) -> AsyncOpenAI:
    """A client for `base_url`; its own retries are off."""
    own = httpx2.Headers({"Authorization": f"Bearer {api_key or _NO_KEY}"})
    own.update(headers)
    for value in (api_key, *headers.values()):
        remember(value)

    async def send_ours(request: httpx2.Request) -> None:
        """The SDK reads further keys and headers from the environment, which only Settings does here."""
        for name in [name for name in request.headers if not name.lower().startswith(_OF_THE_SDK)]:
            del request.headers[name]
        request.headers.update(own)
        request.headers["accept-encoding"] = CODINGS

    limits = httpx2.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout))
    return AsyncOpenAI(
        api_key=api_key or _NO_KEY,
        base_url=base_url,
        timeout=limits,
        max_retries=0,
        http_client=_Client(
            timeout=limits,
            event_hooks={"request": [send_ours], "response": [_refuse_redirect_elsewhere]},
        ),
    )


async def _refuse_redirect_elsewhere(response: httpx2.Response) -> None:
    if not response.has_redirect_location:
        return
    asked = response.request.url
    try:
        target = asked.join(response.headers["location"])
        shown = f"{target.scheme}://{target.host}" + (f":{target.port}" if target.port else "")
        elsewhere = place_of(shown) != place_of(str(asked.copy_with(query=None)))
    except (UsageError, httpx2.InvalidURL, ValueError):
        elsewhere, shown = True, "a URL that cannot be read"
    if elsewhere:
        raise RedirectedError(shown)
