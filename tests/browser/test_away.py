"""A page whose connection is cut, or never comes about: it says so, and goes on once it is back."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import rest, watching

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CUT = """const Real = WebSocket;
window.cut = location.search.includes("cut");
window.WebSocket = new Proxy(Real, { construct(kind, [url, protocols]) {
    return window.last = new kind(window.cut ? url.replace("stream", "health") : url, protocols);
} });"""
"""What is asked for there is answered, but is no websocket: as behind some proxies."""


def test_a_cut_connection_is_told_and_the_screen_goes_on(page: Page, app_url: str) -> None:
    page.add_init_script(CUT)
    page.goto(f"{app_url}/?cut")
    note = page.get_by_role("alert").filter(has_text="Concord")
    expect(note).to_contain_text("a proxy may be blocking WebSockets")
    page.goto(app_url)
    rest(page)
    expect(note).to_have_count(0)
    page.evaluate("window.cut = true; window.last.close()")
    expect(note).to_contain_text("What you saved is safe")
    page.evaluate("window.cut = false")
    expect(note).to_have_count(0)
    with watching(page):
        page.get_by_role("button", name="New project").click()
    expect(page.get_by_role("dialog")).to_be_visible()
