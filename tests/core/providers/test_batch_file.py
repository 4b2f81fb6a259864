"""The files of batch endpoints: samples of a prompt in one line, half the price, and lines of any content."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.providers.completions import Completion, Failure, Message, Request
from core.providers.endpoints import Price
from core.providers.wire import BatchResults, Capabilities, read_result, request_body, request_lines
from tests.replies import MemoryReplies

MODEL = "fake-judge"


@pytest.fixture
def samples() -> list[Request]:
    """Four prompts, each sampled six times."""
    prompts = [Request(MODEL, (Message("user", f"Rate text {n}."),), 1.0, 64) for n in range(4)]
    return [replace(prompt, sample=k) for prompt in prompts for k in range(6)]


def answer(line: dict[str, Any]) -> str:
    choices = [{"message": {"content": line["custom_id"][-6:]}, "finish_reason": "stop"}]
    body = {"choices": choices, "usage": {"prompt_tokens": 100, "completion_tokens": 0}}
    return json.dumps({"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}})


def test_every_request_is_a_line_and_its_result_a_reply_at_half_the_price(
    samples: list[Request], tmp_path: Path
) -> None:
    """The first request is in the cache; results come in another order."""
    known, cache, name = Capabilities(), MemoryReplies(), "http://host/v1"
    cache.put_replies([(samples[0].key(name), '{"text": "4"}')])
    lines = [json.loads(line) for line in request_lines([samples[:10], samples[10:]], name, known, cache)]
    assert [line["body"] for line in lines] == [request_body(request, known) for request in samples[1:]]
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(map(answer, reversed(lines))), "utf-8")
    results = BatchResults(name, Price(2.0, 8.0), ("seed",))
    results.add(file, {request.key(name) for request in samples})
    told: list[int] = []
    replies = results.complete(samples, on_reply=lambda index, reply: told.append(index))
    assert told == list(range(24))
    assert isinstance(replies[0], Failure)
    completions = [reply for reply in replies[1:] if isinstance(reply, Completion)]
    assert len({reply.text for reply in completions}) == len(completions) == 23
    cost = 23 * 100 * 2.0 / 1e6 / 2
    assert sum(reply.usage.cost or 0.0 for reply in completions) == pytest.approx(cost)
    assert {reply.without for reply in completions} == {("seed",)}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
known_names = st.sampled_from(("custom_id", "response", "error", "status_code", "body", "choices", "code", "message"))


@given(
    st.binary(max_size=60)
    | st.dictionaries(
        known_names,
        json_values | st.dictionaries(known_names, json_values | st.dictionaries(known_names, json_values)),
    ).map(lambda body: json.dumps(body).encode())
)
def test_a_line_of_any_content_is_read_or_refused(line: bytes) -> None:
    result = read_result(line, Price(1.0, 1.0))
    assert result is None or (isinstance(result[0], str) and bool(result[1]))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"response": None, "error": {"code": "batch_expired"}}, "batch_expired"),
        ({"response": {"status_code": 400, "request_id": "r"}, "error": {"code": 400}}, "status 400"),
        ({"response": {"status_code": 200, "body": None}}, "no completion"),
        ({"error": None}, "no response"),
    ],
)
def test_lines_of_errors_say_which(line: dict[str, Any], problem: str) -> None:
    result = read_result(json.dumps({"custom_id": "a", **line}).encode(), None)
    assert result == ("a", problem)
