"""The grid of judging styles, run: every style on every aspect with one model, each aligned with the people.

Cells go aspect by aspect and style by style; a cell is asked whole or not at all, so that what a budget bought is
comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import shorten
from typing import Any

import numpy as np

from core.comparison.styles import (
    Column,
    GridSnapshot,
    StepsAnswer,
    StyleCell,
    StyleGrid,
    StylesView,
    Unfinished,
    estimate_grid,
)
from core.errors import JudgeError
from core.judging.base import OnProgress
from core.judging.llm import LLMJudge
from core.judging.registry import NAMED, Gate, language_model
from core.judging.replies import verdict_of
from core.judging.styles import Style, sampling_of
from core.progress import SILENT, Progress
from core.providers.base import Completion, OnReply, Provider, Reply, ReplyStore, Request
from core.records import Criteria, FloatArray, Item, JudgeScores, Measure, Scored, Task, Unscored, Usage
from core.settings import Settings
from core.stats import LabelledItems, align, pilot_forecast
from core.texts import is_blank

BATCH = 40
"""Items of a step."""
_LONGEST_NAME = 120

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
    keep_finished: bool = False,
    progress: Progress = SILENT,
) -> GridResult:
    """Ask the whole grid, cell by cell, as far as the budget reaches.

    Errors of the endpoint pass through.  With `keep_finished` a style that fails is left out with its reason, and its
    error passes through only if no style has a result.

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
        walk = _Walk(grid, model, enter or keep, steps_of, run_id, keep_finished, progress)
        for column in grid.columns:
            walk.ask_column(column, [next(costs) for _ in grid.request.styles])
        if walk.errors and not walk.cells:
            raise walk.errors[0]
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
    keep_finished: bool
    progress: Progress
    errors: list[JudgeError] = field(default_factory=list)
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
            try:
                steps = self._steps(column)
            except JudgeError as error:
                self._failed(aspect, self.grid.styles(""), error)
                return
        if steps:
            self.steps[aspect] = steps
        for style, call_cost in zip(self.grid.styles(steps), call_costs, strict=True):
            if column.writes_steps and not style.steps.strip():
                continue  # left out: its steps did not come
            if not self._affords(column.calls(style)):
                self._leave_out(aspect, [style], self._too_dear)
                continue
            try:
                self._ask_cell(column, style, call_cost)
            except JudgeError as error:
                self._failed(aspect, [style], error)

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

    def _failed(self, aspect: str, styles: Sequence[Style], error: JudgeError) -> None:
        if not self.keep_finished:
            raise error
        self.errors.append(error)
        self._leave_out(aspect, styles, str(error))

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


# ── one style on one aspect ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Answers:
    """Scores of some items in one style: `samples` (n_items, n_samples), NaN = no verdict; `values` (n_items,) means.

    `replies` are the texts as they came, by item.  `calls` counts the replies asked for, one a sample; `n_unread` those
    among them without a verdict, `n_unweighted` those of a weighted style that came without probabilities.
    """

    values: FloatArray
    samples: FloatArray
    unscored: tuple[Unscored, ...]
    replies: Mapping[str, tuple[str, ...]]
    calls: int
    n_unread: int
    n_unweighted: int
    usage: Usage

    @classmethod
    def joined(cls, batches: Sequence[Answers]) -> Answers:
        """Those of all batches, in their order."""
        return cls(
            np.concatenate([batch.values for batch in batches]),
            np.concatenate([batch.samples for batch in batches]),
            tuple(lost for batch in batches for lost in batch.unscored),
            {item_id: texts for batch in batches for item_id, texts in batch.replies.items()},
            sum(batch.calls for batch in batches),
            sum(batch.n_unread for batch in batches),
            sum(batch.n_unweighted for batch in batches),
            sum((batch.usage for batch in batches), Usage()),
        )


