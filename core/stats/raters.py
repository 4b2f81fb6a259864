"""The ratings of single people: who is behind the gold labels, how well they agree, and what leaving one out leaves.

Agreement is Krippendorff's alpha and the mean Spearman over pairs.  Undefined is a value of its own (None with a
reason), never 0 and never 1: a constant side leaves nothing to agree by chance about.  Missing ratings are NaN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import AspectError, UsageError
from core.records import FloatArray, GoldenSet, IntArray, Interval, Measure, Scale
from core.stats.claims import MOST_RATERS, NOT_RATED_TWICE
from core.stats.correlation import average_ranks, correlate, require_finite
from core.stats.intervals import spread_over_sources
from core.stats.items import BoolArray, LabelledItems, Paired, paired
from core.stats.levels import coefficients, level_values, mean_defined
from core.stats.reweighting import counted_means, resampled_values

AlphaMetric = Literal["nominal", "ordinal", "interval"]

MIN_COMMON = 20
"""Fewest common items for which two raters' Spearman counts in the mean over pairs."""

NEAR = 1e-6
"""Gold labels this near to a panel's means (in points) are those means, written with rounding."""


@dataclass(frozen=True)
class RaterTable:
    """values: (n_raters, n_items) in the order of `raters` and of some items (at first `GoldenSet.items`), NaN = none.

    `panel` names the raters where there are several panels.  Rows without a name hold the ratings of `n_unnamed` more
    raters, anybody's in any of them: they count in what others are compared with.  ValueError unless there is one name
    a row, UsageError for ±inf.
    """

    raters: tuple[str, ...]
    values: FloatArray
    panel: str = ""
    n_unnamed: int = 0

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != len(self.raters):
            raise ValueError(f"one row a rater is needed: {self.values.shape}, {len(self.raters)} raters")
        require_finite(self.values)

    @property
    def rated(self) -> BoolArray:
        """(n_raters, n_items) who rated what."""
        return ~np.isnan(self.values)

    @cached_property
    def n_ratings(self) -> IntArray:
        """(n_items,) how many ratings each item has."""
        return np.asarray(self.rated.sum(axis=0), dtype=np.intp)

    @cached_property
    def busiest(self) -> list[int]:
        """Rows of the raters that are each compared with the others: all, or the `MOST_RATERS` with most ratings."""
        named = np.flatnonzero(list(map(bool, self.raters)))
        order = named[np.argsort(-self.rated[named].sum(axis=1), kind="stable")]
        return [int(row) for row in np.sort(order[:MOST_RATERS])]

    @property
    def n_raters(self) -> int:
        """How many raters there are, named or not."""
        return sum(map(bool, self.raters)) + self.n_unnamed

    @property
    def rated_twice(self) -> IntArray:
        """Positions of the items that two raters or more have rated."""
        return np.flatnonzero(self.n_ratings >= 2)

    def at(self, positions: IntArray | BoolArray) -> RaterTable:
        """The ratings of the items at `positions`."""
        return replace(self, values=self.values[:, positions])

    @property
    def present(self) -> RaterTable:
        """Without the raters who rated nothing here."""
        rows = np.flatnonzero(self.rated.any(axis=1))
        return replace(self, raters=tuple(self.raters[row] for row in rows), values=self.values[rows])


def rater_table(golden: GoldenSet, aspect: str, panel: str | None = None) -> RaterTable:
    """Individual ratings on `aspect`; slots (r1, r2, …) count as raters where raters are not named.

    `panel` keeps the raters of one panel ("expert": expert1, expert2, …).  None keeps all, unless there are several
    panels and the gold labels are the means of exactly one: then that one, being whom judges are measured against.
    Of more than `MOST_RATERS` only those with the most ratings are named.  AspectError when nobody's single ratings are
    there, or no such panel.
    """
    ratings = [rating for rating in golden.ratings if rating.aspect == aspect]
    if not ratings:
        raise AspectError(_nobody(golden, aspect), file=golden.name)
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    names = sorted({rating.rater_id for rating in ratings}, key=_natural)
    row = {rater: k for k, rater in enumerate(names)}
    single = {(row[rating.rater_id], position[rating.item_id]): rating.value for rating in ratings}
    rater, item = np.array(list(single), dtype=np.intp).T
    values = np.array(list(single.values()), dtype=np.float64)
    panels = _panels(names)
    if panel is None:
        labels = golden.labels(aspect)

        def means_are_labels(rows: IntArray) -> bool:
            own = np.isin(rater, rows)
            counts = np.bincount(item[own], minlength=labels.size)
            sums = np.bincount(item[own], weights=values[own], minlength=labels.size)
            both = (counts > 0) & ~np.isnan(labels)
            return bool(both.any() and (np.abs(sums[both] / counts[both] - labels[both]) <= NEAR).all())

        behind = [name for name, rows in panels.items() if means_are_labels(rows)] if len(panels) > 1 else []
        panel = behind[0] if len(behind) == 1 else ""
    elif panel not in panels:
        known = ", ".join(panels) or "none"
        raise AspectError(f"there is no panel {panel!r} of raters on {aspect!r}; panels: {known}.", file=golden.name)
    rows = panels[panel] if panel else np.arange(len(names))
    place = np.full(len(names), -1)
    place[rows] = np.arange(rows.size)
    kept = place[rater] >= 0
    return _tabled(
        [names[k] for k in rows], place[rater[kept]], item[kept], values[kept], panel=panel, n_items=len(position)
    )


