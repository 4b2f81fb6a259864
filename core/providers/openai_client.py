"""A client for one endpoint that sends only what it was told to send, and only to that place.

Keys and headers of its own belong to one place (scheme, host, port).  A redirect that leads to another is an error:
what was meant for the one is not sent to the other, neither the key nor the texts.

Whatever a server sends becomes a bounded HTTP response, or an error without foreign words: messages of aiohttp hold the
headers of the request, the key among them, so none of them goes on from here.

`as_provider_error` turns what the SDK raises into our errors: messages name the endpoint, the model and the way out,
never key or prompt.
"""

from __future__ import annotations

import asyncio
import re
import threading
import zlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import aiohttp
import httpx2
import openai
from openai import AsyncOpenAI, DefaultAioHttpClient

from core.errors import (
    AuthError,
    BadReplyError,
    ConcordError,
    EndpointDownError,
    ModelNotFoundError,
    ProviderError,
    RateLimitError,
    UsageError,
)
from core.providers.completions import Request
from core.providers.endpoints import place_of
from core.providers.pace import wait_asked_for
from core.providers.wire import NotACompletionError
from core.secret_values import hide, remember

T = TypeVar("T")


class LoopThread:
    """The thread starts with the first `submit`, which may come from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None

    @property
    def started(self) -> bool:
        return self._running is not None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `coroutine` in the loop; cancelling the future cancels the coroutine."""
        with self._lock:
            if self._running is None:
                loop = asyncio.new_event_loop()
                self._running = loop, threading.Thread(target=_run_forever, args=(loop,), name=self._name, daemon=True)
                self._running[1].start()
            return asyncio.run_coroutine_threadsafe(coroutine, self._running[0])

    def stop(self) -> None:
        """End the loop and its thread; what still runs there is cancelled.  A later `submit` starts a fresh one."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running[0].call_soon_threadsafe(running[0].stop)
            running[1].join()


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


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


PER_REQUEST_CODES = frozenset({"context_length_exceeded", "content_filter", "string_above_max_length"})
_REFUSES = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|cannot|can ?not|can't|must|only|invalid|"
    r"incompatible|deprecated|disabled|not enabled|removed|not accept",
    re.IGNORECASE,
)
_NO_QUOTA = re.compile(r"insufficient.quota|exceeded your current quota|billing|credit balance", re.IGNORECASE)
_ECHO_WINDOW = 20
_ECHOED_KEY = 6
_DETAIL_LENGTH = 200


def as_provider_error(
    error: Exception, *, endpoint: str, request: Request, has_key: bool, key_name: str = "OPENAI_API_KEY"
) -> ProviderError:
    """The `ProviderError` for whatever ended `request` (after the SDK's retries)."""
    where = f"{endpoint} (model {request.model!r})"
    if isinstance(error, openai.APIStatusError):
        return _as_status_error(error, where, request, has_key, key_name)
    if isinstance(error.__cause__, RedirectedError):
        return ProviderError(
            f"{where} redirects to {error.__cause__.target}, which is another place: nothing was sent there.",
            hint="If you trust that place, name its own URL.",
        )
    if isinstance(error.__cause__, NotHttpError):
        return BadReplyError(f"{where} does not speak HTTP.", hint="Is it https? Check the URL and its port.")
    if isinstance(error.__cause__, NotTlsError):
        return EndpointDownError(
            f"{where} cannot be reached over TLS.", hint="Is it http? Check the URL, its port and its certificate."
        )
    if isinstance(error, NotACompletionError):
        return BadReplyError(
            f"{where} answered 200 with {error}, not with a completion.",
            hint="Check the URL: it should be an OpenAI-compatible API (often ending in /v1), not a web page.",
        )
    if isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx2.ConnectTimeout):
        return EndpointDownError(
            f"{where} did not answer in time.", hint="Check that it is not overloaded, then start again."
        )
    if isinstance(error, openai.APIConnectionError):
        return EndpointDownError(
            f"{where} cannot be reached.", hint="Check the URL and that the server runs, then start again."
        )
    return ProviderError(f"{where} failed: {type(error).__name__}.")


