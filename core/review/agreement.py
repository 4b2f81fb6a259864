"""What comes of a labelling pass: how raters agree, where they disagree, progress, and a new golden set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from core.errors import UsageError
from core.records import AspectLabels, FloatArray, GoldenSet, Interval, Rating
from core.review.passes import Label, LabelPass
from core.review.plan import LabelAspect
from core.review.triage import Triage
from core.stats import RaterTable, alpha_metric, alphas_of, krippendorff_alpha, spread_over_sources

Combine = Literal["fill", "decided", "replace"]
Decided = Mapping[tuple[str, str], float]
"""(aspect, item id) → adjudicated value."""
GROWTH_POINTS = 20


def ratings_of(golden: GoldenSet, labels: Sequence[Label], aspect: str) -> RaterTable:
    """The labels of one aspect over the golden set's items, raters in the order of their first label.

    Labels of items that the golden set does not have are left out.
    """
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    own = [
        label for label in labels if label.aspect == aspect and label.item_id in position and label.value is not None
    ]
    raters = tuple(dict.fromkeys(label.rater for label in own))
    values = np.full((len(raters), len(position)), np.nan)
    row = {rater: k for k, rater in enumerate(raters)}
    for label in own:
        values[row[label.rater], position[label.item_id]] = label.value
    return RaterTable(raters, values)


# ── agreement ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """Krippendorff's alpha of the first `n_items` doubly rated items; None where undefined."""

    n_items: int
    alpha: float | None


@dataclass(frozen=True)
class AspectAgreement:
    """How raters agree on an aspect so far; `alpha` None is undefined, `n_double` items have two labels or more.

    `interval` is None where alpha is undefined or the items come from too few sources.
    """

    aspect: str
    alpha: float | None
    alpha_metric: str
    n_double: int
    n_labels: int
    growth: tuple[GrowthPoint, ...]
    interval: Interval | None = None


def agreement(golden: GoldenSet, labels: Sequence[Label], aspect: LabelAspect, order: Sequence[int]) -> AspectAgreement:
    """Agreement on an aspect; `order` are the positions of the items in the order of rating."""
    ratings = ratings_of(golden, labels, aspect.aspect)
    metric = alpha_metric(aspect.scale)
    return AspectAgreement(
        aspect=aspect.aspect,
        alpha=krippendorff_alpha(ratings.values, metric).value if ratings.raters else None,
        alpha_metric=metric,
        n_double=ratings.rated_twice.size,
        n_labels=int(ratings.rated.sum()),
        growth=growth(ratings, aspect, order),
        interval=alpha_interval(golden, ratings, aspect),
    )


def growth(ratings: RaterTable, aspect: LabelAspect, order: Sequence[int]) -> tuple[GrowthPoint, ...]:
    """How agreement came about: alpha over the first items (in the order of rating) that two raters have rated."""
    double = set(ratings.rated_twice.tolist())
    there = [position for position in order if position in double]
    if not there:
        return ()
    metric = alpha_metric(aspect.scale)
    ends = np.unique(np.linspace(1, len(there), min(GROWTH_POINTS, len(there))).round().astype(int)).tolist()
    return tuple(GrowthPoint(end, krippendorff_alpha(ratings.values[:, there[:end]], metric).value) for end in ends)


def alpha_interval(golden: GoldenSet, ratings: RaterTable, aspect: LabelAspect, seed: int = 0) -> Interval | None:
    """Interval (95 %) of alpha over the sources of the doubly rated items (`core.stats.spread_over_sources`).

    None where alpha is undefined, or the sources are too few to tell.
    """
    metric = alpha_metric(aspect.scale)
    sources, codes = np.unique(golden.source_codes[ratings.rated_twice], return_inverse=True)
    values = ratings.values[:, ratings.rated_twice]
    alpha = krippendorff_alpha(values, metric).value
    if sources.size < 2 or alpha is None:
        return None

    def alphas(counts: FloatArray) -> FloatArray:
        return alphas_of(values, metric, codes, counts > 0)[:, None]

    spread = spread_over_sources(
        alphas, np.array([alpha]), np.array([sources.size]), sources.size, np.random.default_rng(seed)
    )
    return spread.interval(0)


