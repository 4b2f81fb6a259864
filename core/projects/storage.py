"""What takes room on the disk, and what can go because it can be had again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core.errors import UsageError
from core.projects.roles import requires
from core.settings import Settings
from core.store.store import Store
from core.store.upkeep import Pruned, StoredSize

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Old:
    """What is older than some days: replies, and files of hidden states with their bytes; `deleted` or not."""

    deleted: bool
    replies: Pruned
    n_states: int
    states_bytes: int


def storage(store: Store, settings: Settings) -> tuple[StoredSize, ...]:
    """What takes room, the largest first: the tables of the store, and the hidden states next to it."""
    states = list(_states(settings))
    oldest = min((at for _, _, at in states), default=None)
    files = StoredSize("hidden states", len(states), sum(size for _, size, _ in states), oldest)
    return tuple(sorted((*store.upkeep.held(), files), key=lambda held: -held.n_bytes))


@requires("admin")
def prune(store: Store, settings: Settings, days: float, *, delete: bool = False) -> Old:
    """Delete cached replies and hidden states that are older than `days`; without `delete` only count them.

    Replies of runs that go on or can be resumed stay.  UsageError for days below 0.
    """
    if not days >= 0:
        raise UsageError(f"Days are a number from 0 on; {days:g} came.")
    before = time.time() - days * DAY
    replies = store.upkeep.prune_replies(before, delete=delete)
    old = [state for state in _states(settings) if state[2] < before]
    if delete:
        for path, _, _ in old:
            with suppress(FileNotFoundError):  # another process pruned it first
                path.unlink()
        store.upkeep.shrink()
    return Old(delete, replies, len(old), sum(size for _, size, _ in old))


def _states(settings: Settings) -> Iterator[tuple[Path, int, float]]:
    """(path, bytes, seconds since 1970 of its making) of every file of hidden states."""
    for path in (settings.home / "states").rglob("*.npy"):
        with suppress(FileNotFoundError):
            facts = path.stat()
            yield path, facts.st_size, facts.st_mtime
