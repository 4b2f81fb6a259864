"""Which worker takes which run: those that want a GPU wait for a worker with one, as long as there is hope.

::

    run wants  workers with a GPU                          is taken by
    "any"      —                                           every worker
    "gpu"      one gave a sign of life within PATIENCE     such workers only
    "gpu"      none did, or it signed off                  every worker, so that nobody waits for ever

Pure; times come from the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from core.store.rows import WorkerRow
from core.store.workers import ALIVE_SECONDS

Wants = Literal["any", "gpu"]
GPU_CAPABILITIES = ("cuda", "mps", "gpu")
PATIENCE = 60.0
"""Seconds a run waiting for a GPU worker that was lost without a word: it may be on its way up again."""


def has_gpu(capability: str) -> bool:
    """Whether a worker of this capability takes runs that want a GPU."""
    return capability in GPU_CAPABILITIES


def takes(capability: str, wants: Wants, workers: Sequence[WorkerRow], patience: float = PATIENCE) -> bool:
    """Whether a worker of this capability takes such a run now; `workers` is everybody who ever signed on."""
    return wants == "any" or has_gpu(capability) or not _within(workers, patience)


def waiting_words(wants: Wants, workers: Sequence[WorkerRow], patience: float = PATIENCE) -> str:
    """Why a queued run waits, for people."""
    if alive := _within(workers, ALIVE_SECONDS) if wants == "gpu" else []:
        names = ", ".join(f"{row.worker_id} ({row.capability})" for row in alive)
        return f"waiting for a GPU worker: {names} takes it when free"
    if lost := _within(workers, patience) if wants == "gpu" else []:
        left = max(patience - (row.now - row.beat_at) for row in lost)
        return f"waiting for a GPU worker: {lost[0].worker_id} is lost; any worker takes the run in {left:.0f} s"
    return "waiting for a worker"


def taken_words(wants: Wants, capability: str) -> str:
    """What is to be said of the worker that has a run: "" unless the run wanted a GPU and got none."""
    if wants != "gpu" or has_gpu(capability):
        return ""
    return "on a worker without a GPU, because none with a GPU was there"


def _within(workers: Sequence[WorkerRow], seconds: float) -> list[WorkerRow]:
    """Workers with a GPU whose last sign of life is at most so old, the latest first."""
    found = [row for row in workers if has_gpu(row.capability) and row.now - row.beat_at <= seconds]
    return sorted(found, key=lambda row: -row.beat_at)