def _tabled(
    names: Sequence[str], rater: IntArray, item: IntArray, values: FloatArray, *, panel: str, n_items: int
) -> RaterTable:
    """The table of `values` (n,), each of a `rater` and an `item`.

    Of more than `MOST_RATERS` those with the most ratings have a row each.  The ratings of all others fill as few rows
    as they can: 10,000 raters of 100,000 items would take 8 GB otherwise.
    """
    busiest = np.arange(len(names))
    if len(names) > MOST_RATERS:
        order = np.argsort(-np.bincount(rater, minlength=len(names)), kind="stable")
        busiest = np.sort(order[:MOST_RATERS])
    row = np.full(len(names), -1)
    row[busiest] = np.arange(busiest.size)
    at, others = row[rater], np.flatnonzero(row[rater] < 0)
    others = others[np.argsort(item[others], kind="stable")]
    starts = np.searchsorted(item[others], item[others])
    at[others] = busiest.size + np.arange(others.size) - starts
    n_rows = busiest.size if not others.size else int(at.max()) + 1
    table = np.full((n_rows, n_items), np.nan)
    table[at, item] = values
    named = tuple(names[int(k)] for k in busiest) + ("",) * (n_rows - busiest.size)
    return RaterTable(named, table, panel, len(names) - busiest.size)


def _nobody(golden: GoldenSet, aspect: str) -> str:
    others = sorted({rating.aspect for rating in golden.ratings})
    there = f" Single ratings are there for {', '.join(others)}." if others else ""
    return (
        f"{aspect!r} has only one label an item, so how well people agree cannot be told. Add the single ratings: a "
        f"column ann_{aspect} with a list an item, or one row a rating with the rater in annotator_id.{there}"
    )


def _natural(rater: str) -> tuple[str, int, str]:
    """Sort key: r2 before r10."""
    match = re.fullmatch(r"(.*?)(\d{1,9})", rater, flags=re.DOTALL)
    return (match[1], int(match[2]), rater) if match else (rater, -1, rater)


def _panels(raters: Sequence[str]) -> dict[str, IntArray]:
    """Name → rows of the raters called name1, name2, …, at least two of them."""
    row = {rater: k for k, rater in enumerate(raters)}
    panels = {}
    for first in raters:
        name = first.removesuffix("1")
        if name == first or not name or name[-1].isdigit() or f"{name}2" not in row:
            continue
        size = next(k for k in range(2, len(raters) + 2) if f"{name}{k}" not in row) - 1
        panels[name] = np.array([row[f"{name}{k}"] for k in range(1, size + 1)], dtype=np.intp)
    return panels


# ── their agreement ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Alpha:
    """Krippendorff's alpha: 1 perfect, 0 as by chance, below 0 systematic disagreement; None undefined.

    `n_items` counts the items with at least two ratings, `n_ratings` the ratings on them.
    """

    value: float | None
    metric: AlphaMetric
    n_items: int
    n_ratings: int
    reason: str = ""


