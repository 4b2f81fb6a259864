"""The Criteria screen: read, edit, conflict, and the effect of an edit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Actor
from core.projects.criteria import PairedDifference, RescoreRequest, RescoreResult
from core.projects.start_and_resume import JudgeState
from core.records import Criteria, Interval, Provenance
from core.store.runs import JUDGE
from pages.criteria import criteria_list
from tests.pages.making import Place, Real, aligned, calibration, candidates, standing
from tests.pages.screen import (
    grids,
    has_button,
    open_screen,
    press,
    texts,
)

SCREEN = "4_criteria"


@pytest.fixture
def run_id(place: Place) -> str:
    """A finished run with five candidates."""
    kept = candidates(5, "kept")
    run_id = place.add_run("done", shown=standing(kept), outcome=calibration(kept))
    place.store.results.put_document(run_id, JUDGE, JudgeState({"kind": "offline"}))
    for number, candidate in enumerate(kept):
        place.add_criteria(candidate.criteria, run_id, 0.6 - number / 100)
    return run_id


@pytest.fixture
def best() -> Criteria:
    return candidates(1)[0].criteria


@pytest.fixture
def edited(best: Criteria) -> Criteria:
    parents = (best.criteria_id,)
    return Criteria(best.text + " Punish gaps.", "coherence", Provenance("edit", parents=parents, author="Ada"))


def edit(screen: AppTest, parent: Criteria, text: str) -> AppTest:
    if has_button(screen, "Edit"):
        press(screen, "Edit")
    screen.text_area(key=f"form_edit_{parent.criteria_id}").set_value(text)
    return press(screen, "Save and re-score")


def edits_of(place: Place, parent: Criteria) -> list[tuple[str, str]]:
    """Author and text of every edit, in order."""
    ids = place.store.criteria.get(place.project_id, parent.criteria_id).edits
    kept = [place.store.criteria.get(place.project_id, criteria_id) for criteria_id in ids]
    return [(entry.author, entry.text) for entry in kept]


def rescored(
    place: Place, run_id: str, parent: Criteria, edited: Criteria, low: float = 0.01, high: float = 0.2
) -> str:
    """A finished re-scoring of the edit, with the difference in that interval."""
    difference = PairedDifference((low + high) / 2, Interval(low, high), 0.02, 80)
    ids = (edited.criteria_id, parent.criteria_id)
    request = RescoreRequest(place.project_id, place.golden_id, "coherence", *ids, run_id)
    return place.add_run(
        "done", request, outcome=RescoreResult(aligned(0.5), aligned(0.6), difference, "“Punish gaps.”")
    )


def test_without_criteria_the_screen_says_where_they_come_from(place: Place) -> None:
    assert "No criteria yet" in texts(open_screen(SCREEN, project=place.project_id))


def test_the_best_stands_first_and_is_shown_whole(run_id: str, best: Criteria) -> None:
    screen = open_screen(SCREEN, run=run_id)
    assert grids(screen)[0]["Spearman, sample"].iloc[0] == pytest.approx(0.6)
    assert best.text in texts(screen)
    assert "Drafted from 4 labelled items" in texts(screen)
    assert screen.query_params["criteria"] == best.criteria_id
    assert best.text in texts(open_screen(SCREEN, run=run_id, criteria="c000")), "what is unknown falls back to it"


def test_dropped_and_rejected_criteria_stand_below_the_complete(place: Place, run_id: str, best: Criteria) -> None:
    place.add_criteria(replace(best, text="Higher, and rejected."), run_id, 0.95, status="rejected")
    place.add_criteria(replace(best, text="Lucky on few items."), run_id, 0.96, status="stopped")
    listed = grids(open_screen(SCREEN, run=run_id))[0]
    assert listed["Spearman, sample"].iloc[0] == pytest.approx(0.6)
    assert listed["status"].iloc[-2:].tolist() == ["rejected: no gain over its parent", "dropped early, after 80 items"]


def test_a_ladder_is_no_numbered_list(place: Place, run_id: str, best: Criteria) -> None:
    place.add_criteria(replace(best, text="Ask a reader.\n5: nothing untrue.\n1: all of it."), run_id, 0.9)
    shown = next(block.value for block in open_screen(SCREEN, run=run_id).markdown if "nothing untrue" in block.value)
    assert "**5**" in shown
    assert "2. " not in shown


def test_an_edit_is_saved_with_its_author_and_rescored(real: Real, monkeypatch: pytest.MonkeyPatch) -> None:
    best, choose = projects.load_calibration(real.store, real.run_id).chosen[0], criteria_list.choose
    screen = edit(open_screen(SCREEN, project=real.project_id, run=real.run_id), best, "Reward clear order only.")
    assert edits_of(real, best) == [("Ann", "Reward clear order only.")]
    rescore = real.newest("rescore")
    request = real.request_of(rescore)
    assert (request.parent_id, request.run_id) == (best.criteria_id, real.run_id)
    assert screen.query_params["criteria"] == request.criteria_id
    assert screen.query_params["rescore"] == rescore
    assert "Concord is measuring these criteria now." in texts(screen)

    def choose_late(page: Any) -> Any:
        monkeypatch.undo()
        entries = choose(page)
        real.drive(rescore)
        return entries

    monkeypatch.setattr(criteria_list, "choose", choose_late)
    assert ", rank " in texts(screen.run()), "the run ended while the screen was drawn"


@pytest.mark.parametrize("way", ["Save my version separately", "Discard my version"])
def test_a_conflict_shows_both_texts_and_loses_none(place: Place, run_id: str, best: Criteria, way: str) -> None:
    screen = press(open_screen(SCREEN, run=run_id), "Edit")
    projects.save_edit(place.store.acting(Actor("Bo")), place.project_id, best.criteria_id, "Their text.", "Bo")
    edit(screen, best, "My text.")
    assert "Bo saved another edit of these criteria first." in texts(screen)
    assert ":red-background[~~Their~~]" in texts(screen) and ":green-background[**My**]" in texts(screen)
    assert edits_of(place, best) == [("Bo", "Their text.")]
    press(screen, way)
    kept = [("Ann", "My text.")] if way.startswith("Save") else []
    assert edits_of(place, best) == [("Bo", "Their text."), *kept]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.01, 0.2, "raises agreement from 0.50 to 0.60 on the calibration set."),
        (-0.05, 0.2, "makes no clear difference on the calibration set: 0.50 before, 0.60 now."),
        (-0.3, -0.1, "lowers agreement from 0.50 to 0.60 on the calibration set."),
    ],
)
def test_an_edit_stands_beside_its_parent(
    place: Place, run_id: str, edited: Criteria, monkeypatch: pytest.MonkeyPatch, low: float, high: float, words: str
) -> None:
    best = candidates(1)[0].criteria
    monkeypatch.setattr(projects, "item_changes", lambda *_: {"i1": False, "i2": True})
    place.add_criteria(edited, run_id)
    screen = open_screen(SCREEN, project=place.project_id, rescore=rescored(place, run_id, best, edited, low, high))
    page_text = texts(screen)
    assert f"This edit {words}" in page_text
    assert "n = 80," in page_text
    assert "Punish gaps" in screen.warning[0].value
    (step,) = (button.label for button in screen.button if button.proto.type == "primary")
    assert step == ("Make this the judge" if words.startswith("raises") else "Edit")
    assert "1 misaligned item fixed, 1 new" in page_text
    assert ":green-background[**Punish gaps" in page_text
    assert screen.query_params["criteria"] == edited.criteria_id


def test_a_failed_rescoring_says_why(place: Place, run_id: str, best: Criteria, edited: Criteria) -> None:
    place.add_criteria(edited)
    ids = (edited.criteria_id, best.criteria_id)
    request = RescoreRequest(place.project_id, place.golden_id, "coherence", *ids, run_id)
    failed = place.add_run("failed", request, error="The endpoint is down.")
    assert "The endpoint is down." in texts(open_screen(SCREEN, project=place.project_id, rescore=failed))


def test_hostile_criteria_stay_plain_text(place: Place, run_id: str, best: Criteria) -> None:
    hostile = replace(best, text="<script>alert(1)</script> ![x](http://evil.example/a.png) :red[no]")
    child = replace(hostile, text=hostile.text + " $x$", provenance=Provenance("edit", parents=(hostile.criteria_id,)))
    place.add_criteria(hostile, run_id, 0.9)
    place.add_criteria(child, run_id, 0.95)
    screen = open_screen(SCREEN, run=run_id, criteria=child.criteria_id)
    for element in [*screen.markdown, *screen.caption, *screen.warning]:
        assert not any(mark in element.value for mark in ("<script>", "![x](", ":red[no]"))
