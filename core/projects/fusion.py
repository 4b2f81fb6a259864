"""Fusion in a project: judges joined without calls and kept as a judge, or rated by a language model in a run.

The model rates by a plan and criteria, which are kept in versions for people to see and edit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import JobError, NotFoundError, UsageError
from core.fusion.fusion_settings import FusionEstimate, FusionRequest, FusionRunView, FusionSettings
from core.fusion.plan import TO_BE_MENDED
from core.fusion.stack import seen_sources
from core.projects.project_judges import judges_shown
from core.projects.roles import requires
from core.projects.run_work import RunWork, start_run
from core.records import GoldenSet, IntArray, JudgeScores
from core.settings import Settings
from core.store.codec import unpack
from core.store.log import Entry
from core.store.runs import RESULT
from core.store.store import Store

if TYPE_CHECKING:
    from core.fusion.model_rating import FusionJudge, ModelResult
    from core.fusion.stack import Fusion

# ── without calls ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FusionKept(Entry):
    """A fusion entered as a judge, the subject: its parts, its estimator's state, its result as JSON."""

    kind = "fusion kept"
    does = "fusion kept"
    golden_id: str
    aspect: str
    parts: tuple[Mapping[str, Any], ...]
    state: Mapping[str, Any]
    told: Mapping[str, Any]


def fuse_judges(
    store: Store, project_id: str, golden_id: str, aspect: str, *, judge_ids: Sequence[str], settings: FusionSettings
) -> Fusion:
    """The fusion of these judges without calls; nothing is stored.

    NotFoundError for an unknown judge, UsageError for fewer than two usable parts or a judge of another golden set or
    aspect, AspectError when too few items are left that no part has seen.
    """
    from core.fusion.stack import fuse

    return fuse(*_judges(store, project_id, golden_id, aspect, judge_ids), settings)


@requires("reviewer", "kept a fusion")
def keep_fusion(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    *,
    judge_ids: Sequence[str],
    settings: FusionSettings,
    name: str = "",
) -> str:
    """Enter a fusion as a judge, for Compare and for export; returns its id.  Errors as in `fuse_judges`."""
    from core.fusion.stack import fuse

    golden, aspect, judges = _judges(store, project_id, golden_id, aspect, judge_ids)
    fusion = fuse(golden, aspect, judges, settings)
    judge = replace(fusion.judge, name=name.strip()[:120] or fusion.judge.name)
    ids = dict(zip((part.name for part in judges), judge_ids, strict=True))
    # what a part was among the judges, so that it can be computed on other items
    parts = tuple(
        part_facts(part, store.judges.get(project_id, ids[part]).judge, ids[part]) for part in fusion.state["parts"]
    )
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


def part_facts(name: str, judge: JudgeScores, judge_id: str) -> dict[str, Any]:
    """What the part called `name` is among the judges."""
    about = {key: getattr(judge, key) for key in ("kind", "run_id", "higher_is_better")}
    return about | {"name": name, "judge_id": judge_id, "metric": judge.name if judge.kind == "metric" else ""}


def _judges(
    store: Store, project_id: str, golden_id: str, aspect: str, judge_ids: Sequence[str]
) -> tuple[GoldenSet, str, list[JudgeScores]]:
    """The golden set, the aspect, and judges of it under readable names that tell them apart."""
    from core.comparison import unique_names
    from core.metrics import readable

    rows = [store.judges.get(project_id, judge_id) for judge_id in judge_ids]
    for row in rows:
        if row.golden_id != golden_id or row.judge.aspect != aspect:
            raise UsageError(
                f"{row.judge.name} scored {row.judge.aspect} of another golden set or aspect; only judges of the same "
                "golden set and aspect can be fused."
            )
    judges = [readable(row.judge) for row in rows]
    named = zip(judges, unique_names(judges), strict=True)
    return store.goldens.load(golden_id), aspect, [replace(judge, name=name) for judge, name in named]


# ── by a model: plan and criteria ────────────────────────────────────────────────────────────────────────────


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


