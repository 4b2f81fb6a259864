"""Review: what is open, votes that stay hidden until everybody has voted, decisions with their reasons."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from core import projects
from core.errors import AccessError, ConflictError, UsageError
from core.project_records import Actor
from core.projects.labelling import TriageVerdict
from core.projects.misaligned_items import TriageRequest
from core.projects.review import Choice, Point, Verdict, Vote
from core.records import Criteria
from core.store.store import Store

CLEAR = Criteria("- Be clear.", "a")


@pytest.fixture
def where(store: Store, project: str, golden_id: str) -> tuple[str, str, str]:
    """Project, golden set and aspect, with criteria."""
    store.criteria.add(project, golden_id, [CLEAR])
    return project, golden_id, "a"


@pytest.fixture
def point(store: Store, where: tuple[str, str, str]) -> Point:
    """An edit that waits for the review."""
    projects.save_edit(store, where[0], CLEAR.criteria_id, "- Be clear.\n- Be <b>brief</b>.", "Ann", note="plainer")
    (point,) = projects.open_review(store, *where).points
    return point


def acting(store: Store, name: str) -> Store:
    return store.acting(Actor(name, "reviewer"))


def test_votes_stay_hidden_until_everybody_who_joined_has_voted(
    store: Store, where: tuple[str, str, str], point: Point
) -> None:
    assert point.title == "Replace “Be clear” with “Be <b>brief</b>”?"
    assert (point.subject_id != CLEAR.criteria_id, point.parent_id) == (True, CLEAR.criteria_id)
    assert point.text == "Ann edited the criteria: plainer"
    for name in ("Ann", "Bo", "Ann"):
        projects.join_review(acting(store, name), *where)
    projects.cast_vote(acting(store, "Ann"), *where, point.key, choice="against")
    now = projects.open_review(store, *where)
    assert (now.joined, now.points[0].waiting, now.points[0].revealed) == (("Ann", "Bo"), ("Bo",), False)
    (vote,) = store.events.all(where[0], Vote)
    assert projects.hidden_votes(store, where[0]) == {vote.number}
    projects.cast_vote(acting(store, "Ann"), *where, point.key, choice="for")  # changed their mind
    moved = projects.review_moved(store, where[0])
    projects.cast_vote(acting(store, "Bo"), *where, point.key, choice="abstain")
    assert projects.review_moved(store, where[0]) > moved
    (shown,) = projects.open_review(store, *where).points
    assert shown.revealed
    assert shown.tally == "1 for, 0 against, 1 abstained"
    assert projects.hidden_votes(store, where[0]) == set()
    projects.join_review(acting(store, "Cy"), *where)  # who joins later is waited for as well
    assert not projects.open_review(store, *where).points[0].revealed
    projects.leave_review(acting(store, "Cy"), *where)
    assert projects.open_review(store, *where).points[0].revealed


def test_what_is_accepted_rejected_and_postponed(store: Store, where: tuple[str, str, str], point: Point) -> None:
    ann = acting(store, "Ann")
    projects.save_edit(store, where[0], CLEAR.criteria_id, "Be kind.", "Bo")
    keys = [each.key for each in projects.open_review(store, *where).points]
    assert len(keys) == 2
    projects.cast_vote(ann, *where, keys[0], choice="for")
    projects.decide_point(ann, *where, keys[0], verdict="postponed")
    again = projects.open_review(store, *where).points
    assert [each.key for each in again] == keys[::-1]  # it comes last, and its votes begin anew
    assert (again[1].votes, again[1].seen > 0) == ((), True)
    projects.cast_vote(ann, *where, keys[1], choice="for")
    projects.decide_point(ann, *where, keys[1], verdict="accepted")  # the votes are reason enough
    projects.decide_point(ann, *where, keys[0], verdict="rejected", reason=" too long ", seen=again[1].seen)
    after = projects.open_review(store, *where)
    assert after.points == ()
    assert [(made.verdict, made.reason, made.tally) for made in after.decided] == [
        ("rejected", "too long", ""),
        ("accepted", "1 for, 0 against, 0 abstained.", "1 for, 0 against, 0 abstained"),
        ("postponed", "1 for, 0 against, 0 abstained.", "1 for, 0 against, 0 abstained"),
    ]
    assert after.decided[1].criteria_id == keys[1].partition(":")[2]


def test_the_second_of_two_who_decide_is_told(store: Store, where: tuple[str, str, str], point: Point) -> None:
    ann, bo = acting(store, "Ann"), acting(store, "Bo")
    projects.decide_point(bo, *where, point.key, verdict="postponed")
    with pytest.raises(ConflictError, match="Bo recorded a decision while you had this open"):
        projects.decide_point(ann, *where, point.key, verdict="accepted", reason="clear", seen=point.seen)
    now = projects.open_review(store, *where).points[0]
    projects.decide_point(bo, *where, point.key, verdict="rejected", reason="too long", seen=now.seen)
    with pytest.raises(ConflictError, match=r"Bo decided on this point .* rejected: too long"):
        projects.decide_point(ann, *where, point.key, verdict="accepted", reason="clear", seen=now.seen)
    with pytest.raises(ConflictError, match="Bo decided"):
        projects.cast_vote(ann, *where, point.key, choice="for")
    assert [made.verdict for made in projects.open_review(store, *where).decided] == ["rejected", "postponed"]


@pytest.mark.parametrize(
    ("n_for", "n_against", "n_waiting", "verdict", "needs"),
    [
        (0, 0, 0, "accepted", True),
        (1, 0, 1, "accepted", True),
        (1, 1, 0, "rejected", True),
        (1, 2, 0, "accepted", True),
        (2, 1, 0, "accepted", False),
        (0, 0, 2, "postponed", False),
    ],
)
def test_only_some_decisions_need_a_reason(
    n_for: int, n_against: int, n_waiting: int, verdict: Verdict, needs: bool
) -> None:
    choices: list[Choice] = ["for"] * n_for + ["against"] * n_against
    votes = tuple(Vote("g", "a", "t", choice, actor=f"p{k}") for k, choice in enumerate(choices))
    assert Point("k", "t", "", "c1", votes=votes, waiting=("Cy",) * n_waiting).needs_reason(verdict) == needs


def test_what_cannot_be_done(store: Store, where: tuple[str, str, str], point: Point) -> None:
    for key, reason, words in (
        (point.key, " ", "Enter a reason"),
        ("edit:c-none", "r", "no longer open"),
    ):
        with pytest.raises(UsageError, match=words):
            projects.decide_point(store, *where, key, verdict="accepted", reason=reason)
    for act in (projects.join_review, projects.leave_review):
        with pytest.raises(AccessError, match="name first"):
            act(store.acting(Actor("", at_screen=True)), *where)
    with pytest.raises(UsageError, match="name first"):
        projects.cast_vote(store.acting(Actor("")), *where, point.key, choice="for")
    assert projects.open_review(store, *where).decided == ()


def test_triaged_items_are_open_until_decided_and_open_again_when_triaged_anew(
    store: Store, where: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, (project, golden_id, aspect) = acting(store, "Ann"), where

    def triage(item_id: str, verdict: TriageVerdict, *, picked: bool = False) -> None:
        said = TriageRequest(golden_id, aspect, "c1", verdict, "<b>", picked=picked)
        projects.save_triage(ann, project, item_id, said)

    triage("i1", "judge wrong", picked=True)
    triage("i2", "judge wrong")  # seen, and nobody wants to talk about it
    triage("i3", "ambiguous")
    points = projects.open_review(store, *where).points
    assert [point.item_id for point in points] == ["i1", "i3"]
    assert (points[1].title, points[1].text) == (
        "The criteria need a rule for this text.",
        "Ann marked this item “ambiguous”: <b>",
    )
    assert projects.open_review(store, project, golden_id, "b").points == ()
    with monkeypatch.context() as patched:  # a version with other criteria is current: its faults are others
        line = SimpleNamespace(current=SimpleNamespace(criteria_ids=("c2",)), followed=(), versions=())
        patched.setattr("core.projects.review.judge_line", lambda *_: line)
        assert [point.item_id for point in projects.open_review(store, *where).points] == ["i3"]
    projects.decide_point(ann, *where, points[0].key, verdict="rejected", reason="the label is right")
    assert [point.item_id for point in projects.open_review(store, *where).points] == ["i3"]
    triage("i1", "ambiguous")
    assert [point.item_id for point in projects.open_review(store, *where).points] == [
        "i3",
        "i1",
    ]  # last, and its votes begin anew
