"""What is asked of a RepEval run, beside the model and the texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from core.errors import UsageError
from core.records import LEVELS, STATISTICS, Level, Statistic
from core.repeval.pairs import PairRule
from core.repeval.projection import (
    COMPONENTS,
    MeanDifference,
    PaperPCA,
    PaperSVM,
    Projection,
    PublishedPCA,
    Ridge,
)

Method = Literal["ridge", "mean-difference", "paper-pca", "published", "paper-svm"]
METHODS: tuple[Method, ...] = get_args(Method)
AVERAGED = 10  # cells, for the methods that average by default
IMPROVED: tuple[Method, ...] = ("ridge", "mean-difference")
SVM_PAIRS = 100


@dataclass(frozen=True, slots=True)
class RepEvalSettings:
    """How to project, search and report.

    `method`: "ridge" (default) and "mean-difference" are ours and average the z-scores of the best `average` cells
    (None = 10; 1 = the best cell alone); "paper-pca" and "paper-svm" are 003's, "published" is what its code does, and
    all three use one cell.  `pairs` None is 20 pairs across sources, for paper-svm 100 that may share texts.
    Of the sources `train_share` train, `validation_share` choose, and the rest tells.  `random_vectors` 0 leaves the
    random baseline out, `resamples` 0 the intervals.
    """

    method: Method = "ridge"
    average: int | None = None
    pairs: PairRule | None = None
    components: int = COMPONENTS
    statistic: Statistic = "spearman"
    level: Level = "dataset"
    train_share: float = 0.4
    validation_share: float = 0.2
    seed: int = 0
    resamples: int = 1_000
    random_vectors: int = 2_000

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"Unknown method {self.method!r}: use {', '.join(METHODS)}.")
        if self.statistic not in STATISTICS or self.level not in LEVELS:
            raise UsageError(
                f"{self.statistic} at {self.level} level is unknown: statistics are {', '.join(STATISTICS)}, levels "
                f"{', '.join(LEVELS)}."
            )
        if self.average is not None and self.average < 1:
            raise UsageError(f"At least 1 cell must be averaged, {self.average} came.")
        if self.average not in (None, 1) and self.method not in IMPROVED:
            raise UsageError(f"{self.method} uses one cell; averaging is for {' and '.join(IMPROVED)}.")
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
        return self.average or (AVERAGED if self.method in IMPROVED else 1)

    @property
    def pair_rule(self) -> PairRule:
        """The rule for pairs: the one given, else the method's own."""
        if self.pairs is not None:
            return self.pairs
        return PairRule(n=SVM_PAIRS, reuse=True) if self.method == "paper-svm" else PairRule()

    @property
    def uses_pairs(self) -> bool:
        """Whether the method learns from pairs (ridge learns from all training labels)."""
        return self.method != "ridge"

    def maker(self) -> Callable[[], Projection]:
        """What makes a fresh projection of the method."""
        makers: dict[Method, Callable[[], Projection]] = {
            "ridge": Ridge,
            "mean-difference": MeanDifference,
            "paper-pca": lambda: PaperPCA(self.components),
            "published": lambda: PublishedPCA(self.seed),
            "paper-svm": lambda: PaperSVM(seed=self.seed),
        }
        return makers[self.method]
