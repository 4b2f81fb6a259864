"""What tokens cost: the table that ships, cached tokens and thoughts, what a filter withheld, and files of nonsense."""

from __future__ import annotations

import pytest

from core.providers.cached import CachedProvider
from core.providers.completions import Failure, Request
from core.providers.endpoints import Price, list_price
from core.records import Usage
from core.store.store import Store
from tests.core.providers.conftest import Make
from tests.core.providers.test_answered import new_run
from tests.fake_openai import RunningServer

OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com/v1"


def test_a_list_price_holds_at_its_own_endpoint_and_for_dated_snapshots() -> None:
    assert list_price(OPENAI, "gpt-4o-mini-2024-07-18") == list_price(OPENAI, "gpt-4o-mini") is not None
    assert list_price(ANTHROPIC, "claude-haiku-4-5-20251001") == Price(1.0, 5.0, 0.1)
    assert list_price("http://127.0.0.1:8000/v1", "gpt-4o-mini") is None
    assert list_price(OPENAI, "a-model-of-tomorrow") is None


def test_cached_tokens_cost_less_and_never_more_than_there_are() -> None:
    price = Price(10.0, 50.0, cached=1.0)
    assert price.cost(1_000_000, 0, 790_000) == pytest.approx(0.21 * 10 + 0.79)
    assert price.cost(1_000_000, 0, 5_000_000) == pytest.approx(1.0)
    assert Price(10.0, 50.0).cost(1_000_000, 0, 790_000) == pytest.approx(10.0)


def test_what_a_filter_withheld_is_paid_for_and_told_again_by_a_run_that_goes_on(
    make: Make, server: RunningServer, requests: list[Request], store: Store
) -> None:
    server.fake.fault, run = "filter", new_run(store)
    provider = CachedProvider(make(prices={"fake-judge": Price(2.0, 10.0)}), store.replies.of_run(run[0]))
    (withheld,) = provider.complete(requests[:1])
    assert isinstance(withheld, Failure)
    assert withheld.usage.requests == 1
    assert withheld.usage.cost is not None
    assert withheld.usage.cost > 0
    (resumed,) = CachedProvider(make(), store.replies.of_run(run[0])).complete(requests[:1])
    assert resumed == withheld
    assert server.fake.requests == 1


def test_a_sum_with_an_unknown_price_is_unknown() -> None:
    known, unknown, nothing = Usage(requests=1, cost=0.5), Usage(requests=1), Usage(cached=4)
    assert (known + known).cost == 1.0
    assert (known + unknown).cost is None
    assert (unknown + known + known).cost is None
    assert (nothing + known).cost == 0.5
    assert (Usage() + nothing).cost is None