def asked_fusion(
    store: Store, request: FusionRequest, *, texts: bool = True, needs_plan: bool = False
) -> tuple[GoldenSet, FusionJudge, tuple[int, ...]]:
    """The golden set, what is asked (with the plan and criteria of the request, for `texts`), and which items to rate.

    A metric serves all aspects, so it is one assistant; any other judge is named with its aspect.  NotFoundError for an
    unknown aspect or judge, UsageError for none at all, for a plan that does not fit (or `needs_plan` and it is empty)
    or for criteria that cannot be read.
    """
    from core.data.split import task_of, whole_sources
    from core.fusion.model_rating import FusionJudge
    from core.fusion.plan import read_criteria, read_plan

    store.projects.get(request.project_id)
    golden, said = store.goldens.load(request.golden_id), request.settings
    if not request.aspects or not request.judge_ids:
        raise UsageError("An LLM fusion needs at least one aspect and one assistant.")
    unknown = [aspect for aspect in request.aspects if aspect not in golden.aspects]
    if unknown:
        raise NotFoundError(f"{golden.name} has no aspect {unknown[0]!r}.")
    rows = [store.judges.get(request.project_id, judge_id) for judge_id in request.judge_ids]
    if any(row.golden_id != request.golden_id for row in rows):
        raise UsageError("An assistant belongs to another golden set.")
    parts: dict[str, JudgeScores] = {}
    for judge in [row.judge for row in rows]:
        shared = judge.kind == "metric"
        name = judge.name if shared or len(request.aspects) == 1 else f"{judge.name} on {judge.aspect}"
        name = re.sub(r"[,;:\s]+", " ", name).strip()
        if name in parts and not shared:
            name = f"{name} ({len(parts) + 1})"
        parts.setdefault(name, replace(judge, name=name))
    positions = np.arange(len(golden.items))
    if request.n_items is not None:
        rng = np.random.default_rng([said.seed, 6])
        positions = whole_sources(golden.source_codes, positions, request.n_items, rng)
    judge_asked = FusionJudge(
        tuple(task_of(golden, aspect) for aspect in request.aspects),
        tuple(parts.values()),
        read_plan(said.plan, request.aspects, list(parts)) if texts and (said.plan or needs_plan) else None,
        criteria=read_criteria(said.criteria if texts else "", request.aspects),
    )
    return golden, judge_asked, tuple(positions.tolist())


def propose_plan(store: Store, request: FusionRequest) -> FusionPlanSaved:
    """A plan from the assistants' measured alignment, without a call; it is not saved.

    Measured on half of the sources that no assistant has seen; `seen` of the result says which items those are.
    AspectError when too few are left.
    """
    from core.comparison import usual_level
    from core.fusion.plan import measured_plan
    from core.fusion.stack import unseen_split

    golden, judge, _ = asked_fusion(store, request, texts=False)
    fit = unseen_split(golden, request.aspects[0], judge.parts, seed=request.settings.seed).fit.tolist()
    own = {
        aspect: [part for part in judge.parts if part.kind == "metric" or part.aspect == aspect]
        for aspect in request.aspects
    }
    plan = measured_plan(golden, own, fit, replace(request.settings, level=usual_level(golden, request.aspects[0])))
    return FusionPlanSaved(plan.text, "measured", tuple(fit), request.aspects, subject=request.golden_id)


def calibrated_criteria(store: Store, request: FusionRequest) -> FusionPlanSaved:
    """The criteria that the judges in use follow, for those of the aspects that have a calibrated judge here.

    Of several the best alone; `seen` of the result are the items whose labels chose them.  It is not saved.
    JobError where no aspect has any.
    """
    from core.fusion.plan import AspectCriteria, FusionCriteria

    entries, seen = [], set[int]()
    for aspect in request.aspects:
        shown = judges_shown(store, request.project_id, request.golden_id, aspect)
        if shown.version is not None:
            text = store.criteria.get(request.project_id, shown.version.criteria_ids[0]).text
            entries.append(AspectCriteria(aspect, text))
            seen |= set(store.judges.get(request.project_id, shown.own).judge.seen)
    if not entries:
        raise JobError(
            f"No judge of {', '.join(request.aspects)} has been calibrated on this golden set. Calibrate one, or leave "
            "the criteria empty: the model writes them."
        )
    text, at = FusionCriteria(tuple(entries)).text, tuple(sorted(seen))
    return FusionPlanSaved("", "calibrated", at, request.aspects, text, subject=request.golden_id)


@requires("reviewer", "saved a fusion plan")
def save_plan(store: Store, request: FusionRequest, *, origin: str = "person", expected: int | None = None) -> int:
    """Keep the plan and the criteria of `request` as a new version; returns its number.

    UsageError in words for a plan that names an unknown assistant or leaves an aspect out, or criteria that cannot be
    read; ConflictError when another version came after `expected`.
    """
    said = request.settings
    needs_plan = bool(said.plan.strip()) or not said.criteria.strip()
    _, judge, _ = asked_fusion(store, request, needs_plan=needs_plan)
    text = judge.plan.text if judge.plan is not None and needs_plan else ""
    about = (request.plan_seen, request.aspects, judge.criteria.text)
    plan = FusionPlanSaved(text, origin, *about, subject=request.golden_id)
    return store.events.add(request.project_id, plan, store.actor, expected=expected)


def list_plans(store: Store, project_id: str, golden_id: str) -> list[FusionPlanSaved]:
    """Every version of the plans for a golden set, newest first."""
    return store.events.all(project_id, FusionPlanSaved, golden_id)[::-1]


# ── by a model: the run ──────────────────────────────────────────────────────────────────────────────────────


