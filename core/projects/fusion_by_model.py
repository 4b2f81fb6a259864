"""Fusion by a language model in a project: its plan and criteria in versions, what it will cost, its run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from core.errors import JobError, NotFoundError, UsageError
from core.fusion.fusion_request import FusionEstimate, FusionRequest, FusionRunView
from core.fusion.fusion_settings import FusionSettings
from core.fusion.fusion_split import seen_sources
from core.fusion.plan import TO_BE_MENDED
from core.projects.judges_shown import judges_shown
from core.projects.roles import requires
from core.projects.runs import RunWork, start_run
from core.records import GoldenSet, IntArray, JudgeScores, Task
from core.settings import Settings
from core.store.codec import unpack
from core.store.log import Entry
from core.store.results import RESULT
from core.store.store import Store

if TYPE_CHECKING:
    from core.fusion.fusion_criteria import FusionCriteria
    from core.fusion.model_rating import FusionJudge, ModelRatings
    from core.fusion.model_result import ModelResult
    from core.fusion.plan import FusionPlan


@dataclass(frozen=True)
class FusionPlanSaved(Entry):
    """A version of the plan for a golden set, the subject, with the criteria by aspect that it serves.

    `seen` are the items whose labels plan or criteria were made from.
    """

    kind = "fusion plan"
    does = "fusion plan"
    text: str
    origin: str
    seen: tuple[int, ...]
    aspects: tuple[str, ...]
    criteria: str = ""
    criteria_origins: Mapping[str, str] = field(default_factory=dict)


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
        from core.fusion.fusion_criteria import read_criteria

        return read_criteria(text, self.aspects, origins)

    def judge(self, request: FusionRequest) -> FusionJudge:
        """UsageError in words for a plan that does not fit or criteria that cannot be read."""
        from core.fusion.model_rating import FusionJudge

        said = request.settings
        plan = self.plan(said.plan) if said.plan else None
        criteria = self.criteria(said.criteria, request.criteria_origins)
        return FusionJudge(self.tasks, self.parts, plan, criteria=criteria, references=said.references)


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
        rng = np.random.default_rng([request.settings.seed, 6])
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
    from core.fusion.fusion_split import unseen_split
    from core.fusion.plan import measured_plan

    fusion = model_fusion(store, request)
    fit = unseen_split(fusion.golden, request.aspects[0], fusion.parts, seed=request.settings.seed).fit.tolist()
    own = {
        aspect: [part for part in fusion.parts if part.kind == "metric" or part.aspect == aspect]
        for aspect in request.aspects
    }
    level = usual_level(fusion.golden, request.aspects[0])
    plan = measured_plan(fusion.golden, own, fit, replace(request.settings, level=level))
    return FusionPlanSaved(plan.text, "measured", tuple(fit), request.aspects, subject=request.golden_id)


def calibrated_criteria(store: Store, request: FusionRequest) -> FusionPlanSaved:
    """The criteria that the judges in use follow, for those of the aspects that have a calibrated judge here.

    Of several the best alone; `seen` of the result are the items whose labels chose them.  It is not saved.
    JobError where no aspect has any.
    """
    from core.fusion.fusion_criteria import AspectCriteria, FusionCriteria

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
    from core.fusion.fusion_criteria import read_criteria

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
    """Keep the plan and the criteria of `request` as a new version; returns its number.

    UsageError in words for a plan that names an unknown assistant or leaves an aspect out, or criteria that cannot be
    read; ConflictError when another version came after `expected`.
    """
    fusion = model_fusion(store, request)
    said = request.settings
    text = fusion.plan(said.plan).text if said.plan.strip() or not said.criteria.strip() else ""
    criteria = fusion.criteria(said.criteria, request.criteria_origins)
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
    from core.fusion.model_rating import estimate_rating
    from core.judging.judge_specs import language_model
    from core.judging.llm_judge import require_references
    from core.judging.scoring_styles import Asking

    fusion, asked = model_fusion(store, request), request.settings
    judge = fusion.judge(request)
    asking = Asking.of(request.judge_spec, references=asked.references)
    with closing(language_model(request.judge_spec, settings, asking=asking)) as model:
        for task in fusion.tasks:
            require_references(model.sampling, task, [fusion.golden.items[k] for k in fusion.positions])
        return estimate_rating(judge, fusion.golden.items, fusion.positions, asked, cost_of=model.cost_of)


@requires("reviewer", "started an LLM fusion")
def start_fusion(store: Store, settings: Settings, request: FusionRequest) -> str:
    """Start an LLM fusion (`start_run`).  Errors as `estimate_fusion`."""
    estimate_fusion(store, settings, request)
    title = f"LLM fusion · {', '.join(request.aspects)} · {request.judge_spec}"
    return start_run(store, settings, "fusion", request, title=title, judge_spec=request.judge_spec)


def run_fusion(work: RunWork) -> FusionRunView:
    """Rate item by item by the plan, and enter a judge for each aspect and one of the overall score.

    With a budget the rest stays unasked.
    """
    from core.fusion.model_rating import rate_by_model
    from core.fusion.model_result import Rated
    from core.fusion.plan import PlanError
    from core.judging.judge_specs import NAMED, language_model
    from core.judging.scoring_styles import Asking

    request = work.request(FusionRequest)
    fusion = model_fusion(work.store, request)
    judge, settings = fusion.judge(request), request.settings
    asking = Asking.of(request.judge_spec, references=settings.references)
    opened = language_model(request.judge_spec, work.settings, work.replies, asking=asking, gate=NAMED)
    with closing(opened) as model:
        try:
            ratings = rate_by_model(
                model, fusion.golden.items, judge, fusion.positions, settings, progress=work.progress
            )
        except PlanError as error:  # never lost: it stands among the plans, to be mended by a person
            saved = error.plan or settings.plan, TO_BE_MENDED, request.plan_seen, request.aspects, error.criteria
            _keep_written(work, request, FusionPlanSaved(*saved))
            raise
    if judge.criteria.lacking(fusion.tasks) or not settings.plan:
        plan, written = ratings.plan, ratings.criteria
        made = plan.text, plan.origin, request.plan_seen, request.aspects, written.text, written.origins
        _keep_written(work, request, FusionPlanSaved(*made))
    judges = {
        name: work.add_judge(_as_judge(ratings, request, fusion, name, work.run.run_id), ratings.replies)
        for name in (ratings.verdicts if ratings.positions else ())
    }
    stopped = f"The budget of {settings.budget} calls left {ratings.n_left} items out." if ratings.n_left else ""
    unread = {name: counts for name in ratings.verdicts if (counts := ratings.unread(name))}
    rated = Rated.of(ratings, len(fusion.golden.items))
    return FusionRunView(
        judges,
        settings.plan or ratings.plan.text,
        ratings.calls,
        unread,
        stopped,
        model.as_state(),
        ratings.criteria.text,
        ratings.criteria.origins,
        rated.without,
        tuple(rated.without_asked),
    )


def unseen_and_asked(golden: GoldenSet, judge: JudgeScores) -> IntArray:
    """Positions of the items that the judge was asked about, of sources whose labels it has not seen."""
    asked = ~np.isnan(judge.values) | np.isin(golden.item_ids, [verdict.item_id for verdict in judge.unscored])
    return np.flatnonzero(asked & ~seen_sources(golden, [judge]))


def fusion_result(store: Store, run_id: str, settings: FusionSettings) -> ModelResult | None:
    """What a finished LLM fusion is worth at the statistic and level of `settings`: every aspect, the score all in
    all, and the fusion without each assistant where that was asked for.

    On labelled items of sources that neither plan, criteria nor assistants have seen; None where a judge of it or an
    assistant is gone.
    """
    from core.fusion.fusion_split import require_systems
    from core.fusion.model_result import Rated, measured_ratings
    from core.fusion.plan import OVERALL

    run = store.runs.get(run_id)
    outcome = store.results.read(run_id, RESULT, FusionRunView)
    if outcome is None or not outcome.judges:
        return None
    try:
        fusion = model_fusion(store, unpack(FusionRequest, run.request_json))
        judges = {name: store.judges.get(run.project_id, key).judge for name, key in outcome.judges.items()}
    except NotFoundError:
        return None
    at = unseen_and_asked(fusion.golden, judges[OVERALL])
    require_systems(fusion.golden, settings.measure.level, at)
    rated = Rated({name: judge.values for name, judge in judges.items()}, outcome.without, outcome.without_asked)
    return measured_ratings(fusion.golden, fusion.tasks, rated, at, settings)


def _keep_written(work: RunWork, request: FusionRequest, written: FusionPlanSaved) -> None:
    """What the model wrote in a run is never lost: it stands among the versions, once, for people to see and edit."""
    if request.settings.plan and written.origin != TO_BE_MENDED:
        kept = list_plans(work.store, request.project_id, request.golden_id)
        origin = next((version.origin for version in kept if version.text == request.settings.plan), "person")
        written = replace(written, origin=origin)
    written = replace(written, subject=request.golden_id)
    work.store.events.add(request.project_id, written, work.store.actor, form=f"plan:{work.run.run_id}")


def _as_judge(
    ratings: ModelRatings, request: FusionRequest, fusion: ModelFusion, name: str, run_id: str
) -> JudgeScores:
    """The fused score of an aspect, or the overall one, as a judge."""
    from core.fusion.plan import OVERALL, folded

    overall = name == OVERALL and OVERALL not in request.aspects
    what = "all in all" if overall else name
    labelled = next((own for own in fusion.golden.aspects if folded(own) == OVERALL), request.aspects[0])
    return JudgeScores(
        name=f"LLM fusion · {request.judge_spec}{' · overall' if overall else ''}",
        kind="fused",
        aspect=labelled if overall else name,
        values=ratings.values(name, len(fusion.golden.items)),
        unscored=ratings.verdicts[name].unscored,
        seen=tuple(sorted({*request.plan_seen}.union(*(part.seen for part in fusion.parts)))),
        note=f"{request.judge_spec} rates {what} by {len(fusion.parts)} assistants, all aspects in a call.",
        run_id=run_id,
        calls_per_item=1.0 / len(request.aspects),
    )
