"""How an endpoint is reached: headers, extra body and redirects, and no key in what is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from core.errors import AuthError, ProviderError
from core.providers.completions import Completion, Request
from core.providers.openai_api import OpenAIProvider
from tests.core.providers.conftest import Make
from tests.fake_openai import FakeOpenAI, RunningServer

KEY, HEADER = "sk-the-key-of-this-host", "token-of-the-team"
Start = Callable[..., RunningServer]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts further servers, each on a port of its own."""
    servers: list[RunningServer] = []

    def started(**settings: Any) -> RunningServer:
        servers.append(RunningServer(FakeOpenAI(keep_bodies=True, **settings)))
        return servers[-1]

    yield started
    for server in servers:
        with suppress(RuntimeError):  # stopped by the test
            server.stop()


def ask(provider: OpenAIProvider, requests: list[Request]) -> list[str]:
    return [reply.text for reply in provider.complete(requests) if isinstance(reply, Completion)]


def test_headers_and_extra_body_are_sent(make: Make, server: RunningServer, requests: list[Request]) -> None:
    headers = {"x-token": HEADER, "OpenAI-Organization": "org-1"}
    provider = make(api_key=KEY, headers=headers, extra_body={"service_tier": "flex", "temperature": 9})
    assert ask(provider, requests[:1])
    sent, body = server.fake.seen[0].headers, server.fake.bodies[0]
    assert sent["Authorization"] == f"Bearer {KEY}"
    assert (sent["x-token"], sent["OpenAI-Organization"]) == (HEADER, "org-1")
    assert body["service_tier"] == "flex"
    assert body["temperature"] == 0.0, "the judge's own words go before those of the endpoint"
    assert HEADER not in repr(provider)
    assert requests[0].key(provider.endpoint) != requests[0].key(make().endpoint), "it may change the answer"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_redirect_to_another_place_is_followed(
    make: Make, server: RunningServer, start: Start, requests: list[Request], host: str
) -> None:
    thief = start()
    port = thief.port if host == "127.0.0.1" else server.port
    server.fake.redirect = f"http://{host}:{port}/v1/chat/completions?leak={KEY}"
    with pytest.raises(ProviderError, match=f"redirects to a different address, http://{host}:{port}/v1") as caught:
        make(api_key=KEY, headers={"x-token": HEADER}, retries=3).complete(requests)
    assert not thief.fake.seen
    assert len(server.fake.seen) == 1, "no use to ask again"
    assert KEY not in str(caught.value)


def test_no_key_and_no_header_is_told_even_by_an_endpoint_that_repeats_them(
    make: Make, start: Start, requests: list[Request], caplog: Any
) -> None:
    class Parrot(FakeOpenAI):
        async def _complete(self, request: web.Request) -> web.Response:
            told = {"message": f"Bad request, I was told {dict(request.headers)}"[-190:], "type": "parrot"}
            return web.json_response({"error": told}, status=self.status)

        status = 400

    server = RunningServer(Parrot())
    try:
        for status in (400, 401, 403, 404, 422, 429, 500):
            server.fake.status = status  # type: ignore[attr-defined]
            provider = make(base_url=server.base_url, api_key=KEY, headers={"x-token": HEADER})
            with caplog.at_level(logging.DEBUG), pytest.raises(ProviderError) as caught:
                provider.complete(requests[:2])
            assert KEY not in f"{caught.value} {caught.value.__notes__ if hasattr(caught.value, '__notes__') else ''}"
            assert HEADER not in str(caught.value)
            if status == 401:
                assert isinstance(caught.value, AuthError)
    finally:
        server.stop()
    told = " ".join(record.getMessage() for record in caplog.records)
    assert KEY not in told
    assert HEADER not in told
