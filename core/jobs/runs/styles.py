"""A grid of judging styles: every finished style is entered among the judges."""

from __future__ import annotations

from dataclasses import replace

from core.projects.style_grid.asking import Asker, language_model
from core.projects.style_grid.estimate import call_costs, estimated
from core.projects.style_grid.order import grid
from core.projects.style_grid.plan import StepsAnswer
from core.projects.styles import plan_of, run_steps, steps_document
from core.projects.views.styles import StepsView, StylesRequest, StylesView
from core.projects.work import RunWork
from core.records import Criteria, Task


def run_styles(work: RunWork) -> StylesView:
    """Ask the whole grid, cell by cell, as far as the budget reaches."""
    request = work.request(StylesRequest)
    plan = plan_of(work.store, work.golden, request, work.run.run_id)
    asker = _KeptAsker(work, request)  # before all else: a judge that cannot be asked ends the run
    try:
        prices = call_costs(estimated(work.golden, plan.columns, request, work.settings), plan.columns)
        plan = replace(plan, call_costs=prices, notes=asker.notes)
        return grid(plan, asker, work.add_judge, work.progress)
    finally:
        asker.close()


class _KeptAsker(Asker):
    """Evaluation steps are kept with the run: for people to see and edit, and as they were when the run goes on."""

    def __init__(self, work: RunWork, request: StylesRequest) -> None:
        super().__init__(work.golden, language_model(request.judge_spec, work.settings, work.replies, gate=work.gate))
        self._work = work

    def steps(self, task: Task, criteria: Criteria) -> StepsAnswer:
        """As they were when this was first asked: a person's version where one was saved by then, else the model's."""
        name = f"asked {steps_document(task.aspect, edited=False)}"
        answer = self._work.kept(name, StepsAnswer)
        if answer is None:
            saved = run_steps(self._work.store, self._work.run.run_id, task.aspect)
            edited = saved is not None and saved.edited
            answer = StepsAnswer(saved.text, edited=True) if saved and edited else super().steps(task, criteria)
            self._work.keep(name, answer)
        if answer.text and not answer.edited:
            steps = StepsView(task.aspect, answer.text, edited=False, run_id=self._work.run.run_id)
            self._work.keep(steps_document(task.aspect, edited=False), steps)
        return answer
