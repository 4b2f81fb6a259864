"""A client for one endpoint that sends only what it was told to send, and only to that place.

Keys and headers of its own belong to one place (scheme, host, port).  A redirect that leads to another is an error:
what was meant for the one is not sent to the other, neither the key nor the texts.

Whatever a server sends becomes a bounded HTTP response, or an error without foreign words: messages of aiohttp hold the
headers of the request, the key among them, so none of them goes on from here.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import aiohttp
import httpx2
from openai import AsyncOpenAI, DefaultAioHttpClient

from core.errors import UsageError
from core.providers.endpoints import place_of
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


# ── what a server sends ──────────────────────────────────────────────────────────────────────────────────────

MOST_BYTES = 8 << 20
"""Bytes of a decompressed body that are read; a completion has some thousands."""

CODINGS = "gzip"
"""What a server may compress its body with."""


class NotHttpError(httpx2.RemoteProtocolError):
    """The server sent something that is not HTTP, or HTTP that breaks its rules."""


class NotTlsError(httpx2.ConnectError):
    """The TLS handshake failed."""


class TooLargeError(httpx2.TransportError):
    """The body is longer than `MOST_BYTES`."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Pass requests on to `inner`; decompress the body here, where its size can be bounded."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        problem: Exception
        try:
            response = await self._inner.handle_async_request(request)
        except Exception as error:
            problem = in_our_words(error)
        else:
            coding = response.headers.pop("content-encoding", "identity").strip().lower()
            response.headers.pop("content-length", None)
            body = _Body(response.stream, coding)
            return httpx2.Response(
                response.status_code, headers=response.headers, stream=body, extensions=response.extensions
            )
        raise problem  # outside of the handler, so that it carries no foreign error along

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: object, coding: str) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream, self._coding = stream, coding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        problem: Exception | None = None
        try:
            async for chunk in self._plain():
                yield chunk
        except Exception as error:
            problem = in_our_words(error)
        if problem is not None:
            raise problem

    async def _plain(self) -> AsyncIterator[bytes]:
        if self._coding not in ("identity", "", "gzip"):
            raise NotHttpError("a content coding that was not asked for")
        unpack = zlib.decompressobj(wbits=31) if self._coding == "gzip" else None
        total = 0
        async for raw in self._stream:
            rest = raw
            while rest:
                chunk = unpack.decompress(rest, 1 << 16) if unpack else rest
                rest = unpack.unconsumed_tail if unpack else b""
                total += len(chunk)
                if total > MOST_BYTES:
                    raise TooLargeError(f"a body of more than {MOST_BYTES >> 20} MB")
                if chunk:
                    yield chunk

    async def aclose(self) -> None:
        with suppress(Exception):  # what closing an odd connection says is of no use, and may hold headers
            await self._stream.aclose()


def in_our_words(error: Exception) -> Exception:
    """An error of the same meaning that holds nothing of the request and of the answer."""
    if isinstance(error, NotHttpError | NotTlsError | TooLargeError):
        return error
    if isinstance(error.__cause__ or error, aiohttp.ClientSSLError):
        return NotTlsError("the TLS handshake failed")
    same = isinstance(error, httpx2.TimeoutException | httpx2.NetworkError | httpx2.ProxyError)
    kind = type(error) if same else NotHttpError
    return kind(f"{kind.__name__} of the transport")


# ── the client ───────────────────────────────────────────────────────────────────────────────────────────────


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
