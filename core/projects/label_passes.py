"""Manage labelling passes: start, progress, decisions on disagreements, and the resulting golden set."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from core.errors import AccessError, UsageError
from core.project_records import GoldenSummary
from core.projects.judge_line import judge_line
from core.projects.labelling import (
    Adjudicated,
    LabelAspect,
    LabelPass,
    LabelPlan,
    LabelsFrozen,
    Triage,
    get_pass,
    list_triage,
    still_rating,
)
from core.projects.project_list import given_reason
from core.records import AspectLabels, GoldenSet, Rating, visible_name
from core.stats import RaterTable, alpha_metric, krippendorff_alpha
from core.stats.label_planning import LabelPlanning, plan_labels
from core.store.labels import Label
from core.store.store import Store, requires

Combine = Literal["fill", "replace"]
Which = tuple[str, str]
"""Aspect and item id."""
_LONGEST_NAME = 120


# ── start a pass ───────────────────────────────────────────────────────────────────────────────────────────────


@requires("reviewer")
def start_pass(
    store: Store, project_id: str, golden_id: str, name: str, plan: LabelPlan, *, limit: int | None = None
) -> str:
    """Start a labelling pass over the first `limit` items (None: all) in `plan.order`; return its id.

    Raises UsageError for an invalid name, and NotFoundError for an unknown project or golden set.
    """
    store.projects.get(project_id)
    golden = store.goldens.load(golden_id)
    name = " ".join(visible_name(name).split())
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise UsageError(f"The name of a labelling pass must have 1 to {_LONGEST_NAME} characters. Enter another name.")
    n = len(golden.items)
    positions = range(n) if plan.order == "file" else np.random.default_rng(0).permutation(n).tolist()
    plan = replace(plan, positions=tuple(positions[:limit]), instructions=plan.instructions.strip())
    pass_id = f"l{uuid.uuid4().hex[:12]}"
    store.events.add(project_id, LabelPass(name, golden_id, plan, subject=pass_id), store.actor)
    return pass_id


def label_planning(
    store: Store,
    project_id: str,
    golden: GoldenSummary,
    aspect: str,
    *,
    n_items: int,
    n_ratings: int,
) -> LabelPlanning:
    """Predict how precise the results will be once `n_items` random items have `n_ratings` ratings in total."""
    n_raters, n_items = max(1, round(n_ratings / max(1, n_items))), max(1, min(n_items, golden.n_items))
    per_source = golden.n_items / max(1, golden.n_sources)
    n_sources = round(golden.n_sources * (1.0 - (1.0 - n_items / golden.n_items) ** per_source))
    version = judge_line(store, project_id, aspect).default
    measured = version and version.on(golden.golden_id)
    held_out = measured.held_out if measured else None
    if held_out is not None and held_out.level == "system":  # its n counts systems, not items
        held_out = None
    return plan_labels(n_items, max(1, min(n_sources, n_items)), n_raters, measured=held_out)


# ── progress ───────────────────────────────────────────────────────────────────────────────────────────────────


def ratings_of(golden: GoldenSet, labels: Sequence[Label], aspect: str) -> RaterTable:
    """Return the labels of an aspect as a table of raters × items of the golden set.

    Raters are in the order of their first label. Labels of items that are not in the golden set are left out.
    """
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    own = [each for each in labels if each.aspect == aspect and each.item_id in position and each.value is not None]
    raters = tuple(dict.fromkeys(label.rater for label in own))
    values = np.full((len(raters), len(position)), np.nan)
    for label in own:
        values[raters.index(label.rater), position[label.item_id]] = label.value
    return RaterTable(raters, values)


@dataclass(frozen=True)
class AspectAgreement:
    """The agreement of raters on an aspect: Krippendorff's alpha, None if undefined.

    `n_double` is the number of items with at least two labels.
    """

    aspect: str
    alpha: float | None
    alpha_metric: str
    n_double: int
    n_labels: int


def agreement(golden: GoldenSet, labels: Sequence[Label], aspect: LabelAspect) -> AspectAgreement:
    """Compute the agreement of raters on an aspect."""
    ratings, metric = ratings_of(golden, labels, aspect.aspect), alpha_metric(aspect.scale)
    return AspectAgreement(
        aspect=aspect.aspect,
        alpha=krippendorff_alpha(ratings.values, metric).value if ratings.raters else None,
        alpha_metric=metric,
        n_double=len(ratings.rated_twice),
        n_labels=int(ratings.rated.sum()),
    )


def _by_item(labels: Sequence[Label]) -> dict[Which, list[Label]]:
    """Group labels by aspect and item, and skip labels without a value."""
    by_item: dict[Which, list[Label]] = {}
    for label in labels:
        if label.value is not None:
            by_item.setdefault((label.aspect, label.item_id), []).append(label)
    return by_item


def disagreements(
    golden: GoldenSet, labels: Sequence[Label], aspects: Sequence[LabelAspect]
) -> dict[Which, list[Label]]:
    """Return the labels of the items on which raters disagree, largest disagreement first.

    Raters disagree if their labels are more than one step apart. On a scale without steps, the threshold is a tenth of
    the range. On a scale with two values, any difference counts. The size of a disagreement is relative to the range of
    the scale.
    """
    by_item, apart_by = _by_item(labels), dict[Which, float]()
    for aspect in aspects:
        span = aspect.scale.high - aspect.scale.low
        step = aspect.scale.step or span / 10
        for item_id in golden.item_ids:
            values = [label.value for label in by_item.get((aspect.aspect, item_id), []) if label.value is not None]
            apart = max(values) - min(values) if values else 0.0
            if apart > step + 1e-9 or (span <= step and apart > 0):
                apart_by[aspect.aspect, item_id] = apart / span
    return {which: by_item[which] for which in sorted(apart_by, key=lambda which: -apart_by[which])}


@dataclass(frozen=True)
class PassSummary:
    """The progress of a labelling pass.

    Attributes:
        done: Rater → (number of items done, number of items to rate).
        n_touched: Number of items with at least one label.
        agreement: Agreement of the raters, by aspect.
        queue: Items to decide → their labels. Disagreements come first, then items in `flagged`.
        decided: Items that were decided → the decided value.
        flagged: Items whose labels a reviewer called wrong (triage).
    """

    done: Mapping[str, tuple[int, int]]
    n_touched: int
    agreement: tuple[AspectAgreement, ...]
    queue: Mapping[Which, Sequence[Label]]
    decided: Mapping[Which, float]
    flagged: Mapping[Which, Triage]


@requires("reviewer")
def pass_summary(store: Store, project_id: str, pass_id: str) -> PassSummary:
    """Summarise a pass: progress by rater, agreement, and items to decide."""
    labelling = get_pass(store, project_id, pass_id)
    golden, plan = store.goldens.load(labelling.golden_id), labelling.plan
    labels, decided = _labels(store, labelling, golden), decisions(store, project_id, pass_id)
    known = set(golden.item_ids)
    flagged = {
        (aspect, item_id): triage
        for aspect in labelling.aspects
        for item_id, triage in list_triage(store, project_id, labelling.golden_id, aspect).items()
        if triage.verdict == "label wrong" and item_id in known
    }
    by_item = _by_item(labels)
    queue = disagreements(golden, labels, plan.aspects)
    queue = {**queue, **{which: by_item.get(which, []) for which in flagged if which not in queue}}
    items_of: dict[str, set[str]] = {rater: set() for rater in labelling.raters}
    for label in labels:
        items_of.setdefault(label.rater, set()).add(label.item_id)
    labelled = {label.item_id for label in labels}
    return PassSummary(
        done={
            rater: (len(items), len(labelling.assigned(rater)) if rater in labelling.raters else 0)
            for rater, items in items_of.items()
        },
        n_touched=sum(golden.items[k].item_id in labelled for k in plan.positions),
        agreement=tuple(agreement(golden, labels, aspect) for aspect in plan.aspects),
        queue={which: said for which, said in queue.items() if which not in decided},
        decided=decided,
        flagged=flagged,
    )


def _labels(store: Store, labelling: LabelPass, golden: GoldenSet) -> list[Label]:
    """Return the newest labels of all raters of a pass, each with the rater's newest comment."""
    now = store.labels.current(labelling.project_id, labelling.pass_id)
    items = {golden.items[k].item_id for k in labelling.plan.positions}
    comments = {(label.rater, label.item_id): label.comment for label in now}
    return [
        replace(label, comment=comments[label.rater, label.item_id])
        for label in now
        if label.item_id in items and label.aspect in labelling.aspects
    ]


