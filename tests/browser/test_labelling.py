"""Labelling as an annotator does it, in real Chromium: by keys, with a reload, by taps on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core import projects
from core.settings import Settings
from core.store.store import Store
from tests.browser.conftest import call_me, rest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]
SELECT = """([start, end]) => {
    const text = document.querySelector(".st-key-form_label_text [data-testid=stText] span").firstChild;
    getSelection().setBaseAndExtent(text, start, text, end);
}"""


def begin_pass(page: Page, url: str, settle: Settle, enter: Settle, name: str, aspects: tuple[str, ...] = ()) -> None:
    """A pass of one's own over the sample project, with more aspects than the usual one where named."""
    page.goto(f"{url}/label")
    expect(page.get_by_text(re.compile("^Aspects to rate$|^New pass$"))).to_be_visible()
    call_me(page, "Rev")
    if page.get_by_text("New pass", exact=True).count():
        page.get_by_text("New pass", exact=True).click()
    settle("Items to label")
    for aspect in aspects:
        field = page.get_by_label("Aspects to rate")
        field.fill(aspect)
        field.press("Enter")
        settle(aspect)
        field.press("Escape")
    page.get_by_text("Scale, order, instructions, name").click()
    enter(page.get_by_label("Name of the pass"), name)
    enter(page.get_by_label("People", exact=True), "2")
    page.get_by_role("button", name="Begin this pass").click()
    settle(f"{name} has begun")


def sit_down(page: Page, settle: Settle, rater: str) -> None:
    call_me(page, rater)
    page.get_by_role("button", name="Begin labelling").click()
    settle("Save and next")


def stands(page: Page, words: str) -> None:
    """Waits for what the progress bar says, e.g. "2 of 35 · 1 done", and for the item below it."""
    expect(page.get_by_test_id("stProgress").first).to_contain_text(words)
    rest(page)


def comments(store: Store, name: str, rater: str) -> list[str]:
    """What a rater has written in the passes of that name."""
    return [
        label.comment
        for project in store.projects.all()
        for a_pass in projects.list_passes(store, project.project_id)
        if a_pass.name == name
        for label in store.labels.current(project.project_id, a_pass.pass_id, rater)
    ]


def strike(page: Page, key: str, then: str) -> None:
    page.keyboard.press(key)
    stands(page, then)


def test_ten_items_by_keyboard_then_a_reload_then_the_eleventh(
    page: Page, app_url: str, settle: Settle, enter: Settle
) -> None:
    begin_pass(page, app_url, settle, enter, "keys")
    sit_down(page, settle, "Ann")
    for k in range(10):
        strike(page, str(1 + k % 5), f"{k + 1} of 35 · {k + 1} done")
        strike(page, "Enter", f"{k + 2} of 35 · {k + 1} done")
    page.reload()
    settle("Save and next")
    stands(page, "11 of 35 · 10 done, about")
    strike(page, "4", "11 of 35 · 11 done")
    strike(page, "Enter", "12 of 35 · 11 done")
    strike(page, "ArrowLeft", "11 of 35 · 11 done")
    chosen = page.get_by_test_id("stBaseButton-primary").filter(has_text=re.compile("^4"))
    expect(chosen.first).to_be_visible()
    strike(page, "ArrowRight", "12 of 35 · 11 done")
    strike(page, "ArrowRight", "13 of 35 · 11 done")
    strike(page, "u", "12 of 35 · 11 done")
    page.keyboard.press("Enter")  # nothing was said of this item
    expect(page.get_by_text("Rate this item first: press 1–5.").first).to_be_visible()
    stands(page, "12 of 35 · 11 done")
    assert not page.get_by_test_id("stException").count()


def test_a_label_and_enter_in_one_breath_and_a_press_twice(
    page: Page, app_url: str, settle: Settle, enter: Settle
) -> None:
    """Two keys without a pause arrive as one message or two; either way the label counts and no item is skipped."""
    begin_pass(page, app_url, settle, enter, "breath")
    sit_down(page, settle, "Bea")
    for k in range(5):
        page.keyboard.press("3")
        page.keyboard.press("Enter")
        stands(page, f"{k + 2} of 35 · {k + 1} done")
    page.get_by_role("button", name=re.compile("^2")).dblclick()
    stands(page, "6 of 35 · 6 done")
    page.get_by_role("button", name=re.compile("^Save and next")).dblclick()
    stands(page, "7 of 35 · 6 done")


def test_keys_out_of_a_comment_undo_and_words_marked(
    page: Page, app_url: str, settle: Settle, enter: Settle, home_of: Callable[[str], Path]
) -> None:
    begin_pass(page, app_url, settle, enter, "more keys")
    sit_down(page, settle, "Eve")
    text = page.locator(".st-key-form_label_text").get_by_test_id("stText")
    buttons = page.get_by_role("button", name=re.compile("^(1|5|Save and next)"))
    for part in (text, *buttons.all()):  # the text and what is pressed: in the first 500 px
        place = part.bounding_box()
        assert place is not None
        assert place["y"] < 500
    words = text.inner_text()[4:14].strip()
    page.evaluate(SELECT, [4, 14])
    page.keyboard.press("h")
    expect(page.get_by_role("button", name=f"“{words}”")).to_be_visible()
    page.wait_for_function("[...CSS.highlights.get('concord-marks')].length === 1")
    second, third = text.inner_text().split()[1:3]
    for key in ("h", "ArrowRight", "Shift+ArrowRight", "h"):  # without a mouse: the second word and the third
        page.keyboard.press(key)
    expect(page.get_by_role("button", name=f"“{second} {third}”")).to_be_visible()
    page.keyboard.press("Escape")
    strike(page, "4", "1 of 35 · 1 done")
    page.get_by_label("Comment").press_sequentially("a 5")
    page.keyboard.press("ArrowLeft")  # moves in the comment
    strike(page, "Control+Enter", "2 of 35 · 1 done")
    page.get_by_label("Comment").click()
    strike(page, "ArrowLeft", "1 of 35 · 1 done")
    expect(page.get_by_label("Comment")).to_have_value("a 5")
    expect(page.get_by_role("button", name=f"“{words}”")).to_be_visible()
    page.get_by_label("Comment").click()
    page.keyboard.press("Escape")
    strike(page, "z", "1 of 35 · 0 done")
    expect(page.get_by_text("The last label is undone.")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_text("mark the words selected in the text", exact=False)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("mark the words selected in the text", exact=False)).to_have_count(0)
    page.get_by_text("Open the next item by itself").click()
    rest(page)
    strike(page, "2", "2 of 35 · 1 done")
    with projects.open_store(Settings(home=home_of(app_url), worker="external")) as store:
        assert "a 5" in comments(store, "more keys", "Eve")


def test_a_phone(browser: Browser, app_url: str, settle: Settle, enter: Settle) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    try:
        page = context.new_page()

        def settled(text: str) -> None:
            settle(text, page)

        begin_pass(page, app_url, settled, enter, "phone")
        sit_down(page, settled, "Di")
        for k in range(3):
            page.get_by_role("button", name=re.compile("^4")).first.tap()
            stands(page, f"{k + 1} of 35 · {k + 1} done")
            page.get_by_role("button", name=re.compile("^Save and next")).tap()
            stands(page, f"{k + 2} of 35 · {k + 1} done")
        page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 9999)")
        for name in ("^1", "^5", "^Save and next"):  # they stay in view while one reads on
            expect(page.get_by_role("button", name=re.compile(name)).first).to_be_in_viewport(ratio=1)
        wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert wide <= 390, "the screen is wider than the phone"
    finally:
        context.close()
