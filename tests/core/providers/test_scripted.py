"""The fake that ships: repeatable, told apart by seeds, and faulty only when asked."""

from __future__ import annotations

import math
from typing import Any

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


SCALE = "## Instructions\nGive a number from 1 (lowest) to 5 (highest): one of 1, 2, 3, 4, 5.\n"
NUMBER = SCALE + "## Item\nText to rate:\n> Text {}\n\n## Answer\nReply with that one whole number and nothing else."


def _number(n: int, **changes: Any) -> Request:
    return Request("scripted", (Message("user", NUMBER.format(n)),), changes.pop("temperature", 1.0), 64, **changes)


def _said(request: Request) -> Completion:
    reply = ScriptedProvider().answer(request)
    assert isinstance(reply, Completion)
    return reply


def test_samples_differ_with_temperature_and_only_then() -> None:
    assert len({_said(_number(0, sample=k)).text for k in range(20)}) > 1
    assert len({_said(_number(0, sample=k, temperature=0.0)).text for k in range(20)}) == 1


def test_whole_numbers_come_where_they_are_asked_for() -> None:
    assert {_said(_number(n)).text for n in range(60)} <= set("12345")


def test_logprobs_are_a_distribution_whose_likeliest_rating_is_the_one_said() -> None:
    for n in range(20):
        reply = _said(_number(n, logprobs=20))
        (place,) = reply.logprobs
        assert reply.text == place.token == place.top[0][0]
        assert {token for token, _ in place.top} == {*"12345", "The"}
        assert math.fsum(math.exp(logprob) for _, logprob in place.top) == pytest.approx(1.0)
        assert len(_said(_number(n, logprobs=3)).logprobs[0].top) == 3
    assert not _said(_number(0)).logprobs


def test_it_writes_steps_from_the_criteria() -> None:
    prompt = (
        "## Instructions\nWrite the steps.\n\n## Criteria for it\nShort texts.\n\n## Task\n- Six.\n\n## Answer\nSteps."
    )
    text = _said(Request("scripted", (Message("user", prompt),), 0.0, 64)).text
    assert [line[:2] for line in text.splitlines()] == ["1.", "2.", "3."]
    assert "brevity" in text