def ask_in_style(
    model: LLMJudge, task: Task, criteria: Criteria, style: Style, items: Sequence[Item], *, progress: Progress = SILENT
) -> Answers:
    """Every sample of `items`; `progress` counts replies.  Nothing is asked about an item without text."""
    judged = [k for k, item in enumerate(items) if not is_blank(item.target)]
    tap = _Tap(model.provider, progress.advance, len(judged) * style.samples)
    kind = type(model)  # one in the process asks in its own way
    judge = kind(tap, model.model, spec=model.spec, sampling=sampling_of(style))
    matrix = judge.score(task, items, [criteria])
    if len(tap.replies) != tap.expected:
        raise JudgeError(f"{len(tap.replies)} replies came for {len(judged)} items in the style {style.name}.")
    samples, texts = np.full((len(items), style.samples), np.nan), {}
    for n, k in enumerate(judged):
        replies = tap.replies[n * style.samples : (n + 1) * style.samples]
        samples[k] = [_value(items[k], reply, task, style) for reply in replies]
        texts[items[k].item_id] = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    return Answers(
        values=matrix.values[0],
        samples=samples,
        unscored=matrix.unscored.get(criteria.criteria_id, ()),
        replies=texts,
        calls=len(tap.replies),
        n_unread=int(np.isnan(samples[judged]).sum()),
        n_unweighted=judge.n_unweighted,
        usage=matrix.usage,
    )


def _value(item: Item, reply: Reply, task: Task, style: Style) -> float:
    """What a reply says by itself, NaN where it holds no verdict."""
    verdict = verdict_of(item.item_id, [reply], task, weighted=style.weighted)
    return verdict.value if isinstance(verdict, Scored) else np.nan


@dataclass
class _Tap:
    """A provider that keeps the replies that pass, in the order of their requests, and counts them as they come."""

    inner: Provider
    on_progress: OnProgress
    expected: int
    replies: list[Reply] = field(default_factory=list)
    arrived: int = 0

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        def count(index: int, reply: Reply) -> None:
            self.arrived += 1
            self.on_progress(self.arrived, self.expected)
            if on_reply is not None:
                on_reply(index, reply)

        replies = self.inner.complete(requests, on_reply=count)
        self.replies += replies
        return replies

    def close(self) -> None:
        """The connection is the model's."""


def measured(grid: StyleGrid, column: Column, style: Style, answers: Answers, call_cost: float | None) -> StyleCell:
    """The alignment on the reported items, with its interval, and the forecast where samples can differ.

    `call_cost` is the price of one call, None where unknown.
    """
    request, aspect, at = grid.request, column.task.aspect, np.asarray(column.reported)
    items, measure = LabelledItems.of(grid.golden, aspect, at), Measure(request.statistic, column.level)
    here = np.isin(np.asarray(column.positions), at)
    drawn: dict[str, Any] = {"resamples": request.resamples, "seed": request.seed}
    forecast = None
    if style.samples > 1 and style.varies:
        samples, n = answers.samples[here], column.n_labelled
        forecast = pilot_forecast(samples, items, measure, n_labelled=n, call_cost=call_cost, **drawn)
    return StyleCell(
        aspect=aspect,
        style=style,
        name=style.name,
        criteria_id=column.criteria.criteria_id if column.criteria.text else "",
        alignment=align(answers.values[here], items, measure, **drawn),
        n_asked=len(column.positions),
        n_seen=len(column.positions) - len(column.reported),
        n_replies=answers.calls,
        n_unread=answers.n_unread,
        n_unweighted=answers.n_unweighted,
        calls=answers.calls,
        usage=answers.usage,
        forecast=forecast,
    )


def as_judge(grid: StyleGrid, column: Column, style: Style, answers: Answers, run_id: str) -> JudgeScores:
    """The cell as a judge among judges, over all items of the golden set."""
    request, criteria = grid.request, column.criteria
    values = np.full(len(grid.golden.items), np.nan)
    values[list(column.positions)] = answers.values
    under = f"under criteria {criteria.criteria_id}" if criteria.text else "without criteria"
    pilot = f"; a pilot on {len(column.positions)} items" if request.is_pilot else ""
    parts = [request.judge_spec, style.name, *(["criteria"] * bool(criteria.text)), *(["pilot"] * request.is_pilot)]
    return JudgeScores(
        name=shorten(" · ".join(parts), _LONGEST_NAME, placeholder="…"),
        kind="style",
        aspect=column.task.aspect,
        values=values,
        unscored=answers.unscored,
        seen=column.seen,
        note=f"The judge {request.judge_spec}, {style.name}, {under}{pilot}.",
        run_id=run_id,
        calls_per_item=float(style.samples),
    )
