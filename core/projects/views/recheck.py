"""Rechecks of an exported judge: what such a run is asked for with; what it leaves is `core.drift.outcome.Recheck`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.drift.outcome import Recheck


@dataclass(frozen=True, slots=True)
class RecheckRequest:
    """Recheck the judge of the finished calibration `run_id` on the labels of the golden set `golden_id`.

    `fall` is the fall that matters, `alpha` the accepted chance of a false alarm; with `no_criteria` the same judge
    without criteria scores the items too, at one more call an item.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    fall: float = 0.1
    alpha: float = 0.05
    no_criteria: bool = True


@dataclass(frozen=True, slots=True)
class RecheckView:
    """A finished recheck: when it was, of the judge of which calibration, on which golden set, and what it found."""

    run_id: str
    created_at: datetime
    calibration_id: str
    golden_id: str
    outcome: Recheck
