"""Begin a labelling pass: which items first, whose earlier labels count, and what so many labels would tell."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.comparison.corrected_means import by_need, judged_items
from core.comparison.sureness import expected_errors
from core.data.verdict_imports import ScoredRows
from core.errors import UsageError
from core.project_records import GoldenSummary
from core.projects.judge_line import judge_line
from core.projects.labelling import (
    ORDERS,
    EarlierLabels,
    LabelAspect,
    LabelPass,
    LabelPlan,
    PassRequest,
    fitting,
)
from core.projects.pass_results import PassSummary, ratings_of
from core.projects.project_judges import judges_shown
from core.projects.roles import requires
from core.records import FloatArray, GoldenSet, IntArray, JudgeScores
from core.stats.labels_needed import STEPS, LabelPilot, LabelPlanning, plan_labels
from core.stats.system_means import system_means
from core.store.labels import Label
from core.store.store import Store
from core.texts import visible_name

_LONGEST_NAME = 120


@requires("reviewer")
def start_pass(store: Store, request: PassRequest) -> str:
    """Begin a labelling pass and return its id.

    UsageError for a plan that makes no sense or labels to take over that are not there, NotFoundError for an unknown
    project or golden set.
    """
    store.projects.get(request.project_id)
    golden = store.goldens.load(request.golden_id)
    name = " ".join(visible_name(request.name).split())
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise UsageError(f"A labelling pass has a name of 1 to {_LONGEST_NAME} characters.")
    plan = LabelPlan(
        aspects=request.aspects,
        positions=_order(store, request, golden),
        n_raters=request.n_raters,
        shared=request.shared,
        overlap=request.overlap,
        blind=request.blind,
        instructions=request.instructions.strip(),
        order=request.order,
    )
    taken = _chosen_labels(store, request, {golden.items[k].item_id for k in plan.positions})
    pass_id = f"l{uuid.uuid4().hex[:12]}"
    from_whom = tuple(sorted({label.rater for label in taken}))
    begun = LabelPass(name, request.golden_id, plan, len(taken), from_whom, subject=pass_id)

    def begin() -> None:
        store.events.add(request.project_id, begun, store.actor)
        store.labels.take_over(request.project_id, request.golden_id, pass_id, taken)

    store.together(begin)
    return pass_id


def _order(store: Store, request: PassRequest, golden: GoldenSet) -> tuple[int, ...]:
    """Positions of the items to rate, first things first, at most `request.limit`; ties at random.

    "disagreement" puts those first on which judges (of any scales) or raters disagree most.  "unsure" takes the items
    without a label first, and of these first where a judge is expected to err most.  "widest" takes first the items
    that shorten the widest interval of a system's mean (`core.comparison.corrected_means`).  UsageError for an order
    that needs judges or labels that are not there.
    """
    if request.order not in ORDERS:
        raise UsageError(f"The order is one of {', '.join(ORDERS)}, not {request.order!r}.")
    n, generator = len(golden.items), np.random.default_rng(request.seed)
    positions: IntArray = np.arange(n) if request.order == "file" else generator.permutation(n)
    if request.order in ("random", "file"):
        return tuple(positions[: request.limit].tolist())
    shown = judges_shown(store, request.project_id, request.golden_id, request.aspect)
    if request.order == "disagreement":
        earlier = store.labels.of_golden(request.project_id, request.golden_id)
        spread = disagreement(
            n, [row.judge for row in shown.entries], ratings_of(golden, earlier, request.aspect).values
        )
        positions = positions[np.argsort(-spread[positions], kind="stable")]
        return tuple(positions[: request.limit].tolist())
    aspect, rows = request.aspect, sorted(shown.entries, key=lambda row: row.judge_id != shown.own)  # ours first
    judges = [row.judge for row in rows] if aspect in golden.aspects else []
    if request.order == "unsure":
        errors = (expected_errors(golden, aspect, judge) for judge in judges)
        expected = next((own for own in errors if not np.isnan(own).all()), None)
        if expected is None:
            raise UsageError(
                "To label the least sure first there must be a judge that scored these items, and enough labels to "
                "tell how far it errs. Calibrate a judge first, or choose the random order."
            )
        surest_last = np.where(np.isnan(expected), -np.inf, expected)[positions]
        positions = positions[np.lexsort((-surest_last, ~np.isnan(golden.labels(aspect)[positions])))]
    else:
        needed: tuple[str, ...] = ()
        if judges and golden.kind != "pair" and any(item.system_id for item in golden.items):
            rated = ScoredRows(golden.item_ids, judges[0].upward)
            judged = judged_items(golden, aspect, rated, seen=judges[0].seen)
            needed = by_need(judged, system_means(judged.items), seed=request.seed)
        if not needed:
            raise UsageError(
                "To label first of the system whose mean is known least there must be a judge that scored items "
                "without a label, and the items must say which system wrote them. Choose the random order."
            )
        place = {item_id: k for k, item_id in enumerate(needed)}
        own = np.array([place.get(item_id, len(place)) for item_id in golden.item_ids])
        positions = positions[np.argsort(own[positions], kind="stable")]
    return tuple(positions[: request.limit].tolist())


def label_planning(
    store: Store,
    project_id: str,
    golden: GoldenSummary,
    aspect: str,
    *,
    n_items: int,
    n_ratings: int,
    n_sources: int = 0,
) -> LabelPlanning:
    """What `n_items` labels from `n_ratings` ratings would tell, by the judge in use where it was measured on this set.

    They are of `n_sources` sources; 0: of as many as a random draw has on average.
    """
    n_raters, n_items = max(1, round(n_ratings / max(1, n_items))), max(1, min(n_items, golden.n_items))
    per_source = golden.n_items / max(1, golden.n_sources)
    n_sources = n_sources or round(golden.n_sources * (1.0 - (1.0 - n_items / golden.n_items) ** per_source))
    pilot = _pilot(store, project_id, golden, aspect)
    return plan_labels(n_items, max(1, min(n_sources, n_items)), n_raters, pilot=pilot)


def planning_curve(
    store: Store, project_id: str, golden: GoldenSummary, aspect: str, *, now: PassSummary, n_ratings: int
) -> tuple[LabelPlanning, ...]:
    """The same at several numbers of items up to those of a pass, those labelled `now` among them.

    There are as many ratings an item as now, and at other numbers as many sources as a random draw has on average.
    """
    n_raters = max(1, round(n_ratings / max(1, now.n_touched)))
    counts = sorted({now.n_touched, now.n_items, *(n for n in STEPS if n < now.n_items)})
    return tuple(
        label_planning(
            store,
            project_id,
            golden,
            aspect,
            n_items=n,
            n_ratings=n * n_raters,
            n_sources=now.n_sources * (n == now.n_touched),
        )
        for n in counts
    )


def _pilot(store: Store, project_id: str, golden: GoldenSummary, aspect: str) -> LabelPilot | None:
    line = judge_line(store, project_id, aspect)
    version = line.default or (line.versions[-1] if line.versions else None)
    measured = None if version is None else version.on(golden.golden_id)
    held_out = None if measured is None else measured.held_out
    if held_out is None or held_out.interval is None or held_out.level == "system":
        return None
    usual = max(1, round(held_out.n * golden.n_sources / golden.n_items))
    return LabelPilot(held_out, held_out.n, held_out.interval.n_sources or usual)


def _chosen_labels(store: Store, request: PassRequest, item_ids: set[str]) -> list[Label]:
    """The labels that a request takes over, of these items alone.  UsageError where somebody is named who has none."""
    if not request.take_over:
        return []
    wanted = set(request.take_over)
    labels = fitting(store.labels.of_golden(request.project_id, request.golden_id), request.aspects)
    chosen = [label for label in labels if (label.pass_id, label.rater) in wanted]
    if missing := wanted - {(label.pass_id, label.rater) for label in chosen}:
        pass_id, rater = min(missing)
        raise UsageError(f"{rater} gave no labels in pass {pass_id[:24]!r} that this pass could take over.")
    return [label for label in chosen if label.item_id in item_ids]


def earlier_labels(
    store: Store, project_id: str, golden_id: str, aspects: Sequence[LabelAspect]
) -> tuple[EarlierLabels, ...]:
    """Who labelled how many items of the golden set on these aspects, pass by pass; what lies off a scale is no part.

    In the order in which they were given.
    """
    items: dict[tuple[str, str], set[str]] = {}
    for label in fitting(store.labels.of_golden(project_id, golden_id), aspects):
        items.setdefault((label.pass_id, label.rater), set()).add(label.item_id)
    return tuple(EarlierLabels(*which, len(labelled)) for which, labelled in items.items())


def disagreement(n_items: int, judges: Sequence[JudgeScores], ratings: FloatArray | None = None) -> FloatArray:
    """(n_items,) how far judges and raters disagree on each item, in standard deviations; 0 where only one has spoken.

    Judges are compared by standardised scores, raters by their own; the larger of the two spreads counts.
    """
    scores = [_standardised(judge.upward[None, :]) for judge in judges if judge.values.size == n_items]
    groups = [np.ma.vstack(scores)] if len(scores) > 1 else []
    if ratings is not None and ratings.shape[0] > 1:
        groups.append(_standardised(ratings))
    if not groups:
        raise UsageError(
            "To label first where judges and raters disagree, there must be at least two judges, or labels of two "
            "raters. Calibrate or import judges first, or choose the random order."
        )
    spread: FloatArray = np.max([group.std(axis=0).filled(0.0) for group in groups], axis=0)
    return spread


def _standardised(values: FloatArray) -> np.ma.MaskedArray[Any, Any]:
    """By the mean and standard deviation of all known values, unknown ones masked; zeros where they do not vary."""
    known = np.ma.masked_invalid(values)
    standardised: np.ma.MaskedArray[Any, Any] = (known - known.mean()) / (known.std() or 1.0)
    return standardised
