"""Which program a run is: the worker's one list of kinds."""

from __future__ import annotations

from core.errors import JobError
from core.jobs.engine import Program
from core.jobs.tasks.calibration_program import CalibrationProgram
from core.jobs.tasks.rescore_program import RescoreProgram
from core.settings import Settings
from core.store.rows import RunRow
from core.store.store import Store


def open_program(store: Store, settings: Settings, run: RunRow) -> Program:
    """The program of a run.  NotFoundError or AspectError where the request no longer fits what is stored."""
    kinds = {"calibration": CalibrationProgram, "rescore": RescoreProgram}
    if run.kind not in kinds:
        raise JobError(f"This worker knows no runs of kind {run.kind!r}; update it.")
    return kinds[run.kind](store, settings, run)
