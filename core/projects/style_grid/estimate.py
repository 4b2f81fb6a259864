"""What a grid of styles will ask for and cost, cell by cell, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from core.judging.styles import Style, sampling_of
from core.judging.verdicts import require_weightable
from core.projects.style_grid.asking import language_model
from core.projects.style_grid.plan import Cell, Column, styles_of, wants_written_steps
from core.projects.views.styles import CellEstimate, StylesEstimate, StylesRequest
from core.records import GoldenSet
from core.settings import Settings

RENDERED = 200
"""Items, drawn at random, whose prompts are rendered for an estimate; the others count as much on average."""
Number = TypeVar("Number", int, float)
_STEPS_LIKE = "x" * 6 * 120
"""Stands for the steps that are not written yet: about 120 words."""


def estimated(
    golden: GoldenSet, columns: Sequence[Column], request: StylesRequest, settings: Settings
) -> StylesEstimate:
    """Calls, tokens and price of every cell, and of those together that the budget reaches.

    UsageError for a judge that is no language model, or a weighted style on a scale without whole ratings.
    """
    cells: list[CellEstimate] = []
    spent = 0
    written = [wants_written_steps(request, column) for column in columns]
    for column, writes in zip(columns, written, strict=True):
        spent += writes
        for style in styles_of(request, column.steps or (_STEPS_LIKE if writes else "")):
            calls = Cell(column, style).calls
            affordable = request.budget is None or spent + calls <= request.budget
            spent += calls if affordable else 0
            cells.append(_cell(golden, column, style, request, settings, affordable=affordable))
    reached = [cell for cell in cells if cell.affordable]
    return StylesEstimate(
        tuple(cells),
        spent if reached else 0,
        _total([cell.prompt_tokens for cell in reached]),
        _total([cell.completion_tokens for cell in reached]),
        _total([cell.cost for cell in reached]),
        _notes(any(written), cells, request),
    )


def call_costs(told: StylesEstimate, columns: Sequence[Column]) -> dict[str, tuple[float | None, ...]]:
    """The price of one call by aspect, then in the order of the styles; None where it is unknown."""
    return {
        column.task.aspect: tuple(
            None if cell.cost is None or not cell.calls else cell.cost / cell.calls
            for cell in told.cells
            if cell.aspect == column.task.aspect
        )
        for column in columns
    }


def _cell(
    golden: GoldenSet, column: Column, style: Style, request: StylesRequest, settings: Settings, *, affordable: bool
) -> CellEstimate:
    if style.weighted:
        require_weightable(column.task.scale)
    drawn = np.random.default_rng(0).permutation(np.asarray(column.positions))[:RENDERED]
    whole = len(column.positions) / len(drawn)
    judge = language_model(request.judge_spec, settings, sampling=sampling_of(style))
    try:
        told = judge.estimate(
            column.task, [golden.items[position] for position in drawn], len(column.criteria.text.split())
        )
    finally:
        judge.close()
    return CellEstimate(
        column.task.aspect,
        style.name,
        len(column.positions),
        Cell(column, style).calls,
        None if told.prompt_tokens is None else round(told.prompt_tokens * whole),
        None if told.completion_tokens is None else round(told.completion_tokens * whole),
        None if told.cost is None else told.cost * whole,
        affordable,
    )


def _notes(writes_steps: bool, cells: Sequence[CellEstimate], request: StylesRequest) -> tuple[str, ...]:
    notes = []
    if writes_steps:
        notes.append("One call an aspect writes its evaluation steps first; here they count as 120 words.")
    if left_out := sum(not cell.affordable for cell in cells):
        notes.append(
            f"The budget of {request.budget:,} calls leaves out {left_out} of {len(cells)} cells: each is asked whole "
            "or not at all."
        )
    return tuple(notes)


def _total(parts: Sequence[Number | None]) -> Number | None:
    """The sum; None where a part is unknown, or where there is none."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(parts) else None
