"""Limit the dollars that requests may cost, judging by the replies so far."""

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
    """The next reply would exceed a budget in dollars.  `usage` is the cost of the stopped batch."""

    def __init__(self, dollars: float, usage: Usage) -> None:
        super().__init__(f"The budget of ${dollars:,g} is used up: the next reply would exceed it. Raise it to go on.")
        self.usage = usage


class ProviderWithinBudget:
    """Ask `inner` while its replies cost no more than `dollars` in total; thread-safe.

    A part of a batch is sent if the budget pays for all its replies at the highest price of a reply so far.  If replies
    turn out more expensive, the rest is not sent, so the excess is at most the cost of the requests in flight.  The
    cost of a reply includes its retries, its thoughts, and cached prompt tokens at their own price.
    """

    def __init__(self, inner: Provider, dollars: float) -> None:
        self.inner, self.dollars = inner, dollars
        self.spent = self._dearest = self._reserved = 0.0
        self._unpriced = 1
        # a scoring sends batches in several threads; one at a time until the first price is known
        self._lock, self._first = threading.Lock(), threading.Lock()

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `Provider.complete`.  BudgetSpentError if the budget is too small for the rest of the batch.

        Cached replies cost nothing.  Replies that a resumed run paid for earlier count again.
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
        """The number of requests that may be sent now, and the dollars reserved for them."""
        with self._lock:
            left = self.dollars - self.spent - self._reserved
            if not self._dearest:  # no price yet, as with cached replies: send a few more each time
                n, self._unpriced = min(wanted, self._unpriced), min(MOST_UNPRICED, 2 * self._unpriced)
                return (n, 0.0) if left > 0 else (0, 0.0)
            n = max(0, int(min(wanted, left / self._dearest)))
            self._reserved += n * self._dearest
            return n, n * self._dearest

    def close(self) -> None:
        self.inner.close()
