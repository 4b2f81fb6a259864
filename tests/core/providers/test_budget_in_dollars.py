"""A budget in dollars: never exceeded by more than what is in flight, whatever replies turn out to cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.providers.budget import BudgetSpentError, ProviderWithinBudget
from core.providers.completions import Completion, Message, Reply, Request
from core.providers.scripted import ScriptedProvider
from core.records import Usage


def requests(n: int) -> list[Request]:
    return [Request("m", (Message("user", str(k)),), 0.0, 10) for k in range(n)]


def priced(costs: Sequence[float]) -> ScriptedProvider:
    """Reply k costs `costs[k]`; one reply is in flight at a time."""

    def answer(request: Request) -> Reply:
        return Completion("3", "stop", Usage(requests=1, cost=costs[int(request.messages[0].content)]))

    return ScriptedProvider("x", answer)


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=60), st.floats(0.1, 20.0))
def test_the_budget_is_exceeded_by_one_reply_at_most(costs: list[float], dollars: float) -> None:
    provider = ProviderWithinBudget(priced(costs), dollars)
    try:
        replies = provider.complete(requests(len(costs)))
    except BudgetSpentError as error:
        assert error.usage.cost is None or error.usage.cost == pytest.approx(provider.spent)
        assert sum(costs) > 0
    else:
        assert len(replies) == len(costs)
    assert provider.spent <= dollars + max(costs)


def test_equal_replies_never_exceed_it() -> None:
    provider = ProviderWithinBudget(priced([0.3] * 10), 1.0)
    seen: list[int] = []
    with pytest.raises(BudgetSpentError, match=r"exceed the budget of \$1"):
        provider.complete(requests(10), on_reply=lambda index, _reply: seen.append(index))
    assert seen == [0, 1, 2]
    assert provider.spent == pytest.approx(0.9)


def test_cached_replies_cost_nothing() -> None:
    provider = ProviderWithinBudget(priced([0.0] * 300), 0.01)
    assert len(provider.complete(requests(300))) == 300
