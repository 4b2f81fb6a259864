"""The log in words: what each entry is about, never an id; hidden votes stay hidden."""

from __future__ import annotations

import re

from core import projects
from core.people import Actor
from core.projects.misaligned_items import Triage, TriageRequest
from core.projects.run_work import HeldOutAccess
from core.records import Criteria
from core.store.labels import Label
from core.store.log import Action
from core.store.store import Store

HOSTILE = "<b>Be</b> **brief**\nand name the source, the date, the place and everybody in it."
ID = re.compile(r"\b[crjml][0-9a-f]{12}\b|golden:")


def about(store: Store, project: str) -> dict[str, str]:
    """What was done → what it was about."""
    page = store.events.page(project, limit=100)
    return {line.did: line.about for line in projects.log_lines(store, project, page.entries)}


def test_what_entries_are_about_in_words(store: Store, project: str, golden_id: str) -> None:
    ann = store.acting(Actor("Ann"))
    one, none = Criteria(HOSTILE, "a"), Criteria("", "a")
    store.criteria.add(project, golden_id, [one, none])
    projects.add_comment(ann, project, one.criteria_id, "why?")
    projects.set_lock(ann, project, none.criteria_id, locked=True)
    run_id = store.runs.add(project, golden_id, "rescore", "t", "a", "offline", "{}")
    for entry in (
        Triage(golden_id, "a", one.criteria_id, "ambiguous", subject="i3"),
        HeldOutAccess("a", "somebody looked", subject=golden_id),
        Action("started a thing", {}, subject=run_id),
        Action("renamed a judge", {"judge_id": "j" + "0" * 12, "name": "Mine"}),
        Action("edited criteria", {"parent_id": one.criteria_id}, subject="c" + "1" * 12),
        Action("lost a thing", {}, subject="r" + "2" * 12),
    ):
        store.events.add(project, entry, ann.actor)
    said = about(store, project)
    criteria = "criteria “<b>Be</b> **brief** and name the source, the date, the …” for a"
    assert said == {
        "made the project": "“p”",
        "added a golden set": "golden set “g”",
        "commented on criteria": criteria,
        "locked criteria": "no criteria, for a",
        "triaged an item: ambiguous (a)": "item “text 3 <b>”",
        "opened the held-out items: somebody looked (a)": "golden set “g”",
        "started a thing": "scoring of an edit of a",
        "renamed a judge": "“Mine”",
        "edited criteria": criteria,
        "lost a thing": "",
    }
    assert not any(ID.search(words) for words in said.values())


def test_a_vote_shows_in_the_log_when_the_review_shows_it(store: Store, project: str, golden_id: str) -> None:
    ann, bo, where = store.acting(Actor("Ann")), store.acting(Actor("Bo")), (project, golden_id, "a")
    projects.save_triage(ann, project, "i1", TriageRequest(golden_id, "a", "", "ambiguous"))
    (point,) = projects.open_review(store, *where).points
    projects.join_review(bo, *where)
    projects.cast_vote(ann, *where, point.key, choice="against")
    assert about(store, project)["voted; shown once all votes are in"] == f"“{point.title}”"
    assert "voted against (a)" not in about(store, project)
    projects.cast_vote(bo, *where, point.key, choice="for")
    assert {"voted against (a)", "voted for (a)"} <= set(about(store, project))


def test_who_takes_part_how_much_and_in_which_role_last(store: Store, project: str, golden_id: str) -> None:
    for who in (Actor("bo", "annotator"), Actor("bo", "reviewer"), Actor("", "admin")):
        store.events.add(project, Action("did a thing"), who)
    cy = Label("Cy", "i1", "a", 3.0, pass_id="l1")
    store.labels.add(project, golden_id, [cy], form="f1")
    store.labels.add(project, golden_id, [cy], form="f2")
    listed = projects.list_participants(store, project)
    assert [(person.name, person.role, person.n_actions, person.n_labels) for person in listed] == [
        ("", "admin", 2, 0),  # it made the project, too
        ("Ann", "admin", 1, 0),
        ("bo", "reviewer", 2, 0),
        ("Cy", "", 0, 2),
    ]
    assert all(person.last_at.year > 2000 for person in listed)
