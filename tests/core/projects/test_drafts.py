"""What people type and have not saved: whose it is, what is refused, and that saving tells who was faster."""

from __future__ import annotations

import pytest

from core import projects
from core.errors import ConflictError, UsageError
from core.people import Actor
from core.projects.criteria import LONGEST_TEXT
from core.records import Criteria, Provenance
from core.store.store import Store

PARENT = Criteria("Reward order.", "a", Provenance("draft"))
SUBJECT = f"criteria:{PARENT.criteria_id}"


@pytest.fixture
def project_id(store: Store, project: str, golden_id: str) -> str:
    store.criteria.add(project, golden_id, [PARENT])
    return project


def test_a_draft_is_its_authors_alone(store: Store, project_id: str) -> None:
    ann, bo = store.acting(Actor("Ann")), store.acting(Actor("Bo"))
    kept = projects.keep_draft(ann, project_id, SUBJECT, " Reward links.\n", base="h1")
    assert (kept.author, kept.text, kept.base) == ("Ann", " Reward links.\n", "h1")
    assert projects.draft_of(ann, project_id, SUBJECT) == kept
    assert projects.draft_of(bo, project_id, SUBJECT) is None
    assert projects.draft_of(store, project_id, SUBJECT) is None
    projects.drop_draft(bo, project_id, SUBJECT)
    assert projects.draft_of(ann, project_id, SUBJECT) == kept
    projects.drop_draft(ann, project_id, SUBJECT)
    assert projects.draft_of(ann, project_id, SUBJECT) is None


def test_a_text_that_could_not_be_saved_is_not_kept(store: Store, project_id: str) -> None:
    longest = "x" * LONGEST_TEXT
    assert projects.keep_draft(store, project_id, SUBJECT, f"  {longest}\n").text == f"  {longest}\n"
    for subject, text, words in (
        (SUBJECT, longest + "x", "may have 20,000 characters; this one has 20,001"),
        ("", "x", "in 1 to 200 characters"),
        ("s" * 201, "x", "in 1 to 200 characters"),
    ):
        with pytest.raises(UsageError, match=words):
            projects.keep_draft(store, project_id, subject, text)
    assert projects.draft_of(store, project_id, SUBJECT) is not None  # the last one that could be kept stays
    kept = projects.keep_draft(store, project_id, SUBJECT, "<b>\x00 🙂 half \ud83d one")
    assert kept.text == "<b>\x00 🙂 half ? one"  # what cannot be sent back is replaced
    assert projects.draft_of(store, project_id, SUBJECT) == kept


def test_a_draft_from_an_older_head_is_told_when_it_is_saved(store: Store, project_id: str) -> None:
    ann, bo = store.acting(Actor("Ann")), store.acting(Actor("Bo"))
    began = ann.criteria.get(project_id, PARENT.criteria_id).head
    projects.keep_draft(ann, project_id, SUBJECT, "Ann's.", base=began)
    projects.save_edit(bo, project_id, PARENT.criteria_id, "Bo's.", expected_head=began)
    draft = projects.draft_of(ann, project_id, SUBJECT)
    assert draft is not None
    with pytest.raises(ConflictError) as clash:
        projects.save_edit(ann, project_id, PARENT.criteria_id, draft.text, expected_head=draft.base)
    assert (clash.value.theirs, clash.value.yours) == ("Bo's.", "Ann's.")
    assert projects.draft_of(ann, project_id, SUBJECT) == draft  # still there
