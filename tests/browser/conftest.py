"""A real server for the browser tests: a process of its own on 127.0.0.1 with a temporary `CONCORD_HOME`."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, WebSocket, expect
from playwright.sync_api import Error as PlaywrightError

from tests.forking import WEB, Fork, Forks

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS, STEP_SECONDS = 120.0, 120.0
expect.set_options(timeout=1000 * STEP_SECONDS)  # a loaded machine draws late; a pass is not slowed by a long wait
HOMES: dict[str, Path] = {}
"""URL of a server → its home, which names its cookie."""
SERVERS: dict[str, subprocess.Popen[bytes] | Fork] = {}
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"
REST = "() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 50))"
"""Until the browser has done what the last drawing left it to do: take keys, move the cursor."""
WATCH = """() => {
    window.drawnAnew = false;
    window.waitUntil = performance.now() + 8000;
    const app = document.querySelector("[data-testid=stApp]");
    let began = false;
    const looker = new MutationObserver(() => {
        const rests = app.getAttribute("data-test-script-state") === "notRunning";
        began = began || !rests;
        if (began && rests) { window.drawnAnew = true; looker.disconnect(); }
    });
    looker.observe(app, { attributes: true, attributeFilter: ["data-test-script-state"] });
}"""


def rest(page: Page) -> None:
    """Waits until the script rests and the browser has caught up with it."""
    page.wait_for_selector(SETTLED)
    page.evaluate(REST)


def enter_name(page: Page, name: str) -> None:
    """Answers the dialog that asks for a name, and waits until the name stands in the menu."""
    page.get_by_role("dialog").get_by_role("textbox", name="Your name").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    rest(page)


def call_me(page: Page, name: str) -> None:
    """Gives or changes the name in the menu."""
    folded = page.get_by_test_id("stExpandSidebarButton")
    phone = folded.is_visible()
    if phone:
        folded.click()
    page.locator(".st-key-form_who").get_by_role("button").click()
    enter_name(page, name)
    named(page, name)
    if phone:
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()


def named(page: Page, name: str) -> None:
    """Waits until the menu says this name, or asks for one where it is ""."""
    said = page.locator(".st-key-form_who").get_by_role("button")
    expect(said).to_contain_text(name or "Enter your name")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_healthy(url: str, server: subprocess.Popen[bytes] | Fork, every: float = 0.2) -> None:
    """Until the server answers; asks every so many seconds."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, "the server ended at its start"
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=30):
                return
        except OSError:
            time.sleep(every)
    raise TimeoutError("the server did not answer")


def end_workers(home: Path) -> None:
    """End the workers that this server started; their process ids stand in their log."""
    log = home / "worker.log"
    for pid in re.findall(r"\(process (\d+)\)", log.read_text()) if log.exists() else ():
        try:
            os.kill(int(pid), signal.SIGTERM)
        except ProcessLookupError:
            continue  # it had ended by itself


