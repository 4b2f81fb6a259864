"""The first start as a newcomer has it, in real Chromium: the finished demo, two stops of its tour, the way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pages.ui.screens import SCREENS as MENU
from tests.outside import recording

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ONE_CONTEXT = True
Settle = Callable[..., None]
KEPT = Path(__file__).resolve().parents[1] / "outside" / "recorded" / "screens"
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"
TRIES, RESTS, REST_MS = 30, 2, 500
WHEN = re.compile(r"\b(today|yesterday|\d+ [A-Z][a-z]{2}( \d{4})?) \d\d:\d\d\b")
SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => list.getEntries().forEach((entry) => { window.shift += entry.value; }))
    .observe({ type: "layout-shift", buffered: true });"""
MOST_SHIFT = 0.2
"""Cumulative layout shift.  On a quiet machine all screens stay below 0.05, and 0.1 counts as good."""
SCREENS = tuple(MENU)
LOOK = (Path(__file__).resolve().parents[1] / "screens" / "look.js").read_text("utf-8")
MOST = {"own": 150, "height": 1_400, "headline": 20, "numbers": 2, "tabs": 4}
"""Of each screen at first sight, as `tests/screens/measure.py` explains."""


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
    settle("simulated labels")
    expect(page.get_by_role("combobox", name="Project")).to_have_value("Demo project (simulated labels)")
    page.get_by_role("button", name="Take the tour").click()
    settle("Tour 1 of")
    page.get_by_role("button", name="Next", exact=True).click()
    settle("Tour 2 of")
    expect(page.get_by_role("heading", name="Golden set", level=1)).to_be_visible()
    page.get_by_role("button", name="Next", exact=True).click()
    settle("Tour 3 of")
    page.wait_for_url(re.compile("run=r"))  # the finished calibration
    page.get_by_role("link", name="Compare", exact=True).click()
    settle("You left the tour")
    page.get_by_role("button", name="Leave the tour").click()
    settle("Take the tour")
    expect(page.get_by_text("Tour 3 of")).to_have_count(0)
    page.get_by_role("link", name="Report", exact=True).click()
    page.wait_for_url(re.compile("report.*run=r"))
    page.go_back()  # a single step: the screen has completed its own address
    page.wait_for_url(re.compile("/compare"))
    assert not page.get_by_test_id("stException").count()


def test_every_screen_says_what_was_recorded_and_no_more_than_a_newcomer_reads(
    page: Page, first_start: str, recorded: Callable[[Path, object], None]
) -> None:
    """And draws itself from this machine alone, as `conftest` sees, with nothing moving under the reader's eye; the
    icon is looked at by itself, since a browser without a window fetches none.

    What is meant to change is recorded anew (`pytest tests/browser/test_demo.py -n0 --record`), and the difference
    read before it is committed.
    """
    page.set_viewport_size({"width": 1440, "height": 900})
    page.add_init_script(SHIFTS)
    too_much = {}
    for screen in SCREENS:
        page.goto(f"{first_start}/{screen}?project=demo")
        expect(page.locator(f"{SETTLED} h1")).to_be_visible()
        expect(page.locator("link[rel~=icon]")).to_have_attribute("href", re.compile(r"^data:image/svg\+xml"))
        words = words_of(page)
        assert not page.get_by_test_id("stException").count()
        if page.evaluate("window.shift") > MOST_SHIFT:  # a busy machine draws in more steps: once more
            page.reload()
            words_of(page)
        assert page.evaluate("window.shift") < MOST_SHIFT, f"{screen} moves while it loads"
        seen = page.evaluate(LOOK)
        too_much |= {f"{screen}, {name}": seen[name] for name, most in MOST.items() if seen[name] > most}
        recorded(KEPT / f"{screen}.json", words)
        if screen == "compare":
            drawn = page.locator("[data-testid=stVegaLiteChart], [data-testid=stImage]")
            expect(drawn.first).to_be_visible()
    assert not too_much


def words_of(page: Page) -> list[str]:
    """What a person can read on the main part of a screen, a line each, once it has stopped changing."""
    page.add_style_tag(content="[data-testid=stIconMaterial] { visibility: hidden }")  # their names are no words
    main, said, same = page.get_by_test_id("stMain"), "", 0
    for _ in range(TRIES):
        page.wait_for_selector(SETTLED)
        before, said = said, main.inner_text()
        same = same + 1 if said == before else 0
        if same == RESTS:
            break
        page.wait_for_timeout(REST_MS)
    lines = (" ".join(line.split()) for line in recording.text(WHEN.sub("<when>", said), {}).splitlines())
    return [line for line in lines if line]