@requires("reviewer")
def adjudicate(
    store: Store, project_id: str, pass_id: str, item_id: str, *, aspect: str, value: float, reason: str, form: str
) -> None:
    """Decide the label of an item. The labels of the raters don't change.

    Raises:
        UsageError: The value is off the scale, or the reason is empty.
        AccessError: The user still has items to rate in a pass.
    """
    labelling = get_pass(store, project_id, pass_id)
    if rating := still_rating(store, project_id, labelling.golden_id, labelling.aspects):
        (rated, n_open), *_ = rating
        raise AccessError(
            f"You still have {n_open:,} items to rate in {rated.name}. Rate these items before you "
            "decide on final labels."
        )
    scale = next((planned.scale for planned in labelling.plan.aspects if planned.aspect == aspect), None)
    if scale is None or not scale.holds(value):
        raise UsageError(
            f"The label for {aspect} is {value:g}, but the scale is {scale or 'unknown'}. Choose a label on the scale."
        )
    decision = Adjudicated(item_id, aspect, float(value), given_reason(reason), subject=pass_id)
    store.events.add(project_id, decision, store.actor, form=form)


def decisions(store: Store, project_id: str, pass_id: str) -> dict[Which, float]:
    """Return the decided labels: (aspect, item id) → value. The last decision counts."""
    made = store.events.all(project_id, Adjudicated, pass_id)
    return {(decision.aspect, decision.item_id): decision.value for decision in made}


