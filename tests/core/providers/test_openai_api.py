"""The provider against a local server that answers, fails, and misbehaves."""

from __future__ import annotations

import time
from functools import partial

import pytest

from core.errors import (
    AuthError,
    BadReplyError,
    CancelledRunError,
    EndpointDownError,
    ModelNotFoundError,
    ProviderError,
    RateLimitError,
)
from core.providers.completions import Completion, Failure, Message, Reply, Request
from core.providers.endpoints import Price
from core.providers.openai_api import FAILURES_IN_A_ROW
from tests.core.providers.conftest import Make
from tests.fake_openai import RunningServer

KEY = "sk-very-secret"


@pytest.fixture
def make(make: Make) -> Make:
    """Providers that have a key."""
    return partial(make, api_key=KEY)


def test_replies_come_in_order_with_usage_and_price(make: Make, server: RunningServer, requests: list[Request]) -> None:
    seen: list[int] = []
    provider = make(prices={"fake-judge": Price(2.0, 10.0)})
    replies = provider.complete(requests, on_reply=lambda index, _reply: seen.append(index))
    assert sorted(seen) == list(range(20))
    assert server.fake.keys == {f"Bearer {KEY}"}
    for request, reply in zip(requests, replies, strict=True):
        assert isinstance(reply, Completion)
        prompt = len(request.messages[0].content) // 4  # the server counts 4 characters a token
        assert (reply.usage.requests, reply.usage.prompt_tokens) == (1, prompt)
        assert reply.usage.cached_prompt_tokens == prompt // 2
        cost = (prompt * 2.0 + reply.usage.completion_tokens * 10.0) / 1_000_000
        assert reply.usage.cost == pytest.approx(cost, abs=1e-15)
    (discounted,) = make(prices={"fake-judge": Price(2.0, 10.0, cached=0.2)}).complete(requests[:1])
    told = discounted.usage
    # half of the prompt is from the endpoint's cache: (tokens - cached) x 2 + cached x 0.2 + completion x 10
    fresh = told.prompt_tokens - told.cached_prompt_tokens
    cost = (fresh * 2.0 + told.cached_prompt_tokens * 0.2 + told.completion_tokens * 10.0) / 1_000_000
    assert told.cached_prompt_tokens > 0
    assert told.cost == pytest.approx(cost, abs=1e-15)
    (unpriced,) = make(prices={"another": Price(1.0, 1.0)}).complete(requests[:1])
    assert unpriced.usage.cost is None, "unknown, not nothing"


def test_replies_keep_their_places_when_they_arrive_out_of_order(
    make: Make, server: RunningServer, requests: list[Request]
) -> None:
    expected = make().complete(requests)
    server.fake.delays = {"Prompt 1,": 0.15, "Prompt 5,": 0.1}
    assert make().complete(requests) == expected


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("401", AuthError, "OPENAI_API_KEY"),
        ("403", AuthError, "OPENAI_API_KEY"),
        ("404", ModelNotFoundError, "model's name"),
        ("429", RateLimitError, "CONCORD_CONCURRENCY"),
        ("500", EndpointDownError, "500"),
        ("503", EndpointDownError, "503"),
        ("418", ProviderError, "418"),
        ("html", BadReplyError, "HTML"),
        ("garbage", BadReplyError, "isn't JSON"),
    ],
)
def test_what_stops_a_batch(
    make: Make, server: RunningServer, requests: list[Request], fault: str, error: type[ProviderError], says: str
) -> None:
    server.fake.fault = fault
    with pytest.raises(error) as caught:
        make().complete(requests)
    message = str(caught.value)
    assert says in message
    assert server.base_url in message
    assert "fake-judge" in message
    assert KEY not in message
    assert "Prompt" not in message
    assert server.fake.requests == 1, "the first request goes alone, so one is enough to find out"


def test_an_endpoint_that_wants_a_key_is_down_hangs_or_fails_still(
    make: Make, server: RunningServer, requests: list[Request]
) -> None:
    server.fake.fault = "401"
    with pytest.raises(AuthError, match="requires a key"):
        make(api_key=None).complete(requests)
    with pytest.raises(EndpointDownError, match="can't be reached"):
        make(base_url="http://127.0.0.1:9/v1").complete(requests)
    server.fake.fault = "hang"
    with pytest.raises(EndpointDownError, match="in time"):
        make(timeout=0.2).complete(requests)
    server.fake.fault, server.fake.requests = "500", 0
    with pytest.raises(EndpointDownError):
        make(retries=1).complete(requests)
    assert server.fake.requests == 2, "one retry and no more"


@pytest.mark.parametrize(
    ("fault", "says"), [("filter", "content filter"), ("no-choices", "without choices"), ("long", "context length")]
)
def test_what_is_wrong_with_one_reply_leaves_the_rest(
    make: Make, server: RunningServer, requests: list[Request], fault: str, says: str
) -> None:
    server.fake.fault = fault
    replies = make().complete(requests)
    assert all(isinstance(reply, Failure) and says in reply.message for reply in replies)
    assert server.fake.requests == 20


def test_a_key_refused_in_the_middle_keeps_what_arrived(
    make: Make, server: RunningServer, requests: list[Request]
) -> None:
    server.fake.fault, server.fake.fault_after = "401", 10
    arrived: list[Reply] = []
    with pytest.raises(AuthError):
        make(concurrency=2).complete(requests, on_reply=lambda _index, reply: arrived.append(reply))
    assert 9 <= len(arrived) <= 10
    assert all(isinstance(reply, Completion) for reply in arrived)


def test_an_endpoint_that_goes_down_in_the_middle_ends_the_batch_after_a_few(make: Make, server: RunningServer) -> None:
    many = [Request("m", (Message("user", f"Prompt {n}"),), 0.0, 64) for n in range(60)]
    server.fake.fault, server.fake.fault_after = "500", 10
    arrived: list[Reply] = []
    with pytest.raises(EndpointDownError):
        make(concurrency=2).complete(many, on_reply=lambda _index, reply: arrived.append(reply))
    failures = [reply for reply in arrived if isinstance(reply, Failure)]
    assert 0 < len(failures) < FAILURES_IN_A_ROW
    assert server.fake.requests <= 10 + FAILURES_IN_A_ROW + 2


def test_cancelling_from_on_reply_stops_the_rest(make: Make, server: RunningServer, requests: list[Request]) -> None:
    server.fake.latency = 0.05

    def cancel(_index: int, _reply: Reply) -> None:
        raise CancelledRunError("Cancelled.")

    provider = make(concurrency=2)
    with pytest.raises(CancelledRunError):
        provider.complete(requests, on_reply=cancel)
    time.sleep(0.2)
    assert server.fake.requests <= 4
    server.fake.latency = 0.0
    assert len(provider.complete(requests)) == 20, "the provider can be used again"


def test_what_is_sent(make: Make, server: RunningServer) -> None:
    request = Request("m", (Message("user", "Prompt"),), 1.0, 64, top_p=0.9, seed=7, json_schema='{"type": "object"}')
    make().complete([request])
    assert server.fake.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Prompt"}],
            "temperature": 1.0,
            "max_tokens": 64,
            "top_p": 0.9,
            "seed": 7,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": True},
            },
        }
    ]
