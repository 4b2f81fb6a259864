"""Providers of the local endpoint, a small reply store, and requests to ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.providers.base import Message, Request
from core.providers.openai_api import OpenAIProvider
from tests.fake_openai import RunningServer
from tests.replies import MemoryReplies

Make = Callable[..., OpenAIProvider]


@pytest.fixture
def make(server: RunningServer) -> Iterator[Make]:
    """Makes providers for the server and closes them."""
    made: list[OpenAIProvider] = []

    def make_one(**changes: Any) -> OpenAIProvider:
        settings = {"concurrency": 8, "timeout": 10.0, "max_retries": 0, "patience": 0.0} | changes
        made.append(OpenAIProvider(settings.pop("base_url", server.base_url), **settings))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


@pytest.fixture
def memory() -> MemoryReplies:
    return MemoryReplies()


@pytest.fixture
def requests() -> list[Request]:
    """Twenty different requests."""
    return [
        Request("fake-judge", (Message("user", f"Prompt {n}, not for error messages."),), 0.0, 64) for n in range(20)
    ]
