"""The first start as a newcomer has it, in real Chromium: the finished demo, two stops of its tour, the way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]


SCREENS = ("", "label", "calibrate", "criteria", "misaligned", "compare", "repeval", "fusion", "report", "runs")


@pytest.fixture(scope="module")
def first_start(
    tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], AbstractContextManager[str]]
) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CONCORD_DEMO", "on")
        with serve(tmp_path_factory.mktemp("first") / "home") as url:
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


def test_every_screen_draws_itself_from_this_machine_alone(page: Page, first_start: str) -> None:
    """The icon is looked at by itself: a browser without a window fetches none.  The rest sees `conftest`."""
    for screen in SCREENS:
        page.goto(f"{first_start}/{screen}")
        expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning] h1")).to_be_visible()
        expect(page.locator("link[rel~=icon]")).to_have_attribute("href", re.compile(r"^data:image/svg\+xml"))
    page.goto(f"{first_start}/compare")
    expect(page.locator(".js-plotly-plot, [data-testid=stVegaLiteChart], [data-testid=stImage]").first).to_be_visible()
