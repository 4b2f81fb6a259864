"""What each kind of run is asked for with, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from core.calibration.steps import Calibration
from core.jobs.views import CalibrationRequest, RescoreRequest, RescoreView, RunKind, RunRequest


@dataclass(frozen=True, slots=True)
class Kind:
    """Records of one kind of run, by which what was stored is read again."""

    request: type[RunRequest]
    result: type


KINDS: dict[RunKind, Kind] = {
    "calibration": Kind(CalibrationRequest, Calibration),
    "rescore": Kind(RescoreRequest, RescoreView),
}
