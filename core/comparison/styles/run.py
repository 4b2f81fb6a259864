"""The grid of judging styles, run: every style on every aspect with one model, each aligned with the people.

Cells go aspect by aspect and style by style; a cell is asked whole or not at all, so that what a budget bought is
comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from core.comparison.styles.cells import Answers, as_judge, ask_in_style, measured
from core.comparison.styles.estimate import estimate_grid
from core.comparison.styles.grid import Column, StyleGrid
from core.comparison.styles.records import GridSnapshot, StepsAnswer, StyleCell, StylesView, Unfinished
from core.judging.llm import LLMJudge
from core.judging.registry import NAMED, Gate, language_model
from core.judging.styles import Style
from core.progress import SILENT, Progress
from core.providers.base import ReplyStore
from core.records import JudgeScores, Usage
from core.settings import Settings

__all__ = ["EnterJudge", "FinishedStyle", "GridResult", "StepsOf", "StyleGrid", "estimate_grid", "run_grid"]

BATCH = 40
"""Items of a step."""

EnterJudge = Callable[[JudgeScores, Mapping[str, tuple[str, ...]]], str]
"""Takes a finished style's scores and its replies by item; returns the id that they have from then on."""
StepsOf = Callable[[str, Callable[[], StepsAnswer]], StepsAnswer]
"""(aspect, how the model writes them) → the evaluation steps to take: the model's, or what was kept of them."""


@dataclass(frozen=True)
class FinishedStyle:
    """A finished style's scores as a judge, with its replies by item."""

    judge: JudgeScores
    replies: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class GridResult:
    """What came out; `finished` are the styles' scores in the order of `view.cells`, unless somebody entered them."""

    view: StylesView
    finished: tuple[FinishedStyle, ...] = ()


def run_grid(
    grid: StyleGrid,
    settings: Settings,
    replies: ReplyStore | None = None,
    *,
    gate: Gate = NAMED,
    enter: EnterJudge | None = None,
    steps_of: StepsOf = lambda aspect, write: write(),
    run_id: str = "",
    progress: Progress = SILENT,
) -> GridResult:
    """Ask the whole grid, cell by cell, as far as the budget reaches.  Errors of the endpoint pass through.

    With `replies` nothing is paid twice: a grid that was interrupted goes on where it stopped.  `enter` takes each
    style's scores as it is finished.  UsageError for a judge that is no language model.
    """
    model = language_model(grid.request.judge_spec, settings, replies, gate=gate)  # refused before all else
    finished: list[FinishedStyle] = []

    def keep(judge: JudgeScores, texts: Mapping[str, tuple[str, ...]]) -> str:
        finished.append(FinishedStyle(judge, texts))
        return ""

    try:
        costs = iter([cell.call_cost for cell in estimate_grid(grid, settings).cells])
        walk = _Walk(grid, model, enter or keep, steps_of, run_id, progress)
        for column in grid.columns:
            walk.ask_column(column, [next(costs) for _ in grid.request.styles])
        walk.publish("done", "done")
        return GridResult(walk.view(), tuple(finished))
    finally:
        model.close()


@dataclass
class _Walk:
    """A grid being asked: what has come of it so far, and what it has cost."""

    grid: StyleGrid
    model: LLMJudge
    enter: EnterJudge
    steps_of: StepsOf
    run_id: str
    progress: Progress
    cells: list[StyleCell] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)
    steps: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    @cached_property
    def expected(self) -> int:
        """Calls that the whole grid takes, or the budget where it is less."""
        request = self.grid.request
        calls = sum(sum(map(column.calls, request.styles)) + column.writes_steps for column in self.grid.columns)
        return calls if request.budget is None else min(calls, request.budget)

    def ask_column(self, column: Column, call_costs: Sequence[float | None]) -> None:
        """Every style on one aspect, its evaluation steps first where the model has to write them."""
        aspect, steps = column.task.aspect, column.steps
        if column.writes_steps:
            if not self._affords(1 + min(map(column.calls, self.grid.request.styles))):
                self._leave_out(aspect, self.grid.styles(""), self._too_dear)
                return
            steps = self._steps(column)
        if steps:
            self.steps[aspect] = steps
        for style, call_cost in zip(self.grid.styles(steps), call_costs, strict=True):
            if column.writes_steps and not style.steps.strip():
                continue  # left out: its steps did not come
            if self._affords(column.calls(style)):
                self._ask_cell(column, style, call_cost)
            else:
                self._leave_out(aspect, [style], self._too_dear)

    def _steps(self, column: Column) -> str:
        aspect = column.task.aspect

        def write() -> StepsAnswer:
            written = self.model.write_steps(column.task, column.criteria.text)
            return StepsAnswer(written.text, written.problem, usage=written.usage)

        self.publish("steps", f"writing the evaluation steps for {aspect}")
        answer = self.steps_of(aspect, write)
        self._spend(0 if answer.edited else 1, answer.usage)
        if not answer.text:
            without = [style for style in self.grid.request.styles if not style.steps.strip()]
            self._leave_out(aspect, without, f"no evaluation steps came back: {answer.problem}")
        return answer.text

    def _ask_cell(self, column: Column, style: Style, call_cost: float | None) -> None:
        name, batches = f"{column.task.aspect}, {style.name}", []
        for start in range(0, len(column.positions), BATCH):
            self.publish("asking", name)
            items = [self.grid.golden.items[k] for k in column.positions[start : start + BATCH]]
            batch = ask_in_style(self.model, column.task, column.criteria, style, items, progress=self.progress)
            self._spend(batch.calls, batch.usage)
            batches.append(batch)
        answers = Answers.joined(batches)
        self.publish("measuring", name)
        cell = measured(self.grid, column, style, answers, call_cost)
        judge_id = self.enter(as_judge(self.grid, column, style, answers, self.run_id), answers.replies)
        self.cells.append(replace(cell, judge_id=judge_id))
        self.publish("asking", name)

    # ── what it has cost ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def _too_dear(self) -> str:
        return f"the budget of {self.grid.request.budget:,} calls did not reach for it"

    def _affords(self, calls: int) -> bool:
        budget = self.grid.request.budget
        return budget is None or self.calls + calls <= budget

    def _spend(self, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage = self.usage + usage

    def _leave_out(self, aspect: str, styles: Sequence[Style], reason: str) -> None:
        self.unfinished += [Unfinished(aspect, style.name, reason) for style in styles]

    def view(self) -> StylesView:
        """What has come of the grid so far."""
        budget = self.grid.request.budget
        dear = sum(left_out.reason == self._too_dear for left_out in self.unfinished) if budget else 0
        early = f"The budget of {budget:,} calls left out {dear} of the styles." if dear else ""
        notes = self.grid.notes if self.model.is_llm else (*self.grid.notes, self.model.notice)
        return StylesView(
            tuple(self.cells), tuple(self.unfinished), dict(self.steps), self.calls, self.usage, early, notes
        )

    def publish(self, phase: str, message: str) -> None:
        """Show where the grid stands."""
        self.progress.publish(GridSnapshot(phase, message, self.expected, self.view()))
