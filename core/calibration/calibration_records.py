"""Settings and results of a calibration and of a refinement round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from core.data.split import ENOUGH, KnownTexts, SplitKind, split_sources
from core.errors import UsageError
from core.records import (
    Alignment,
    Criteria,
    GoldenSet,
    JsonRecord,
    Level,
    ScoreMatrix,
    Split,
    Statistic,
    Task,
    Usage,
    check_settings,
    setting,
)
from core.stats import Difference
from core.stats.on_scale import IsotonicMap
from core.wording import counted

Phase = Literal["baseline", "draft", "revisit", "refine", "held-out", "done"]
Status = Literal["waiting", "running", "stopped", "kept", "rejected", "chosen", "baseline"]
ExamplesBy = Literal["scale", "similarity"]
RevisitMode = Literal["racing", "full"]
PresetName = Literal["summarisation", "data-to-text", "hallucination", "quick"]

# Values that the paper leaves open; `PRESETS` has its own
MISALIGNED_FROM = 0.5
"""Least |gap| of a misaligned item, in standard deviations of scores and labels."""
MISALIGNED_POOL = 24
"""Most misaligned items that refinements sample from."""
INNER_SHARE = 0.3
"""Share of the calibration sources that evaluates refinements."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Numbers of criteria to draft and refine, and of exemplars in each prompt (AutoCalibrate, Table 9)."""

    draft_sizes: tuple[int, ...]
    draft_trials: int
    draft_samples: int
    refine_sizes: tuple[int, ...] = (1, 2, 4)
    refine_trials: int = 4
    refine_samples: int = 2

    @property
    def n_drafts(self) -> int:
        return len(self.draft_sizes) * self.draft_trials * self.draft_samples


PRESETS: Mapping[PresetName, Preset] = {
    "summarisation": Preset((4, 6, 8, 10, 12), 4, 3),
    "data-to-text": Preset((4, 6, 8, 10, 12, 14), 4, 3),
    "hallucination": Preset((6, 8, 10, 12, 14, 16), 3, 3),
    "quick": Preset((4, 8, 12), 2, 2, (1, 4), 1, 2),
}


