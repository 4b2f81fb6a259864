"""The ratings of single raters: who is behind the gold labels, and how well raters agree.

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
from core.records import FloatArray, GoldenSet, IntArray, Interval, Scale
from core.stats.claims import MOST_RATERS, NOT_RATED_TWICE
from core.stats.correlation import average_ranks, correlate, require_finite
from core.stats.intervals import spread_over_sources
from core.stats.items import BoolArray

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

    @property
    def named(self) -> IntArray:
        """Rows of the raters that are each compared with the others: all, or the `MOST_RATERS` with most ratings."""
        return np.flatnonzero(np.array(self.raters, dtype=np.str_) != "")

    @property
    def n_raters(self) -> int:
        """How many raters there are, named or not."""
        return int(self.named.size) + self.n_unnamed

    @property
    def rated_twice(self) -> IntArray:
        """Positions of the items that two raters or more have rated."""
        return np.flatnonzero(self.n_ratings >= 2)

    @property
    def present(self) -> RaterTable:
        """Without the raters who rated nothing here."""
        rows = np.flatnonzero(self.rated.any(axis=1))
        return replace(self, raters=tuple(self.raters[row] for row in rows), values=self.values[rows])

    def at(self, positions: IntArray | BoolArray) -> RaterTable:
        """The ratings of the items at `positions`."""
        return replace(self, values=self.values[:, positions])


def rater_table(golden: GoldenSet, aspect: str, panel: str | None = None) -> RaterTable:
    """Tabulate the single ratings on `aspect`; slots (r1, r2, …) count as raters where raters are not named.

    `panel` keeps the raters of one panel ("expert": expert1, expert2, …).  None keeps all, unless there are several
    panels and the gold labels are the means of exactly one: then that one, being whom judges are measured against.
    Of more than `MOST_RATERS` only those with the most ratings have a row each.  The ratings of all others fill as few
    rows as they can: 10,000 raters of 100,000 items would take 8 GB otherwise.  AspectError when nobody's single
    ratings are there, or no such panel.
    """
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    single = {(one.rater_id, position[one.item_id]): one.value for one in golden.ratings if one.aspect == aspect}
    if not single:
        others = ", ".join(sorted({rating.aspect for rating in golden.ratings}))
        there = f" Single ratings are there for {others}." if others else ""
        raise AspectError(
            f"{aspect!r} has only one label an item, so the agreement of raters is unknown. Add the single ratings: "
            f"a column ann_{aspect} with a list an item, or one row a rating with the rater in annotator_id.{there}",
            file=golden.name,
        )
    names = sorted({name for name, _ in single}, key=lambda name: (*_numbered(name), name))  # r2 before r10
    row = {name: k for k, name in enumerate(names)}
    rater, item = np.array([(row[name], at) for name, at in single], dtype=np.intp).T
    values, panels = np.array(list(single.values()), dtype=np.float64), _panels(names)
    if panel is None:
        labels = golden.labels(aspect)

        def means_are_labels(rows: IntArray) -> bool:
            own = np.isin(rater, rows)
            counts, sums = (np.bincount(item[own], side, labels.size) for side in (None, values[own]))
            both = (counts > 0) & ~np.isnan(labels)
            return bool(both.any() and (np.abs(sums[both] / counts[both] - labels[both]) <= NEAR).all())

        behind = [name for name, rows in panels.items() if means_are_labels(rows)] if len(panels) > 1 else []
        panel = behind[0] if len(behind) == 1 else ""
    elif panel not in panels:
        known = ", ".join(panels) or "none"
        raise AspectError(f"there is no panel {panel!r} of raters on {aspect!r}; panels: {known}.", file=golden.name)
    members = panels[panel] if panel else np.arange(len(names))
    kept = np.isin(rater, members)
    rater, item, values = rater[kept], item[kept], values[kept]
    n_ratings = np.bincount(rater, minlength=len(names))[members]
    busiest = np.sort(members[np.argsort(-n_ratings, kind="stable")][:MOST_RATERS])
    at = np.where(np.isin(rater, busiest), np.searchsorted(busiest, rater), -1)
    rest = np.flatnonzero(at < 0)  # the k-th of an item goes to the k-th row without a name
    rest = rest[np.argsort(item[rest], kind="stable")]
    at[rest] = busiest.size + np.arange(rest.size) - np.searchsorted(item[rest], item[rest])
    table = np.full((max(busiest.size, int(at.max()) + 1), len(position)), np.nan)
    table[at, item] = values
    named = (*(names[k] for k in busiest), *[""] * (len(table) - busiest.size))
    return RaterTable(named, table, panel, members.size - busiest.size)


def _numbered(rater: str) -> tuple[str, int]:
    """A name without the number at its end, and that number, −1 for none."""
    match = re.fullmatch(r"(.*?)(\d{1,9})", rater, flags=re.DOTALL)
    return (match[1], int(match[2])) if match else (rater, -1)


def _panels(raters: Sequence[str]) -> dict[str, IntArray]:
    """Name → rows of the raters called name1, name2, …, two or more; `raters` in the order of their numbers."""
    rows: dict[str, list[int]] = {}
    for row, rater in enumerate(raters):
        name, _ = _numbered(rater)
        own = rows.setdefault(name, [])
        if name and rater == f"{name}{len(own) + 1}":
            own.append(row)
    return {name: np.array(own, dtype=np.intp) for name, own in rows.items() if len(own) >= 2}


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
    if metric not in ("nominal", "ordinal", "interval"):
        raise UsageError(f"Unknown metric {metric!r}: use nominal, ordinal or interval.")
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    require_finite(matrix)
    present = ~np.isnan(matrix)
    matrix, present = (side[:, present.sum(axis=0) >= 2] for side in (matrix, present))
    sizes, values = present.sum(axis=0), matrix[present]
    items, n = np.nonzero(present)[1], values.size
    if not n:
        return Alpha(None, metric, 0, 0, NOT_RATED_TWICE)
    if values.min() == values.max():
        return Alpha(None, metric, sizes.size, n, "all ratings are equal")
    if metric == "nominal":
        codes = np.unique(values, return_inverse=True)[1]
        width = int(codes.max()) + 1
        cells, counts = np.unique(items * width + codes, return_counts=True)
        same = np.bincount(cells // width, weights=counts.astype(np.float64) ** 2)
        observed = ((sizes**2 - same) / (sizes - 1)).sum() / n
        expected = (n**2 - (np.bincount(codes) ** 2).sum()) / (n * (n - 1))
    else:
        x = average_ranks(values) if metric == "ordinal" else values
        x = (x - x.mean()) / np.abs(x - x.mean()).max()  # distances are ratios: centred and scaled against cancellation
        means = np.bincount(items, weights=x) / sizes
        # Σ over ordered pairs of (x − x')² is 2m·Σ(x − mean)²
        inside = np.bincount(items, weights=(x - means[items]) ** 2)
        observed, expected = (2.0 * sizes * inside / (sizes - 1)).sum() / n, 2.0 * (x**2).sum() / (n - 1)
    return Alpha(float(1.0 - observed / expected), metric, sizes.size, n)


def alpha_metric(scale: Scale) -> AlphaMetric:
    """Nominal for 0/1, ordinal for a scale of steps, interval for a continuous one."""
    if scale.step is None:
        return "interval"
    return "nominal" if scale.two_steps else "ordinal"


def pairwise_spearman(ratings: ArrayLike) -> tuple[float | None, int, str]:
    """Mean rho over the pairs of rows of `ratings` (n_raters, n_items) with at least `MIN_COMMON` common items.

    Returns the mean (None: undefined), the number of pairs that it is the mean of (others are constant, or have too few
    common items), and why there is no mean.
    """
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    rated = (~np.isnan(matrix)).astype(np.float64)
    enough, by_row = rated @ rated.T >= MIN_COMMON, [np.empty(0)]
    for k in range(len(matrix)):
        partners, at = k + 1 + np.flatnonzero(enough[k, k + 1 :]), rated[k] > 0  # of many raters each has few items
        by_row.append(correlate(matrix[np.ix_(partners, at)], matrix[k, at], "spearman"))
    values = np.concatenate(by_row)
    values = values[~np.isnan(values)]
    if not values.size:
        return None, 0, f"no two raters have {MIN_COMMON} common items with differing ratings"
    return float(values.mean()), values.size, ""


def alpha_interval(table: RaterTable, scale: Scale, source_codes: IntArray, seed: int = 0) -> Interval | None:
    """Compute the 95 % interval of alpha over the sources of the doubly rated items (`core.stats.spread_over_sources`).

    `source_codes` are (n_items,).  None where alpha is undefined, or the sources are too few to tell.
    """
    sources, codes = np.unique(source_codes[table.rated_twice], return_inverse=True)
    values = table.values[:, table.rated_twice]

    def alphas(counts: FloatArray) -> FloatArray:
        found = (krippendorff_alpha(values[:, row[codes] > 0], alpha_metric(scale)).value for row in counts)
        return np.array([[np.nan if value is None else value] for value in found])

    alpha = alphas(np.ones((1, sources.size)))[0]
    if sources.size < 2 or np.isnan(alpha[0]):
        return None
    behind = np.array([sources.size])
    return spread_over_sources(alphas, alpha, behind, sources.size, np.random.default_rng(seed)).interval(0)[0]
