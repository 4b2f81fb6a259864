"""The settings of a RepEval run, and what comes out of it.

A result is frozen, JSON-able and enough to draw every cell without the states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from core.errors import UsageError
from core.records import LEVELS, STATISTICS, Alignment, FloatArray, GoldenSet, Level, Measure, Statistic
from core.repeval.model import ModelSpec
from core.repeval.projection import COMPONENTS, PairRule, RepEvalScorer
from core.repeval.states import Extraction, usual_texts
from core.stats import LabelledItems, align

Method = Literal["ridge", "paper-pca", "paper-svm"]
METHODS: tuple[Method, ...] = get_args(Method)
AVERAGED = 20
"""Cells that ridge averages by default."""
SVM_PAIRS = 100
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class RepEvalSettings:
    """Which model reads which texts, and how to project, search and report.

    `reading` None reads what `usual_texts` names.  `level` None is the aspect's usual one: sample level where groups
    allow it, else dataset.  `method` "ridge" averages the z-scores of the best `average` cells (None = 20; 1 = the best
    cell alone); "paper-pca" and "paper-svm" are those of RepEval and use one cell.  Ridge learns from training and
    validation items together: cells are chosen by cross-validation over their sources, then fitted on all of them.
    `pairs` None is 20 pairs, for paper-svm 100 that may share texts.  Fitted on `train_share` of the
    sources, chosen on `validation_share`, evaluated on the rest.  `random_vectors` 0 leaves the random baseline out,
    `resamples` 0 the intervals.
    """

    method: Method = "ridge"
    model: ModelSpec = field(default_factory=ModelSpec)
    reading: Extraction | None = None
    average: int | None = None
    pairs: PairRule | None = None
    components: int = COMPONENTS
    statistic: Statistic = "spearman"
    level: Level | None = None
    train_share: float = 0.4
    validation_share: float = 0.2
    seed: int = 0
    resamples: int = 1_000
    random_vectors: int = 2_000

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"Unknown method {self.method!r}: use {', '.join(METHODS)}.")
        if self.statistic not in STATISTICS or self.level not in (None, *LEVELS):
            raise UsageError(
                f"{self.statistic} at {self.level} level is unknown: statistics are {', '.join(STATISTICS)}, levels "
                f"{', '.join(LEVELS)}."
            )
        if self.average is not None and self.average < 1:
            raise UsageError(f"At least 1 cell must be averaged, {self.average} came.")
        if self.average not in (None, 1) and self.method != "ridge":
            raise UsageError(f"{self.method} uses one cell; averaging is for ridge.")
        if self.components < 1 or self.resamples < 0 or self.random_vectors < 0:
            raise UsageError("components must be at least 1; resamples and random_vectors cannot be negative.")
        shares = (self.train_share, self.validation_share, 1.0 - self.train_share - self.validation_share)
        if min(shares) <= 1e-9:
            raise UsageError(
                f"The shares for training ({self.train_share:g}) and validation ({self.validation_share:g}) must be "
                "above 0 and leave something to test on."
            )

    @property
    def cells_averaged(self) -> int:
        """How many of the best cells make the score."""
        return self.average or (AVERAGED if self.method == "ridge" else 1)

    @property
    def pair_rule(self) -> PairRule:
        """The rule for pairs: the one given, else the method's own."""
        if self.pairs is not None:
            return self.pairs
        return PairRule(n=SVM_PAIRS, reuse=True) if self.method == "paper-svm" else PairRule()

    @property
    def uses_pairs(self) -> bool:
        """Whether the method learns from pairs and chooses one cell on validation items.

        Ridge learns from all training labels; its cells are chosen by folds of sources, and then fitted on all of them.
        """
        return self.method != "ridge"

    def read(self, aspect: str) -> Extraction:
        """Return what is read: `reading`, else what the model usually reads."""
        return self.reading or Extraction(criterion=aspect, texts=usual_texts(self.model.name))

    def on(self, golden: GoldenSet, aspect: str) -> RepEvalSettings:
        """Return these settings with the level at which `aspect` is measured."""
        return self if self.level else replace(self, level=LabelledItems.of(golden, aspect).usual_level)

    @property
    def measure(self) -> Measure:
        """Statistic and level; only settings `on` a golden set have it."""
        assert self.level is not None
        return Measure(self.statistic, self.level)


@dataclass(frozen=True, slots=True)
class RepEvalSplit:
    """Positions (in `GoldenSet.items`) to train on, to choose on and to evaluate on; no source is in two of them.

    For a method that cross-validates the first two are the same items: each is scored by a fit without its source.
    """

    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RepEvalCell:
    """One layer at one token, with its k (PCA only) and its alignment on validation and test (None = undefined)."""

    layer: int
    token: str
    k: int | None
    validation: float | None
    test: float | None

    def as_json(self) -> dict[str, Any]:
        """Return its fields; the token is a number where it counts from the end."""
        return asdict(self) | {"token": token_json(self.token)}


