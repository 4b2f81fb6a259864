"""Settings of a calibration: 001's presets and what 001 leaves open (golden-set split, K, misalignment, racing)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from core.errors import UsageError
from core.judging.judge_protocol import OPERATIONS, Operation
from core.records import GoldenSet, Level, Split, Statistic
from core.setting_fields import check_settings, setting
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
PresetName = Literal["summarisation", "data-to-text", "hallucination", "quick"]


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


PRESETS: Mapping[PresetName, Preset] = {
    "summarisation": Preset((4, 6, 8, 10, 12), 4, 3),
    "data-to-text": Preset((4, 6, 8, 10, 12, 14), 4, 3),
    "hallucination": Preset((6, 8, 10, 12, 14, 16), 3, 3),
    "quick": Preset((4, 8, 12), 2, 2, (1, 4), 1, 2),
}


AS_IN_PAPER: Mapping[str, Any] = {"revisit": "full", "refine_gate": False, "ensemble": 1, "max_words": None}
"""001 to the letter: every draft on every item, refinements ungated, the argmax, criteria of any length."""


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """What a person chooses before the start: options of the command, fields of the form, part of judge.yaml.

    `level` None takes what the golden set allows.  `budget` None is no limit: a call is one set of criteria on one
    item, a draft or a refinement.  `max_words` None leaves the length free, as 001 does.
    """

    preset: PresetName = setting("summarisation", "How many criteria to draft and refine, from how many exemplars.")
    revisit: RevisitMode = setting("racing", "full scores every draft on every item, racing a seventh of that.")
    rounds: int = setting(1, "Rounds of refining.", low=0, high=20)
    keep: int = setting(4, "Criteria refined in each round (K).", low=1, high=50)
    ensemble: int = setting(3, "Best criteria averaged in the final judge; 1 takes the single best.", low=1, high=25)
    budget: int | None = setting(None, "Most calls the run may make.", low=1)
    statistic: Statistic = setting("spearman", "Coefficient of agreement.")
    level: Level | None = setting(None, "auto: sample where the groups allow it, else dataset.")
    split: SplitKind = setting("sources", "Hold out other sources, or other systems too.")
    calibration_share: float = setting(0.5, "Share of the sources to calibrate on.", low=0.05, high=0.95)
    inner_share: float = setting(0.3, "Share of them that tests refinements.", low=0.05, high=0.95)
    misaligned: int = setting(24, "Refinements see samples of so many most misaligned items.", low=1, high=500)
    min_gap: float = setting(0.5, "Misaligned from this gap on, in standard deviations.", low=0, high=10)
    refine_gate: bool = setting(True, "Take a refinement only if it also gains on items that it was not shown.")
    draft_temperature: float = setting(1.0, "Temperature of drafting.", low=0, high=2)
    refine_temperature: float = setting(1.0, "Temperature of refining.", low=0, high=2)
    resamples: int = setting(1000, "Resamples of sources behind intervals.", low=0, high=100_000)
    seed: int = setting(0, "Seed of every random choice.", low=0)
    fit_strengths: bool = setting(True, "Let the offline judge fit the strengths of its clauses to all labels.")
    max_words: int | None = setting(None, "Longest criteria that a model is to write, in words.", low=20, high=5_000)

    def __post_init__(self) -> None:
        check_settings(self)

    def split_of(self, golden: GoldenSet, aspect: str) -> Split:
        """The split that is asked for: by source (and system), seeded."""
        from core.data.split import split_sources

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
    trials: int = setting(2, low=1, high=20)
    samples: int = setting(1, low=1, high=10)
    temperature: float = 1.0
    max_tokens: int = 768
    budget: int | None = setting(None, low=1)
    seed: int = 0
    operations: tuple[Operation, ...] = OPERATIONS

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.operations or set(self.operations) - set(OPERATIONS):
            raise UsageError(f"A round may {', '.join(OPERATIONS)}: at least one of them, not {self.operations}.")
        if not self.sizes or min(self.sizes) < 1 or max(self.sizes) > 16:
            raise UsageError(f"A refinement is shown 1 to 16 items, not {self.sizes}.")

    @property
    def per_parent(self) -> int:
        """Proposals asked for from each parent."""
        return len(self.sizes) * self.trials * self.samples
