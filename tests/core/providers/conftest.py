"""Providers of the local endpoint, a small reply store, and requests to ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

from core.providers.completions import Message, Request
from core.providers.endpoints import RequestLimits
from core.providers.openai_api import OpenAIProvider
from tests.fake_openai import RunningServer
from tests.replies import MemoryReplies

Make = Callable[..., OpenAIProvider]


@pytest.fixture
def make(server: RunningServer) -> Iterator[Make]:
    """Makes providers for the server and closes them."""
    made: list[OpenAIProvider] = []

    def make_one(**changes: Any) -> OpenAIProvider:
        named = {"concurrency": 8, "timeout": 10.0, "retries": 0, "patience": 0.0} | changes
        limits = RequestLimits(
            **{field.name: named.pop(field.name) for field in fields(RequestLimits) if field.name in named}
        )
        made.append(OpenAIProvider(named.pop("base_url", server.base_url), limits=limits, **named))
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
