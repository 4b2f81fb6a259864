"""A review in real Chromium: votes of two browsers by keys, a reload, a decision, and the judge made of it."""

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
from tests.browser.conftest import enter_name
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


def test_a_proposal_is_accepted_in_a_review_and_made_the_judge(
    page: Page, browser: Browser, place: Place, settle: Settle
) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    where = f"project={place.ids.project_id}&section=review&golden={place.ids.golden_id}&aspect=coherence"
    page.goto(f"{place.url}/criteria?{where}")
    settle("to review")
    page.get_by_role("button", name="Start the review").click()
    enter_name(page, "Ann")
    settle("Your vote")
    expect(page.get_by_test_id("stSidebar")).not_to_be_visible(timeout=10_000)  # the review has the screen to itself
    other = browser.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Join the review").click()
    enter_name(other, "Bo <b>")
    settle("Your vote", other)
    settle("0 of 2 votes are in", page)  # Ann's screen hears of Bo by itself
    page.keyboard.press("f")
    settle("1 of 2 votes are in")
    assert not page.get_by_text("1 for").count()
    page.reload()  # votes and point are where they were
    settle("1 of 2 votes are in")
    settle("1 of 2 votes are in", other)
    other.keyboard.press("x")
    for screen in (other, page):
        settle("1 abstained: Bo <b>", screen)
        settle("1 for: Ann", screen)
    other.close()
    page.get_by_role("button", name="Accept", exact=True).click()  # the votes are the reason
    settle("1 for, 0 against, 1 abstained.")
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
    assert (made.made.origin, made.made.actor) == ("review", "Ann")
    assert taken.criteria.criteria_id in made.criteria_ids
    assert not page.get_by_test_id("stException").count()
