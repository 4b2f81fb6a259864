"""Labelling in real Chromium: by keys on every kind of scale, with a reload, on a phone, two raters in two passes.

What the store holds at the end is what was typed, item by item, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core import projects
from core.projects.labelling import LabelAspect, LabelPlan
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.settings import Settings
from core.store.store import Store
from tests.browser.conftest import enter_name, rest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ONE_CONTEXT = True
CLARITY = LabelAspect("clarity", Scale(1, 5, 1.0))
TRUE, WARMTH = LabelAspect("true", Scale(0, 1, 1.0)), LabelAspect("warmth", Scale(0, 100))
SELECT = """([start, end]) => {
    const text = document.querySelector(".st-key-form_label_text [data-testid=stText] span").firstChild;
    getSelection().setBaseAndExtent(text, start, text, end);
}"""
Said = dict[str, dict[str, float | None]]
Serve = Callable[[Path], AbstractContextManager[str]]
Anew = Callable[[Page], AbstractContextManager[None]]


@dataclass(frozen=True)
class Place:
    """A project of four items, whose golden labels of clarity are means, as the server at `url` has it too."""

    url: str
    store: Store
    project_id: str
    golden_id: str

    def begin(self, name: str, *aspects: LabelAspect, n_raters: int = 1) -> str:
        plan = LabelPlan(aspects, n_raters=n_raters, shared=4, order="file")
        return projects.start_pass(self.store, self.project_id, self.golden_id, name, plan)

    def said(self, pass_id: str, rater: str = "Ann") -> Said:
        """Item → aspect → label, as saved."""
        labels: Said = {}
        for row in self.store.labels.current(self.project_id, pass_id, rater):
            if row.aspect:
                labels.setdefault(row.item_id, {})[row.aspect] = row.value
        return labels


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Serve) -> Iterator[tuple[str, Store]]:
    home = tmp_path_factory.mktemp("passes") / "home"
    with projects.open_store(Settings(home=home, worker="external", worker_id="w")) as store, serve(home) as url:
        yield url, store


@pytest.fixture
def place(served: tuple[str, Store]) -> Place:
    url, store = served
    project_id = projects.create_project(store, "p").project_id
    items = tuple(Item(f"i{k}", f"Text number {k}.", f"s{k}", "", f"Source of text {k}.") for k in range(4))
    labels = AspectLabels("clarity", Scale(1, 5), (3.67, 4.33, None, 2.67))
    golden_id = projects.add_golden(store, project_id, GoldenSet("g", "source_target", items, {"clarity": labels}))
    return Place(url, store, project_id, golden_id)


def stands(page: Page, words: str) -> None:
    """Waits for what the progress bar says, and for the item below it."""
    expect(page.get_by_test_id("stProgress").first).to_contain_text(words)
    rest(page)


def sit_down(page: Page, place: Place, pass_id: str, rater: str, *, auto: str = "off") -> None:
    page.context.add_cookies([{"name": "concord-label-auto", "value": auto, "url": place.url}])
    page.goto(f"{place.url}/label?project={place.project_id}&labelling={pass_id}")
    page.get_by_role("button", name="Begin labelling").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.or_(page.get_by_test_id("stProgress")).first).to_be_visible()
    if dialog.count():
        enter_name(page, rater)
    stands(page, "1 of 4 · 0 done")


def strike(page: Page, *keys: str, then: str) -> None:
    for key in keys:
        page.keyboard.press(key)
    stands(page, then)


def box(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("number from"))


def typed(page: Page, text: str, then: str) -> None:
    """Type into the box that has the cursor, then Enter."""
    expect(box(page)).to_be_focused()
    page.keyboard.type(text)
    strike(page, "Enter", then=then)


def told(page: Page, words: str) -> None:
    """Waits for a confirmation, and until the page has its new height: a shift in mid-click would lose the click."""
    expect(page.get_by_text(words).first).to_be_visible()
    rest(page)
    page.wait_for_function("() => !document.querySelector('[data-testid=stMainBlockContainer]').style.minHeight")


def rated(page: Page, label: str) -> None:
    """Waits until a label is marked as given."""
    expect(page.get_by_test_id("stBaseButton-primary").filter(has_text=re.compile(f"^{label}")).first).to_be_visible()
    rest(page)


def view(page: Page, name: str, then: str) -> None:
    page.get_by_test_id("stButtonGroup").get_by_text(name, exact=True).click()
    told(page, then)


def test_labels_by_keys_in_one_breath_a_press_twice_and_a_reload(page: Page, place: Place) -> None:
    """Two keys without a pause arrive as one message or two; either way the label counts and no item is skipped."""
    pass_id = place.begin("keys", CLARITY)
    sit_down(page, place, pass_id, "Ann")
    strike(page, "3", "Enter", then="2 of 4 · 1 done")
    page.get_by_role("button", name=re.compile("^2")).dblclick()
    stands(page, "2 of 4 · 2 done")
    page.get_by_role("button", name=re.compile("^Save and next")).dblclick()
    stands(page, "3 of 4 · 2 done")
    page.reload()
    stands(page, "3 of 4 · 2 done")
    strike(page, "ArrowLeft", then="2 of 4 · 2 done")
    rated(page, "2")
    strike(page, "ArrowRight", then="3 of 4 · 2 done")
    strike(page, "ArrowRight", then="4 of 4 · 2 done")
    strike(page, "u", then="3 of 4 · 2 done")
    page.keyboard.press("Enter")  # nothing was said of this item
    told(page, "Rate this item first: press 1–5.")
    assert place.said(pass_id) == {"i0": {"clarity": 3.0}, "i1": {"clarity": 2.0}}


def test_keys_out_of_a_comment_undo_and_words_marked(page: Page, place: Place) -> None:
    pass_id = place.begin("more keys", CLARITY)
    sit_down(page, place, pass_id, "Ann")
    buttons = page.get_by_role("button", name=re.compile("^(1|5|Save and next)"))
    for part in (page.locator(".st-key-form_label_text"), *buttons.all()):  # what is read and pressed comes first
        assert (part.bounding_box() or {"y": 999})["y"] < 500
    page.evaluate(SELECT, [5, 11])
    page.keyboard.press("h")
    expect(page.get_by_role("button", name="“number”")).to_be_visible()
    page.wait_for_function("[...CSS.highlights.get('concord-marks')].length === 1")
    for key in ("h", "ArrowRight", "Shift+ArrowRight", "h"):  # without a mouse: the second word and the third
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="“number 0.”")).to_be_visible()
    page.keyboard.press("Escape")
    strike(page, "4", then="1 of 4 · 1 done")
    comment = page.get_by_label("Comment")
    page.keyboard.press("c")
    expect(comment).to_be_focused()
    page.keyboard.type("a 5")
    page.keyboard.press("ArrowLeft")  # moves in the comment
    strike(page, "Enter", then="2 of 4 · 1 done")  # nor does the next key land in the comment
    comment.click()
    strike(page, "ArrowLeft", then="1 of 4 · 1 done")
    expect(comment).to_have_value("a 5")
    page.keyboard.press("c")
    page.keyboard.type("!")
    page.keyboard.press("Escape")
    rest(page)
    page.wait_for_timeout(500)  # the save of the comment has drawn the page anew
    expect(comment).not_to_be_focused()
    strike(page, "z", then="1 of 4 · 0 done")
    told(page, "Your last label was removed.")
    page.keyboard.press("?")
    told(page, "mark the selected words")
    page.keyboard.press("Escape")
    expect(page.get_by_text("mark the selected words")).to_have_count(0)
    (remark,) = [one for one in place.store.labels.current(place.project_id, pass_id, "Ann") if one.comment]
    assert (remark.item_id, remark.comment) == ("i0", "a 5!")


def test_a_typed_number_is_of_its_item_alone(
    page: Page, place: Place, standing_still: Callable[[str], AbstractContextManager[None]]
) -> None:
    pass_id = place.begin("numbers", LabelAspect("clarity", Scale(1, 5)))
    sit_down(page, place, pass_id, "Ann")
    typed(page, "150", "1 of 4 · 0 done")
    told(page, "150 isn't on the scale. Type a number from 1 to 5.")
    box(page).fill("3.5")
    with standing_still(place.url):  # in one breath: nobody has seen the item that the 1 would be of
        for key in ("Enter", "1", "Enter"):
            page.keyboard.press(key)
    stands(page, "2 of 4 · 1 done")
    expect(box(page)).to_have_value("")
    assert place.said(pass_id) == {"i0": {"clarity": 3.5}}


def test_every_kind_of_scale_by_keys(page: Page, place: Place) -> None:
    pass_id = place.begin("all kinds", CLARITY, TRUE, WARMTH)
    sit_down(page, place, pass_id, "Ann")
    page.keyboard.press("4")
    rated(page, "4")
    page.keyboard.press("Enter")
    told(page, "Rate this item on true first: press 0 or 1.")
    page.keyboard.press("1")
    typed(page, "37", "2 of 4 · 1 done")
    page.keyboard.press("3")
    rated(page, "3")
    strike(page, "ArrowRight", then="3 of 4 · 1 done")  # with two aspects open
    for key in ("2", "0"):
        page.keyboard.press(key)
        rated(page, key)
    typed(page, "0", "4 of 4 · 2 done")
    assert place.said(pass_id) == {
        "i0": {"clarity": 4.0, "true": 1.0, "warmth": 37.0},
        "i1": {"clarity": 3.0},
        "i2": {"clarity": 2.0, "true": 0.0, "warmth": 0.0},
    }


def test_a_phone(browser: Browser, place: Place) -> None:
    pass_id = place.begin("phone", CLARITY)
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    try:
        page = context.new_page()
        sit_down(page, place, pass_id, "Ann", auto="on")
        for k in range(2):
            page.get_by_role("button", name=re.compile("^4")).first.tap()
            stands(page, f"{k + 2} of 4 · {k + 1} done")
        page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 9999)")
        for name in ("^1", "^5", "^Save and next"):  # they stay in view while one reads on
            button = page.get_by_role("button", name=re.compile(name)).first
            expect(button).to_be_in_viewport(ratio=1)
            assert (button.bounding_box() or {"height": 0})["height"] >= 48
        wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert wide <= 390, "the screen is wider than the phone"
        page.get_by_role("button", name=re.compile("^4")).first.tap()
        stands(page, "4 of 4 · 3 done")
        expect(page.get_by_text("Text number 3.", exact=True)).to_be_in_viewport(ratio=1)  # the next text, not its end
        page.get_by_role("button", name=re.compile("^5")).first.tap()
        told(page, "Why 5?")
        expect(page.get_by_label("Comment")).to_be_in_viewport(ratio=1)
    finally:
        context.close()


def test_two_raters_in_two_passes_on_one_aspect(page: Page, browser: Browser, place: Place, drawn_anew: Anew) -> None:
    first = place.begin("First look", CLARITY, n_raters=2)
    context = browser.new_context()
    try:
        bo = context.new_page()
        sit_down(page, place, first, "Ann")
        sit_down(bo, place, first, "Bo")
        for k, (hers, his) in enumerate(((2, 2), (4, 5), (3, 3))):
            strike(page, str(hers), "Enter", then=f"{k + 2} of 4 · {k + 1} done")
            strike(bo, str(his), "Enter", then=f"{k + 2} of 4 · {k + 1} done")
        view(page, "Decide", "You still have 1 item to rate in First look.")
        assert "2.67" not in page.content()  # neither golden labels nor the other's ratings
        page.get_by_role("button", name="Continue rating").click()
        stands(page, "4 of 4 · 3 done")
        strike(page, "1", then="4 of 4 · 4 done")
        strike(bo, "4", then="4 of 4 · 4 done")
        view(page, "Decide", "1 item to decide")
        expect(page.get_by_text("Label in the golden set: 2.67")).to_be_visible()
        view(page, "Progress", "n = 4 items with two or more raters, 8 labels in all")
        second = _second_pass(page, place, drawn_anew)
        _rates_afresh(page, bo, place, second)
    finally:
        context.close()
    assert place.said(first) == {f"i{k}": {"clarity": value} for k, value in enumerate((2.0, 4.0, 3.0, 1.0))}
    assert place.said(second) == {"i0": {"clarity": 5.0}}
    assert place.said(second, "Bo") == {f"i{k}": {"clarity": value} for k, value in enumerate((4.0, 5.0, 3.0, 4.0))}


def _second_pass(page: Page, place: Place, drawn_anew: Anew) -> str:
    """Begun on the screen: whole steps although the golden labels are means."""
    view(page, "New pass", "Items to label")
    page.get_by_text("Scale, order, instructions and name").click()
    expect(page.get_by_role("combobox", name="in", exact=True)).to_have_value("whole numbers")
    with drawn_anew(page):
        page.get_by_text("as in the file").click()
    for label, text in (("Name of the pass", "Second look"), ("Raters", "2")):
        with drawn_anew(page):
            page.get_by_label(label, exact=True).fill(text)
            page.keyboard.press("Tab")
    page.get_by_label("Instructions for all raters").fill("Slowly.")
    page.get_by_role("button", name="Begin this pass").dblclick()  # at once
    told(page, "Second look has begun")
    newest, _ = projects.list_passes(place.store, place.project_id)
    assert newest.plan.instructions == "Slowly."
    return newest.pass_id


def _rates_afresh(page: Page, bo: Page, place: Place, second: str) -> None:
    page.get_by_role("button", name="Begin labelling").click()
    stands(page, "1 of 4 · 0 done")
    strike(page, "5", "Enter", then="2 of 4 · 1 done")
    sit_down(bo, place, second, "Bo")
    for k, his in enumerate((4, 5, 3)):
        strike(bo, str(his), "Enter", then=f"{k + 2} of 4 · {k + 1} done")
    strike(bo, "4", then="4 of 4 · 4 done")
    view(bo, "Decide", "Keep all existing labels, and use new labels only to fill gaps")
    bo.get_by_role("button", name="Freeze these labels").click()
    told(bo, "is frozen, with 4 items.")
    frozen = place.store.goldens.load(place.store.goldens.all(place.project_id)[0].golden_id)
    assert frozen.aspects["clarity"].values == (3.67, 4.33, 3.0, 2.67)