# ── freeze into a golden set ───────────────────────────────────────────────────────────────────────────────────


def labelled_golden(
    golden: GoldenSet,
    labels: Sequence[Label],
    aspects: Sequence[LabelAspect],
    *,
    name: str,
    combine: Combine = "fill",
    decided: Mapping[Which, float] | None = None,
) -> GoldenSet:
    """Create a golden set with new labels.

    The new label of an item is its decided value, or else the mean of its new ratings. If any new rating of an aspect
    is used, all old individual ratings of the aspect are dropped.

    Args:
        aspects: Aspects that get new labels.
        name: Name of the new golden set.
        combine: "fill" uses new labels only where there is no old label; "replace" prefers new labels.
        decided: (aspect, item id) → decided value.
    """
    gold, ratings = dict(golden.aspects), list(golden.ratings)
    for scale, aspect in ((each.scale, each.aspect) for each in aspects):
        old = golden.aspects.get(aspect, AspectLabels(aspect, scale, (None,) * len(golden.items)))
        rated = np.ma.masked_invalid(ratings_of(golden, labels, aspect).values)
        means: list[float | None] = rated.mean(axis=0).tolist()
        values: list[float | None] = []
        replaced = set()
        for item_id, before, mean in zip(golden.item_ids, old.values, means, strict=True):
            new = (decided or {}).get((aspect, item_id), mean)
            keeps = before is not None and (combine == "fill" or new is None)
            values.append(before if keeps else new)
            if combine == "replace" or before is None:
                replaced.add(item_id)
        if tuple(values) != old.values:
            gold[aspect] = replace(old, scale=replace(scale, given=True), values=tuple(values))
        own = [
            Rating(label.item_id, label.rater, aspect, label.value, label.comment)
            for label in labels
            if label.aspect == aspect and label.value is not None and label.item_id in replaced
        ]
        if own:
            ratings = [*(rating for rating in ratings if rating.aspect != aspect), *own]
    return replace(golden, name=name, aspects=gold, ratings=tuple(ratings))


@requires("reviewer")
def freeze_labels(store: Store, project_id: str, pass_id: str, *, name: str, combine: Combine = "fill") -> str:
    """Save the labels and decisions of a pass as a new golden set (see `labelled_golden`); return its id.

    Raises UsageError if nothing would change.
    """
    labelling = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(labelling.golden_id)
    frozen = labelled_golden(
        golden,
        _labels(store, labelling, golden),
        labelling.plan.aspects,
        name=" ".join(name.split()) or f"{golden.name}, labelled",
        combine=combine,
        decided=decisions(store, project_id, pass_id),
    )
    if frozen.aspects == golden.aspects:
        raise UsageError(
            "The pass has no new labels to freeze. Label items that have no golden label, or choose to replace "
            "golden labels."
        )

    def keep() -> str:
        golden_id = store.goldens.add(project_id, frozen)
        store.events.add(project_id, LabelsFrozen(labelling.name, pass_id, subject=golden_id), store.actor)
        return golden_id

    return store.together(keep)
