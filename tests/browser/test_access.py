"""What everybody needs to use a screen: text that can be read in both themes, one heading, the keys, no jumps."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from pages.ui.screens import SCREENS
from tests.browser.conftest import ROOT, rest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ONE_CONTEXT = True
SCRIPTS = ROOT / "tests" / "screens"
FAINT, FRAMES = ((SCRIPTS / name).read_text("utf-8") for name in ("contrast.js", "watch.js"))


def test_every_screen_can_be_read_in_both_themes_and_says_no_error_by_link_or_by_menu(page: Page, app_url: str) -> None:
    """Contrast as WCAG AA asks, one heading, the title; requests that leave the machine `stays_on_this_machine` holds.

    By link in light colours, by menu in dark ones.
    """
    wrong: list[str] = []
    page.on("console", lambda said: said.type == "error" and wrong.append(f"{page.url}: {said.text} {said.location}"))
    page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for screen, entry in SCREENS.items():
            if scheme == "light":
                page.goto(f"{app_url}/{screen}")
            else:
                page.get_by_test_id("stSidebar").get_by_role("link", name=entry.title, exact=True).click()
            rest_at(page, entry.title)
            assert page.evaluate("getComputedStyle(document.querySelector('.stApp')).colorScheme") == scheme
            wrong += [f"{screen}, {scheme}: {text}" for text in page.evaluate(FAINT)]
    page.get_by_role("button", name="Enter your name").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert not wrong + page.evaluate(FAINT)


def rest_at(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    rest(page)
    expect(page).to_have_title(f"{title} · Concord")
    page.wait_for_timeout(500)  # figures draw themselves after the script has ended


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
