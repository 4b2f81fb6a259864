"""The ratings of single people as a matrix, who of them is behind the gold labels, and what leaving one out leaves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from core.errors import AspectError
from core.records import FloatArray, GoldenSet, IntArray, Measure, Rating
from core.stats.items import BoolArray, LabelledItems, Paired, paired, require_finite
from core.stats.levels import coefficients, level_values, mean_defined
from core.stats.reweighting import counted_means, resampled_values

NEAR = 1e-6
"""Gold labels this near to a panel's means (in points) are those means, written with rounding."""


@dataclass(frozen=True)
class RaterTable:
    """values: (n_raters, n_items) in the order of `raters` and of some items (at first `GoldenSet.items`), NaN = none.

    `panel` names the raters where there are several panels.  ValueError unless there is one row a rater, UsageError for
    ±inf.
    """

    raters: tuple[str, ...]
    values: FloatArray
    panel: str = ""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != len(self.raters):
            raise ValueError(f"one row a rater is needed: {self.values.shape}, {len(self.raters)} raters")
        require_finite(self.values)

    @property
    def rated(self) -> BoolArray:
        """(n_raters, n_items) who rated what."""
        return ~np.isnan(self.values)

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
    AspectError when nobody's single ratings are there, or no such panel.
    """
    ratings = [rating for rating in golden.ratings if rating.aspect == aspect]
    if not ratings:
        raise AspectError(_nobody(golden, aspect), file=golden.name)
    table = _matrix(golden, ratings)
    panels = _panels(table.raters)
    if panel is None:
        panel = _panel_of_gold(table, panels, golden.labels(aspect)) if len(panels) > 1 else ""
    elif panel not in panels:
        known = ", ".join(panels) or "none"
        raise AspectError(f"there is no panel {panel!r} of raters on {aspect!r}; panels: {known}.", file=golden.name)
    if not panel:
        return table
    rows = panels[panel]
    return RaterTable(tuple(table.raters[row] for row in rows), table.values[rows], panel)


def _nobody(golden: GoldenSet, aspect: str) -> str:
    others = sorted({rating.aspect for rating in golden.ratings})
    there = f" Single ratings are there for {', '.join(others)}." if others else ""
    return (
        f"{aspect!r} has only one label an item, so how well people agree cannot be told. Add the single ratings: a "
        f"column ann_{aspect} with a list an item, or one row a rating with the rater in annotator_id.{there}"
    )


def _matrix(golden: GoldenSet, ratings: Sequence[Rating]) -> RaterTable:
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    row = {rater: k for k, rater in enumerate(sorted({rating.rater_id for rating in ratings}, key=_natural))}
    values = np.full((len(row), len(position)), np.nan)
    for rating in ratings:
        values[row[rating.rater_id], position[rating.item_id]] = rating.value
    return RaterTable(tuple(row), values)


def _natural(rater: str) -> tuple[str, int, str]:
    """Sort key: r2 before r10."""
    found = re.fullmatch(r"(.*?)(\d{1,9})", rater, flags=re.DOTALL)
    return (found[1], int(found[2]), rater) if found else (rater, -1, rater)


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


def _panel_of_gold(table: RaterTable, panels: dict[str, IntArray], labels: FloatArray) -> str:
    """The panel whose means are the labels; "" when none is, or several are."""
    fitting = [name for name, rows in panels.items() if _means_are(table.values[rows], labels)]
    return fitting[0] if len(fitting) == 1 else ""


def _means_are(values: FloatArray, labels: FloatArray) -> bool:
    counts = (~np.isnan(values)).sum(axis=0)
    both = (counts > 0) & ~np.isnan(labels)
    means = np.nan_to_num(values).sum(axis=0)[both] / counts[both]
    return bool(both.any() and (np.abs(means - labels[both]) <= NEAR).all())


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

    @cached_property
    def sources(self) -> IntArray:
        """Codes of all sources, ascending."""
        return np.unique(np.concatenate([one.sources for one in self.by_rater]))

    @cached_property
    def coefficients(self) -> tuple[FloatArray, ...]:
        """(n_rows, n_sources) a rater, NaN in all rows where one has none: all rest on the same sources."""
        every = [coefficients(one.data, self.measure.statistic) for one in self.by_rater]
        return tuple(np.where(np.isnan(own).any(axis=0), np.nan, own) for own in every)

    @cached_property
    def values(self) -> FloatArray:
        """(n_raters, n_rows), NaN = undefined."""
        if self.measure.level == "sample":
            return np.stack([mean_defined(own) for own in self.coefficients])
        return np.stack([level_values(one.data, self.measure).values for one in self.by_rater])

    @cached_property
    def weights(self) -> FloatArray:
        """(n_raters, n_sources) what each source adds to a rater's weight: its items; at sample level 1 for a
        coefficient.
        """
        weights = np.zeros((len(self.by_rater), self.sources.size))
        for k, one in enumerate(self.by_rater):
            sample = self.measure.level == "sample"
            own = ~np.isnan(self.coefficients[k][0]) if sample else np.bincount(one.data.items.sources)
            weights[k, np.searchsorted(self.sources, one.sources)] = own
        return weights

    def average(self) -> FloatArray:
        """(n_rows,) means over the raters, each weighted by what it rests on."""
        return _weighted(self.values, self.weights.sum(axis=1))

    def averages(self, counts: FloatArray) -> FloatArray:
        """(resamples, n_rows) the same with `counts` (resamples, n_sources) of each source."""
        drawn = [counts[:, np.searchsorted(self.sources, one.sources)] for one in self.by_rater]
        if self.measure.level == "sample":
            values = [counted_means(own, at) for own, at in zip(self.coefficients, drawn, strict=True)]
        else:
            values = [
                resampled_values(one.data, at, self.measure) for one, at in zip(self.by_rater, drawn, strict=True)
            ]
        return _weighted(np.stack(values, axis=1), counts @ self.weights.T)


def leave_out_each(table: RaterTable, items: LabelledItems, judge: FloatArray | None = None) -> list[LeftOut]:
    """Each rater of `table` left out in turn, on the `items` that somebody else rated too (and the `judge` scored).

    Raters may have rated different items.  ValueError when lengths differ, UsageError for an infinite score.
    """
    if table.values.shape[1] != items.n or (judge is not None and judge.shape != (items.n,)):
        raise ValueError(f"one entry per item is needed on every side: {table.values.shape}, {items.n} items")
    rated, filled = table.rated, np.nan_to_num(table.values)
    n_ratings = rated.sum(axis=0)
    usable = n_ratings >= 2 if judge is None else (n_ratings >= 2) & ~np.isnan(judge)
    others = (filled.sum(axis=0) - filled) / np.maximum(n_ratings - 1, 1)
    left = []
    for row, mean, mine in zip(table.values, others, rated & usable, strict=True):
        at = np.flatnonzero(mine)
        own = items.take(at).labelled(mean[at])
        rows = row[at] if judge is None else np.stack([judge[at], row[at]])
        left.append(LeftOut(paired(rows, own), np.unique(own.sources), at))
    return left


def _weighted(values: FloatArray, weights: FloatArray) -> FloatArray:
    """(…, n_rows) means of (…, n_raters, n_rows) by weight, over the raters defined on all rows; NaN where none is."""
    defined = np.asarray(~np.isnan(values).any(axis=-1))
    counted = np.where(defined, weights, 0.0)
    total = counted.sum(axis=-1)[..., None]
    sums = (np.where(defined[..., None], values, 0.0) * counted[..., None]).sum(axis=-2)
    return np.asarray(np.where(total > 0, sums, np.nan) / np.where(total > 0, total, 1.0), dtype=np.float64)
