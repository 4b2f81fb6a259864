"""Limit the dollars that requests may cost, judging by the replies so far."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ConcordError
from core.providers.completions import OnReply, Provider, Reply, Request
from core.records import Usage

MOST_UNPRICED = 64
"""Requests that are sent at once before any reply has cost something."""


class BudgetSpentError(ConcordError):
    """The next reply would exceed a budget in dollars.  `usage` is the cost of the stopped batch."""

    def __init__(self, dollars: float, usage: Usage) -> None:
        super().__init__(
            f"The budget of ${dollars:,g} is used up: the next reply would exceed it. Raise the budget to continue."
        )
        self.usage = usage


class ProviderWithinBudget:
    """Ask `inner` while its replies cost no more than `dollars` in total.  Call it from one thread at a time.

    A part of a batch is sent if the budget pays for all its replies at the highest price of a reply so far.  If replies
    turn out more expensive, the rest is not sent, so the excess is at most the cost of the requests in flight.  The
    cost of a reply includes its retries, its thoughts, and cached prompt tokens at their own price.
    """

    def __init__(self, inner: Provider, dollars: float) -> None:
        self.inner, self.dollars = inner, dollars
        self.spent = self._highest = 0.0
        self._unpriced = 1

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
            cost = reply.usage.cost or 0.0
            self.spent, self._highest = self.spent + cost, max(self._highest, cost)
            if on_reply is not None:
                on_reply(len(replies) + index, reply)
            if self.spent > self.dollars:
                raise BudgetSpentError(self.dollars, usage)

        while rest := requests[len(replies) :]:
            left = self.dollars - self.spent
            if self._highest:
                n = int(min(len(rest), left / self._highest))
            else:  # no price yet, as with cached replies: send a few more each time
                n, self._unpriced = self._unpriced if left > 0 else 0, min(MOST_UNPRICED, 2 * self._unpriced)
            if n < 1:
                raise BudgetSpentError(self.dollars, usage)
            replies += self.inner.complete(rest[:n], on_reply=arrived)
        return replies

    def close(self) -> None:
        self.inner.close()
