"""Room on the disk: what is kept here, what can go because it can be had again, and a copy of everything."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core.errors import UsageError
from core.projects.project_list import find_project
from core.projects.roles import requires
from core.settings import Settings
from core.store.store import Store
from core.store.upkeep import Held, Pruned
from core.wording import counted

DAY, LEAST_FREE = 86_400.0, 200_000_000


@dataclass(frozen=True, slots=True)
class Gone:
    """What went, or would go: replies, and files of hidden states with their bytes."""

    replies: Pruned
    n_states: int
    states_bytes: int


def storage(store: Store, settings: Settings) -> tuple[Held, ...]:
    """What takes room, the largest first: the tables of the store, and the hidden states beside it."""
    states = list(_states(settings))
    oldest = min((at for _, _, at in states), default=None)
    files = Held("hidden states", len(states), sum(size for _, size, _ in states), oldest)
    return tuple(sorted((*store.upkeep.held(), files), key=lambda held: -held.n_bytes))


@dataclass(frozen=True, slots=True)
class Health:
    """Whether work gets done here: runs that wait and run, live workers, room on the disk of `CONCORD_HOME`."""

    n_queued: int
    n_running: int
    longest_wait: float
    workers: tuple[str, ...]
    free_bytes: int

    @property
    def trouble(self) -> tuple[str, ...]:
        """What keeps work from being done, in sentences; empty when all is well."""
        said = []
        if self.n_queued and not self.workers:
            said.append(f"{counted(self.n_queued, 'run')} queued and no worker is alive")
        if self.free_bytes < LEAST_FREE:
            said.append(f"only {self.free_bytes / 1e6:,.0f} MB are free on the disk of CONCORD_HOME")
        return tuple(said)


def health(store: Store, settings: Settings) -> Health:
    """How things stand now.  StoreError where the database cannot be reached."""
    active = store.runs.active()
    queued = [run for run in active if run.status == "queued"]
    home = next(folder for folder in (settings.home, *settings.home.absolute().parents) if folder.exists())
    waited = [(run.now - run.updated_at).total_seconds() for run in queued]
    return Health(
        len(queued),
        len(active) - len(queued),
        max(waited, default=0.0),
        tuple(worker.worker_id for worker in store.workers.alive()),
        shutil.disk_usage(home).free,
    )


@requires("admin")
def prune(
    store: Store, settings: Settings, *, days: float | None = None, project: str = "", really: bool = False
) -> Gone:
    """Let go of replies and hidden states that are older than `days`, or of the replies of `project` alone, or both.

    A state belongs to no project (its key is a hash of model and text), so only their age decides.  Without `really`
    nothing goes.  UsageError without either, or for days below 0; NotFoundError for an unknown project.
    """
    if days is None and not project:
        raise UsageError("Say what may go: what is older than some days, or the replies of a project.")
    if days is not None and not days >= 0:
        raise UsageError(f"Days are a number from 0 on; {days:g} came.")
    before = None if days is None else time.time() - days * DAY
    project_id = find_project(store, project).project_id if project else ""
    replies = store.upkeep.prune_replies(before=before, project_id=project_id, really=really)
    old = [] if before is None or project else [state for state in _states(settings) if state[2] < before]
    if really:
        for path, _, _ in old:
            with suppress(FileNotFoundError):  # another process pruned it first
                path.unlink()
        store.upkeep.shrink()
    return Gone(replies, len(old), sum(size for _, size, _ in old))


@requires("admin")
def back_up(store: Store, path: Path) -> int:
    """Write a copy of the store, as it is now, to `path`; its size in bytes.  Runs and people go on meanwhile."""
    return store.upkeep.copy_to(path)


@requires("admin")
def restore(store: Store, path: Path) -> int:
    """Fill this empty store with a backup; how many projects came."""
    return store.upkeep.take_from(path)


def _states(settings: Settings) -> Iterator[tuple[Path, int, float]]:
    """(path, bytes, seconds since 1970 of its making) of every file of hidden states."""
    for path in (settings.home / "states").rglob("*.npy"):
        with suppress(FileNotFoundError):
            facts = path.stat()
            yield path, facts.st_size, facts.st_mtime
