"""The records of a calibration: candidates, snapshots of the leaderboard, the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.calibration.calibration_settings import CalibrationSettings
from core.data.split import KnownTexts
from core.json_form import JsonRecord
from core.records import Alignment, Criteria, ScoreMatrix, Split, Task, Usage
from core.stats import Difference
from core.stats.on_scale import IsotonicMap

Phase = Literal["baseline", "draft", "revisit", "refine", "held-out", "done"]
Status = Literal["waiting", "running", "stopped", "kept", "rejected", "chosen", "baseline"]


@dataclass(frozen=True, slots=True)
class TracePoint:
    """The alignment `value` of a candidate once `items` calibration items were scored; None where undefined."""

    items: int
    value: float | None


@dataclass(frozen=True)
class Candidate:
    """Criteria on the leaderboard.  `alignment` is on the calibration items scored so far (None before any).

    Status: waiting (not scored yet), running, stopped (dropped by racing, or by the budget), kept (in the pool),
    rejected (a refinement that did not gain on the inner fold), chosen (in the final judge), baseline (no criteria).
    `inner_gain` is a refinement's gain over its parent on the inner validation fold; None for others.  `trace` is its
    way there: its alignment after each batch of items.
    """

    criteria: Criteria
    status: Status
    alignment: Alignment | None = None
    calls: int = 0
    inner_gain: float | None = None
    trace: tuple[TracePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """A point of the best-so-far curve: the alignment of the best complete candidate after `calls` calls."""

    calls: int
    value: float
    criteria_id: str


@dataclass(frozen=True)
class LeaderboardSnapshot:
    """A snapshot for the live leaderboard; `candidates` are ranked, best first, the baseline among them."""

    phase: Phase
    round: int
    message: str
    calls: int
    calls_expected: int
    candidates: tuple[Candidate, ...]
    curve: tuple[BestSoFar, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class WorkDone:
    """Work asked for and work done; `left_out` says in sentences what was not done, and why.

    Drafts and refinements are asked for by the settings, made (usable and no repetition), and ranked or accepted into
    the pool.  A round is done when its refinements were made and scored to the end.  Calls are one per draft,
    refinement, and item with each set of criteria, whether the reply came from the judge or a cache: planned is the
    most that could be needed.  `budget` None is no limit.
    """

    drafts_asked: int
    drafts_made: int
    drafts_ranked: int
    rounds_asked: int
    rounds_done: int
    refined_asked: int
    refined_made: int
    refined_accepted: int
    held_out_asked: int
    held_out_scored: int
    calls_planned: int
    calls_used: int
    budget: int | None = None
    left_out: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As `summary.json` and the judge file hold it."""
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
        """What was asked for and done, on one line."""
        allowed = "no limit" if self.budget is None else f"{self.budget:,} allowed"
        return (
            f"Drafts: {self.drafts_asked:,} asked for, {self.drafts_made:,} made, {self.drafts_ranked:,} ranked. "
            f"Rounds of refining: {self.rounds_asked} asked for, {self.rounds_done} done. "
            f"Refinements: {self.refined_asked:,} asked for, {self.refined_made:,} made, "
            f"{self.refined_accepted:,} accepted. "
            f"Calls: {allowed}, {self.calls_planned:,} planned, {self.calls_used:,} used."
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of a calibration before it starts; tokens and cost None where they cannot be known.

    `calls` is the most that the plan for these settings takes, within the budget.  Tokens and cost take every call
    for a scoring call, which most are.  `notes` are sentences to show with it (what the budget does not cover, the
    judge is not an LLM); `few_labels` says what to expect of few calibration labels ("" where there are enough).
    """

    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    n_calibration: int
    n_held_out: int
    notes: tuple[str, ...] = ()
    few_labels: str = ""


@dataclass(frozen=True, slots=True)
class BothSides(JsonRecord):
    """Alignments of one judge on the calibration set, which chose it, and on the held-out set."""

    calibration: Alignment
    held_out: Alignment


@dataclass(frozen=True)
class Calibration:
    """The result.  `chosen` are the criteria of the final judge (one, or the members of the ensemble).

    `calibration` and `held_out` are alignments of the final judge on the two sides of the split: the first chose it and
    is optimistic, the second did not.  `best_single` and `no_criteria` have the same two for the single best criteria
    and for the baseline.  `gain` is the final judge minus the baseline on the held-out items that both scored: its test
    alone says whether the criteria add anything.  `scores` are the final judge's (first row) and its members' on
    calibration, then held-out items.  `work` says what was asked for and done; `stopped_early` what the budget cut, ""
    for nothing.  `texts` recognises the items of both sides elsewhere.  `intervals` are what an interval around a
    verdict is made of (`core.stats.conformal`); None in older results.
    `golden_columns` are the golden set's `columns`.
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
    best_single: BothSides
    no_criteria: BothSides
    gain: Difference
    scores: ScoreMatrix
    isotonic: Mapping[str, Any] | None
    curve: tuple[BestSoFar, ...]
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
        """From the final judge's scores to the human scale; None where the labels gave none."""
        return None if self.isotonic is None else IsotonicMap.from_json(self.isotonic)

    @property
    def optimism(self) -> float | None:
        """Calibration minus held-out of the final judge; None where either is undefined."""
        if self.calibration.value is None or self.held_out.value is None:
            return None
        return self.calibration.value - self.held_out.value
