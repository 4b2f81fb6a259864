"""Misaligned as a reviewer walks it, in real Chromium: triage five items, run a round on three picks, accept one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
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
    page.goto(f"{url}/calibrate")
    settle("Before the start")
    page.get_by_text("Advanced: presets").click()
    choose("Preset", "quick")
    settle("Held-out items")
    page.get_by_role("button", name="Start the calibration").click()
    settle("Where judge and people part")


def test_triage_refine_and_accept(
    page: Page, app_url: str, settle: Settle, choose: Callable[..., None], known_as: Settle
) -> None:
    known_as(app_url, "Mia")  # Ann still rates in a pass of another test, and would be kept from labels
    calibrate(page, app_url, settle, choose)
    page.get_by_text("Where judge and people part").click()
    settle("What moved the score")
    page.wait_for_url(re.compile("item="))

    for done, (verdict, pick) in enumerate(TRIAGE, 1):
        before = opened_item(page)
        if pick:
            page.get_by_text("Pick for the next round").click()
        page.get_by_role("button", name=verdict).click()
        settle(f"{done} triaged")
        assert opened_item(page) != before
    settle("3 picked")

    before = opened_item(page)
    page.locator(".js-plotly-plot .point").last.click(force=True)
    expect(page).not_to_have_url(re.compile(re.escape(before)))
    by_point = opened_item(page)
    settle("What moved the score")
    page.get_by_test_id("stDataFrame").first.click(position={"x": 18, "y": 42 + 18})
    expect(page).not_to_have_url(re.compile(re.escape(by_point)))
    settle("Press again to change it")

    page.get_by_text("Rounds", exact=True).click()
    settle("Operations to suggest")
    page.get_by_role("button", name="Start the round").click()
    settle("largest difference on the inner fold first")
    expect(page.get_by_text("Of the 3 picked items")).to_be_visible()
    page.get_by_label("Reason").fill("Says what people reward.")
    page.get_by_label("Reason").press("Enter")
    page.get_by_role("button", name="Accept", exact=True).click()
    settle("Open it in Criteria, to approve it")

    page.get_by_text("Lineage", exact=True).click()
    settle("Alignments on calibration items")
    page.locator(".js-plotly-plot .point").last.click(force=True)
    settle("Open in Criteria")
    assert not page.get_by_test_id("stException").count()
