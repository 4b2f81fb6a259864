"""The review on screen: starting, joining, votes of two browsers, decisions and their conflicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Actor
from core.projects.review import Point
from core.store.store import Store
from pages.ui import state
from tests.pages.screen import harmless, make_judge, press, run, texts, write

Open = Callable[..., AppTest]


@pytest.fixture
def where(reviewed: Any) -> tuple[str, str, str]:
    return reviewed.project_id, reviewed.golden_id, "coherence"


@pytest.fixture
def review(open_criteria: Open, reviewed: Any) -> Open:
    """Opens the review for somebody, by default full screen."""

    def opened(who: str = "Ann", view: str = state.BARE, aspect: str = "coherence") -> AppTest:
        return open_criteria(who, section="review", view=view, golden=reviewed.golden_id, aspect=aspect)

    return opened


def first(store: Store, where: tuple[str, str, str]) -> Point:
    return projects.open_review(store, *where).points[0]


def test_starting_a_review_fills_the_screen(store: Store, where: tuple[str, str, str], review: Open) -> None:
    screen = review("Ann", view="")
    assert screen.sidebar
    assert f"{len(projects.open_review(store, *where).points)} open points to review" in texts(screen)
    harmless(screen)
    press(screen, "Start the review")
    assert (screen.query_params["view"], screen.query_params["section"]) == (state.BARE, "review")
    assert not screen.sidebar
    assert projects.open_review(store, *where).joined == ("Ann",)
    assert first(store, where).title in [header.value.replace("\\", "") for header in screen.header]
    harmless(screen)
    press(screen, "Leave")
    assert screen.sidebar
    assert projects.open_review(store, *where).joined == ()


def test_a_review_stays_open_where_the_browser_still_sends_what_stood_before_it(review: Open) -> None:
    """What is mounted with the review may report its value before the browser has heard that the rest is gone."""
    screen = review("Ann", view="")
    (before,) = [one for one in screen._tree.get_widget_states().widgets if one.id.endswith(state.CRITERIA_VIEW)]
    press(screen, "Start the review")
    sent = screen._tree.get_widget_states()
    sent.widgets.append(before)
    screen._run(sent)
    assert not screen.exception
    assert screen.query_params["section"] == "review"
    assert "Your vote" in texts(screen)


def test_nothing_to_review(review: Open) -> None:
    assert "Nothing to review" in texts(review("Ann", view="", aspect="fluency"))
    assert "No open points" in texts(review("Ann", aspect="fluency"))


def test_votes_of_two_browsers_are_hidden_until_both_are_in(
    store: Store, where: tuple[str, str, str], review: Open
) -> None:
    screen, other = press(review("Ann"), "Join the review"), press(review("Bo"), "Join the review")
    shortcuts = {widget.label: widget.proto.shortcut.upper() for widget in other.button if widget.proto.shortcut}
    assert shortcuts == {"For": "F", "Against": "A", "Abstain": "X"}
    press(run(screen), "Against")
    assert "1 of 2 votes are in" in texts(screen)
    assert "1 against" not in texts(screen).replace("*", "")
    press(other, "For")
    for each in (other, run(screen)):
        said = texts(each).replace("*", "")
        assert "1 for: Bo" in said
        assert "1 against: Ann" in said
        assert "votes are in" not in said
    press(screen, "Abstain")  # changed their mind
    assert first(store, where).tally == "1 for, 0 against, 1 abstained"


def test_who_may_label_but_not_review_votes_and_decides_nothing(
    store: Store, where: tuple[str, str, str], review: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pages.ui.people.Actor", lambda name, **given: Actor(name, "annotator"))
    screen = press(press(review("Ann"), "Join the review"), "Against")
    assert [(vote.actor, vote.choice) for vote in first(store, where).votes] == [("Ann", "against")]
    assert "Only a reviewer can record the decision" in texts(screen)
    assert not any(widget.label == "Accept" for widget in screen.button)


def test_an_accepted_change_is_made_the_judge_where_it_was_decided(
    store: Store, where: tuple[str, str, str], review: Open
) -> None:
    screen, point = press(review("Ann"), "Join the review"), first(store, where)
    assert "don't support this decision" in texts(press(screen, "Accept"))
    press(press(screen, "For"), "Accept")  # the vote is the reason
    assert "1 for, 0 against, 0 abstained." in texts(screen)
    assert first(store, where).key != point.key  # the next one is open
    proposal = next(
        each for each in projects.list_proposals(store, point.run_id) if each.criteria.criteria_id == point.subject_id
    )
    assert (proposal.state, proposal.decision.actor) == ("accepted", "Ann")
    made = make_judge(screen, store, where[0], point.subject_id)
    assert (made.made.origin, made.made.actor, made.criteria_ids[0]) == ("review", "Ann", point.subject_id)


def test_two_who_decide_on_one_point(store: Store, where: tuple[str, str, str], review: Open) -> None:
    screen, point = review("Ann"), first(store, where)
    projects.decide_point(store.acting(Actor("Bo")), *where, point.key, verdict="rejected", reason="too long")
    press(write(screen, "Reason", "clear"), "Accept")
    assert "Bo decided on this point while you had it open" in texts(screen)
    assert [made.actor for made in projects.open_review(store, *where).decided] == ["Bo"]


def test_every_point_can_be_decided(store: Store, where: tuple[str, str, str], review: Open) -> None:
    """Changes and items with hostile texts, one after the other, until nothing is open."""
    screen = review("Ann")
    of_items = [bool(point.item_id) for point in projects.open_review(store, *where).points]
    assert set(of_items) == {False, True}
    for of_item in of_items:
        assert any(metric.label == "Raters" for metric in screen.metric) == of_item
        harmless(screen)
        press(write(screen, "Reason", "because"), "Reject")
    assert "No open points" in texts(screen)
    assert len(projects.open_review(store, *where).decided) == len(of_items)
    assert not any(widget.label == "Reject" for widget in screen.button)
