"""The first start as a newcomer has it, in real Chromium: the finished demo, two stops of its tour, the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]


@pytest.fixture
def first_start(
    tmp_path: Path, serve: Callable[[Path], AbstractContextManager[str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.setenv("CONCORD_DEMO", "on")
    with serve(tmp_path / "home") as url:
        yield url


def test_a_newcomer_lands_in_the_demo_and_walks_its_tour(page: Page, first_start: str, settle: Settle) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(first_start)
    settle("labels simulated")
    expect(page.get_by_role("combobox", name="Project")).to_have_value("Demo project (simulated labels)")
    page.get_by_role("button", name="Take the tour").click()
    settle("Tour 1 of")
    page.get_by_role("button", name="Next", exact=True).click()
    settle("Tour 2 of")
    expect(page.get_by_role("heading", name="Label")).to_be_visible()
    page.get_by_role("button", name="Next", exact=True).click()
    settle("Tour 3 of")
    settle("Held-out, Spearman rho")  # the finished calibration, by the link's run
    page.get_by_role("link", name="Compare", exact=True).click()
    settle("The tour waits while you look around")
    page.get_by_role("button", name="Leave the tour").click()
    settle("Take the tour")
    expect(page.get_by_text("Tour 3 of")).to_have_count(0)
    assert not page.get_by_test_id("stException").count()