# ── items to decide, and progress ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which raters disagree on an aspect: who said what, how far apart they are in steps of the scale."""

    item_id: str
    aspect: str
    labels: tuple[Label, ...]
    steps_apart: float


def disagreements(
    golden: GoldenSet, labels: Sequence[Label], aspects: Sequence[LabelAspect]
) -> tuple[Disagreement, ...]:
    """Items whose raters lie more than a step apart (a tenth of the range where there are no steps).

    Furthest apart first, relative to the scale; on a scale of two steps any difference counts.
    """
    by_item = _by_item(labels)
    by_distance: list[tuple[float, Disagreement]] = []
    for aspect in aspects:
        span = aspect.scale.high - aspect.scale.low
        step = aspect.scale.step or span / 10
        for item in golden.items:
            own = by_item.get((aspect.aspect, item.item_id), [])
            values = [label.value for label in own if label.value is not None]
            apart = max(values) - min(values) if len(values) > 1 else 0.0
            binary = span <= step and apart > 0
            if apart > step + 1e-9 or binary:
                by_distance.append((apart / span, Disagreement(item.item_id, aspect.aspect, tuple(own), apart / step)))
    return tuple(disagreement for _, disagreement in sorted(by_distance, key=lambda pair: -pair[0]))


def _by_item(labels: Sequence[Label]) -> dict[tuple[str, str], list[Label]]:
    """(aspect, item id) → its labels, those without a value left out."""
    by_item: dict[tuple[str, str], list[Label]] = {}
    for label in labels:
        if label.value is not None:
            by_item.setdefault((label.aspect, label.item_id), []).append(label)
    return by_item


@dataclass(frozen=True)
class PassSummary:
    """A pass from above: progress by rater (name → items done), agreement by aspect, and what is to be decided.

    `n_touched` of its `n_items` have a label, of `n_sources` sources.
    `queue` holds first where raters disagree, then what triage called mislabelled; `flagged` maps (aspect, item id) →
    that triage, `decided` the same → the adjudicated value.  `assigned` maps rater → items they have to rate, `taken`
    (rater, id of an earlier pass) → items whose labels were taken over from there.
    """

    done: Mapping[str, int]
    n_items: int
    n_touched: int
    n_sources: int
    agreement: tuple[AspectAgreement, ...]
    queue: tuple[Disagreement, ...]
    decided: Decided
    flagged: Mapping[tuple[str, str], Triage]
    assigned: Mapping[str, int]
    taken: Mapping[tuple[str, str], int]


def summary(
    labelling: LabelPass,
    golden: GoldenSet,
    labels: Sequence[Label],
    decided: Decided,
    flagged: Mapping[tuple[str, str], Triage],
) -> PassSummary:
    """What a pass has come to with these labels (`labels_in`); see `PassSummary`."""
    by_item = _by_item(labels)
    queue = {
        (disagreement.aspect, disagreement.item_id): disagreement
        for disagreement in disagreements(golden, labels, labelling.plan.aspects)
    }
    for aspect, item_id in flagged:
        own = tuple(by_item.get((aspect, item_id), ()))
        queue.setdefault((aspect, item_id), Disagreement(item_id, aspect, own, steps_apart=0.0))
    items_of: dict[str, set[str]] = {rater: set() for rater in labelling.raters}
    for label in labels:
        items_of.setdefault(label.rater, set()).add(label.item_id)
    taken = {(label.rater, label.taken_from, label.item_id) for label in labels if label.taken_from}
    labelled = {label.item_id for label in labels}
    touched = [k for k in labelling.plan.positions if golden.items[k].item_id in labelled]
    return PassSummary(
        done={rater: len(items) for rater, items in items_of.items()},
        n_items=len(labelling.plan.positions),
        n_touched=len(touched),
        n_sources=np.unique(golden.source_codes[touched]).size,
        agreement=tuple(
            agreement(golden, labels, aspect, labelling.plan.positions) for aspect in labelling.plan.aspects
        ),
        queue=tuple(disagreement for which, disagreement in queue.items() if which not in decided),
        decided=decided,
        flagged=flagged,
        assigned={rater: len(labelling.assigned(rater)) for rater in labelling.raters},
        taken=Counter((rater, pass_id) for rater, pass_id, _ in taken),
    )


