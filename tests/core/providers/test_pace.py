"""Endpoints that allow a few requests at a time: a run gets slow, and every request is answered in the end."""

from __future__ import annotations

import time

import pytest

from core.errors import ProviderError, RateLimitError
from core.providers.completions import Completion, Message, Request
from core.providers.openai_api import LONGEST_NAMED, LONGEST_WAIT, wait_asked_for
from tests.core.providers.conftest import Make
from tests.fake_openai import RunningServer


def asked(n: int) -> list[Request]:
    return [Request("fake-judge", (Message("user", f"Prompt {k}."),), 0.0, 64) for k in range(n)]


@pytest.mark.parametrize("retry_after", ["", "1", "0"])
def test_three_requests_a_second_are_slow_and_never_the_end(
    make: Make, server: RunningServer, retry_after: str
) -> None:
    server.fake.per_second, server.fake.retry_after = 3, retry_after
    replies = make(concurrency=64, patience=60.0).complete(asked(12))
    assert all(isinstance(reply, Completion) for reply in replies)
    assert server.fake.answered == 12, "nothing is answered twice"
    assert server.fake.too_fast < 60, "refusals are few once the pace is known"


def test_more_at_once_than_allowed_falls_and_rises_again(make: Make, server: RunningServer) -> None:
    server.fake.per_second, server.fake.latency = 8, 0.02
    provider = make(concurrency=32, patience=60.0)
    assert len(provider.complete(asked(14))) == 14
    server.fake.per_second = server.fake.most_in_flight = server.fake.answered = 0
    server.fake.ready = lambda: server.fake.answered < 100 or server.fake.most_in_flight > 4
    assert len(provider.complete(asked(200))) == 200
    assert server.fake.most_in_flight > 4


def test_a_quota_that_is_used_up_is_told_at_once(make: Make, server: RunningServer) -> None:
    server.fake.fault = "quota"
    with pytest.raises(RateLimitError, match=r"this key's quota is used up.*Add credit"):
        make(retries=5, patience=60.0).complete(asked(5))
    assert server.fake.requests == 1


def test_a_longer_wait_than_an_hour_is_told_and_not_slept_through(make: Make, server: RunningServer) -> None:
    server.fake.per_second, server.fake.retry_after = 1, str(int(LONGEST_WAIT) + 60)
    with pytest.raises(RateLimitError, match="asks Concord to wait 3,660 s"):
        make(patience=60.0).complete(asked(3))


def test_a_server_in_trouble_cannot_stall_a_run_for_days(
    make: Make, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    make(retries=2).complete(asked(1))  # the endpoint is known to answer
    monkeypatch.setattr("core.providers.openai_api.asyncio.sleep", sleep)
    server.fake.fault, server.fake.retry_after = "503", "86400"
    with pytest.raises(ProviderError):
        make(retries=2).complete(asked(1))
    assert max(slept) == LONGEST_NAMED


def test_settings_bound_requests_a_minute(make: Make) -> None:
    started = time.monotonic()
    make(requests_per_minute=600).complete(asked(6))
    assert 0.5 <= time.monotonic() - started < 20  # 60 if each took a minute's share of ten


@pytest.mark.parametrize("fault", ["garbage", "503", "html"])
def test_a_bad_reply_now_and_then_is_asked_for_again(make: Make, server: RunningServer, fault: str) -> None:
    server.fake.fault, server.fake.fault_every = fault, 4
    replies = make(retries=3, concurrency=4).complete(asked(10))
    assert all(isinstance(reply, Completion) for reply in replies)
    assert server.fake.requests <= 15


def test_what_headers_say() -> None:
    assert wait_asked_for({"retry-after": "7"}) == 7
    for nothing in ({}, {"retry-after": "0"}, {"retry-after": "-3"}, {"retry-after": "nan"}, {"retry-after": "soon"}):
        assert wait_asked_for(nothing) is None
