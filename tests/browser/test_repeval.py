"""RepEval as a new user meets it, in real Chromium: the sample project, the map, the score in Compare."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
RUN_MS = 240_000


def test_states_are_read_and_the_map_and_details_shown(
    page: Page, app_url: str, settle: Settle, known_as: Settle
) -> None:
    known_as(app_url)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{app_url}/repeval")
    settle("labels to learn from")
    expect(page.get_by_text("RepEval hasn't been run")).to_be_visible()
    page.get_by_role("button", name="Read the hidden states").click()
    expect(page.get_by_text("Agreement between hidden states and raters")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("img", name="Agreement on the validation set by layer and token")).to_be_visible()
    page.get_by_role("radio", name="Details").click()
    settle("2,000 random directions")
    expect(page.get_by_text("Highest-scoring test items")).to_be_visible()
    assert not page.get_by_test_id("stException").count()

    page.get_by_text("Compare with other judges").click()
    settle("RepEval, ridge (minilm)")
