"""A grid of judging styles as a durable run: every batch of replies stored, every finished style on the shelf."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from core.jobs.documents import RESULT
from core.jobs.journal import Journal
from core.jobs.tasks.consent import gate_of
from core.jobs.tasks.convert import request_of
from core.jobs.tasks.style_grid.asking import Asker, language_model
from core.jobs.tasks.style_grid.estimate import call_costs, estimated
from core.jobs.tasks.style_grid.order import grid
from core.jobs.tasks.style_grid.plan import Asked, AskStep, GridStanding, Shelved, ShelveStep, StepsAnswer, StepsStep
from core.jobs.tasks.styles import plan_of, run_steps, steps_document
from core.jobs.views.styles import StepsView, StylesRequest, StylesView
from core.records import content_digest
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.rows import Progress, RunRow
from core.store.store import Store

Step = StepsStep | AskStep | ShelveStep


class StylesProgram:
    """See `core.jobs.engine.Program`; the order of the work is `core.jobs.tasks.style_grid.order`."""

    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, StylesRequest)
        self.store, self.run = store, run
        self.golden = store.goldens.load(request.golden_id)
        plan = plan_of(store, self.golden, request, run.run_id)
        replies = store.replies.of_run(run.run_id, run.project_id)
        model = language_model(request.judge_spec, settings, replies, gate=gate_of(store, run))  # before all else
        self._asker = Asker(self.golden, model)
        told = estimated(self.golden, plan.columns, request, settings)
        self._plan = replace(plan, call_costs=call_costs(told, plan.columns), notes=self._asker.notes)

    def steps(self) -> Generator[Any, Any, StylesView]:
        return grid(self.golden, self._plan)

    def question(self, step: Step | GridStanding) -> str:
        match step:
            case GridStanding():
                return ""
            case ShelveStep(judge=judge):  # its scores follow from the answers before it
                return content_digest("step", ["ShelveStep", judge.aspect, judge.name, judge.note])
            case _:
                return content_digest("step", [type(step).__name__, pack(step).body])

    def work(self, step: Step, on_progress: Callable[[int, int], None]) -> Packed:
        match step:
            case StepsStep():
                return pack(self._steps(step))
            case AskStep():
                return pack(self._asker.scores(step, on_progress))
            case ShelveStep(judge=judge, replies=replies):
                run = self.run
                return pack(Shelved(self.store.judges.add(run.project_id, run.golden_id, judge, replies)))

    def read(self, step: Step, stored: Packed) -> Any:
        match step:
            case StepsStep():
                return unpack(StepsAnswer, stored)
            case AskStep():
                return unpack(Asked, stored)
            case ShelveStep():
                return unpack(Shelved, stored)

    def keep(self, step: Step, answer: Any) -> None:
        if isinstance(step, StepsStep) and answer.text and not answer.edited:
            steps = StepsView(step.task.aspect, answer.text, edited=False, run_id=self.run.run_id)
            name = steps_document(step.task.aspect, edited=False)
            self.store.results.put_document(self.run.run_id, name, pack(steps))

    def note(self, snapshot: GridStanding, journal: Journal) -> None:
        s = snapshot
        progress = Progress(s.phase, s.message, s.view.calls, s.calls_expected, s.view.usage)
        journal.note(progress, lambda: pack(s.view))

    def finish(self, result: StylesView) -> str:
        """Store the result; "budget" when the budget left something out."""
        self.store.results.put_document(self.run.run_id, RESULT, pack(result))
        return "budget" if result.stopped_early else "done"

    def close(self) -> None:
        self._asker.close()

    def _steps(self, step: StepsStep) -> StepsAnswer:
        """A person's version where one was saved before the model was asked, else the model's."""
        saved = run_steps(self.store, self.run.run_id, step.task.aspect)
        if saved is not None and saved.edited:
            return StepsAnswer(saved.text, edited=True)
        return self._asker.steps(step)