def _as_status_error(
    error: openai.APIStatusError, where: str, request: Request, has_key: bool, key_name: str
) -> ProviderError:
    if error.status_code in (401, 403) and not used_up_quota(error):
        return _refused_key(where, error.status_code, has_key, key_name)
    if error.status_code == 404:
        return ModelNotFoundError(
            f"{where} answered 404: it knows no such model or path.",
            hint="Check the model's name and that the URL ends where the API starts (often /v1).",
        )
    if used_up_quota(error):
        return RateLimitError(
            f"{where}: the quota of this key is used up ({error.status_code}, insufficient_quota); waiting does not "
            "help.",
            hint="Add credit or raise the spending limit at the endpoint, or use another key, and start again: replies "
            "so far are kept.",
        )
    if error.status_code == 429:
        wait = wait_asked_for(error.response.headers)
        told = f" It asks for a wait of {wait:,.0f} s." if wait else ""
        return RateLimitError(
            f"{where} still answered 429 (too many requests) after waiting, with no other answer between.{told}",
            hint="Start again later, or set CONCORD_REQUESTS_PER_MINUTE to what the endpoint allows, or lower "
            "CONCORD_CONCURRENCY: replies so far are kept.",
        )
    if error.status_code >= 500:
        return EndpointDownError(
            f"{where} still answered {error.status_code} after the retries.",
            hint="The server has trouble of its own: look at its log, or start again later.",
        )
    return ProviderError(f"{where} refused the request ({error.status_code}).{_detail(error, request)}")


def concerns_one_request(error: Exception) -> bool:
    """Whether `error` is about this prompt alone (too long, filtered), so that the others may go on."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 413, 422):
        return False
    return error.code in PER_REQUEST_CODES or "context length" in str(error.message)


def refuses_parameter(error: openai.APIStatusError) -> bool:
    """Whether the endpoint says that it does not take some parameter or value (400, or 422 of stricter servers)."""
    return error.status_code in (400, 422) and not concerns_one_request(error) and bool(_REFUSES.search(error.message))


def used_up_quota(error: Exception) -> bool:
    """Whether there is no credit left (often told as 429), which no waiting changes."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in (402, 403, 429):
        return False
    return error.status_code == 402 or bool(_NO_QUOTA.search(f"{error.code} {error.type} {error.message}"))


def worth_another_try(error: Exception, *, known: bool) -> bool:
    """Whether the same request may be answered a little later; `x-should-retry` is obeyed.

    A web page, or what is not HTTP, from an endpoint that is not `known` to answer is a wrong URL.
    """
    if isinstance(error.__cause__, RedirectedError):
        return False
    if isinstance(error, openai.APIStatusError):
        told = error.response.headers.get("x-should-retry")
        return told == "true" or (told != "false" and (error.status_code in (408, 409) or error.status_code >= 500))
    wrong_url = isinstance(error.__cause__, NotHttpError | NotTlsError) or "HTML" in str(error)
    return known or not wrong_url


def may_be_about_extras(error: openai.APIStatusError) -> bool:
    """Whether asking for less may help: not where the key, the load or this one prompt is the trouble."""
    return error.status_code not in (401, 402, 403, 429) and not concerns_one_request(error)


def concerns_everything(error: Exception) -> bool:
    """Whether one such error is enough to stop: the key, the model, the path, the quota, or a redirect elsewhere."""
    wrong = openai.AuthenticationError | openai.PermissionDeniedError | openai.NotFoundError | openai.RateLimitError
    return isinstance(error, wrong) or used_up_quota(error) or isinstance(error.__cause__, RedirectedError)


def _refused_key(where: str, status: int, has_key: bool, key_name: str) -> AuthError:
    if has_key:
        return AuthError(
            f"{where} refused the key ({status}).", hint=f"Put a valid key for this endpoint into {key_name}."
        )
    return AuthError(f"{where} asks for a key ({status}).", hint=f"Set {key_name or 'OPENAI_API_KEY'}.")


def _detail(error: openai.APIStatusError, request: Request) -> str:
    """The server's own words, cut short, and left out when they repeat a piece of the prompt or a key."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(message, str) or not message:
        return ""
    message = " ".join(message[:_DETAIL_LENGTH].split())
    prompt = " ".join(" ".join(part.content for part in request.messages).split())
    echoed = any(
        message[start : start + _ECHO_WINDOW] in prompt for start in range(max(1, len(message) - _ECHO_WINDOW + 1))
    )
    sent = [part for value in error.request.headers.values() for part in (value, value.rpartition(" ")[2])]
    echoed = echoed or any(len(part) >= _ECHOED_KEY and part in str(body) for part in sent)
    return "" if echoed else f" It says: {hide(message)}"


@contextmanager
def foreign_errors_hidden(url: str) -> Iterator[None]:
    """Turn whatever the SDK lets through, which may hold headers, into a connection error that says none of it."""
    try:
        yield
    except (openai.OpenAIError, ConcordError):
        raise
    except Exception as error:
        hidden = openai.APIConnectionError(request=httpx2.Request("POST", url))
        hidden.__cause__ = in_our_words(error)
    else:
        return
    raise hidden
