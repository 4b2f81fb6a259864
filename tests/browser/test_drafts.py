"""A criteria text that is being edited, in real Chromium: a reload, an ended server, a closed tab lose nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from core import projects
from core.project_records import Actor
from core.records import AspectLabels, Criteria, GoldenSet, Item, Provenance, Scale
from core.settings import Settings
from core.store.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ARRIVES_SECONDS = 60.0
TEXT = "Reward order."
PARENT = Criteria(TEXT, "a", Provenance("draft"))
KEPT = re.compile(r"^Draft saved at \d\d:\d\d, not yet a version$")
Serve = Callable[..., AbstractContextManager[str]]
Settle = Callable[..., None]


@dataclass(frozen=True)
class Place:
    """A project with one criteria in a home to be served; `store` looks at the same home."""

    home: Path
    store: Store
    project_id: str

    def form(self, url: str) -> str:
        return f"{url}/criteria?project={self.project_id}&criteria={PARENT.criteria_id}&edit=1"

    def draft(self, who: str = "Ann") -> str | None:
        draft = projects.get_draft(self.store.acting(Actor(who)), self.project_id, f"criteria:{PARENT.criteria_id}")
        return None if draft is None else draft.text


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    home = tmp_path / "home"
    store = projects.open_store(Settings(home=home, worker="external", worker_id="w"))
    project_id = projects.create_project(store, "drafts").project_id
    golden = GoldenSet("g", "single", (Item("i", "t", "s"),), {"a": AspectLabels("a", Scale(1, 5), (3.0,))})
    store.criteria.add(project_id, projects.add_golden(store, project_id, golden), [PARENT])
    yield Place(home, store, project_id)
    store.close()


def opened(page: Page, settle: Settle) -> Locator:
    """The text area of the edit form, once the screen rests."""
    settle("Save and re-score", page)
    area = page.get_by_label("Criteria", exact=True)
    expect(area).to_be_visible()
    return area


def types(page: Page, area: Locator, text: str) -> None:
    """As a person does: at the end of what stands there, letter by letter."""
    area.click()
    page.keyboard.press("Control+End")
    page.keyboard.type(text, delay=15)


def arrives(page: Page, place: Place, text: str) -> None:
    """The draft in the store becomes `text`."""
    end = time.monotonic() + ARRIVES_SECONDS
    while place.draft() != text and time.monotonic() < end:
        page.wait_for_timeout(200)
    assert place.draft() == text


def test_bursts_are_kept_in_order_a_reload_brings_them_back_and_saving_ends_the_draft(
    page: Page, place: Place, serve: Serve, settle: Settle, known_as: Settle
) -> None:
    with serve(place.home) as url:
        known_as(url)
        page.goto(place.form(url))
        area = opened(page, settle)
        expect(area).to_have_value(TEXT)
        types(page, area, "\nOne <b>two</b>.")
        expect(page.get_by_text(KEPT)).to_be_visible()
        whole = f"{TEXT}\nOne <b>two</b>."
        for burst in (" Three.", " Four."):
            page.keyboard.type(burst, delay=15)  # on from where the caret stands: it must not have moved
            whole += burst
            arrives(page, place, whole)
        expect(area).to_have_value(whole)

        page.reload()
        area = opened(page, settle)
        expect(area).to_have_value(whole)
        expect(page.get_by_text("your unsaved text from")).to_be_visible()

        types(page, area, " Five.")
        page.close()  # before typing has rested
        page = page.context.new_page()
        page.goto(place.form(url))
        area = opened(page, settle)
        expect(area).to_have_value(f"{whole} Five.")
        expect(page.get_by_text(KEPT)).to_be_visible()

        types(page, area, " Six.")
        page.keyboard.press("Control+Enter")  # saves, in the same breath
        settle("The edit was saved but not re-scored", page)
        newest = place.store.criteria.get(place.project_id, PARENT.criteria_id).head
        assert place.store.criteria.get(place.project_id, newest).text == f"{whole} Five. Six."
        assert place.draft() is None
        page.goto(place.form(url))
        expect(opened(page, settle)).to_have_value(TEXT)
        assert not page.get_by_text("your unsaved text from").count()
        assert not page.get_by_test_id("stException").count()


def test_a_server_that_ends_in_mid_sentence_gets_the_text_when_it_is_back(
    page: Page, place: Place, serve: Serve, settle: Settle, known_as: Settle
) -> None:
    with serve(place.home) as url:
        known_as(url)
        page.goto(place.form(url))
        area = opened(page, settle)
        types(page, area, " Before.")
        expect(page.get_by_text(KEPT)).to_be_visible()
        page.keyboard.type(" While it ends.", delay=5)  # and the server is gone before typing has rested
    expect(page.get_by_text("Draft not saved yet: the server isn't responding.")).to_be_visible()
    assert place.draft() == f"{TEXT} Before."
    port = urlsplit(url).port
    with serve(place.home, port=port):
        arrives(page, place, f"{TEXT} Before. While it ends.")
        expect(area).to_have_value(f"{TEXT} Before. While it ends.")
        expect(page.get_by_text(KEPT)).to_be_visible()
        types(page, area, " After.")
    page.close()  # no server, and the tab goes too: only the browser knows the last word
    page = page.context.new_page()
    with serve(place.home, port=port):
        page.goto(place.form(url))
        whole = f"{TEXT} Before. While it ends. After."
        expect(opened(page, settle)).to_have_value(whole)
        arrives(page, place, whole)
        page.reload()
        expect(opened(page, settle)).to_have_value(whole)
