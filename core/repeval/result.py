"""What a RepEval run found: frozen, JSON-able, enough to draw every cell without the states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import UsageError
from core.records import Alignment, FloatArray, GoldenSet, Measure
from core.repeval.baseline import RandomBaseline
from core.repeval.portable import RepEvalScorer
from core.repeval.settings import RepEvalSettings
from core.stats import LabelledItems, align


@dataclass(frozen=True, slots=True)
class Parts:
    """Positions (into `GoldenSet.items`) to train on, to choose with and to tell on; no source is in two parts."""

    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One layer at one token, with its k (PCA only) and its alignment on validation and test (None = undefined)."""

    layer: int
    token: str
    k: int | None
    validation: float | None
    test: float | None

    def as_json(self) -> dict[str, Any]:
        """The token is a number where it counts from the end, as in 003's tables."""
        return {
            "layer": self.layer,
            "token": token_json(self.token),
            "k": self.k,
            "validation": self.validation,
            "test": self.test,
        }


@dataclass(frozen=True)
class RepEvalResult:
    """A RepEval score for every item, how it was chosen, and what it is worth.

    `scores` (n_items,) in the order of the golden set, higher is better, in no particular unit; those of training and
    validation items flatter.  `chosen` is the cell with the best validation alignment, `members` the cells whose
    z-scores make up `scores` (the chosen one alone when one cell is used).  `validation` and `test` are alignments of
    `scores`; choosing makes the first optimistic.  `cells` (n_layers, n_tokens) holds every cell's validation
    alignment at its best k, `cell_k` (n_layers, n_tokens) that k (0 = the method has none), `cell_scores` (n_layers,
    n_tokens, n_items) its scores; NaN = undefined.  `scorer` rates other items where it was asked for.
    """

    aspect: str
    settings: RepEvalSettings
    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    chosen: Cell
    members: tuple[Cell, ...]
    validation: Alignment
    test: Alignment
    cells: FloatArray
    cell_k: FloatArray
    cell_scores: FloatArray
    scores: FloatArray
    parts: Parts
    random: RandomBaseline | None
    n_pairs: int
    states: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    scorer: RepEvalScorer | None = None

    @property
    def method(self) -> str:
        return self.settings.method

    @property
    def model(self) -> str:
        return str(self.states.get("model", ""))

    @property
    def optimism(self) -> float | None:
        """Validation less test alignment: what choosing flattered, give or take chance; None when one is undefined."""
        if self.validation.value is None or self.test.value is None:
            return None
        return self.validation.value - self.test.value

    def as_json(self) -> dict[str, Any]:
        """The `repeval` object of DESIGN §3 with more beside it; no NaN, null is undefined."""
        return {
            "aspect": self.aspect,
            "method": self.method,
            "layer": self.chosen.layer,
            "token": token_json(self.chosen.token),
            "k": self.chosen.k,
            "validation": self.validation.as_json(),
            "test": self.test.as_json(),
            "optimism": self.optimism,
            "random": {"percentile": None} if self.random is None else self.random.as_json(),
            "cells": [[nullable(value) for value in row] for row in self.cells.tolist()],
            "layers": list(self.layers),
            "tokens": [token_json(name) for name in self.tokens],
            "chosen": self.chosen.as_json(),
            "averaged": [cell.as_json() for cell in self.members],
            "n_pairs": self.n_pairs,
            "n_train": len(self.parts.train),
            "n_validation": len(self.parts.validation),
            "n_test": len(self.parts.test),
            "seed": self.settings.seed,
            "states": dict(self.states),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class CellDetail:
    """One cell looked at: its `scores` (n_items,) and their alignment with people, with intervals."""

    cell: Cell
    validation: Alignment
    test: Alignment
    scores: FloatArray


def cell_detail(result: RepEvalResult, golden: GoldenSet, layer: int, token: str) -> CellDetail:
    """What `layer` at `token` does; UsageError for a cell that was not read.

    A cell looked at because its test alignment is high is no longer told on test: the chosen one is.
    """
    if layer not in result.layers or token not in result.tokens:
        raise UsageError(
            f"Layer {layer} at token {token} was not read; layers are {result.layers[0]} to {result.layers[-1]}, "
            f"tokens {', '.join(result.tokens)}."
        )
    i, j = result.layers.index(layer), result.tokens.index(token)
    scores = result.cell_scores[i, j]
    validation, test = (
        told(scores, LabelledItems.of(golden, result.aspect, part), result.settings)
        for part in (result.parts.validation, result.parts.test)
    )
    k = int(result.cell_k[i, j]) or None
    return CellDetail(Cell(layer, token, k, validation.value, test.value), validation, test, scores)


def told(scores: FloatArray, items: LabelledItems, settings: RepEvalSettings) -> Alignment:
    """Alignment of `scores` (n_all_items,) on `items`, with its interval."""
    own = scores[items.positions]
    return align(own, items, measure_of(settings), resamples=settings.resamples, seed=[settings.seed, 3])


def measure_of(settings: RepEvalSettings) -> Measure:
    """Statistic and level of a run."""
    return Measure(settings.statistic, settings.level)


def token_json(name: str) -> int | str:
    """-1 for "-1"; names of pooled tokens stay text."""
    return int(name) if name.startswith("-") else name


def nullable(value: float) -> float | None:
    """None for NaN."""
    return None if np.isnan(value) else float(value)
