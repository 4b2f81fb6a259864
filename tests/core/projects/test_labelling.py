"""Labelling passes through `core.projects`, as the screens use them."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest

from core import projects
from core.errors import AccessError, UsageError
from core.project_records import Actor
from core.projects.labelling import AnnotationSession, LabelAspect, LabelPlan
from core.projects.misaligned_items import TriageRequest
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.store.store import Store

FIVE, YES = LabelAspect("a", Scale(1, 5, 1.0), "how good"), LabelAspect("b", Scale(0, 1, 1.0))


@dataclass(frozen=True)
class Asked:
    """A pass to begin."""

    project_id: str
    golden_id: str
    plan: LabelPlan

    def begin(self, store: Store, name: str = " first  pass ", limit: int | None = None, **changes: Any) -> str:
        plan = replace(self.plan, **changes)
        return projects.start_pass(store, self.project_id, self.golden_id, name, plan, limit=limit)


@pytest.fixture
def asked(store: Store) -> Asked:
    project = projects.create_project(store, "p")
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k // 2}") for k in range(12))
    golden = GoldenSet("g", "single", items, {"a": AspectLabels("a", Scale(1, 5, 1.0), (3.0,) * 12)})
    golden_id = projects.add_golden(store, project.project_id, golden)
    return Asked(project.project_id, golden_id, LabelPlan((FIVE, YES), n_raters=2, shared=4, order="file"))


@dataclass
class Rater:
    """Somebody in a pass; each label has a form of its own unless named."""

    store: Store
    where: tuple[str, str]

    def join(self) -> AnnotationSession:
        return projects.join_pass(self.store, *self.where)

    def say(self, item_id: str, form: str = "", comment: str = "", **values: float | None) -> None:
        form = form or f"{item_id} {values}"
        projects.save_label(self.store, *self.where, item_id, values, comment=comment, form=form)

    def undo(self, form: str) -> str | None:
        return projects.undo_label(self.store, *self.where, form=form)

    def decide(self, item_id: str, value: float) -> None:
        projects.adjudicate(self.store, *self.where, item_id, aspect="a", value=value, reason="rule 2", form="d")


def rater(store: Store, project_id: str, pass_id: str, name: str, role: Any = "annotator") -> Rater:
    return Rater(store.acting(Actor(name, role)), (project_id, pass_id))


@pytest.fixture
def pass_id(store: Store, asked: Asked) -> str:
    return asked.begin(store)


@pytest.fixture
def ann(store: Store, asked: Asked, pass_id: str) -> Rater:
    return rater(store, asked.project_id, pass_id, "Ann")


@pytest.fixture
def bo(store: Store, asked: Asked, pass_id: str) -> Rater:
    return rater(store, asked.project_id, pass_id, "Bo", "reviewer")


def test_items_come_in_the_order_of_the_file_or_at_random(store: Store, asked: Asked) -> None:
    def order(**changes: Any) -> tuple[int, ...]:
        return projects.get_pass(store, asked.project_id, asked.begin(store, **changes)).plan.positions

    assert order(limit=3) == (0, 1, 2)
    mixed = order(order="random")
    assert sorted(mixed) == list(range(12)) != list(mixed)
    assert order(order="random") == mixed
    with pytest.raises(UsageError, match="must have 1 to"):
        order(name=" ")


def test_two_raters_from_joining_to_a_golden_set(store: Store, ann: Rater, bo: Rater) -> None:
    project = ann.where[0]
    session = ann.join()
    assert session.assigned == ("i0", "i1", "i2", "i3", "i4", "i6", "i8", "i10")
    assert (session.first_open, len(session.done)) == ("i0", 0)
    assert bo.join().assigned == ("i0", "i1", "i2", "i3", "i5", "i7", "i9", "i11")
    for item_id in session.assigned[:3]:
        ann.say(item_id, a=2.0, b=1.0, comment=" so so ")
    ann.say("i3", a=None)  # b is open still
    bo.say("i0", a=5.0, b=1.0)
    again = ann.join()
    assert (again.first_open, again.done) == ("i3", {"i0", "i1", "i2"})
    assert (again.values("i0"), again.comments["i0"]) == ({"a": 2.0, "b": 1.0}, "so so")  # untouched by Bo's

    seen = projects.pass_summary(store, *ann.where)
    assert (seen.done, seen.n_touched) == ({"Ann": (4, 8), "Bo": (1, 8)}, 4)
    assert list(seen.queue) == [("a", "i0")]
    assert [(entry.aspect, entry.n_double, entry.n_labels) for entry in seen.agreement] == [("a", 1, 4), ("b", 1, 4)]
    Rater(store, ann.where).decide("i0", 3.0)
    assert projects.pass_summary(store, *ann.where).queue == {}

    frozen = store.goldens.load(projects.freeze_labels(store, *ann.where, name="", combine="replace"))
    assert frozen.name == "g, labelled"
    assert frozen.aspects["a"].values == (3.0, 2.0, 2.0, *(3.0,) * 9)  # decided, Ann's, Ann's, as before
    assert frozen.aspects["b"].values == (1.0, 1.0, 1.0, *(None,) * 9)
    assert len(store.goldens.all(project)) == 2


@pytest.mark.parametrize(
    ("item_id", "values", "words"),
    [
        ("i0", {"a": 6.0}, "the scale is 1-5"),
        ("i0", {"a": 3.5}, "in steps of 1"),
        ("i0", {"c": 1.0}, "for a, b; got c"),
        ("i99", {"a": 1.0}, "isn't in first pass"),
    ],
)
def test_what_is_no_label(store: Store, ann: Rater, item_id: str, values: dict[str, float], words: str) -> None:
    ann.join()
    with pytest.raises(UsageError, match=words):
        ann.say(item_id, **values)
    assert store.labels.history(*ann.where, "Ann") == []


def test_only_raters_of_a_pass_save_labels_in_it(store: Store, ann: Rater, bo: Rater) -> None:
    ann.join()
    with pytest.raises(UsageError, match="aren't a rater in first pass"):
        bo.say("i0", a=4.0)
    assert store.labels.current(*bo.where) == []


def test_a_session_has_the_newest_labels_and_comments(store: Store, ann: Rater) -> None:
    """And a form sent again counts once."""
    session, chance, choices = ann.join(), random.Random(5), {"a": (1.0, 4.0), "b": (0.0, 1.0)}
    for k in range(60):
        said = {name: chance.choice([None, *choices[name]]) for name in chance.sample(["a", "b"], chance.randint(0, 2))}
        item_id, comment = chance.choice(session.assigned), chance.choice(["", "odd"])
        for _ in range(2):
            ann.say(item_id, f"f{k}", comment, **said)  # the comment alone where nothing is said
        session = ann.join()
    rows = store.labels.current(*ann.where, "Ann")
    for item_id in session.assigned:  # the session says what the newest rows say
        newest = [row for row in rows if row.item_id == item_id]
        assert session.values(item_id) == {row.aspect: row.value for row in newest if row.aspect}
        assert session.comments.get(item_id, "") == (newest[-1].comment if newest else "")


def test_two_who_join_at_once_get_different_items(store: Store, ann: Rater, bo: Rater) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(Rater.join, [ann, bo] * 8))
    assert sorted(projects.get_pass(store, *ann.where).raters) == ["Ann", "Bo"]
    assert ann.join().assigned != bo.join().assigned


def test_whoever_still_rates_does_not_decide(store: Store, asked: Asked, ann: Rater, bo: Rater) -> None:
    for who, value in ((ann, 1.0), (bo, 5.0)):
        who.join()
        who.say("i0", a=value)
    there = rater(store, asked.project_id, asked.begin(store, "other", aspects=(YES,)), "Bo")

    def left(*aspects: str) -> list[tuple[str, int]]:
        rating = projects.still_rating(bo.store, asked.project_id, asked.golden_id, aspects)
        return [(labelling.name, n_open) for labelling, n_open in rating]

    with pytest.raises(AccessError, match="8 items to rate in first pass"):  # b of i0 is open too
        bo.decide("i0", 3.0)
    there.join()
    assert (left("a"), left("b")) == ([("first pass", 8)], [("other", 8), ("first pass", 8)])
    for rating in (bo, there):
        projects.stop_rating(rating.store, *rating.where)
    assert left("a", "b") == []
    bo.decide("i0", 3.0)
    with pytest.raises(UsageError, match="or you have stopped"):
        bo.say("i1", a=1.0)
    assert projects.pass_summary(store, *ann.where).done["Bo"] == (1, 8)


def test_what_triage_called_mislabelled_joins_the_queue(store: Store, asked: Asked, ann: Rater, bo: Rater) -> None:
    for item_id, verdict in (("i3", "label wrong"), ("i4", "judge wrong")):
        said = TriageRequest(asked.golden_id, "a", "c1", verdict, "it says 3")  # type: ignore[arg-type]
        projects.save_triage(ann.store, asked.project_id, item_id, said)
    for who, value in ((ann, 1.0), (bo, 5.0)):
        who.join()
        who.say("i0", a=value)
        who.say("i3", a=2.0)
    seen = projects.pass_summary(store, *ann.where)
    assert list(seen.queue) == [("a", "i0"), ("a", "i3")]
    assert seen.flagged["a", "i3"].note == "it says 3"
    Rater(store, ann.where).decide("i3", 2.0)
    assert list(projects.pass_summary(store, *ann.where).queue) == [("a", "i0")]


def test_undo_takes_labels_back_one_by_one_and_nothing_is_lost(store: Store, ann: Rater, bo: Rater) -> None:
    ann.join()
    assert ann.undo("u0") is None
    ann.say("i0", a=2.0)
    ann.say("i0", a=None)
    ann.say("i1", a=4.0)
    ann.say("i1", "f4", "why")  # no step: it stays

    def now() -> dict[str, Any]:
        fresh = ann.join()
        return {item_id: fresh.values(item_id) for item_id in ("i0", "i1")}

    assert now() == {"i0": {"a": None}, "i1": {"a": 4.0}}
    assert [ann.undo("u1") for _ in range(2)] == ["i1", "i1"]  # sent twice
    assert now() == {"i0": {"a": None}, "i1": {}}
    assert ann.join().comments["i1"] == "why"
    assert ann.undo("u2") == "i0"
    assert now() == {"i0": {}, "i1": {}}
    assert ann.undo("u3") is None
    ann.say("i0", a=5.0)
    assert [label.value for label in store.labels.history(*ann.where, "Ann") if label.item_id == "i0"] == [
        2.0,
        None,
        None,
        5.0,
    ]
    assert bo.undo("u4") is None  # none of Bo's
    assert projects.pass_summary(store, *ann.where).done == {"Ann": (1, 8)}
