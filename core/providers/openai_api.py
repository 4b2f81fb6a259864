"""A client for OpenAI-compatible endpoints, with retries and rate limiting.

A 429 slows down all requests (`Pace`). The first request of each form (model, roles, optional parts) is sent alone. The
reply shows whether the key and URL are right, which parameters are refused, and whether the endpoint supports logprobs
and JSON. A refused parameter costs a second request but does not end the run.

Keys and headers are meant for one server (scheme, host, port), so redirects are not followed. Error messages of aiohttp
contain the headers and therefore the key, so these messages never leave this module.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from core.errors import (
    AuthError,
    BadReplyError,
    EndpointDownError,
    ModelNotFoundError,
    ProviderError,
    RateLimitError,
    hide,
    register_secret,
)
from core.providers.completions import Completion, Failure, OnReply, Reply, Request
from core.providers.endpoints import Price, RequestLimits, endpoint_name
from core.providers.wire import (
    ROOM_TO_THINK,
    Capabilities,
    UnansweredError,
    cut_off_thinking,
    json_field,
    left_out,
    read_completion,
    refused_part,
    request_body,
    roles_in,
    without,
)

log = logging.getLogger(__name__)

FAILURES_IN_A_ROW = 8
"""Consecutive failed requests after which the endpoint counts as down."""

MOST_BYTES = 8 << 20
"""Maximum bytes of a decompressed body. A completion has a few thousand."""

FIRST_WAIT, LONGEST_BACKOFF, LONGEST_NAMED = 0.5, 8.0, 60.0
"""Seconds before the first retry, which double up to the second value.

