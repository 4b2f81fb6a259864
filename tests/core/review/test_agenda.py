"""The questions of a meeting: whole sentences, never fragments; what the votes of a point amount to."""

from __future__ import annotations

import datetime as dt

import pytest

from core.review.agenda import change_question, opening
from core.review.meetings import (
    AgendaItem,
    Choice,
    Decision,
    Meeting,
    MeetingBegun,
    MeetingClosed,
    MeetingEntry,
    ParticipantsSet,
    Point,
    Verdict,
    Vote,
    meetings_from,
    minutes,
)

LONG = "Reward " + "very " * 60 + "long sentences."


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("Be clear.", "Be clear. Be brief.", "Should the criteria also say “Be brief”?"),
        ("- Be clear.\n- Be brief.", "- Be clear.", "Should the criteria no longer say “Be brief”?"),
        ("Be clear. Be short.", "Be clear. Be brief.", "Should the criteria say “Be brief” instead of “Be short”?"),
        ("A b. C d.", "E f. G h. I j.", "Should the criteria be rewritten, 3 sentences new and 2 sentences gone?"),
        ("A b. C d.", "A b.\nG h. I j.\nC d.", "Should the criteria be rewritten, 2 sentences new?"),
        ("A b.\n1. C d.", "C d.\nA b.", "Should the criteria be set out like this?"),
        ("A b.", f"A b. {LONG}", "Should the criteria gain one sentence?"),
        (f"A b. {LONG}", "A b.", "Should one sentence go?"),
        (f"A b. {LONG}", "A b. C d.", "Should one sentence be put differently?"),
        ("", "", "Should the criteria be set out like this?"),
    ],
)
def test_a_change_is_asked_about_in_whole_sentences(old: str, new: str, question: str) -> None:
    assert change_question(old, new) == question


def test_criteria_are_known_by_their_first_sentence() -> None:
    assert opening("2. Reward order. Punish gaps.") == "“Reward order”"
    assert opening(LONG) == opening("") == ""


def meeting(*entries: MeetingEntry) -> Meeting:
    begun = MeetingBegun("m", "g", "a", (AgendaItem("question", "q"),), subject="m1", number=1)
    return meetings_from([begun, *entries])[0]


def votes(**choices: Choice) -> list[Vote]:
    return [Vote(0, name, choice, subject="m1", number=3 + k) for k, (name, choice) in enumerate(choices.items())]


SEATED = ParticipantsSet(("Ann", "Bo"), subject="m1", number=2)


def test_votes_are_shown_once_all_are_in() -> None:
    one = meeting(SEATED, *votes(Ann="against"))
    assert (one.points[0].waiting, one.points[0].revealed) == (("Bo",), False)
    assert "against" not in minutes(one, {})
    assert "1 of 2 are in" in minutes(one, {})
    both = meeting(SEATED, *votes(Ann="against", Bo="for"))
    assert (both.points[0].waiting, both.points[0].revealed) == ((), True)
    assert "1 for, 1 against" in minutes(both, {})
    # without names nobody knows when all are in; a decision and the end show what there is
    assert not meeting(*votes(Ann="for")).points[0].revealed
    decided = Decision(0, "accepted", "r", subject="m1:0", number=9)
    assert meeting(SEATED, *votes(Ann="for"), decided).points[0].revealed
    assert meeting(SEATED, *votes(Ann="for"), MeetingClosed(subject="m1", number=9)).points[0].revealed


@pytest.mark.parametrize(
    ("for_", "against", "waiting", "verdict", "cause"),
    [
        (2, 1, 0, "accepted", ""),
        (1, 2, 0, "rejected", ""),
        (2, 1, 0, "rejected", "the votes say otherwise"),
        (0, 1, 0, "accepted", "the votes say otherwise"),
        (1, 1, 0, "accepted", "the votes are even"),
        (2, 0, 1, "accepted", "not all votes are in"),
        (0, 0, 2, "accepted", "nobody has voted"),
        (0, 0, 2, "postponed", ""),
    ],
)
def test_only_some_decisions_need_a_reason(for_: int, against: int, waiting: int, verdict: Verdict, cause: str) -> None:
    said = [Vote(0, f"f{k}", "for") for k in range(for_)] + [Vote(0, f"a{k}", "against") for k in range(against)]
    point = Point(AgendaItem("question", "q"), tuple(said), None, waiting=("x",) * waiting)
    assert point.wants_reason(verdict) == cause
    taken = Decision(0, "accepted", "r", at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    again = Point(AgendaItem("question", "q"), tuple(said), taken)
    assert (again.wants_reason(verdict) == "it replaces another") == (verdict != "postponed")