def _mode(path: Path) -> int:
    """Permissions of a file; 0 for one that is gone: a worker that ends takes its journal along."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return 0


@contextmanager
def serving(home: Path, *options: str, port: int | None = None, forks: Forks | None = None) -> Iterator[str]:
    """URL of an app on what lies in `home`; server and worker end with the block.  `options` are Streamlit's.

    Forked where there are `forks`, else started as a person starts it.
    """
    port = port or free_port()
    home.mkdir(exist_ok=True)
    command = ["run", "app.py", f"--server.port={port}", "--server.headless=true", *options]
    environment = {**os.environ, "CONCORD_HOME": str(home), "OMP_NUM_THREADS": "1"}
    server: subprocess.Popen[bytes] | Fork
    with (home / "web.log").open("wb") as log:
        if forks is None:
            whole = [sys.executable, "-m", "streamlit", *command]
            server = subprocess.Popen(whole, cwd=ROOT, env=environment, stdout=log, stderr=log)
        else:
            server = forks.start("streamlit", command, environment, home / "web.log")
        try:
            wait_until_healthy(f"http://127.0.0.1:{port}", server)
            HOMES[f"http://127.0.0.1:{port}"], SERVERS[f"http://127.0.0.1:{port}"] = home, server
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=60)
            end_workers(home)
    kept = [home, *(path for path in home.rglob("*") if path != home / "web.log")]
    assert not [path for path in kept if _mode(path) & 0o077], "others may read what an installation keeps"


@pytest.fixture(autouse=True)
def stays_on_this_machine(browser: Browser) -> Iterator[list[str]]:
    """No page of any test asks another machine for anything, and none needs what the content policy forbids."""
    left: list[str] = []

    def look_at(asked: Request | WebSocket) -> None:
        parts = urlsplit(asked.url)
        if parts.scheme not in ("data", "blob") and parts.hostname not in ("127.0.0.1", "localhost"):
            left.append(asked.url)

    def hear(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            left.append(message.text)

    def watch(context: BrowserContext) -> None:
        context.set_default_timeout(1000 * STEP_SECONDS)
        context.on("request", look_at)
        context.on("console", hear)
        context.on("page", lambda page: page.on("websocket", look_at))

    browser.on("context", watch)
    for kept in browser.contexts:
        watch(kept)
    yield left
    browser.remove_listener("context", watch)
    assert not left


@pytest.fixture(scope="session")
def app_url(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[str]:
    """URL of a running app with the sample project; server and worker end with the session."""
    with serving(tmp_path_factory.mktemp("app") / "home") as url:
        yield url


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    made = Forks(WEB)
    yield made
    made.close()


@pytest.fixture(scope="session")
def serve(chromium: str, forks: Forks) -> Callable[..., AbstractContextManager[str]]:
    """Serves a home that a test has filled; `options` and `port` as of `serving`."""
    return partial(serving, forks=forks)


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    """What moves would be drawn anew sixty times a second, for as long as a test waits."""
    return {**browser_context_args, "reduced_motion": "reduce"}


@pytest.fixture(scope="module")
def one_context(browser: Browser, browser_context_args: dict[str, Any]) -> Iterator[BrowserContext]:
    made = browser.new_context(**browser_context_args)
    yield made
    made.close()


@pytest.fixture
def context(request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A new browser profile, or in modules with `ONE_CONTEXT` the emptied one of the tests before.

    It has Streamlit's scripts already: to fetch and read them anew costs seconds of a processor.
    """
    if not hasattr(request.module, "ONE_CONTEXT"):
        yield request.getfixturevalue("new_context")()
        return
    kept = request.getfixturevalue("one_context")
    yield kept
    kept.clear_cookies()
    session = kept.new_cdp_session(kept.new_page())
    for url in HOMES:
        session.send("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "local_storage,indexeddb"})
    for page in kept.pages:
        page.close()


@pytest.fixture
def settle(page: Page) -> Callable[..., None]:
    """Waits until the script rests *and* a text stands that the rerun was to bring."""

    def waited(text: str | re.Pattern[str], on: Page = page) -> None:
        expect(on.get_by_text(text).first).to_be_visible()
        rest(on)

    return waited


@contextmanager
def watching(page: Page) -> Iterator[None]:
    """What is done in the block makes the screen draw itself anew; it ends when that has come to its end.

    A redraw so quick that React shows nothing of it is not seen: after 8 s a screen at rest counts as drawn.
    """
    rest(page)
    page.evaluate(WATCH)
    yield
    page.wait_for_function("window.drawnAnew || !(performance.now() < window.waitUntil)")
    rest(page)


@pytest.fixture
def standing_still() -> Callable[[str], AbstractContextManager[None]]:
    """What is typed in the block reaches the server at a URL after it, so nothing is drawn between two keys."""

    @contextmanager
    def held(url: str) -> Iterator[None]:
        SERVERS[url].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            SERVERS[url].send_signal(signal.SIGCONT)

    return held


@pytest.fixture(scope="session")
def home_of() -> Callable[[str], Path]:
    """Home of the app at a URL."""
    return HOMES.__getitem__


@pytest.fixture
def drawn_anew() -> Callable[[Page], AbstractContextManager[None]]:
    """`watching`, for tests."""
    return watching


@pytest.fixture
def enter() -> Callable[[Locator, str], None]:
    """`enter(field, text)`: into a field, with Enter; waits until the screen knows it."""

    def entered(field: Locator, text: str) -> None:
        with watching(field.page):
            field.fill(text)
            field.press("Enter")

    return entered


@pytest.fixture
def known_as(context: BrowserContext) -> Callable[..., None]:
    """`known_as(url, name)`: the browser of this test (or another) remembers the name for the app at `url`."""

    def known(url: str, name: str = "Ann", to: BrowserContext = context) -> None:
        cookie = f"concord-name-{hashlib.sha256(str(HOMES[url]).encode()).hexdigest()[:12]}"
        to.add_cookies([{"name": cookie, "value": quote(name), "url": url}])

    return known


@pytest.fixture
def choose(page: Page) -> Callable[..., None]:
    """Takes an option of a select box; opens its list again when a rerun has closed it in between."""

    def chosen(box: str, option: str, on: Page = page) -> None:
        field = on.get_by_role("combobox", name=box)
        wanted = on.get_by_role("option", name=re.compile(option))
        end = time.monotonic() + STEP_SECONDS
        while True:
            try:
                field.click(timeout=5000)
                wanted.first.click(timeout=5000)
                break
            except PlaywrightError:
                if time.monotonic() > end:
                    raise
        expect(field).to_have_value(re.compile(option))

    return chosen