def krippendorff_alpha(ratings: ArrayLike, metric: AlphaMetric) -> Alpha:
    """Alpha of `ratings` (n_raters, n_items), NaN = not rated; who gave a rating does not matter.

    alpha = 1 − D_o / D_e (Krippendorff 2011): D_o is the mean distance of ratings on one item, each item's pairs
    weighted by 1 / (m − 1) for its m ratings; D_e the mean distance of any two of the pairable ratings.  The distance
    is 0 or 1 (*nominal*), the squared difference (*interval*), or the squared difference of average ranks among all
    pairable ratings (*ordinal*; equal to Krippendorff's sum over the ranks between).  Items rated once do not count.
    Undefined when no item is rated twice or all pairable ratings are equal.  UsageError for ±inf or another metric.
    """
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    require_finite(matrix)
    present = ~np.isnan(matrix)
    pairable = present & (present.sum(axis=0) >= 2)
    items = np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)[pairable]
    values = matrix[pairable]
    items = np.unique(items, return_inverse=True)[1]
    n_items = int(items.max()) + 1 if items.size else 0
    if not n_items:
        return Alpha(None, metric, 0, 0, NOT_RATED_TWICE)
    if values.min() == values.max():
        return Alpha(None, metric, n_items, values.size, "all ratings are equal")
    observed, expected = _distances(values, items, metric)
    return Alpha(1.0 - observed / expected, metric, n_items, values.size)