AS_IN_PAPER: Mapping[str, Any] = {"revisit": "full", "rounds": 1, "refine_gate": False, "ensemble": 1}
"""The search of the paper: score every draft on every item, refine without a gate, take the best one."""


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """Settings of a calibration: the options of the command and the fields of the form, stored in judge.yaml.

    A call is one draft, one refinement, or one item scored with one set of criteria. A search that reaches a limit
    stops, and its result is still reported.

    Attributes:
        budget: Maximum number of calls; None means no limit.
        budget_usd: Maximum cost in dollars, including retries, reasoning tokens and cached prompt tokens; None means no
            limit.
        level: None means sample level if sources have enough items, else dataset level.
        fit_strengths: Let the offline judge fit the strengths of its clauses to all calibration labels.
    """

    preset: PresetName = setting(
        "summarisation",
        "How many sets of criteria to draft and refine, and how many labelled items to show in each request.",
    )
    revisit: RevisitMode = setting(
        "racing", "How to score drafts: full (every draft on every item) or racing (about a seventh as many calls)."
    )
    rounds: int | None = setting(
        None,
        f"Number of refinement rounds (default: 1, or 0 to avoid overfitting if there are fewer than {ENOUGH} "
        "calibration labels).",
        low=0,
        high=20,
    )
    keep: int = setting(4, "Number of sets of criteria to refine in each round (K).", low=1, high=50)
    ensemble: int = setting(
        3,
        "Number of sets of criteria whose scores the final judge averages. 1 uses only the best set.",
        low=1,
        high=25,
    )
    budget: int | None = setting(None, "Maximum number of calls.", low=1)
    budget_usd: float | None = setting(None, "Maximum cost of the run in dollars.", low=0)
    statistic: Statistic = setting("spearman", "Agreement coefficient.")
    level: Level | None = setting(
        None,
        "Level at which to measure agreement. “auto” is “sample” if enough sources have several items, else “dataset”.",
    )
    split: SplitKind = setting("sources", "What to hold out: sources only, or sources and systems.")
    calibration_share: float = setting(0.5, "Share of the sources to use for calibration.", low=0.05, high=0.95)
    refine_gate: bool = setting(
        True, "Accept a refinement only if it also improves agreement on items that weren't used to write it."
    )
    seed: int = setting(0, "Seed for all random choices.", low=0)
    fit_strengths: bool = True
    levels: bool = setting(True, "Show the scale's level descriptions to the judge, if the scale has any.")
    examples: int = setting(0, "Number of labelled calibration items to show in the judging prompt.", low=0, high=16)
    examples_by: ExamplesBy = setting(
        "scale",
        "How to choose the examples: spread across the scale (the same for every item), or most similar to the item.",
    )
    reasons: bool = setting(True, "Show the raters' reasons to the model that drafts and refines criteria.")

    def __post_init__(self) -> None:
        check_settings(self)

    def split_of(self, golden: GoldenSet, aspect: str) -> Split:
        """Split `golden` by source, or by source and system, into a calibration set and a held-out set."""
        return split_sources(golden, aspect=aspect, fraction=self.calibration_share, seed=self.seed, kind=self.split)

    def with_rounds(self, n: int) -> CalibrationSettings:
        """Fill in the default number of rounds for `n` calibration labels.

        The default is 0 for few labels, because refinements would fit their noise.
        """
        return replace(self, rounds=int(n >= ENOUGH)) if self.rounds is None else self

    @property
    def plan(self) -> Preset:
        return PRESETS[self.preset]

    @property
    def finalists(self) -> int:
        """Number of sets of criteria that a race scores on all items."""
        return max(self.keep, self.ensemble)

    @property
    def refinements(self) -> int:
        """Number of refinements requested in each round."""
        each = len(self.plan.refine_sizes) * self.plan.refine_trials * self.plan.refine_samples
        return min(self.keep, self.plan.n_drafts) * each

    @property
    def words(self) -> str:
        """A summary of the preset, the refinement, the choice of the final judge, and the seed."""
        gate = "accepted only if they improve agreement on other items" if self.refine_gate else "all accepted"
        refining = "none"
        if self.rounds:
            refining = f"{counted(self.rounds, 'round')} on the {self.keep} best sets of criteria, refinements {gate}"
        applied = "best set of criteria" if self.ensemble == 1 else f"mean of the {self.ensemble} best sets of criteria"
        return (
            f"Preset: {self.preset} ({self.plan.n_drafts} drafts, {self.revisit} evaluation). "
            f"Refinement: {refining}. Final judge: {applied}. Seed: {self.seed}."
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name; fields that older files lack appear only if they differ from their defaults."""
        later: dict[str, Any] = {"fit_strengths": True, "levels": True, "examples": 0, "examples_by": "scale"}
        later |= {"budget_usd": None, "reasons": True}
        return {name: value for name, value in asdict(self).items() if later.get(name, ...) != value}

    @property
    def budget_words(self) -> str:
        """The budget in words, such as "budget of 700 calls" or "budget of $0.50"."""
        return f"budget of ${self.budget_usd:,g}" if self.budget_usd is not None else f"budget of {self.budget:,} calls"

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CalibrationSettings:
        """Read settings written by `as_json`; unknown names from earlier versions are ignored."""
        return cls(**{f.name: body[f.name] for f in fields(cls) if f.name in body})


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """How many refinements a round requests for each set of criteria: `trials` for each of `sizes`.

    A size is the number of items shown in a request. The items are sampled from the items that the user picked, or else
    from the most misaligned items. If fewer items were picked, all of them are shown.
    """

    sizes: tuple[int, ...] = (1, 2, 4)
    trials: int = setting(2, low=1, high=20)

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.sizes or min(self.sizes) < 1 or max(self.sizes) > 16:
            raise UsageError(f"A refinement can show the model 1 to 16 items, not {self.sizes}.")

    @property
    def per_parent(self) -> int:
        """Number of refinements requested for each parent (the criteria to be refined)."""
        return len(self.sizes) * self.trials


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Candidate:
    """Criteria on the leaderboard of a calibration.

    The status is one of:

    - "waiting": not scored yet
    - "running"
    - "stopped": dropped by racing or the budget
    - "kept": in the pool
    - "rejected": a refinement without a gain on the inner fold
    - "chosen": in the final judge
    - "baseline": no criteria

    Attributes:
        alignment: Alignment on the calibration items scored so far, or None.
        inner_gain: Gain of a refinement over its parent on the inner fold (calibration items that were not used to
            write it). None for all other criteria.
    """

    criteria: Criteria
    status: Status
    alignment: Alignment | None = None
    calls: int = 0
    inner_gain: float | None = None


@dataclass(frozen=True)
class LeaderboardSnapshot:
    """The leaderboard of a running calibration; `candidates` are sorted best first and include the baseline."""

    phase: Phase
    round: int
    message: str
    calls: int
    calls_expected: int
    candidates: tuple[Candidate, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class WorkDone:
    """How much work a calibration requested, and how much of it was done.

    Names ending in `_asked` are numbers requested by the settings. A call is a draft, a refinement, or one item scored
    with one set of criteria, cached or not.

    Attributes:
        drafts_made: Number of drafts that were usable and new.
        drafts_ranked: Number of drafts that were scored at least in part.
        rounds_done: Number of rounds whose refinements were made and scored on all items.
        refined_made: Number of refinements that were usable and new.
        refined_accepted: Number of refinements that entered the pool.
        calls_planned: Upper limit of the number of calls.
        left_out: Skipped steps with their reasons.
    """

    drafts_asked: int = 0
    drafts_made: int = 0
    drafts_ranked: int = 0
    rounds_asked: int = 0
    rounds_done: int = 0
    refined_asked: int = 0
    refined_made: int = 0
    refined_accepted: int = 0
    held_out_asked: int = 0
    held_out_scored: int = 0
    calls_planned: int = 0
    calls_used: int = 0
    budget: int | None = None
    left_out: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON for `summary.json` and the judge file."""
        return {
            "drafts": {"asked": self.drafts_asked, "made": self.drafts_made, "ranked": self.drafts_ranked},
            "rounds": {"asked": self.rounds_asked, "done": self.rounds_done},
            "refined": {"asked": self.refined_asked, "made": self.refined_made, "accepted": self.refined_accepted},
            "held_out": {"asked": self.held_out_asked, "scored": self.held_out_scored},
            "calls": {"budget": self.budget, "planned": self.calls_planned, "used": self.calls_used},
            "words": self.words,
            "left_out": list(self.left_out),
        }

    @property
    def words(self) -> str:
        """A summary of the requested and completed work."""
        allowed = "no limit" if self.budget is None else f"{self.budget:,} allowed"
        return (
            f"Drafts: {self.drafts_asked:,} requested, {self.drafts_made:,} usable, {self.drafts_ranked:,} ranked. "
            f"Refinement rounds: {self.rounds_asked} requested, {self.rounds_done} done. Refinements: "
            f"{self.refined_asked:,} requested, {self.refined_made:,} usable, {self.refined_accepted:,} accepted. "
            f"Calls: {allowed}, {self.calls_planned:,} planned, {self.calls_used:,} used."
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated cost of a calibration before it starts.

    Attributes:
        calls: Maximum number of calls with these settings, within the budget.
        prompt_tokens: Number of tokens if every call scores an item, as most calls do; None if unknown.
        completion_tokens: Number of completion tokens under the same assumption; None if unknown.
        cost: Cost under the same assumption; None if unknown.
        rounds: Number of refinement rounds.
        notes: Sentences to show with the estimate.
        few_labels: Warning about too few calibration labels; "" if there are enough.
    """

    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    n_calibration: int
    n_held_out: int
    rounds: int = 0
    notes: tuple[str, ...] = ()
    few_labels: str = ""


@dataclass(frozen=True, slots=True)
class SplitAlignment(JsonRecord):
    """Alignments of a judge on the calibration set (where it was chosen) and on the held-out set."""

    calibration: Alignment
    held_out: Alignment


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration.

    Attributes:
        texts: Fingerprints of the items of both sets, to recognise the items in other files.
        chosen: Criteria of the final judge: one set, or the members of the ensemble.
        calibration: Alignment of the final judge on the calibration set. It is optimistic, because the judge was chosen
            on this set.
        held_out: Alignment of the final judge on the held-out set.
        best_single: Alignments of the single best set of criteria on both sets.
        no_criteria: Alignments of the baseline (a judge without criteria) on both sets.
        gain: Alignment of the final judge minus alignment of the baseline, on the held-out items that both scored. Only
            the test of this gain shows whether the criteria add anything.
        scores: Scores of the final judge (first row) and its members, on calibration items, then on held-out items.
        isotonic: State of the map to the human scale; None if no map could be fitted.
        stopped_early: Work skipped because the budget ran out; "" if none was skipped.
        intervals: State of the intervals around verdicts (`core.stats.on_scale`); None in older results.
    """

    task: Task
    settings: CalibrationSettings
    golden_name: str
    golden_digest: str
    split: Split
    texts: KnownTexts
    chosen: tuple[Criteria, ...]
    candidates: tuple[Candidate, ...]
    calibration: Alignment
    held_out: Alignment
    best_single: SplitAlignment
    no_criteria: SplitAlignment
    gain: Difference
    scores: ScoreMatrix
    isotonic: Mapping[str, Any] | None
    calls: int
    usage: Usage
    work: WorkDone
    judge_state: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    stopped_early: str = ""
    problems: Mapping[str, int] = field(default_factory=dict)
    intervals: Mapping[str, Any] | None = None
    golden_columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def score_map(self) -> IsotonicMap | None:
        """Isotonic map from the final judge's scores to the human scale; None if none could be fitted."""
        return None if self.isotonic is None else IsotonicMap.from_json(self.isotonic)

    @property
    def optimism(self) -> float | None:
        """Calibration alignment minus held-out alignment; None if either is undefined."""
        if self.calibration.value is None or self.held_out.value is None:
            return None
        return self.calibration.value - self.held_out.value
