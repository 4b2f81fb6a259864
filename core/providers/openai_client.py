"""The connection to one endpoint: posts what it is told to, to that place alone, and no faster than it allows.

Keys and headers belong to one place (scheme, host, port), so no redirect is followed.  Whatever a server sends becomes
the bytes of a bounded body or an `UnansweredError` without foreign words: messages of aiohttp hold the headers of the
request, the key among them, so none of them goes on from here.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import math
import random
import re
import time
from collections.abc import Mapping
from contextlib import suppress
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
    remember,
)
from core.providers.completions import Request
from core.providers.endpoints import RequestLimits
from core.providers.wire import UnansweredError

log = logging.getLogger(__name__)

MOST_BYTES = 8 << 20
"""Bytes of a decompressed body that are read; a completion has some thousands."""

_CONNECT_SECONDS = 10.0
_PATH = "/chat/completions"
_SEARCHED, _SHOWN, _ECHO_WINDOW = 20_000, 200, 20


class Connection:
    """Lives in one event loop.  Without an `api_key`, no `Authorization` is sent unless `headers` hold one."""

    def __init__(self, base_url: str, api_key: str | None, headers: Mapping[str, str], limits: RequestLimits) -> None:
        own = CIMultiDict({"Authorization": f"Bearer {api_key}"} if api_key else {})
        own.update(headers)
        for value in own.values():
            remember(value)
        self._url = URL(base_url + _PATH)
        self._proxy = None if proxy_bypass(self._url.host or "") else getproxies().get(self._url.scheme)
        self._session = aiohttp.ClientSession(
            headers=own,
            connector=aiohttp.TCPConnector(limit=0),  # the pace says how many
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(limits.timeout, sock_connect=min(_CONNECT_SECONDS, limits.timeout)),
        )
        self.pace = Pace(limits)

    async def post(self, body: Mapping[str, Any]) -> bytes:
        """The body of a 200 reply.  UnansweredError for everything else."""
        try:
            async with self._session.post(self._url, json=body, allow_redirects=False, proxy=self._proxy) as response:
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
        raise problem  # outside of the handler, so that it carries no foreign error along

    def _refusal(self, response: aiohttp.ClientResponse, raw: bytes) -> UnansweredError:
        if response.status < 400:
            place = "a URL that cannot be read"
            with suppress(ValueError):
                target = self._url.join(URL(response.headers.get("location", "")))
                place = str(target.origin()) + target.path.removesuffix(_PATH)
            return UnansweredError("redirect", place, status=response.status)
        fields: Any = None
        with suppress(ValueError, RecursionError):
            fields = json.loads(raw)
        fields = fields.get("error", fields) if isinstance(fields, dict) else {}
        words, param = (
            str(fields.get(name) or "") if isinstance(fields, dict) else "" for name in ("message", "param")
        )
        told, wait = raw[:_SEARCHED].decode("utf-8", "replace"), wait_asked_for(response.headers)
        return UnansweredError("status", words, status=response.status, told=told, param=param, wait=wait)

    async def close(self) -> None:
        await self._session.close()


def _kind(error: Exception) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return "unreachable"
        case TimeoutError():
            return "timeout"
        case aiohttp.ClientSSLError():
            return "no TLS"
        case aiohttp.ClientConnectionError() | aiohttp.ClientHttpProxyError() | OSError():
            return "unreachable"
        case _:
            return "no HTTP"


# ── what went wrong ──────────────────────────────────────────────────────────────────────────────────────────

_NO_QUOTA = re.compile(r"insufficient.quota|exceeded your current quota|billing|credit balance", re.IGNORECASE)


def used_up_quota(error: UnansweredError) -> bool:
    """Whether there is no credit left (often told as 429), which no waiting changes."""
    told = error.status in (403, 429) and _NO_QUOTA.search(error.told)
    return error.status == 402 or bool(told)


def worth_another_try(error: UnansweredError, *, known: bool) -> bool:
    """Whether the same request may be answered a little later.

    A web page, or what is not HTTP, from an endpoint that is not `known` to answer is a wrong URL.
    """
    if error.status:
        return error.status in (408, 409) or error.status >= 500
    return known or not (error.kind in ("no HTTP", "no TLS") or "HTML" in error.words)


def concerns_everything(error: UnansweredError) -> bool:
    """Whether one such error is enough to stop: the key, the model, the path, the quota, or a redirect."""
    return error.status in (401, 402, 403, 404, 429) or error.kind == "redirect"


def as_provider_error(
    error: UnansweredError, *, endpoint: str, request: Request, has_key: bool, key_name: str = ""
) -> ProviderError:
    """The `ProviderError` for whatever ended `request`; it names the endpoint, the model and the way out."""
    where, status = f"{endpoint} (model {request.model!r})", error.status
    key_name, again = key_name or "OPENAI_API_KEY", "and start again: replies so far are kept."
    match error.kind:
        case "redirect":
            return ProviderError(
                f"{where} redirects to {hide(error.words)}, which is another place: nothing was sent there.",
                hint="If you trust that place, name its own URL.",
            )
        case "no HTTP":
            return BadReplyError(f"{where} does not speak HTTP.", hint="Is it https? Check the URL and its port.")
        case "no TLS":
            hint = "Is it http? Check the URL, its port and its certificate."
            return EndpointDownError(f"{where} cannot be reached over TLS.", hint=hint)
        case "odd body":
            return BadReplyError(
                f"{where} answered 200 with {error.words}, not with a completion.",
                hint="Check the URL: it should be an OpenAI-compatible API (often ending in /v1), not a web page.",
            )
        case "timeout":
            hint = "Check that it is not overloaded, then start again."
            return EndpointDownError(f"{where} did not answer in time.", hint=hint)
        case "unreachable":
            hint = "Check the URL and that the server runs, then start again."
            return EndpointDownError(f"{where} cannot be reached.", hint=hint)
    if used_up_quota(error):
        return RateLimitError(
            f"{where}: the quota of this key is used up ({status}, insufficient_quota); waiting does not help.",
            hint=f"Add credit or raise the spending limit at the endpoint, or use another key, {again}",
        )
    if status in (401, 403) and has_key:
        return AuthError(f"{where} refused the key ({status}).", hint=f"Put a valid key into {key_name}.")
    if status in (401, 403):
        return AuthError(f"{where} asks for a key ({status}).", hint=f"Set {key_name}.")
    if status == 404:
        return ModelNotFoundError(
            f"{where} answered 404: it knows no such model or path.",
            hint="Check the model's name and that the URL ends where the API starts (often /v1).",
        )
    if status == 429:
        told = f" It asks for a wait of {error.wait:,.0f} s." if error.wait else ""
        return RateLimitError(
            f"{where} still answered 429 (too many requests) after waiting, with no other answer between.{told}",
            hint="Lower CONCORD_CONCURRENCY, or set CONCORD_REQUESTS_PER_MINUTE to what the endpoint allows, " + again,
        )
    if status >= 500:
        return EndpointDownError(
            f"{where} still answered {status} after the retries.",
            hint="The server has trouble of its own: look at its log, or start again later.",
        )
    # the server's own words, unless they repeat a piece of the prompt
    words = " ".join(hide(error.words)[:_SHOWN].split())
    prompt = " ".join(" ".join(part.content for part in request.messages).split())
    pieces = (words[start : start + _ECHO_WINDOW] for start in range(max(1, len(words) - _ECHO_WINDOW + 1)))
    says = f" It says: {words}" if words and not any(piece in prompt for piece in pieces) else ""
    return ProviderError(f"{where} refused the request ({status}).{says}")


# ── pace ─────────────────────────────────────────────────────────────────────────────────────────────────────

LONGEST_WAIT = 3600.0
"""Seconds that an endpoint may ask for with no answer in between."""

FIRST_WAIT, LONGEST_OWN_WAIT = 0.5, 30.0
"""Seconds waited if the endpoint does not say how long, doubled each time."""

_LOGGED_FROM = 5.0
_CALM, _CALM_PACE = 4, 16
_LEAST_GAP, _MOST_GAP = 0.02, 60.0


class Pace:
    """As many requests at once as the endpoint takes, no sooner than it allows.

    A 429 takes away a place in flight and makes everybody wait; answers give the places back one by one. If one at a
    time is still too fast, requests keep a distance that grows with each refusal and shrinks without refusals. So a
    strict endpoint makes a run slow and does not end it. A run ends if nothing but 429 comes for `patience` seconds, or
    if the endpoint asks for a wait of more than `LONGEST_WAIT`.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self.limits = limits
        self.limit, self.in_flight = limits.concurrency, 0
        self._least_gap = self._gap = 60.0 / limits.requests_per_minute if limits.requests_per_minute else 0.0
        self._open_at = self._waited = self._asked = 0.0
        self._epoch = self._in_a_row = self._calm = 0
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    async def begin(self) -> int:
        """Wait for a place, in the order of the calls; the number goes back into `answered` or `refused`."""
        async with self._turn:
            while self.in_flight >= self.limit:
                self._freed.clear()
                await self._freed.wait()
            while (wait := self._open_at - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            if self._gap:
                self._open_at = time.monotonic() + self._gap
            self.in_flight += 1
            return self._epoch

    def end(self) -> None:
        """Give the place back, whatever came of the request."""
        self.in_flight -= 1
        self._freed.set()

    def answered(self, begun: int, tokens: int) -> None:
        """An answer of so many tokens came: go faster by and by."""
        if begun == self._epoch:
            self._in_a_row, self._waited, self._asked = 0, 0.0, 0.0
            self._calm += 1
        most = self.limits.concurrency
        if self.limit < most and self._calm >= _CALM * self.limit:
            self.limit, self._calm = min(most, self.limit + max(1, self.limit // 4)), 0
        elif self._gap > self._least_gap and self._calm >= _CALM_PACE:
            slower = self._gap * 0.8
            self._gap, self._calm = max(self._least_gap, slower if slower > _LEAST_GAP else 0.0), 0
        if self.limits.tokens_per_minute:
            self._open_at = max(self._open_at, time.monotonic()) + 60.0 * tokens / self.limits.tokens_per_minute

    def refused(self, begun: int, asked: float | None) -> bool:
        """A 429 came, asking for a wait of so many seconds; False if it is no use to try again."""
        crowded = self.limit > 1 and self.in_flight > 1
        self.limit = max(1, min(self.limit, self.in_flight) - 1)
        self._calm = 0
        patience = self.limits.patience
        if begun != self._epoch:  # sent before others were refused: nothing new
            return patience > 0
        if not crowded or self._gap > self._least_gap:
            self._gap = min(_MOST_GAP, max(2 * _LEAST_GAP, 1.5 * self._gap))
        own = min(LONGEST_OWN_WAIT, FIRST_WAIT * 2.0 ** min(self._in_a_row, 10)) * random.uniform(0.8, 1.0)
        self._asked += asked or 0.0
        self._waited += 0.0 if asked else own
        if self._waited > patience or self._asked > LONGEST_WAIT or not patience:
            return False
        self._epoch += 1
        self._in_a_row += 1
        wait = asked or own
        self._open_at = max(self._open_at, time.monotonic() + wait)
        if wait >= _LOGGED_FROM:
            log.warning("The endpoint answers 429 (too many requests): waiting %.0f s.", wait)
        return True


def wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (a number or a date) asks for; None if nothing usable."""
    told, wait = headers.get("retry-after", ""), math.nan
    try:
        wait = float(headers["retry-after-ms"]) / 1000.0 if "retry-after-ms" in headers else float(told)
    except ValueError:
        with suppress(ValueError, TypeError, OverflowError):
            wait = email.utils.parsedate_to_datetime(told).timestamp() - time.time()
    return wait if wait > 0 else None
