"""A grid of judging styles: one language model asked in several ways, each aligned with the people.

What a person asks for (`StylesRequest`), what that means on a golden set (`StyleGrid`), what it will cost
(`estimate_grid`), and the records of what came of it; `core.comparison.styles_run` asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from core.data.split import task_of, whole_sources
from core.errors import AspectError, UsageError
from core.judging.asking import STEPS_LIKE
from core.judging.base import CallEstimate
from core.judging.styles import Style, sampling_of
from core.records import Alignment, Criteria, GoldenSet, Level, Provenance, Statistic, Task, Usage
from core.settings import Settings
from core.stats import LabelledItems
from core.stats.pilot import Forecast

if TYPE_CHECKING:
    from core.judging.llm import LLMJudge


MOST_STYLES = 40
RENDERED = 200
"""Items, drawn at random, whose prompts are rendered for an estimate; the others count as much on average."""
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class StylesRequest:
    """Every style on every aspect, with one judge.  `aspect` is the first of `aspects`, for lists of runs.

    `criteria` maps an aspect to the id of criteria of the project ("" or absent: none).  `steps` maps an aspect to
    evaluation steps that a person gave; with `auto_steps` the judge's model writes those that are not given, once
    for each aspect.  A style's own steps win over both.  `n_items` None takes all labelled items; a number makes a
    pilot of whole sources, drawn by `seed`, until that many items are in.  `budget` is in calls, one reply each;
    `level` None takes sample level where the groups allow it, else dataset.
    """

    project_id: str
    golden_id: str
    aspect: str
    aspects: tuple[str, ...]
    judge_spec: str
    styles: tuple[Style, ...]
    criteria: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
    auto_steps: bool = False
    n_items: int | None = None
    budget: int | None = None
    seed: int = 0
    statistic: Statistic = "spearman"
    level: Level | None = None
    resamples: int = 1000

    def __post_init__(self) -> None:
        if not self.styles or not self.aspects:
            raise UsageError("A grid needs at least one style and one aspect.")
        if len(self.styles) > MOST_STYLES:
            raise UsageError(f"A grid holds at most {MOST_STYLES} styles; {len(self.styles)} came.")
        for what, chosen in (("styles", self.styles), ("aspects", self.aspects)):
            if len(set(chosen)) < len(chosen):
                raise UsageError(f"The {what} of a grid must differ; one of them came twice.")
        if (self.auto_steps or any(self.steps.values())) and any(style.form == "likelihood" for style in self.styles):
            raise UsageError("A likelihood takes no evaluation steps, since nothing is written: leave one of them out.")
        if self.aspect != self.aspects[0]:
            raise UsageError(f"The grid's aspect must be the first of its aspects, {self.aspects[0]!r}.")
        for name, value, least in (("n_items", self.n_items, 2), ("budget", self.budget, 1)):
            if value is not None and value < least:
                raise UsageError(f"The grid's {name} must be at least {least} (or left out), not {value}.")

    @property
    def is_pilot(self) -> bool:
        """Whether it asks a part of the labelled items only."""
        return self.n_items is not None


@dataclass(frozen=True)
class Column:
    """One aspect of a grid: the items to ask, the criteria in force and the positions whose labels they saw.

    `reported` are the asked positions that the criteria did not see: the only ones to measure on.  `n_labelled` counts
    all labelled items; `steps` are a person's, "" for none; `writes_steps` says that the model has to write them.
    """

    task: Task
    positions: tuple[int, ...]
    reported: tuple[int, ...]
    seen: tuple[int, ...]
    criteria: Criteria
    steps: str
    writes_steps: bool
    level: Level
    n_labelled: int

    def calls(self, style: Style) -> int:
        """Calls that a style takes: a reply for each sample of each item."""
        return len(self.positions) * style.samples


@dataclass(frozen=True)
class StyleGrid:
    """What a request means on a golden set: criteria by aspect where there are any, and the positions that they saw."""

    golden: GoldenSet
    request: StylesRequest
    criteria: Mapping[str, Criteria] = field(default_factory=dict)
    seen: Mapping[str, Sequence[int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The aspects of the grid; AspectError for one that is absent or has too few labels left to measure on."""
        return tuple(self._column(aspect) for aspect in self.request.aspects)

    def _column(self, aspect: str) -> Column:
        """A pilot draws its sources among those that the criteria did not see, so that all it pays for is reported."""
        golden, request, task = self.golden, self.request, task_of(self.golden, aspect)
        seen = sorted(self.seen.get(aspect, ()))
        labelled = np.flatnonzero(~np.isnan(golden.labels(aspect)))
        unseen = labelled[~np.isin(labelled, seen)]
        if unseen.size < 2:
            saw = f", of which the criteria saw {labelled.size - unseen.size}" if labelled.size > unseen.size else ""
            raise AspectError(
                f"aspect {aspect!r} has {labelled.size} labels{saw}: at least 2 items must be left to measure on. "
                "Label more items, or choose no criteria.",
                file=golden.name,
            )
        positions = labelled
        if request.n_items is not None and request.n_items < unseen.size:
            positions = whole_sources(golden.source_codes, unseen, request.n_items, np.random.default_rng(request.seed))
        reported = positions[np.isin(positions, unseen)]
        steps = request.steps.get(aspect, "").strip()
        return Column(
            task=task,
            positions=tuple(positions.tolist()),
            reported=tuple(reported.tolist()),
            seen=tuple(seen),
            criteria=self.criteria.get(aspect, Criteria("", aspect, Provenance("none"))),
            steps=steps,
            writes_steps=request.auto_steps and not steps and any(not style.steps.strip() for style in request.styles),
            level=request.level or LabelledItems.of(golden, aspect, reported).usual_level,
            n_labelled=int(labelled.size),
        )

    def styles(self, steps: str) -> tuple[Style, ...]:
        """The styles in force on an aspect: with `steps` where a style brings none of its own."""
        if not steps:
            return self.request.styles
        return tuple(style if style.steps.strip() else replace(style, steps=steps) for style in self.request.styles)


