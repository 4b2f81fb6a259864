"""Runs: start, watch, cancel, resume."""

from __future__ import annotations

from dataclasses import fields

from core.calibration.steps import Calibration, Standing
from core.errors import JobError
from core.jobs.documents import RESULT, STANDING
from core.jobs.launch import ensure_worker
from core.projects.access import requires
from core.projects.capabilities import wants_of
from core.projects.consent import allow_named, require_consent
from core.projects.convert import kind_of, moment, request_of, run_summary
from core.projects.views import RescoreView, RunKind, RunRequest, RunSummary, RunView
from core.projects.views.workers import WorkerView
from core.records import ScoreMatrix
from core.settings import Settings
from core.store.codec import pack, unpack
from core.store.rows import NewRun
from core.store.store import Store


def start_run(
    store: Store,
    settings: Settings,
    kind: RunKind,
    request: RunRequest,
    *,
    title: str,
    judge_spec: str,
) -> str:
    """Enter a run and see to a worker; returns the run's id.

    ConsentError where it would score with the judge of an imported run at an endpoint that nobody here has allowed.
    """
    new = NewRun(
        project_id=request.project_id,
        golden_id=request.golden_id,
        kind=kind,
        title=title,
        aspect=request.aspect,
        judge_spec=judge_spec,
        request=pack(request).body,
    )
    if spec := getattr(request, "judge_spec", ""):
        allow_named(store, settings, request.project_id, spec)
    elif judge_run := getattr(request, "run_id", ""):
        require_consent(store, settings, judge_run)
    run_id = store.runs.add(new)
    ensure_worker(settings)
    return run_id


@requires("reviewer", "cancelled a run")
def cancel_run(store: Store, run_id: str) -> None:
    """Ask the run to stop; takes about a second, and keeps what was paid for.  Nothing happens to a finished run.

    NotFoundError for an unknown id.
    """
    store.runs.request_cancel(run_id)


@requires("reviewer", "resumed a run")
def resume_run(store: Store, settings: Settings, run_id: str) -> None:
    """Set a failed or cancelled run going again, from where it stopped; a failed one asks again what got no reply.

    JobError for any other run; ConsentError where it was imported and asks an endpoint that nobody here has allowed.
    """
    require_consent(store, settings, run_id)
    run = store.runs.get(run_id)
    store.runs.requeue(run_id)
    if run.status == "failed":
        store.replies.of_run(run_id, run.project_id).forget_failures()
    ensure_worker(settings)


@requires("viewer")
def list_runs(store: Store, project_id: str | None = None) -> list[RunSummary]:
    """All runs, or one project's, newest first."""
    workers = store.workers.all()
    return [run_summary(row, workers, wants_of(row)) for row in store.runs.all(project_id)]


@requires("viewer")
def run_version(store: Store, run_id: str) -> int:
    """A number that grows whenever the run changes: poll this, and read `run_view` when it differs."""
    return store.runs.version(run_id)


@requires("viewer")
def run_view(store: Store, run_id: str) -> RunView:
    """One run whole, with its latest leaderboard and, when done, its result.  NotFoundError for an unknown id."""
    row = store.runs.get(run_id)
    summary = run_summary(row, store.workers.all(), wants_of(row))
    standing = store.results.document(run_id, STANDING)
    result = store.results.document(run_id, RESULT)
    is_calibration = summary.kind == "calibration"
    outcome = None if result is None else unpack(kind_of(row).result, result)
    return RunView(
        **{f.name: getattr(summary, f.name) for f in fields(RunSummary)},
        version=row.version,
        request=request_of(row),
        standing=unpack(Standing, standing) if standing is not None and is_calibration else None,
        calibration=outcome if isinstance(outcome, Calibration) else None,
        rescore=outcome if isinstance(outcome, RescoreView) else None,
        outcome=outcome,
    )


@requires("viewer")
def load_calibration(store: Store, run_id: str) -> Calibration:
    """The result of a finished calibration.  NotFoundError for an unknown id, JobError while there is none."""
    row = store.runs.get(run_id)
    result = store.results.document(run_id, RESULT)
    if row.kind != "calibration" or result is None:
        raise JobError(f"Run {run_id} ({row.kind}, {row.status}) has no calibration result.")
    return unpack(Calibration, result)


@requires("viewer")
def load_scores(store: Store, run_id: str) -> ScoreMatrix:
    """Every score the run has stored so far: (n_criteria, n_items) over all items of its golden set, in its order."""
    golden = store.goldens.load(store.runs.get(run_id).golden_id)
    return store.results.scores(run_id, golden.item_ids)


def worker_alive(store: Store) -> bool:
    """Whether any worker gave a sign of life within the last 15 s."""
    return bool(store.workers.alive())


def list_workers(store: Store) -> list[WorkerView]:
    """The workers that gave a sign of life within the last 15 s, by name."""
    found = [
        WorkerView(row.worker_id, row.place, row.capability, moment(row.started_at)) for row in store.workers.alive()
    ]
    return sorted(found, key=lambda one: one.worker_id)
