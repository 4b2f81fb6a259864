"""A query is not asked twice of a file that nobody has changed, and never answers with what was true before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from core.people import Actor
from core.projects.criteria import Comment
from core.store.store import Store

ANN = Actor("Ann")


@pytest.fixture
def other(url: str, store: Store) -> Iterator[Store]:
    """The same database as another process has it open."""
    with Store(url) as opened:
        yield opened


@pytest.fixture
def asked(store: Store) -> Iterator[list[str]]:
    """Statements sent by `store`, transactions left out."""
    sent: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT"):
            sent.append(statement)

    engine = store._database.engine
    sa.event.listen(engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(engine, "before_cursor_execute", note)


def test_what_is_asked_again_is_not_sent_again(store: Store, project: str, asked: list[str]) -> None:
    """Postgres does not tell whether anybody has written, so it is asked each time."""
    each = 0 if store._database.is_sqlite else 1
    first = store.events.all(project, Comment)
    n_sent = len(asked)
    assert store.events.all(project, Comment) == first
    assert store.events.all(project_id=project, kind=Comment) == first
    assert len(asked) == n_sent + 2 * each
    assert store.events.all(project, Comment, "c") == []
    assert len(asked) == n_sent + 2 * each + 1


def test_what_anybody_wrote_is_seen_at_once(store: Store, other: Store, project: str) -> None:
    for writer, n in ((store, 1), (other, 2), (store, 3)):
        writer.events.add(project, Comment(f"no. {n}", subject="c"), ANN)
        assert len(store.events.all(project, Comment)) == len(other.events.all(project, Comment)) == n
