"""A calibration as a durable run: the loop of `core.calibration`, with every answer stored."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from core.calibration.loop import calibration
from core.calibration.steps import Calibration
from core.jobs.documents import RESULT
from core.jobs.tasks.convert import request_of
from core.jobs.tasks.programs import JudgeProgram, JudgeState, PrepareStep
from core.jobs.views import CalibrationRequest
from core.public import split_for, task_of
from core.records import Alignment, GoldenSet, JudgeScores, ScoreMatrix
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
        for judge in judges_of(result, self.golden, run.run_id, self._bare_scores(result)):
            self.store.judges.add(run.project_id, run.golden_id, judge)
        self.store.results.put_document(run.run_id, RESULT, pack(result))
        return "budget" if result.stopped_early else "done"

    def _bare_scores(self, result: Calibration) -> ScoreMatrix:
        """What the judge without criteria gave all items of the golden set."""
        bare = [one.criteria.criteria_id for one in result.candidates if one.status == "baseline"]
        return self.store.results.scores(self.run.run_id, self.golden.item_ids, bare)


def judges_of(result: Calibration, golden: GoldenSet, run_id: str, bare: ScoreMatrix) -> list[JudgeScores]:
    """The judges that a calibration leaves to be compared: the final one, and the same without criteria.

    The final judge has seen the labels of the calibration items; the one without criteria has seen none.
    """
    spec, aspect = str(result.judge_state.get("spec", "judge")), result.task.aspect
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    values = np.full(len(golden.items), np.nan)
    values[[at[item_id] for item_id in result.scores.item_ids]] = result.scores.values[0]
    members = "one criteria" if len(result.chosen) == 1 else f"the mean of {len(result.chosen)} criteria"
    final = JudgeScores(
        name=f"{spec} · calibrated",
        kind="calibrated",
        aspect=aspect,
        values=values,
        unscored=result.scores.unscored.get("final", ()),
        seen=result.split.calibration,
        note=f"The judge {spec} with {members}, calibrated on {len(result.split.calibration)} items.",
        run_id=run_id,
        calls_per_item=float(len(result.chosen)),
    )
    plain = [
        JudgeScores(
            name=f"{spec} · no criteria",
            kind="no criteria",
            aspect=aspect,
            values=row,
            unscored=bare.unscored.get(name, ()),
            note=f"The judge {spec} that knows the name of the aspect and no criteria.",
            run_id=run_id,
            calls_per_item=1.0,
        )
        for name, row in zip(bare.criteria_ids, bare.values, strict=True)
    ]
    return [final, *plain]


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
