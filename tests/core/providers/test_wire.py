"""Bodies of every odd shape, prices from the user's file, and error messages that give nothing away."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.errors import AuthError, EndpointDownError
from core.providers.cached import CachedProvider
from core.providers.completions import Completion, Failure, Message, Reply, Request
from core.providers.openai_api import as_provider_error
from core.providers.wire import Capabilities, UnansweredError, read_completion, refused_part, request_body
from core.records import Usage
from tests.core.providers.conftest import Make
from tests.fake_openai import RunningServer


def _body(**choice: Any) -> bytes:
    return json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": "Score: 4"}} | choice]}).encode()


def test_a_reply_without_usage_is_a_request_of_unknown_cost() -> None:
    assert read_completion(_body(), None) == Completion("Score: 4", "stop", Usage(requests=1))


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (_body(message={"content": None}), "", "stop"),
        (_body(message={"content": None, "refusal": "No."}), "No.", "refusal"),
        (_body(finish_reason="length"), "Score: 4", "length"),
        (_body(finish_reason=None), "Score: 4", "stop"),
        (b'{"choices": [{"message": {"content": "a\\ud800b"}}]}', "a?b", "stop"),
    ],
)
def test_odd_completions(body: bytes, text: str, finish: str) -> None:
    reply = read_completion(body, None)
    assert isinstance(reply, Completion)
    assert (reply.text, reply.finish) == (text, finish)


@pytest.mark.parametrize(
    "body", [_body(message=None), _body(message={"content": [1]}), b'{"choices": []}', b'{"choices": [7]}']
)
def test_completions_without_text_are_failures(body: bytes) -> None:
    reply = read_completion(body, None)
    assert isinstance(reply, Failure)


@pytest.mark.parametrize(
    ("body", "says"),
    [(b"", "empty"), (b"<html>", "HTML"), (b"oops", "isn't JSON"), (b"[]", "choices"), (b'{"choices": 1}', "choices")],
)
def test_what_is_no_completion_says_what_it_looks_like(body: bytes, says: str) -> None:
    with pytest.raises(UnansweredError, match=says):
        read_completion(body, None)


def _refused(message: str, prompt: str) -> str:
    request = Request("m", (Message("user", prompt),), 0.0, 64)
    error = UnansweredError("status", message, status=400)
    return str(as_provider_error(error, "http://h/v1", request, "OPENAI_API_KEY", has_key=True))


def test_the_servers_own_words_are_told_unless_they_repeat_the_prompt() -> None:
    prompt = "Rate this confidential letter of the board to its members."
    assert "The server says: top_k is out of place" in _refused("top_k is out of place", prompt)
    echoed = _refused("Invalid input: 'Rate this confidential letter of the board'", prompt)
    assert "confidential" not in echoed
    assert "rejected the request (400)" in echoed


RATE = "## Instructions\nGive a number from 1 (lowest) to 5 (highest).\n## Item\nText to rate:\n> Text {}.\n"
NUMBER = RATE + "## Answer\nReply with the number and nothing else."
SCHEMA = '{"type": "object"}'


def samples(n: int, prompt: str = RATE.format(0), **changes: Any) -> list[Request]:
    return [Request("m", (Message("user", prompt),), 1.0, 64, sample=k, **changes) for k in range(n)]


def texts(replies: Sequence[Reply]) -> list[str]:
    return [reply.text for reply in replies if isinstance(reply, Completion)]


EXTRAS: dict[str, dict[str, Any]] = {
    "logprobs": {"prompt": NUMBER.format(0), "logprobs": 20},
    "response_format": {"json_schema": SCHEMA},
}


@pytest.mark.parametrize("how", ["refuse", "ignore", "choke"])
@pytest.mark.parametrize("extra", EXTRAS)
def test_where_an_extra_is_not_done_replies_come_without_it(
    make: Make, server: RunningServer, how: str, extra: str
) -> None:
    setattr(server.fake, how, frozenset({extra}))
    provider = make()
    replies = [reply for _ in range(4) for reply in provider.complete(samples(1, **EXTRAS[extra]))]
    assert len(texts(replies)) == 4
    assert extra in provider.capabilities("m").refused
    assert not any(reply.logprobs for reply in replies if isinstance(reply, Completion))
    asked = [extra in body for body in server.fake.bodies]
    assert asked == [True] + [False] * (len(asked) - 1), "found out with the first request alone, and kept"
    assert len(asked) == 4 + (how != "ignore")


def test_logprobs_come_with_the_reply_and_through_the_cache(make: Make, memory: Any) -> None:
    provider = CachedProvider(make(), memory)
    (live,) = provider.complete(samples(1, NUMBER.format(0), logprobs=20))
    (kept,) = provider.complete(samples(1, NUMBER.format(0), logprobs=20))
    assert isinstance(live, Completion)
    assert isinstance(kept, Completion)
    assert kept.cached
    assert live.logprobs == kept.logprobs
    assert "".join(place.token for place in live.logprobs) == live.text
    assert math.fsum(math.exp(logprob) for _, logprob in live.logprobs[0].top) == pytest.approx(1.0)


def test_a_system_message_goes_before_the_question_where_the_role_is_refused(make: Make, server: RunningServer) -> None:
    server.fake.refuse = frozenset({"system"})
    requests = [
        Request("m", (Message("system", "You are careful.\n"), Message("user", RATE.format(n))), 0.0, 64)
        for n in range(3)
    ]
    provider = make()
    assert len(texts(provider.complete(requests))) == 3
    assert server.fake.requests == 4
    assert server.fake.bodies[-1]["messages"] == [
        {"role": "user", "content": "You are careful.\n\n" + requests[-1].messages[1].content}
    ]


@pytest.mark.parametrize(("fault", "error"), [("500", EndpointDownError), ("401", AuthError)])
def test_an_endpoint_that_fails_anyway_is_no_finding_about_extras(
    make: Make, server: RunningServer, fault: str, error: type[Exception]
) -> None:
    server.fake.fault = fault
    provider = make()
    with pytest.raises(error):
        provider.complete(samples(3, logprobs=20))
    assert provider.capabilities("m") == Capabilities()
    server.fake.fault = ""
    assert len(texts(provider.complete(samples(3, logprobs=20)))) == 3
    assert provider.capabilities("m").proven == {"logprobs"}


@pytest.mark.parametrize(
    ("message", "param", "named"),
    [
        ("Unknown field `top_logprobs`", "", "logprobs"),
        ("logprobs are not supported with this model", "top_logprobs", "logprobs"),
        ("System role not supported", "", "system"),
        ("`temperature` and `top_p` cannot both be specified for this model.", "", "top_p"),
        ("`temperature` is deprecated for this model.", "", "temperature"),
        ("temperature: may only be set to 1 when thinking is enabled", "", "temperature"),
        ("'max_tokens' is not supported with this model. Use 'max_completion_tokens'.", "", "max_tokens"),
        ("Unsupported content in line 3", "", None),
        ("Unsupported content: 'one\\n\\ntwo'", "", None),
    ],
)
def test_refusals_in_the_words_of_real_servers(message: str, param: str, named: str | None) -> None:
    request = Request("m", (Message("system", "s"), Message("user", "u")), 1.0, 64, 0.9, logprobs=5)
    error = UnansweredError("status", status=400, told=message, param=param)
    assert refused_part(error, request_body(request, Capabilities())) == named


@pytest.mark.parametrize(
    "name", ["temperature", "top_p", "max_tokens", "logprobs", "response_format", "seed", "system"]
)
def test_each_parameter_refused_is_learnt_once_and_for_its_model_alone(
    make: Make, server: RunningServer, name: str
) -> None:
    server.fake.refuse = frozenset({name})
    messages = (Message("system", "You are careful."), Message("user", NUMBER.format(0)))
    one = Request("m", messages, 1.0, 64, 0.9, 7, json_schema=SCHEMA, logprobs=5)
    asked = [replace(one, seed=seed) for seed in range(4)]
    provider = make()
    assert len(texts(provider.complete(asked))) == 4
    assert provider.capabilities("m").refused - {"response_format"} == {name} - {"response_format"}
    assert provider.capabilities("another") == Capabilities()
    assert server.fake.requests == 1 + 4, "one refusal, and no answer paid for twice"
    assert len(texts(provider.complete([replace(one, seed=9)]))) == 1
    assert server.fake.requests == server.fake.answered + 1
