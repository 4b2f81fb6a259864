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

from core.kept import ALIVE_SECONDS, Run, Worker

Wants = Literal["any", "gpu"]
GPU_CAPABILITIES = ("cuda", "mps", "gpu")
PATIENCE = 60.0
"""Seconds a run waiting for a GPU worker that was lost without a word: it may be on its way up again."""


def has_gpu(capability: str) -> bool:
    """Whether a worker of this capability takes runs that want a GPU."""
    return capability in GPU_CAPABILITIES


def takes(capability: str, wants: Wants, workers: Sequence[Worker], patience: float = PATIENCE) -> bool:
    """Whether a worker of this capability takes such a run now; `workers` is everybody who ever signed on."""
    return wants == "any" or has_gpu(capability) or not _heard_within(patience, workers)


def placement(run: Run, wants: Wants, workers: Sequence[Worker]) -> str:
    """Why a queued run waits, or what is to be said of the worker that has it; "" for nothing."""
    if run.status == "queued":
        return waiting_words(wants, workers)
    if wants == "gpu" and run.capability and not has_gpu(run.capability):
        return "on a worker without a GPU, because none with a GPU was there"
    return ""


def waiting_words(wants: Wants, workers: Sequence[Worker], patience: float = PATIENCE) -> str:
    """Why a queued run waits, for people."""
    if alive := _heard_within(ALIVE_SECONDS, workers) if wants == "gpu" else []:
        names = ", ".join(f"{worker.worker_id} ({worker.capability})" for worker in alive)
        return f"waiting for a GPU worker: {names} takes it when free"
    if lost := _heard_within(patience, workers) if wants == "gpu" else []:
        left = patience - (lost[0].silent_for or 0.0)
        return f"waiting for a GPU worker: {lost[0].worker_id} is lost; any worker takes the run in {left:.0f} s"
    return "waiting for a worker"


def _heard_within(seconds: float, workers: Sequence[Worker]) -> list[Worker]:
    """Workers with a GPU whose last sign of life is at most so old, the latest first."""
    heard = [worker for worker in workers if has_gpu(worker.capability) and worker.heard_within(seconds)]
    return sorted(heard, key=lambda worker: worker.silent_for or 0.0)
