"""The log: every kind of entry is read back as it was written, reads as a sentence, and is about something in words."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from core import projects
from core.project_records import Actor
from core.projects.judge_line import VersionDecided, VersionMade, VersionMeasured
from core.projects.labelling import (
    Adjudicated,
    Anchor,
    AnchorsSet,
    Highlighted,
    LabelAspect,
    LabelPass,
    LabelPlan,
    LabelsFrozen,
    RaterJoined,
    RaterStopped,
    Span,
    Triage,
)
from core.projects.misaligned_items import TriageRequest
from core.projects.project_judges import FusionKept
from core.projects.review import PointDecided, ReviewJoined, ReviewLeft, Vote
from core.projects.start_and_resume import HeldOutAccess
from core.records import Alignment, Criteria, Interval, Scale
from core.store.database import events
from core.store.log import ENTRY_KINDS, Action, Entry
from core.store.store import Store

ODD = "<b>{0.subject}</b> {} % \x00 'x'; -- 🙂"
FOUND = Alignment("spearman", "sample", 0.1 + 0.2, 9, interval=Interval(0.1, 0.5))
PLAN = LabelPlan((LabelAspect("a", Scale(1, 5, 1.0), ODD),), (2, 0, 1), n_raters=2)
ENTRIES: tuple[tuple[Entry, str], ...] = (
    (LabelPass(ODD, "g", PLAN), f"started the labelling pass {ODD}"),
    (RaterJoined("p"), "joined p"),
    (RaterStopped("p"), "stopped rating in p"),
    (Adjudicated("i", "a", 2.5, "r"), "decided on a label (a)"),
    (LabelsFrozen(ODD, "p1"), f"froze the labels of {ODD}"),
    (Triage("g", "a", "c1", "judge wrong", ODD, True), "triaged an item: judge wrong (a)"),
    (HeldOutAccess("a", "a calibration ended"), "used the held-out items: a calibration ended (a)"),
    (VersionMade("r1", ("c1", "c2"), "edit", 2, ODD), f"created a new version of the judge ({ODD})"),
    (VersionMeasured(3, "r1", "g", FOUND), f"measured version 3 ({ODD})"),
    (VersionDecided(3, "approved", ODD), f"approved version 3 ({ODD})"),
    (ReviewJoined("g", "a"), "joined the review (a)"),
    (ReviewLeft("g", "a"), "left the review (a)"),
    (Vote("g", "a", ODD, "abstain"), "voted abstain (a)"),
    (PointDecided("g", "a", ODD, "postponed", "r", "1 for, 0 against", "i", "c"), "decided: postponed (a)"),
    (FusionKept("g", "a", ({"name": "j"},), {"weights": [0.1, 2]}, {"fused": None}), "saved a fusion as a judge (a)"),
    (AnchorsSet("a", (Anchor(1.0, ODD), Anchor(5.0, "good"))), "described the scale's levels (a)"),
    (Highlighted("i0", (Span(2, 5, "cat"),)), "highlighted words in an item"),
    (Action("added a judge", {"aspect": "a", "note": ODD}), "added a judge (a)"),
)  # fmt: skip


def test_every_kind_is_here() -> None:
    assert {type(entry) for entry, _ in ENTRIES} == set(ENTRY_KINDS.values())
    assert all(len(name) <= 40 for name in ENTRY_KINDS)  # the column's width


@pytest.mark.parametrize(("entry", "sentence"), ENTRIES, ids=lambda one: getattr(one, "kind", ""))
def test_an_entry_is_read_back_as_it_was_written(store: Store, entry: Entry, sentence: str) -> None:
    project_id = store.projects.add("p")
    number = store.events.add(project_id, replace(entry, subject=ODD), store.actor)
    (found,) = store.events.all(project_id, type(entry))
    assert found == replace(entry, subject=ODD, number=number, project_id=project_id, role="admin", at=found.at)
    assert abs((found.at - datetime.now(UTC)).total_seconds()) < 60
    assert found.sentence == sentence
    json.dumps(dict(found.body))  # what the log's file holds of it


def test_an_entry_of_a_kind_that_earlier_versions_wrote_still_reads_as_a_sentence(store: Store) -> None:
    project_id = store.projects.add("p")
    store.events.add(project_id, Action("commented", subject="c1"), store.actor)
    with store.events._db.write() as transaction:
        transaction.execute(sa.update(events).values(kind="lock", body='{"locked": true}'))
    (entry,) = store.events.page(project_id)
    assert (entry.sentence, entry.subject, entry.body["locked"]) == ("locked or unlocked criteria", "c1", True)


HOSTILE = "<b>Be</b> **brief**\nand name the source, the date, the place and everybody in it."


def about(store: Store, project: str) -> dict[str, str]:
    """What was done → what it was about."""
    return dict(projects.log_lines(store, project, store.events.page(project)))


def test_what_entries_are_about_in_words(store: Store, project: str, golden_id: str) -> None:
    ann = store.acting(Actor("Ann"))
    one = Criteria(HOSTILE, "a")
    store.criteria.add(project, golden_id, [one])
    run_id = store.runs.add(project, golden_id, "rescore", "t", "a", "offline", "{}")
    for entry in (
        Triage(golden_id, "a", one.criteria_id, "ambiguous", subject="i3"),
        Action("started a thing", {}, subject=run_id),
        Action("edited criteria", {"parent_id": one.criteria_id}, subject="c" + "1" * 12),
        Action("lost a thing", {}, subject="r" + "2" * 12),
    ):
        store.events.add(project, entry, ann.actor)
    criteria = "criteria “<b>Be</b> **brief** and name the source, the date, the …” for a"
    assert about(store, project) == {
        "made the project": "“p”",
        "added a golden set": "golden set “g”",
        "triaged an item: ambiguous (a)": "",
        "started a thing": "scoring of an edit of a",
        "edited criteria": criteria,
        "lost a thing": "",  # and no id ever shows
    }


def test_a_vote_shows_in_the_log_when_the_review_shows_it(store: Store, project: str, golden_id: str) -> None:
    ann, bo, where = store.acting(Actor("Ann")), store.acting(Actor("Bo")), (project, golden_id, "a")
    projects.save_triage(ann, project, "i1", TriageRequest(golden_id, "a", "", "ambiguous"))
    (point,) = projects.open_review(store, *where).points
    projects.join_review(bo, *where)
    projects.cast_vote(ann, *where, point.key, choice="against")
    assert about(store, project)["voted (the vote is hidden until everyone has voted)"] == f"“{point.title}”"
    assert "voted against (a)" not in about(store, project)
    projects.cast_vote(bo, *where, point.key, choice="for")
    assert {"voted against (a)", "voted for (a)"} <= set(about(store, project))
