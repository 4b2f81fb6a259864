"""Settings of a calibration: 001's presets and what 001 leaves open (golden-set split, K, misalignment, racing)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from core.data.split import split_sources
from core.errors import UsageError
from core.judging.base import OPERATIONS, Operation
from core.records import LEVELS, STATISTICS, GoldenSet, Level, Split, Statistic
from core.wording import counted

__all__ = [
    "OPERATIONS",
    "PRESETS",
    "CalibrationSettings",
    "Operation",
    "Preset",
    "RevisitMode",
    "RoundSettings",
    "SplitKind",
]

RevisitMode = Literal["racing", "full"]
SplitKind = Literal["sources", "sources+systems"]


@dataclass(frozen=True, slots=True)
class Preset:
    """How many criteria are drafted and refined, from how many exemplars (001, Table 9)."""

    draft_sizes: tuple[int, ...]
    draft_trials: int
    draft_samples: int
    refine_sizes: tuple[int, ...] = (1, 2, 4)
    refine_trials: int = 4
    refine_samples: int = 2
    max_tokens: int = 768

    @property
    def n_drafts(self) -> int:
        return len(self.draft_sizes) * self.draft_trials * self.draft_samples

    @property
    def n_refinements(self) -> int:
        """Refinements of one parent in one round."""
        return len(self.refine_sizes) * self.refine_trials * self.refine_samples


PRESETS: Mapping[str, Preset] = {
    "summarisation": Preset((4, 6, 8, 10, 12), 4, 3),
    "data-to-text": Preset((4, 6, 8, 10, 12, 14), 4, 3),
    "hallucination": Preset((6, 8, 10, 12, 14, 16), 3, 3),
    "quick": Preset((4, 8, 12), 2, 2, (1, 4), 1, 2),
}


AS_IN_PAPER: Mapping[str, Any] = {"revisit": "full", "refine_gate": False, "ensemble": 1, "max_words": None}
"""001 to the letter: every draft on every item, refinements ungated, the argmax, criteria of any length."""

LEAST_WORDS, MOST_WORDS = 20, 5_000
"""Limits that criteria may be told to keep to."""


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """What a person chooses before the start.  `level` None takes what the golden set allows.

    `keep` is 001's K.  `budget` bounds the calls (one per set of criteria and item, draft or refinement); `ensemble`
    averages that many of the best criteria (1 = the paper's argmax).  `misaligned` is how many of a parent's
    most misaligned calibration items a refinement may be shown; `min_gap` the least standardised gap among them.
    With `fit_strengths` a judge that can (the offline one) writes the final criteria with strengths fitted to all
    calibration labels; without, the best of its short drafts and refinements make the final judge.
    Without `refine_gate` every refinement joins the pool, as in 001, which takes the argmax over all of it.
    `max_words` is the length that a model is told to keep criteria to; None leaves it free, as 001 does.
    """

    preset: str = "summarisation"
    revisit: RevisitMode = "racing"
    rounds: int = 1
    keep: int = 4
    ensemble: int = 3
    budget: int | None = None
    statistic: Statistic = "spearman"
    level: Level | None = None
    split: SplitKind = "sources"
    calibration_share: float = 0.5
    inner_share: float = 0.3
    misaligned: int = 24
    min_gap: float = 0.5
    refine_gate: bool = True
    draft_temperature: float = 1.0
    refine_temperature: float = 1.0
    resamples: int = 1000
    seed: int = 0
    fit_strengths: bool = True
    max_words: int | None = None

    def __post_init__(self) -> None:
        _one_of("preset", self.preset, tuple(PRESETS))
        _one_of("revisit", self.revisit, ("racing", "full"))
        _one_of("statistic", self.statistic, STATISTICS)
        _one_of("level", self.level, (None, *LEVELS))
        _one_of("split", self.split, ("sources", "sources+systems"))
        for name, low, high in (
            ("rounds", 0, 20),
            ("keep", 1, 50),
            ("ensemble", 1, 25),
            ("misaligned", 1, 500),
            ("min_gap", 0, 10),
            ("resamples", 0, 100_000),
            ("calibration_share", 0.05, 0.95),
            ("inner_share", 0.05, 0.95),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise UsageError(f"{name} must lie between {low} and {high}, not {value}.")
        if self.budget is not None and self.budget < 1:
            raise UsageError(f"budget must be at least 1 call, not {self.budget}.")
        if self.max_words is not None and not LEAST_WORDS <= self.max_words <= MOST_WORDS:
            raise UsageError(
                f"max_words must lie between {LEAST_WORDS} and {MOST_WORDS:,} (or be left out: any length), "
                f"not {self.max_words}."
            )

    def split_of(self, golden: GoldenSet, aspect: str) -> Split:
        """The split that is asked for: by source (and system), seeded."""
        return split_sources(golden, aspect=aspect, fraction=self.calibration_share, seed=self.seed, kind=self.split)

    @property
    def plan(self) -> Preset:
        return PRESETS[self.preset]

    @property
    def finalists(self) -> int:
        """How many criteria are scored to the end of a race."""
        return max(self.keep, self.ensemble)

    @property
    def refinements(self) -> int:
        """Refinements asked for in each round."""
        return min(self.keep, self.plan.n_drafts) * self.plan.n_refinements if self.rounds else 0

    @property
    def words(self) -> str:
        """How the criteria were searched for, refined and chosen, with every choice that 001 leaves open."""
        refining = (
            f"refining: {counted(self.rounds, 'round')} of the best {self.keep} (K), on up to {self.misaligned} items "
            f"misaligned by {self.min_gap:g} or more, each refinement taken "
            + ("if it gains on an inner fold" if self.refine_gate else "without a gate")
            if self.rounds
            else "no refining"
        )
        applied = "the single best" if self.ensemble == 1 else f"the mean of the best {self.ensemble}"
        length = "any length" if self.max_words is None else f"at most {self.max_words:,} words"
        return (
            f"Search: {self.preset} ({self.plan.n_drafts} drafts), revisited by {self.revisit}; {refining}; "
            f"applied: {applied}; criteria of {length}; seed {self.seed}."
        )

    def as_json(self) -> dict[str, Any]:
        """By name; `fit_strengths` and `max_words` where they are not as usual."""
        usual = {"fit_strengths": True, "max_words": None}
        return {name: value for name, value in asdict(self).items() if name not in usual or value != usual[name]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CalibrationSettings:
        """Settings from `as_json`'s form; UsageError for names it does not know."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(body) - known)
        if unknown:
            raise UsageError(f"Unknown calibration settings {unknown}; known are {sorted(known)}.")
        return replace(cls(), **dict(body))


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """How many proposals a round asks for: each parent × `sizes` × `trials` × `samples`; `budget` bounds all calls.

    With items picked by hand each size samples from the picks; a size that reaches their number shows all of them.
    `operations` are what the refiner may do to the criteria.
    """

    sizes: tuple[int, ...] = (1, 2, 4)
    trials: int = 2
    samples: int = 1
    temperature: float = 1.0
    max_tokens: int = 768
    budget: int | None = None
    seed: int = 0
    operations: tuple[Operation, ...] = OPERATIONS

    def __post_init__(self) -> None:
        if not self.operations or set(self.operations) - set(OPERATIONS):
            raise UsageError(f"A round may {', '.join(OPERATIONS)}: at least one of them, not {self.operations}.")
        if not self.sizes or min(self.sizes) < 1 or max(self.sizes) > 16:
            raise UsageError(f"A refinement is shown 1 to 16 items, not {self.sizes}.")
        if not (1 <= self.trials <= 20 and 1 <= self.samples <= 10):
            raise UsageError("A round has 1 to 20 trials of 1 to 10 samples each.")
        if self.budget is not None and self.budget < 1:
            raise UsageError(f"budget must be at least 1 call, not {self.budget}.")

    @property
    def per_parent(self) -> int:
        """Proposals asked for from each parent."""
        return len(self.sizes) * self.trials * self.samples


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}.")
