"""Ablations and analyses of finished calibrations: what one will cost, its start, and what the candidates tell.

The records come from `core.calibration`; screens, which do not reach into the algorithms, take their names from here.
"""

from __future__ import annotations

from typing import cast

from core.calibration.ablate import Ablation, AblationRow
from core.calibration.analyse import Analyses, ByPattern, BySize, CaseStudy, Line, Place, Scope, Trend
from core.calibration.steps import Candidate, Estimate
from core.errors import JobError
from core.jobs.documents import kept_judge
from core.projects.access import requires
from core.projects.consent import gate_of
from core.projects.convert import request_of, run_summary
from core.projects.runs import load_calibration, load_scores, start_run
from core.projects.triage import record_opening
from core.projects.views import FINISHED, RunSummary
from core.projects.views.analyses import AblationRequest
from core.settings import Settings
from core.store.store import Store

__all__ = [
    "Ablation",
    "AblationRow",
    "Analyses",
    "ByPattern",
    "BySize",
    "CaseStudy",
    "Line",
    "Place",
    "Scope",
    "Trend",
    "analyse_candidates",
    "calibrations_of",
    "case_study",
    "estimate_ablation",
    "last_ablation",
    "list_refinements",
    "start_ablation",
]

_COMPLETE = ("done", "budget")


@requires("viewer")
def calibrations_of(store: Store, project_id: str, golden_id: str, aspect: str) -> list[RunSummary]:
    """The project's calibrations of that aspect that came to a result, newest first."""
    return [
        run_summary(row)
        for row in store.runs.all(project_id)
        if row.kind == "calibration" and row.golden_id == golden_id and row.aspect == aspect and row.status in _COMPLETE
    ]


@requires("viewer")
def analyse_candidates(store: Store, run_id: str, scope: Scope = "complete") -> Analyses:
    """Alignment by exemplar size, by length and by pattern of the candidates of a calibration; see `Analyses`.

    Raises as `load_calibration`.
    """
    from core.calibration.analyse import analyse

    return analyse(load_calibration(store, run_id), scope)


@requires("viewer")
def list_refinements(store: Store, run_id: str) -> tuple[Candidate, ...]:
    """Refinements that `case_study` can show, largest inner gain first.  Raises as `load_calibration`."""
    from core.calibration.analyse import refinements

    return refinements(load_calibration(store, run_id))


@requires("viewer")
def case_study(store: Store, run_id: str, criteria_id: str | None = None) -> CaseStudy | None:
    """A refinement beside its parent on the calibration items; None where nothing was refined.

    `criteria_id` None takes the one with the largest inner gain.  NotFoundError for criteria that are no complete
    refinement of the run; else raises as `load_calibration`.
    """
    from core.calibration.analyse import case_study as study

    calibration = load_calibration(store, run_id)
    golden = store.goldens.load(store.runs.get(run_id).golden_id)
    return study(calibration, golden, load_scores(store, run_id), criteria_id)


@requires("viewer")
def estimate_ablation(store: Store, settings: Settings, request: AblationRequest) -> Estimate:
    """Calls, tokens and price of the ablation before it starts: only for scores that the calibration has not stored.

    Raises what the start would.
    """
    from core.calibration.evaluation_steps import steps_in_force
    from core.calibration.variants import Known, plan_of
    from core.judging.registry import restore_judge

    _require_calibration(store, request)
    calibration = load_calibration(store, request.run_id)
    golden = store.goldens.load(request.golden_id)
    state = kept_judge(store, request.run_id)
    assert state is not None
    gate = gate_of(store, store.runs.get(request.run_id), sends=False)
    judge = restore_judge(state, settings, store.replies, gate=gate)
    try:
        steps = steps_in_force(judge)
        plan = plan_of(
            calibration, golden, writes_steps=steps is not None, has_steps=bool(steps), with_steps=request.with_steps
        )
        calls = Known(golden, calibration, load_scores(store, request.run_id)).calls(plan)
        words = sum(len(one.text.split()) for one in calibration.chosen) // max(1, len(calibration.chosen))
        once = judge.estimate(calibration.task, [golden.items[p] for p in plan.positions], words)
    finally:
        judge.close()
    share = calls / max(1, once.calls)
    return Estimate(
        calls=calls,
        prompt_tokens=None if once.prompt_tokens is None else round(once.prompt_tokens * share),
        completion_tokens=None if once.completion_tokens is None else round(once.completion_tokens * share),
        cost=None if once.cost is None else once.cost * share,
        n_calibration=len(plan.calibration),
        n_held_out=len(plan.held_out),
        notes=tuple(f"Left out: {key}. {reason}" for key, reason in plan.left_out.items()),
    )


@requires("reviewer", "started an ablation")
def start_ablation(store: Store, settings: Settings, request: AblationRequest) -> str:
    """Put the ablation of a finished calibration in the queue, see to a worker, and return the run's id.

    `run_view(...).outcome` is then an `Ablation`; its new variants enter the shelf of judges, and the look at held-out
    items is written down (`list_openings`).  NotFoundError for an
    unknown run; JobError for a run that is no finished calibration of this golden set and aspect.
    """
    _require_calibration(store, request)
    run = store.runs.get(request.run_id)
    title = f"{request.aspect} · ablation · {run.judge_spec}"
    run_id = start_run(store, settings, "ablation", request, title=title, judge_spec=run.judge_spec)
    record_opening(store, request, "an ablation measured variants on them", run_id=run_id)
    return run_id


@requires("viewer")
def last_ablation(store: Store, run_id: str) -> RunSummary | None:
    """The newest ablation of a calibration: one that is going on or done before one that failed; None without any."""
    found = [
        run_summary(row)
        for row in store.runs.all(store.runs.get(run_id).project_id)
        if row.kind == "ablation" and cast(AblationRequest, request_of(row)).run_id == run_id
    ]
    usable = [one for one in found if one.status not in FINISHED or one.status in _COMPLETE]
    return next(iter(usable or found), None)


def _require_calibration(store: Store, request: AblationRequest) -> None:
    store.projects.get(request.project_id)
    run = store.runs.get(request.run_id)
    ours = (run.project_id, run.golden_id, run.aspect) == (request.project_id, request.golden_id, request.aspect)
    if run.kind != "calibration" or run.status not in _COMPLETE or not ours:
        raise JobError(
            f"Run {request.run_id} ({run.kind} of {run.aspect}, {run.status}) is no finished calibration of "
            f"{request.aspect} on this golden set. Run a calibration to its end first."
        )
