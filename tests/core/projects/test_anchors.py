"""What the levels of a scale mean, and words marked in a text: kept as entries of the log."""

from __future__ import annotations

import pytest

from core import projects
from core.errors import AccessError, ConflictError, UsageError
from core.project_records import Actor
from core.projects.labelling import Highlighted, LabelAspect, LabelPlan, Span, find_span
from core.records import GoldenSet, Item, Scale
from core.store.store import Store

TEXT = "A cat, a dog, a cat 👩‍👩‍👧 and a cow."


@pytest.fixture
def where(store: Store, project: str) -> tuple[str, str]:
    golden = GoldenSet("g", "single", (Item("i0", TEXT, "s0"), Item("i1", "two", "s1")), {})
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


def test_words_are_found_where_they_were_selected() -> None:
    # "A cat, a dog, a cat": the second cat begins at 16
    assert find_span(TEXT, "cat", 0) == Span(2, 5, "cat")
    assert find_span(TEXT, "cat", 15) == Span(16, 19, "cat")
    place = TEXT.index("cow")
    assert find_span(TEXT, "cow", 99) == Span(place, place + 3, "cow")
    for words in ("bird", "  ", ""):
        with pytest.raises(UsageError):
            find_span(TEXT, words, 0)


def test_marked_words_are_kept_by_person_and_item(store: Store, where: tuple[str, str], pass_id: str) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))
    here = (where[0], pass_id)
    with pytest.raises(UsageError, match="aren't a rater"):
        projects.add_highlight(ann, *here, "i0", "cat", form="m0")
    for actor in (ann, bo):
        projects.join_pass(actor, *here)
    projects.add_highlight(ann, *here, "i0", "cat", near=14, form="m1")
    projects.add_highlight(ann, *here, "i0", "cat", near=14, form="m2")  # again: nothing new
    spans = projects.add_highlight(ann, *here, "i0", "a dog", form="m3")
    assert spans == (Span(7, 12, "a dog"), Span(16, 19, "cat"))
    assert projects.my_highlights(ann, *here) == {"i0": spans}
    assert projects.my_highlights(bo, *here) == {}
    with pytest.raises(AccessError):
        projects.item_highlights(bo, *here, "i0")
    assert projects.item_highlights(store, *here, "i0") == {"Ann": spans}
    assert projects.remove_highlight(ann, *here, "i0", spans[0], form="m4") == spans[1:]
    for item_id in ("i1", "i9"):  # not in the pass; nowhere
        with pytest.raises(UsageError, match="isn't in first"):
            projects.add_highlight(ann, *here, item_id, "none", form="m5")
    assert len(store.events.all(where[0], Highlighted)) == 4
