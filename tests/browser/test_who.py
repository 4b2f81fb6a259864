"""What a browser keeps, in real Chromium: the name picked last, and the address that signing in interrupts."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from playwright.sync_api import Browser, BrowserContext, Page, expect

from core import projects
from core.settings import Settings
from tests.browser.conftest import call_me, enter_name, named

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
HEAD = "Runs continue in the background"
COOKIES = "document.cookie.split('; ').filter((one) => one.startsWith('concord-')).map((one) => one.split('=')[1])"


def kept(page: Page, *values: str) -> None:
    """Waits until the browser keeps just these values of ours."""
    page.wait_for_function(f"JSON.stringify({COOKIES}) === '{json.dumps(values, separators=(',', ':'))}'")


def test_the_name_picked_last_outlives_reload_and_tab_but_not_the_browser(
    page: Page, context: BrowserContext, browser: Browser, app_url: str, settle: Settle
) -> None:
    page.goto(f"{app_url}/runs")
    settle(HEAD)
    kept(page)
    call_me(page, "Zoë <b>")
    kept(page, "Zo%C3%AB%20%3Cb%3E")
    frame = page.get_by_test_id("stSidebar").get_by_test_id("stElementContainer").last
    assert frame.bounding_box() is None, "what writes the cookie takes room"
    page.reload()
    settle(HEAD)
    named(page, "Zoë <b>")
    tab = context.new_page()
    tab.goto(app_url)
    settle("144 labelled", tab)
    named(tab, "Zoë <b>")
    assert not tab.locator("[class*=st-key-form_remember]").count()

    other = browser.new_context()
    try:
        stranger = other.new_page()
        stranger.goto(f"{app_url}/runs")
        settle(HEAD, stranger)
        named(stranger, "")
    finally:
        other.close()


def test_no_link_says_who_its_reader_is_and_a_name_is_asked_for_before_the_first_change(
    page: Page, context: BrowserContext, app_url: str, settle: Settle
) -> None:
    page.goto(f"{app_url}/calibrate?rater=Lin&section=new")
    settle("Before you start")
    named(page, "")
    start = page.get_by_role("button", name="Start the calibration")
    start.click()
    expect(page.get_by_role("dialog").get_by_role("textbox", name="Your name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)  # nothing was started
    start.click()
    enter_name(page, "Ada")
    page.wait_for_url(re.compile("run=r"))  # what was pressed is done
    named(page, "Ada")
    kept(page, "Ada")
    linked = context.new_page()
    linked.goto(f"{app_url}/runs?rater=Lin")
    settle(HEAD, linked)
    named(linked, "Ada")


# ── signing in ───────────────────────────────────────────────────────────────────────────────────────────────


class Provider(BaseHTTPRequestHandler):
    """An OpenID Connect provider with one account and a page where it is confirmed by a press."""

    key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
    issuer = ""
    asked: dict[str, str]  # code → nonce

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/openid-configuration":
            ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
            self._send(json.dumps({"issuer": self.issuer, **{end: f"{self.issuer}/{at}" for end, at in ends.items()}}))
        elif parts.path == "/jwks":
            self._send(json.dumps({"keys": [self.key.as_dict(private=False)]}))
        elif parts.path == "/authorize":
            sent = {name: values[0] for name, values in parse_qs(parts.query).items()}
            code = f"code{len(self.asked)}"
            self.asked[code] = sent["nonce"]
            back = f"{sent['redirect_uri']}?{urlencode({'code': code, 'state': sent['state']})}"
            self._send(f"<p>Provider</p><a href='{back}'>Go on as Ann</a>", "text/html")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        now = int(time.time())
        claims = {
            **{"iss": self.issuer, "aud": "concord", "sub": "ann", "iat": now, "exp": now + 600},
            **{"name": "Ann", "email": "ann@example.org", "email_verified": True},
            "nonce": self.asked.pop(form["code"][0]),
        }
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        self._send(json.dumps({"access_token": "a", "token_type": "Bearer", "expires_in": 600, "id_token": token}))

    def _send(self, body: str, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: Any) -> None:
        """Keeps quiet."""


@pytest.fixture
def issuer(chromium: str) -> Iterator[str]:
    """A provider at another site than the app: localhost, where the app is 127.0.0.1."""
    handler = type("ThisProvider", (Provider,), {"asked": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.issuer = f"http://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield handler.issuer
        server.shutdown()
        thread.join()


@pytest.fixture
def team(
    tmp_path: Path, issuer: str, serve: Callable[..., AbstractContextManager[str]]
) -> Iterator[tuple[str, dict[str, str]]]:
    """URL of an app where people sign in, and the ids of its projects by their names."""
    home = tmp_path / "home"
    store = projects.open_store(Settings.from_environment({"CONCORD_HOME": str(home)}))
    made = {name: projects.create_project(store, name).project_id for name in ("First", "Second & <b>")}
    store.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(f"""[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "a long random text for this test"
client_id = "concord"
client_secret = "secret"
server_metadata_url = "{issuer}/.well-known/openid-configuration"
""")
    with serve(home, f"--secrets.files={secrets}", port=port) as url:
        yield url, made


def sign_in(page: Page, settle: Settle) -> None:
    settle("Sign in to continue.")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Go on as Ann").click()
    settle("Ann (ann@example.org)")


def test_a_deep_link_survives_signing_in_once(
    page: Page, context: BrowserContext, team: tuple[str, dict[str, str]], settle: Settle
) -> None:
    url, made = team
    second = made["Second & <b>"]
    page.goto(f"{url}/runs?project={second}&section=log&rater=Eve&next=http://evil.example")
    settle("Sign in to continue.")
    kept(page, f"runs%3Fproject%3D{second}%26section%3Dlog")
    beside = context.new_page()
    beside.goto(url)
    settle("Sign in to continue.", beside)
    kept(beside)  # nothing is wanted there; the tab that leaves to sign in says its address again
    sign_in(page, settle)
    settle(HEAD)
    assert page.url == f"{url}/runs?project={second}&section=log"
    expect(page.get_by_role("combobox", name="Project")).to_have_value("Second & <b>")
    kept(page)
    page.goto(url)  # once: the root is the root again
    settle("Ann (ann@example.org)")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    assert re.fullmatch(rf"{url}/(\?project=\w+)?", page.url)
    page.get_by_role("button", name="Sign out").click()
    settle("Sign in to continue.")
    page.wait_for_url(f"{url}/")
    kept(page)  # whoever signs in next begins at the root
    sign_in(page, settle)
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
