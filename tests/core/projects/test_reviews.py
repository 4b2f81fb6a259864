"""Criteria as reviewed documents and triage, through `core.projects`."""

from __future__ import annotations

from typing import Any

import pytest

from core import projects
from core.errors import ConflictError, UsageError
from core.people import Actor
from core.projects.misaligned_items import TriageRequest
from core.records import Criteria
from core.store.store import Store

ONE = Criteria("- Be clear.\n- Be <b>brief</b>.", "a")


@pytest.fixture
def criteria_id(store: Store, project: str, golden_id: str) -> str:
    store.criteria.add(project, golden_id, [ONE])
    return ONE.criteria_id


def test_comments_by_line(store: Store, project: str, criteria_id: str) -> None:
    ann, where = store.acting(Actor("Ann", "annotator")), (project, criteria_id)
    for _ in range(2):  # sent twice
        projects.add_comment(ann, *where, " why <b>? ", line=2, form="f")
    projects.add_comment(ann, *where, "all good")
    first, second = projects.comments_on(store, *where)
    assert (first.line, first.text, first.actor, second.line) == (2, "why <b>?", "Ann", None)
    for who in ("Bo", "Cy"):
        projects.settle_comment(store.acting(Actor(who)), *where, first.number)
    assert [comment.settled_by for comment in projects.comments_on(store, *where)] == ["Bo", ""]
    for text, line, words in ((" ", None, "1 to 5,000"), ("x" * 5001, None, "5,001"), ("x", 3, "have 2 lines")):
        with pytest.raises(UsageError, match=words):
            projects.add_comment(ann, *where, text, line=line)


def test_triage_keeps_what_is_not_said_anew_and_undo_says_again_what_was_said(
    store: Store, project: str, golden_id: str
) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))

    def save(store: Store, item_id: str = "i1", *, aspect: str = "a", seen: int | None = None, **said: Any) -> int:
        return projects.save_triage(store, project, item_id, TriageRequest(golden_id, aspect, "c1", **said), seen=seen)

    def found(item_id: str = "i1") -> tuple[str, bool, str, str]:
        triage = projects.list_triage(store, project, golden_id, "a")[item_id]
        return triage.verdict, triage.picked, triage.note, triage.actor

    save(ann, picked=True)
    assert found() == ("", True, "", "Ann")
    assert projects.open_review(store, project, golden_id, "a").points[0].text == "Ann picked it for the next round."
    first = save(ann, verdict="ambiguous", note=" <i>rule</i> ")
    save(ann, aspect="b", verdict="judge wrong")
    second = save(bo, verdict="label wrong")
    assert found() == ("label wrong", True, "<i>rule</i>", "Bo")
    with pytest.raises(UsageError, match="'nonsense' came"):
        save(ann, verdict="nonsense")
    where: Any = {"project_id": project, "golden_id": golden_id, "aspect": "a"}
    assert projects.undo_triage(bo, **where, item_id="i1", number=second) > second
    assert found() == ("ambiguous", True, "<i>rule</i>", "Bo")
    with pytest.raises(ConflictError, match="Bo has said something of this item since; nothing was undone"):
        projects.undo_triage(ann, **where, item_id="i1", number=first)
    only = save(ann, "i2", verdict="ambiguous")
    projects.undo_triage(ann, **where, item_id="i2", number=only)
    assert "i2" not in projects.list_triage(store, project, golden_id, "a"), "nothing was said of it before"
    save(bo, "i2", verdict="ambiguous", seen=0)


def test_several_items_at_once_leave_out_what_somebody_else_has_changed(
    store: Store, project: str, golden_id: str
) -> None:
    ann, bo = (store.acting(Actor(name, "annotator")) for name in ("Ann", "Bo"))
    projects.save_triage(bo, project, "i2", TriageRequest(golden_id, "a", "c1", "label wrong", "see page 2"))
    request = TriageRequest(golden_id, "a", "c1", "judge wrong")
    numbers, refused = projects.triage_items(ann, project, {"i1": 0, "i2": 0}, request, form="one")
    assert list(numbers) == ["i1"]
    assert "Bo said 'label wrong' of this item while you were looking" in refused["i2"]
    triage = projects.list_triage(store, project, golden_id, "a")
    assert {item_id: found.verdict for item_id, found in triage.items()} == {"i1": "judge wrong", "i2": "label wrong"}