The third is the longest wait a server can set.
"""

_CONNECT_SECONDS = 10.0
_PATH = "/chat/completions"
_SEARCHED, _SHOWN, _ECHO_WINDOW = 20_000, 200, 20
_REFUSES = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|cannot|can ?not|can't|must|only|invalid|"
    r"incompatible|deprecated|disabled|not enabled|removed|not accept",
    re.IGNORECASE,
)
_ONE_PROMPT = re.compile(r"context_length_exceeded|content_filter|string_above_max_length|context length")
_NO_QUOTA = re.compile(r"insufficient.quota|exceeded your current quota|billing|credit balance", re.IGNORECASE)


class OpenAIProvider:
    """A thread-safe provider for the chat completions API at `base_url`. Connections stay open until `close`.

    Args:
        base_url: URL of the API.
        api_key: The key. If None, `Authorization` is sent only if it is among the `headers`.
        key_name: Environment variable of the key, for error messages.
        headers: Headers of every request.
        extra_body: Fields of every request.
        limits: Limits on concurrency, rate, retries and waits.
        prices: Price of each model.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        key_name: str = "",
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        limits: RequestLimits | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self.extra_body = extra_body or {}
        self.endpoint = endpoint_name(base_url, self.extra_body)
        self.headers = CIMultiDict({"Authorization": f"Bearer {api_key}"} if api_key else {})
        self.headers.update(headers or {})
        for value in self.headers.values():
            register_secret(value)
        self._has_key = api_key is not None
        self.key_name = key_name or "OPENAI_API_KEY"
        self.limits = limits or RequestLimits()
        self.prices = prices or {}
        self._url = URL(base_url.rstrip("/") + _PATH)
        self._proxy = None if proxy_bypass(self._url.host or "") else getproxies().get(self._url.scheme)
        self._capabilities: dict[str, Capabilities] = {}
        self._http: aiohttp.ClientSession | None = None
        self._asking: set[Future[None]] = set()

    def __repr__(self) -> str:
        return f"OpenAIProvider({self.endpoint!r})"

    def capabilities(self, model: str) -> Capabilities:
        """Return what is known so far about the capabilities of `model` at this endpoint."""
        return self._capabilities.setdefault(model, Capabilities())

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Return the replies in the order of `requests`. Call `on_reply` in the calling thread as each reply arrives.

        If a request ends the batch, its `ProviderError` is raised; an error of `on_reply` is raised too. After an
        error, the remaining requests are cancelled.
        """
        if not requests:
            return []
        arrivals: queue.SimpleQueue[tuple[int, Reply] | None] = queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(self._run(requests, arrivals), _loop())
        self._asking.add(future)
        future.add_done_callback(lambda _future: arrivals.put(None))
        replies: dict[int, Reply] = {}
        try:
            while (arrival := arrivals.get()) is not None:
                replies[arrival[0]] = arrival[1]
                if on_reply is not None:
                    on_reply(*arrival)
            future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._asking.discard(future)
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        """Cancel the requests in flight and close the connections. The next `complete` opens new connections."""
        for future in tuple(self._asking):
            future.cancel()  # otherwise it would be retried as after a lost connection
        http, self._http = self._http, None
        if http is not None:
            asyncio.run_coroutine_threadsafe(http.close(), _loop()).result()

    def _connect(self) -> None:
        """Open a session, and reset its rate limit and error counts."""
        self._http = aiohttp.ClientSession(
            headers=self.headers,
            connector=aiohttp.TCPConnector(limit=0),  # `Pace` limits their number
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(self.limits.timeout, sock_connect=min(_CONNECT_SECONDS, self.limits.timeout)),
        )
        self._pace, self._places = Pace(self.limits), asyncio.Semaphore(self.limits.concurrency)
        self._probing, self._probed = asyncio.Lock(), set[tuple[object, ...]]()
        self._failed_in_a_row, self._ever_answered = 0, False

    async def _run(self, requests: Sequence[Request], arrivals: queue.SimpleQueue[tuple[int, Reply] | None]) -> None:
        """Put each reply into `arrivals`, or raise the error that ended the batch, without its exception group."""
        if self._http is None:
            self._connect()
        self._fatal: ProviderError | None = None

        async def ask(index: int, request: Request) -> None:
            async with self._places:
                arrivals.put((index, await self._answer(request)))

        try:
            async with asyncio.TaskGroup() as group:
                for index, request in enumerate(requests):
                    group.create_task(ask(index, request))
        except BaseExceptionGroup as errors:
            cause: BaseException = errors
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            raise cause from None

    async def _answer(self, request: Request) -> Reply:
        """Return the reply. The first request with a given model, roles and optional parts is sent alone."""

        def shape() -> tuple[object, ...]:
            body = request_body(request, self.capabilities(request.model))
            return request.model, frozenset(body), roles_in(body)

        if shape() not in self._probed:
            async with self._probing:
                if self._fatal is not None:
                    raise self._fatal
                if shape() not in self._probed:
                    reply = await self._reply_or_failure(request)
                    self._probed.add(shape())  # computed again, without the parts that were just refused
                    return reply
        return await self._reply_or_failure(request)

    async def _reply_or_failure(self, request: Request) -> Reply:
        """Return the reply, or a `Failure` if only this request failed. Raise any other error."""
        try:
            reply = await self._send(request)
        except UnansweredError as error:
            mapped = as_provider_error(error, self.endpoint, request, self.key_name, has_key=self._has_key)
            if not _concerns_one_prompt(error):
                self._failed_in_a_row += 1
                down = not self._ever_answered or self._failed_in_a_row >= FAILURES_IN_A_ROW
                # a wrong key, model or path, no quota, or a redirect: one such error is enough
                if down or error.status in (401, 402, 403, 404, 429) or error.kind == "redirect":
                    self._fatal = mapped
                    raise mapped from None
            return Failure(str(mapped))
        self._failed_in_a_row, self._ever_answered = 0, True
        if isinstance(reply, Failure):
            return reply
        return replace(reply, without=left_out(request, self.capabilities(request.model)))

    async def _send(self, request: Request) -> Reply:
        """Send a request, and retry without the parts that the endpoint refuses or fails on."""
        known = self.capabilities(request.model)
        while True:
            body = request_body(request, known)
            try:
                return await self._with_room(request, body, await self._post(body))
            except UnansweredError as error:
                if _concerns_one_prompt(error):
                    raise
                refuses = error.status in (400, 422) and _REFUSES.search(error.told)
                name = refused_part(error, body) if refuses else None
                dropped = {name} if name else known.unproven(body)
                if not name and (
                    not dropped or error.kind not in ("status", "odd body") or error.status in (401, 402, 403, 429)
                ):
                    raise
                # if the server names no part, only a success shows that the extras caused the error
                reply = None if name else await self._post(without(body, dropped))
                known.refused |= dropped
                log.warning("%s doesn't accept %s; continuing without it", self.endpoint, ", ".join(sorted(dropped)))
                if reply is not None:
                    return reply

    async def _with_room(self, request: Request, body: dict[str, Any], reply: Reply) -> Reply:
        """Retry with a higher token limit if reasoning used it up. The usage adds up all replies."""
        known = self.capabilities(request.model)
        limit = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        used = body[limit] - request.max_tokens
        for room in ROOM_TO_THINK:
            if room <= used or not cut_off_thinking(reply):
                continue
            try:
                again = await self._post(body | {limit: request.max_tokens + room})
            except UnansweredError as error:
                if error.kind != "status":
                    raise
                break  # more than the model's context allows: keep the reply
            used = room
            if room > known.room:
                known.room = room
                log.warning(
                    "%s is a reasoning model: its replies may use %d tokens more than requested", request.model, room
                )
            better = again if isinstance(again, Completion) else reply
            reply = replace(better, usage=reply.usage + again.usage)
        return replace(reply, room=used) if isinstance(reply, Completion) else reply

    async def _post(self, body: dict[str, Any]) -> Reply:
        """Send `body`, with retries, and raise the error of the last attempt."""
        failed, pace = 0, self._pace
        while True:
            begun = await pace.begin()
            try:
                raw = await self._reply_body({**self.extra_body, **body})
                reply = read_completion(raw, self.prices.get(body["model"]))
                pace.answered(begun)
                self.capabilities(body["model"]).learn_from_answer(body, reply)
                return reply
            except UnansweredError as error:
                if error.status == 429 and not _used_up_quota(error) and pace.refused(begun, error.wait):
                    continue
                if failed >= self.limits.retries or not _worth_another_try(error, known=self._ever_answered):
                    raise
                wait = error.wait
            finally:
                pace.end()
            usual = min(LONGEST_BACKOFF, FIRST_WAIT * 2.0**failed) * random.uniform(0.75, 1.0)
            await asyncio.sleep(min(wait, LONGEST_NAMED) if wait else usual)
            failed += 1

    async def _reply_body(self, body: Mapping[str, Any]) -> bytes:
        """Send a body and return the body of a 200 reply. Raises UnansweredError for everything else."""
        if self._http is None:  # closed in the meantime
            raise UnansweredError("unreachable")
        try:
            async with self._http.post(self._url, json=body, allow_redirects=False, proxy=self._proxy) as response:
                raw = bytearray()
                async for chunk in response.content.iter_any():
                    raw += chunk
                    if len(raw) > MOST_BYTES:
                        raise UnansweredError("odd body", f"a body of more than {MOST_BYTES >> 20} MB")
                if response.status < 300:
                    return bytes(raw)
                problem = self._refusal(response, bytes(raw))
        except UnansweredError:
            raise
        except Exception as error:
            problem = UnansweredError(_kind(error))
        raise problem  # outside the handler, so that aiohttp's error is not chained to it

    def _refusal(self, response: aiohttp.ClientResponse, raw: bytes) -> UnansweredError:
        if response.status < 400:
            place = "an invalid URL"
            with suppress(ValueError):
                target = self._url.join(URL(response.headers.get("location", "")))
                place = str(target.origin()) + target.path.removesuffix(_PATH)
            return UnansweredError("redirect", place, status=response.status)
        fields: Any = None
        with suppress(ValueError, RecursionError):
            fields = json.loads(raw)
        fields = json_field(fields, "error", dict) or fields
        words, param = (json_field(fields, name, str) or "" for name in ("message", "param"))
        told, wait = raw[:_SEARCHED].decode("utf-8", "replace"), wait_asked_for(response.headers)
        return UnansweredError("status", words, status=response.status, told=told, param=param, wait=wait)


_loops: dict[int, asyncio.AbstractEventLoop] = {}
_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop for all connections of this process, which runs in its own thread."""
    with _starting:  # several threads may call this, and an asyncio lock belongs to one loop
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="concord-openai", daemon=True).start()
        return _loops[os.getpid()]


