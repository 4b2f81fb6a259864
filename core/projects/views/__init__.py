"""What screens and the command line read: frozen records, made by `core.projects`, holding no store and no SQL.

Times are timezone-aware UTC.  Numbers that cannot be known are None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from core.calibration.settings import CalibrationSettings
from core.calibration.steps import Calibration, Standing
from core.records import Alignment, Criteria, Interval, Item, ItemKind, Origin, Provenance, Scale, Usage

RunKind = Literal["calibration", "rescore", "round", "styles", "ablation", "metrics", "repeval", "fusion", "recheck"]
RunStatus = Literal["queued", "running", "done", "failed", "cancelled", "budget"]
Side = Literal["calibration", "held-out"]


class RunRequest(Protocol):
    """What every kind of run is asked for with: a frozen record that the store's codec can write."""

    @property
    def project_id(self) -> str: ...

    @property
    def golden_id(self) -> str: ...

    @property
    def aspect(self) -> str: ...


FINISHED: tuple[RunStatus, ...] = ("done", "failed", "cancelled", "budget")


@dataclass(frozen=True, slots=True)
class ProjectView:
    project_id: str
    name: str
    created_at: datetime
    n_goldens: int
    n_runs: int
    imported: bool = False


@dataclass(frozen=True, slots=True)
class AspectView:
    """One aspect of a golden set; `n_labelled` of its items carry a label."""

    aspect: str
    scale: Scale
    n_labelled: int


@dataclass(frozen=True, slots=True)
class GoldenView:
    """A golden set at a glance, without its texts.  `golden_id` is its content digest."""

    golden_id: str
    name: str
    kind: ItemKind
    n_items: int
    n_sources: int
    n_systems: int
    n_ratings: int
    aspects: tuple[AspectView, ...]
    created_at: datetime

    def aspect(self, name: str) -> AspectView | None:
        """The aspect of that name, or None."""
        return next((aspect for aspect in self.aspects if aspect.aspect == name), None)


@dataclass(frozen=True, slots=True)
class GoldenRow:
    """An item with its labels (aspect → label or None); `position` counts from 0 in the golden set."""

    position: int
    item: Item
    labels: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class GoldenPage:
    """Rows `offset` … of `total`."""

    rows: tuple[GoldenRow, ...]
    offset: int
    total: int


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """What a person asks for.  `scale` None takes the aspect's own; `definition` may be empty."""

    project_id: str
    golden_id: str
    aspect: str
    judge_spec: str = "offline"
    settings: CalibrationSettings = field(default_factory=CalibrationSettings)
    definition: str = ""
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class RescoreRequest:
    """Score edited criteria beside their parent, with the judge of `run_id` on that run's calibration items."""

    project_id: str
    golden_id: str
    aspect: str
    criteria_id: str
    parent_id: str
    run_id: str
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """Alignment of the new criteria minus the parent's on the same items, paired over sources.

    `p` is two-sided; None (like `value`) where a side is undefined.
    """

    value: float | None
    interval: Interval | None
    p: float | None
    n: int


