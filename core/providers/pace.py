"""Pace requests: as many at once as the endpoint takes, no sooner than it allows.

A 429 takes away a place in flight and makes everybody wait; answers give the places back one by one. If one at a time
is still too fast, requests keep a distance that grows with each refusal and shrinks without refusals. So a strict
endpoint makes a run slow and does not end it. A run ends if nothing but 429 comes for `patience` seconds, or if the
endpoint asks for a wait of more than `LONGEST_WAIT`.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import math
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

log = logging.getLogger(__name__)

LONGEST_WAIT = 3600.0
"""Seconds that an endpoint may ask for with no answer in between."""

FIRST_WAIT, LONGEST_OWN_WAIT = 0.5, 30.0
"""Seconds waited if the endpoint does not say how long, doubled each time."""

TOLD_FROM = 5.0
"""A wait of this many seconds or more is logged."""

_CALM, _CALM_PACE = 4, 16
_LEAST_GAP, _MOST_GAP = 0.02, 60.0


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How an endpoint is asked; `timeout` is in seconds for one attempt.

    After 408, 409, 5xx, a lost connection or a reply that is not a completion, a request is sent again up to `retries`
    times. After 429 it is sent as often as it takes, unless nothing else comes for `patience` seconds.
    """

    concurrency: int = 64
    timeout: float = 120.0
    retries: int = 5
    patience: float = 600.0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Pace:
    """Lives in one event loop."""

    def __init__(self, limits: RequestLimits) -> None:
        self.most = self.limit = limits.concurrency
        self.patience = limits.patience
        self.in_flight = 0
        self._tokens_per_minute = limits.tokens_per_minute
        self._least_gap = self._gap = 60.0 / limits.requests_per_minute if limits.requests_per_minute else 0.0
        self._open_at = 0.0
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._epoch = self._in_a_row = self._calm = 0
        self._waited = self._asked = 0.0

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
        if self.limit < self.most and self._calm >= _CALM * self.limit:
            self.limit, self._calm = min(self.most, self.limit + max(1, self.limit // 4)), 0
        elif self._gap > self._least_gap and self._calm >= _CALM_PACE:
            slower = self._gap * 0.8
            self._gap, self._calm = max(self._least_gap, slower if slower > _LEAST_GAP else 0.0), 0
        if self._tokens_per_minute:
            self._open_at = max(self._open_at, time.monotonic()) + 60.0 * tokens / self._tokens_per_minute

    def refused(self, begun: int, asked: float | None) -> bool:
        """A 429 came, asking for a wait of so many seconds; False if it is no use to try again."""
        crowded = self.limit > 1 and self.in_flight > 1
        self.limit = max(1, min(self.limit, self.in_flight) - 1)
        self._calm = 0
        if begun != self._epoch:  # sent before others were refused: nothing new
            return self.patience > 0
        if not crowded or self._gap > self._least_gap:
            self._gap = min(_MOST_GAP, max(2 * _LEAST_GAP, 1.5 * self._gap))
        own = min(LONGEST_OWN_WAIT, FIRST_WAIT * 2.0 ** min(self._in_a_row, 10)) * random.uniform(0.8, 1.0)
        wait = asked or own
        self._asked += asked or 0.0
        self._waited += 0.0 if asked else own
        if self._waited > self.patience or self._asked > LONGEST_WAIT or not self.patience:
            return False
        self._epoch += 1
        self._in_a_row += 1
        self._open_at = max(self._open_at, time.monotonic() + wait)
        if wait >= TOLD_FROM:
            log.warning("The endpoint answers 429 (too many requests): waiting %.0f s.", wait)
        return True


def wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (a number or a date) asks for; None if nothing usable."""
    wait = math.nan
    try:
        if "retry-after-ms" in headers:
            wait = float(headers["retry-after-ms"]) / 1000.0
        else:
            wait = float(headers["retry-after"])
    except KeyError:
        pass
    except ValueError:
        with suppress(ValueError, TypeError, OverflowError):
            wait = email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    return wait if wait > 0 else None
