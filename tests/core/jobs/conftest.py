"""Toy workers in processes of their own, on SQLite and on Postgres.

They are forked from one process that has imported what they take; importing it anew for each took more processor time
than all they do."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

from core.project_records import Run
from core.records import GoldenSet, Item
from core.settings import Settings
from core.store.store import Store
from tests.forking import Fork, Forks


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    made = Forks(("core.jobs.queue", "core.store.store"))
    yield made
    made.close()


@dataclass
class Toys:
    """A store, and toy workers to start, kill and count on."""

    store: Store
    settings: Settings
    folder: Path
    forks: Forks
    project: str
    golden_id: str
    until: Callable[..., None]
    processes: list[Fork] = field(default_factory=list)

    def start_worker(self, name: str = "toy") -> Fork:
        about = [str(self.settings.database_url), name, str(self.folder)]
        log = self.folder / f"{name}.log"
        self.processes.append(self.forks.start("tests.core.jobs.toy_worker", about, os.environ, log))
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
        result = self.store.results.read(run_id, "result", int)
        assert result is not None
        return result

    def n_kept(self, run_id: str) -> int:
        """How many steps the run has kept so far."""
        names = (f"kept {k}" for k in count())
        return sum(1 for _ in takewhile(lambda name: self.store.results.read(run_id, name, int) is not None, names))

    def times_done(self, run_id: str) -> Counter[int]:
        """Step → how often its work was finished."""
        file = self.folder / "done.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return Counter(int(line.split()[1]) for line in lines if line.startswith(run_id))

    @property
    def log(self) -> str:
        return "".join(file.read_text() for file in self.folder.glob("*.log"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def toys(request: pytest.FixtureRequest, tmp_path: Path, forks: Forks, until: Callable[..., None]) -> Iterator[Toys]:
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
