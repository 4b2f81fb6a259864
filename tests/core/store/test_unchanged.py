"""A query is not asked twice of a file that nobody has changed, and never answers with what was true before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.people import Actor
from core.projects.criteria import Comment
from core.store.store import Store

ANN = Actor("Ann")


@pytest.fixture
def other(url: str, store: Store) -> Iterator[Store]:
    """The same database as another process has it open."""
    with Store(url) as opened:
        yield opened


def test_what_anybody_wrote_is_seen_at_once(store: Store, other: Store, project: str) -> None:
    for writer, n in ((store, 1), (other, 2), (store, 3)):
        writer.events.add(project, Comment(f"no. {n}", subject="c"), ANN)
        assert len(store.events.all(project, Comment)) == len(other.events.all(project, Comment)) == n
