"""Toy workers in processes of their own, on SQLite and on Postgres.

They are forked from one process that has imported what they take; importing it anew for each took more processor time
than all they do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, takewhile
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import sqlalchemy as sa

from core.jobs.queue import PATIENCE
from core.project_records import Run
from core.records import GoldenSet, Item
from core.settings import Settings
from core.store.schema import workers
from core.store.store import Store

TOY_WORKER = Path(__file__).with_name("toy_worker.py")


class Worker:
    """A forked worker, with what `subprocess.Popen` offers of a process."""

    def __init__(self, ask: Callable[..., int | None], pid: int) -> None:
        self._ask, self.pid = ask, pid
        self._returncode: int | None = None

    def poll(self) -> int | None:
        if self._returncode is None:
            self._returncode = self._ask("poll", self.pid)
        return self._returncode

    def wait(self, timeout: float = 60.0) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


@pytest.fixture(scope="session")
def forks(repository: Path) -> Iterator[Callable[..., int | None]]:
    """Asks the process that workers are forked from (see `toy_worker.py`)."""
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    with subprocess.Popen(
        [sys.executable, str(TOY_WORKER)], cwd=repository, env=environment, stdin=PIPE, stdout=PIPE, text=True
    ) as process:

        def ask(*what: str | int) -> int | None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(what) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())  # type: ignore[no-any-return]

        yield ask


@dataclass
class Toys:
    """A store, and toy workers to start, kill and count on."""

    store: Store
    settings: Settings
    folder: Path
    forks: Callable[..., int | None]
    project: str
    golden_id: str
    until: Callable[..., None]
    processes: list[Worker] = field(default_factory=list)

    def start_worker(self, name: str = "toy", capability: str = "cpu", patience: float = PATIENCE) -> Worker:
        about = [name, str(self.folder), capability, str(patience)]
        pid = self.forks("start", str(self.folder / f"{name}.log"), self.settings.database_url, *about)
        assert pid is not None
        self.processes.append(Worker(self.forks, pid))
        return self.processes[-1]

    def add_run(self, **request: Any) -> str:
        asked = {"steps": 5, "seconds": 0.1, **request}
        return self.store.runs.add(self.project, self.golden_id, "toy", "t", "a", "toy", json.dumps(asked))

    def get(self, run_id: str) -> Run:
        return self.store.runs.get(run_id)

    def wait_for(self, run_id: str, *statuses: str, seconds: float = 120.0) -> Run:
        self.until(lambda: self.get(run_id).status in statuses, seconds)
        return self.get(run_id)

    def let_go(self, name: str = "go") -> None:
        """What waits `until` this goes on."""
        (self.folder / name).touch()

    def result(self, run_id: str) -> int:
        document = self.store.results.document(run_id, "result")
        assert document is not None
        return int(document.body)

    def age(self, worker_id: str, seconds: float) -> datetime:
        """As if a worker, dead now, had been silent for so much longer; when it gave its last sign of life."""
        with self.store.workers._db.write() as connection:
            changed = sa.update(workers).where(workers.c.worker_id == worker_id)
            connection.execute(changed.values(beat_at=workers.c.beat_at - seconds))
        (silent_for,) = (worker.silent_for for worker in self.store.workers.all() if worker.worker_id == worker_id)
        return datetime.now(UTC) - timedelta(seconds=silent_for)

    def n_kept(self, run_id: str) -> int:
        """How many steps the run has kept so far."""
        names = (f"kept {k}" for k in count())
        return sum(1 for _ in takewhile(lambda name: self.store.results.document(run_id, name) is not None, names))

    def times_done(self, run_id: str) -> Counter[int]:
        """Step → how often its work was finished."""
        file = self.folder / "done.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return Counter(int(line.split()[1]) for line in lines if line.startswith(run_id))

    @property
    def log(self) -> str:
        return "".join(file.read_text() for file in self.folder.glob("*.log"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def toys(
    request: pytest.FixtureRequest, tmp_path: Path, forks: Callable[..., int | None], until: Callable[..., None]
) -> Iterator[Toys]:
    url = f"sqlite:///{tmp_path / 'concord.sqlite'}"
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
    with Store(url) as store:
        project = store.projects.add("p")
        golden_id = store.goldens.add(project, GoldenSet("g", "single", (Item("a", "text"),), {}))
        toys = Toys(store, Settings(home=tmp_path, database_url=url), tmp_path, forks, project, golden_id, until)
        yield toys
        for process in toys.processes:
            process.kill()
            process.wait()
