"""How an endpoint is reached: headers, Azure, proxies, redirects, and several base URLs of one judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from core.errors import AuthError, EndpointDownError, ProviderError
from core.providers.access import Access
from core.providers.base import Completion, Request
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


def test_headers_organisation_project_and_extra_body_are_sent(
    make: Make, server: RunningServer, requests: list[Request]
) -> None:
    access = Access({"x-token": HEADER}, "org-1", "proj-2", extra_body={"service_tier": "flex", "temperature": 9})
    provider = make(api_key=KEY, access=access)
    assert ask(provider, requests[:1])
    sent, body = server.fake.seen[0].headers, server.fake.bodies[0]
    assert sent["Authorization"] == f"Bearer {KEY}"
    assert (sent["x-token"], sent["OpenAI-Organization"], sent["OpenAI-Project"]) == (HEADER, "org-1", "proj-2")
    assert body["service_tier"] == "flex"
    assert body["temperature"] == 0.0, "the judge's own words go before those of the endpoint"
    assert HEADER not in repr(provider) + repr(access)
    assert requests[0].key(provider.endpoint) != requests[0].key(make().endpoint), "it may change the answer"


def test_the_sdk_sends_nothing_that_it_finds_in_the_environment(
    make: Make, server: RunningServer, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"x-token: {HEADER}")
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    assert ask(make(), requests[:1])
    told = str(server.fake.seen[0].headers)
    assert KEY not in told
    assert HEADER not in told


@pytest.mark.parametrize(("deployment", "path"), [("", "fake-judge"), ("judge/4 o", "judge%2F4%20o")])
def test_azure_is_asked_by_deployment_with_its_own_header_and_query(
    make: Make, server: RunningServer, requests: list[Request], deployment: str, path: str
) -> None:
    base_url = server.base_url.removesuffix("/v1")
    access = Access(api_version="2024-10-21", deployment=deployment)
    assert ask(make(base_url=base_url, api_key=KEY, access=access), requests[:1])
    request = server.fake.seen[0]
    assert request.raw_path == f"/openai/deployments/{path}/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == KEY
    assert "Authorization" not in request.headers


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_redirect_to_another_place_is_followed(
    make: Make, server: RunningServer, start: Start, requests: list[Request], host: str
) -> None:
    thief = start()
    port = thief.port if host == "127.0.0.1" else server.port
    server.fake.redirect = f"http://{host}:{port}/v1/chat/completions?leak={KEY}"
    with pytest.raises(ProviderError, match=f"redirects to http://{host}:{port}, which is another place") as caught:
        make(api_key=KEY, access=Access({"x-token": HEADER}), max_retries=3).complete(requests)
    assert not thief.fake.seen
    assert len(server.fake.seen) == 1, "no use to ask again"
    assert KEY not in str(caught.value)


def test_a_redirect_within_the_place_is_followed(make: Make, start: Start, requests: list[Request]) -> None:
    class Moved(FakeOpenAI):
        def application(self) -> web.Application:
            app = super().application()
            app.router.add_post("/old/chat/completions", self._moved)
            return app

        async def _moved(self, _request: web.Request) -> web.Response:
            raise web.HTTPPermanentRedirect("/v1/chat/completions")

    server = RunningServer(Moved(keep_bodies=True))
    try:
        assert ask(make(base_url=f"http://127.0.0.1:{server.port}/old", api_key=KEY), requests[:2])
        assert server.fake.keys == {f"Bearer {KEY}"}
    finally:
        server.stop()


def test_a_proxy_is_asked_in_place_of_the_host(make: Make, start: Start, requests: list[Request]) -> None:
    class Proxy(FakeOpenAI):
        def application(self) -> web.Application:
            app = web.Application()
            app.router.add_post("/{tail:.*}", self._complete)
            return app

    proxy = RunningServer(Proxy(keep_bodies=True))
    try:
        access = Access(proxy=f"http://someone:{HEADER}@127.0.0.1:{proxy.port}")
        provider = make(base_url="http://judge.invalid/v1", access=access)
        assert ask(provider, requests[:1])
        assert proxy.fake.seen[0].headers["Host"] == "judge.invalid"
        assert proxy.fake.seen[0].headers["Proxy-Authorization"].startswith("Basic ")
        assert HEADER not in repr(access)
    finally:
        proxy.stop()


@pytest.mark.parametrize("balance", ["least busy", "round robin"])
def test_several_urls_share_the_work(
    make: Make, server: RunningServer, start: Start, requests: list[Request], balance: Any
) -> None:
    other = start()
    for fake, beside in ((server.fake, other.fake), (other.fake, server.fake)):  # as quick as one another
        fake.ready = partial(lambda mine, its: mine.most_in_flight > 1 and mine.answered <= its.answered, fake, beside)
    provider = make(concurrency=2, access=Access(also=(other.base_url,), balance=balance))
    assert len(ask(provider, requests)) == 20
    assert (len(server.fake.seen), len(other.fake.seen)) == pytest.approx((10, 10), abs=2)
    assert max(server.fake.most_in_flight, other.fake.most_in_flight) == 2, "each is allowed what the one is"


def test_the_least_busy_spares_a_slow_one(
    make: Make, server: RunningServer, start: Start, requests: list[Request]
) -> None:
    quick = start()
    server.fake.ready = lambda: quick.fake.answered >= 14
    assert len(ask(make(concurrency=2, access=Access(also=(quick.base_url,))), requests)) == 20
    assert len(quick.fake.seen) >= 14


@pytest.mark.parametrize("fault", ["away", "503"])
def test_a_dead_one_is_left_out_and_said(
    make: Make, server: RunningServer, start: Start, requests: list[Request], fault: str, caplog: Any
) -> None:
    dead = start(fault=fault.removeprefix("away"))
    if fault == "away":
        dead.stop()
    access = Access(also=(dead.base_url,), balance="round robin")
    provider = make(concurrency=4, access=access)
    with caplog.at_level(logging.WARNING):
        assert len(ask(provider, requests)) == 20
    told = [record for record in caplog.records if "left out" in record.message or "cannot be" in record.message]
    assert len(told) == 1
    assert (told[0].message,) == provider.remarks
    assert dead.base_url in told[0].message
    assert len(dead.fake.seen) <= 8
    assert len(server.fake.seen) == 20


def test_all_dead_is_an_error_in_words(make: Make, start: Start, requests: list[Request]) -> None:
    one, other = start(), start()
    one.stop()
    other.stop()
    with pytest.raises(EndpointDownError, match="cannot be reached"):
        make(base_url=one.base_url, access=Access(also=(other.base_url,)), max_retries=1).complete(requests)


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
            provider = make(base_url=server.base_url, api_key=KEY, access=Access({"x-token": HEADER}))
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
