"""What a grid of styles will ask for and cost, cell by cell, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from core.comparison.styles.grid import Column, StyleGrid
from core.comparison.styles.records import CellEstimate, StylesEstimate
from core.judging.llm import LLMJudge
from core.judging.registry import language_model
from core.judging.styles import Style, sampling_of
from core.settings import Settings

RENDERED = 200
"""Items, drawn at random, whose prompts are rendered for an estimate; the others count as much on average."""
Number = TypeVar("Number", int, float)
_STEPS_LIKE = "x" * 6 * 120
"""Stands for the steps that are not written yet: about 120 words."""


def estimate_grid(grid: StyleGrid, settings: Settings) -> StylesEstimate:
    """Calls, tokens and price of every cell, and of those together that the budget reaches; asks no endpoint.

    UsageError for a judge that is no language model, or a weighted style on a scale without whole ratings; AuthError
    without a key; AspectError when too few labels are left to measure on.
    """
    budget, spent = grid.request.budget, 0
    cells: list[CellEstimate] = []
    model = language_model(grid.request.judge_spec, settings)
    try:
        for column in grid.columns:
            spent += column.writes_steps
            for style in grid.styles(column.steps or (_STEPS_LIKE if column.writes_steps else "")):
                affordable = budget is None or spent + column.calls(style) <= budget
                spent += column.calls(style) if affordable else 0
                cells.append(_cell(grid, column, style, model, affordable=affordable))
    finally:
        model.close()
    reached = [cell for cell in cells if cell.affordable]
    return StylesEstimate(
        tuple(cells),
        spent if reached else 0,
        _total([cell.prompt_tokens for cell in reached]),
        _total([cell.completion_tokens for cell in reached]),
        _total([cell.cost for cell in reached]),
        _notes(grid, cells),
    )


def _cell(grid: StyleGrid, column: Column, style: Style, model: LLMJudge, *, affordable: bool) -> CellEstimate:
    drawn = np.random.default_rng(0).permutation(np.asarray(column.positions))[:RENDERED]
    whole = len(column.positions) / len(drawn)
    items, words = [grid.golden.items[position] for position in drawn], len(column.criteria.text.split())
    some = model.with_sampling(sampling_of(style)).estimate(column.task, items, words)
    return CellEstimate(
        column.task.aspect,
        style.name,
        len(column.positions),
        column.calls(style),
        None if some.prompt_tokens is None else round(some.prompt_tokens * whole),
        None if some.completion_tokens is None else round(some.completion_tokens * whole),
        None if some.cost is None else some.cost * whole,
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