def _distances(values: FloatArray, items: IntArray, metric: AlphaMetric) -> tuple[float, float]:
    """Mean distances observed within items and expected over all, of (n_ratings,) values and the item of each."""
    n, sizes = values.size, np.bincount(items)
    if metric == "nominal":
        codes = np.unique(values, return_inverse=True)[1]
        width = int(codes.max()) + 1
        cells, counts = np.unique(items * width + codes, return_counts=True)
        same = np.bincount(cells // width, weights=counts.astype(np.float64) ** 2)
        within = (((sizes**2 - same) / (sizes - 1)).sum()) / n
        return float(within), float((n**2 - (np.bincount(codes) ** 2).sum()) / (n * (n - 1)))
    if metric not in ("ordinal", "interval"):
        raise UsageError(f"Unknown metric {metric!r}: use nominal, ordinal or interval.")
    x = average_ranks(values) if metric == "ordinal" else values
    x = (x - x.mean()) / np.abs(x - x.mean()).max()  # distances are ratios: centred and scaled against cancellation
    means = np.bincount(items, weights=x) / sizes
    # Σ over ordered pairs of (x − x')² is 2m·Σ(x − mean)²
    inside = np.bincount(items, weights=(x - means[items]) ** 2)
    return float((2.0 * sizes * inside / (sizes - 1)).sum() / n), float(2.0 * (x**2).sum() / (n - 1))


MOST_VALUES = 32
"""Different ratings up to which alpha's coincidences are laid out (n_items x ratings)."""


def alphas_of(ratings: FloatArray, metric: AlphaMetric, groups: IntArray, kept: BoolArray) -> FloatArray:
    """(n_rows,) `krippendorff_alpha` of the items whose group a row keeps; NaN where undefined.

    `ratings` (n_raters, n_items), `groups` (n_items,) the group of each, `kept` (n_rows, n_groups).  With few different
    ratings the coincidences are added up by group once (Krippendorff 2011): o[c, k] adds, for each item with m ratings
    of which N[c] are c, N[c] (N[k] - [c = k]) / (m - 1).
    """
    twice = (~np.isnan(ratings)).sum(axis=0) >= 2
    ratings, groups = ratings[:, twice], groups[twice]
    values, codes = np.unique(ratings[~np.isnan(ratings)], return_inverse=True)
    if not 1 < values.size <= MOST_VALUES:
        found = (krippendorff_alpha(ratings[:, row[groups]], metric).value for row in kept)
        return np.array([np.nan if value is None else value for value in found])
    items = np.broadcast_to(np.arange(groups.size), ratings.shape)[~np.isnan(ratings)]
    held = np.bincount(items * values.size + codes, minlength=groups.size * values.size).reshape(-1, values.size)
    together = np.empty((kept.shape[0], values.size, values.size))
    for c in range(values.size):
        pairs = held * (held[:, c] / (held.sum(axis=1) - 1.0))[:, None]
        pairs[:, c] -= held[:, c] / (held.sum(axis=1) - 1.0)
        by_group = [np.bincount(groups, weights=column, minlength=kept.shape[1]) for column in pairs.T]
        together[:, c] = kept @ np.stack(by_group, axis=1)
    return _of_coincidences(together, values, metric)


def _of_coincidences(together: FloatArray, values: FloatArray, metric: AlphaMetric) -> FloatArray:
    """(n_rows,) alphas of coincidences (n_rows, n_values, n_values) of the rising `values`."""
    counts = together.sum(axis=2)
    places = np.broadcast_to(values, counts.shape)
    if metric == "ordinal":
        places = np.cumsum(counts, axis=1) - counts / 2.0  # the average ranks, but for a half
    apart = (places[:, :, None] - places[:, None, :]) ** 2 if metric != "nominal" else 1.0 - np.eye(values.size)
    n = counts.sum(axis=1)
    expected = (counts[:, :, None] * counts[:, None, :] * apart).sum(axis=(1, 2)) / np.maximum(n - 1.0, 1.0)
    unlike = (counts > 0.5).sum(axis=1) > 1  # they are whole, but for rounding
    observed = (together * apart).sum(axis=(1, 2))
    return np.where(unlike, 1.0 - observed / np.where(unlike, expected, 1.0), np.nan)


def alpha_metric(scale: Scale) -> AlphaMetric:
    """Nominal for 0/1, ordinal for a scale of steps, interval for a continuous one."""
    if scale.step is None:
        return "interval"
    return "nominal" if scale.two_steps else "ordinal"


@dataclass(frozen=True, slots=True)
class PairwiseSpearman:
    """Mean of Spearman's rho over `n_pairs` pairs of raters; `n_left_out` have too few common items or are constant.

    `n_sampled` counts the raters whose pairs were looked at: all, or the `MOST_RATERS` with the most ratings.
    """

    value: float | None
    n_pairs: int
    n_left_out: int
    reason: str = ""
    n_sampled: int = 0


def pairwise_spearman(ratings: ArrayLike) -> PairwiseSpearman:
    """Mean rho over the pairs of rows of `ratings` (n_raters, n_items) with at least `MIN_COMMON` common items.

    Of more than `MOST_RATERS` rows only the pairs of those with the most ratings count.
    """
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    rated = ~np.isnan(matrix)
    if len(matrix) > MOST_RATERS:
        kept = np.argsort(-rated.sum(axis=1), kind="stable")[:MOST_RATERS]
        matrix, rated = matrix[kept], rated[kept]
    enough = rated.astype(np.float64) @ rated.T.astype(np.float64) >= MIN_COMMON
    ranks, sets = average_ranks(matrix), np.unique(rated, axis=0, return_inverse=True)[1]
    by_row = [np.empty(0)]
    for k in range(len(matrix)):
        partners = k + 1 + np.flatnonzero(enough[k, k + 1 :])
        alike, at = sets[partners] == sets[k], rated[k]  # of many raters each has few items
        own = np.empty(partners.size)  # those who rated the same items are ranked once for all
        own[alike] = correlate(ranks[np.ix_(partners[alike], at)], ranks[k, at], "pearson")
        own[~alike] = correlate(matrix[np.ix_(partners[~alike], at)], matrix[k, at], "spearman")
        by_row.append(own)
    values = np.concatenate(by_row)
    defined = values[~np.isnan(values)]
    n_pairs = matrix.shape[0] * (matrix.shape[0] - 1) // 2
    if not defined.size:
        reason = f"no two raters have {MIN_COMMON} common items with differing ratings"
        return PairwiseSpearman(None, 0, n_pairs, reason, len(matrix))
    return PairwiseSpearman(float(defined.mean()), defined.size, n_pairs - defined.size, n_sampled=len(matrix))


# ── one rater left out ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class LeftOut:
    """One rater left out: `data` holds its ratings (last row) beside the mean of the others as labels.

    A first row holds the judge's scores, where one is set beside the people.  `sources` are the codes of its sources,
    ascending, `places` (n,) where its items are among those given.
    """

    data: Paired
    sources: IntArray
    places: IntArray


@dataclass(frozen=True, eq=False)
class LeftOuts:
    """Several raters, each left out in turn: values, weights and averages of their rows by `measure`."""

    by_rater: tuple[LeftOut, ...]
    measure: Measure

    @classmethod
    def of(cls, table: RaterTable, items: LabelledItems, measure: Measure, judge: FloatArray | None = None) -> LeftOuts:
        """Each rater of `table`, on the `items` that somebody else rated too (and the `judge` scored).

        Of more than `MOST_RATERS`, those with the most ratings; all count in the means.  Raters may have rated
        different items.  ValueError when lengths differ, UsageError for an infinite score.
        """
        if table.values.shape[1] != items.n or (judge is not None and judge.shape != (items.n,)):
            raise ValueError(f"one entry per item is needed on every side: {table.values.shape}, {items.n} items")
        n_ratings, sums = table.n_ratings, np.nansum(table.values, axis=0)
        usable = n_ratings >= 2 if judge is None else (n_ratings >= 2) & ~np.isnan(judge)
        by_rater = []
        for row in table.values[table.busiest]:
            at = np.flatnonzero(usable & ~np.isnan(row))
            own = items.take(at).labelled((sums[at] - row[at]) / (n_ratings[at] - 1))
            rows = row[at] if judge is None else np.stack([judge[at], row[at]])
            by_rater.append(LeftOut(paired(rows, own), np.unique(own.sources), at))
        return cls(tuple(by_rater), measure)

    @cached_property
    def sources(self) -> IntArray:
        """Codes of all sources, ascending."""
        return np.unique(np.concatenate([rater.sources for rater in self.by_rater]))

    @cached_property
    def coefficients(self) -> tuple[FloatArray, ...]:
        """(n_rows, n_sources) a rater, NaN in all rows where one has none: all rest on the same sources."""
        every = [coefficients(rater.data, self.measure.statistic) for rater in self.by_rater]
        return tuple(np.where(np.isnan(own).any(axis=0), np.nan, own) for own in every)

    @cached_property
    def values(self) -> FloatArray:
        """(n_raters, n_rows), NaN = undefined."""
        if self.measure.level == "sample":
            return np.stack([mean_defined(own) for own in self.coefficients])
        return np.stack([level_values(rater.data, self.measure).values for rater in self.by_rater])

    @cached_property
    def weights(self) -> FloatArray:
        """(n_raters, n_sources) what each source adds to a rater's weight: its items, or at sample level 1."""
        weights = np.zeros((len(self.by_rater), self.sources.size))
        for k, rater in enumerate(self.by_rater):
            sample = self.measure.level == "sample"
            own = ~np.isnan(self.coefficients[k][0]) if sample else np.bincount(rater.data.items.sources)
            weights[k, np.searchsorted(self.sources, rater.sources)] = own
        return weights

    @property
    def used(self) -> BoolArray:
        """(n_sources,) the sources that some rater's value rests on."""
        return np.asarray(self.weights.sum(axis=0) > 0)

    def average(self) -> FloatArray:
        """(n_rows,) means over the raters, each weighted by what it rests on."""
        return _weighted(self.values, self.weights.sum(axis=1))

    def averages(self, counts: FloatArray) -> FloatArray:
        """(resamples, n_rows) the same with `counts` (resamples, n_sources) of each source."""
        values = []
        for k, rater in enumerate(self.by_rater):
            own = counts[:, np.searchsorted(self.sources, rater.sources)]
            sample = self.measure.level == "sample"
            values.append(
                counted_means(self.coefficients[k], own) if sample else resampled_values(rater.data, own, self.measure)
            )
        return _weighted(np.stack(values, axis=1), counts @ self.weights.T)


def _weighted(values: FloatArray, weights: FloatArray) -> FloatArray:
    """(…, n_rows) means of (…, n_raters, n_rows) by weight, over the raters defined on all rows; NaN where none is."""
    defined = np.asarray(~np.isnan(values).any(axis=-1))
    counted = np.where(defined, weights, 0.0)
    total = counted.sum(axis=-1)[..., None]
    sums = (np.where(defined[..., None], values, 0.0) * counted[..., None]).sum(axis=-2)
    return np.asarray(np.where(total > 0, sums, np.nan) / np.where(total > 0, total, 1.0), dtype=np.float64)


def alpha_interval(table: RaterTable, scale: Scale, source_codes: IntArray, seed: int = 0) -> Interval | None:
    """Interval (95 %) of alpha over the sources of the doubly rated items (`core.stats.spread_over_sources`).

    `source_codes` are (n_items,).  None where alpha is undefined, or the sources are too few to tell.
    """
    metric = alpha_metric(scale)
    sources, codes = np.unique(source_codes[table.rated_twice], return_inverse=True)
    values = table.values[:, table.rated_twice]
    alpha = krippendorff_alpha(values, metric).value
    if sources.size < 2 or alpha is None:
        return None

    def alphas(counts: FloatArray) -> FloatArray:
        return alphas_of(values, metric, codes, counts > 0)[:, None]

    spread = spread_over_sources(
        alphas, np.array([alpha]), np.array([sources.size]), sources.size, np.random.default_rng(seed)
    )
    return spread.interval(0)
