"""Labels and the log of events: nothing overwritten, nothing doubled, the second of two is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from core.errors import ConflictError
from core.people import LOCAL, Actor
from core.records import GoldenSet
from core.store.rows import NewLabel
from core.store.store import Store

ANN, BO = Actor("Ann \x00", "annotator"), Actor("Bo", "reviewer", "bo@example.org")


@pytest.fixture
def golden_id(store: Store, project: str, golden: GoldenSet) -> str:
    return store.goldens.add(project, golden)


def _said(store: Store, project: str, golden_id: str, rater: str | None = None) -> list[tuple[str, str, float | None]]:
    return [(row.rater, row.item_id, row.value) for row in store.labels.current(project, "l1", rater)]


def test_the_newest_label_of_each_rater_counts_and_the_others_stay(store: Store, project: str, golden_id: str) -> None:
    def save(rater: str, form: str, value: float | None, item_id: str = "a") -> None:
        store.labels.add(
            project, golden_id, "l1", rater, [NewLabel(item_id, "coherence", value, "why \x00")], form=form
        )

    save("Ann", "f1", 2.0)
    save("Bo", "f2", 4.0)
    save("Ann", "f3", 3.0)
    save("Ann", "f4", None, "ä")
    assert _said(store, project, golden_id) == [("Bo", "a", 4.0), ("Ann", "a", 3.0), ("Ann", "ä", None)]
    assert _said(store, project, golden_id, "Ann") == [("Ann", "a", 3.0), ("Ann", "ä", None)]
    history = store.labels.history(project, "l1", "a")
    assert [(row.rater, row.value, row.comment) for row in history] == [
        ("Ann", 2.0, "why \x00"),
        ("Bo", 4.0, "why \x00"),
        ("Ann", 3.0, "why \x00"),
    ]


def test_a_pass_has_its_own_labels_and_those_taken_over(store: Store, project: str, golden_id: str) -> None:
    for pass_id, value in (("l1", 2.0), ("l2", 5.0)):
        store.labels.add(project, golden_id, pass_id, "Ann", [NewLabel("a", "coherence", value, "why")], form=pass_id)
    assert [row.value for row in store.labels.current(project, "l2")] == [5.0]
    assert [(row.pass_id, row.value) for row in store.labels.of_golden(project, golden_id)] == [
        ("l1", 2.0),
        ("l2", 5.0),
    ]
    for _ in range(2):  # sent twice, kept once
        store.labels.take_over(project, golden_id, "l3", store.labels.current(project, "l1"))
    (taken,) = store.labels.history(project, "l3", "a")
    assert (taken.rater, taken.value, taken.comment, taken.taken_from) == ("Ann", 2.0, "why", "l1")


def test_a_form_sent_twice_is_kept_once(store: Store, project: str, golden_id: str) -> None:
    both = [NewLabel("a", "coherence", 2.0), NewLabel("a", "é", 1.0)]
    store.labels.add(project, golden_id, "l1", "Ann", both, form="f1")
    store.labels.add(project, golden_id, "l1", "Ann", [NewLabel("a", "coherence", 5.0)], form="f1")
    assert len(store.labels.history(project, "l1", "a")) == 2
    assert ("Ann", "a", 5.0) not in _said(store, project, golden_id)
    store.labels.add(project, golden_id, "l1", "Bo", both, form="f1")  # another rater's form may have the same id
    assert len(store.labels.history(project, "l1", "a")) == 4


def test_many_raters_at_once_lose_nothing(store: Store, project: str, golden_id: str) -> None:
    def rate(number: int) -> None:
        new = [NewLabel("a", "coherence", float(number % 5))]
        store.labels.add(project, golden_id, "l1", f"rater {number % 8}", new, form=f"form {number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(rate, range(120)))
    assert len(store.labels.history(project, "l1", "a")) == 120
    assert len(_said(store, project, golden_id)) == 8


def test_events_come_back_in_order_with_who_did_them(store: Store, project: str) -> None:
    one = store.events.add(project, "comment", "c1", ANN, {"text": "<b> \x00 🙂", "line": 3})
    two = store.events.add(project, "state", "c1", BO, {"to": "approved"})
    three = store.events.add(project, "comment", "c2", LOCAL)
    assert one < two < three
    assert [row.number for row in store.events.all(project)] == [one, two, three]
    (found,) = store.events.all(project, "comment", "c1")
    assert (found.actor, found.role, dict(found.body)) == (ANN.name, "annotator", {"text": "<b> \x00 🙂", "line": 3})
    assert store.events.all(store.projects.add("other")) == []


def test_the_log_is_read_in_pages_by_person_and_kind(store: Store, project: str) -> None:
    numbers = [store.events.add(project, ("vote", "comment")[k % 2], "x", (BO, LOCAL, BO)[k % 3]) for k in range(7)]
    other = store.projects.add("other")
    store.events.add(other, "state", "x", Actor("Elsewhere"))

    def page(**of: object) -> tuple[list[int], int]:
        rows, n = store.events.page(project, **of)  # type: ignore[arg-type]
        return [numbers.index(row.number) for row in rows], n

    assert page() == ([6, 5, 4, 3, 2, 1, 0], 7)
    assert page(offset=2, limit=3) == ([4, 3, 2], 7)
    assert page(offset=7) == ([], 7)
    assert page(limit=0) == ([], 7)
    assert page(actor="") == ([4, 1], 2)  # every third from the second on was nobody's
    assert page(kind="vote") == ([6, 4, 2, 0], 4)
    assert page(actor="Bo", kind="vote", limit=2) == ([6, 2], 3)
    assert page(actor="Elsewhere") == ([], 0)
    assert store.events.occurring(project) == (["", "Bo"], ["comment", "vote"])
    assert store.events.occurring(store.projects.add("empty")) == ([], [])


def test_raters_are_those_of_the_project(store: Store, project: str, golden_id: str) -> None:
    for rater, form in (("Bo", "f1"), ("Ann", "f2"), ("Bo", "f3")):
        store.labels.add(project, golden_id, "l1", rater, [NewLabel("a", "coherence", 2.0)], form=form)
    assert store.labels.raters(project) == ["Ann", "Bo"]
    assert store.labels.raters(store.projects.add("other")) == []


def test_an_event_sent_twice_is_written_once(store: Store, project: str) -> None:
    first = store.events.add(project, "vote", "x", ANN, {"for": True}, form="f")
    assert store.events.add(project, "vote", "x", ANN, {"for": False}, form="f") == first
    assert [row.body["for"] for row in store.events.all(project)] == [True]


def test_who_decides_on_what_has_changed_is_told(store: Store, project: str) -> None:
    seen = store.events.add(project, "state", "c1", ANN, {"to": "proposed"}, expected=0)
    store.events.add(project, "comment", "c1", ANN, {"text": "another kind is no conflict"})
    store.events.add(project, "state", "c1", BO, {"to": "approved"}, expected=seen)
    with pytest.raises(ConflictError, match="Bo decided") as raised:
        store.events.add(project, "state", "c1", ANN, {"to": "retired"}, expected=seen)
    assert ("approved" in raised.value.theirs, "retired" in raised.value.yours) == (True, True)
    assert [row.body["to"] for row in store.events.all(project, "state")] == ["proposed", "approved"]


def test_of_many_who_decide_at_once_one_does(store: Store, project: str) -> None:
    def decide(number: int) -> bool:
        try:
            store.events.add(project, "state", "c1", Actor(f"p{number}"), {"to": str(number)}, expected=0)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(decide, range(24))) == 1
    assert len(store.events.all(project)) == 1


def test_another_actor_shares_the_database(store: Store, project: str) -> None:
    other = store.acting(ANN)
    assert (store.actor, other.actor) == (LOCAL, ANN)
    assert other.projects.get(project) == store.projects.get(project)


def test_roles_include_those_before_them() -> None:
    assert [ANN.may(role) for role in ("viewer", "annotator", "reviewer", "admin")] == [True, True, False, False]
