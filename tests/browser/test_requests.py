"""Who is answered: real requests and WebSockets with foreign names and pages, and a page that tries to frame ours."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PATHS = ("/", "/runs", "/_stcore/health", "/_stcore/host-config", "/static/index.html", "/media/x", "/nothing")


def get(url: str, path: str, host: str, origin: str = "") -> httpx.Response:
    return httpx.get(f"{url}{path}", headers={"Host": host} | ({"Origin": origin} if origin else {}), timeout=30)


def opens(url: str, host: str, origin: str) -> int:
    """101 where the WebSocket that brings the screens is opened, else the status it is refused with."""
    at = urlsplit(url)
    with socket.create_connection((str(at.hostname), int(at.port or 0))) as line:
        try:
            with connect(f"ws://{host}/_stcore/stream", sock=line, origin=origin, subprotocols=["streamlit"]):  # type: ignore[arg-type, list-item]
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code


@pytest.mark.parametrize("name", ["rebound.example", "localhost.rebound.example", "127.0.0.1.nip.io", "0.0.0.0", ""])
def test_a_foreign_name_for_this_machine_gets_nothing(app_url: str, name: str) -> None:
    host = f"{name}:{urlsplit(app_url).port}" if name else ""
    for path in PATHS:
        answer = get(app_url, path, host)
        assert (answer.status_code, answer.headers["content-type"]) == (421, "text/plain; charset=utf-8"), path
        assert "server.allowedHosts" in answer.text
    assert not name or opens(app_url, host, f"http://{host}") == 421


def test_pages_of_other_addresses_are_refused(app_url: str) -> None:
    host = f"localhost:{urlsplit(app_url).port}"
    for origin in ("http://evil.example", "http://localhost:3000", "http://localhost", "null", f"ftp://{host}"):
        answer = get(app_url, "/", host, origin)
        assert (answer.status_code, opens(app_url, host, origin)) == (403, 403), origin
        assert "pages at another address" in answer.text


def test_every_answer_says_that_it_is_not_to_be_framed(app_url: str) -> None:
    host = urlsplit(app_url).netloc
    for path in PATHS:
        for answer in (get(app_url, path, host), get(app_url, path, "rebound.example")):
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], path
            assert answer.headers["x-frame-options"] == "DENY"


@pytest.fixture
def framing(app_url: str) -> Iterator[str]:
    """URL of a page on another port of this machine with our app in a frame."""

    class Frame(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<p>Win a prize</p><iframe src='{app_url}' onload='document.title=\"loaded\"'></iframe>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keeps quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Frame) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_page_cannot_put_ours_into_a_frame(
    page: Page, framing: str, app_url: str, stays_on_this_machine: list[str]
) -> None:
    page.goto(framing)
    page.wait_for_function("document.title === 'loaded'")
    assert not [frame for frame in page.frames[1:] if frame.url.startswith(app_url)]
    stays_on_this_machine.clear()  # the refusal itself is told on the console


def test_roles_without_accounts_start_no_server(tmp_path: Path, repository: Path) -> None:
    roles = tmp_path / "roles.json"
    roles.write_text(json.dumps({"*": "viewer"}))
    environment = {**os.environ, "CONCORD_HOME": str(tmp_path / "home"), "CONCORD_ROLES": str(roles)}
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port=1", "--server.headless=true"]
    ended = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "no one can sign in" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "home").exists()