def labels_in(labelling: LabelPass, golden: GoldenSet, labels: Sequence[Label]) -> list[Label]:
    """Of what raters think now (`Labels.current`) the labels of the pass, each with its rater's newest comment."""
    items = {golden.items[k].item_id for k in labelling.plan.positions}
    comments = {(label.rater, label.item_id): label.comment for label in labels}
    return [
        replace(label, comment=comments[label.rater, label.item_id])
        for label in labels
        if label.item_id in items and label.aspect in labelling.aspects
    ]


# ── a new golden set ─────────────────────────────────────────────────────────────────────────────────────────


def labelled_golden(
    golden: GoldenSet,
    labels: Sequence[Label],
    aspects: Sequence[LabelAspect],
    *,
    name: str,
    combine: Combine = "fill",
    decided: Decided | None = None,
    merge: bool = False,
) -> GoldenSet:
    """A new golden set with these labels: single ratings kept, gold = their mean or what was `decided`.

    Golden labels stay with "fill", which only fills gaps; "decided" puts decisions in their place, "replace" decisions
    and new labels.  Single ratings that were there before stay beside the new ones only with `merge`, or where none of
    the new ones counts.  UsageError when nothing was labelled or decided.
    """
    if not decided and not any(label.value is not None for label in labels):
        raise UsageError("Nobody has given a label yet, so there is nothing to freeze.")
    gold = dict(golden.aspects)
    ratings = list(golden.ratings)
    for aspect in aspects:
        new = _gold_of(golden, labels, aspect)
        old = golden.aspects.get(aspect.aspect)
        before = old.values if old is not None else (None,) * len(golden.items)
        agreed = [(decided or {}).get((aspect.aspect, item.item_id)) for item in golden.items]
        order = {"fill": (before, agreed, new), "decided": (agreed, before, new), "replace": (agreed, new, before)}
        values = tuple(_first(*three) for three in zip(*order[combine], strict=True))
        if values != before:
            gold[aspect.aspect] = AspectLabels(
                aspect.aspect, replace(aspect.scale, given=True), values, old is not None and old.ranks
            )
        taken = {
            item.item_id
            for item, a, b in zip(golden.items, new, before, strict=True)
            if a is not None and (combine == "replace" or b is None)
        }
        own = [
            Rating(label.item_id, label.rater, aspect.aspect, label.value, label.comment)
            for label in labels
            if label.aspect == aspect.aspect and label.value is not None and label.item_id in taken
        ]
        if own:
            ratings = [
                rating
                for rating in ratings
                if rating.aspect != aspect.aspect or (merge and rating.item_id not in taken)
            ]
        ratings += own
    return replace(golden, name=name, aspects=gold, ratings=tuple(ratings))


@dataclass(frozen=True, slots=True)
class RatedBy:
    """How many items have a single rating of an aspect, and how many of them by two people or more."""

    n_items: int
    n_double: int

    @classmethod
    def of(cls, golden: GoldenSet, aspect: str) -> RatedBy:
        """Over the single ratings that a golden set holds."""
        raters: dict[str, set[str]] = {}
        for rating in golden.ratings:
            if rating.aspect == aspect:
                raters.setdefault(rating.item_id, set()).add(rating.rater_id)
        return cls(len(raters), sum(len(names) > 1 for names in raters.values()))


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _gold_of(golden: GoldenSet, labels: Sequence[Label], aspect: LabelAspect) -> list[float | None]:
    """The mean of the new ratings of each item, None without any."""
    values = np.ma.masked_invalid(ratings_of(golden, labels, aspect.aspect).values)
    mean: list[float | None] = values.mean(axis=0).tolist()
    return mean


@dataclass(frozen=True, slots=True)
class ReplacedLabel:
    """A golden label that would be another once the labels of a pass are frozen."""

    item_id: str
    aspect: str
    before: float
    after: float


def replaced(golden: GoldenSet, frozen: GoldenSet) -> tuple[ReplacedLabel, ...]:
    """The golden labels that `frozen`, made of `golden`, has others for."""
    return tuple(
        ReplacedLabel(item.item_id, name, before, after)
        for name, labels in golden.aspects.items()
        for item, before, after in zip(golden.items, labels.values, frozen.aspects[name].values, strict=True)
        if before is not None and after is not None and before != after
    )
