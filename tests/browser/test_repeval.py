"""RepEval as a new user meets it, in real Chromium: the sample project, a click on a cell, the score in Compare."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
RUN_MS, SEEN_SECONDS = 240_000, 60.0
N_LAYERS, TOKENS = 7, ("mean", "-1")
MAP = "Validation alignment by layer and token"
FRAME = ".shapelayer path[style*='rgb(190, 24, 93)']"
"""Drawn around the cell looked at, where that is not the best one."""


def take_token(page: Page, token: str) -> None:
    """A token out of the list of the field, which opens first: letters typed before that are thrown away."""
    page.get_by_role("combobox", name="Tokens").click()
    page.get_by_role("option", name=token, exact=True).click()
    expect(page.get_by_test_id("stMultiSelect").get_by_text(token, exact=True)).to_be_visible()


def click_cell(page: Page, layer: int, token: int, settle: Settle, *, across: float, down: float) -> None:
    """A click on a cell of the map (layers across, tokens down), that far into it (0…1) from its upper left corner.

    As a person does it: the pointer goes there until the map says which cell it is over, then the click, then the
    map is drawn anew with a frame around the cell.
    """
    cell = f"layer {layer}, token {TOKENS[token]}"
    the_map = page.get_by_role("figure", name=MAP)
    the_map.scroll_into_view_if_needed()
    end = time.monotonic() + SEEN_SECONDS
    while not the_map.locator(".hovertext").filter(has_text=cell).count():
        assert time.monotonic() < end, f"the map does not say that the pointer is over {cell}"
        page.mouse.move(0, 0)
        if box := the_map.locator(".nsewdrag").bounding_box():  # None while the map is being drawn
            left, top = box["width"] * (layer + across) / N_LAYERS, box["height"] * (token + down) / len(TOKENS)
            page.mouse.move(box["x"] + left, box["y"] + top)
        page.wait_for_timeout(300)
    page.mouse.down()
    page.mouse.up()
    settle(cell.capitalize())
    expect(the_map.locator(FRAME)).to_be_visible()


def facts(page: Page) -> Locator:
    return page.get_by_role("table", name="Facts of the cell")


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
    expect(page.get_by_text("Hidden states agree with people at")).to_be_visible(timeout=RUN_MS)
    settle("Click one.")

    click_cell(page, layer=3, token=0, settle=settle, across=0.1, down=0.1)
    expect(facts(page)).to_contain_text(re.compile(r"test.*-?\d\.\d{3} \[.+\], n = \d+"))
    expect(page.get_by_text("Highest test items")).to_be_visible()
    click_cell(page, layer=5, token=1, settle=settle, across=0.5, down=0.5)
    page.get_by_text("Against random directions", exact=True).click()
    settle("2,000 random directions")
    assert not page.get_by_test_id("stException").count()

    page.get_by_text("Compare it with other judges").click()
    settle("RepEval, ridge (minilm)")
