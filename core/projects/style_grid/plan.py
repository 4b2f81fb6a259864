"""What a grid of styles will do: the items of each aspect, and what comes of asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.board import Side
from core.calibration.start import choose_level
from core.errors import AspectError
from core.judging.styles import Style, calls_per_item
from core.projects.views.styles import StylesRequest, StylesView
from core.records import Criteria, FloatArray, GoldenSet, IntArray, Level, Task, Unscored, Usage


@dataclass(frozen=True)
class StepsAnswer:
    """Evaluation steps of an aspect (auto-CoT): no `text` is a `problem` in words; `edited` when a person's text stood
    there already, at no call.
    """

    text: str
    problem: str = ""
    edited: bool = False
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Asked:
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


@dataclass(frozen=True)
class GridStanding:
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
class Column:
    """One aspect of a grid: the items to ask, the criteria in force and the positions whose labels they saw.

    `reported` are the asked positions that the criteria did not see: the only ones to measure on.  `n_labelled` counts
    all labelled items; `steps` are a person's, "" for none.
    """

    task: Task
    positions: tuple[int, ...]
    reported: tuple[int, ...]
    seen: tuple[int, ...]
    criteria: Criteria
    steps: str
    level: Level
    n_labelled: int


@dataclass(frozen=True)
class Cell:
    """One style on one aspect, its steps in force; `call_cost` is the price of one call, None where unknown."""

    column: Column
    style: Style
    call_cost: float | None = None

    @property
    def calls(self) -> int:
        """Calls it takes: a reply for each sample of each item."""
        return len(self.column.positions) * calls_per_item(self.style)


@dataclass(frozen=True)
class GridPlan:
    """A grid ready to be driven.

    `call_costs` is the price of one call by aspect and then in the order of the request's styles; None where unknown.
    """

    request: StylesRequest
    columns: tuple[Column, ...]
    call_costs: Mapping[str, tuple[float | None, ...]]
    notes: tuple[str, ...] = ()
    run_id: str = ""


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


def column_of(golden: GoldenSet, task: Task, request: StylesRequest, criteria: Criteria, seen: Sequence[int]) -> Column:
    """The items of one aspect that `request` wants asked.

    A pilot draws its sources among those that the criteria did not see, so that everything it pays for can be
    reported.  AspectError when fewer than 2 items are left to measure on.
    """
    labelled = np.flatnonzero(~np.isnan(golden.labels(task.aspect)))
    unseen = labelled[~np.isin(labelled, np.asarray(seen, dtype=np.intp))]
    if unseen.size < 2:
        saw = f", of which the criteria saw {labelled.size - unseen.size}" if labelled.size > unseen.size else ""
        raise AspectError(
            f"aspect {task.aspect!r} has {labelled.size} labels{saw}: at least 2 items must be left to measure on. "
            "Label more items, or choose no criteria.",
            file=golden.name,
        )
    asked = labelled
    if request.n_items is not None and request.n_items < unseen.size:
        asked = _whole_sources(golden, unseen.tolist(), request.n_items, request.seed)
    reported = asked[np.isin(asked, unseen)]
    side = Side.of(golden, task.aspect, reported.tolist())
    return Column(
        task=task,
        positions=tuple(asked.tolist()),
        reported=tuple(reported.tolist()),
        seen=tuple(sorted(seen)),
        criteria=criteria,
        steps=request.steps.get(task.aspect, "").strip(),
        level=request.level or choose_level(side),
        n_labelled=int(labelled.size),
    )


def _whole_sources(golden: GoldenSet, positions: list[int], n_items: int, seed: int) -> IntArray:
    """Positions of whole sources in random order, until at least `n_items` are in; ascending."""
    codes = golden.source_codes[positions]
    chosen: list[int] = []
    for code in np.random.default_rng(seed).permutation(np.unique(codes)):
        if len(chosen) >= n_items:
            break
        chosen += [position for position, own in zip(positions, codes, strict=True) if own == code]
    return np.array(sorted(chosen), dtype=np.intp)


def styles_of(request: StylesRequest, steps: str) -> tuple[Style, ...]:
    """The styles in force on an aspect: with `steps` where a style brings none of its own."""
    if not steps:
        return request.styles
    return tuple(style if style.steps.strip() else replace(style, steps=steps) for style in request.styles)


def wants_written_steps(request: StylesRequest, column: Column) -> bool:
    """Whether the model has to write the steps of this aspect."""
    return request.auto_steps and not column.steps and any(not style.steps.strip() for style in request.styles)
