"""Fusion in a project: judges joined without calls, kept as a judge, and written as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import JobError, JudgeError, NotFoundError, UsageError
from core.fusion.fusion_request import FusionRequest, FusionRunView
from core.fusion.fusion_settings import FusionSettings
from core.projects.fusion_by_model import model_fusion, unseen_and_asked
from core.projects.roles import requires
from core.records import GoldenSet, JudgeScores
from core.store.codec import unpack
from core.store.judges import judge_id_of
from core.store.log import Entry
from core.store.results import RESULT
from core.store.store import Store

if TYPE_CHECKING:
    from core.fusion.stack import FusionTable
    from core.judge_files.fused_file import FusedPart


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


def compare_fusions(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    *,
    judge_ids: Sequence[str],
    settings: FusionSettings,
    beside: Sequence[str] = (),
) -> FusionTable:
    """Every fusion without calls of the same parts, beside the judges `beside`; nothing is stored.

    NotFoundError for an unknown judge, UsageError for fewer than two usable parts or a judge of another golden set or
    aspect, AspectError when too few items are left that no part has seen.
    """
    from core.fusion.stack import fuse_all

    golden, judges = _judges(store, project_id, golden_id, aspect, [*judge_ids, *beside])
    return fuse_all(golden, aspect, judges[: len(judge_ids)], settings, judges[len(judge_ids) :])


def _judges(
    store: Store, project_id: str, golden_id: str, aspect: str, judge_ids: Sequence[str]
) -> tuple[GoldenSet, list[JudgeScores]]:
    """The golden set, and judges of it under readable names that tell them apart."""
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
    settings: FusionSettings,
    name: str = "",
) -> str:
    """Enter a fusion as a judge, for Compare and for export; returns its id.  Errors as in `compare_fusions`."""
    from core.fusion.stack import fuse

    golden, judges = _judges(store, project_id, golden_id, aspect, judge_ids)
    fusion = fuse(golden, aspect, judges, settings)
    judge = replace(fusion.judge, name=name.strip()[:120] or fusion.judge.name)
    ids = dict(zip((part.name for part in judges), judge_ids, strict=True))
    # what a part was among the judges, so that it can be computed on other items
    parts = tuple(
        _about(name, store.judges.get(project_id, ids[name]).judge, ids[name]) for name in fusion.state["parts"]
    )
    kept = FusionKept(golden_id, aspect, parts, fusion.state, fusion.as_json())

    def keep() -> str:
        judge_id = store.judges.add(project_id, golden_id, judge)
        store.events.add(project_id, replace(kept, subject=judge_id), store.actor)
        return judge_id

    return store.together(keep)


def _about(name: str, judge: JudgeScores, judge_id: str) -> dict[str, Any]:
    """What the part called `name` is among the judges."""
    about = {key: getattr(judge, key) for key in ("kind", "run_id", "higher_is_better")}
    return about | {"name": name, "judge_id": judge_id, "metric": judge.name if judge.kind == "metric" else ""}


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
    from core.fusion.fused_run import fused_card
    from core.judge_files.judge_writing import yaml_text

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
        parts=[_recipe(store, project_id, part) for part in kept.parts],
        alignment=kept.told["fused"],
        measured={name: kept.told[name] for name in ("parts", "left_out", "n_fit", "n_report", "notes")},
    )
    return yaml_text(card)


def _model_card(store: Store, project_id: str, judge_id: str) -> dict[str, Any]:
    """The content of the file of a fusion by a model, measured on labelled items that neither plan nor parts saw."""
    from core.comparison import usual_level
    from core.data.split import KnownTexts
    from core.fusion.fused_run import fused_card
    from core.fusion.model_rating import fusion_state
    from core.fusion.stack import Agreement

    judge = store.judges.get(project_id, judge_id).judge
    run = store.runs.get(judge.run_id)
    outcome = store.results.read(run.run_id, RESULT, FusionRunView)
    if outcome is None or not outcome.judge_state or outcome.judges.get(judge.aspect) != judge_id:
        raise NotFoundError(f"{judge.name}: its run kept no fusion of {judge.aspect} that rates other items.")
    fusion = model_fusion(store, unpack(FusionRequest, run.request_json))
    golden, parts, plan = fusion.golden, fusion.parts, fusion.plan(outcome.plan)
    criteria = fusion.criteria(outcome.criteria, outcome.criteria_origins)
    asked = unseen_and_asked(golden, judge)
    report = asked[~np.isnan(golden.labels(judge.aspect)[asked])]
    matrix = np.vstack([judge.values, *(part.upward for part in parts)])
    how = FusionSettings(level=usual_level(golden, judge.aspect))
    aligned = Agreement(golden, judge.aspect, how).align(matrix, report)
    of_parts = {part.name: alignment.as_json() for part, alignment in zip(parts, aligned[1:], strict=True)}
    return fused_card(
        golden,
        judge.aspect,
        texts=KnownTexts.of(golden, judge.seen, report),
        state=fusion_state(outcome.judge_state, parts, plan, fusion.tasks, criteria),
        parts=[_recipe(store, project_id, _about(part.name, part, judge_id_of(run.golden_id, part))) for part in parts],
        alignment=aligned[0],
        measured={"parts": of_parts, "n_fit": len(judge.seen), "n_report": len(report)},
    )


def _recipe(store: Store, project_id: str, part: Mapping[str, Any]) -> FusedPart:
    """How the part is computed elsewhere; one that cannot be has to have its scores handed in."""
    from core.judge_files import judge_card
    from core.judge_files.fused_file import FusedPart
    from core.metrics import make_metric
    from core.projects.runs import load_calibration

    name, kind, run_id = str(part["name"]), part["kind"], part["run_id"]
    recipe = FusedPart(name=name, higher_is_better=part["higher_is_better"])
    # a run of another kind, one that is gone, a damaged file of an import; a metric renamed among the judges
    with suppress(JobError, JudgeError, NotFoundError, UsageError):
        if kind == "calibrated" and run_id:
            recipe.judge = judge_card(load_calibration(store, run_id))
        elif kind == "repeval" and run_id:
            recipe.repeval = _fitted(store, run_id)
        elif kind == "repeval":
            recipe.repeval = _out_of_a_file(store, project_id, str(part.get("judge_id", "")))
        elif kind == "metric":
            metric = str(part.get("metric") or name)
            if not metric.startswith("metric_"):
                make_metric(metric)
            recipe.assistant = metric
    return recipe


def _fitted(store: Store, run_id: str) -> dict[str, Any] | None:
    """The RepEval score of a run as a file holds it; None where the run kept none (the SVM, or an older run)."""
    from core.projects.kinds import run_view
    from core.projects.repeval import RepEvalOutcome

    outcome = run_view(store, run_id).outcome
    if not isinstance(outcome, RepEvalOutcome) or outcome.result.scorer is None:
        return None
    return outcome.result.scorer.as_json()


def _out_of_a_file(store: Store, project_id: str, judge_id: str) -> dict[str, Any] | None:
    """The RepEval score of a judge that scored by a file, as the file holds it; None where it came in another way."""
    from core.judge_files.judge_reading import open_text
    from core.projects.judges import MetricsRequest, MetricsResult
    from core.projects.kinds import run_view

    for run in store.runs.all(project_id):
        view = run_view(store, run.run_id) if run.kind == "metrics" else None
        if view and isinstance(view.request, MetricsRequest) and isinstance(view.outcome, MetricsResult):
            for file in view.request.files:
                if view.outcome.judges.get(file.name) == judge_id:
                    return dict(open_text(file.text, file.name, "repeval").card["scorer"])
    return None
