"""Keep to a budget in dollars: nothing is sent that would exceed it by what replies have cost so far."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext

from core.errors import ConcordError
from core.providers.completions import OnReply, Provider, Reply, Request
from core.records import Usage

MOST_UNPRICED = 64
"""Requests that are sent at once before any reply has cost something."""


class BudgetSpentError(ConcordError):
    """The next reply would exceed a budget in dollars.  `usage` is what the batch cost that was stopped."""

    def __init__(self, dollars: float, usage: Usage) -> None:
        super().__init__(f"The budget of ${dollars:,g} is used up: the next reply would exceed it. Raise it to go on.")
        self.usage = usage


class ProviderWithinBudget:
    """Ask `inner` while its replies cost no more than `dollars` in all; thread-safe.

    A part of a batch is sent if all its replies could cost what the dearest one has cost so far.  If replies turn out
    dearer, what waits is given up, so that the budget is exceeded by no more than what is in flight.  The cost of a
    reply counts its retries, its thoughts, and cached prompt tokens at their own price.
    """

    def __init__(self, inner: Provider, dollars: float) -> None:
        self.inner, self.dollars = inner, dollars
        self.spent = self._dearest = self._reserved = 0.0
        self._unpriced = 1
        # batches of one scoring are asked in several threads; one at a time until a reply has shown a price
        self._lock, self._first = threading.Lock(), threading.Lock()

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `Provider.complete`.  BudgetSpentError where the budget does not reach; what has arrived is in the cache.

        Replies from a cache cost nothing.  Those that a resumed run paid for earlier count again.
        """
        replies, usage = list[Reply](), Usage()

        def arrived(index: int, reply: Reply) -> None:
            nonlocal usage
            usage += reply.usage
            with self._lock:
                cost = reply.usage.cost or 0.0
                self.spent, self._dearest = self.spent + cost, max(self._dearest, cost)
                over = self.spent > self.dollars
            if on_reply is not None:
                on_reply(len(replies) + index, reply)
            if over:
                raise BudgetSpentError(self.dollars, usage)

        while rest := requests[len(replies) :]:
            with nullcontext() if self._dearest else self._first:
                n, reserved = self._affordable(len(rest))
                if not n:
                    raise BudgetSpentError(self.dollars, usage)
                try:
                    replies += self.inner.complete(rest[:n], on_reply=arrived)
                finally:
                    with self._lock:
                        self._reserved -= reserved
        return replies

    def _affordable(self, wanted: int) -> tuple[int, float]:
        """How many of the `wanted` requests may be sent now, and the dollars that are reserved for them."""
        with self._lock:
            left = self.dollars - self.spent - self._reserved
            if not self._dearest:  # a few more each time while all come from the cache
                n, self._unpriced = min(wanted, self._unpriced), min(MOST_UNPRICED, 2 * self._unpriced)
                return (n, 0.0) if left > 0 else (0, 0.0)
            n = max(0, int(min(wanted, left / self._dearest)))
            self._reserved += n * self._dearest
            return n, n * self._dearest

    def close(self) -> None:
        self.inner.close()
