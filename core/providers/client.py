"""A client for one endpoint, which sends what it was told to send, to that place alone.

Keys and headers of its own belong to one place (scheme, host, port).  A redirect that leads to another is an error:
what was meant for the one is not sent to the other, neither the key nor the texts.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import httpx2
from openai import AsyncOpenAI, DefaultAioHttpClient

from core.errors import UsageError
from core.providers.access import Access
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


def client_of(base_url: str, api_key: str | None, access: Access, timeout: float) -> AsyncOpenAI:
    """A client for `base_url`; its own retries are off."""
    own, proxy = _own_headers(api_key, access), _proxy(access.proxy) if access.proxy else None

    async def send_ours(request: httpx2.Request) -> None:
        """The SDK reads further keys and headers from the environment, which only Settings does here."""
        for name in [name for name in request.headers if not name.lower().startswith(_OF_THE_SDK)]:
            del request.headers[name]
        request.headers.update(own)
        request.headers["accept-encoding"] = CODINGS
        if proxy is not None and request.url.scheme == "http":  # aiohttp tells them to a proxy of https alone
            request.headers.update(proxy.headers)

    limits = httpx2.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout))
    return AsyncOpenAI(
        api_key=api_key or _NO_KEY,
        base_url=base_url,
        timeout=limits,
        max_retries=0,
        default_query={"api-version": access.api_version} if access.api_version else None,
        http_client=_Client(
            timeout=limits,
            proxy=proxy,
            event_hooks={"request": [send_ours], "response": [_refuse_redirect_elsewhere]},
        ),
    )


def _proxy(url: str) -> httpx2.Proxy:
    """The user name and password in `url` become a header, as aiohttp wants it."""
    proxy = httpx2.URL(url)
    if not proxy.userinfo:
        return httpx2.Proxy(proxy)
    remember(proxy.password)
    login = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    bare = proxy.copy_with(username=None, password=None)
    return httpx2.Proxy(bare, headers={"Proxy-Authorization": f"Basic {login}"})


def _own_headers(api_key: str | None, access: Access) -> httpx2.Headers:
    bearer = {} if access.api_version else {"Authorization": f"Bearer {api_key or _NO_KEY}"}
    named = {
        "api-key": api_key if access.api_version else None,
        "OpenAI-Organization": access.organization,
        "OpenAI-Project": access.project,
    }
    headers = httpx2.Headers(bearer | {name: value for name, value in named.items() if value})
    headers.update(access.headers)
    for value in (api_key, *access.headers.values()):
        remember(value)
    return headers


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
