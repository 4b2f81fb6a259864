"""The report on one calibrated judge: everything a reader needs to trust it, or not, as frozen records.

Figures carry statistic, level, n and interval in their `Alignment`; None is undefined or not known, never 0.  Texts of
people and models stand here as they were given; whoever draws them escapes and shortens them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from core.kept import RunKind, Side
from core.records import Alignment, Interval, ItemKind, JudgeKind, Level, Origin, Scale, Statistic, Usage
from core.review.criteria import ReviewState, StateChange
from core.review.meetings import Meeting
from core.review.triage import HeldOutAccess, TriageVerdict
from core.stats import AnnotatorTest, BesidePeople, Difference


@dataclass(frozen=True, slots=True)
class LabelBar:
    """`n` labels from `low` up to `high`; both are the same where the scale has steps."""

    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Judged:
    """What was judged.  `bars` are the gold labels by value; `added_by` "" where nobody said.

    `largest_share` is the share of the fullest bar; `simulated` where a program made the labels (Concord's samples).
    """

    golden_id: str
    name: str
    kind: ItemKind
    n_items: int
    n_sources: int
    n_systems: int
    aspect: str
    definition: str
    scale: Scale
    n_labelled: int
    mean: float | None
    bars: tuple[LabelBar, ...]
    largest_share: float | None
    simulated: bool
    added_by: str
    added_at: datetime


@dataclass(frozen=True, slots=True)
class RaterCount:
    """How many items somebody rated on this aspect."""

    name: str
    n: int


@dataclass(frozen=True, slots=True)
class PassFact:
    """A labelling pass: `made_this` where its labels were frozen into this golden set.

    `n_labels` labels and `n_decided` decisions of a third person on this aspect; `raters` are those who joined, then
    those whose earlier labels were taken over.
    """

    name: str
    began_by: str
    began_at: datetime
    raters: tuple[str, ...]
    n_labels: int
    n_decided: int
    made_this: bool
    blind: bool
    instructions: str


@dataclass(frozen=True)
class Labelling:
    """By whom labelled, and how well they agree.

    `alpha` is Krippendorff's, on the `alpha_n` items with two ratings or more; `ceiling` one rater against the mean of
    the others on the held-out items that the judge is reported on.  `beside` sets the judge beside them there, both
    against the mean of the other raters; `tests` are the annotator test, the paper's and ours by source.  None and
    empty without single ratings.
    """

    raters: tuple[RaterCount, ...]
    panel: str
    alpha: float | None
    alpha_metric: str
    alpha_interval: Interval | None
    alpha_n: int
    alpha_reason: str
    ceiling: Alignment | None
    ceiling_raters: int
    ceiling_reason: str
    beside: BesidePeople | None
    tests: tuple[AnnotatorTest, ...]
    passes: tuple[PassFact, ...]


@dataclass(frozen=True)
class Version:
    """One version of the criteria with how it stood in the calibration (None where it was not measured there).

    `depth` counts steps from the oldest ancestor; `chosen` where it is part of the judge; `comments` are people's.
    """

    criteria_id: str
    text: str
    origin: Origin
    round: int
    depth: int
    parents: tuple[str, ...]
    author: str
    note: str
    at: datetime
    chosen: bool
    state: ReviewState
    changes: tuple[StateChange, ...]
    n_comments: int
    calibration: Alignment | None
    held_out: Alignment | None

    @property
    def approval(self) -> StateChange | None:
        """The approval in force, or None."""
        return self.changes[-1] if self.state == "approved" and self.changes else None


@dataclass(frozen=True, slots=True)
class RoundFact:
    """A refinement round that people asked for, and what they made of its proposals."""

    run_id: str
    at: datetime
    n_proposals: int
    n_accepted: int
    n_rejected: int
    n_open: int


@dataclass(frozen=True)
class History:
    """How the criteria came about.

    `made` maps origin → number of versions there ever were; `versions` are those that led to the judge, were edited,
    or were decided on, ancestors first; `n_more` of them do not stand here.
    """

    made: Mapping[Origin, int]
    versions: tuple[Version, ...]
    n_more: int
    rounds: tuple[RoundFact, ...]
    meetings: tuple[Meeting, ...]

    @property
    def chosen(self) -> tuple[Version, ...]:
        """The criteria of the judge, best first."""
        return tuple(one for one in self.versions if one.chosen)


@dataclass(frozen=True, slots=True)
class BothSides:
    """One judge on both sides of the split: calibration chose it and flatters, held-out did not."""

    name: str
    calibration: Alignment
    held_out: Alignment


@dataclass(frozen=True, slots=True)
class ShelfRow:
    """A judge of the shelf on the items that none of them has seen.

    `difference` is this report's judge minus this one on the same items, `p` corrected over the table; both None for
    the judge itself and where undefined.  `same_run`: it came out of the same calibration.  `like_person` is its
    alignment with the mean of the other raters, as a person's is measured; None without single ratings.
    """

    name: str
    kind: JudgeKind
    ours: bool
    same_run: bool
    alignment: Alignment
    difference: float | None
    interval: Interval | None
    p: float | None
    calls_per_item: float | None
    like_person: Alignment | None = None


@dataclass(frozen=True)
class Shelf:
    """Every judge of the shelf on common items.  `aside` are those that scored too few items to stand beside the rest.

    `problem` says why there is nothing to compare on; empty otherwise.
    """

    rows: tuple[ShelfRow, ...]
    ceiling: Alignment | None
    n_items: int
    n_sources: int
    n_labelled: int
    n_seen: int
    n_unscored: int
    aside: tuple[str, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class SystemFact:
    """One system's held-out items: alignment within it at dataset level, and the means of people and judge."""

    name: str
    alignment: Alignment
    mean_label: float | None
    mean_score: float | None


@dataclass(frozen=True)
class SourceSpread:
    """The coefficients of single held-out sources: `values` of the `n_defined`, rising; the rest are left out."""

    statistic: Statistic
    values: tuple[float, ...]
    n_sources: int

    @property
    def n_defined(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class ScorePoint:
    """A held-out item: the judge's score and the people's label."""

    score: float
    label: float


@dataclass(frozen=True, slots=True)
class ScoreBand:
    """`n` held-out items with scores from `low` to `high`: their mean score and mean label."""

    low: float
    high: float
    mean_score: float
    mean_label: float
    n: int


@dataclass(frozen=True)
class OnTheScale:
    """What scores mean in points of the scale: `points` are at most a fixed number of the `n` held-out items.

    `mae` and `bias` of the raw score, `mapped_mae` and `mapped_bias` after the map to the human scale (None without).
    """

    points: tuple[ScorePoint, ...]
    n: int
    bands: tuple[ScoreBand, ...]
    mae: float | None
    bias: float | None
    mapped_mae: float | None
    mapped_bias: float | None


@dataclass(frozen=True)
class Result:
    """What the judge reached.  `sides` are the final judge, the single best criteria and the judge without criteria.

    `gain` is the final judge minus the one without criteria, paired on held-out items.  `optimism` is calibration minus
    held-out of the final judge; `work` tells what was asked for and done, and `stopped_early` what was not, "" for
    nothing.
    """

    run_id: str
    at: datetime | None
    spec: str
    notice: str
    statistic: Statistic
    level: Level
    n_calibration: int
    n_held_out: int
    final: BothSides
    best_single: BothSides
    no_criteria: BothSides
    gain: Difference
    optimism: float | None
    shelf: Shelf
    systems: tuple[SystemFact, ...]
    sources: SourceSpread
    on_the_scale: OnTheScale
    work: str
    stopped_early: str
    warnings: tuple[str, ...]
    problems: Mapping[str, int]


@dataclass(frozen=True)
class Example:
    """An item on which judge and people part.  `gap` is standardised score minus standardised label.

    `verdict` None where nobody has looked; `decided` and `decided_why` are what a meeting made of it, "" for nothing.
    """

    item_id: str
    source_id: str
    system_id: str
    side: Side
    source: str
    target: str
    label: float | None
    score: float | None
    gap: float | None
    verdict: TriageVerdict | None
    note: str
    by: str
    decided: str = ""
    decided_why: str = ""


@dataclass(frozen=True)
class Misaligned:
    """Where judge and people part: `n_apart` of the `n_scored` calibration items lie `least` or more apart.

    `by_verdict` counts all that people looked at; `examples` are some: those looked at first, furthest apart first.
    """

    n_scored: int
    n_apart: int
    least: float
    by_verdict: Mapping[TriageVerdict, int]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class CostLine:
    """What the runs of one kind cost; `seconds` from start to end, None where not known for any of them."""

    kind: RunKind
    n_runs: int
    calls: int
    usage: Usage
    seconds: float | None


@dataclass(frozen=True)
class Costs:
    """What this calibration cost, and all runs on this aspect of this golden set by kind."""

    this: CostLine
    every: tuple[CostLine, ...]


@dataclass(frozen=True)
class Reproduce:
    """How to get the same again.  `versions` are those of the program that wrote the report."""

    command: str
    golden_digest: str
    judge_digest: str
    split: str
    seed: int
    prompts: tuple[str, ...]
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """Everything about one calibrated judge of one aspect of one golden set."""

    project: str
    made_at: datetime
    judged: Judged
    labelling: Labelling
    history: History
    result: Result
    misaligned: Misaligned
    openings: tuple[HeldOutAccess, ...]
    costs: Costs
    reproduce: Reproduce
    others_approved: tuple[str, ...] = field(default=())
    """Ids of approved criteria for this aspect that are no part of this judge."""

    @property
    def aspect(self) -> str:
        return self.judged.aspect
