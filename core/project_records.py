"""Records of the store: users, projects, golden sets, criteria, runs, judges and workers.

Times are timezone-aware UTC. Unknown values are None, never 0.

Every change has an author. Without sign-in, every user has all rights, and the app asks for a name before the first
change. With sign-in, roles come from the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from core.records import Alignment, Criteria, ItemKind, JudgeScores, Origin, Provenance, Scale, Usage

Role = Literal["viewer", "annotator", "reviewer", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "annotator", "reviewer", "admin")
"""From the fewest rights to the most: each role includes the previous ones."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A user with a role.

    Attributes:
        name: Name that others see; "" if unknown.
        subject: Identity from sign-in; "" without sign-in.
        at_screen: Whether the user uses the app, which needs a name for changes.
    """

    name: str = ""
    role: Role = "admin"
    subject: str = ""
    at_screen: bool = False

    @property
    def is_unnamed(self) -> bool:
        """Whether this user of the app has no name yet, and so cannot change anything."""
        return self.at_screen and not self.name

    def may(self, role: Role) -> bool:
        """Return whether the user's role is at least `role`."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Actor()
"""The user of the command line and the worker."""


# ── stored things ───────────────────────────────────────────────────────────────────────────────────────────────────

RunKind = Literal[
    "calibration",
    "version",
    "rescore",
    "round",
    "styles",
    "ablation",
    "metrics",
    "repeval",
    "fusion",
    "recheck",
    "repeat",
    "controls",
    "switch",
]
RunStatus = Literal["queued", "running", "done", "failed", "cancelled", "budget"]
Side = Literal["calibration", "held-out"]
JUDGES: tuple[RunKind, ...] = ("calibration", "version")
"""Kinds of runs whose result is a judge."""
FINISHED: tuple[RunStatus, ...] = ("done", "failed", "cancelled", "budget")
RESUMABLE: tuple[RunStatus, ...] = ("failed", "cancelled")
WITH_RESULT: tuple[RunStatus, ...] = ("done", "budget")
ALIVE_SECONDS = 15.0
"""A worker without a heartbeat for this long counts as gone, and others take over its runs."""
DEMO_PROJECT = "demo"
"""Id of the demo project."""


def moment(seconds: float) -> datetime:
    """Convert seconds since 1970 to a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def is_demo(project_id: str) -> bool:
    """Return whether a project is the demo. Its content is simulated and must be marked as such."""
    return project_id == DEMO_PROJECT


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project with the number of its golden sets and runs. `imported_at` is None if it was not imported."""

    project_id: str
    name: str
    created_at: datetime
    imported_at: datetime | None
    n_goldens: int
    n_runs: int

    @property
    def imported(self) -> bool:
        return self.imported_at is not None

    def came_with(self, run: Run) -> bool:
        """Return whether a run was imported with this project. Such a run is read-only."""
        return self.imported_at is not None and run.created_at <= self.imported_at


@dataclass(frozen=True, slots=True)
class AspectSummary:
    """An aspect of a golden set. `n_labelled` is the number of items with a label."""

    aspect: str
    scale: Scale
    n_labelled: int


@dataclass(frozen=True, slots=True)
class GoldenSummary:
    """A golden set without its texts. `golden_id` is a digest of its content."""

    golden_id: str
    name: str
    kind: ItemKind
    n_items: int
    n_sources: int
    n_systems: int
    n_ratings: int
    aspects: tuple[AspectSummary, ...]
    created_at: datetime

    def aspect(self, name: str) -> AspectSummary | None:
        return next((aspect for aspect in self.aspects if aspect.aspect == name), None)


@dataclass(frozen=True, slots=True)
class CriteriaAlignment:
    """Alignment of criteria in a run, on its calibration or held-out set (`side`).

    `status` is the status of the criteria on the leaderboard.
    """

    criteria_id: str
    run_id: str
    side: Side
    alignment: Alignment
    status: str = ""


@dataclass(frozen=True)
class CriteriaEntry:
    """Criteria of a project.

    `alignments` are sorted by run, newest first. `edits` are the ids of edited versions of these criteria, oldest
    first.
    """

    criteria: Criteria
    project_id: str
    golden_id: str
    created_at: datetime
    alignments: tuple[CriteriaAlignment, ...]
    edits: tuple[str, ...]

    @property
    def criteria_id(self) -> str:
        return self.criteria.criteria_id

    @property
    def aspect(self) -> str:
        return self.criteria.aspect

    @property
    def text(self) -> str:
        return self.criteria.text

    @property
    def provenance(self) -> Provenance:
        return self.criteria.provenance

    @property
    def origin(self) -> Origin:
        return self.criteria.provenance.origin

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
        """Ids of the runs that scored these criteria, newest first."""
        return tuple(dict.fromkeys(alignment.run_id for alignment in self.alignments))

    @property
    def head(self) -> str:
        """The id of the newest edited version, or of these criteria if they were never edited.

        `save_edit` takes it as `expected_head`.
        """
        return self.edits[-1] if self.edits else self.criteria_id


class RunRequest(Protocol):
    """Interface of run requests, which the store can save."""

    @property
    def project_id(self) -> str: ...

    @property
    def golden_id(self) -> str: ...

    @property
    def aspect(self) -> str: ...


@dataclass(frozen=True)
class Run:
    """A run with its state at the time `now`, taken from the clock of the database.

    Attributes:
        request_json: The request, in the form that `core.projects.start_and_resume` reads.
        error: Why the run failed, or "".
        calls_expected: Expected number of calls; 0 if unknown.
        attempt: How often the run was started.
        snapshots: Number of published snapshots.
        beat_at: Time of the last heartbeat of its worker, or None.
    """

    run_id: str
    project_id: str
    golden_id: str
    kind: RunKind
    title: str
    aspect: str
    judge_spec: str
    request_json: str
    status: RunStatus
    phase: str
    message: str
    error: str
    calls: int
    calls_expected: int
    usage: Usage
    attempt: int
    snapshots: int
    cancel_requested: bool
    worker_id: str
    version: int
    now: datetime
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    beat_at: datetime | None

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @property
    def resumable(self) -> bool:
        """Whether the status of the run allows `resume_run`."""
        return self.status in RESUMABLE

    @property
    def progress(self) -> float | None:
        """Share of the expected calls that are done, 0 to 1; None if unknown."""
        return min(1.0, self.calls / self.calls_expected) if self.calls_expected else None

    @property
    def cancelling(self) -> bool:
        """Whether the run was cancelled but its worker has not stopped yet."""
        return self.status == "running" and self.cancel_requested

    @property
    def worker_alive(self) -> bool | None:
        """Whether the worker is alive, according to its last heartbeat; None if the run is not running."""
        if self.status != "running":
            return None
        return self.beat_at is not None and (self.now - self.beat_at).total_seconds() <= ALIVE_SECONDS

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left. None if the run is not running, or if less than 5 % of its calls are done."""
        if self.status != "running" or self.started_at is None or not 0 < self.calls_expected <= self.calls * 20:
            return None
        pace = (self.now - self.started_at).total_seconds() / self.calls
        return max(0.0, (self.calls_expected - self.calls) * pace)


@dataclass(frozen=True, slots=True)
class Worker:
    """A live worker, with its host, process and start time."""

    worker_id: str
    place: str
    pid: int
    started_at: datetime


@dataclass(frozen=True)
class JudgeEntry:
    """A judge of a project, with its scores for all items of a golden set."""

    judge_id: str
    project_id: str
    golden_id: str
    judge: JudgeScores
    created_at: datetime

    @property
    def name(self) -> str:
        return self.judge.name
