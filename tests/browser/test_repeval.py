"""RepEval as a new user meets it, in real Chromium: the sample project, a click on a cell, the score in Compare."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
RUN_MS, STEP_SECONDS = 240_000, 60
TOKENS = ("mean", "-1")
MAP = "Validation alignment by layer and token"


def take_token(page: Page, token: str) -> None:
    """Take a token from the field's list; open the list again where a rerun has closed it in between."""
    taken = page.get_by_test_id("stMultiSelect").get_by_text(token, exact=True)
    end = time.monotonic() + STEP_SECONDS
    while not taken.count():
        try:
            page.get_by_role("combobox", name="Tokens").click(timeout=5000)
            page.get_by_role("option", name=token, exact=True).click(timeout=5000)
            taken.wait_for(timeout=5000)
        except PlaywrightError:
            if time.monotonic() > end:
                raise


def cell_of(page: Page, layer: int, token: int) -> Locator:
    cell = page.get_by_role("grid", name=MAP).get_by_role("gridcell", name=f"layer {layer}, token {TOKENS[token]}: ")
    expect(cell).to_have_attribute("aria-label", re.compile(r"validation −?\d\.\d\d|undefined"))
    return cell


def looked_into(page: Page, layer: int, token: int, settle: Settle) -> None:
    """The cell's facts are there, and the map marks it."""
    settle(f"Layer {layer}, token {TOKENS[token]}")
    expect(cell_of(page, layer, token)).to_have_attribute("aria-selected", "true")


def test_a_cell_is_clicked_and_its_detail_read(page: Page, app_url: str, settle: Settle, known_as: Settle) -> None:
    known_as(app_url)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{app_url}/repeval")
    settle("labels to learn from")
    expect(page.get_by_text("No RepEval has been run")).to_be_visible()
    page.get_by_text("More choices").click()
    for token in TOKENS:
        take_token(page, token)
    page.keyboard.press("Escape")
    settle("labels to learn from")
    page.get_by_role("button", name="Read the hidden states").click()
    expect(page.get_by_text("Agreement of hidden states with raters")).to_be_visible(timeout=RUN_MS)
    settle("Click one.")

    cell_of(page, 3, 0).click(position={"x": 2, "y": 2})
    looked_into(page, 3, 0, settle)
    expect(page.get_by_text(re.compile(r"Layer 3, token mean: .*; test −?\d\.\d\d \[.+\], n = \d+"))).to_be_visible()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "Enter"):  # there is no third row
        page.keyboard.press(key)
    looked_into(page, 5, 1, settle)
    expect(cell_of(page, 5, 1)).to_be_focused()
    page.get_by_role("radio", name="Details").click()
    settle("2,000 random directions")
    settle("Layer 5, token -1")
    expect(page.get_by_text("Highest test items")).to_be_visible()
    assert not page.get_by_test_id("stException").count()

    page.get_by_text("Compare it with other judges").click()
    settle("RepEval, ridge (minilm)")
