"""The grid of judging styles as a generator: which cell is asked when, and what the budget allows.

Like the calibration's loop it has no side effects: it yields work and is sent the answers, so that the worker can
make each step durable and the command line can drive it in this process.  Cells go aspect by aspect and style by
style; a cell is asked whole or not at all, so that what a budget bought is comparable.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core.jobs.tasks.style_grid.measure import judge_of, measured
from core.jobs.tasks.style_grid.plan import (
    Asked,
    AskStep,
    Cell,
    Column,
    GridPlan,
    GridStanding,
    Shelved,
    ShelveStep,
    StepsAnswer,
    StepsStep,
    styles_of,
    wants_written_steps,
)
from core.jobs.views.styles import StyleCell, StylesView, Unfinished
from core.judging.styles import Style
from core.records import GoldenSet, Usage

BATCH = 40
"""Items of a step."""

Grid = Generator[StepsStep | AskStep | ShelveStep | GridStanding, Any, StylesView]


def grid(golden: GoldenSet, plan: GridPlan) -> Grid:
    """Drive with `send`; ends with the view of all that was finished and the names of what was not."""
    tally = _Tally(plan)
    for column in plan.columns:
        yield from _column(golden, plan, column, tally)
    yield tally.standing("done", "done")
    return tally.view()


def _column(golden: GoldenSet, plan: GridPlan, column: Column, tally: _Tally) -> Generator[Any, Any, None]:
    request, aspect = plan.request, column.task.aspect
    steps = column.steps
    if wants_written_steps(request, column):
        if not tally.affords(1 + min(Cell(column, style).calls for style in request.styles)):
            tally.leave_out(aspect, styles_of(request, ""), tally.too_dear)
            return
        yield tally.standing("steps", f"writing the evaluation steps for {aspect}")
        written: StepsAnswer = yield StepsStep(column.task, column.criteria)
        tally.spend(0 if written.edited else 1, written.usage)
        steps = written.text
        if not steps:
            without = [style for style in request.styles if not style.steps.strip()]
            tally.leave_out(aspect, without, f"no evaluation steps came back: {written.problem}")
    if steps:
        tally.steps[aspect] = steps
    for style, call_cost in zip(styles_of(request, steps), plan.call_costs[aspect], strict=True):
        if wants_written_steps(request, column) and not style.steps.strip():
            continue  # left out above: its steps did not come
        cell = Cell(column, style, call_cost)
        if tally.affords(cell.calls):
            yield from _cell(golden, plan, cell, tally)
        else:
            tally.leave_out(aspect, [style], tally.too_dear)


def _cell(golden: GoldenSet, plan: GridPlan, cell: Cell, tally: _Tally) -> Generator[Any, Any, None]:
    column, style = cell.column, cell.style
    told = f"{column.task.aspect}, {style.name}"
    answers: list[Asked] = []
    for start in range(0, len(column.positions), BATCH):
        yield tally.standing("asking", told)
        asked: Asked = yield AskStep(column.task, style, column.criteria, column.positions[start : start + BATCH])
        tally.spend(asked.calls, asked.usage)
        answers.append(asked)
    whole = _joined(answers)
    yield tally.standing("measuring", told)
    found = measured(golden, plan, cell, whole)
    shelved: Shelved = yield ShelveStep(judge_of(golden, plan, cell, whole), whole.replies)
    tally.cells.append(replace(found, judge_id=shelved.judge_id))
    yield tally.standing("asking", told)


class _Tally:
    """What has come of the grid so far, and what it has cost."""

    def __init__(self, plan: GridPlan) -> None:
        self.plan = plan
        self.cells: list[StyleCell] = []
        self.unfinished: list[Unfinished] = []
        self.steps: dict[str, str] = {}
        self.calls = 0
        self.usage = Usage()
        self._expected = sum(
            sum(Cell(column, style).calls for style in plan.request.styles) + wants_written_steps(plan.request, column)
            for column in plan.columns
        )

    @property
    def too_dear(self) -> str:
        return f"the budget of {self.plan.request.budget:,} calls did not reach for it"

    def affords(self, calls: int) -> bool:
        budget = self.plan.request.budget
        return budget is None or self.calls + calls <= budget

    def spend(self, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage = self.usage + usage

    def leave_out(self, aspect: str, styles: Sequence[Style], reason: str) -> None:
        self.unfinished += [Unfinished(aspect, style.name, reason) for style in styles]

    def view(self) -> StylesView:
        dear = sum(one.reason == self.too_dear for one in self.unfinished) if self.plan.request.budget else 0
        early = f"The budget of {self.plan.request.budget:,} calls left out {dear} of the styles." if dear else ""
        return StylesView(
            tuple(self.cells), tuple(self.unfinished), dict(self.steps), self.calls, self.usage, early, self.plan.notes
        )

    def standing(self, phase: str, message: str) -> GridStanding:
        budget = self.plan.request.budget
        expected = self._expected if budget is None else min(self._expected, budget)
        return GridStanding(phase, message, expected, self.view())


def _joined(answers: Sequence[Asked]) -> Asked:
    replies = {item_id: texts for one in answers for item_id, texts in one.replies.items()}
    return Asked(
        np.concatenate([one.values for one in answers]),
        np.concatenate([one.samples for one in answers]),
        tuple(verdict for one in answers for verdict in one.unscored),
        replies,
        sum(one.calls for one in answers),
        sum(one.n_unread for one in answers),
        sum(one.n_unweighted for one in answers),
        sum((one.usage for one in answers), Usage()),
    )
