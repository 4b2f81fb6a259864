"""The review meeting on screen: agenda, votes, clock, decisions and their conflicts, resuming, minutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.people import Actor
from core.review.meetings import AgendaItem, Meeting
from core.store.store import Store
from pages.components import state
from pages.components.meeting_close import as_preview
from pages.components.meeting_table import HUGE, LARGE, type_for
from tests.pages.screen import HOSTILE, button, enter_name, harmless, make_judge, press, run, texts, write

REASON = "The reason, for the minutes"
Open = Callable[..., AppTest]


def the_meeting(store: Store, reviewed: Any, screen: AppTest) -> Meeting:
    return projects.get_meeting(store, reviewed.project_id, screen.query_params["meeting"])


@pytest.fixture
def meeting_id(store: Store, reviewed: Any) -> str:
    """A meeting of a change, a disagreement and a hostile question, with two people."""
    ann = store.acting(Actor("Ann"))
    result = projects.suggest_agenda(store, reviewed.project_id, reviewed.golden_id, "coherence")
    agenda = (
        next(point for point in result if point.kind == "change"),
        next(point for point in result if point.kind == "disagreement"),
        AgendaItem("question", HOSTILE, text=HOSTILE),
    )
    where = {"golden_id": reviewed.golden_id, "aspect": "coherence"}
    meeting_id = projects.start_meeting(ann, reviewed.project_id, HOSTILE[:100], **where, agenda=agenda)
    projects.set_participants(ann, reviewed.project_id, meeting_id, [HOSTILE[:60], "Bo"])
    return meeting_id


def test_beginning_a_meeting_with_what_waits(store: Store, reviewed: Any, open_criteria: Open) -> None:
    screen = open_criteria("Ann", meeting="new")
    boxes = [box.label.replace("\\", "") for box in screen.checkbox]
    assert sum("Do the criteria need a rule" in box for box in boxes) == 1
    assert any(box.startswith("**Should ") for box in boxes)
    harmless(screen)
    losing = projects.losing_changes(store, reviewed.project_id, reviewed.golden_id, "coherence")
    n = sum(box.value for box in screen.checkbox)
    assert n == len(boxes) - len(losing)  # what lowers alignment is left out, and can be put on
    next(box for box in screen.checkbox if box.value).uncheck()
    write(screen, "Who votes: a name a line", f"Ann\n{HOSTILE[:60]}\n\nAnn")
    write(screen, "A question of your own (optional)", "Do we need a second aspect?")
    press(screen, "Begin the meeting")
    meeting = the_meeting(store, reviewed, screen)
    assert len(meeting.points) == n  # one taken out, one question put in
    assert meeting.points[-1].item.kind == "question"
    assert meeting.voters == ("Ann", " ".join(HOSTILE[:60].split()))
    assert meeting.points[0].opened_at is not None
    assert f"Point 1 of {n}" in texts(screen)
    harmless(screen)


def test_a_meeting_stays_open_where_the_browser_still_sends_what_stood_before_it(
    reviewed: Any, open_criteria: Open
) -> None:
    """What is mounted with the meeting may report its value before the browser has heard that the rest is gone."""
    screen = open_criteria("Ann", meeting="new")
    (before,) = [one for one in screen._tree.get_widget_states().widgets if one.id.endswith(state.CRITERIA_VIEW)]
    press(screen, "Begin the meeting")
    meeting_id = screen.query_params["meeting"]
    sent = screen._tree.get_widget_states()
    sent.widgets.append(before)
    screen._run(sent)
    assert not screen.exception
    assert screen.query_params["meeting"] == meeting_id
    assert "Point 1 of" in texts(screen)


def test_a_meeting_about_nothing_or_by_nobody(store: Store, reviewed: Any, open_criteria: Open) -> None:
    screen = open_criteria("Ann", meeting="new", aspect="fluency", golden=reviewed.golden_id)
    assert "Nothing waits for this aspect" in texts(screen)
    assert "something to talk about" in texts(press(screen, "Begin the meeting"))
    screen = open_criteria("", meeting="new", aspect="fluency", golden=reviewed.golden_id)
    press(screen, "Begin the meeting")
    enter_name(screen, "Bo")
    assert "something to talk about" in texts(screen)
    assert projects.list_meetings(store, reviewed.project_id) == []


def test_votes_by_row_and_by_key(store: Store, reviewed: Any, meeting_id: str, open_criteria: Open) -> None:
    screen = open_criteria("Ann", meeting=meeting_id)
    harmless(screen)
    shortcuts = {widget.label: widget.proto.shortcut for widget in screen.button if widget.proto.shortcut}
    assert {"For": "F", "Against": "A", "Abstain": "X"}.items() <= {k: v.upper() for k, v in shortcuts.items()}.items()
    press(screen, "Against")  # counts for the first who has not voted
    press(screen, "For")
    assert "votes are in" not in texts(screen)  # they are shown instead
    first = the_meeting(store, reviewed, screen).voters[0]
    screen.segmented_control(key=f"form_vote_{meeting_id}_0_{first}").set_value("abstain").run()  # changed their mind
    tally = the_meeting(store, reviewed, screen).points[0].tally
    assert tally == {"for": 1, "against": 0, "abstain": 1}


def test_votes_of_two_browsers_are_hidden_until_both_are_in(
    store: Store, reviewed: Any, meeting_id: str, open_criteria: Open
) -> None:
    where = (reviewed.project_id, meeting_id)
    projects.set_participants(store.acting(Actor("Ann")), *where, ["Ann", "Bo"])
    first, second = open_criteria("Ann", meeting=meeting_id), open_criteria("Bo", meeting=meeting_id)
    press(first, "Against")
    assert "1 of 2 votes are in" in texts(first)
    assert "1 against" not in texts(first).replace("*", "")
    assert not any(widget.label == "For" for widget in first.button)  # nothing to press by mistake in Bo's name
    press(second, "For")
    for screen in (second, run(first)):
        said = texts(screen).replace("*", "")
        assert "1 for: Bo" in said
        assert "1 against: Ann" in said
        assert "votes are in" not in said


def test_who_may_label_but_not_review_votes_and_decides_nothing(
    store: Store, reviewed: Any, meeting_id: str, open_criteria: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pages.components.people.Actor", lambda name, **given: Actor(name, "annotator"))
    screen = press(open_criteria("Ann", meeting=meeting_id), "Against")
    votes = projects.get_meeting(store, reviewed.project_id, meeting_id).points[0].votes
    assert [(vote.voter, vote.choice) for vote in votes] == [("Ann", "against")]
    assert "A reviewer enters what is decided" in texts(screen)
    assert not any(widget.label == "Accept the change" for widget in screen.button)
    assert button(screen, "Next").disabled


def test_a_meeting_has_the_screen_to_itself(store: Store, reviewed: Any, meeting_id: str, open_criteria: Open) -> None:
    screen = press(open_criteria("Ann", meeting=meeting_id), "Full screen")
    assert not screen.sidebar
    assert "You are Ann" in texts(screen)
    assert [header.value.startswith("Should ") for header in screen.header] == [True]
    press(screen, "Leave")
    assert screen.query_params["meeting"] == "new"
    assert screen.sidebar
    assert "Going on now" in texts(screen)


def test_an_accepted_change_is_made_the_judge_where_it_was_decided(
    store: Store, reviewed: Any, meeting_id: str, open_criteria: Open
) -> None:
    screen = open_criteria("Ann", meeting=meeting_id)
    item = the_meeting(store, reviewed, screen).points[0].item
    assert "needs a reason" in texts(press(screen, "Accept the change"))
    press(write(screen, REASON, HOSTILE), "Accept the change")
    harmless(screen)
    proposal = next(
        entry for entry in projects.list_proposals(store, item.run_id) if entry.criteria.criteria_id == item.subject_id
    )
    assert (proposal.state, proposal.decided_by) == ("accepted", "Ann")
    made = make_judge(screen, store, reviewed.project_id, item.subject_id)
    assert (made.made.origin, made.made.actor, made.criteria_ids[0]) == ("meeting", "Ann", item.subject_id)


def test_what_was_accepted_leads_on_from_the_end_of_the_meeting(
    store: Store, reviewed: Any, meeting_id: str, open_criteria: Open
) -> None:
    ann, where = store.acting(Actor("Ann")), (reviewed.project_id, meeting_id)
    item = projects.get_meeting(store, *where).points[0].item
    for name in projects.get_meeting(store, *where).voters:
        projects.cast_vote(ann, *where, 0, voter=name, choice="for")
    screen = press(open_criteria("Ann", meeting=meeting_id), "Accept the change")  # the votes are the reason
    assert "2 for, 0 against, 0 abstained." in texts(screen)
    press(screen, "Close the meeting")
    assert "1 of 3 points decided; one text was taken" in texts(screen)
    made = make_judge(screen, store, reviewed.project_id, item.subject_id)
    assert made.made.origin == "meeting"


def test_two_who_decide_on_one_point(store: Store, reviewed: Any, meeting_id: str, open_criteria: Open) -> None:
    screen = open_criteria("Ann", meeting=meeting_id)
    where = (reviewed.project_id, meeting_id)
    projects.decide(store.acting(Actor("Bo")), *where, 0, verdict="rejected", reason="too long")
    press(write(screen, REASON, "clear"), "Accept the change")
    page_text = texts(screen)
    assert "Bo decided on this point while you were looking at it: rejected, too long" in page_text
    decision = projects.get_meeting(store, *where).points[0].decision
    assert decision is not None
    assert (decision.actor, decision.verdict) == ("Bo", "rejected")


def test_what_was_decided_on_the_rounds_screen_is_shown_as_decided(
    store: Store, reviewed: Any, meeting_id: str, open_criteria: Open
) -> None:
    item = projects.get_meeting(store, reviewed.project_id, meeting_id).points[0].item
    bo = store.acting(Actor("Bo"))
    projects.decide_proposal(bo, item.run_id, item.subject_id, accepted=False, reason="says nothing new")
    said = texts(open_criteria("Ann", meeting=meeting_id)).replace("*", "")
    assert "Decided outside this meeting by Bo" in said
    assert "says nothing new" in said


def test_a_reload_and_another_browser_find_the_point_on_the_table(
    store: Store, reviewed: Any, meeting_id: str, open_criteria: Open
) -> None:
    screen = press(open_criteria("Ann", meeting=meeting_id), "Next")
    press(screen, "Against")
    other = open_criteria("Bo", meeting=meeting_id)
    said = texts(other).replace("*", "")
    assert "Point 2 of 3, 0 decided" in said
    assert "1 of 2 votes are in" in said
    assert any(metric.label == "People" for metric in other.metric)  # the label that people gave the item
    press(other, "Next")
    harmless(other)
    assert button(other, "Next").disabled


def test_the_minutes_of_a_closed_meeting(store: Store, reviewed: Any, meeting_id: str, open_criteria: Open) -> None:
    screen = press(open_criteria("Ann", meeting=meeting_id), "Close the meeting")
    assert projects.get_meeting(store, reviewed.project_id, meeting_id).closed_at is not None
    assert not any(widget.label in ("For", "Accept the change", "Close the meeting") for widget in screen.button)
    assert "0 of 3 points decided; no text was taken" in texts(screen)
    assert [widget.label for widget in screen.download_button] == ["Download the minutes"]
    harmless(screen)
    press(press(screen, "Read the points again"), "Next")  # turns the page here; the meeting itself is over
    assert "Point 2 of 3" in texts(screen)
    press(press(screen, "To what was decided"), "Leave")
    assert any(widget.label == "What was decided" for widget in screen.button)
    harmless(screen)


def test_a_link_to_a_meeting_that_is_not_there(open_criteria: Open) -> None:
    page_text = texts(open_criteria("Ann", meeting="m<b>none"))
    assert "There is no meeting 'm<b>none' in this project" in page_text
    assert "Begin a review meeting" in page_text


def test_the_preview_keeps_plain_what_the_program_would_read_as_markup() -> None:
    # "$" and ":" start formulas and colours in Streamlit's Markdown alone; an address must not become a link
    shown = as_preview("cost $x$ :red and http://evil.example, www.evil.example, a@b.c")
    assert "\\$x\\$ \\:red" in shown
    for link in ("://", "www.", "a@b"):
        assert link not in shown


@pytest.mark.parametrize(("length", "mark"), [(HUGE, "## "), (HUGE + 1, "### "), (LARGE + 1, "")])
def test_the_shorter_the_larger(length: int, mark: str) -> None:
    assert type_for("x" * length) == mark
