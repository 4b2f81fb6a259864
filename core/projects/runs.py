"""Runs: put in the queue, stopped, set going again; what they left.

What happens when Start is pressed: `start_calibration` (or another kind's start) checks the request and calls
`start_run`, which writes a row in `runs` and sees to a worker.  The worker's queue (`core.jobs.queue`) takes the row
and calls the function of its kind (`core.projects.kinds`) with a `RunWork` (`core.projects.work`).  A run that is
resumed, or taken over from a lost worker, is called again: what it was answered and what it stored is found there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.calibration.records import Calibration
from core.errors import JobError
from core.jobs.launch import ensure_worker
from core.kept import RunKind, RunRequest, Worker
from core.projects.access import requires
from core.projects.consent import allow_named, require_consent
from core.projects.triage import record_opening
from core.records import ScoreMatrix
from core.settings import Settings
from core.store.codec import pack
from core.store.results import JUDGE, RESULT
from core.store.store import Store


@dataclass(frozen=True)
class JudgeState:
    """A judge made ready (`core.public.judge_state`): `restore_judge` makes it again."""

    state: Mapping[str, Any]


def start_run(
    store: Store,
    settings: Settings,
    kind: RunKind,
    request: RunRequest,
    *,
    title: str,
    judge_spec: str,
    opens: str = "",
) -> str:
    """Enter a run and see to a worker; returns the run's id.  `opens` says why it looks at held-out items, if it does.

    NotFoundError for an unknown project; ConsentError where it would score with the judge of an imported run at an
    endpoint that nobody here has allowed.
    """
    store.projects.get(request.project_id)
    if spec := getattr(request, "judge_spec", ""):
        allow_named(store, settings, request.project_id, spec)
    elif judge_run_id := getattr(request, "run_id", ""):
        require_consent(store, settings, judge_run_id)
    run_id = store.runs.add(
        request.project_id,
        request.golden_id,
        kind=kind,
        title=title,
        aspect=request.aspect,
        judge_spec=judge_spec,
        request=pack(request).body,
    )
    ensure_worker(settings)
    if opens:
        record_opening(store, request, opens, run_id=run_id)
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
def run_version(store: Store, run_id: str) -> int:
    """A number that grows whenever the run changes: poll this, and read `run_view` when it differs."""
    return store.runs.version(run_id)


# ── what runs left ───────────────────────────────────────────────────────────────────────────────────────────


@requires("viewer")
def load_calibration(store: Store, run_id: str) -> Calibration:
    """The result of a finished calibration.  NotFoundError for an unknown id, JobError while there is none."""
    run = store.runs.get(run_id)
    result = store.results.read(run_id, RESULT, Calibration) if run.kind == "calibration" else None
    if result is None:
        raise JobError(f"Run {run_id} ({run.kind}, {run.status}) has no calibration result.")
    return result


@requires("viewer")
def load_scores(store: Store, run_id: str) -> ScoreMatrix:
    """Every score the run has stored so far: (n_criteria, n_items) over all items of its golden set, in its order."""
    golden = store.goldens.load(store.runs.get(run_id).golden_id)
    return store.results.scores(run_id, golden.item_ids)


def judge_run(store: Store, run_id: str) -> str:
    """The calibration whose judge scored in this run: itself, or the one that a re-scoring or a round names."""
    run = store.runs.get(run_id)
    return str(json.loads(run.request_json)["run_id"]) if run.kind in ("rescore", "round") else run_id


def kept_judge(store: Store, run_id: str) -> Mapping[str, Any] | None:
    """The state of the judge that a run made ready; None for a run without one."""
    kept = store.results.read(run_id, JUDGE, JudgeState)
    return None if kept is None else kept.state


def require_judge(store: Store, run_id: str) -> Mapping[str, Any]:
    """The state of the judge that the calibration `run_id` made ready.  JobError while there is none."""
    state = kept_judge(store, run_id)
    if state is None:
        raise JobError(f"Run {run_id} has not come to its judge yet; wait for its first candidates.")
    return state


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────


def worker_alive(store: Store) -> bool:
    """Whether any worker gave a sign of life within the last 15 s."""
    return bool(store.workers.alive())


def list_workers(store: Store) -> list[Worker]:
    """The workers that gave a sign of life within the last 15 s, by name."""
    return sorted(store.workers.alive(), key=lambda worker: worker.worker_id)