# ── before it starts ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CellEstimate(CallEstimate):
    """One style on one aspect before it starts."""

    aspect: str
    style: str
    n_items: int
    affordable: bool = True

    @property
    def call_cost(self) -> float | None:
        """The price of one call; None where it is unknown."""
        return None if self.cost is None or not self.calls else self.cost / self.calls


@dataclass(frozen=True, slots=True)
class StylesEstimate(CallEstimate):
    """A grid before it starts: cell by cell, and in total (what the budget leaves out is not in the total)."""

    cells: tuple[CellEstimate, ...]
    notes: tuple[str, ...] = ()


def estimate_grid(grid: StyleGrid, settings: Settings) -> StylesEstimate:
    """Calls, tokens and price of every cell, and of those together that the budget reaches; asks no endpoint.

    UsageError for a judge that is no language model, or a weighted style on a scale without whole ratings; AuthError
    without a key; AspectError when too few labels are left to measure on.
    """
    from core.judging.ready import references_words, require_references
    from core.judging.registry import language_model

    budget, spent = grid.request.budget, 0
    cells: list[CellEstimate] = []
    model = language_model(grid.request.judge_spec, settings)
    try:
        for column in grid.columns:
            spent += column.writes_steps
            for style in grid.styles(column.steps or (STEPS_LIKE if column.writes_steps else "")):
                require_references(style, column.task, [grid.golden.items[p] for p in column.positions])
                affordable = budget is None or spent + column.calls(style) <= budget
                spent += column.calls(style) if affordable else 0
                cells.append(_cell(grid, column, style, model, affordable=affordable))
        seeing = [(column, style) for column in grid.columns for style in grid.request.styles if style.references]
        notes = []
        if seeing:
            column, style = seeing[0]
            shown, calls = model.with_sampling(sampling_of(style)), sum(column.calls(each) for column, each in seeing)
            notes = [references_words(shown, column.task, [grid.golden.items[p] for p in column.positions], calls)]
    finally:
        model.close()
    reached = [cell for cell in cells if cell.affordable]
    return StylesEstimate(
        spent if reached else 0,
        _total([cell.prompt_tokens for cell in reached]),
        _total([cell.completion_tokens for cell in reached]),
        _total([cell.cost for cell in reached]),
        tuple(cells),
        (*_notes(grid, cells), *notes),
    )


def _cell(grid: StyleGrid, column: Column, style: Style, model: LLMJudge, *, affordable: bool) -> CellEstimate:
    drawn = np.random.default_rng(0).permutation(np.asarray(column.positions))[:RENDERED]
    items, words = [grid.golden.items[position] for position in drawn], len(column.criteria.text.split())
    some = model.with_sampling(sampling_of(style)).estimate(column.task, items, words)
    return CellEstimate(
        column.calls(style),
        *some.scaled(len(column.positions) / len(drawn)),
        column.task.aspect,
        style.name,
        len(column.positions),
        affordable,
    )


def _notes(grid: StyleGrid, cells: Sequence[CellEstimate]) -> tuple[str, ...]:
    notes = []
    if any(column.writes_steps for column in grid.columns):
        notes.append("One call an aspect writes its evaluation steps first; here they count as 120 words.")
    if left_out := sum(not cell.affordable for cell in cells):
        notes.append(
            f"The budget of {grid.request.budget:,} calls leaves out {left_out} of {len(cells)} cells: each is asked "
            "whole or not at all."
        )
    return tuple(notes)


def _total(parts: Sequence[Number | None]) -> Number | None:
    """The sum; None where a part is unknown, or where there is none."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(parts) else None


# ── what came of it ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StyleCell:
    """One style on one aspect, measured on the labelled items that were asked and that no criteria saw.

    `n_asked` items were asked for `n_replies` replies, of which `n_unread` held no verdict and `n_unweighted` came
    without the probabilities that a weighted style wants.  `judge_id` is its place in the judge registry ("" off the
    store).  `forecast` is None where more calls cannot differ (temperature 0).
    """

    aspect: str
    style: Style
    name: str
    criteria_id: str
    alignment: Alignment
    n_asked: int
    n_seen: int
    n_replies: int
    n_unread: int
    n_unweighted: int
    calls: int
    usage: Usage
    judge_id: str = ""
    forecast: Forecast | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A style that was not run on an aspect, and why."""

    aspect: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StylesView:
    """What came of a grid, or has come of it so far; `steps` are the evaluation steps in force, by aspect."""

    cells: tuple[StyleCell, ...]
    unfinished: tuple[Unfinished, ...]
    steps: Mapping[str, str]
    calls: int
    usage: Usage
    stopped_early: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepsView:
    """Evaluation steps for an aspect: `edited` by a person, or as the model wrote them in run `run_id`."""

    aspect: str
    text: str
    edited: bool
    run_id: str


@dataclass(frozen=True)
class GridSnapshot:
    """Where the grid stands, for whoever watches."""

    phase: str
    message: str
    calls_expected: int
    view: StylesView

    @property
    def calls(self) -> int:
        return self.view.calls

    @property
    def usage(self) -> Usage:
        return self.view.usage


@dataclass(frozen=True)
class StepsAnswer:
    """Evaluation steps of an aspect as a grid took them: no `text` is a `problem` in words; `edited` by a person, at no
    call.
    """

    text: str
    problem: str = ""
    edited: bool = False
    usage: Usage = field(default_factory=Usage)
