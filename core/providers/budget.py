"""Stop sending requests before their cost exceeds a budget in dollars."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ConcordError
from core.providers.completions import OnReply, Provider, Reply, Request
from core.records import Usage

MOST_UNPRICED = 64
"""Maximum number of requests in flight while the price of a reply is unknown."""


class BudgetSpentError(ConcordError):
    """The next reply would exceed the budget. `usage` is the cost of the stopped batch."""

    def __init__(self, dollars: float, usage: Usage) -> None:
        super().__init__(f"The next reply would exceed the budget of ${dollars:,g}. To continue, raise the budget.")
        self.usage = usage


class ProviderWithinBudget:
    """A provider that stops when the replies of `inner` have cost `dollars`. Not thread-safe.

    The provider sends only as many requests at once as the budget covers at the highest price per reply so far. So the
    excess is at most the cost of the requests in flight. The cost of a reply includes retries, reasoning tokens, and
    cached prompt tokens at their own price.
    """

    def __init__(self, inner: Provider, dollars: float) -> None:
        self.inner, self.dollars = inner, dollars
        self.spent = self._highest = 0.0
        self._unpriced = 1

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Complete the requests (see `Provider.complete`).

        A cached reply costs nothing, unless a resumed run paid for the reply before the interruption. Raises
        BudgetSpentError if the budget doesn't cover the whole batch.
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
            else:  # no price yet, for example because all replies were cached: double the number each time
                n, self._unpriced = self._unpriced if left > 0 else 0, min(MOST_UNPRICED, 2 * self._unpriced)
            if n < 1:
                raise BudgetSpentError(self.dollars, usage)
            replies += self.inner.complete(rest[:n], on_reply=arrived)
        return replies

    def close(self) -> None:
        self.inner.close()
