"""Which queue a run goes to: one for every worker, one for workers with a GPU.  Pure; times come from the store.

::

    run wants  workers with a GPU                          goes to
    "any"      —                                           the common queue
    "gpu"      one gave a sign of life within PATIENCE     the GPU queue: no other worker takes it
    "gpu"      none did, or it signed off                  the common queue, so that nobody waits for ever

A worker with a GPU serves both queues, any other the common one.  A run that waits in the GPU queue when the last
such worker is lost is passed on to the common one; what the lost worker had begun comes first to its successor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from core.store.rows import WorkerRow
from core.store.workers import ALIVE_SECONDS

Wants = Literal["any", "gpu"]
COMMON_QUEUE = "concord-runs"
GPU_QUEUE = "concord-runs-gpu"
GPU_CAPABILITIES = ("cuda", "mps", "gpu")
PATIENCE = 60.0
"""Seconds a run waiting for a GPU worker that was lost without a word: it may be on its way up again."""


def has_gpu(capability: str) -> bool:
    """Whether a worker of this capability takes runs that want a GPU."""
    return capability in GPU_CAPABILITIES


def queues_of(capability: str) -> tuple[str, ...]:
    """The queues a worker takes runs from."""
    return (COMMON_QUEUE, GPU_QUEUE) if has_gpu(capability) else (COMMON_QUEUE,)


def queue_for(wants: Wants, workers: Sequence[WorkerRow], patience: float = PATIENCE) -> str:
    """The queue for a run; `workers` is everybody who ever signed on."""
    return GPU_QUEUE if wants == "gpu" and _within(workers, patience) else COMMON_QUEUE


def gpu_is_there(workers: Sequence[WorkerRow]) -> bool:
    """Whether a worker with a GPU is alive."""
    return bool(_within(workers, ALIVE_SECONDS))


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
