"""The base URLs that a judge is asked at: one as a rule, or several that serve the same model and share the work.

One that cannot be reached is left out and said, and tried again after a minute; its request goes to another at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import openai
from openai import AsyncOpenAI

from core.providers.access import Balance
from core.providers.client import RedirectedError
from core.providers.pace import Pace

log = logging.getLogger(__name__)

LEFT_OUT_SECONDS = 60.0
_AWAY = frozenset({502, 503, 504})


class TooFastError(Exception):
    """The endpoint wants requests to come more slowly, which its pace has taken note of: ask again."""


@dataclass(slots=True)
class Route:
    """One base URL; `busy` counts the requests that are there or wait for their turn."""

    url: str
    client: AsyncOpenAI
    pace: Pace
    busy: int = 0
    out_until: float = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """A place in flight; what it gives goes back into `pace`."""
        self.busy += 1
        try:
            begun = await self.pace.begin()
            try:
                yield begun
            finally:
                self.pace.end()
        finally:
            self.busy -= 1


class Routes:
    """Lives in one event loop; `remarks` is told of each base URL that was left out."""

    def __init__(self, routes: Sequence[Route], balance: Balance, remarks: dict[str, str]) -> None:
        self._routes = tuple(routes)
        self._remarks = remarks
        self._balance = balance
        self._turn = 0

    @property
    def client(self) -> AsyncOpenAI:
        """Of the first base URL, which names the judge."""
        return self._routes[0].client

    def choose(self) -> Route:
        """Where the next request goes; all are asked again where none can be reached."""
        now, n = time.monotonic(), len(self._routes)
        in_turn = [self._routes[(self._turn + k) % n] for k in range(n)]
        up = [route for route in in_turn if route.out_until <= now] or in_turn
        chosen = up[0] if self._balance == "round robin" else min(up, key=lambda route: route.busy)
        self._turn = (self._routes.index(chosen) + 1) % n
        return chosen

    def leave_out(self, route: Route, error: Exception) -> bool:
        """Whether `error` says that nobody is there while others are: then it is left out for a while."""
        now = time.monotonic()
        if not _is_away(error) or all(other is route or other.out_until > now for other in self._routes):
            return False
        if route.out_until <= now:
            self._remarks[route.url] = f"{route.url} cannot be reached; the judge's other URLs are asked instead."
            log.warning(self._remarks[route.url])
        route.out_until = now + LEFT_OUT_SECONDS
        return True

    async def close(self) -> None:
        for route in self._routes:
            await route.client.close()


def _is_away(error: Exception) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code in _AWAY
    if isinstance(error, openai.APITimeoutError):
        return isinstance(error.__cause__, httpx2.ConnectTimeout)
    return isinstance(error, openai.APIConnectionError) and not isinstance(error.__cause__, RedirectedError)
