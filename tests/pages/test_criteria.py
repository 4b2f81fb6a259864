"""The Criteria screen: read whole, edit, conflict, and an edit beside its parent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.projects.rescore import RescoreRequest
from core.records import Criteria, Provenance
from pages.components import state
from tests.pages.screen import frame_with, open_screen, press, texts

SCREEN = "4_criteria"


@pytest.fixture
def best(world: Any) -> Criteria:
    """A finished run with five candidates; the best of them."""
    candidates = world.candidates(5, "kept")
    world.add_run("r1", "done", standing=world.standing(candidates), outcome=world.calibration(candidates))
    for place, candidate in enumerate(candidates):
        world.add_criteria(candidate.criteria, "r1", 0.6 - place / 100)
    return candidates[0].criteria


@pytest.fixture
def edited(best: Criteria) -> Criteria:
    parents = (best.criteria_id,)
    return Criteria(best.text + " Punish gaps.", "coherence", Provenance("edit", parents=parents, author="Ada"))


def edit(screen: AppTest, parent: Criteria, text: str, author: str = "Ada") -> AppTest:
    screen.text_area(key=f"form_edit_{parent.criteria_id}").set_value(text)
    screen.session_state[state.RATER] = author
    press(screen, "Save and re-score")
    return screen


def test_without_criteria_the_screen_says_where_they_come_from(world: Any) -> None:
    assert "No criteria yet" in texts(open_screen(SCREEN))


def test_the_best_stands_first_and_is_shown_whole(world: Any, best: Criteria) -> None:
    screen = open_screen(SCREEN, run="r1")
    assert screen.dataframe[0].value["Spearman, sample"].iloc[0] == pytest.approx(0.6)
    assert best.text in texts(screen)
    assert "Drafted from 4 labelled items" in texts(screen)
    assert screen.query_params["criteria"] == best.criteria_id


def test_criteria_dropped_early_stand_below_the_complete(world: Any, best: Criteria) -> None:
    lucky = replace(best, text="Lucky on few items.")
    world.add_criteria(lucky, "r1", 0.95, status="stopped")
    listed = open_screen(SCREEN, run="r1").dataframe[0].value
    assert listed["Spearman, sample"].iloc[0] == pytest.approx(0.6)
    assert listed["criteria"].iloc[-1] == "Lucky on few items."


def test_a_link_opens_the_criteria_it_names(world: Any, best: Criteria) -> None:
    other = list(world.criteria.values())[3].criteria
    assert other.text in texts(open_screen(SCREEN, run="r1", criteria=other.criteria_id))


def test_an_edit_is_saved_with_its_author_and_rescored(world: Any, best: Criteria) -> None:
    screen = edit(open_screen(SCREEN, run="r1"), best, "Reward clear order only.")
    assert not screen.exception
    assert world.saved == [(best.criteria_id, "Reward clear order only.", "Ada")]
    request = world.started[0]
    assert isinstance(request, RescoreRequest)
    assert (request.parent_id, request.run_id, request.held_out) == (best.criteria_id, "r1", False)
    assert screen.query_params["criteria"] == request.criteria_id
    assert screen.query_params["rescore"] == "rescore"


def test_an_edit_without_an_author_is_not_saved(world: Any, best: Criteria) -> None:
    screen = open_screen(SCREEN, run="r1")
    screen.session_state[state.RATER] = ""
    screen.run()
    assert [one.disabled for one in screen.button if one.label == "Save and re-score"] == [True]


def test_a_conflict_shows_both_texts_and_loses_none(world: Any, best: Criteria) -> None:
    screen = open_screen(SCREEN, run="r1")
    world.conflict = "c-of-somebody-else"
    edit(screen, best, "My text.")
    said = texts(screen)
    assert "Their text." in said
    assert "My text." in said
    assert world.saved == []
    press(screen, "Save mine as a version of its own")
    assert world.saved == [(best.criteria_id, "My text.", "Ada")]
    assert not screen.exception


def test_a_conflict_can_be_dropped(world: Any, best: Criteria) -> None:
    screen = open_screen(SCREEN, run="r1")
    world.conflict = "c-of-somebody-else"
    edit(screen, best, "My text.")
    press(screen, "Drop mine")
    assert "Their text." not in texts(screen)
    assert world.saved == []


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.01, 0.2, "a gain beyond chance"),
        (-0.05, 0.2, "not to be told from chance"),
        (-0.3, -0.1, "a loss beyond chance"),
    ],
)
def test_an_edit_stands_beside_its_parent(
    world: Any, best: Criteria, edited: Criteria, low: float, high: float, words: str
) -> None:
    world.add_criteria(edited, "r1")
    request = RescoreRequest("p1", "g", "coherence", edited.criteria_id, best.criteria_id, "r1")
    world.add_run("s1", "done", kind="rescore", request=request, outcome=world.a_rescore(best, edited, low, high))
    screen = open_screen(SCREEN, rescore="s1")
    metrics = {m.label: m.value for m in screen.metric}
    assert metrics["Parent"] == "0.500 [0.40, 0.60]"
    assert metrics["Edited"] == "0.600 [0.50, 0.70]"
    said = texts(screen)
    assert words in said
    assert "1 now aligned, 1 now misaligned" in said
    assert ":green-background[**Punish gaps" in said
    assert screen.query_params["criteria"] == edited.criteria_id


def test_the_parent_is_one_click_away(world: Any, best: Criteria, edited: Criteria) -> None:
    world.add_criteria(edited, "r1", 0.9)
    screen = open_screen(SCREEN, run="r1", criteria=edited.criteria_id)
    assert "Edited by Ada" in texts(screen)
    press(screen, "Its parent")
    assert screen.query_params["criteria"] == best.criteria_id
    assert "Drafted from 4 labelled items" in texts(screen)


def test_a_failed_rescoring_says_why(world: Any, best: Criteria, edited: Criteria) -> None:
    world.add_criteria(edited, None)
    request = RescoreRequest("p1", "g", "coherence", edited.criteria_id, best.criteria_id, "r1")
    world.add_run("s1", "failed", kind="rescore", request=request, error="The endpoint is down.")
    assert "The endpoint is down." in texts(open_screen(SCREEN, rescore="s1"))


def test_unknown_criteria_in_the_url_fall_back_to_the_best(world: Any, best: Criteria) -> None:
    assert best.text in texts(open_screen(SCREEN, run="r1", criteria="c000"))


def test_edits_of_a_run_are_listed_with_it(world: Any, best: Criteria, edited: Criteria) -> None:
    world.add_criteria(edited, None)
    listed = open_screen(SCREEN, run="r1").dataframe[0].value
    assert "edit by Ada" in set(listed["origin"])


def test_hostile_criteria_stay_plain_text(world: Any, best: Criteria) -> None:
    hostile = Criteria(
        "<script>alert(1)</script> ![x](http://evil.example/a.png) :red[no]", "coherence", best.provenance
    )
    child = replace(hostile, text=hostile.text + " $x$", provenance=Provenance("edit", parents=(hostile.criteria_id,)))
    world.add_criteria(hostile, "r1", 0.9)
    world.add_criteria(child, "r1", 0.95)
    screen = open_screen(SCREEN, run="r1", criteria=child.criteria_id)
    for element in [*screen.markdown, *screen.caption, *screen.warning]:
        assert "<script>" not in element.value
        assert "![x](" not in element.value
        assert ":red[no]" not in element.value


def test_items_are_told_by_their_gap(world: Any, best: Criteria) -> None:
    screen = open_screen(SCREEN, run="r1")
    assert "4 calibration items: 1 aligned, 1 too lenient, 1 too strict, 1 unread" in texts(screen)
    shown = frame_with(screen, "gap")
    assert shown["the judge is"].tolist() == ["too lenient", "too strict", "aligned", "unread: no verdict"]
    assert "Mark a row" in texts(screen)


def test_a_marked_item_shows_texts_and_what_moved_its_score(world: Any, best: Criteria) -> None:
    screen = open_screen(SCREEN, run="r1")
    screen.session_state["items_table"] = {"selection": {"rows": [0]}}
    screen.run()
    told = texts(screen)
    assert "+0.40  reward texts that are short" in told
    assert "The <b>judged</b> text." in told  # as letters, not as markup
    assert "Rating: 4.5 since it is short." in told
    assert not screen.exception
