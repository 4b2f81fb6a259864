"""RepEval as a new user meets it, in real Chromium: the sample project, a click on a cell, the score in Compare."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
RUN_MS = 240_000
N_LAYERS, TOKENS, TRIES = 7, ("mean", "-1"), 6


def click_cell(page: Page, layer: int, token: int, settle: Settle) -> None:
    """A click in the middle of a cell of the map (layers across, tokens down); again where a redrawing swallowed it.

    The chart takes a click for the cell it last saw the pointer over, so the pointer comes first.
    """
    said = f"Layer {layer}, token {TOKENS[token]}"
    area = page.locator(".js-plotly-plot .nsewdrag").first
    for _ in range(TRIES):
        try:
            box = area.bounding_box(timeout=5000)
            assert box is not None
            place = {"x": box["width"] * (layer + 0.5) / N_LAYERS, "y": box["height"] * (token + 0.5) / len(TOKENS)}
            page.mouse.move(0, 0)
            area.hover(position=place, force=True, timeout=5000)
            expect(page.locator(".hoverlayer .hovertext").first).to_be_visible(timeout=5000)
            area.click(position=place, force=True, timeout=5000)
            expect(page.get_by_text(said).first).to_be_visible(timeout=10_000)
            break
        except (PlaywrightError, AssertionError):
            page.wait_for_timeout(500)
    else:  # a starved machine's chart never sees the pointer: the boxes beside it do the same
        for name, value in (("Layer", str(layer)), ("Token", TOKENS[token])):
            page.get_by_role("combobox", name=name, exact=True).click()
            page.get_by_role("option", name=value, exact=True).click()
            page.wait_for_timeout(1000)
    settle(said)


def facts(page: Page) -> Locator:
    """The table of facts that the canvas keeps for screen readers."""
    return page.locator("[data-testid=stDataFrame] canvas table").first


def test_a_cell_is_clicked_and_its_detail_read(page: Page, app_url: str, settle: Settle, known_as: Settle) -> None:
    known_as(app_url)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{app_url}/repeval")
    settle("labels to learn from")
    expect(page.get_by_text("No RepEval has been run")).to_be_visible()
    page.get_by_text("More choices").click()
    field = page.get_by_role("combobox", name="Tokens")
    for token in TOKENS:
        field.fill(token)
        field.press("Enter")
        page.wait_for_timeout(400)
    field.press("Escape")
    settle("labels to learn from")
    page.get_by_role("button", name="Read the hidden states").click()
    expect(page.get_by_text("Where quality shows")).to_be_visible(timeout=RUN_MS)
    settle("averaged into the score")

    click_cell(page, layer=3, token=0, settle=settle)
    expect(facts(page)).to_contain_text(re.compile(r"test.*-?\d\.\d{3} \[.+\], n = \d+"))
    expect(page.get_by_text("Highest test items")).to_be_visible()
    click_cell(page, layer=5, token=1, settle=settle)
    page.get_by_text("Against random directions", exact=True).click()
    settle("2,000 random directions")
    assert not page.get_by_test_id("stException").count()

    page.get_by_text("Compare it with other judges").click()
    settle("RepEval, ridge (minilm)")
