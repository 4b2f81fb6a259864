"""Rows of the store → views of the screens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from core.errors import JobError
from core.jobs.routing import Wants, taken_words, waiting_words
from core.projects.kinds import KINDS, Kind
from core.projects.views import (
    AspectView,
    CalibrationRequest,
    CriteriaAlignment,
    GoldenView,
    ProjectView,
    RescoreRequest,
    RunKind,
    RunRequest,
    RunStatus,
    RunSummary,
    Side,
)
from core.projects.views.judges import JudgeView
from core.projects.views.rounds import RoundRequest
from core.store.codec import Packed, unpack
from core.store.rows import AlignmentRow, GoldenRow, JudgeRow, ProjectRow, RunRow, WorkerRow
from core.store.store import Store
from core.store.workers import ALIVE_SECONDS


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def project_view(row: ProjectRow) -> ProjectView:
    """A project with its counts."""
    return ProjectView(
        row.project_id, row.name, moment(row.created_at), row.n_goldens, row.n_runs, row.imported_at is not None
    )


def golden_view(row: GoldenRow) -> GoldenView:
    """A golden set at a glance."""
    aspects = tuple(AspectView(a.aspect, a.scale, a.n_labelled) for a in row.aspects)
    return GoldenView(
        row.golden_id,
        row.name,
        row.kind,
        row.n_items,
        row.n_sources,
        row.n_systems,
        row.n_ratings,
        aspects,
        moment(row.created_at),
    )


def criteria_alignment(row: AlignmentRow) -> CriteriaAlignment:
    """How criteria stood in one run on one side."""
    return CriteriaAlignment(row.run_id, cast(Side, row.side), row.alignment, row.status)


def request_of(row: RunRow) -> RunRequest:
    """What was asked for.  JobError for a kind this version does not know."""
    return unpack(kind_of(row).request, Packed(row.request))


def kind_of(row: RunRow) -> Kind:
    """The records of the run's kind.  JobError for a kind this version does not know."""
    kind = KINDS.get(cast(RunKind, row.kind))
    if kind is None:
        raise JobError(f"Run {row.run_id} is of kind {row.kind!r}, which this version of Concord does not know.")
    return kind


def calibration_asked(store: Store, run_id: str) -> CalibrationRequest:
    """What the calibration `run_id` was asked for.  JobError for a run of another kind."""
    request = request_of(store.runs.get(run_id))
    if not isinstance(request, CalibrationRequest):
        raise JobError(f"Run {run_id} is no calibration; name the calibration whose judge is meant.")
    return request


def judge_run(store: Store, run_id: str) -> str:
    """The calibration whose judge scored in this run: itself, or the one that a re-scoring or a round names."""
    request = request_of(store.runs.get(run_id))
    return request.run_id if isinstance(request, RescoreRequest | RoundRequest) else run_id


def judge_view(row: JudgeRow) -> JudgeView:
    """A judge of a project."""
    return JudgeView(row.judge_id, row.golden_id, row.judge, moment(row.created_at))


def run_summary(row: RunRow, workers: Sequence[WorkerRow] = (), wants: Wants = "any") -> RunSummary:
    """A run as lists show it; the time left at the pace so far.

    `workers` (everybody who ever signed on) and what the run `wants` of one say where it runs, or why it waits.
    """
    running = row.status == "running"
    capability = next((one.capability for one in workers if one.worker_id == row.worker_id), "")
    return RunSummary(
        run_id=row.run_id,
        project_id=row.project_id,
        kind=cast(RunKind, row.kind),
        title=row.title,
        status=cast(RunStatus, row.status),
        golden_id=row.golden_id,
        aspect=row.aspect,
        judge_spec=row.judge_spec,
        phase=row.phase,
        message=row.message,
        calls=row.calls,
        calls_expected=row.calls_expected,
        usage=row.usage,
        created_at=moment(row.created_at),
        started_at=None if row.started_at is None else moment(row.started_at),
        updated_at=moment(row.updated_at),
        finished_at=None if row.finished_at is None else moment(row.finished_at),
        seconds_left=_seconds_left(row) if running else None,
        error=row.error,
        attempt=row.attempt,
        worker_id=row.worker_id,
        worker_alive=_worker_alive(row) if running else None,
        cancelling=running and row.cancel_requested,
        waits=waiting_words(wants, workers) if row.status == "queued" else "",
        capability=capability,
        placed=taken_words(wants, capability) if capability else "",
    )


def _worker_alive(row: RunRow) -> bool:
    return row.beat_at is not None and row.now - row.beat_at <= ALIVE_SECONDS


def _seconds_left(row: RunRow) -> float | None:
    """At the pace since the start; None before a twentieth of the calls is done."""
    if row.started_at is None or not row.calls_expected or row.calls * 20 < row.calls_expected:
        return None
    pace = (row.now - row.started_at) / row.calls
    return max(0.0, (row.calls_expected - row.calls) * pace)
