"""A Postgres that is away for a moment: what was asked for is done once, and nobody is told of a fault."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from core.errors import LostConnectionError, StoreError
from core.project_records import Actor
from core.projects.labelling import RaterJoined
from core.store import database as patience
from core.store.database import translated_errors
from core.store.log import Entry
from core.store.store import Store
from tests.going_away import GoingAway

ANN = Actor("Ann")
pytestmark = pytest.mark.postgres


@pytest.fixture
def server(postgres_url: str) -> Iterator[GoingAway]:
    with GoingAway(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def away(server: GoingAway) -> Iterator[Store]:
    """A store behind the proxy, reached once."""
    with Store(server.url) as opened:
        yield opened


class Clock:
    """Time that passes only where somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def events(store: Store, project: str) -> list[str]:
    return [event.subject for event in store.events.all(project, Entry)]


def test_reads_and_writes_wait_for_a_server_that_is_away(
    server: GoingAway, away: Store, caplog: pytest.LogCaptureFixture
) -> None:
    project = away.projects.add("p")
    back = server.be_away_meanwhile(1.5)
    with caplog.at_level(logging.WARNING, "concord"), ThreadPoolExecutor() as pool:
        reads = [pool.submit(away.projects.get, project) for _ in range(4)]
        writes = [pool.submit(away.events.add, project, RaterJoined("", subject=f"c{k}"), ANN) for k in range(12)]
        assert [read.result().name for read in reads] == ["p"] * 4
        assert len({write.result() for write in writes}) == 12
    back.join()
    assert sorted(events(away, project)) == sorted(f"c{k}" for k in range(12))
    assert "the database doesn't respond; waiting up to" in caplog.text


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_done_once(server: GoingAway, away: Store, lost: str) -> None:
    """Before: the server undoes it, so it is done again.  After: it stands, so it is not."""
    project = away.projects.add("p")
    server.lose_commit = lost  # type: ignore[assignment]
    number = away.events.add(project, RaterJoined("", subject="c"), ANN)
    assert not server.lose_commit, "no commit was lost"
    assert [event.number for event in away.events.all(project, Entry)] == [number]


def test_where_nobody_can_tell_it_says_so(
    server: GoingAway, away: Store, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    project = away.projects.add("p")
    monkeypatch.setattr(patience, "PATIENCE", 0.5)
    told: list[str] = []
    away.call_when_waiting(lambda: told.append("waiting") or server.go())  # type: ignore[func-returns-value]
    server.lose_commit = "after"
    with pytest.raises(StoreError, match="doesn't know whether the save succeeded") as raised:
        away.events.add(project, RaterJoined("", subject="c"), ANN)
    assert not isinstance(raised.value, LostConnectionError)
    assert told == ["waiting"]
    with Store(postgres_url) as there:
        assert events(there, project) == ["c"]


def test_connections_that_died_meanwhile_are_made_anew_without_a_word(server: GoingAway, away: Store) -> None:
    project = away.projects.add("p")
    told: list[str] = []
    away.call_when_waiting(lambda: told.append("waiting"))
    with ThreadPoolExecutor(4) as pool, away.projects._db.read():
        list(pool.map(lambda _: away.projects.get(project), range(8)))  # several connections
    server.be_away(0.1)
    assert away.projects.get(project).name == "p"
    assert not told


def test_patience_ends_once(server: GoingAway, away: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(patience, "time", clock)
    server.go()
    with pytest.raises(LostConnectionError, match="can't reach the database") as raised:
        away.runs.requeue("r1")  # a look and a write in one: the minute is not spent twice
    assert patience.PATIENCE / 2 < clock.now <= patience.PATIENCE
    assert "127.0.0.1" not in str(raised.value)


@pytest.mark.parametrize(
    "said",
    [
        'FATAL:  password authentication failed for user "concord"',
        'FATAL:  no pg_hba.conf entry for host "10.9.0.1", user "concord"',
        "fe_sendauth: no password supplied",
    ],
)
def test_a_server_that_lets_nobody_in_is_not_waited_for(said: str) -> None:
    with pytest.raises(StoreError, match="refused the connection") as raised, translated_errors():
        raise sa.exc.OperationalError("", {}, Exception(f'server at "10.9.0.3", port 5432 failed: {said}'))
    assert not isinstance(raised.value, LostConnectionError)
