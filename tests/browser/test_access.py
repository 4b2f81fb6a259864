"""What everybody needs to use a screen: text that can be read in both themes, one heading, the keys, no jumps."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from pages.components.screens import SCREENS
from tests.browser.conftest import ROOT, rest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SCRIPTS = ROOT / "tests" / "screens"
SLOW = """const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (message) { setTimeout(() => send.call(this, message), window.late ?? 0); };"""
FAINT, FRAMES = ((SCRIPTS / name).read_text("utf-8") for name in ("contrast.js", "watch.js"))


@pytest.mark.parametrize("screen", SCREENS)
def test_every_text_has_the_contrast_of_aa_in_both_themes(page: Page, app_url: str, screen: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(f"{app_url}/{screen}")
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        rest(page)
        assert page.evaluate("getComputedStyle(document.querySelector('.stApp')).colorScheme") == scheme
        assert page.evaluate(FAINT) == [], scheme


def test_a_page_does_not_collapse_while_another_screen_is_drawn(page: Page, app_url: str) -> None:
    page.add_init_script(FRAMES)
    page.add_init_script(SLOW)
    page.goto(f"{app_url}/golden_set")
    rest(page)
    page.wait_for_timeout(1_000)
    before = page.evaluate("window.frames_seen.at(-1).height")
    assert before > 700  # higher than Runs at rest
    page.evaluate("window.frames_seen = []; window.late = 700")  # a server that takes its time to answer
    page.get_by_test_id("stSidebar").get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_role("heading", name="Runs", exact=True, level=1)).to_be_visible()
    rest(page)
    page.wait_for_timeout(1_000)
    frames = page.evaluate("window.frames_seen")
    assert min(frame["height"] for frame in frames) >= min(before, frames[-1]["height"]) - 1


def test_the_focus_stays_in_the_page_where_the_button_pressed_by_key_goes_away(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/runs?view=bare")
    rest(page)
    page.get_by_role("button", name="Menu").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    expect(page.get_by_test_id("stMain")).to_be_focused()


def test_the_first_key_skips_the_menu(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/runs")
    rest(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stMain")).to_be_focused()
