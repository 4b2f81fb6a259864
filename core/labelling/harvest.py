"""From labels to knowledge: ratings as a matrix, agreement as it grows, where raters part, and a new golden set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from core.errors import UsageError
from core.labelling.plan import LabelAspect
from core.records import AspectLabels, FloatArray, GoldenSet, Interval, Rating
from core.stats import alpha_metric, krippendorff_alpha, spread_over_sources

Combine = Literal["fill", "decided", "replace"]
GROWTH_POINTS = 20


@dataclass(frozen=True, slots=True)
class Label:
    """What one rater thinks of one item on one aspect now; `value` None = no label can be given."""

    rater: str
    item_id: str
    aspect: str
    value: float | None
    comment: str = ""


@dataclass(frozen=True)
class Ratings:
    """values: (n_raters, n_items) over the golden set's items, NaN = not rated."""

    raters: tuple[str, ...]
    values: FloatArray


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """Krippendorff's alpha of the first `n_items` doubly rated items; None where undefined."""

    n_items: int
    alpha: float | None


@dataclass(frozen=True, slots=True)
class Parting:
    """An item on which raters part on an aspect: who said what, and how far apart they are in steps of the scale."""

    item_id: str
    aspect: str
    labels: tuple[Label, ...]
    steps_apart: float


def ratings_of(golden: GoldenSet, labels: Sequence[Label], aspect: str) -> Ratings:
    """The labels of one aspect as a matrix, raters in the order of their first label.

    Labels of items that the golden set does not have are left out.
    """
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    own = [one for one in labels if one.aspect == aspect and one.item_id in position and one.value is not None]
    raters = tuple(dict.fromkeys(one.rater for one in own))
    values = np.full((len(raters), len(position)), np.nan)
    row = {rater: k for k, rater in enumerate(raters)}
    for one in own:
        values[row[one.rater], position[one.item_id]] = one.value
    return Ratings(raters, values)


def growth(ratings: Ratings, aspect: LabelAspect, order: Sequence[int]) -> tuple[GrowthPoint, ...]:
    """How agreement came about: alpha over the first items (in the order of rating) that two raters have rated."""
    double = (~np.isnan(ratings.values)).sum(axis=0) >= 2
    there = np.array([position for position in order if double[position]], dtype=np.intp)
    if not there.size:
        return ()
    metric = alpha_metric(aspect.scale)
    ends = np.unique(np.linspace(1, there.size, min(GROWTH_POINTS, there.size)).round().astype(int))
    return tuple(
        GrowthPoint(int(end), krippendorff_alpha(ratings.values[:, there[:end]], metric).value) for end in ends
    )


def alpha_interval(golden: GoldenSet, ratings: Ratings, aspect: LabelAspect, seed: int = 0) -> Interval | None:
    """Interval (95 %) of alpha over the sources of the doubly rated items (`core.stats.spread_over_sources`).

    None where alpha is undefined, or the sources are too few to tell.
    """
    metric = alpha_metric(aspect.scale)
    double = np.flatnonzero((~np.isnan(ratings.values)).sum(axis=0) >= 2)
    sources, codes = np.unique(golden.source_codes[double], return_inverse=True)
    values = ratings.values[:, double]
    alpha = krippendorff_alpha(values, metric).value
    if sources.size < 2 or alpha is None:
        return None

    def alphas(counts: FloatArray) -> FloatArray:
        found = [krippendorff_alpha(values[:, row[codes] > 0], metric).value for row in counts]
        return np.array([[np.nan if value is None else value] for value in found])

    spread = spread_over_sources(
        alphas, np.array([alpha]), np.array([sources.size]), sources.size, np.random.default_rng(seed)
    )
    return spread.interval(0)


def partings(
    golden: GoldenSet, labels: Sequence[Label], aspects: Sequence[LabelAspect], at_least: float = 1.0
) -> tuple[Parting, ...]:
    """Items whose raters lie more than `at_least` steps apart (a tenth of the range where there are no steps).

    Furthest apart first, relative to the scale; on a scale of two steps any difference counts.
    """
    by_item: dict[tuple[str, str], list[Label]] = {}
    for one in labels:
        if one.value is not None:
            by_item.setdefault((one.aspect, one.item_id), []).append(one)
    found: list[tuple[float, Parting]] = []
    for aspect in aspects:
        span = aspect.scale.high - aspect.scale.low
        step = aspect.scale.step or span / 10
        for item in golden.items:
            said = by_item.get((aspect.aspect, item.item_id), [])
            values = [one.value for one in said if one.value is not None]
            apart = max(values) - min(values) if len(values) > 1 else 0.0
            binary = span <= step and apart > 0
            if apart > at_least * step + 1e-9 or binary:
                found.append((apart / span, Parting(item.item_id, aspect.aspect, tuple(said), apart / step)))
    return tuple(parting for _, parting in sorted(found, key=lambda pair: -pair[0]))


def labelled_golden(
    golden: GoldenSet,
    labels: Sequence[Label],
    aspects: Sequence[LabelAspect],
    *,
    name: str,
    combine: Combine = "fill",
    decided: Mapping[tuple[str, str], float] | None = None,
) -> GoldenSet:
    """A new golden set with these labels: single ratings kept, gold = their mean or what was `decided`.

    `decided` maps (aspect, item id) → value.  Golden labels stay with "fill", which only fills gaps; "decided" puts
    decisions in their place, "replace" decisions and new labels.  UsageError when nothing was labelled or decided.
    """
    if not decided and not any(one.value is not None for one in labels):
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
            gold[aspect.aspect] = AspectLabels(aspect.aspect, replace(aspect.scale, given=True), values)
        taken = {
            item.item_id
            for item, a, b in zip(golden.items, new, before, strict=True)
            if a is not None and (combine == "replace" or b is None)
        }
        ratings = [one for one in ratings if one.aspect != aspect.aspect or one.item_id not in taken]
        ratings += [
            Rating(one.item_id, one.rater, aspect.aspect, one.value, one.comment)
            for one in labels
            if one.aspect == aspect.aspect and one.value is not None and one.item_id in taken
        ]
    return replace(golden, name=name, aspects=gold, ratings=tuple(ratings))


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _gold_of(golden: GoldenSet, labels: Sequence[Label], aspect: LabelAspect) -> tuple[float | None, ...]:
    """The mean of the new ratings of each item, None without any."""
    values = ratings_of(golden, labels, aspect.aspect).values
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    return tuple(float(mean[k]) if count[k] else None for k in range(len(golden.items)))
