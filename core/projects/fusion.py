"""Fusing judges of the shelf without calls, and keeping a fusion as a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import JobError, NotFoundError, UsageError
from core.kept import JudgeEntry
from core.projects.access import requires
from core.projects.views.fusion import KeptFusion, KeptPart
from core.records import GoldenSet, JudgeScores
from core.review.log import FusionKept
from core.store.store import Store

if TYPE_CHECKING:
    from core.export.fused_file import PartRecipe
    from core.fusion.side_by_side import FusionTable
    from core.fusion.stack import Fusion, StackSettings


"""Kind of the events that hold what a fused judge is made of; the subject is the judge's id."""


@requires("viewer")
def fuse_judges(
    store: Store, project_id: str, golden_id: str, aspect: str, *, judge_ids: Sequence[str], settings: StackSettings
) -> Fusion:
    """Fuse judges of the shelf: no call, nothing stored.

    NotFoundError for an unknown judge, UsageError for fewer than two usable parts or a judge of another golden set or
    aspect, AspectError when too few items are left that no part has seen.
    """
    from core.fusion.stack import fuse

    golden, rows = _rows(store, project_id, golden_id, aspect, judge_ids)
    return fuse(golden, aspect, _named_apart([row.judge for row in rows]), settings)


@requires("viewer")
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
    from core.fusion.side_by_side import fuse_all

    golden, rows = _rows(store, project_id, golden_id, aspect, [*judge_ids, *beside])
    judges = _named_apart([row.judge for row in rows])
    n = len(judge_ids)
    return fuse_all(golden, aspect, judges[:n], settings, judges[n:])


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

    golden, rows = _rows(store, project_id, golden_id, aspect, judge_ids)
    judges = _named_apart([row.judge for row in rows])
    found = fuse(golden, aspect, judges, settings)
    judge = replace(found.judge, name=name.strip()[:120] or found.judge.name)
    judge_id = store.judges.add(project_id, golden_id, judge)
    used = {one.name: one for one in judges}
    parts = [
        KeptPart(one, used[one].kind, used[one].run_id, used[one].higher_is_better) for one in found.state["parts"]
    ]
    kept = FusionKept(
        golden_id, aspect, tuple(asdict(part) for part in parts), found.state, found.as_json(), subject=judge_id
    )
    store.events.add(project_id, kept, store.actor)
    return judge_id


@requires("viewer")
def kept_fusion(store: Store, project_id: str, judge_id: str) -> KeptFusion:
    """What a kept fusion is made of.  NotFoundError when the judge is no kept fusion."""
    logged = store.events.all(project_id, FusionKept, judge_id)
    if not logged:
        raise NotFoundError(f"The judge {judge_id[:24]!r} is no fusion that was kept on the Fusion screen.")
    kept = logged[-1]
    parts = tuple(KeptPart(**one) for one in kept.parts)
    return KeptFusion(judge_id, kept.golden_id, kept.aspect, parts, kept.state, kept.told)


@requires("viewer")
def fused_file(store: Store, project_id: str, judge_id: str) -> str:
    """The text of a kept fusion's file: what `score --judge-file` applies to other items.

    A part that was a metric is computed from the texts, a calibrated judge stands inside with its criteria, a RepEval
    score with its directions; any other part's scores have to be handed in as a column that the file names.
    NotFoundError when the judge is no kept fusion.
    """
    from core.data.texts import KnownTexts
    from core.export.fused_file import fused_card
    from core.export.judge_file import yaml_text

    kept = kept_fusion(store, project_id, judge_id)
    told, golden = kept.told, store.goldens.load(kept.golden_id)
    seen = store.judges.get(project_id, judge_id).judge.seen
    labelled = np.flatnonzero(~np.isnan(golden.labels(kept.aspect)))
    card = fused_card(
        golden,
        kept.aspect,
        texts=KnownTexts.of(golden, seen, np.setdiff1d(labelled, seen)),
        state=kept.state,
        parts=[_recipe(store, part) for part in kept.parts],
        alignment=told["fused"],
        measured={name: told[name] for name in ("parts", "left_out", "n_fit", "n_report", "notes")},
    )
    return yaml_text(card)


def _recipe(store: Store, part: KeptPart) -> PartRecipe:
    from core.export import judge_card
    from core.export.fused_file import PartRecipe
    from core.fusion.assistants import make_assistant
    from core.projects.runs import load_calibration

    if part.kind == "calibrated" and part.run_id:
        try:
            return PartRecipe(part.name, part.higher_is_better, judge=judge_card(load_calibration(store, part.run_id)))
        except (JobError, NotFoundError):  # it came out of another kind of run: its scores have to be handed in
            return PartRecipe(part.name, part.higher_is_better)
    if part.kind == "repeval" and part.run_id:
        return PartRecipe(part.name, part.higher_is_better, repeval=_fitted(store, part.run_id))
    if part.kind == "metric":
        if part.name.startswith("metric_"):
            return PartRecipe(part.name, part.higher_is_better, assistant=part.name)
        try:
            make_assistant(part.name, aspect="quality")
        except UsageError:  # it was renamed on the shelf: its scores have to be handed in
            return PartRecipe(part.name, part.higher_is_better)
        return PartRecipe(part.name, part.higher_is_better, assistant=part.name)
    return PartRecipe(part.name, part.higher_is_better)


def _fitted(store: Store, run_id: str) -> Mapping[str, Any] | None:
    """The RepEval score of a run as a file holds it; None where the run kept none (the SVM, or an older run)."""
    from core.projects.kinds import run_view
    from core.projects.repeval import RepEvalOutcome

    try:
        found = run_view(store, run_id).outcome
    except NotFoundError:
        return None
    if not isinstance(found, RepEvalOutcome) or found.result.scorer is None:
        return None
    return found.result.scorer.as_json()


def _rows(
    store: Store, project_id: str, golden_id: str, aspect: str, judge_ids: Sequence[str]
) -> tuple[GoldenSet, list[JudgeEntry]]:
    rows = [store.judges.get(project_id, judge_id) for judge_id in judge_ids]
    for row in rows:
        if row.golden_id != golden_id or row.judge.aspect != aspect:
            raise UsageError(
                f"{row.judge.name} scored {row.judge.aspect} of another golden set or aspect; only judges of the same "
                "golden set and aspect can be fused."
            )
    return store.goldens.load(golden_id), rows


def _named_apart(judges: Sequence[JudgeScores]) -> list[JudgeScores]:
    from core.comparison import unique_names

    return [replace(one, name=name) for one, name in zip(judges, unique_names(judges), strict=True)]
