"""Triage and voting without a mouse: every press by a key, the focus seen and kept, no place that holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import rest
from tests.pages.making import Reviewed, review

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
MOST_TABS = 90
FOCUSED = """() => {
    const at = document.activeElement;
    const label = at.labels?.[0]?.innerText || at.getAttribute("aria-label") || at.innerText || at.value || "";
    const shows = (element) => {
        const style = getComputedStyle(element);
        return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none"
            || style.borderTopColor !== "rgba(0, 0, 0, 0)" && parseFloat(style.borderTopWidth) > 0;
    };
    const around = [at, at.parentElement, at.parentElement?.parentElement, at.closest("[data-baseweb], label")];
    return { tag: at.tagName, label: label.trim(), seen: around.some((element) => element && shows(element)) };
}"""


@pytest.fixture
def reviewed(tmp_path: Path, serve: Callable[[Path], AbstractContextManager[str]]) -> Iterator[tuple[str, Reviewed]]:
    home = tmp_path / "home"
    ids = review(home)
    with serve(home) as url:
        yield url, ids


def tab_to(page: Page, name: str, *, back: bool = False) -> None:
    """Presses Tab until what has the focus is called so; that it has it must be seen."""
    passed = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        focused = page.evaluate(FOCUSED)
        if len(focused["label"]) < 80 and re.search(name, focused["label"]):
            assert focused["seen"], f"{focused} has the focus and does not show it"
            return
        passed.append(focused["label"][:30] or focused["tag"])
    raise AssertionError(f"no key leads to {name}: {passed}")


def say_name(page: Page, name: str) -> None:
    """The first press asks for it: the dialog has the focus, and Enter carries the press out."""
    page.keyboard.press("1")
    expect(page.get_by_role("dialog").get_by_role("textbox", name="Your name")).to_be_focused()
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    rest(page)
    expect(page.get_by_test_id("stMain")).to_be_focused()  # keys are the page's again


def lose_a_field(page: Page) -> None:
    """Streamlit takes a field away some frames after the script rests, on a busy machine many."""
    page.evaluate("document.querySelector('[data-testid=stMain]').append(document.createElement('input'))")
    page.locator("[data-testid=stMain] > input").focus()
    page.evaluate("document.activeElement.remove()")
    expect(page.get_by_test_id("stMain")).to_be_focused()


def focus(page: Page) -> str:
    return str(page.evaluate(FOCUSED)["label"])


def test_triage_and_voting_by_keys_alone(page: Page, reviewed: tuple[str, Reviewed], settle: Settle) -> None:
    url, ids = reviewed
    page.set_viewport_size({"width": 1440, "height": 900})
    triage(page, url, ids, settle)
    vote(page, url, ids, settle)
    assert not page.get_by_test_id("stException").count()


def triage(page: Page, url: str, ids: Reviewed, settle: Settle) -> None:
    page.goto(f"{url}/misaligned?project={ids.project_id}&run={ids.run_id}")
    settle("Reasons for the score")
    say_name(page, "Mia")
    lose_a_field(page)
    before = int(re.search(r"(\d+) of \d+ triaged", page.get_by_test_id("stMain").inner_text())[1])  # type: ignore[index]
    for done, way in enumerate(("1", "Judge wrong", "Ambiguous"), before + 1):  # by its key, then by Tab and Enter
        address = page.url
        if len(way) > 1:
            tab_to(page, way)
            page.keyboard.press("Enter")
        else:
            page.keyboard.press(way)
        settle(re.compile(rf"\b{done} of \d+ triaged"))
        assert page.url != address
        if len(way) > 1:
            assert way in focus(page)  # of the next item, so that Enter goes on
    tab_to(page, "^Items", back=True)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle("0 marked")
    while page.evaluate("document.activeElement.tagName") != "CANVAS":
        page.keyboard.press("Tab")
    for n in (1, 2):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+Space")
        settle(f"{n} marked")
    page.keyboard.press("3")  # for both of them
    settle("2 items: ambiguous.")
    page.keyboard.press("Tab")  # a table lets go of the focus
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[data-testid=stDataFrame]')") is None


def vote(page: Page, url: str, ids: Reviewed, settle: Settle) -> None:
    page.goto(f"{url}/criteria?project={ids.project_id}&section=review&golden={ids.golden_id}&aspect=coherence")
    settle("to review")
    tab_to(page, "Start the review")
    page.keyboard.press("Enter")
    settle("Your vote")
    tab_to(page, "^For")
    page.keyboard.press("Enter")
    settle("1 for: Mia")
    tab_to(page, "Accept")
    page.keyboard.press("Enter")
    settle("1 for, 0 against, 0 abstained.")