def estimate_fusion(store: Store, settings: Settings, request: FusionRequest) -> FusionEstimate:
    """Calls, tokens and price of an LLM fusion before it starts; asks no endpoint.

    UsageError for a judge that is no language model or a plan that does not fit; AuthError without a key.
    """
    from core.fusion.model_rating import estimate_rating
    from core.judging.judge_specs import language_model

    golden, judge, positions = asked_fusion(store, request)
    with closing(language_model(request.judge_spec, settings)) as model:
        return estimate_rating(judge, golden.items, positions, request.settings, cost_of=model.cost_of)


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
    from core.fusion.plan import OVERALL, PlanError, folded
    from core.judging.judge_specs import NAMED, language_model

    request = work.request(FusionRequest)
    settings, aspects, spec = request.settings, request.aspects, request.judge_spec
    golden, judge, positions = asked_fusion(work.store, request)
    with closing(language_model(spec, work.settings, work.replies, gate=NAMED)) as model:
        try:
            ratings = rate_by_model(model, golden.items, judge, positions, settings, progress=work.progress)
        except PlanError as error:  # never lost: people find it among the plans, to be mended
            text = error.plan or settings.plan
            _keep_written(work, FusionPlanSaved(text, TO_BE_MENDED, request.plan_seen, aspects, error.criteria))
            raise
    if judge.criteria.lacking(judge.tasks) or not settings.plan:
        plan, written = ratings.plan, ratings.criteria
        made = FusionPlanSaved(plan.text, plan.origin, request.plan_seen, aspects, written.text)
        _keep_written(work, made)
    judges = {}
    for name in ratings.verdicts if ratings.positions else ():
        overall = name == OVERALL and OVERALL not in aspects
        labelled = next((own for own in golden.aspects if folded(own) == OVERALL), aspects[0])
        what = "all in all" if overall else name
        fused = JudgeScores(
            name=f"LLM fusion · {spec}{' · overall' if overall else ''}",
            kind="fused",
            aspect=labelled if overall else name,
            values=ratings.values(name, len(golden.items)),
            unscored=ratings.verdicts[name].unscored,
            seen=tuple(sorted({*request.plan_seen}.union(*(part.seen for part in judge.parts)))),
            note=f"{spec} rates {what} by {len(judge.parts)} assistants, all aspects in a call.",
            run_id=work.run.run_id,
            calls_per_item=1.0 / len(aspects),
        )
        judges[name] = work.add_judge(fused, ratings.replies)
    return FusionRunView(
        judges,
        settings.plan or ratings.plan.text,
        ratings.calls,
        {name: counts for name in ratings.verdicts if (counts := ratings.unread(name))},
        f"The budget of {settings.budget} calls left {ratings.n_left} items out." if ratings.n_left else "",
        model.as_state(),
        ratings.criteria.text,
        ratings.criteria.origins,
    )


def _keep_written(work: RunWork, written: FusionPlanSaved) -> None:
    """What the model wrote in a run is never lost: it stands among the versions, once, for people to see and edit."""
    request = work.request(FusionRequest)
    if request.settings.plan and written.origin != TO_BE_MENDED:
        kept = list_plans(work.store, request.project_id, request.golden_id)
        origin = next((version.origin for version in kept if version.text == request.settings.plan), "person")
        written = replace(written, origin=origin)
    written = replace(written, subject=request.golden_id)
    work.store.events.add(request.project_id, written, work.store.actor, form=f"plan:{work.run.run_id}")


# ── what a fusion by a model is worth ────────────────────────────────────────────────────────────────────────


def unseen_and_asked(golden: GoldenSet, judge: JudgeScores) -> IntArray:
    """Positions of the items that the judge was asked about, of sources whose labels it has not seen."""
    asked = ~np.isnan(judge.values) | np.isin(golden.item_ids, [verdict.item_id for verdict in judge.unscored])
    return np.flatnonzero(asked & ~seen_sources(golden, [judge]))


def fusion_result(store: Store, run_id: str, settings: FusionSettings) -> ModelResult | None:
    """What a finished LLM fusion is worth at the statistic and level of `settings`: every aspect, the score all in
    all.

    On labelled items of sources that neither plan, criteria nor assistants have seen; None where a judge of it or an
    assistant is gone.
    """
    from core.fusion.model_rating import measured_ratings
    from core.fusion.plan import OVERALL
    from core.fusion.stack import require_systems

    run = store.runs.get(run_id)
    outcome = store.results.read(run_id, RESULT, FusionRunView)
    if outcome is None or not outcome.judges:
        return None
    try:
        golden, judge, _ = asked_fusion(store, unpack(FusionRequest, run.request_json))
        judges = {name: store.judges.get(run.project_id, key).judge for name, key in outcome.judges.items()}
    except NotFoundError:
        return None
    at = unseen_and_asked(golden, judges[OVERALL])
    require_systems(golden, settings.measure.level, at)
    rated = {name: each.values for name, each in judges.items()}
    return measured_ratings(golden, judge.tasks, rated, at, settings)
