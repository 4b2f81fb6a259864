"""A recorded session runs again from its file, and only that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import ProviderError, UsageError
from core.providers.cached import CachedProvider, RecordedProvider, read_recording, write_recording
from core.providers.completions import Completion, Message, Request
from core.providers.scripted import ScriptedProvider


def test_a_session_is_replayed(tmp_path: Path, memory: Any, requests: list[Request]) -> None:
    live = CachedProvider(ScriptedProvider(), memory).complete(requests)
    path = tmp_path / "session.jsonl"
    write_recording(path, ScriptedProvider().endpoint, "fake-judge", memory.replies.items())
    provider = RecordedProvider(read_recording(path), path.name)
    replies = provider.complete(requests)
    assert [reply.text for reply in replies if isinstance(reply, Completion)] == [reply.text for reply in live]
    assert all(isinstance(reply, Completion) and reply.usage.requests == 0 for reply in replies)
    with pytest.raises(ProviderError, match=r"session\.jsonl holds no reply to request 1 of 1"):
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
        read_recording(path)
