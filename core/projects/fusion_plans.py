"""LLM fusion: its assistants, its plan and the plan's versions, what it will cost, and its start."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.errors import NotFoundError, UsageError
from core.projects.access import requires
from core.projects.runs import start_run
from core.projects.views.fusion import FusionEstimate, FusionRequest, PlanView
from core.records import GoldenSet, JudgeScores, Task
from core.review.log import FusionPlanSaved
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from core.fusion.llm import FusionJudge

"""Kind of the events that hold the versions of a plan; the subject is the golden set."""


@dataclass(frozen=True)
class FusionBench:
    """What an LLM fusion works with: `parts` are the assistants under the names that the plan uses."""

    golden: GoldenSet
    tasks: tuple[Task, ...]
    parts: tuple[JudgeScores, ...]
    positions: tuple[int, ...]

    def judge(self, plan: str) -> FusionJudge:
        """UsageError in words for a plan that does not fit."""
        from core.fusion.llm import FusionJudge
        from core.fusion.plan import helper_of, read_plan

        helpers = tuple(helper_of(part) for part in self.parts)
        aspects = [task.aspect for task in self.tasks]
        return FusionJudge(self.tasks, helpers, read_plan(plan, aspects, [one.name for one in self.parts]))


def bench_for(store: Store, request: FusionRequest) -> FusionBench:
    """Items, aspects and assistants of a request.  NotFoundError for unknown ones, UsageError for none at all."""
    from core.public import task_of

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
    parts = named_assistants([row.judge for row in rows], len(request.aspects) > 1)
    return FusionBench(
        golden, tuple(task_of(golden, one) for one in request.aspects), parts, _positions(golden, request)
    )


def named_assistants(judges: Sequence[JudgeScores], several: bool) -> tuple[JudgeScores, ...]:
    """Judges under names that tell them apart: a metric serves all aspects, any other is named with its aspect."""
    found: dict[str, JudgeScores] = {}
    for judge in judges:
        name = judge.name if judge.kind == "metric" or not several else f"{judge.name} on {judge.aspect}"
        name = re.sub(r"[,;:\s]+", " ", name).strip()
        if name in found and judge.kind != "metric":
            name = f"{name} ({len(found) + 1})"
        found.setdefault(name, replace(judge, name=name))
    return tuple(found.values())


def _positions(golden: GoldenSet, request: FusionRequest) -> tuple[int, ...]:
    """All items, or whole sources drawn by the seed until `n_items` are reached."""
    if request.n_items is None or request.n_items >= len(golden.items):
        return tuple(range(len(golden.items)))
    order = np.random.default_rng([request.seed, 6]).permutation(golden.n_sources)
    sizes = np.bincount(golden.source_codes, minlength=golden.n_sources)[order]
    taken = order[: int(np.searchsorted(np.cumsum(sizes), request.n_items)) + 1]
    return tuple(int(k) for k in np.flatnonzero(np.isin(golden.source_codes, taken)))


@requires("viewer")
def propose_plan(store: Store, request: FusionRequest) -> PlanView:
    """A plan from the assistants' measured alignment, without a call.

    Measured on half of the sources that no assistant has seen; `seen` of the result says which items those are.
    AspectError when too few are left.
    """
    from core.comparison import usual_level
    from core.fusion.plan import measured_plan
    from core.fusion.stack import StackSettings, unseen_sides

    bench = bench_for(store, request)
    fit = unseen_sides(bench.golden, request.aspects[0], bench.parts, StackSettings(seed=request.seed)).fit
    own = {
        task.aspect: [one for one in bench.parts if one.kind == "metric" or one.aspect == task.aspect]
        for task in bench.tasks
    }
    level = usual_level(bench.golden, request.aspects[0])
    plan = measured_plan(bench.golden, own, fit.tolist(), level=level, seed=request.seed)
    return PlanView(plan.text, "measured", tuple(int(k) for k in fit))


@requires("reviewer", "saved a fusion plan")
def save_plan(store: Store, request: FusionRequest, *, origin: str = "person", expected: int | None = None) -> int:
    """Keep `request.plan` as a new version; returns its number.

    UsageError in words for a plan that names an unknown assistant or leaves an aspect out; ConflictError when another
    version came after `expected`.
    """
    from core.fusion.plan import read_plan

    bench = bench_for(store, request)
    text = read_plan(request.plan, request.aspects, [one.name for one in bench.parts]).text
    plan = FusionPlanSaved(text, origin, request.plan_seen, request.aspects, subject=request.golden_id)
    return store.events.add(request.project_id, plan, store.actor, expected=expected)


@requires("viewer")
def list_plans(store: Store, project_id: str, golden_id: str) -> list[PlanView]:
    """Every version of the plans for a golden set, newest first."""
    return [
        PlanView(one.text, one.origin, one.seen, one.number, one.actor, one.aspects)
        for one in reversed(store.events.all(project_id, FusionPlanSaved, golden_id))
    ]


@requires("viewer")
def estimate_fusion(store: Store, settings: Settings, request: FusionRequest) -> FusionEstimate:
    """Calls, tokens and price of an LLM fusion before it starts; asks no endpoint.

    UsageError for a judge that is no language model or a plan that does not fit; AuthError without a key.
    """
    from core.fusion.llm import tokens_asked
    from core.fusion.plan import measured_plan
    from core.projects.style_grid.asking import language_model

    bench = bench_for(store, request)
    plan = request.plan or measured_plan(bench.golden, {task.aspect: [] for task in bench.tasks}, []).text
    at = [k for k in bench.positions if bench.golden.items[k].target.strip()]
    at = at[: request.budget] if request.budget is not None else at
    prompt, completion = tokens_asked(bench.judge(plan), bench.golden.items, bench.parts, at)
    model = language_model(request.judge_spec, settings)
    try:
        cost = model.cost_of(prompt, completion)
    finally:
        model.close()
    return FusionEstimate(len(at) + (not request.plan), len(at), prompt, completion, cost)


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
