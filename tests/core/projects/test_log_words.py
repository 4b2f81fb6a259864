"""The log in words: what each entry is about, never an id; hidden votes stay hidden."""

from __future__ import annotations

from core import projects
from core.people import Actor
from core.projects.misaligned_items import Triage, TriageRequest
from core.records import Criteria
from core.store.log import Action
from core.store.store import Store

HOSTILE = "<b>Be</b> **brief**\nand name the source, the date, the place and everybody in it."


def about(store: Store, project: str) -> dict[str, str]:
    """What was done → what it was about."""
    page = store.events.page(project, limit=100)
    return dict(projects.log_lines(store, project, page.entries))


def test_what_entries_are_about_in_words(store: Store, project: str, golden_id: str) -> None:
    ann = store.acting(Actor("Ann"))
    one = Criteria(HOSTILE, "a")
    store.criteria.add(project, golden_id, [one])
    projects.add_comment(ann, project, one.criteria_id, "why?")
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
        "commented on criteria": criteria,
        "triaged an item: ambiguous (a)": "item “text 3 <b>”",
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
    assert about(store, project)["voted; shown once all votes are in"] == f"“{point.title}”"
    assert "voted against (a)" not in about(store, project)
    projects.cast_vote(bo, *where, point.key, choice="for")
    assert {"voted against (a)", "voted for (a)"} <= set(about(store, project))
