"""A review meeting in real Chromium: votes by keys, a reload, a decision with its minutes, and the approval."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core import projects
from core.settings import Settings
from core.store.store import Store
from tests.browser.conftest import call_me, enter_name
from tests.pages.making import Reviewed, review

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]


@dataclass(frozen=True)
class Place:
    """A served project after a calibration and a round; `store` looks at the same home."""

    url: str
    store: Store
    ids: Reviewed


@pytest.fixture
def place(tmp_path: Path, serve: Callable[[Path], AbstractContextManager[str]]) -> Iterator[Place]:
    home = tmp_path / "home"
    ids = review(home)
    with projects.open_store(Settings(home=home, worker="external", worker_id="w")) as store, serve(home) as url:
        yield Place(url, store, ids)


def come_alive(page: Page) -> None:
    """A screen that was just drawn drops keys; once its clock has gone on it takes them."""
    clock = page.get_by_text("on this point")
    shown = clock.inner_text()
    expect(clock).not_to_have_text(shown, timeout=60_000)


def test_a_proposal_is_accepted_in_a_meeting_then_approved(
    page: Page, browser: Browser, place: Place, settle: Settle
) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(
        f"{place.url}/criteria?project={place.ids.project_id}&meeting=new&golden={place.ids.golden_id}&aspect=coherence"
    )
    settle("Begin a review meeting")
    call_me(page, "Ann")
    page.get_by_label("Who votes: a name a line").fill("Ann\nBo <b>")
    page.get_by_role("button", name="Begin the meeting").click()
    settle("Point 1 of")
    expect(page.get_by_test_id("stSidebar")).not_to_be_visible(timeout=10_000)  # the meeting has the screen to itself
    come_alive(page)
    page.keyboard.press("f")
    settle("1 of 2 votes are in")
    assert not page.get_by_text("1 for").count()
    page.reload()  # the table, the votes and the point are where they were
    settle("1 of 2 votes are in")
    other = browser.new_page()  # Bo votes elsewhere, and both see what both said
    other.goto(page.url)
    other.get_by_role("button", name="Enter your name to vote").click()
    enter_name(other, "Bo <b>")
    come_alive(other)
    other.keyboard.press("x")
    for screen in (other, page):
        settle("1 abstained: Bo <b>", screen)
        settle("1 for: Ann", screen)
    other.close()
    page.get_by_role("button", name="Accept the change").click()  # the votes are the reason
    settle("Decided by Ann")
    page.get_by_role("button", name="Close the meeting").click()
    settle("one text was taken")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the minutes").click()
    minutes = download.value.path().read_text()
    assert "**Accepted** (entered by Ann): 1 for, 0 against, 1 abstained." in minutes
    assert "Votes: 1 for, 0 against, 1 abstained." in minutes
    page.get_by_role("button", name="Make this the judge").click()
    page.get_by_role("button", name="Measure it", exact=True).click()
    settle("Version 2")
    assert re.search("version=2", page.url)
    taken = next(
        proposal
        for proposal in projects.list_proposals(place.store, place.ids.round_id)
        if proposal.state == "accepted"
    )
    made = projects.judge_line(place.store, place.ids.project_id, "coherence").get(2)
    assert (made.made.origin, made.made.actor) == ("meeting", "Ann")
    assert taken.criteria.criteria_id in made.criteria_ids
    assert not page.get_by_test_id("stException").count()
