"""Manage projects and golden sets of a store, and show and free disk space.

Everybody may read. The decorator `requires` checks the role before each change, and logs the change.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from core.data import Table
from core.data import read_upload as read_table_sent
from core.data.golden import golden_table
from core.data.tables import LIMITS
from core.errors import NotFoundError, UsageError
from core.project_records import AspectSummary, GoldenSummary, ProjectSummary
from core.records import GoldenSet, visible_name
from core.settings import Settings
from core.store.runs import StoredSize
from core.store.store import Store, requires


def given_reason(reason: str) -> str:
    """Return the trimmed reason for a decision. Raises UsageError if it is empty."""
    if not (trimmed := reason.strip()):
        raise UsageError("Enter a reason for this decision, for people who read it later.")
    return trimmed


# ── store and projects ─────────────────────────────────────────────────────────────────────────────────────────


SAMPLE_PROJECT = "sample"
"""Id of the sample project."""
_SAMPLE_FOLDER = Path(__file__).parents[2] / "sample_data"
LONGEST_NAME = 200
_lock = threading.Lock()
_stores: dict[str, Store] = {}


def open_store(settings: Settings) -> Store:
    """Open the store of `settings`, once per process.

    Raises StoreError if it cannot be opened or was written by a newer version of Concord.
    """
    url = settings.database_url or f"sqlite:///{settings.home.absolute() / 'concord.sqlite'}"
    with _lock:
        if url not in _stores:
            _stores[url] = Store(url)
        return _stores[url]


@requires("admin", "made the project")
def create_project(store: Store, name: str) -> ProjectSummary:
    """Create an empty project. Raises UsageError if the name is empty or too long."""
    trimmed = " ".join(visible_name(name).split())
    if not trimmed:
        raise UsageError("Enter a name for the project.")
    if len(trimmed) > LONGEST_NAME:
        raise UsageError(
            f"A project's name can have at most {LONGEST_NAME} characters, but this name has {len(trimmed):,}. Choose "
            "a shorter name."
        )
    return store.projects.get(store.projects.add(trimmed))


def find_project(store: Store, name_or_id: str) -> ProjectSummary:
    """Find a project by its id or unique name. Raises NotFoundError, which lists the projects, if none matches."""
    projects = store.projects.all()
    project_id = named(name_or_id, [(row.project_id, row.name) for row in projects], "project", "here")
    return next(row for row in projects if row.project_id == project_id)


def named(name_or_id: str, known: Sequence[tuple[str, str]], what: str, where: str) -> str:
    """Return the id of the entry in `known` (pairs of id and name) that has this id or name.

    Raises:
        NotFoundError: No entry has this id or name. The message lists the names.
        UsageError: Several entries have this name. The message lists their ids.
    """
    matching = [key for key, _ in known if key == name_or_id] or [key for key, name in known if name == name_or_id]
    if not matching:
        names = ", ".join(repr(name) for _, name in known[:20]) or "none"
        raise NotFoundError(f"No {what} {where} is called {name_or_id[:80]!r}. Available: {names}.")
    if len(matching) > 1:
        ids = ", ".join(matching)
        raise UsageError(
            f"{len(matching)} {what}s are called {name_or_id[:80]!r}. Use one of these ids instead: {ids}."
        )
    return matching[0]


def ensure_sample_project(store: Store, folder: Path = _SAMPLE_FOLDER) -> ProjectSummary:
    """Create the project "Sample project" with the golden sets of sample_data/, unless it exists."""
    known = {row.project_id: row for row in store.projects.all()}
    files = sorted(file for file in folder.iterdir() if file.suffix in (".jsonl", ".csv"))
    if SAMPLE_PROJECT not in known or known[SAMPLE_PROJECT].n_goldens < len(files):
        from core.data import load_golden

        store.projects.add("Sample project", SAMPLE_PROJECT)
        for file in files:
            store.goldens.add(SAMPLE_PROJECT, load_golden(file))
    return store.projects.get(SAMPLE_PROJECT)


# ── golden sets ────────────────────────────────────────────────────────────────────────────────────────────────


@requires("reviewer", "added a golden set")
def add_golden(store: Store, project_id: str, golden: GoldenSet) -> str:
    """Add a golden set to a project; return its id, which is the digest of its content.

    Calling it again changes nothing. Raises NotFoundError for an unknown project.
    """
    store.projects.get(project_id)
    return store.goldens.add(project_id, golden)


@requires("reviewer", "added the sample summaries")
def add_sample(store: Store, project_id: str) -> str:
    """Add the summaries of sample_data/ (made-up texts, simulated labels) to a project; return the golden set's id."""
    from core.data import load_golden

    store.projects.get(project_id)
    return store.goldens.add(project_id, load_golden(_SAMPLE_FOLDER / "summaries.jsonl"))


@requires("reviewer", reads=True)
def read_upload(store: Store, data: bytes, name: str, *, max_mb: float) -> Table:
    """Read the table of an uploaded file (see `core.data.read_upload`). Raises GoldenError if it cannot be read."""
    return golden_table(read_table_sent(data, name, max_mb=max_mb, max_rows=LIMITS.items))


def require_aspect(store: Store, golden_id: str, aspect: str) -> tuple[GoldenSummary, AspectSummary]:
    """Return the summaries of a golden set and of one of its aspects. Raises NotFoundError if either is unknown."""
    golden = store.goldens.get(golden_id)
    summary = golden.aspect(aspect)
    if summary is None:
        known = ", ".join(labelled.aspect for labelled in golden.aspects) or "none"
        raise NotFoundError(f"{golden.name} has no aspect {aspect!r}. Available: {known}.")
    return golden, summary


# ── disk usage ─────────────────────────────────────────────────────────────────────────────────────────────────


def storage(store: Store, settings: Settings) -> tuple[StoredSize, ...]:
    """Return the disk usage of the store's tables and of hidden states, largest first."""
    states = list(_states(settings))
    files = StoredSize("hidden states", len(states), sum(size for _, size, _ in states))
    return tuple(sorted((*store.upkeep.storage_use(), files), key=lambda held: -held.n_bytes))


@requires("admin")
def prune(store: Store, settings: Settings, days: float, *, delete: bool = False) -> tuple[StoredSize, int, int]:
    """Delete cached replies and hidden states older than `days`; without `delete`, only count them.

    Returns the size of the replies, and the number and total bytes of the files of hidden states. Replies of unfinished
    and resumable runs are kept. Raises UsageError if `days` is negative.
    """
    if not days >= 0:
        raise UsageError(f"The number of days must be at least 0; got {days:g}.")
    before = time.time() - days * 86_400
    replies = store.upkeep.prune_replies(before, delete=delete)
    old = [state for state in _states(settings) if state[2] < before]
    if delete:
        for path, _, _ in old:
            with suppress(FileNotFoundError):  # another process pruned it first
                path.unlink()
        store.upkeep.shrink()
    return replies, len(old), sum(size for _, size, _ in old)


def _states(settings: Settings) -> Iterator[tuple[Path, int, float]]:
    """Yield (path, bytes, Unix time) for each file of hidden states."""
    for path in (settings.home / "states").rglob("*.npy"):
        with suppress(FileNotFoundError):
            facts = path.stat()
            yield path, facts.st_size, facts.st_mtime