MOST_CHANGED = 200
"""Items that changed sides and are kept of a re-scoring."""


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item that changed sides: `now` "mended" was misaligned under the parent, "broken" is misaligned now.

    Scores and label on the task's scale; gaps are standardised score minus standardised label.
    """

    item_id: str
    label: float
    parent_score: float
    new_score: float
    parent_gap: float
    new_gap: float
    now: Literal["mended", "broken"]


@dataclass(frozen=True, slots=True)
class RescoreView:
    """What a re-scoring found.  `changed` is sorted by how far the gap moved, furthest first, at most `MOST_CHANGED`.

    The held-out alignments are None unless they were asked for.
    """

    criteria_id: str
    parent_id: str
    parent: Alignment
    new: Alignment
    difference: DifferenceView
    changed: tuple[ChangedItem, ...]
    parent_held_out: Alignment | None = None
    new_held_out: Alignment | None = None
    held_out_difference: DifferenceView | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class RunSummary:
    """A run in a list.

    `calls_expected` 0 means not known yet; `seconds_left` None likewise.  `error` is a message for people, empty
    unless failed.  `worker_alive` is None for a run no worker has taken.  `cancelling`: a person asked, the
    worker has not stopped yet.  `waits` says why a queued run waits; `capability` is that of the worker that took it
    (cuda, mps, gpu or cpu; "" for none), and `placed` what is to be said about that, "" for nothing.
    """

    run_id: str
    project_id: str
    kind: RunKind
    title: str
    status: RunStatus
    golden_id: str
    aspect: str
    judge_spec: str
    phase: str
    message: str
    calls: int
    calls_expected: int
    usage: Usage
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None
    seconds_left: float | None
    error: str
    attempt: int
    worker_id: str
    worker_alive: bool | None
    cancelling: bool
    waits: str = field(default="", kw_only=True)
    capability: str = field(default="", kw_only=True)
    placed: str = field(default="", kw_only=True)

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @property
    def resumable(self) -> bool:
        """Whether `resume_run` can set it going again."""
        return self.status in ("failed", "cancelled")

    @property
    def progress(self) -> float | None:
        """Share of the expected calls that are done, 0…1; None while not known."""
        return min(1.0, self.calls / self.calls_expected) if self.calls_expected else None


@dataclass(frozen=True)
class RunView(RunSummary):
    """One run whole.

    `standing` is the latest leaderboard (calibrations only; it outlives a failed or cancelled run), `calibration`
    the result of a finished one, `rescore` that of a finished re-scoring, `outcome` that of any other kind (the
    record its kind names in `core.projects.kinds`).  `request` is what was asked for.
    """

    version: int
    request: RunRequest
    standing: Standing | None = None
    calibration: Calibration | None = None
    rescore: RescoreView | None = None
    outcome: object | None = None


@dataclass(frozen=True, slots=True)
class ItemScore:
    """What criteria gave one calibration item, beside the people.

    `gap` is standardised score minus standardised label: above 0 the judge is too lenient, below too strict.
    `rank_gap` is the place of the score minus the place of the label among the items that have a score, both from
    the lowest, ties at their middle.  `score` and the gaps are None where the reply could not be read; `reason` then
    says why.
    """

    item_id: str
    source_id: str
    system_id: str
    label: float
    score: float | None
    gap: float | None
    reason: str = ""
    rank_gap: float | None = None


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item in full with the judge's words: reasons, or the clauses that moved the score; `raw` are the replies."""

    item: Item
    score: ItemScore
    explanation: str
    raw: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CriteriaAlignment:
    """How criteria stood in one run, on one side of its split."""

    run_id: str
    side: Side
    alignment: Alignment
    status: str = ""


@dataclass(frozen=True, slots=True)
class CriteriaSummary:
    """Criteria in a list; `alignments` newest run first."""

    criteria_id: str
    project_id: str
    aspect: str
    text: str
    origin: Origin
    parents: tuple[str, ...]
    author: str
    note: str
    created_at: datetime
    alignments: tuple[CriteriaAlignment, ...]


@dataclass(frozen=True)
class CriteriaView:
    """Criteria whole.  `edits` are the ids of edits made from it, oldest first; `head` is the newest of them, or
    the criteria itself: hand it back to `save_edit` as `expected_head`."""

    criteria: Criteria
    project_id: str
    golden_id: str
    created_at: datetime
    alignments: tuple[CriteriaAlignment, ...]
    edits: tuple[str, ...]
    head: str

    @property
    def criteria_id(self) -> str:
        return self.criteria.criteria_id

    @property
    def text(self) -> str:
        return self.criteria.text

    @property
    def provenance(self) -> Provenance:
        return self.criteria.provenance

    @property
    def parents(self) -> tuple[str, ...]:
        return self.criteria.provenance.parents

    @property
    def author(self) -> str:
        return self.criteria.provenance.author

    @property
    def note(self) -> str:
        return self.criteria.provenance.note

    @property
    def runs(self) -> tuple[str, ...]:
        """Ids of the runs that scored it, newest first."""
        return tuple(dict.fromkeys(a.run_id for a in self.alignments))
