"""Bodies of every odd shape, prices from the user's file, and error messages that give nothing away."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.providers.completions import Completion, Failure, Message, Request
from core.providers.openai_client import as_provider_error
from core.providers.wire import UnansweredError, read_completions
from core.records import Usage


def _body(**choice: Any) -> bytes:
    return json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": "Score: 4"}} | choice]}).encode()


def test_a_reply_without_usage_is_a_request_of_unknown_cost() -> None:
    assert read_completions(_body(), None) == [Completion("Score: 4", "stop", Usage(requests=1))]


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
    (reply,) = read_completions(body, None)
    assert isinstance(reply, Completion)
    assert (reply.text, reply.finish) == (text, finish)


@pytest.mark.parametrize(
    "body", [_body(message=None), _body(message={"content": [1]}), b'{"choices": []}', b'{"choices": [7]}']
)
def test_completions_without_text_are_failures(body: bytes) -> None:
    (reply,) = read_completions(body, None)
    assert isinstance(reply, Failure)


@pytest.mark.parametrize(
    ("body", "says"),
    [(b"", "empty"), (b"<html>", "HTML"), (b"oops", "not JSON"), (b"[]", "choices"), (b'{"choices": 1}', "choices")],
)
def test_what_is_no_completion_says_what_it_looks_like(body: bytes, says: str) -> None:
    with pytest.raises(UnansweredError, match=says):
        read_completions(body, None)


def _refused(message: str, prompt: str) -> str:
    request = Request("m", (Message("user", prompt),), 0.0, 64)
    error = UnansweredError("status", message, status=400)
    return str(as_provider_error(error, endpoint="http://h/v1", request=request, has_key=True))


def test_the_servers_own_words_are_told_unless_they_repeat_the_prompt() -> None:
    prompt = "Rate this confidential letter of the board to its members."
    assert "It says: top_k is out of place" in _refused("top_k is out of place", prompt)
    echoed = _refused("Invalid input: 'Rate this confidential letter of the board'", prompt)
    assert "confidential" not in echoed
    assert "refused the request (400)" in echoed
