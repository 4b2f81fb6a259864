"""Workers, as the Runs screen lists them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A live worker: its name, where it runs, what it computes on (cuda, mps, gpu or cpu), when it came up."""

    worker_id: str
    place: str
    capability: str
    started_at: datetime
