"""The log of events: nothing overwritten, nothing doubled, the second of two is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from core.errors import ConflictError
from core.project_records import Actor
from core.projects.judge_line import VersionDecided
from core.projects.labelling import RaterJoined
from core.projects.review import Vote
from core.store.log import Entry
from core.store.store import Store

ANN, BO = Actor("Ann \x00", "annotator"), Actor("Bo", "reviewer", "bo@example.org")


def test_an_event_sent_twice_is_written_once(store: Store, project: str) -> None:
    vote = Vote("g", "a", "t", "for", subject="x")
    first = store.events.add(project, vote, ANN, form="f")
    assert store.events.add(project, replace(vote, choice="against"), ANN, form="f") == first
    assert [event.choice for event in store.events.all(project, Vote)] == ["for"]


def test_who_decides_on_what_has_changed_is_told(store: Store, project: str) -> None:
    proposed = VersionDecided(1, "proposed", "r", subject="c1")
    seen = store.events.add(project, proposed, ANN, expected=0)
    store.events.add(project, RaterJoined("another kind is no conflict", subject="c1"), ANN)
    store.events.add(project, replace(proposed, state="approved"), BO, expected=seen)
    with pytest.raises(ConflictError, match="Bo recorded a decision"):
        store.events.add(project, replace(proposed, state="retired"), ANN, expected=seen)
    assert [event.state for event in store.events.all(project, VersionDecided)] == ["proposed", "approved"]


def test_of_many_who_decide_at_once_one_does(store: Store, project: str) -> None:
    def decide(number: int) -> bool:
        try:
            change = VersionDecided(1, "proposed", str(number), subject="c1")
            store.events.add(project, change, Actor(f"p{number}"), expected=0)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(decide, range(24))) == 1
    assert len(store.events.all(project, Entry)) == 1
