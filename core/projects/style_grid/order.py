"""The grid of judging styles: which cell is asked when, and what the budget allows.

Cells go aspect by aspect and style by style; a cell is asked whole or not at all, so that what a budget bought is
comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.judging.styles import Style
from core.progress import SILENT, Progress
from core.projects.style_grid.asking import Asker
from core.projects.style_grid.measure import judge_of, measured
from core.projects.style_grid.plan import (
    Asked,
    Cell,
    Column,
    GridPlan,
    GridStanding,
    styles_of,
    wants_written_steps,
)
from core.projects.views.styles import StyleCell, StylesView, Unfinished
from core.records import JudgeScores, Usage

BATCH = 40
"""Items of a step."""

EnterJudge = Callable[[JudgeScores, Mapping[str, tuple[str, ...]]], str]
"""Takes a finished cell's scores and its replies by item; the id under which they stand among the judges, if any."""


def grid(plan: GridPlan, asker: Asker, enter: EnterJudge, progress: Progress = SILENT) -> StylesView:
    """All that was finished, and the names of what was not."""
    tally = _Tally(plan, progress)
    for column in plan.columns:
        _ask_column(plan, column, asker, enter, tally)
    tally.publish("done", "done")
    return tally.view()


def _ask_column(plan: GridPlan, column: Column, asker: Asker, enter: EnterJudge, tally: _Tally) -> None:
    request, aspect = plan.request, column.task.aspect
    steps = column.steps
    if wants_written_steps(request, column):
        if not tally.affords(1 + min(Cell(column, style).calls for style in request.styles)):
            tally.leave_out(aspect, styles_of(request, ""), tally.too_dear)
            return
        tally.publish("steps", f"writing the evaluation steps for {aspect}")
        written = asker.steps(column.task, column.criteria)
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
            _ask_cell(plan, cell, asker, enter, tally)
        else:
            tally.leave_out(aspect, [style], tally.too_dear)


def _ask_cell(plan: GridPlan, cell: Cell, asker: Asker, enter: EnterJudge, tally: _Tally) -> None:
    column, style = cell.column, cell.style
    name = f"{column.task.aspect}, {style.name}"
    answers: list[Asked] = []
    for start in range(0, len(column.positions), BATCH):
        tally.publish("asking", name)
        positions = column.positions[start : start + BATCH]
        asked = asker.scores(column.task, column.criteria, style, positions, tally.progress)
        tally.spend(asked.calls, asked.usage)
        answers.append(asked)
    whole = _joined(answers)
    tally.publish("measuring", name)
    found = measured(asker.golden, plan, cell, whole)
    judge_id = enter(judge_of(asker.golden, plan, cell, whole), whole.replies)
    tally.cells.append(replace(found, judge_id=judge_id))
    tally.publish("asking", name)


class _Tally:
    """What has come of the grid so far, and what it has cost."""

    def __init__(self, plan: GridPlan, progress: Progress) -> None:
        self.plan, self.progress = plan, progress
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

    def publish(self, phase: str, message: str) -> None:
        budget = self.plan.request.budget
        expected = self._expected if budget is None else min(self._expected, budget)
        self.progress.publish(GridStanding(phase, message, expected, self.view()))


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
