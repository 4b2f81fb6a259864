"""An ablation as a durable run: the table of `core.calibration.ablate`, with every answer stored."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from core.calibration.ablate import Ablation, ablation
from core.calibration.ablation_work import (
    SteppedScoreStep,
    StepsBatch,
    StepsStep,
    answer,
    steps_in_force,
)
from core.calibration.steps import ScoreStep
from core.errors import JobError
from core.jobs.documents import JUDGE, RESULT
from core.jobs.tasks.convert import request_of
from core.jobs.tasks.programs import JudgeProgram, JudgeState
from core.jobs.tasks.runs import load_calibration, load_scores
from core.jobs.views.analyses import AblationRequest
from core.records import JudgeScores, ScoreMatrix
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.rows import RunRow
from core.store.store import Store


class AblationProgram(JudgeProgram):
    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, AblationRequest)
        self._request = request
        self._calibration = load_calibration(store, request.run_id)
        super().__init__(store, settings, run, store.goldens.load(request.golden_id), self._calibration.task)

    def steps(self) -> Generator[Any, Any, Ablation]:
        kept = self.store.results.document(self._request.run_id, JUDGE)
        if kept is None:
            raise JobError(f"Run {self._request.run_id} has no judge to score with.")
        self.restore(unpack(JudgeState, kept).state)
        assert self._judge is not None
        return (
            yield from ablation(
                self._calibration,
                self.golden,
                load_scores(self.store, self._request.run_id),
                steps_in_force=steps_in_force(self._judge),
                with_steps=self._request.with_steps,
            )
        )

    def work(self, step: Any, on_progress: Callable[[int, int], None]) -> Packed:
        assert self._judge is not None
        return pack(answer(step, self._judge, self.golden, self.task, on_progress))

    def read(self, step: Any, stored: Packed) -> Any:
        match step:
            case StepsStep():
                return unpack(StepsBatch, stored)
            case SteppedScoreStep():
                return unpack(ScoreMatrix, stored)
            case _:
                return super().read(step, stored)

    def keep(self, step: Any, answer: Any) -> None:
        """Scores with other steps are kept with the result only: under their criteria's id they would look plain."""
        if isinstance(step, ScoreStep):
            super().keep(step, answer)

    def finish(self, result: Ablation) -> str:
        """Store the table, and put the variants that are new on the shelf of judges."""
        for judge in judges_of(result, self.run.run_id):
            self.store.judges.add(self.run.project_id, self.run.golden_id, judge)
        self.store.results.put_document(self.run.run_id, RESULT, pack(result))
        return "done"


def judges_of(result: Ablation, run_id: str) -> list[JudgeScores]:
    """The ablated variants as judges; the final judge and the one without criteria stand there since the calibration.

    Each has seen the labels of the calibration items: they chose its criteria.
    """
    rows = dict(zip(result.scores.criteria_ids, result.scores.values, strict=True))
    return [
        JudgeScores(
            name=f"{result.judge_spec} · {row.key}",
            kind="calibrated",
            aspect=result.task.aspect,
            values=rows[row.key],
            unscored=result.scores.unscored.get(row.key, ()),
            seen=result.calibration_positions,
            note=f"{row.what} The judge {result.judge_spec}, from an ablation of its calibration.",
            run_id=run_id,
            calls_per_item=float(len(row.criteria_ids)),
        )
        for row in result.rows
        if row.key not in ("final", "without criteria")
    ]
