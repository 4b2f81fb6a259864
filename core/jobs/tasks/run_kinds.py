"""Which program a run is: the worker's one list of kinds."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import JobError
from core.jobs.engine import Program
from core.jobs.tasks.ablation_program import AblationProgram
from core.jobs.tasks.calibration_program import CalibrationProgram
from core.jobs.tasks.fusion_program import FusionProgram
from core.jobs.tasks.metrics_program import MetricsProgram
from core.jobs.tasks.recheck_program import RecheckProgram
from core.jobs.tasks.repeval_program import RepEvalProgram
from core.jobs.tasks.rescore_program import RescoreProgram
from core.jobs.tasks.round_program import RoundProgram
from core.jobs.tasks.styles_program import StylesProgram
from core.settings import Settings
from core.store.rows import RunRow
from core.store.store import Store


def open_program(store: Store, settings: Settings, run: RunRow) -> Program:
    """The program of a run.  NotFoundError or AspectError where the request no longer fits what is stored."""
    kinds: dict[str, Callable[[Store, Settings, RunRow], Program]] = {
        "calibration": CalibrationProgram,
        "rescore": RescoreProgram,
        "round": RoundProgram,
        "ablation": AblationProgram,
        "fusion": FusionProgram,
        "metrics": MetricsProgram,
        "recheck": RecheckProgram,
        "repeval": RepEvalProgram,
        "styles": StylesProgram,
    }
    if run.kind not in kinds:
        raise JobError(f"This worker knows no runs of kind {run.kind!r}; update it.")
    return kinds[run.kind](store, settings, run)
