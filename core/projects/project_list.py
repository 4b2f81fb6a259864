"""The store of this process, its projects, and the sample project of the first start."""

from __future__ import annotations

import threading
from pathlib import Path

from core.errors import NotFoundError, UsageError
from core.kept import ProjectSummary
from core.projects.access import requires
from core.settings import Settings
from core.store.store import Store

SAMPLE_PROJECT = "sample"
"""Id of the sample project."""
_SAMPLE_FOLDER = Path(__file__).parents[2] / "sample_data"
_LONGEST_NAME = 200
_lock = threading.Lock()
_stores: dict[str, Store] = {}


def open_store(settings: Settings) -> Store:
    """The store that `settings` name: one per process, made and migrated at the first call.

    StoreError when it cannot be opened or was written by a newer Concord.
    """
    url = settings.database_url or f"sqlite:///{settings.home.absolute() / 'concord.sqlite'}"
    with _lock:
        if url not in _stores:
            _stores[url] = Store(url)
        return _stores[url]


@requires("viewer")
def list_projects(store: Store) -> list[ProjectSummary]:
    """Every project, oldest first."""
    return store.projects.all()


@requires("admin", "made the project")
def create_project(store: Store, name: str) -> ProjectSummary:
    """A new, empty project.  UsageError for an empty or overlong name."""
    trimmed = " ".join(name.split())
    if not 1 <= len(trimmed) <= _LONGEST_NAME:
        raise UsageError(f"A project's name has 1 to {_LONGEST_NAME} characters, not {len(trimmed)}.")
    return get_project(store, store.projects.add(trimmed))


@requires("viewer")
def get_project(store: Store, project_id: str) -> ProjectSummary:
    """NotFoundError for an unknown id."""
    return store.projects.get(project_id)


@requires("viewer")
def find_project(store: Store, name_or_id: str) -> ProjectSummary:
    """The project of that id, else the only one of that name.  NotFoundError lists those there are."""
    listed = store.projects.all()
    found = [one for one in listed if one.project_id == name_or_id] or [one for one in listed if one.name == name_or_id]
    if not found:
        known = ", ".join(repr(one.name) for one in listed[:20]) or "none"
        raise NotFoundError(f"There is no project {name_or_id[:80]!r} here; there is {known}.")
    if len(found) > 1:
        ids = ", ".join(one.project_id for one in found)
        raise UsageError(f"{len(found)} projects are called {name_or_id[:80]!r}. Name one by its id: {ids}.")
    return found[0]


def ensure_sample_project(store: Store, folder: Path = _SAMPLE_FOLDER) -> ProjectSummary:
    """The project "Sample project" with the golden sets of sample_data/; a second call changes nothing."""
    known = {row.project_id: row for row in store.projects.all()}
    files = sorted(file for file in folder.iterdir() if file.suffix in (".jsonl", ".csv"))
    if SAMPLE_PROJECT not in known or known[SAMPLE_PROJECT].n_goldens < len(files):
        from core.data import load_golden

        store.projects.add("Sample project", SAMPLE_PROJECT)
        for file in files:
            store.goldens.add(SAMPLE_PROJECT, load_golden(file))
    return get_project(store, SAMPLE_PROJECT)
