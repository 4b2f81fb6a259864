"""Ablations and analyses of finished calibrations: what each part of a judge brings, and what the candidates tell."""

from __future__ import annotations

from dataclasses import dataclass

from core.calibration.ablate import Ablation, AblationRow
from core.calibration.analyse import Analyses, ByPattern, BySize, CaseStudy, Line, Place, Scope, Trend
from core.calibration.records import Candidate, Estimate
from core.errors import JobError
from core.kept import WITH_RESULT, Run
from core.projects.access import requires
from core.projects.consent import gate_of
from core.projects.runs import RunWork, load_calibration, load_scores, require_judge, start_run
from core.records import JudgeScores
from core.settings import Settings
from core.store.codec import unpack
from core.store.store import Store

__all__ = [  # with the records that screens, which do not reach into the algorithms, take from here
    "Ablation",
    "AblationRequest",
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
    "case_study",
    "estimate_ablation",
    "last_ablation",
    "list_refinements",
    "run_ablation",
    "start_ablation",
]


@dataclass(frozen=True, slots=True)
class AblationRequest:
    """The ablation table of the finished calibration `run_id`.

    `with_steps` False leaves the variant with other evaluation steps out: for a language model it costs most.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    with_steps: bool = True


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
    from core.calibration.ablate import steps_in_force
    from core.calibration.variants import Known, plan_of
    from core.judging.registry import restore_judge

    _require_calibration(store, request)
    calibration = load_calibration(store, request.run_id)
    golden = store.goldens.load(request.golden_id)
    gate = gate_of(store, store.runs.get(request.run_id), sends=False)
    judge = restore_judge(require_judge(store, request.run_id), settings, store.replies, gate=gate)
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

    `run_view(...).outcome` is then an `Ablation`; its new variants enter the project's judges, and the look at held-out
    items is written down (`list_openings`).  NotFoundError for an unknown run; JobError for a run that is no finished
    calibration of this golden set and aspect.
    """
    _require_calibration(store, request)
    spec = store.runs.get(request.run_id).judge_spec
    return start_run(
        *(store, settings, "ablation", request),
        title=f"{request.aspect} · ablation · {spec}",
        judge_spec=spec,
        opens="an ablation measured variants on them",
    )


def run_ablation(work: RunWork) -> Ablation:
    """Score what is missing for the table, and enter the variants that are new among the judges."""
    from core.calibration.ablate import ablation

    request = work.request(AblationRequest)
    calibration = load_calibration(work.store, request.run_id)
    with work.asking(require_judge(work.store, request.run_id), calibration.task) as asked:
        scores = load_scores(work.store, request.run_id)
        result = ablation(asked, calibration, scores, with_steps=request.with_steps)
    for judge in judges_of(result, work.run.run_id):
        work.add_judge(judge)
    return result


def judges_of(result: Ablation, run_id: str) -> list[JudgeScores]:
    """The ablated variants as judges; the final judge and the one without criteria stand there since the calibration.

    Each has seen the labels of the calibration items: they chose its criteria.
    """
    rows = dict(zip(result.scores.criteria_ids, result.scores.values, strict=True))
    return [
        JudgeScores(
            name=f"{result.judge_spec} · {row.key}",
            kind="calibrated",
            aspect=result.task.aspect,
            values=rows[row.key],
            unscored=result.scores.unscored.get(row.key, ()),
            seen=result.calibration_positions,
            note=f"{row.what} The judge {result.judge_spec}, from an ablation of its calibration.",
            run_id=run_id,
            calls_per_item=float(len(row.criteria_ids)),
        )
        for row in result.rows
        if row.key not in ("final", "without criteria")
    ]


@requires("viewer")
def last_ablation(store: Store, run_id: str) -> Run | None:
    """The newest ablation of a calibration: one that is going on or done before one that failed; None without any."""
    found = [
        run
        for run in store.runs.all(store.runs.get(run_id).project_id)
        if run.kind == "ablation" and unpack(AblationRequest, run.request_json).run_id == run_id
    ]
    usable = [run for run in found if not run.finished or run.status in WITH_RESULT]
    return next(iter(usable or found), None)


def _require_calibration(store: Store, request: AblationRequest) -> None:
    store.projects.get(request.project_id)
    run = store.runs.get(request.run_id)
    ours = (run.project_id, run.golden_id, run.aspect) == (request.project_id, request.golden_id, request.aspect)
    if run.kind != "calibration" or run.status not in WITH_RESULT or not ours:
        raise JobError(
            f"Run {request.run_id} ({run.kind} of {run.aspect}, {run.status}) is no finished calibration of "
            f"{request.aspect} on this golden set. Run a calibration to its end first."
        )
