"""What each kind of run is asked for with, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from core.calibration.ablate import Ablation
from core.calibration.rounds import RoundResult
from core.calibration.steps import Calibration
from core.drift.outcome import Recheck
from core.projects.views import CalibrationRequest, RescoreRequest, RescoreView, RunKind, RunRequest
from core.projects.views.analyses import AblationRequest
from core.projects.views.fusion import FusionRequest, FusionRunView
from core.projects.views.metrics import MetricsRequest, MetricsView
from core.projects.views.recheck import RecheckRequest
from core.projects.views.repeval import RepEvalRequest, RepEvalView
from core.projects.views.rounds import RoundRequest
from core.projects.views.styles import StylesRequest, StylesView


@dataclass(frozen=True, slots=True)
class Kind:
    """Records of one kind of run, by which what was stored is read again."""

    request: type[RunRequest]
    result: type


KINDS: dict[RunKind, Kind] = {
    "calibration": Kind(CalibrationRequest, Calibration),
    "rescore": Kind(RescoreRequest, RescoreView),
    "round": Kind(RoundRequest, RoundResult),
    "ablation": Kind(AblationRequest, Ablation),
    "fusion": Kind(FusionRequest, FusionRunView),
    "metrics": Kind(MetricsRequest, MetricsView),
    "recheck": Kind(RecheckRequest, Recheck),
    "repeval": Kind(RepEvalRequest, RepEvalView),
    "styles": Kind(StylesRequest, StylesView),
}
