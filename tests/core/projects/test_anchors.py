"""What the levels of a scale mean: entries of the log."""

from __future__ import annotations

import pytest

from core import projects
from core.errors import ConflictError, UsageError
from core.people import Actor
from core.projects.labelling import Anchor, AnchorsSet, LabelAspect, LabelPlan
from core.records import GoldenSet, Item, Scale
from core.store.store import Store


@pytest.fixture
def where(store: Store, project: str) -> tuple[str, str]:
    golden = GoldenSet("g", "single", (Item("i0", "one", "s0"), Item("i1", "two", "s1")), {})
    return project, projects.add_golden(store, project, golden)


@pytest.fixture
def pass_id(store: Store, where: tuple[str, str]) -> str:
    plan = LabelPlan((LabelAspect("a", Scale(1, 5, 1.0)),), n_raters=1, order="file")
    return projects.start_pass(store, *where, "first", plan, limit=1)


def test_anchors_are_what_was_written_last_of_an_aspect(store: Store, where: tuple[str, str]) -> None:
    first = projects.set_anchors(store, *where, "a", {1: " poor \n text ", 3: "", 5: "<b>good</b>"}, expected=0)
    assert first.texts == {1.0: "poor text", 5.0: "<b>good</b>"}
    with pytest.raises(ConflictError):
        projects.set_anchors(store, *where, "a", {1: "mine"}, expected=0)
    projects.set_anchors(store, *where, "b", {0: "no"}, expected=first.number)
    assert projects.get_anchors(store, *where, "a").texts == first.texts
    assert projects.set_anchors(store, *where, "a", {}).texts == {}


def test_anchors_follow_into_the_golden_set_that_a_pass_is_frozen_into(
    store: Store, where: tuple[str, str], pass_id: str
) -> None:
    project, ann = where[0], store.acting(Actor("Ann"))
    projects.set_anchors(ann, *where, "a", {1: "poor", 5: "good"})
    projects.join_pass(ann, project, pass_id)
    projects.save_label(ann, project, pass_id, "i0", {"a": 4.0}, form="f")
    frozen = projects.freeze_labels(ann, project, pass_id, name="frozen")
    kept = projects.get_anchors(store, project, frozen, "a")
    assert (kept.texts, kept.actor) == ({1.0: "poor", 5.0: "good"}, "Ann")
    projects.set_anchors(store, project, frozen, "a", {1: "", 5: ""}, expected=kept.number)
    assert projects.get_anchors(store, project, frozen, "a").texts == {}  # taken away here, and only here
    assert projects.get_anchors(store, *where, "a").texts == kept.texts


@pytest.mark.parametrize("anchors", [[(1.0, "x" * 201)], [(1.0, "a"), (1.0, "b")], [(float("nan"), "a")]])
def test_anchors_that_make_no_sense_are_refused(anchors: list[tuple[float, str]]) -> None:
    with pytest.raises(UsageError):
        AnchorsSet("a", tuple(Anchor(*anchor) for anchor in anchors))
