"""People around criteria, in real Chromium: two who edit at once, and a meeting that ends in an approval."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core import projects
from core.calibration.settings import CalibrationSettings, RoundSettings
from core.data import load_golden
from core.people import Actor
from core.projects.calibration import CalibrationRequest
from core.projects.rounds import RoundRequest
from core.settings import Settings
from core.store.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
ASPECT = "coherence"
SAVED = re.compile(r"^Saved as a new version")  # the caption of a version says "Saved" too
Settle = Callable[..., None]


@dataclass(frozen=True)
class Place:
    """A served project after a calibration and a round with three picks; `store` looks at the same home."""

    url: str
    store: Store
    project_id: str
    golden_id: str
    best: str
    round_id: str


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory,
    serve: Callable[[Path], AbstractContextManager[str]],
    drive: Callable[..., str],
) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("meeting") / "home"
    settings = Settings(home=home, worker="external", worker_id="w")
    store = projects.open_store(settings)
    ann = store.acting(Actor("Ann"))
    project_id = projects.create_project(store, "review").project_id
    golden_id = projects.add_golden(store, project_id, load_golden(ROOT / "sample_data" / "summaries.jsonl"))
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=100, seed=3)
    request = CalibrationRequest(project_id, golden_id, ASPECT, "offline", chosen)
    run_id = projects.start_calibration(ann, settings, request)
    drive(store, settings, run_id)
    best = projects.load_calibration(store, run_id).chosen[0].criteria_id
    picks = tuple(one.item_id for one in projects.item_scores(store, run_id, best)[:3])
    small = RoundSettings(sizes=(2,), trials=1)
    asked = RoundRequest(project_id, golden_id, ASPECT, run_id, (best,), picks, small)
    round_id = projects.start_round(ann, settings, asked)
    drive(store, settings, round_id)
    with serve(home) as url:
        yield Place(url, store, project_id, golden_id, best, round_id)
    store.close()


def come_alive(page: Page) -> None:
    """A screen that was just drawn drops keys; once its clock has gone on it takes them."""
    clock = page.get_by_text("on this point")
    shown = clock.inner_text()
    expect(clock).not_to_have_text(shown, timeout=60_000)


def test_two_who_edit_at_once_see_both_texts(browser: Browser, place: Place, settle: Settle, act_as: Settle) -> None:
    pages = [browser.new_context().new_page() for _ in range(2)]
    try:
        for page, name in zip(pages, ("Ann", "Bo"), strict=True):
            page.goto(f"{place.url}/criteria?project={place.project_id}&criteria={place.best}")
            settle("Edit by hand", page)
            act_as(name, "Edit by hand", page)
        before = projects.get_criteria(place.store, place.project_id, place.best).text
        for page, name in zip(pages, ("Ann", "Bo"), strict=True):
            page.get_by_label("Criteria", exact=True).fill(f"{before}\nWhat {name} <b>wants</b>.")
            page.get_by_role("button", name="Save and re-score").click()
            settle(SAVED if name == "Ann" else "Somebody saved another version", page)
        second = pages[1]
        for words in ("What Ann <b>wants</b>.", "What Bo <b>wants</b>."):
            expect(second.get_by_text(words).first).to_be_visible()
        second.get_by_role("button", name="Save mine as a version of its own").click()
        settle(SAVED, second)
        edits = projects.get_criteria(place.store, place.project_id, place.best).edits
        kept = [projects.get_criteria(place.store, place.project_id, one).criteria for one in edits]
        assert [one.provenance.author for one in kept] == ["Ann", "Bo"]
        assert not second.get_by_test_id("stException").count()
    finally:
        for page in pages:
            page.context.close()


def test_a_proposal_is_accepted_in_a_meeting_then_approved(
    page: Page, place: Place, settle: Settle, act_as: Settle
) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{place.url}/criteria?project={place.project_id}&meeting=new&golden={place.golden_id}&aspect={ASPECT}")
    settle("Begin a review meeting")
    act_as("Ann", "Begin a review meeting")
    page.get_by_label("Who votes: a name a line").fill("Ann\nBo <b>")
    page.get_by_role("button", name="Begin the meeting").click()
    settle("Point 1 of")
    come_alive(page)
    page.keyboard.press("f")
    settle("Next to vote: Bo <b>")
    page.keyboard.press("x")
    settle("All have voted")
    page.reload()  # the table, the votes and the point are where they were; only the name is to be said again
    settle("All have voted")
    come_alive(page)
    act_as("Ann", "All have voted")
    page.get_by_label("Decision: the reason").fill("It says what counts.")
    page.get_by_role("button", name="Accept the change").click()
    settle("Decided by Ann")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the minutes").click()
    minutes = download.value.path().read_text()
    assert "**Accepted** (entered by Ann): It says what counts." in minutes
    assert "Votes: 1 for, 0 against, 1 abstained." in minutes
    page.get_by_role("button", name="Sign it off").click()
    settle("Evidence to approve on")
    page.get_by_label("Reason, for those who read it later").fill("The meeting took it.")
    page.get_by_role("button", name="Approve", exact=True).click()
    settle("Approved text stays as it is")
    taken = next(one for one in projects.list_proposals(place.store, place.round_id) if one.state == "accepted")
    approval = projects.review_of(place.store, place.project_id, taken.criteria.criteria_id).approval
    assert approval is not None
    assert (approval.actor, approval.reason) == ("Ann", "The meeting took it.")
    assert approval.evidence is not None
    assert approval.evidence.run_id == place.round_id
    assert re.search(taken.criteria.criteria_id, page.url)
    assert not page.get_by_test_id("stException").count()
