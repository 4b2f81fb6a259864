"""The kinds of runs: what each is asked for with, what it leaves, the function that does it; runs read by their kind.

The function of a kind is called again when its run is taken up again.  It finds what was paid for: the run's own
answers, criteria, judges, scores and documents, hidden states on disk.  What it does again is arithmetic.  So its
inputs are pinned, and requests, seeds and tie-breaks come in a fixed order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.calibration.ablate import Ablation
from core.calibration.calibration_records import Calibration, LeaderboardSnapshot
from core.calibration.proposals import RoundResult
from core.comparison.recheck import Recheck
from core.comparison.style_grid import StylesView
from core.errors import ConcordError, JobError
from core.fusion.fusion_settings import FusionRequest, FusionRunView
from core.jobs.queue import RunProgress, Wants, placement
from core.project_records import JUDGES, Run, RunRequest, Worker
from core.projects.calibration import (
    AblationRequest,
    CalibrationRequest,
    RecheckRequest,
    VersionRequest,
    run_ablation,
    run_calibration,
    run_recheck,
    start_ablation,
    start_calibration,
    start_recheck,
)
from core.projects.fusion import run_fusion, start_fusion
from core.projects.judge_versions import enter_judge, run_version_measurement, start_version
from core.projects.method_runs import (
    RepEvalOutcome,
    RepEvalRequest,
    StylesRequest,
    reads_a_model,
    run_repeval,
    run_styles,
    start_repeval,
    start_styles,
)
from core.projects.project_judges import MetricsRequest, MetricsResult, run_metrics, start_metrics
from core.projects.refining import (
    RescoreRequest,
    RescoreResult,
    RoundRequest,
    TrialRequest,
    TrialResult,
    run_rescore,
    run_round,
    run_trial,
    start_rescore,
    start_round,
    start_trial,
)
from core.projects.roles import requires
from core.projects.run_work import RunWork, require_made_here, unread_replies
from core.settings import Settings
from core.store.codec import unpack
from core.store.runs import RESULT, SNAPSHOT
from core.store.store import Store


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run.

    `start` puts a request in the queue; `documents` are the records it keeps on its way, by name; `wants_gpu` says
    of a request whether its work is a model in the worker (all other models are behind an endpoint, or small); a
    `quick` kind is over in seconds, somebody waits for it, and it waits for no other run.  `enter` lists in the project
    what a result adds: after the result is kept, for whoever sees the one looks for the other.
    """

    request: type[RunRequest]
    result: type
    run: Callable[[RunWork], Any]
    start: Callable[[Store, Settings, Any], str]
    documents: Mapping[str, type] = field(default_factory=dict)
    wants_gpu: Callable[[Any], bool] | None = None
    quick: bool = False
    enter: Callable[[RunWork, Any], None] | None = None


KINDS: dict[str, Kind] = {
    "calibration": Kind(
        CalibrationRequest,
        Calibration,
        run_calibration,
        start_calibration,
        {SNAPSHOT: LeaderboardSnapshot},
        enter=enter_judge,
    ),
    "version": Kind(
        VersionRequest,
        Calibration,
        run_version_measurement,
        start_version,
        {SNAPSHOT: LeaderboardSnapshot},
        enter=enter_judge,
    ),
    "rescore": Kind(RescoreRequest, RescoreResult, run_rescore, start_rescore),
    "round": Kind(RoundRequest, RoundResult, run_round, start_round),
    "ablation": Kind(AblationRequest, Ablation, run_ablation, start_ablation),
    "fusion": Kind(FusionRequest, FusionRunView, run_fusion, start_fusion),
    "metrics": Kind(
        MetricsRequest, MetricsResult, run_metrics, start_metrics, wants_gpu=lambda asked: asked.names_a_model
    ),
    "recheck": Kind(RecheckRequest, Recheck, run_recheck, start_recheck),
    "repeval": Kind(RepEvalRequest, RepEvalOutcome, run_repeval, start_repeval, wants_gpu=reads_a_model),
    "styles": Kind(StylesRequest, StylesView, run_styles, start_styles, {SNAPSHOT: StylesView}),
    "trial": Kind(TrialRequest, TrialResult, run_trial, start_trial, quick=True),
}


