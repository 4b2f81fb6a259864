"""Fusion by a language model in a project: its plan and criteria in versions, what it will cost, its run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.errors import JobError, NotFoundError, UsageError
from core.fusion.plan import TO_BE_MENDED, FusionEstimate, FusionRequest, FusionRunView
from core.projects.judges_shown import judges_shown
from core.projects.roles import requires
from core.projects.runs import RunWork, start_run
from core.records import GoldenSet, JudgeScores, Task
from core.review.log import FusionPlanSaved
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from core.fusion.criteria import FusionCriteria
    from core.fusion.llm import FusionJudge, ModelRatings
    from core.fusion.plan import FusionPlan


@dataclass(frozen=True)
class ModelFusion:
    """What an LLM fusion works with: `parts` are the assistants under the names that the plan uses, `positions` the
    items to rate."""

    golden: GoldenSet
    tasks: tuple[Task, ...]
    parts: tuple[JudgeScores, ...]
    positions: tuple[int, ...]

    @property
    def aspects(self) -> list[str]:
        return [task.aspect for task in self.tasks]

    def plan(self, text: str) -> FusionPlan:
        """UsageError in words for a plan that does not fit."""
        from core.fusion.plan import read_plan

        return read_plan(text, self.aspects, [part.name for part in self.parts])

    def criteria(self, text: str, origins: Mapping[str, str]) -> FusionCriteria:
        """UsageError in words for criteria that cannot be read."""
        from core.fusion.criteria import read_criteria

        return read_criteria(text, self.aspects, origins)

    def judge(self, plan: str, criteria: FusionCriteria) -> FusionJudge:
        """UsageError in words for a plan that does not fit."""
        from core.fusion.llm import FusionJudge

        return FusionJudge(self.tasks, self.parts, self.plan(plan), criteria=criteria)


def model_fusion(store: Store, request: FusionRequest) -> ModelFusion:
    """Items, aspects and assistants of a request.  NotFoundError for unknown ones, UsageError for none at all."""
    from core.data.split import task_of, whole_sources

    store.projects.get(request.project_id)
    golden = store.goldens.load(request.golden_id)
    if not request.aspects or not request.judge_ids:
        raise UsageError("An LLM fusion needs at least one aspect and one assistant.")
    unknown = [aspect for aspect in request.aspects if aspect not in golden.aspects]
    if unknown:
        raise NotFoundError(f"{golden.name} has no aspect {unknown[0]!r}.")
    rows = [store.judges.get(request.project_id, judge_id) for judge_id in request.judge_ids]
    if any(row.golden_id != request.golden_id for row in rows):
        raise UsageError("An assistant belongs to another golden set.")
    positions = np.arange(len(golden.items))
    if request.n_items is not None:
        rng = np.random.default_rng([request.seed, 6])
        positions = whole_sources(golden.source_codes, positions, request.n_items, rng)
    return ModelFusion(
        golden,
        tuple(task_of(golden, aspect) for aspect in request.aspects),
        named_assistants([row.judge for row in rows], len(request.aspects) > 1),
        tuple(positions.tolist()),
    )


def named_assistants(judges: Sequence[JudgeScores], several: bool) -> tuple[JudgeScores, ...]:
    """Judges under names that tell them apart: a metric serves all aspects, any other is named with its aspect."""
    named: dict[str, JudgeScores] = {}
    for judge in judges:
        name = judge.name if judge.kind == "metric" or not several else f"{judge.name} on {judge.aspect}"
        name = re.sub(r"[,;:\s]+", " ", name).strip()
        if name in named and judge.kind != "metric":
            name = f"{name} ({len(named) + 1})"
        named.setdefault(name, replace(judge, name=name))
    return tuple(named.values())


def propose_plan(store: Store, request: FusionRequest) -> FusionPlanSaved:
    """A plan from the assistants' measured alignment, without a call.

    Measured on half of the sources that no assistant has seen; `seen` of the result says which items those are.  It is
    not saved.
    AspectError when too few are left.
    """
    from core.comparison import usual_level
    from core.fusion.items import unseen_split
    from core.fusion.plan import measured_plan

    fusion = model_fusion(store, request)
    fit = unseen_split(fusion.golden, request.aspects[0], fusion.parts, seed=request.seed).fit.tolist()
    own = {
        aspect: [part for part in fusion.parts if part.kind == "metric" or part.aspect == aspect]
        for aspect in request.aspects
    }
    level = usual_level(fusion.golden, request.aspects[0])
    plan = measured_plan(fusion.golden, own, fit, level=level, seed=request.seed)
    return FusionPlanSaved(plan.text, "measured", tuple(fit), request.aspects, subject=request.golden_id)


def calibrated_criteria(store: Store, request: FusionRequest) -> FusionPlanSaved:
    """The criteria that the judges in use follow, for those of the aspects that have a calibrated judge here.

    Of several the best alone; `seen` of the result are the items whose labels chose them.  It is not saved.
    JobError where no aspect has any.
    """
    from core.fusion.criteria import AspectCriteria, FusionCriteria

    entries, seen = [], set[int]()
    for aspect in request.aspects:
        shown = judges_shown(store, request.project_id, request.golden_id, aspect)
        if shown.version is None or not shown.version.criteria_ids:
            continue
        text = store.criteria.get(request.project_id, shown.version.criteria_ids[0]).criteria.text
        entries.append(AspectCriteria(aspect, text, "calibrated"))
        seen |= set(store.judges.get(request.project_id, shown.own).judge.seen)
    if not entries:
        raise JobError(
            f"No judge of {', '.join(request.aspects)} has been calibrated on this golden set. Calibrate one, or leave "
            "the criteria empty: the model writes them."
        )
    criteria = FusionCriteria(tuple(entries))
    return FusionPlanSaved(
        *("", "calibrated", tuple(sorted(seen)), request.aspects, criteria.text, criteria.origins),
        subject=request.golden_id,
    )


def criteria_origins(text: str, aspects: Sequence[str], known: Sequence[FusionPlanSaved]) -> dict[str, str]:
    """Aspect → who wrote its criteria in `text`, where one of the `known` versions has the very same; newest first."""
    from core.fusion.criteria import read_criteria

    origins: dict[str, str] = {}
    try:
        own = read_criteria(text, aspects).by_aspect
        for version in reversed(known):
            kept = read_criteria(version.criteria, aspects, version.criteria_origins)
            origins |= {entry.aspect: entry.origin for entry in kept.entries if entry.text == own.get(entry.aspect)}
    except UsageError:  # it is told of where the criteria are used
        return {}
    return origins


@requires("reviewer", "saved a fusion plan")
def save_plan(store: Store, request: FusionRequest, *, origin: str = "person", expected: int | None = None) -> int:
    """Keep `request.plan` and `request.criteria` as a new version; returns its number.

    UsageError in words for a plan that names an unknown assistant or leaves an aspect out, or criteria that cannot be
    read; ConflictError when another version came after `expected`.
    """
    fusion = model_fusion(store, request)
    text = fusion.plan(request.plan).text if request.plan.strip() or not request.criteria.strip() else ""
    criteria = fusion.criteria(request.criteria, request.criteria_origins)
    plan = FusionPlanSaved(
        *(text, origin, request.plan_seen, request.aspects, criteria.text, criteria.origins),
        subject=request.golden_id,
    )
    return store.events.add(request.project_id, plan, store.actor, expected=expected)


def list_plans(store: Store, project_id: str, golden_id: str) -> list[FusionPlanSaved]:
    """Every version of the plans for a golden set, newest first."""
    return store.events.all(project_id, FusionPlanSaved, golden_id)[::-1]


def estimate_fusion(store: Store, settings: Settings, request: FusionRequest) -> FusionEstimate:
    """Calls, tokens and price of an LLM fusion before it starts; asks no endpoint.

    UsageError for a judge that is no language model or a plan that does not fit; AuthError without a key.
    """
    from core.fusion.plan import measured_plan
    from core.judging.registry import language_model

    fusion = model_fusion(store, request)
    plan = request.plan or measured_plan(fusion.golden, {aspect: [] for aspect in request.aspects}, []).text
    criteria = fusion.criteria(request.criteria, request.criteria_origins)
    judge, items = fusion.judge(plan, criteria), fusion.golden.items
    positions = [k for k in fusion.positions if items[k].target.strip()][: request.budget]
    prompt, completion = judge.tokens(items, positions)
    with closing(language_model(request.judge_spec, settings)) as model:
        cost = model.cost_of(prompt, completion)
    to_write = tuple(task.aspect for task in criteria.lacking(fusion.tasks))
    calls = len(positions) + (not request.plan) + bool(to_write)
    return FusionEstimate(calls, prompt, completion, cost, n_items=len(positions), to_write=to_write)


@requires("reviewer", "started an LLM fusion")
def start_fusion(store: Store, settings: Settings, request: FusionRequest) -> str:
    """Start an LLM fusion (`start_run`).  Errors as `estimate_fusion`, and UsageError for a budget below 1."""
    if request.budget is not None and request.budget < 1:
        raise UsageError(f"A budget has at least 1 call, not {request.budget}.")
    estimate_fusion(store, settings, request)
    title = f"LLM fusion · {', '.join(request.aspects)} · {request.judge_spec}"
    return start_run(store, settings, "fusion", request, title=title, judge_spec=request.judge_spec)


def run_fusion(work: RunWork) -> FusionRunView:
    """Rate item by item by the plan, and enter a judge for each aspect and one of the overall score.

    With a budget the rest stays unasked.
    """
    from core.fusion.llm import rate_by_model
    from core.fusion.plan import PlanError
    from core.judging.registry import language_model

    request = work.request(FusionRequest)
    fusion = model_fusion(work.store, request)
    criteria = fusion.criteria(request.criteria, request.criteria_origins)
    with closing(language_model(request.judge_spec, work.settings, work.replies, gate=work.gate)) as model:
        try:
            ratings = rate_by_model(
                *(model, fusion.golden.items, fusion.tasks, fusion.parts, fusion.positions),
                criteria=criteria,
                plan=fusion.plan(request.plan) if request.plan else None,
                budget=request.budget,
                progress=work.progress,
            )
        except PlanError as error:  # never lost: it stands among the plans, to be mended by a person
            saved = error.plan or request.plan, TO_BE_MENDED, request.plan_seen, request.aspects, error.criteria
            _keep_written(work, request, FusionPlanSaved(*saved))
            raise
    if criteria.lacking(fusion.tasks) or not request.plan:
        plan, written = ratings.plan, ratings.criteria
        made = plan.text, plan.origin, request.plan_seen, request.aspects, written.text, written.origins
        _keep_written(work, request, FusionPlanSaved(*made))
    judges = {
        name: work.add_judge(_as_judge(ratings, request, fusion, name, work.run.run_id), ratings.replies)
        for name in (ratings.verdicts if ratings.positions else ())
    }
    stopped = f"The budget of {request.budget} calls left {ratings.n_left} items out." if ratings.n_left else ""
    unread = {name: counts for name in ratings.verdicts if (counts := ratings.unread(name))}
    return FusionRunView(
        judges,
        request.plan or ratings.plan.text,
        ratings.calls,
        unread,
        stopped,
        model.as_state(),
        ratings.criteria.text,
        ratings.criteria.origins,
    )


def _keep_written(work: RunWork, request: FusionRequest, written: FusionPlanSaved) -> None:
    """What the model wrote in a run is never lost: it stands among the versions, once, for people to see and edit."""
    if request.plan and written.origin != TO_BE_MENDED:
        kept = list_plans(work.store, request.project_id, request.golden_id)
        origin = next((version.origin for version in kept if version.text == request.plan), "person")
        written = replace(written, origin=origin)
    written = replace(written, subject=request.golden_id)
    work.store.events.add(request.project_id, written, work.store.actor, form=f"plan:{work.run.run_id}")


def _as_judge(
    ratings: ModelRatings, request: FusionRequest, fusion: ModelFusion, name: str, run_id: str
) -> JudgeScores:
    """The fused score of an aspect, or the overall one, as a judge."""
    from core.fusion.llm import OVERALL

    overall = name == OVERALL and OVERALL not in request.aspects
    what = "all in all" if overall else name
    return JudgeScores(
        name=f"LLM fusion · {request.judge_spec}{' · overall' if overall else ''}",
        kind="fused",
        aspect=request.aspects[0] if overall else name,
        values=ratings.values(name, len(fusion.golden.items)),
        unscored=ratings.verdicts[name].unscored,
        seen=tuple(sorted({*request.plan_seen}.union(*(part.seen for part in fusion.parts)))),
        note=f"{request.judge_spec} rates {what} by {len(fusion.parts)} assistants, all aspects in a call.",
        run_id=run_id,
        calls_per_item=1.0 / len(request.aspects),
    )
