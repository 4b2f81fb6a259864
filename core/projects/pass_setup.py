"""Begin a labelling pass: which items come first, and what so many labels would tell."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.comparison.sureness import expected_errors
from core.errors import UsageError
from core.project_records import GoldenSummary
from core.projects.judge_line import judge_line
from core.projects.labelling import (
    ORDERS,
    LabelPass,
    LabelPlan,
    PassRequest,
)
from core.projects.pass_results import ratings_of
from core.projects.project_judges import judges_shown
from core.projects.roles import requires
from core.records import FloatArray, GoldenSet, IntArray, JudgeScores
from core.stats.labels_needed import LabelPilot, LabelPlanning, plan_labels
from core.store.store import Store
from core.texts import visible_name

_LONGEST_NAME = 120


@requires("reviewer")
def start_pass(store: Store, request: PassRequest) -> str:
    """Begin a labelling pass and return its id.

    UsageError for a plan that makes no sense, NotFoundError for an unknown project or golden set.
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
    pass_id = f"l{uuid.uuid4().hex[:12]}"
    store.events.add(request.project_id, LabelPass(name, request.golden_id, plan, subject=pass_id), store.actor)
    return pass_id


def _order(store: Store, request: PassRequest, golden: GoldenSet) -> tuple[int, ...]:
    """Positions of the items to rate, first things first, at most `request.limit`; ties at random.

    "disagreement" puts those first on which judges (of any scales) or raters disagree most.  "unsure" takes the items
    without a label first, and of these first where a judge is expected to err most.  UsageError for an order that
    needs judges or labels that are not there.
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
    errors = (expected_errors(golden, aspect, judge) for judge in judges)
    expected = next((own for own in errors if not np.isnan(own).all()), None)
    if expected is None:
        raise UsageError(
            "To label the least sure first, a judge must have scored these items, and there must be enough labels to "
            "estimate its error. Calibrate a judge first, or choose the random order."
        )
    surest_last = np.where(np.isnan(expected), -np.inf, expected)[positions]
    positions = positions[np.lexsort((-surest_last, ~np.isnan(golden.labels(aspect)[positions])))]
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


def _pilot(store: Store, project_id: str, golden: GoldenSummary, aspect: str) -> LabelPilot | None:
    line = judge_line(store, project_id, aspect)
    version = line.default or (line.versions[-1] if line.versions else None)
    measured = None if version is None else version.on(golden.golden_id)
    held_out = None if measured is None else measured.held_out
    if held_out is None or held_out.interval is None or held_out.level == "system":
        return None
    usual = max(1, round(held_out.n * golden.n_sources / golden.n_items))
    return LabelPilot(held_out, held_out.n, held_out.interval.n_sources or usual)


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
