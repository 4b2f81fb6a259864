"""Misaligned as a reviewer walks it, in real Chromium: triage five items, run a round on three picks, accept one."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import rest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
VERDICTS = ("Judge wrong", "Label wrong", "Ambiguous")
TRIAGE = (
    ("Judge wrong", True),
    ("Ambiguous", True),
    ("Judge wrong", True),
    ("Label wrong", False),
    ("Judge wrong", False),
)


def opened_item(page: Page) -> str:
    return re.search(r"item=([^&]+)", page.url)[1]  # type: ignore[index]


def calibrate(page: Page, url: str, settle: Settle, choose: Callable[..., None]) -> None:
    """A quick calibration of the sample project's first aspect."""
    page.goto(f"{url}/calibrate?section=new")
    settle("Before you start")
    page.get_by_text("Advanced: search").click()
    choose("Preset", "quick")
    settle("Held-out items")
    page.get_by_role("button", name="Start the calibration").click()
    settle("Where the judge and raters disagree")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)  # the end of the run redraws the screen
    rest(page)


def mark(page: Page, row: int) -> None:
    """Marks a row (from 1), the rows above it being marked; once more where the table was not drawn yet."""
    for _ in range(5):
        page.get_by_test_id("stDataFrame").first.click(position={"x": 18, "y": 42 + 36 * row + 18})
        with suppress(AssertionError):
            expect(page.get_by_text(f"{row} marked").first).to_be_visible(timeout=20_000)
            break
    rest(page)


def test_triage_refine_and_accept(
    page: Page, app_url: str, settle: Settle, choose: Callable[..., None], known_as: Settle
) -> None:
    known_as(app_url, "Mia")  # Ann still rates in a pass of another test, and would be kept from labels
    calibrate(page, app_url, settle, choose)
    page.get_by_text("Where the judge and raters disagree").click()
    settle("Reasons for the score")
    page.wait_for_url(re.compile("item="))

    for done, (verdict, pick) in enumerate(TRIAGE, 1):
        before = opened_item(page)
        if pick:
            page.keyboard.press("p")
            settle("picked for the next round.")
        page.keyboard.press(str(VERDICTS.index(verdict) + 1))  # at once: the pick has not taken the keys
        settle(re.compile(rf"\b{done} of \d+ triaged"))
        assert opened_item(page) != before
    settle(re.compile(r"5 of \d+ triaged · 3 picked"))
    judged_last = opened_item(page)
    page.keyboard.press("u")
    settle("Undone:")
    assert opened_item(page) != judged_last
    page.keyboard.press("1")
    settle(re.compile(r"5 of \d+ triaged · 3 picked"))

    first = opened_item(page)
    for key, expected in (("j", False), ("k", True), ("ArrowRight", False), ("ArrowLeft", True)):
        before = opened_item(page)
        page.keyboard.press(key)
        expect(page).not_to_have_url(re.compile(re.escape(before)))
        rest(page)
        assert (opened_item(page) == first) is expected
    page.keyboard.press("n")
    page.keyboard.type("1 and 2")  # figures in a note are no verdicts
    page.keyboard.press("Enter")
    settle("note saved.")
    page.keyboard.press("?")
    settle("open the next item that has no verdict")
    page.keyboard.press("Escape")

    page.get_by_text("List", exact=True).click()
    settle("0 marked")
    for row in (1, 2):
        mark(page, row)
    page.get_by_role("button", name="Ambiguous").click()
    settle("2 items: ambiguous.")
    page.keyboard.press("u")
    settle("Undone for 2 items.")

    page.get_by_text("Rounds", exact=True).click()
    settle("Items shown to the model at once")
    page.get_by_role("button", name="Start the round").click()
    settle("to decide")
    expect(page.get_by_text("Of the 3 picked items")).to_be_visible()
    page.get_by_role("link", name="Open the review").click()
    settle("to review")

    page.get_by_role("link", name="Criteria", exact=True).click()
    page.get_by_text("Versions", exact=True).click()
    settle("Agreement on the calibration set")
    page.get_by_role("grid", name="All versions").locator("tbody tr").last.click()
    expect(page.get_by_role("button", name="Open").last).to_be_visible()
    assert not page.get_by_test_id("stException").count()
