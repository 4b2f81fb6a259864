"""Fusion in a project: judges joined without calls and kept as a judge; fusion by a model, from its plan to its run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import JobError, NotFoundError, UsageError
from core.fusion.plan import FusionEstimate, FusionRequest, FusionRunView
from core.projects.roles import requires
from core.projects.runs import RunWork, start_run
from core.records import GoldenSet, JudgeScores, Task
from core.review.log import FusionKept, FusionPlanSaved
from core.settings import Settings
from core.store.codec import unpack
from core.store.results import RESULT
from core.store.store import Store

if TYPE_CHECKING:
    from core.export.fused_file import FusedPart
    from core.fusion.llm import FusionJudge, ModelRatings
    from core.fusion.stack import Fusion, FusionTable, StackSettings


def fuse_judges(
    store: Store, project_id: str, golden_id: str, aspect: str, *, judge_ids: Sequence[str], settings: StackSettings
) -> Fusion:
    """Fuse judges of the project: no call, nothing stored.

    NotFoundError for an unknown judge, UsageError for fewer than two usable parts or a judge of another golden set or
    aspect, AspectError when too few items are left that no part has seen.
    """
    from core.fusion.stack import fuse

    golden, judges = _judges(store, project_id, golden_id, aspect, judge_ids)
    return fuse(golden, aspect, judges, settings)


def compare_fusions(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    *,
    judge_ids: Sequence[str],
    settings: StackSettings,
    beside: Sequence[str] = (),
) -> FusionTable:
    """Every fusion without calls of the same parts, beside the judges `beside`; errors as in `fuse_judges`."""
    from core.fusion.stack import fuse_all

    golden, judges = _judges(store, project_id, golden_id, aspect, [*judge_ids, *beside])
    return fuse_all(golden, aspect, judges[: len(judge_ids)], settings, judges[len(judge_ids) :])


def _judges(
    store: Store, project_id: str, golden_id: str, aspect: str, judge_ids: Sequence[str]
) -> tuple[GoldenSet, list[JudgeScores]]:
    """The golden set, and judges of it under names that tell them apart."""
    from core.comparison import unique_names

    rows = [store.judges.get(project_id, judge_id) for judge_id in judge_ids]
    for row in rows:
        if row.golden_id != golden_id or row.judge.aspect != aspect:
            raise UsageError(
                f"{row.judge.name} scored {row.judge.aspect} of another golden set or aspect; only judges of the same "
                "golden set and aspect can be fused."
            )
    judges = [row.judge for row in rows]
    named = zip(judges, unique_names(judges), strict=True)
    return store.goldens.load(golden_id), [replace(judge, name=name) for judge, name in named]


# ── kept as a judge ──────────────────────────────────────────────────────────────────────────────────────────


@requires("reviewer", "kept a fusion")
def keep_fusion(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    *,
    judge_ids: Sequence[str],
    settings: StackSettings,
    name: str = "",
) -> str:
    """Enter a fusion as a judge, for Compare and for export; returns its id.  Errors as in `fuse_judges`."""
    from core.fusion.stack import fuse

    golden, judges = _judges(store, project_id, golden_id, aspect, judge_ids)
    fusion = fuse(golden, aspect, judges, settings)
    judge = replace(fusion.judge, name=name.strip()[:120] or fusion.judge.name)
    by_name = {part.name: part for part in judges}
    # what a part was among the judges, so that it can be computed on other items
    about = ("name", "kind", "run_id", "higher_is_better")
    parts = tuple({key: getattr(by_name[part], key) for key in about} for part in fusion.state["parts"])
    kept = FusionKept(golden_id, aspect, parts, fusion.state, fusion.as_json())

    def keep() -> str:
        judge_id = store.judges.add(project_id, golden_id, judge)
        store.events.add(project_id, replace(kept, subject=judge_id), store.actor)
        return judge_id

    return store.together(keep)


def kept_fusion(store: Store, project_id: str, judge_id: str) -> FusionKept:
    """What a kept fusion is made of.  NotFoundError when the judge is no kept fusion."""
    logged = store.events.all(project_id, FusionKept, judge_id)
    if not logged:
        raise NotFoundError(f"The judge {judge_id[:24]!r} is no fusion that was kept on the Fusion screen.")
    return logged[-1]


def fused_file(store: Store, project_id: str, judge_id: str) -> str:
    """The text of a kept fusion's file: what `score --judge-file` applies to other items.

    A part that was a metric is computed from the texts, a calibrated judge is inside with its criteria, a RepEval
    score with its directions; any other part's scores have to be handed in as a column that the file names.
    A fusion by a model takes its plan along.  NotFoundError when the judge is neither, or a part of it is gone.
    """
    from core.data.split import KnownTexts
    from core.export.fused_file import fused_card
    from core.export.judge_writing import yaml_text

    if store.judges.get(project_id, judge_id).judge.run_id:
        return yaml_text(_model_card(store, project_id, judge_id))
    kept = kept_fusion(store, project_id, judge_id)
    golden = store.goldens.load(kept.golden_id)
    seen = store.judges.get(project_id, judge_id).judge.seen
    labelled = np.flatnonzero(~np.isnan(golden.labels(kept.aspect)))
    card = fused_card(
        golden,
        kept.aspect,
        texts=KnownTexts.of(golden, seen, np.setdiff1d(labelled, seen)),
        state=kept.state,
        parts=[_recipe(store, part) for part in kept.parts],
        alignment=kept.told["fused"],
        measured={name: kept.told[name] for name in ("parts", "left_out", "n_fit", "n_report", "notes")},
    )
    return yaml_text(card)


def _model_card(store: Store, project_id: str, judge_id: str) -> dict[str, Any]:
    """The content of the file of a fusion by a model, measured on labelled items that neither plan nor parts saw."""
    from core.comparison import usual_level
    from core.data.split import KnownTexts
    from core.export.fused_file import fused_card
    from core.fusion.llm import fusion_state
    from core.fusion.stack import Agreement, StackSettings

    judge = store.judges.get(project_id, judge_id).judge
    run = store.runs.get(judge.run_id)
    outcome = store.results.read(run.run_id, RESULT, FusionRunView)
    if outcome is None or not outcome.judge_state or outcome.judges.get(judge.aspect) != judge_id:
        raise NotFoundError(f"{judge.name}: its run kept no fusion of {judge.aspect} that rates other items.")
    fusion = model_fusion(store, unpack(FusionRequest, run.request_json))
    golden, parts, plan = fusion.golden, fusion.parts, fusion.judge(outcome.plan).plan
    labelled = np.flatnonzero(~np.isnan(golden.labels(judge.aspect)))
    report = np.setdiff1d(labelled, judge.seen)
    matrix = np.vstack([judge.values, *(part.upward for part in parts)])
    how = StackSettings(level=usual_level(golden, judge.aspect))
    aligned = Agreement(golden, judge.aspect, how).align(matrix, report)
    of_parts = {part.name: alignment.as_json() for part, alignment in zip(parts, aligned[1:], strict=True)}
    about = ("name", "kind", "run_id", "higher_is_better")
    return fused_card(
        golden,
        judge.aspect,
        texts=KnownTexts.of(golden, judge.seen, report),
        state=fusion_state(outcome.judge_state, parts, plan, fusion.tasks),
        parts=[_recipe(store, {key: getattr(part, key) for key in about}) for part in parts],
        alignment=aligned[0],
        measured={"parts": of_parts, "n_fit": len(judge.seen), "n_report": len(report)},
    )


def _recipe(store: Store, part: Mapping[str, Any]) -> FusedPart:
    """How the part is computed elsewhere; one that cannot be has to have its scores handed in."""
    from core.export import judge_card
    from core.export.fused_file import FusedPart
    from core.metrics import make_metric
    from core.projects.runs import load_calibration

    name, kind, run_id = str(part["name"]), part["kind"], part["run_id"]
    recipe = FusedPart(name=name, higher_is_better=part["higher_is_better"])
    # a run of another kind, or one that is gone; a metric that was renamed among the judges
    with suppress(JobError, NotFoundError, UsageError):
        if kind == "calibrated" and run_id:
            recipe.judge = judge_card(load_calibration(store, run_id))
        elif kind == "repeval" and run_id:
            recipe.repeval = _fitted(store, run_id)
        elif kind == "metric":
            if not name.startswith("metric_"):
                make_metric(name, aspect="quality")
            recipe.assistant = name
    return recipe


def _fitted(store: Store, run_id: str) -> dict[str, Any] | None:
    """The RepEval score of a run as a file holds it; None where the run kept none (the SVM, or an older run)."""
    from core.projects.kinds import run_view
    from core.projects.repeval import RepEvalOutcome

    outcome = run_view(store, run_id).outcome
    if not isinstance(outcome, RepEvalOutcome) or outcome.result.scorer is None:
        return None
    return outcome.result.scorer.as_json()


# ── by a model ───────────────────────────────────────────────────────────────────────────────────────────────────


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


@requires("reviewer", "saved a fusion plan")
def save_plan(store: Store, request: FusionRequest, *, origin: str = "person", expected: int | None = None) -> int:
    """Keep `request.plan` as a new version; returns its number.

    UsageError in words for a plan that names an unknown assistant or leaves an aspect out; ConflictError when another
    version came after `expected`.
    """
    text = model_fusion(store, request).judge(request.plan).plan.text
    plan = FusionPlanSaved(text, origin, request.plan_seen, request.aspects, subject=request.golden_id)
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
    judge, items = fusion.judge(plan), fusion.golden.items
    positions = [k for k in fusion.positions if items[k].target.strip()][: request.budget]
    prompt, completion = judge.tokens(items, positions)
    with closing(language_model(request.judge_spec, settings)) as model:
        cost = model.cost_of(prompt, completion)
    return FusionEstimate(len(positions) + (not request.plan), prompt, completion, cost, n_items=len(positions))


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
    from core.fusion.plan import TO_BE_MENDED, PlanError
    from core.judging.registry import language_model

    request = work.request(FusionRequest)
    fusion = model_fusion(work.store, request)
    with closing(language_model(request.judge_spec, work.settings, work.replies, gate=work.gate)) as model:
        try:
            ratings = rate_by_model(
                *(model, fusion.golden.items, fusion.tasks, fusion.parts, fusion.positions),
                plan=fusion.judge(request.plan).plan if request.plan else None,
                budget=request.budget,
                progress=work.progress,
            )
        except PlanError as error:  # never lost: it stands among the plans, to be mended by a person
            plan = FusionPlanSaved(error.text, TO_BE_MENDED, (), request.aspects, subject=request.golden_id)
            work.store.events.add(request.project_id, plan, work.store.actor, form=f"plan:{work.run.run_id}")
            raise
    judges = {
        name: work.add_judge(_as_judge(ratings, request, fusion, name, work.run.run_id), ratings.replies)
        for name in (ratings.verdicts if ratings.positions else ())
    }
    stopped = f"The budget of {request.budget} calls left {ratings.n_left} items out." if ratings.n_left else ""
    unread = {name: counts for name in ratings.verdicts if (counts := ratings.unread(name))}
    in_force = request.plan or ratings.plan.text
    return FusionRunView(judges, in_force, ratings.calls, unread, stopped, model.as_state())


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
