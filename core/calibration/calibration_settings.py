"""Settings of a calibration and of a refinement round: the paper's presets, and the choices that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from core.data.split import SplitKind, split_sources
from core.errors import UsageError
from core.judging.judge_protocol import OPERATIONS, Operation
from core.records import GoldenSet, Level, Split, Statistic
from core.setting_fields import check_settings, setting
from core.wording import counted

RevisitMode = Literal["racing", "full"]
PresetName = Literal["summarisation", "data-to-text", "hallucination", "quick"]


@dataclass(frozen=True, slots=True)
class Preset:
    """How many criteria are drafted and refined, from how many exemplars (AutoCalibrate, Table 9)."""

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


PRESETS: Mapping[PresetName, Preset] = {
    "summarisation": Preset((4, 6, 8, 10, 12), 4, 3),
    "data-to-text": Preset((4, 6, 8, 10, 12, 14), 4, 3),
    "hallucination": Preset((6, 8, 10, 12, 14, 16), 3, 3),
    "quick": Preset((4, 8, 12), 2, 2, (1, 4), 1, 2),
}


AS_IN_PAPER: Mapping[str, Any] = {"revisit": "full", "refine_gate": False, "ensemble": 1, "max_words": None}
"""The paper to the letter: score every draft on every item, refine without a gate, take the argmax, any length."""


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """What to choose before the start: options of the command, fields of the form, part of judge.yaml.

    `level` None takes what the golden set allows.  `budget` None is no limit; a call is one draft, one refinement, or
    one set of criteria on one item.  `max_words` None leaves the length free.
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
        """Split `golden` by source (and system), with the seed."""
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
        if not self.rounds:
            return 0
        each = len(self.plan.refine_sizes) * self.plan.refine_trials * self.plan.refine_samples
        return min(self.keep, self.plan.n_drafts) * each

    @property
    def words(self) -> str:
        """How criteria are searched for, refined and chosen."""
        gate = "if it gains on an inner fold" if self.refine_gate else "without a gate"
        refining = (
            f"{counted(self.rounds, 'round')} of refining the best {self.keep} (K) on up to {self.misaligned} items "
            f"misaligned by {self.min_gap:g} or more, each refinement taken {gate}"
        )
        applied = "the single best" if self.ensemble == 1 else f"the mean of the best {self.ensemble}"
        length = "any length" if self.max_words is None else f"at most {self.max_words:,} words"
        return (
            f"Search: {self.preset} ({self.plan.n_drafts} drafts), revisited by {self.revisit}; "
            f"{refining if self.rounds else 'no refining'}; applied: {applied}; criteria of {length}; seed {self.seed}."
        )

    def as_json(self) -> dict[str, Any]:
        """By name; `fit_strengths` and `max_words` only where they differ from the default."""
        usual = {"fit_strengths": True, "max_words": None}
        return {name: value for name, value in asdict(self).items() if name not in usual or value != usual[name]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CalibrationSettings:
        """Read what `as_json` wrote; UsageError for unknown names."""
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(body) - known):
            raise UsageError(f"Unknown calibration settings {unknown}; known are {sorted(known)}.")
        return cls(**body)


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """How many proposals a round asks for: each parent × `sizes` × `trials` × `samples`; `budget` bounds all calls.

    With items picked by hand each size samples from the picks; a size that reaches their number shows all of them.
    `operations` are what the refiner may do to the criteria; `max_words` is that of the calibration.
    """

    sizes: tuple[int, ...] = (1, 2, 4)
    trials: int = setting(2, low=1, high=20)
    samples: int = setting(1, low=1, high=10)
    temperature: float = 1.0
    max_tokens: int = 768
    budget: int | None = setting(None, low=1)
    seed: int = 0
    operations: tuple[Operation, ...] = OPERATIONS
    max_words: int | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.operations or set(self.operations) - set(OPERATIONS):
            raise UsageError(f"operations must be some of {', '.join(OPERATIONS)}, not {self.operations}.")
        if not self.sizes or min(self.sizes) < 1 or max(self.sizes) > 16:
            raise UsageError(f"A refinement is shown 1 to 16 items, not {self.sizes}.")

    @property
    def per_parent(self) -> int:
        """Proposals asked for from each parent."""
        return len(self.sizes) * self.trials * self.samples
