"""Replies are asked for once, and committed before they count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.errors import AuthError, CancelledRunError, ProviderError, StoreFullError, UsageError
from core.providers.cached import CachedProvider, RecordedProvider
from core.providers.completions import Completion, Message, Reply, Request
from core.providers.scripted import ScriptedProvider, reply_to
from core.records import Usage
from sample_data.recipe.demo_calibration import write_recording
from tests.replies import Listening


def test_a_second_batch_sends_nothing_and_costs_nothing(memory: Any, requests: list[Request]) -> None:
    inner = Listening()
    provider = CachedProvider(inner, memory)
    first = provider.complete(requests)
    seen: dict[int, Reply] = {}
    second = provider.complete(requests, on_reply=seen.__setitem__)
    assert len(inner.asked) == 20
    assert [reply.text for reply in first] == [reply.text for reply in second]
    assert all(not reply.cached and reply.usage.requests == 1 for reply in first)
    assert all(reply.cached and reply.usage == Usage(cached=1, cost=0.0) for reply in second)
    assert [seen[index] for index in range(20)] == second
    assert memory.look_ups == 2, "one query a batch"


def test_duplicates_in_a_batch_are_sent_once(memory: Any, requests: list[Request]) -> None:
    inner = Listening()
    seen: list[int] = []
    batch = [requests[0], requests[1], requests[0], requests[0]]
    replies = CachedProvider(inner, memory).complete(batch, on_reply=lambda index, _reply: seen.append(index))
    assert inner.asked == requests[:2]
    assert sorted(seen) == [0, 1, 2, 3]
    assert sum((reply.usage for reply in replies), Usage()).requests == 2
    assert [reply.cached for reply in replies] == [False, False, True, True]


@pytest.mark.parametrize("error", [AuthError("The key was withdrawn."), CancelledRunError("Cancelled.")])
def test_what_arrived_before_an_error_or_a_cancellation_is_kept(
    memory: Any, requests: list[Request], error: Exception
) -> None:
    """The endpoint fails at the sixth request; a person cancels at the third reply."""
    inner, seen = Listening(), list[int]()

    def fail(request: Request) -> Reply:
        if len(inner.asked) > 5 and isinstance(error, AuthError):
            raise error
        return reply_to(request)

    def cancel(index: int, _reply: Reply) -> None:
        seen.append(index)
        if len(seen) == 3 and isinstance(error, CancelledRunError):
            raise error

    inner.say = fail
    with pytest.raises(type(error)):
        CachedProvider(inner, memory).complete(requests, on_reply=cancel)
    assert len(memory.replies) == 5 if isinstance(error, AuthError) else len(memory.replies) >= 3


def test_a_full_disk_ends_the_batch_with_its_own_error(
    memory: Any, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_replies: Sequence[tuple[str, str]]) -> None:
        raise StoreFullError("The disk is full.")

    monkeypatch.setattr(memory, "put_replies", full)
    with pytest.raises(StoreFullError):
        CachedProvider(ScriptedProvider(), memory).complete(requests)


def test_a_session_is_replayed(tmp_path: Path, memory: Any, requests: list[Request]) -> None:
    live = CachedProvider(ScriptedProvider(), memory).complete(requests)
    path = tmp_path / "session.jsonl"
    write_recording(path, ScriptedProvider().endpoint, "fake-judge", memory.replies.items())
    provider = RecordedProvider(path)
    replies = provider.complete(requests)
    assert [reply.text for reply in replies if isinstance(reply, Completion)] == [reply.text for reply in live]
    assert all(isinstance(reply, Completion) and reply.usage.requests == 0 for reply in replies)
    with pytest.raises(ProviderError, match=r"session\.jsonl doesn't contain the reply to request 1 of 1"):
        provider.complete([Request("fake-judge", (Message("user", "Never asked"),), 0.0, 64)])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1"),
        ("[]\n", "line 1"),
        ('{"endpoint": "e", "model": "m", "pace": "slow"}\n', "line 1"),
        ('{"endpoint": "e", "model": "m"}\n{"key": "k"}\n', "line 2"),
        ('{"endpoint": "e", "model": "m"}\n{"key": "k", "reply": {"text": "x"}}\n', "line 2"),
    ],
)
def test_a_damaged_recording_names_the_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        RecordedProvider(path)
