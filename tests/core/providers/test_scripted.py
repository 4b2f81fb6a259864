"""The fake that ships: repeatable, told apart by seeds, or whatever function a test gives it."""

from __future__ import annotations

from typing import Any

from core.providers.completions import Message, Request
from core.providers.scripted import ScriptedProvider, reply_to


def _request(n: int) -> Request:
    return Request("scripted", (Message("user", f"## Item\nText to rate:\n> Text {n}\n"),), 0.0, 64)


def test_equal_seeds_and_requests_give_equal_replies() -> None:
    requests = [_request(n) for n in range(30)]
    assert ScriptedProvider(3).complete(requests) == ScriptedProvider(3).complete(requests)
    assert ScriptedProvider(3).complete(requests) != ScriptedProvider(4).complete(requests)


SCALE = "## Instructions\nGive a number from 1 (lowest) to 5 (highest): one of 1, 2, 3, 4, 5.\n"
NUMBER = SCALE + "## Item\nText to rate:\n> Text {}\n\n## Answer\nReply with that one whole number and nothing else."


def _number(n: int, **changes: Any) -> Request:
    return Request("scripted", (Message("user", NUMBER.format(n)),), changes.pop("temperature", 1.0), 64, **changes)


def test_samples_differ_with_temperature_and_only_then() -> None:
    assert len({reply_to(_number(0, sample=k)).text for k in range(20)}) > 1
    assert len({reply_to(_number(0, sample=k, temperature=0.0)).text for k in range(20)}) == 1
