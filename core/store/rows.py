"""What the store hands out, beside the records it was given: one frozen record per kind of row.

Times are seconds since 1970 (UTC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.records import Alignment, Criteria, Item, ItemKind, JudgeScores, Scale, Unscored, Usage


@dataclass(frozen=True, slots=True)
class ProjectRow:
    project_id: str
    name: str
    created_at: float
    imported_at: float | None
    n_goldens: int
    n_runs: int


@dataclass(frozen=True, slots=True)
class ConsentRow:
    """Somebody allowed the imported project to ask `endpoint` (a base URL), with the key or without it."""

    project_id: str
    endpoint: str
    with_key: bool
    actor: str
    role: str
    created_at: float


@dataclass(frozen=True, slots=True)
class AspectRow:
    aspect: str
    scale: Scale
    n_labelled: int


@dataclass(frozen=True, slots=True)
class GoldenRow:
    """A golden set without its texts."""

    golden_id: str
    name: str
    kind: ItemKind
    n_items: int
    n_sources: int
    n_systems: int
    n_ratings: int
    aspects: tuple[AspectRow, ...]
    created_at: float


@dataclass(frozen=True, slots=True)
class GoldenItemRow:
    """One item at its position, with the label of each aspect."""

    position: int
    item: Item
    labels: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to enter; `request` is JSON text that the store does not read."""

    project_id: str
    golden_id: str
    kind: str
    title: str
    aspect: str
    judge_spec: str
    request: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it stands.

    `beat_at` is the last sign of life of its worker, None without one; `snapshots` counts what the run has published;
    before `not_before` no worker takes it; `begun_by` is the version of Concord that
    took it up first, "" before.
    """

    run_id: str
    project_id: str
    golden_id: str
    kind: str
    title: str
    aspect: str
    judge_spec: str
    request: str
    status: str
    phase: str
    message: str
    error: str
    calls: int
    calls_expected: int
    usage: Usage
    attempt: int
    snapshots: int
    not_before: float
    begun_by: str
    cancel_requested: bool
    worker_id: str
    version: int
    created_at: float
    updated_at: float
    started_at: float | None
    finished_at: float | None
    beat_at: float | None
    now: float


@dataclass(frozen=True)
class CriteriaScores:
    """Scores of one criteria on items of a golden set: positions into it, scores (NaN = unscored), and why."""

    criteria_id: str
    positions: tuple[int, ...]
    values: tuple[float, ...]
    unscored: tuple[Unscored, ...] = ()


@dataclass(frozen=True, slots=True)
class CriteriaRow:
    criteria: Criteria
    project_id: str
    golden_id: str
    created_at: float


@dataclass(frozen=True, slots=True)
class AlignmentRow:
    criteria_id: str
    run_id: str
    side: str
    status: str
    alignment: Alignment
    created_at: float


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker; `beat_at` is its last sign of life, 0 once it signed off."""

    worker_id: str
    place: str
    pid: int
    started_at: float
    beat_at: float
    now: float
    capability: str = "cpu"


@dataclass(frozen=True)
class JudgeRow:
    """A judge of a project with its scores; `created_at` says when it was entered."""

    judge_id: str
    project_id: str
    golden_id: str
    judge: JudgeScores
    created_at: float


@dataclass(frozen=True, slots=True)
class NewLabel:
    """What a rater says of one item on one aspect; `value` None = looked at, and no label can be given."""

    item_id: str
    aspect: str
    value: float | None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A label as it was saved in a pass; `taken_from` is the earlier pass that it was taken over from, "" for none."""

    pass_id: str
    rater: str
    item_id: str
    aspect: str
    value: float | None
    comment: str
    created_at: float
    taken_from: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One entry of the log; `number` grows with time, `body` is plain JSON that depends on `kind`."""

    number: int
    project_id: str
    kind: str
    subject: str
    actor: str
    role: str
    body: Mapping[str, Any]
    created_at: float


@dataclass(frozen=True, slots=True)
class DraftRow:
    """What `author` has typed of `subject` and not saved; `base` is the version they began from."""

    project_id: str
    subject: str
    author: str
    text: str
    base: str
    began_at: float
    kept_at: float
