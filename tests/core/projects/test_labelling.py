"""Labelling passes through `core.projects`, as the screens use them."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from core import projects
from core.errors import AccessError, UsageError
from core.people import Actor
from core.projects.labelling import (
    LabelAspect,
    LabelsFrozen,
    Order,
    OthersSaid,
    PassRequest,
    SavedLabel,
)
from core.projects.misaligned_items import TriageRequest
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.store.store import Store

FIVE, YES = LabelAspect("a", Scale(1, 5, 1.0), "how good"), LabelAspect("b", Scale(0, 1, 1.0))


@pytest.fixture
def request_(store: Store) -> PassRequest:
    project = projects.create_project(store, "p")
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k // 2}") for k in range(12))
    golden = GoldenSet("g", "single", items, {"a": AspectLabels("a", Scale(1, 5, 1.0), (3.0,) * 12)})
    golden_id = projects.add_golden(store, project.project_id, golden)
    return PassRequest(project.project_id, golden_id, " first  pass ", (FIVE, YES), 2, 4, 1, order="file")


@pytest.fixture
def pass_id(store: Store, request_: PassRequest) -> str:
    return projects.start_pass(store, request_)


def test_items_come_in_the_order_of_the_file_or_of_a_seed(store: Store, request_: PassRequest) -> None:
    def order(**changes: object) -> tuple[int, ...]:
        pass_id = projects.start_pass(store, replace(request_, **changes))  # type: ignore[arg-type]
        return projects.get_pass(store, request_.project_id, pass_id).plan.positions

    assert order(limit=3) == (0, 1, 2)
    one, two = order(order="random", seed=1), order(order="random", seed=2)
    assert sorted(one) == sorted(two) == list(range(12))
    assert one != two
    assert order(order="random", seed=1) == one
    with pytest.raises(UsageError, match="one of random, file, disagreement, unsure"):
        order(order="alphabetical")
    with pytest.raises(UsageError, match="a name of 1 to"):
        order(name=" ")


def test_two_raters_from_joining_to_a_golden_set(store: Store, request_: PassRequest, pass_id: str) -> None:
    project = request_.project_id
    ann, bo = store.acting(Actor("Ann", "annotator")), store.acting(Actor("Bo", "annotator"))
    session = projects.join_pass(ann, project, pass_id)
    assert session.assigned == ("i0", "i1", "i2", "i3", "i4", "i6", "i8", "i10")
    assert (session.first_open, session.n_done, session.seconds_left) == ("i0", 0, None)
    assert projects.join_pass(bo, project, pass_id).assigned == ("i0", "i1", "i2", "i3", "i5", "i7", "i9", "i11")
    for number, item_id in enumerate(session.assigned[:3]):
        projects.save_label(ann, project, pass_id, item_id, {"a": 2.0, "b": 1.0}, comment=" so so ", form=f"f{number}")
    projects.save_label(ann, project, pass_id, "i3", {"a": None}, form="half")  # b is open still
    again = projects.join_pass(ann, project, pass_id)
    assert (again.first_open, again.n_done) == ("i3", 3)
    assert again.saved["i0"].values == {"a": 2.0, "b": 1.0}
    assert again.saved["i0"].comment == "so so"
    assert again.seconds_left is not None
    projects.save_label(bo, project, pass_id, "i0", {"a": 5.0, "b": 1.0}, form="f0")
    assert projects.join_pass(ann, project, pass_id).saved["i0"].values["a"] == 2.0  # untouched by Bo's

    seen = projects.pass_summary(store, project, pass_id)
    assert (seen.done, seen.n_items, seen.n_touched) == ({"Ann": 4, "Bo": 1}, 12, 4)
    assert [(disagreement.item_id, disagreement.aspect, disagreement.steps_apart) for disagreement in seen.queue] == [
        ("i0", "a", 3.0)
    ]
    assert [(entry.aspect, entry.n_double, entry.n_labels) for entry in seen.agreement] == [("a", 1, 4), ("b", 1, 4)]
    projects.adjudicate(store, project, pass_id, "i0", aspect="a", value=3.0, reason="rule 2", form="d1")
    assert projects.pass_summary(store, project, pass_id).queue == ()

    replaced = projects.replaced_labels(store, project, pass_id, "replace")
    assert [(label.item_id, label.before, label.after) for label in replaced] == [("i1", 3.0, 2.0), ("i2", 3.0, 2.0)]
    frozen_id = projects.freeze_labels(store, project, pass_id, name="", combine="replace")
    frozen = store.goldens.load(frozen_id)
    assert frozen.name == "g, labelled"
    assert frozen.aspects["a"].values == (3.0, 2.0, 2.0, *(3.0,) * 9)  # decided, Ann's, Ann's, as before
    assert frozen.aspects["b"].values == (1.0, 1.0, 1.0, *(None,) * 9)
    assert len(store.goldens.all(project)) == 2


def test_a_form_sent_again_and_a_change_of_mind(store: Store, request_: PassRequest, pass_id: str) -> None:
    ann = store.acting(Actor("Ann", "annotator"))
    where = (request_.project_id, pass_id)
    projects.join_pass(ann, *where)
    for value, form in ((1.0, "f1"), (1.0, "f1"), (4.0, "f2"), (5.0, "f1")):
        projects.save_label(ann, *where, "i0", {"a": value, "b": 0.0}, form=form)
    assert projects.join_pass(ann, *where).saved["i0"].values["a"] == 4.0
    assert len(store.labels.history(*where, "i0")) == 4  # two forms, two aspects


@pytest.mark.parametrize(
    ("item_id", "values", "comment", "words"),
    [
        ("i0", {"a": 6.0}, "", "the scale is 1-5"),
        ("i0", {"a": 3.5}, "", "in steps of 1"),
        ("i0", {"c": 1.0}, "", "a, b; c came"),
        ("i0", {}, "", "nothing came"),
        ("i99", {"a": 1.0}, "", "no part of first pass"),
        ("i0", {"a": 1.0}, "x" * 5001, "5,000 characters"),
    ],
)
def test_what_is_no_label(
    store: Store, request_: PassRequest, pass_id: str, item_id: str, values: dict[str, float], comment: str, words: str
) -> None:
    ann = store.acting(Actor("Ann", "annotator"))
    with pytest.raises(UsageError, match=words):
        projects.save_label(ann, request_.project_id, pass_id, item_id, values, comment=comment, form="f")
    assert store.labels.history(request_.project_id, pass_id, "i0") == []


def test_a_session_brought_up_press_by_press_is_the_session_read_whole(
    store: Store, request_: PassRequest, pass_id: str
) -> None:
    ann, where = store.acting(Actor("Ann", "annotator")), (request_.project_id, pass_id)
    session = projects.join_pass(ann, *where)
    chance, choices = random.Random(5), {"a": (1.0, 4.0), "b": (0.0, 1.0)}
    for k in range(60):
        said = {name: chance.choice([None, *choices[name]]) for name in chance.sample(["a", "b"], chance.randint(0, 2))}
        item_id, comment = chance.choice(session.assigned), chance.choice(["", "odd"])
        if said:
            projects.save_label(ann, *where, item_id, said, comment=comment, form=f"f{k}")
        else:
            projects.save_comment(ann, *where, item_id, comment, form=f"f{k}")
        session = projects.join_pass(ann, *where, seen=session)
    assert session == projects.join_pass(ann, *where)
    rows = store.labels.current(*where, "Ann")
    for item_id in session.assigned:  # the session says what the newest rows say
        newest = [row for row in rows if row.item_id == item_id]
        assert session.said(item_id).values == {row.aspect: row.value for row in newest if row.aspect}
        assert session.said(item_id).comment == (newest[-1].comment if newest else "")


def test_only_a_pass_that_is_not_blind_shows_what_others_said(
    store: Store, request_: PassRequest, pass_id: str
) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))
    project = request_.project_id
    with pytest.raises(AccessError, match="blind"):
        projects.others_said(ann, project, pass_id, "i0")
    seen = projects.start_pass(store, replace(request_, blind=False))
    projects.save_label(bo, project, seen, "i0", {"a": 4.0}, form="b1")
    projects.save_label(bo, project, seen, "i0", {"a": 2.0}, form="b2")
    for values in ({}, {"a": 1.0}):  # nothing said yet, then one of two aspects
        for aspect, value in values.items():
            projects.save_label(ann, project, seen, "i0", {aspect: value}, form="a1")
        with pytest.raises(AccessError, match="once you have rated it"):
            projects.others_said(ann, project, seen, "i0")
    projects.save_label(ann, project, seen, "i0", {"b": 1.0}, form="a2")
    assert projects.others_said(ann, project, seen, "i0") == OthersSaid((("Bo", "a", 2.0),), ())
    golden = store.goldens.load(request_.golden_id)
    values = np.full(len(golden.items), np.nan)
    values[0] = 3.5
    judge = JudgeScores(name="a judge", kind="imported", aspect="a", values=values)
    projects.add_judge(store, project, request_.golden_id, judge)
    assert projects.others_said(ann, project, seen, "i0") == OthersSaid((("Bo", "a", 2.0),), (("a judge", "a", 3.5),))
    projects.save_label(ann, project, seen, "i1", {"a": 1.0, "b": 0.0}, form="a3")
    assert projects.others_said(ann, project, seen, "i1").judges == ()
    projects.undo_label(ann, project, seen, form="u1")
    with pytest.raises(AccessError, match="once you have rated it"):
        projects.others_said(ann, project, seen, "i1")


def test_two_who_join_at_once_get_different_items(store: Store, request_: PassRequest, pass_id: str) -> None:
    def join(name: str) -> tuple[str, ...]:
        return projects.join_pass(store.acting(Actor(name, "annotator")), request_.project_id, pass_id).assigned

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(join, ["Ann", "Bo"] * 8))
    assert sorted(projects.get_pass(store, request_.project_id, pass_id).raters) == ["Ann", "Bo"]
    assert join("Ann") != join("Bo")


def test_first_where_the_judge_is_least_sure(store: Store, request_: PassRequest) -> None:
    request = replace(request_, order="unsure")
    with pytest.raises(UsageError, match="Calibrate a judge first"):
        projects.start_pass(store, request)


def test_what_the_labels_of_a_pass_would_tell(store: Store, request_: PassRequest, pass_id: str) -> None:
    golden = store.goldens.get(request_.golden_id)
    plan = projects.label_planning(store, request_.project_id, golden, "a", n_items=golden.n_items, n_ratings=24)
    assert (plan.n_items, plan.n_sources) == (golden.n_items, golden.n_sources)
    assert plan.n_raters == round(24 / golden.n_items)
    assert "assuming" in plan.words
    for k, rater in ((0, "Ann"), (0, "Bo"), (1, "Ann"), (1, "Bo")):
        projects.save_label(store.acting(Actor(rater)), request_.project_id, pass_id, f"i{k}", {"a": 2.0}, form=f"{k}")
    now = projects.pass_summary(store, request_.project_id, pass_id)
    sources = {item.source_id for item in store.goldens.load(request_.golden_id).items if item.item_id in ("i0", "i1")}
    assert (now.n_touched, now.n_sources) == (2, len(sources))
    told = projects.label_planning(store, request_.project_id, golden, "a", n_items=4, n_ratings=8, n_sources=3)
    assert told.words.startswith("4 labelled items of 3 sources")
    assert (
        projects.label_planning(store, request_.project_id, golden, "a", n_items=10**6, n_ratings=1).n_items
        == golden.n_items
    )


def test_a_comment_alone_and_a_half_answered_item_are_found_again(
    store: Store, request_: PassRequest, pass_id: str
) -> None:
    ann, where = store.acting(Actor("Ann", "annotator")), (request_.project_id, pass_id)
    projects.join_pass(ann, *where)
    projects.save_comment(ann, *where, "i0", "odd", form="f1")
    projects.save_label(ann, *where, "i1", {"a": 2.0}, comment="first", form="f2")
    projects.save_comment(ann, *where, "i1", "second", form="f3")
    session = projects.join_pass(ann, *where)
    assert (session.first_open, session.n_done) == ("i0", 0)
    assert (session.said("i0").values, session.said("i0").comment) == ({}, "odd")
    assert (session.said("i1").values, session.said("i1").comment) == ({"a": 2.0}, "second")
    assert session.said("i2") == SavedLabel({}, "")
    projects.save_comment(ann, *where, "i0", " ", form="f4")  # taken back
    assert projects.join_pass(ann, *where).said("i0") == SavedLabel({}, "")
    assert projects.pass_summary(store, *where).done == {"Ann": 1}  # a comment is no label


def _rate(store: Store, who: str, where: tuple[str, str], values: dict[str, float]) -> None:
    ann = store.acting(Actor(who, "annotator"))
    projects.join_pass(ann, *where)
    for item_id, value in values.items():
        projects.save_label(ann, *where, item_id, {"a": value}, comment="mine", form=f"{who}{where[1]}{item_id}{value}")


def test_whoever_still_rates_does_not_decide(store: Store, request_: PassRequest, pass_id: str) -> None:
    where, bo = (request_.project_id, pass_id), store.acting(Actor("Bo", "reviewer"))
    _rate(store, "Ann", where, {"i0": 1.0})
    _rate(store, "Bo", where, {"i0": 5.0})
    other = (request_.project_id, projects.start_pass(store, replace(request_, name="other", aspects=(YES,))))

    def left(aspects: list[str]) -> list[tuple[str, int]]:
        rating = projects.still_rating(bo, request_.project_id, request_.golden_id, aspects)
        return [(one.name, one.n_open) for one in rating]

    said = {"aspect": "a", "value": 3.0, "reason": "rule 2", "form": "d"}
    with pytest.raises(AccessError, match="8 items left to rate in first pass"):  # b of i0 is open too
        projects.adjudicate(bo, *where, "i0", **said)  # type: ignore[arg-type]
    projects.join_pass(bo, *other)
    assert (left(["a"]), left(["b"])) == ([("first pass", 8)], [("other", 8), ("first pass", 8)])
    projects.stop_rating(bo, *where)
    projects.stop_rating(bo, *other)
    assert left(["a", "b"]) == []
    projects.adjudicate(bo, *where, "i0", **said)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="stopped rating in first pass"):
        projects.save_label(bo, *where, "i1", {"a": 1.0}, form="late")
    assert projects.pass_summary(store, *where).done["Bo"] == 1
    with pytest.raises(UsageError, match="Cy does not rate"):
        projects.stop_rating(store.acting(Actor("Cy", "reviewer")), *where)


def test_what_triage_called_mislabelled_joins_the_queue(store: Store, request_: PassRequest, pass_id: str) -> None:
    where = (request_.project_id, pass_id)
    for item_id, verdict in (("i3", "label wrong"), ("i4", "judge wrong")):
        said = TriageRequest(request_.golden_id, "a", "c1", verdict, "it says 3")  # type: ignore[arg-type]
        projects.save_triage(store.acting(Actor("Tri", "annotator")), request_.project_id, item_id, said)
    for name, value in (("Ann", 1.0), ("Bo", 5.0)):
        actor = store.acting(Actor(name, "annotator"))
        projects.join_pass(actor, *where)
        for item_id in ("i0", "i3"):
            projects.save_label(
                actor, *where, item_id, {"a": value if item_id == "i0" else 2.0}, form=f"{name}{item_id}"
            )
    seen = projects.pass_summary(store, *where)
    assert [(disagreement.item_id, disagreement.steps_apart) for disagreement in seen.queue] == [
        ("i0", 4.0),
        ("i3", 0.0),
    ]
    assert [label.value for label in seen.queue[1].labels] == [2.0, 2.0]
    assert seen.flagged["a", "i3"].note == "it says 3"
    assert seen.assigned == {"Ann": 8, "Bo": 8}
    projects.adjudicate(store, *where, "i3", aspect="a", value=2.0, reason="they are right", form="d")
    assert [disagreement.item_id for disagreement in projects.pass_summary(store, *where).queue] == ["i0"]
    with pytest.raises(UsageError, match="no part of the golden set"):
        projects.adjudicate(store, *where, "gone", aspect="a", value=2.0, reason="x", form="e")


def test_undo_takes_labels_back_one_by_one_and_nothing_is_lost(
    store: Store, request_: PassRequest, pass_id: str
) -> None:
    where, ann = (request_.project_id, pass_id), store.acting(Actor("Ann", "annotator"))
    projects.join_pass(ann, *where)
    assert projects.undo_label(ann, *where, form="u0") is None
    projects.save_label(ann, *where, "i0", {"a": 2.0}, form="f1")
    projects.save_label(ann, *where, "i0", {"a": None}, form="f2")
    seen = projects.join_pass(ann, *where)
    projects.save_label(ann, *where, "i1", {"a": 4.0}, form="f3")
    projects.save_comment(ann, *where, "i1", "why", form="f4")  # no step: it stays

    def now() -> dict[str, object]:
        fresh = projects.join_pass(ann, *where)
        assert projects.join_pass(ann, *where, seen=seen).given == fresh.given
        return {item_id: dict(said.values) for item_id, said in fresh.given.items()}

    assert now() == {"i0": {"a": None}, "i1": {"a": 4.0}}
    assert [projects.undo_label(ann, *where, form="u1") for _ in range(2)] == ["i1", "i1"]  # sent twice
    assert now() == {"i0": {"a": None}, "i1": {}}
    assert projects.join_pass(ann, *where).said("i1").comment == "why"
    assert [label.item_id for label in store.labels.current(*where) if label.aspect] == ["i0"]
    assert projects.undo_label(ann, *where, form="u2") == "i0"
    assert now()["i0"] == {"a": 2.0}
    assert projects.undo_label(ann, *where, form="u3") == "i0"
    assert now() == {"i0": {}, "i1": {}}
    assert projects.undo_label(ann, *where, form="u4") is None
    projects.save_label(ann, *where, "i0", {"a": 5.0}, form="f5")
    assert [label.value for label in store.labels.history(*where, "i0")] == [2.0, None, 2.0, None, 5.0]
    assert projects.undo_label(store.acting(Actor("Bo", "annotator")), *where, form="u5") is None  # none of Bo's
    assert projects.pass_summary(store, *where).done == {"Ann": 1}


def test_a_golden_set_says_in_which_pass_its_single_ratings_were_given(store: Store) -> None:
    """i0 and i1 are rated in the first pass, i2 and i3 in the second, by the same two people."""
    project = projects.create_project(store, "p").project_id
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k}") for k in range(4))
    golden_id = projects.add_golden(store, project, GoldenSet("g", "single", items, {}))

    def frozen(golden_id: str, name: str, values: dict[str, float]) -> str:
        pass_id = projects.start_pass(store, PassRequest(project, golden_id, name, (FIVE,), 2, 4, 1, order="file"))
        for rater in ("Ann", "Bo"):
            _rate(store, rater, (project, pass_id), values)
        return projects.freeze_labels(store, project, pass_id, name=name)

    once = frozen(golden_id, "first", {"i0": 1.0, "i1": 5.0})
    twice = frozen(once, "second", {"i2": 2.0, "i3": 4.0})
    named = [projects.rated_in(store, project, which, "a") for which in (golden_id, once, twice)]
    assert named == ["", "first", "second"]
    assert store.goldens.load(twice).aspects["a"].values == (1.0, 5.0, 2.0, 4.0)
    assert {rating.item_id for rating in store.goldens.load(twice).ratings} == {"i2", "i3"}
    assert projects.judges_shown(store, project, twice, "a").rated_in == "second"
    assert [line.did for line in projects.log_lines(store, project, store.events.all(project, LabelsFrozen))] == [
        f"froze the labels of {name}" for name in ("first", "second")
    ]


def half_labelled(store: Store) -> PassRequest:
    """40 items by two systems, 20 with labels in the file, and two judges who part on the last items most."""
    project = projects.create_project(store, "p").project_id
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k}", "xy"[k % 2]) for k in range(40))
    known = tuple(float(1 + k % 5) if k < 20 else None for k in range(40))
    golden = GoldenSet("g", "single", items, {"a": AspectLabels("a", Scale(1, 5, 1.0), known)})
    golden_id = projects.add_golden(store, project, golden)
    for name, sign in (("up", 1.0), ("down", -1.0)):
        scores = np.where(np.arange(40) < 20, np.arange(40) % 5, sign * np.arange(40)) + 1.0
        projects.add_judge(store, project, golden_id, JudgeScores(name, "imported", "a", scores))
    return PassRequest(project, golden_id, "pass", (FIVE,), 1, 5, 1, limit=5)


@pytest.mark.parametrize(("order", "n_picked"), [("disagreement", 5), ("random", 0)])
def test_labels_that_were_picked_are_known_as_no_random_draw(store: Store, order: Order, n_picked: int) -> None:
    request = half_labelled(store)
    ann = store.acting(Actor("Ann"))
    pass_id = projects.start_pass(ann, replace(request, order=order))
    session = projects.join_pass(ann, request.project_id, pass_id)
    for k, item_id in enumerate(session.assigned):
        projects.save_label(ann, request.project_id, pass_id, item_id, {"a": 4.5 - 4.5 % 1}, form=f"f{k}")
    frozen = projects.freeze_labels(ann, request.project_id, pass_id, name="n", combine="replace")
    picked = projects.picked_labels(store, request.project_id, frozen, "a")
    golden = store.goldens.load(frozen)
    changed = {k for k in get_positions(golden, session.assigned) if golden.labels("a")[k] == 4.0}
    assert len(picked) == n_picked
    assert set(picked) <= changed
    assert projects.picked_labels(store, request.project_id, request.golden_id, "a") == ()
    # what is frozen next keeps what was known of the labels before
    later = projects.start_pass(ann, replace(request, golden_id=frozen, order="file", limit=1))
    projects.join_pass(ann, request.project_id, later)
    projects.save_label(ann, request.project_id, later, "i0", {"a": 2.0}, form="late")
    again = projects.freeze_labels(ann, request.project_id, later, name="m", combine="replace")
    assert projects.picked_labels(store, request.project_id, again, "a") == picked


def get_positions(golden: GoldenSet, item_ids: tuple[str, ...]) -> list[int]:
    return [golden.item_ids.index(item_id) for item_id in item_ids]
