"""Rechecks of an exported judge on newer labels: which there were, and the start of one."""

from __future__ import annotations

from core.drift.outcome import Recheck
from core.errors import NotFoundError, UsageError
from core.projects.access import requires
from core.projects.convert import request_of
from core.projects.runs import list_runs, load_calibration, run_view, start_run
from core.projects.views.recheck import RecheckRequest, RecheckView
from core.settings import Settings
from core.store.store import Store


@requires("viewer")
def list_rechecks(store: Store, project_id: str, aspect: str, calibration_id: str = "") -> tuple[RecheckView, ...]:
    """The finished rechecks of an aspect (of one calibration's judge), oldest first."""
    found = []
    for run in reversed(list_runs(store, project_id)):
        if run.kind != "recheck" or run.aspect != aspect or run.status != "done":
            continue
        request, outcome = request_of(store.runs.get(run.run_id)), run_view(store, run.run_id).outcome
        if isinstance(request, RecheckRequest) and isinstance(outcome, Recheck):
            found.append(RecheckView(run.run_id, run.created_at, request.run_id, run.golden_id, outcome))
    return tuple(one for one in found if calibration_id in ("", one.calibration_id))


@requires("reviewer", "started a recheck")
def start_recheck(store: Store, settings: Settings, request: RecheckRequest) -> str:
    """Put a recheck in the queue, see to a worker, and return the run's id.

    `run_view(...).outcome` is then a `Recheck`.  NotFoundError for an unknown project, run or golden set, JobError for
    a calibration without a result, UsageError for one of another project, a golden set without labels on the aspect,
    or a `fall` or `alpha` that is no such number, GoldenError where none of the labels is newer than the judge.
    """
    from core.drift.newer import newer_items
    from core.export import judge_card

    store.projects.get(request.project_id)
    row = store.goldens.get(request.golden_id)
    run = store.runs.get(request.run_id)
    calibration = load_calibration(store, request.run_id)
    if run.project_id != request.project_id:
        raise UsageError("The judge belongs to another project.")
    if request.aspect != calibration.task.aspect:
        raise UsageError(f"The judge rates {calibration.task.aspect!r}, not {request.aspect!r}.")
    labelled = next((one.n_labelled for one in row.aspects if one.aspect == request.aspect), None)
    if labelled is None:
        raise NotFoundError(f"{row.name} has no aspect {request.aspect!r}.")
    if labelled < 2:
        raise UsageError(f"{row.name} has {labelled} labels of {request.aspect}; a recheck needs at least 2.")
    if not 0 < request.fall <= 1 or not 0 < request.alpha < 0.5:
        raise UsageError("The fall that matters lies between 0 and 1, the chance of a false alarm between 0 and 0.5.")
    old = store.goldens.load(run.golden_id)
    newer_items(judge_card(calibration), store.goldens.load(request.golden_id), request.aspect, old)
    spec = str(calibration.judge_state.get("spec", ""))
    return start_run(store, settings, "recheck", request, title=f"recheck · {row.name}", judge_spec=spec)