def _kind(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
        return "timeout"
    if isinstance(error, aiohttp.ClientSSLError):
        return "no HTTP"
    lost = OSError | aiohttp.ClientConnectionError | aiohttp.ClientHttpProxyError
    return "unreachable" if isinstance(error, lost) else "no HTTP"


def wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in the header `retry-after`; None if it is not a positive number."""
    try:
        wait = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return wait if wait > 0 else None


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────


def _concerns_one_prompt(error: UnansweredError) -> bool:
    """Whether the error concerns only this prompt (too long, filtered)."""
    return error.status in (400, 413, 422) and bool(_ONE_PROMPT.search(error.told))


def _used_up_quota(error: UnansweredError) -> bool:
    """Whether the account has no credit left, which some servers report as 429."""
    return error.status == 402 or (error.status in (403, 429) and bool(_NO_QUOTA.search(error.told)))


def _worth_another_try(error: UnansweredError, *, known: bool) -> bool:
    """Whether a retry may succeed.

    A web page or a reply that is not HTTP means a wrong URL, unless the endpoint is `known` to have answered before.
    """
    if error.status:
        return error.status in (408, 409) or error.status >= 500
    return known or not (error.kind == "no HTTP" or "HTML" in error.words)


def as_provider_error(
    error: UnansweredError, endpoint: str, request: Request, key_name: str, *, has_key: bool
) -> ProviderError:
    """Return `error` as a ProviderError that names the endpoint and the model, and says how to fix the problem."""
    kind: type[ProviderError] = EndpointDownError
    status, again = error.status, "The replies so far are cached. Start the run again."
    match error.kind:
        case "redirect":
            kind = ProviderError
            words = f"redirects to a different address, {hide(error.words)}. Concord sent nothing to that address"
            hint = "If you trust that address, use it as the base URL."
        case "no HTTP":
            kind, words = BadReplyError, "didn't send an HTTP response"
            hint = "Check the URL (http or https), its port and its certificate."
        case "odd body":
            kind, words = BadReplyError, f"answered 200 with {error.words} instead of a completion"
            hint = (
                "Check the URL. It should point to an OpenAI-compatible API (often ending in /v1), not to a web page."
            )
        case "timeout":
            words, hint = "didn't answer in time", "Check that the server isn't overloaded, then try again."
        case "unreachable":
            words, hint = "can't be reached", "Check the URL, make sure that the server is running, then try again."
        case _ if _used_up_quota(error):
            kind, words = RateLimitError, f"reports that this key's quota is used up ({status}, insufficient_quota)"
            hint = f"Add credit, raise the spending limit, or use another key. {again}"
        case _ if status in (401, 403):
            kind, words = AuthError, f"{'rejected the key' if has_key else 'requires a key'} ({status})"
            hint = f"Set {key_name} to a valid key." if has_key else f"Set {key_name}."
        case _ if status == 404:
            kind, words = ModelNotFoundError, "answered 404: the model or path doesn't exist"
            hint = "Check the model's name and the URL. The URL often ends in /v1."
        case _ if status == 429:
            kind, words = RateLimitError, "still answered 429 (too many requests) after waiting"
            words += f" and asks Concord to wait {error.wait:,.0f} s" if error.wait else ""
            hint = f"Lower CONCORD_CONCURRENCY, or set requests_per_minute in endpoints.yaml. {again}"
        case _ if status >= 500:
            words = f"still answered {status} after several retries"
            hint = "Check the server's log, or start again later."
        case _:  # the server's own message, unless it repeats a piece of the prompt
            told = " ".join(hide(error.words)[:_SHOWN].split())
            prompt = " ".join(" ".join(part.content for part in request.messages).split())
            pieces = (told[start : start + _ECHO_WINDOW] for start in range(max(1, len(told) - _ECHO_WINDOW + 1)))
            hint = f"The server says: {told}" if told and not any(piece in prompt for piece in pieces) else ""
            kind, words = ProviderError, f"rejected the request ({status})"
    return kind(f"{endpoint} (model {request.model!r}) {words}.", hint=hint)


# ── pace ─────────────────────────────────────────────────────────────────────────────────────────────────────

LONGEST_WAIT = 3600.0
"""Maximum seconds to wait on an endpoint that sets the waits but never answers."""

_LONGEST_OWN_WAIT = 30.0
_CALM = 4


class Pace:
    """Adapts the number of requests in flight to the rate that the endpoint accepts.

    A 429 lowers the number and makes all requests wait. Enough replies without a 429 raise the number again. If every
    reply is a 429, the run ends after `patience` seconds, or after `LONGEST_WAIT` if the endpoint sets the waits.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self.limits = limits
        self.limit, self.in_flight = limits.concurrency, 0
        self._open_at = self._waited = self._refused_at = 0.0
        self._in_a_row = self._calm = 0
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    async def begin(self) -> float:
        """Wait for a free slot, in order of arrival. Return the start time, to be passed to `answered` or `refused`."""
        async with self._turn:
            while self.in_flight >= self.limit:
                self._freed.clear()
                await self._freed.wait()
            while (wait := self._open_at - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            begun = time.monotonic()
            if self.limits.requests_per_minute:
                self._open_at = begun + 60.0 / self.limits.requests_per_minute
            self.in_flight += 1
            return begun

    def end(self) -> None:
        """Free the slot of a request. Must be called whether or not the request was answered."""
        self.in_flight -= 1
        self._freed.set()

    def answered(self, begun: float) -> None:
        """Record a reply. After enough replies without a 429, allow more requests in flight."""
        if begun >= self._refused_at:
            self._in_a_row, self._waited = 0, 0.0
            self._calm += 1
        if self._calm >= _CALM * self.limit:
            self.limit, self._calm = min(self.limits.concurrency, self.limit + max(1, self.limit // 4)), 0

    def refused(self, begun: float, asked: float | None) -> bool:
        """Slow down after a 429. Return False if the request should not be sent again.

        `asked` is the wait that the endpoint asked for, in seconds.
        """
        self.limit = max(1, min(self.limit, self.in_flight) - 1)
        self._calm = 0
        if begun < self._refused_at:  # sent before the last slowdown: no new information
            return self.limits.patience > 0
        own = min(_LONGEST_OWN_WAIT, FIRST_WAIT * 2.0 ** min(self._in_a_row, 10)) * random.uniform(0.8, 1.0)
        wait = asked or own
        self._waited += wait
        if not self.limits.patience or self._waited > (LONGEST_WAIT if asked else self.limits.patience):
            return False
        self._refused_at = time.monotonic()
        self._in_a_row += 1
        self._open_at = max(self._open_at, self._refused_at + wait)
        log.info("The endpoint answers 429 (too many requests): waiting %.0f s.", wait)
        return True