def do_run(store: Store, settings: Settings, run: Run, progress: RunProgress) -> str:
    """Do a run and keep its result; "done", or "budget" where the budget ended it.

    JobError for a kind that this version does not know; NotFoundError or AspectError where the request no longer fits
    what is stored.
    """
    if run.kind not in KINDS:
        raise JobError(f"This worker knows no runs of kind {run.kind!r}; update it.")
    work = RunWork(store, settings, run, progress)
    kind = KINDS[run.kind]
    result = kind.run(work)
    work.keep(RESULT, result)
    if kind.enter is not None:
        kind.enter(work, result)
    return "budget" if getattr(result, "stopped_early", "") else "done"


def do_here(store: Store, settings: Settings, run_id: str) -> str:
    """Do a queued run in this process, with its snapshots; returns the status it ends with."""
    attempt = store.runs.get(run_id).attempt
    if not store.runs.claim(run_id, attempt, "here"):
        raise JobError(f"Run {run_id} does not wait to be done.")
    run = store.runs.get(run_id)
    with RunProgress(store, run, threading.Event()) as progress:
        status = do_run(store, settings, run, progress)
    store.runs.finish(run_id, attempt, status)
    return status


def wants_of(run: Run) -> Wants:
    """What a run wants of a worker: "gpu" for a model in the worker, "now" where it is quick, else "any"."""
    kind = KINDS.get(run.kind)
    if kind is not None and kind.quick:
        return "now"
    if kind is None or kind.wants_gpu is None:
        return "any"
    try:
        return "gpu" if kind.wants_gpu(unpack(kind.request, run.request_json)) else "any"
    except (ConcordError, TypeError, ValueError, KeyError, AttributeError):  # of another version: its worker says so
        return "any"


# ── runs, as people see them ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RunDetail(Run):
    """A run with what was asked for and, as far as it came, what it left.

    `standing` is the latest leaderboard (calibrations and versions; it outlives a failed or cancelled run), `outcome`
    the result, the record that its kind names in `KINDS`.
    """

    request: RunRequest = field(kw_only=True)
    standing: LeaderboardSnapshot | None = None
    outcome: object | None = None

    @property
    def calibration(self) -> Calibration | None:
        """The result of a finished calibration, or of the measurement of a version."""
        return self.outcome if isinstance(self.outcome, Calibration) else None

    @property
    def rescore(self) -> RescoreResult | None:
        """The result of a finished re-scoring."""
        return self.outcome if isinstance(self.outcome, RescoreResult) else None

    @property
    def trial(self) -> TrialResult | None:
        """What came of criteria tried on one item."""
        return self.outcome if isinstance(self.outcome, TrialResult) else None


def list_runs(store: Store, project_id: str | None = None) -> list[Run]:
    """All runs, or one project's, newest first."""
    workers = store.workers.all()
    return [_placed(run, workers) for run in store.runs.all(project_id)]


def run_view(store: Store, run_id: str) -> RunDetail:
    """One run whole, with its latest leaderboard and, when done, its result.

    NotFoundError for an unknown id, JobError for a kind that this version does not know.
    """
    run = _placed(store.runs.get(run_id), store.workers.all())
    kind = KINDS.get(run.kind)
    if kind is None:
        raise JobError(f"Run {run.run_id} is of kind {run.kind!r}, which this version of Concord does not know.")
    return RunDetail(
        **vars(run),
        request=unpack(kind.request, run.request_json),
        standing=store.results.read(run_id, SNAPSHOT, LeaderboardSnapshot) if run.kind in JUDGES else None,
        outcome=store.results.read(run_id, RESULT, kind.result),
    )


@requires("reviewer", "asked again what could not be read")
def ask_again(store: Store, settings: Settings, run_id: str) -> str:
    """Start a finished run anew, as it was asked for; returns the new run's id.

    What could be read is found and costs nothing, so that only the rest is asked again; the finished run keeps its
    result and its replies.  JobError for a run that goes on, was imported, or in which everything was read.
    """
    run = run_view(store, run_id)
    if not run.finished or not unread_replies(store, run_id):
        raise JobError(f"Run {run_id} ({run.status}) has no unread replies to ask again.")
    require_made_here(store, run_id)
    return KINDS[run.kind].start(store, settings, run.request)


def _placed(run: Run, workers: Sequence[Worker]) -> Run:
    return replace(run, placement=placement(run, wants_of(run), workers))
