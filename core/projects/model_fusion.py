"""Fusion by a model in a project: the plan and its versions, what it will cost, its start and its run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.errors import NotFoundError, UsageError
from core.fusion.records import FusionEstimate, FusionRequest, FusionRunView
from core.projects.access import requires
from core.projects.runs import start_run
from core.records import GoldenSet, JudgeScores, Task, Unscored
from core.review.log import FusionPlanSaved
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from core.fusion.by_model import ModelRatings
    from core.fusion.llm import FusionJudge
    from core.projects.work import RunWork


@dataclass(frozen=True)
class ModelFusion:
    """What an LLM fusion works with: `parts` are the assistants under the names that the plan uses, `positions` the
    items to rate."""

    golden: GoldenSet
    tasks: tuple[Task, ...]
    parts: tuple[JudgeScores, ...]
    positions: tuple[int, ...]

    def judge(self, plan: str) -> FusionJudge:
        """UsageError in words for a plan that does not fit."""
        from core.fusion.llm import FusionJudge
        from core.fusion.plan import read_plan

        aspects, names = [task.aspect for task in self.tasks], [part.name for part in self.parts]
        return FusionJudge(self.tasks, self.parts, read_plan(plan, aspects, names))


def model_fusion(store: Store, request: FusionRequest) -> ModelFusion:
    """Items, aspects and assistants of a request.  NotFoundError for unknown ones, UsageError for none at all."""
    from core.data.split import whole_sources
    from core.data.task import task_of

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


@requires("viewer")
def propose_plan(store: Store, request: FusionRequest) -> FusionPlanSaved:
    """A plan from the assistants' measured alignment, without a call.

    Measured on half of the sources that no assistant has seen; `seen` of the result says which items those are.  It is
    not saved.
    AspectError when too few are left.
    """
    from core.comparison import usual_level
    from core.fusion.plan import measured_plan
    from core.fusion.stack import StackSettings, unseen_split

    fusion = model_fusion(store, request)
    fit = unseen_split(fusion.golden, request.aspects[0], fusion.parts, StackSettings(seed=request.seed)).fit.tolist()
    own = {
        aspect: [part for part in fusion.parts if part.kind == "metric" or part.aspect == aspect]
        for aspect in request.aspects
    }
    level = usual_level(fusion.golden, request.aspects[0])
    plan = measured_plan(fusion.golden, own, fit, level=level, seed=request.seed)
    return FusionPlanSaved(plan.text, "measured", tuple(fit), request.aspects, subject=request.golden_id)


@requires("reviewer", "saved a fusion plan")
def save_plan(store: Store, request: FusionRequest, *, origin: str = "person", expected: int | None = None) -> int:
    """Keep `request.plan` as a new version; returns its number.

    UsageError in words for a plan that names an unknown assistant or leaves an aspect out; ConflictError when another
    version came after `expected`.
    """
    text = model_fusion(store, request).judge(request.plan).plan.text
    plan = FusionPlanSaved(text, origin, request.plan_seen, request.aspects, subject=request.golden_id)
    return store.events.add(request.project_id, plan, store.actor, expected=expected)


@requires("viewer")
def list_plans(store: Store, project_id: str, golden_id: str) -> list[FusionPlanSaved]:
    """Every version of the plans for a golden set, newest first."""
    return store.events.all(project_id, FusionPlanSaved, golden_id)[::-1]


@requires("viewer")
def estimate_fusion(store: Store, settings: Settings, request: FusionRequest) -> FusionEstimate:
    """Calls, tokens and price of an LLM fusion before it starts; asks no endpoint.

    UsageError for a judge that is no language model or a plan that does not fit; AuthError without a key.
    """
    from core.fusion.plan import measured_plan
    from core.judging.registry import language_model

    fusion = model_fusion(store, request)
    plan = request.plan or measured_plan(fusion.golden, {aspect: [] for aspect in request.aspects}, []).text
    judge, items = fusion.judge(plan), fusion.golden.items
    asked = [k for k in fusion.positions if items[k].target.strip()][: request.budget]
    prompt, completion = judge.tokens(items, asked)
    model = language_model(request.judge_spec, settings)
    try:
        cost = model.cost_of(prompt, completion)
    finally:
        model.close()
    return FusionEstimate(len(asked) + (not request.plan), len(asked), prompt, completion, cost)


@requires("reviewer", "started an LLM fusion")
def start_fusion(store: Store, settings: Settings, request: FusionRequest) -> str:
    """Put an LLM fusion in the queue, see to a worker, and return the run's id; its outcome is a `FusionRunView`.

    Errors as `estimate_fusion`, and UsageError for a judge whose URL holds a password or a budget below 1.
    """
    if re.search(r"://[^/\s]*@", request.judge_spec):
        raise UsageError("The judge's URL holds a user name or password. Leave it out; the key goes in OPENAI_API_KEY.")
    if request.budget is not None and request.budget < 1:
        raise UsageError(f"A budget has at least 1 call, not {request.budget}.")
    estimate_fusion(store, settings, request)
    title = f"LLM fusion · {', '.join(request.aspects)} · {request.judge_spec}"
    return start_run(store, settings, "fusion", request, title=title, judge_spec=request.judge_spec)


def run_fusion(work: RunWork) -> FusionRunView:
    """Rate item by item by the plan, and enter a judge for each aspect and one of the overall score.

    With a budget the rest stays unasked.
    """
    from core.fusion.by_model import rate_by_model
    from core.judging.registry import language_model

    request = work.request(FusionRequest)
    fusion = model_fusion(work.store, request)
    model = language_model(request.judge_spec, work.settings, work.replies, gate=work.gate)
    try:
        ratings = rate_by_model(
            model,
            fusion.golden.items,
            fusion.tasks,
            fusion.parts,
            fusion.positions,
            plan=fusion.judge(request.plan).plan if request.plan else None,
            budget=request.budget,
            progress=work.progress,
        )
    finally:
        model.close()
    judges = {
        name: work.add_judge(_as_judge(ratings, request, fusion, name, work.run.run_id), ratings.replies)
        for name in (ratings.verdicts if ratings.positions else ())
    }
    stopped = f"The budget of {request.budget} calls left {ratings.n_left} items out." if ratings.n_left else ""
    unread = {name: counts for name in ratings.verdicts if (counts := ratings.unread(name))}
    return FusionRunView(judges, request.plan or ratings.plan.text, ratings.calls, unread, stopped)


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
        unscored=tuple(verdict for verdict in ratings.verdicts[name] if isinstance(verdict, Unscored)),
        seen=tuple(sorted({*request.plan_seen}.union(*(part.seen for part in fusion.parts)))),
        note=f"{request.judge_spec} rates {what} by {len(fusion.parts)} assistants, all aspects in a call.",
        run_id=run_id,
        calls_per_item=1.0 / len(request.aspects),
    )
