"""A model's endpoint that keeps count: what was answered how often, and a point at which it stops answering.

What it answers depends on what it was asked and on nothing else, one request in ten with a failure or with words that
hold no score, so that two runs of the same work can be laid side by side.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fake_openai import FakeOpenAI, RunningServer

FAILURES = ("long", "filter")
FAULTS = (*FAILURES, "no-number")
ONE_IN = 10


@dataclass
class CountingEndpoint(FakeOpenAI):
    """Answers until it is `enough`; later requests wait, and are lost with who asked them."""

    times_answered: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    enough: tuple[int, int] | None = None
    """So many requests answered, so many of them with a failure; None: everything is answered."""
    waiting: int = 0
    losses: int = 0

    @property
    def total(self) -> int:
        """Requests answered so far, failures among them."""
        return self.times_answered.total()

    @property
    def holding(self) -> bool:
        """Whether it has answered enough."""
        return self.enough is not None and self.total >= self.enough[0] and self.failed >= self.enough[1]

    def hold_after(self, answers: int, failures: int) -> None:
        """Answer so many requests more, and on until so many of them have failed."""
        self.enough = self.total + answers, self.failed + failures

    def lose_waiting(self) -> None:
        """Whoever asked is gone; from now on everything is answered."""
        self.losses += 1
        self.enough = None

    async def _complete(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        await asyncio.sleep(self.latency)
        losses = self.losses
        self.waiting += 1
        while self.holding:
            await asyncio.sleep(0.01)
        self.waiting -= 1
        if losses != self.losses:
            return web.Response(status=503)
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        self.times_answered[digest] += 1
        fault = fault_of(digest)
        self.failed += fault in FAILURES
        return await self._answer(body, fault)

    def _sample(self, body: dict[str, Any]) -> int:
        """The same sample of a prompt each time."""
        return 0


def fault_of(digest: str) -> str:
    """What goes wrong with a request, "" for nothing; FAILURES bring no reply at all."""
    chance = int(digest[:8], 16)
    return FAULTS[chance // ONE_IN % len(FAULTS)] if chance % ONE_IN == 0 else ""


@contextmanager
def serving(endpoint: CountingEndpoint) -> Iterator[str]:
    """The base URL of `endpoint` while the block lasts."""
    server = RunningServer(endpoint)
    try:
        yield server.base_url
    finally:
        endpoint.lose_waiting()
        server.stop()