@dataclass(frozen=True)
class RandomBaseline:
    """Test alignments of random directions in the chosen cell.

    `projection` is the chosen cell's own; `values` (n,) are those of the vectors as they came, `flipped` (n,) of the
    same ones turned so that the good text of most training pairs projects higher; NaN = undefined.
    """

    projection: float | None
    values: FloatArray
    flipped: FloatArray

    @property
    def percentile(self) -> float | None:
        """The share of random vectors below the projection (0 to 100)."""
        return percentile_of(self.projection, self.values)

    @property
    def percentile_flipped(self) -> float | None:
        """The same for the turned ones."""
        return percentile_of(self.projection, self.flipped)

    def as_json(self) -> dict[str, Any]:
        """Return percentiles and quantiles, without the single values."""
        body: dict[str, Any] = {
            "percentile": self.percentile,
            "percentile_flipped": self.percentile_flipped,
            "projection": self.projection,
            "n": int(self.values.size),
        }
        for name, values in (("quantiles", self.values), ("quantiles_flipped", self.flipped)):
            defined = values[~np.isnan(values)]
            found = np.quantile(defined, QUANTILES).tolist() if defined.size else []
            body[name] = {f"{level:g}": value for level, value in zip(QUANTILES, found, strict=False)} or None
        return body


@dataclass(frozen=True)
class RepEvalResult:
    """A RepEval score for every item, how it was chosen, and what it is worth.

    `scores` (n_items,) in the order of the golden set, higher is better, in no particular unit; those of items that it
    learnt from are of fits without their source where the method cross-validates, and optimistic elsewhere.  `chosen`
    is the cell with the best validation alignment, `members` the cells whose z-scores make up `scores` (the chosen one
    alone when one cell is used).  `validation` and `test` are alignments of `scores`; choosing makes the first
    optimistic.  `cells` (n_layers, n_tokens) holds every cell's validation alignment at its best k, `cell_k` (n_layers,
    n_tokens) that k (0 = the method has none), `cell_scores` (n_layers, n_tokens, n_items) its scores; NaN = undefined.
    `scorer` rates other items where it was asked for.
    """

    aspect: str
    settings: RepEvalSettings
    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    chosen: RepEvalCell
    members: tuple[RepEvalCell, ...]
    validation: Alignment
    test: Alignment
    cells: FloatArray
    cell_k: FloatArray
    cell_scores: FloatArray
    scores: FloatArray
    parts: RepEvalSplit
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
    def by_folds(self) -> bool:
        """Whether cells were chosen by cross-validation over all items that it learnt from."""
        return self.parts.train == self.parts.validation

    @property
    def optimism(self) -> float | None:
        """Validation less test alignment: the optimism of choosing, within chance; None when one is undefined."""
        if self.validation.value is None or self.test.value is None:
            return None
        return self.validation.value - self.test.value

    def as_json(self) -> dict[str, Any]:
        """Return what `repeval --json` prints; no NaN, null is undefined."""
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


def cell_detail(
    result: RepEvalResult, golden: GoldenSet, layer: int, token: str
) -> tuple[Alignment, Alignment, FloatArray]:
    """Return validation and test alignment of `layer` at `token`, with intervals, and its scores (n_items,).

    A cell looked at because its test alignment is high is no longer evaluated on test: the chosen one is.
    UsageError for a cell that was not read.
    """
    if layer not in result.layers or token not in result.tokens:
        raise UsageError(
            f"Layer {layer} at token {token} was not read; layers are {result.layers[0]} to {result.layers[-1]}, "
            f"tokens {', '.join(result.tokens)}."
        )
    scores = result.cell_scores[result.layers.index(layer), result.tokens.index(token)]
    validation, test = (
        evaluate(scores, LabelledItems.of(golden, result.aspect, part), result.settings)
        for part in (result.parts.validation, result.parts.test)
    )
    return validation, test, scores


def evaluate(scores: FloatArray, items: LabelledItems, settings: RepEvalSettings) -> Alignment:
    """Return the alignment of `scores` (n_all_items,) on `items`, with its interval."""
    own = scores[items.positions]
    return align(own, items, settings.measure, resamples=settings.resamples, seed=[settings.seed, 3])


def token_json(name: str) -> int | str:
    """-1 for "-1"; names of pooled tokens stay text."""
    return int(name) if name.startswith("-") else name


def nullable(value: float) -> float | None:
    """None for NaN."""
    return None if np.isnan(value) else float(value)


def percentile_of(value: float | None, among: FloatArray) -> float | None:
    """Return the share of `among` below `value` (0 to 100), ties counted half; None when either is undefined."""
    defined = among[~np.isnan(among)]
    if value is None or not defined.size:
        return None
    return float(100.0 * ((defined < value).sum() + 0.5 * (defined == value).sum()) / defined.size)
