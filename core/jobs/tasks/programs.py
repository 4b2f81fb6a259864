"""What programs with a judge share: steps answered by a judge, and their answers stored."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from core.calibration.drive import answer
from core.calibration.steps import DraftStep, RefineStep, ScoreStep, Standing, Work
from core.jobs.documents import JUDGE
from core.jobs.journal import Journal
from core.jobs.tasks.consent import gate_of
from core.judging.base import DraftBatch, Judge
from core.judging.registry import make_judge, restore_judge
from core.providers.base import ReplyStore
from core.public import judge_state
from core.records import GoldenSet, ScoreMatrix, Task, content_digest
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.rows import CriteriaScores, Progress, RunRow
from core.store.store import Store


@dataclass(frozen=True)
class PrepareStep:
    """Make the judge of `spec` ready with the items at `positions`."""

    spec: str
    positions: tuple[int, ...]


@dataclass(frozen=True)
class JudgeState:
    state: Mapping[str, Any]


class JudgeProgram:
    """Base of programs whose steps are answered by a judge.

    The judge is made ready in a step of its own and always restored from the stored state, so that a run that was
    interrupted works with the very judge it began with.
    """

    def __init__(self, store: Store, settings: Settings, run: RunRow, golden: GoldenSet, task: Task) -> None:
        self.store, self.settings, self.run = store, settings, run
        self.golden, self.task = golden, task
        self._judge: Judge | None = None

    def steps(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError

    def finish(self, result: Any) -> str:
        raise NotImplementedError

    def question(self, step: Any) -> str:
        if isinstance(step, Standing):
            return ""
        return content_digest("step", [type(step).__name__, pack(step).body])

    def work(self, step: Work | PrepareStep, on_progress: Callable[[int, int], None]) -> Packed:
        if isinstance(step, PrepareStep):
            return pack(JudgeState(self._prepared(step)))
        assert self._judge is not None
        return pack(answer(step, self._judge, self.golden, self.task, on_progress))

    def read(self, step: Work | PrepareStep, stored: Packed) -> Any:
        match step:
            case PrepareStep():
                return unpack(JudgeState, stored)
            case DraftStep() | RefineStep():
                return unpack(DraftBatch, stored)
            case ScoreStep():
                return unpack(ScoreMatrix, stored)

    def keep(self, step: Work | PrepareStep, answer: Any) -> None:
        match answer:
            case JudgeState():
                self.store.results.put_document(self.run.run_id, JUDGE, pack(answer))
            case DraftBatch():
                written = [one.criteria for one in answer.drafted if one.criteria is not None]
                self.store.criteria.add(self.run.project_id, self.run.golden_id, written)
            case ScoreMatrix():
                assert isinstance(step, ScoreStep)
                self.store.results.add_scores(self.run.run_id, _by_criteria(step, answer))

    def note(self, snapshot: Standing, journal: Journal) -> None:
        s = snapshot
        progress = Progress(s.phase, s.message, s.calls, s.calls_expected, s.usage)
        journal.note(progress, lambda: pack(snapshot))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Make the judge that answers from now on."""
        self._judge = restore_judge(state, self.settings, self._replies(), gate=gate_of(self.store, self.run))

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()

    def _replies(self) -> ReplyStore:
        return self.store.replies.of_run(self.run.run_id, self.run.project_id)

    def _prepared(self, step: PrepareStep) -> Mapping[str, Any]:
        judge = make_judge(step.spec, self.settings, self._replies(), gate=gate_of(self.store, self.run))
        try:
            items = [self.golden.items[position] for position in step.positions]
            return judge_state(judge.prepare(self.task, items))
        finally:
            judge.close()


def _by_criteria(step: ScoreStep, matrix: ScoreMatrix) -> list[CriteriaScores]:
    rows = zip(matrix.criteria_ids, matrix.values.tolist(), strict=True)
    return [CriteriaScores(name, step.positions, tuple(values), matrix.unscored.get(name, ())) for name, values in rows]
