"""A calibration as a durable run: the loop of `core.calibration`, with every answer stored."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from core.calibration.loop import calibration
from core.calibration.steps import Calibration
from core.jobs.documents import RESULT
from core.jobs.tasks.convert import request_of
from core.jobs.tasks.programs import JudgeProgram, JudgeState, PrepareStep
from core.jobs.views import CalibrationRequest
from core.public import split_for, task_of
from core.records import Alignment
from core.settings import Settings
from core.store.codec import pack
from core.store.criteria import Stood
from core.store.rows import RunRow
from core.store.store import Store


class CalibrationProgram(JudgeProgram):
    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, CalibrationRequest)
        golden = store.goldens.load(request.golden_id)
        self._request = request
        super().__init__(
            store, settings, run, golden, task_of(golden, request.aspect, request.definition, request.scale)
        )

    def steps(self) -> Generator[Any, Any, Calibration]:
        chosen = self._request.settings
        split = split_for(self.golden, self.task.aspect, chosen)
        prepared: JudgeState = yield PrepareStep(self._request.judge_spec, split.calibration)
        self.restore(prepared.state)
        return (yield from calibration(self.golden, self.task, split, chosen, judge_state=prepared.state))

    def finish(self, result: Calibration) -> str:
        """Store the result, the criteria and how each stood; "budget" when the budget ended it."""
        run = self.run
        every = {one.criteria.criteria_id: one.criteria for one in result.candidates}
        every |= {one.criteria_id: one for one in result.chosen}
        self.store.criteria.add(run.project_id, run.golden_id, list(every.values()))
        self.store.criteria.record(run.project_id, run.run_id, _standings(result))
        self.store.results.put_document(run.run_id, RESULT, pack(result))
        return "budget" if result.stopped_early else "done"


def _standings(result: Calibration) -> list[Stood]:
    """How candidates stood: all on calibration, the best single and the baseline on held-out too."""
    found = [
        Stood(one.criteria.criteria_id, "calibration", one.status, one.alignment)
        for one in result.candidates
        if one.alignment is not None
    ]
    best = result.chosen[0]
    if best.text:
        found.append(_held_out(best.criteria_id, "chosen", result.best_single["held_out"]))
    found += [
        _held_out(one.criteria.criteria_id, "baseline", result.no_criteria["held_out"])
        for one in result.candidates
        if one.status == "baseline"
    ]
    return found


def _held_out(criteria_id: str, status: str, alignment: Alignment) -> Stood:
    return Stood(criteria_id, "held-out", status, alignment)
