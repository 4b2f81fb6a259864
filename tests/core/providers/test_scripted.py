"""The fake that ships: repeatable, told apart by seeds, and faulty only when asked."""

from __future__ import annotations

import pytest

from core.providers.base import Completion, Failure, Message, Request
from core.providers.scripted import FAULTS, ScriptedProvider


def _request(n: int) -> Request:
    return Request("scripted", (Message("user", f"## Item\nText to rate:\n> Text {n}\n"),), 0.0, 64)


def test_equal_seeds_and_requests_give_equal_replies() -> None:
    requests = [_request(n) for n in range(30)]
    assert ScriptedProvider(3).complete(requests) == ScriptedProvider(3).complete(requests)
    assert ScriptedProvider(3).complete(requests) != ScriptedProvider(4).complete(requests)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_come_at_about_the_rate_asked_for(fault: str) -> None:
    replies = ScriptedProvider(fault_rate=0.3, faults=[fault]).complete([_request(n) for n in range(1000)])
    sound = ScriptedProvider(fault_rate=0.0).complete([_request(n) for n in range(1000)])
    assert all(isinstance(reply, Completion) and reply.finish == "stop" for reply in sound)
    spoilt = sum(
        isinstance(reply, Failure)
        or reply.finish == "refusal"
        or not reply.text
        or "11" in reply.text
        or "merits" in reply.text
        for reply in replies
    )
    assert 240 < spoilt < 360  # binomial(1000, .3): sd 14.5, so more than 4 sd either way


def test_faults_are_part_of_the_endpoint_so_that_a_cache_keeps_them_apart() -> None:
    assert ScriptedProvider(1).endpoint != ScriptedProvider(1, fault_rate=0.1).endpoint
