"""Which worker takes a run: the rule alone, then two real workers, one of them with a GPU it is told it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.jobs.queue import takes, waiting_words
from core.kept import Worker


def worker(name: str, capability: str, seconds_ago: float) -> Worker:
    """A worker whose last sign of life was so long ago."""
    return Worker(name, "here", 1, datetime.now(UTC), seconds_ago, capability)


@pytest.mark.parametrize(
    ("workers", "taken"),
    [
        ([], True),
        ([worker("c", "cpu", 1)], True),
        ([worker("c", "cpu", 1), worker("g", "cuda", 1)], False),
        ([worker("g", "gpu", 59)], False),  # lost, but it may come back within the minute
        ([worker("g", "mps", 61)], True),
        ([replace(worker("g", "cuda", 1), silent_for=None)], True),  # signed off
    ],
)
def test_a_run_that_wants_a_gpu_waits_where_one_is_expected(workers: list[Worker], taken: bool) -> None:
    assert takes("cpu", "gpu", workers, 60) == taken
    assert takes("cpu", "any", workers, 60)
    for capability in ("cuda", "mps", "gpu"):
        assert takes(capability, "gpu", workers, 60)
        assert takes(capability, "any", workers, 60)


def test_people_are_told_what_a_run_waits_for() -> None:
    there, lost = worker("g1", "cuda", 2), worker("g2", "cuda", 20)
    assert waiting_words("gpu", [lost, there], 60) == "waiting for a GPU worker: g1 (cuda) takes it when free"
    assert waiting_words("gpu", [lost], 60) == "waiting for a GPU worker: g2 is lost; any worker takes the run in 40 s"
    assert waiting_words("gpu", [worker("c", "cpu", 0)], 60) == waiting_words("any", [there]) == "waiting for a worker"


# ── real workers ─────────────────────────────────────────────────────────────────────────────────────────────


ON_SQLITE = pytest.mark.parametrize("toys", ["sqlite"], indirect=True)


def alive(toys: Any, *names: str) -> bool:
    return set(names) <= {row.worker_id for row in toys.store.workers.alive()}


@pytest.mark.slow
def test_no_cpu_worker_takes_a_gpu_run_while_a_gpu_worker_is_there(toys: Any, until: Callable[..., None]) -> None:
    """The GPU worker does one such run at a time; the second waits for it although the other worker is idle.

    Alone, it takes runs that want nothing as well.
    """
    plain = toys.start_worker("plain")
    toys.start_worker("fast", "gpu")
    until(lambda: alive(toys, "plain", "fast"))
    runs = [toys.add_run(steps=2, seconds=0.5, wants="gpu") for _ in range(2)]
    assert [toys.wait_for(run_id, "done").worker_id for run_id in runs] == ["fast", "fast"]
    first, second = sorted((toys.get(run_id) for run_id in runs), key=lambda run: run.started_at)
    assert second.started_at >= first.finished_at
    assert {row.worker_id: row.capability for row in toys.store.workers.all()} == {"plain": "cpu", "fast": "gpu"}
    plain.kill()
    run_id = toys.add_run(steps=1)
    assert toys.wait_for(run_id, "done").worker_id == "fast"


@ON_SQLITE
@pytest.mark.slow
def test_without_a_gpu_worker_nobody_waits(toys: Any) -> None:
    toys.start_worker("plain")
    run_id = toys.add_run(steps=2, wants="gpu")
    run = toys.wait_for(run_id, "done")
    assert (run.worker_id, run.attempt) == ("plain", 1)


@ON_SQLITE
@pytest.mark.slow
def test_a_killed_gpu_workers_runs_go_on_elsewhere_after_the_patience(toys: Any, until: Callable[..., None]) -> None:
    """One run it had begun and one that only waited for it; what was stored is not done again."""
    patience = 20.0  # over the 15 s after which a silent worker counts as lost
    toys.start_worker("plain", "cpu", patience)
    fast = toys.start_worker("fast", "gpu", patience)
    until(lambda: alive(toys, "plain", "fast"))
    begun, waiting = (toys.add_run(steps=4, seconds=0.5, wants="gpu") for _ in range(2))
    until(lambda: max(toys.n_kept(run_id) for run_id in (begun, waiting)) >= 2)
    fast.kill()
    fast.wait()
    if toys.get(waiting).status == "running":
        begun, waiting = waiting, begun
    stored = toys.n_kept(begun)
    silent_since = toys.age("fast", 18.0)
    for run_id, attempt in ((begun, 2), (waiting, 1)):
        run = toys.wait_for(run_id, "done", seconds=90)
        assert (run.worker_id, run.attempt) == ("plain", attempt)
        assert toys.result(run_id) == sum(k**2 + 1 for k in range(4))
        assert run.finished_at > silent_since + timedelta(seconds=patience)
    assert toys.get(waiting).started_at > silent_since + timedelta(seconds=patience)
    assert all(toys.times_done(begun)[k] == 1 for k in range(stored))
    assert set(toys.times_done(waiting).values()) == {1}


@ON_SQLITE
@pytest.mark.slow
def test_a_gpu_worker_that_comes_up_gets_the_runs_that_nobody_began(toys: Any, until: Callable[..., None]) -> None:
    """A worker holds one model at a time: the second run waits, and a GPU comes up meanwhile."""
    toys.start_worker("plain")
    until(lambda: alive(toys, "plain"))
    first = toys.add_run(steps=1, seconds=6, wants="gpu")
    until(lambda: toys.get(first).status == "running")
    second = toys.add_run(steps=1, wants="gpu")
    toys.start_worker("fast", "gpu")
    assert toys.wait_for(second, "done").worker_id == "fast"
    assert toys.wait_for(first, "done").worker_id == "plain"
