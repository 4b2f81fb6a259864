"""The queue with runs that know nothing of judges; the expected total of n steps is the sum of k² + 1."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.going_away import GoingAway

ON_SQLITE = pytest.mark.parametrize("toys", ["sqlite"], indirect=True)
POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
ON_POSTGRES = pytest.mark.parametrize("toys", [POSTGRES], indirect=True)


def total(steps: int) -> int:
    return sum(k**2 + 1 for k in range(steps))


@pytest.mark.slow
def test_killed_at_random_moments_the_run_ends_as_if_undisturbed(toys: Any, until: Callable[..., None]) -> None:
    """No step that was kept is worked on again, every kill repeats at most the step it hit, and nothing that is shown
    runs backwards."""
    run_id = toys.add_run(steps=10, seconds=0.2, held=9, until="go")  # not done before the last kill
    moments = random.Random(7)
    kills = 0
    seen: list[int] = []

    def look(attempt: int, least: int) -> bool:
        run = toys.get(run_id)
        seen.append(run.calls)
        return run.attempt == attempt and toys.n_kept(run_id) >= min(least, 9)

    for _ in range(3):
        process = toys.start_worker()
        wanted = (1 + kills, toys.n_kept(run_id) + 1)
        until(lambda wanted=wanted: look(*wanted))
        time.sleep(moments.uniform(0.0, 0.4))
        look(*wanted)
        stored = toys.n_kept(run_id)
        done_then = toys.times_done(run_id)
        process.kill()
        process.wait()
        kills += 1
        assert all(done_then[k] >= 1 for k in range(stored))
    toys.start_worker()
    until(lambda: look(1 + kills, 9))
    toys.let_go()
    run = toys.wait_for(run_id, "done")
    seen.append(run.calls)
    assert seen == sorted(seen)  # a run that is taken up again goes through its snapshots again; they are held back
    assert seen[-1] >= 35
    assert toys.result(run_id) == total(10)
    assert run.attempt == 1 + kills  # each time the worker started, it took up what it had left
    assert set(toys.times_done(run_id)) == set(range(10))
    assert sum(toys.times_done(run_id).values()) <= 10 + kills


@pytest.mark.slow
@ON_SQLITE
def test_a_lost_workers_run_is_taken_over(toys: Any, until: Callable[..., None]) -> None:
    run_id = toys.add_run(steps=6, held=2, until="go")
    first = toys.start_worker("first")
    until(lambda: toys.n_kept(run_id) == 2)
    first.kill()
    first.wait()
    toys.store.workers.unregister("first")  # as if its last sign of life were long ago
    toys.let_go()
    toys.start_worker("second")
    run = toys.wait_for(run_id, "done")
    assert (run.worker_id, run.attempt) == ("second", 2)
    assert toys.result(run_id) == total(6)
    assert toys.times_done(run_id) == dict.fromkeys(range(6), 1)


@pytest.mark.slow
@ON_POSTGRES
def test_a_database_that_is_away_for_seconds_costs_no_run(toys: Any, until: Callable[..., None]) -> None:
    with GoingAway(toys.settings.database_url) as server:
        toys.settings = replace(toys.settings, database_url=server.url)
        run_id = toys.add_run(steps=5, held=2, until="go")
        worker = toys.start_worker()
        until(lambda: toys.n_kept(run_id) == 2)
        back = server.be_away_meanwhile(4.5)
        toys.let_go()  # the work goes on while there is nowhere to keep it
        back.join()
        run = toys.wait_for(run_id, "done", "failed")
        assert (run.status, run.error, run.attempt) == ("done", "", 1)
        assert toys.result(run_id) == total(5)
        assert set(toys.times_done(run_id).values()) == {1}
        after = toys.add_run(steps=1)  # and the queue is served as before
        assert toys.wait_for(after, "done", "failed").status == "done"
        assert worker.poll() is None
    worker.kill()


@pytest.mark.slow
@ON_POSTGRES
def test_a_worker_that_slept_through_a_takeover_does_no_harm(toys: Any, until: Callable[..., None]) -> None:
    run_id = toys.add_run(steps=6, held=2, until="go")
    first = toys.start_worker("first")
    until(lambda: toys.n_kept(run_id) == 2)
    os.kill(first.pid, signal.SIGSTOP)
    toys.store.workers.unregister("first")
    toys.start_worker("second")
    until(lambda: toys.get(run_id).worker_id == "second")
    os.kill(first.pid, signal.SIGCONT)
    toys.let_go()
    run = toys.wait_for(run_id, "done")
    assert (run.worker_id, run.attempt) == ("second", 2)
    assert toys.result(run_id) == total(6)
    another = toys.add_run(steps=1)
    toys.wait_for(another, "done")
    after = toys.get(run_id)
    assert (after.status, after.worker_id, after.version) == ("done", "second", run.version)
    assert first.poll() is None


@pytest.mark.slow
@ON_SQLITE
@pytest.mark.parametrize("reports", [True, False])
def test_cancel_and_resume(toys: Any, until: Callable[..., None], reports: bool) -> None:
    """The cancel shows while the step goes on; one that never reports progress is left behind, and keeps nothing."""
    run_id = toys.add_run(steps=2, reports=reports, held=1, until="go")
    toys.start_worker()
    until(lambda: toys.n_kept(run_id) == 1)
    toys.store.runs.request_cancel(run_id)
    toys.wait_for(run_id, "cancelled")
    assert toys.n_kept(run_id) == 1
    toys.store.runs.requeue(run_id)
    until(lambda: toys.get(run_id).attempt == 2)
    toys.let_go()
    toys.wait_for(run_id, "done")
    assert toys.result(run_id) == total(2)
    assert toys.times_done(run_id)[0] == 1


@pytest.mark.slow
@ON_SQLITE
def test_our_errors_are_shown_and_others_only_named(toys: Any) -> None:
    ours = toys.add_run(fails_at=1, how="ours")
    other = toys.add_run(fails_at=1, how="other")
    toys.start_worker()
    assert toys.wait_for(ours, "failed").error == "The toy broke. [removed]"
    error = toys.wait_for(other, "failed").error
    assert "ZeroDivisionError" in error
    assert "canary" not in error
    assert "Traceback" not in error
    assert "ZeroDivisionError at " in toys.log
    assert "in step" in toys.log
    assert "canary" not in toys.log
    assert toys.n_kept(ours) == 1
    (toys.folder / "mended").touch()
    for run_id in (ours, other):
        toys.store.runs.requeue(run_id)
        toys.wait_for(run_id, "done")
        assert toys.result(run_id) == total(5)
        assert toys.times_done(run_id) == dict.fromkeys(range(5), 1)


@pytest.mark.slow
@ON_SQLITE
def test_a_worker_that_is_told_to_stop_hands_its_runs_on(toys: Any, until: Callable[..., None]) -> None:
    run_id = toys.add_run(steps=4, held=1, until="go")
    first = toys.start_worker("first")
    until(lambda: toys.n_kept(run_id) == 1)
    first.terminate()
    assert first.wait(timeout=60) == 0
    assert toys.get(run_id).status == "queued"
    toys.let_go()
    toys.start_worker("second")
    assert toys.wait_for(run_id, "done").worker_id == "second"
    assert toys.result(run_id) == total(4)


@ON_SQLITE
def test_the_worker_is_quiet_and_listens_on_nothing(toys: Any) -> None:
    run_id = toys.add_run(steps=2, until="go")
    process = toys.start_worker()
    toys.wait_for(run_id, "running")
    listening = _listening(process.pid)
    toys.let_go()
    toys.wait_for(run_id, "done")
    assert listening == set()
    assert toys.log == ""


def _listening(pid: int) -> set[str]:
    """Inodes of the TCP sockets on which the process listens (state 0A in Linux's table)."""
    if not Path("/proc/net/tcp").exists():
        pytest.skip("needs Linux's /proc")
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
    ]
    own = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    return {row[9] for row in rows[1:] if len(row) > 9 and row[3] == "0A" and f"socket:[{row[9]}]" in own}
