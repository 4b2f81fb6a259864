"""Measure agreement of raters: Krippendorff's alpha, one rater against the others, and a judge against a rater.

An undefined result is None with a reason, never 0 or 1. Missing ratings are NaN.

# The ceiling (`leave_one_out`)

The ceiling is the alignment of one rater with the mean of the other raters. It has the statistic and level of the
judges' alignments, so a chart can show the ceiling next to the judges. Judges are measured against the mean of *all*
raters, which is more reliable and adds 0.03 to 0.04 to their alignment. The ceiling is therefore slightly too low:
never compare a judge with the ceiling by eye or by interval.

# A judge compared with raters (`compare_with_raters`)

Judge and rater are measured against the same target. For each rater j, the difference is

    alignment(judge, mean of the others without j) - alignment(j, mean of the others without j)

over the items that j, the judge and at least one other rater rated. The result is the average difference over the
raters. If the judge is like one more rater, the expected difference is exactly 0. The result holds for *these* raters;
other raters can be better or worse.

Intervals come from the jackknife over sources (Efron and Stein 1981, "The jackknife estimate of variance"), with t on
sources - 1 degrees of freedom. At sample level, if every source has the same raters, the intervals equal the t interval
of the sources' paired differences.

# The Alternative Annotator Test (`annotator_test`)

The test says whether a judge can replace a rater (Calderon, Reichart and Dror 2025, "The Alternative Annotator Test for
LLM-as-a-Judge", ACL). For each rater j, it uses the items that j, the judge and at least one other rater rated. For
each item, j and the judge are compared with the *single ratings* of the other raters:

    S(x) = -(root mean square difference between x's rating and the other raters' ratings)
    d    = [S(j) >= S(judge)] - [S(judge) >= S(j)]        (1: j is closer, -1: the judge is closer, 0: tie)

The null hypothesis H0 is that the mean of d is epsilon or more. The judge is cheaper than a rater, so it may be worse
by up to epsilon: 0.2 for experts, 0.15 for skilled raters, 0.1 for crowd workers. The test is a one-sided t test over
the items. Its p values are corrected for the number of raters (Benjamini and Yekutieli 2001) at q = 0.05.

- omega is the share of raters for whom H0 is rejected; the judge passes if omega is at least 0.5.
- rho is the mean share of items on which the judge does at least as well as the rater. Use rho only to compare judges
  with each other: judges with rho 0.77 have failed for every rater.

Concord departs from the paper in two ways:

- The paper's t test treats items as independent. If items share sources, it wrongly rejects H0 in 14 to 17 % of runs,
  instead of 5 %. Concord clusters by source, which rejects in 3 to 5 %.
- With fewer than 30 items, the paper uses Wilcoxon's test, which is about the median of d. If the mean of d is epsilon,
  this test rejects in 13 to 68 % of runs of 15 or 25 items. So Concord tests no rater with fewer than `LEAST_DUELS`
  items. With more items, the t test rejects in 5 to 6 %, or 15 % if d is never -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import AspectError, UsageError
from core.records import Alignment, FloatArray, GoldenSet, IntArray, Interval, JsonRecord, Measure, Scale, json_fields
from core.stats.alignment import Seed, holm
from core.stats.correlation import (
    BoolArray,
    LabelledItems,
    Paired,
    average_ranks,
    coefficients_by_source,
    paired,
)
from core.stats.intervals import (
    LEAST_SOURCES,
    MARGIN,
    ROUNDING,
    SAME_EVERYWHERE,
    TOO_FEW,
    jackknife_deviations,
    leave_outs,
    length,
    one_sided,
    resampled_values,
    spread_over_sources,
    t_interval,
    t_quantile,
    two_sided,
)

AlphaMetric = Literal["nominal", "ordinal", "interval"]

NEAR = 1e-6
"""Gold labels within this distance of a panel's means (in points) are those means, rounded."""


MOST_RATERS = 200
"""Most raters with a row each.  Of more, the rows are the first, second, … rating of each item: few of so many raters
share items, and 10,000 raters of 100,000 items would need 8 GB."""

MOST_BLOCKS = 200
"""Most blocks of sources that are left out, one at a time, to compare a judge with raters."""


LEAST_DUELS = 30
"""Fewest items of a rater for the Alternative Annotator Test; `ADVISED_RATERS` raters are recommended."""

ADVISED_RATERS = 3

PASSES_AT = 0.5
"""The judge passes the test if it could replace at least this share of raters."""

SINGLE_SOURCES = "no interval: the value depends on a single source"
ONE_RATER = "there is only one rater, so no comparison is possible"
NOT_RATED_TWICE = "no item has ratings from two raters"
NOT_SCORED_BY_BOTH = "the judge scored none of the items that two raters rated"
NO_RATER_RANKED = "no rater can be compared with the mean of the others: there are too few values, or all are equal"
NO_SINGLE_RATINGS = "so the judge can't be compared with raters"


@dataclass(frozen=True)
class RaterTable:
    """Individual ratings of one aspect.

    Attributes:
        raters: Names of the raters, in the order of the rows of `values`.
        values: Ratings (n_raters, n_items), NaN = not rated. Columns are in the order of `GoldenSet.items`.
        panel: Name of the group of raters, if the golden set has several groups and the table has one; otherwise "".
    """

    raters: tuple[str, ...]
    values: FloatArray
    panel: str = ""

    @property
    def rated(self) -> BoolArray:
        """Mask (n_raters, n_items): whether the rater rated the item."""
        return ~np.isnan(self.values)

    @cached_property
    def n_ratings(self) -> IntArray:
        """Number of ratings of each item, (n_items,)."""
        return np.asarray(self.rated.sum(axis=0), dtype=np.intp)

    @property
    def rated_twice(self) -> IntArray:
        """Positions of the items with at least two ratings."""
        return np.flatnonzero(self.n_ratings >= 2)

    def at(self, positions: IntArray | BoolArray) -> RaterTable:
        """Return a table of only the items at `positions`."""
        return replace(self, values=self.values[:, positions])


def rater_table(golden: GoldenSet, aspect: str) -> RaterTable:
    """Return the table of individual ratings on `aspect`.

    A panel is a group of numbered raters, such as expert1, expert2, …. If the labels are the means of exactly one of
    several panels, the table has only that panel. Otherwise the table has all raters.

    With more than `MOST_RATERS` raters, a row isn't a rater: the rows are the first, second, … rating of each item.

    Raises:
        AspectError: The aspect has no individual ratings.
    """
    import pandas as pd

    single = [(one.rater_id, one.item_id, one.value) for one in golden.ratings if one.aspect == aspect]
    if not single:
        others = ", ".join(sorted({rating.aspect for rating in golden.ratings}))
        there = f" In the golden set, only these aspects have individual ratings: {others}." if others else ""
        raise AspectError(
            f"{aspect!r} has only one label per item, so the agreement between raters is unknown. Add the "
            f"individual ratings as lists in a column ann_{aspect}, or use one row per rating with the rater in "
            f"annotator_id.{there}",
            file=golden.name,
        )
    frame = pd.DataFrame(single, columns=["rater", "item", "value"], dtype=object)
    frame[["stem", "number"]] = frame["rater"].str.extract(r"(?s)^(.*?)(\d{1,9})$")
    frame["stem"], frame["number"] = frame["stem"].fillna(frame["rater"]), frame["number"].fillna(-1).astype(int)
    frame = frame.sort_values(["stem", "number", "rater"], kind="stable")  # r2 before r10
    panels, panel = dict[str, pd.DataFrame](), ""
    for stem, own in frame[frame["number"] > 0].groupby("stem"):
        numbers = own["number"].unique()
        numbers = numbers[numbers == np.arange(1, numbers.size + 1)]
        if stem and numbers.size >= 2:
            panels[str(stem)] = own[own["number"].isin(numbers)]
    if len(panels) > 1:
        labels = pd.Series(golden.labels(aspect), golden.item_ids)
        gaps = {stem: (own.groupby("item")["value"].mean() - labels).dropna() for stem, own in panels.items()}
        behind = [stem for stem, gap in gaps.items() if gap.size and (gap.abs() <= NEAR).all()]
        if len(behind) == 1:
            panel, frame = behind[0], panels[behind[0]]
    if frame["rater"].nunique() > MOST_RATERS:
        frame = frame.assign(rater="rating " + (frame.groupby("item").cumcount() + 1).astype(str))
    table = frame.pivot(index="rater", columns="item", values="value")
    table = table.reindex(index=frame["rater"].unique(), columns=golden.item_ids)
    return RaterTable(tuple(table.index), table.to_numpy(np.float64), panel)


# ── agreement of raters ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Alpha:
    """Krippendorff's alpha.

    Attributes:
        value: 1 for perfect agreement, 0 for chance, below 0 for systematic disagreement; None if undefined.
        n_items: Number of items with at least two ratings.
        reason: Why alpha is undefined, or "".
    """

    value: float | None
    metric: AlphaMetric
    n_items: int
    reason: str = ""


def krippendorff_alpha(ratings: ArrayLike, metric: AlphaMetric) -> Alpha:
    """Compute Krippendorff's alpha of `ratings` (n_raters, n_items), NaN = not rated.

    alpha = 1 − D_o / D_e (Krippendorff 2011), over the items with at least two ratings:

    - D_o is the mean distance between ratings of the same item. For an item with m ratings, each pair has weight 1 / (m
      − 1).
    - D_e is the mean distance between any two ratings.
    - The distance is 0 or 1 (*nominal*), the squared difference (*interval*), or the squared difference of average
      ranks (*ordinal*).

    Alpha is undefined if no item has two ratings, or if all ratings are equal.
    """
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    present = ~np.isnan(matrix)
    matrix, present = (side[:, present.sum(axis=0) >= 2] for side in (matrix, present))
    sizes, values = present.sum(axis=0), matrix[present]
    items, n = np.nonzero(present)[1], values.size
    if not n or values.min() == values.max():
        return Alpha(None, metric, sizes.size, "all ratings are equal" if n else NOT_RATED_TWICE)
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
    return Alpha(float(1.0 - observed / expected), metric, sizes.size)


def alpha_metric(scale: Scale) -> AlphaMetric:
    """Return the distance for alpha: nominal for two steps, ordinal for more, interval for a continuous scale."""
    if scale.step is None:
        return "interval"
    return "nominal" if scale.two_steps else "ordinal"


# ── one rater left out ───────────────────────────────────────────────────────────────────────────────────────


class _LeftOuts:
    """Alignments of each rater with the mean of the others, on `items` that others rated too (and the `judge` scored).

    The judge, if any, is compared with the same mean; its row comes first.

    Attributes: `places` of each rater's items, the `data` on them, and the `sources` (n_sources,) of all.  `values`
    (n_raters, n_rows), NaN = undefined.  `weights` (n_raters, n_sources) of each source: its number of items, or 1 at
    sample level; 0 for an undefined rater.  `used` (n_sources,): sources that contribute to some value.
    """

    def __init__(
        self, table: RaterTable, items: LabelledItems, measure: Measure, judge: FloatArray | None = None
    ) -> None:
        usable = (table.n_ratings >= 2) & (True if judge is None else ~np.isnan(judge))
        sums, self.measure, self.data = np.nansum(table.values, axis=0), measure, list[Paired]()
        self.places = [np.flatnonzero(usable & ~np.isnan(row)) for row in table.values]
        self.sources = np.unique(items.sources[np.concatenate(self.places)])
        self.weights = np.zeros((len(self.places), self.sources.size))
        for row, at in zip(table.values, self.places, strict=True):
            own = items.take(at).labelled((sums[at] - row[at]) / (table.n_ratings[at] - 1))
            data = paired(row[at] if judge is None else np.stack([judge[at], row[at]]), own)
            if (
                measure.level == "sample"
            ):  # a source without a coefficient in one row counts in none, so that all rows use the same sources
                without = np.asarray(np.isnan(coefficients_by_source(data, measure.statistic)).any(axis=0))
                data = Paired(np.where(without[data.items.sources], np.nan, data.scores), data.items)
            self.data.append(data)
        self._at = [np.searchsorted(self.sources, np.unique(items.sources[at])) for at in self.places]
        self.values = self._values(np.ones((1, self.sources.size)))[0]
        for weights, at, data, values in zip(self.weights, self._at, self.data, self.values, strict=True):
            if not np.isnan(values).any():
                behind = data.items.sums_by_source(data.scored[:1])[0]
                weights[at] = behind > 0 if measure.level == "sample" else behind
        self.used = self.weights.sum(axis=0) > 0

    def _values(self, counts: FloatArray) -> FloatArray:
        """Compute values (resamples, n_raters, n_rows) with `counts` (resamples, n_sources) of each source."""
        values = np.full((len(counts), len(self.data), len(self.data[0].scores)), np.nan)
        for k, (data, at) in enumerate(zip(self.data, self._at, strict=True)):
            if data.items.n >= 2:
                values[:, k] = resampled_values(data, counts[:, at], self.measure)
        return values

    def averages(self, counts: FloatArray) -> FloatArray:
        """Return weighted averages over the raters (resamples, n_rows), NaN if no rater counts.

        A rater's weight is its number of items, or of sources at sample level. Raters without a value in every row do
        not count. `counts` (resamples, n_sources) says how often each source was drawn.
        """
        values, weights = self._values(counts), (counts @ self.weights.T)[:, :, None]
        undefined = np.isnan(values).any(axis=-1, keepdims=True)
        total = np.where(undefined, 0.0, weights).sum(axis=-2)
        sums = np.where(undefined, 0.0, values * weights).sum(axis=-2)
        return np.asarray(np.where(total > 0, sums, np.nan) / np.where(total > 0, total, 1.0), dtype=np.float64)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


Rated = tuple[dict[str, Any], ...]
"""For each `rater` the `value` with the mean of the others (None: undefined) and the number of items, `n_items`."""


@dataclass(frozen=True)
class Ceiling(JsonRecord):
    """Agreement of the raters on one aspect.

    `leave_one_out` and `by_rater` are the results of the function `leave_one_out`. `panel` names the panel used if
    there are several.
    """

    aspect: str
    leave_one_out: Alignment
    krippendorff_alpha: float | None
    alpha_metric: AlphaMetric
    alpha_n_items: int
    alpha_reason: str
    n_raters: int
    panel: str
    by_rater: Rated


def leave_one_out(
    table: RaterTable, items: LabelledItems, measure: Measure, *, seed: Seed = 0
) -> tuple[Alignment, Rated]:
    """Measure the alignment of each rater with the mean of the other raters.

    Raters are weighted by their number of items, or of sources at sample level.

    Args:
        table: The ratings.
        items: The items, in the order of the columns of `table`. Their labels are ignored.
        measure: Statistic and level of the alignment.
        seed: Seed for drawing sources; used only for the interval at system level.

    Returns:
        The weighted average over the raters, with an interval over sources, and the alignment of each rater.

    The average has these counts:

    - `n`: items used; systems at system level
    - `n_unscored`: items with fewer than two ratings
    - `n_groups`: sources with a coefficient for at least one rater
    """
    left, level = _LeftOuts(table, items, measure), measure.level
    sides = zip(table.raters, left.values[:, 0], left.places, strict=True)
    by_rater = tuple({"rater": name, "value": _or_none(value), "n_items": at.size} for name, value, at in sides)
    twice, used, defined = table.n_ratings >= 2, left.used, ~np.isnan(left.values[:, 0])
    average = Alignment(measure.statistic, level, None, 0, n_unscored=int((~twice).sum()))
    if not defined.any():
        reason = NO_RATER_RANKED if left.sources.size else NOT_RATED_TWICE
        return replace(average, reason=ONE_RATER if len(by_rater) < 2 else reason), by_rater
    counted = twice & table.rated[defined].any(axis=0)
    if level == "sample":
        counted &= np.isin(items.sources, left.sources[used])
        average = replace(average, n_groups=int(used.sum()), n_left_out=int((~used).sum()))
    n = np.unique(items.systems[counted]).size if level == "system" else int(counted.sum())
    value, interval = left.averages(np.ones((1, left.sources.size)))[0], None
    if left.sources.size >= 2:
        interval, _ = spread_over_sources(
            left.averages,
            value,
            np.array([int(used.sum())]),
            left.sources.size,
            np.random.default_rng(seed),
            draws=level == "system",
        ).interval(0)
    return replace(average, value=float(value[0]), n=n, interval=interval), by_rater


# ── a judge next to raters ────────────────────────────────────────────────────────────────────────────────────


Standing = Literal["above", "level", "below", "open"]


@dataclass(frozen=True, slots=True)
class PairedRater:
    """Alignment of a judge and of a rater with the mean of the other raters, on the same items; None if undefined."""

    rater: str
    judge: float | None
    person: float | None
    n_items: int

    @property
    def difference(self) -> float | None:
        """Alignment of the judge minus that of the rater."""
        return None if self.judge is None or self.person is None else self.judge - self.person

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"difference": self.difference}


@dataclass(frozen=True)
class RaterComparison:
    """Comparison of a judge with the raters, each measured against the mean of the other raters on the same items.

    Averages over the raters are weighted by the number of items of each rater, or of sources at sample level.

    Attributes:
        judge: Average alignment of the judge.
        person: Average alignment of a rater.
        difference: `judge` minus `person`.
        interval: Interval of the difference.
        p: Two-sided p of the difference; None with fewer than `LEAST_SOURCES` sources.
        n_sources: Number of sources that contribute to the difference.
        reason: Why a field is None, or "".
        n_judges: Number of judges compared together. `interval` and `p` are corrected for them (`correct_for_judges`).
        withheld: Why no claim is made although a test is possible, or "".
    """

    judge: Alignment
    person: Alignment
    difference: float | None
    interval: Interval | None
    p: float | None
    n_items: int
    n_sources: int
    by_rater: tuple[PairedRater, ...]
    panel: str = ""
    reason: str = ""
    n_judges: int = 1
    withheld: str = field(default="", metadata={"silent": True})

    def without_claim(self, reason: str) -> RaterComparison:
        """Return a copy without the p value and with `reason` in `withheld`.

        If `reason` is "", the result is unchanged.
        """
        return replace(self, p=None, withheld=reason) if reason else self

    @property
    def n_raters(self) -> int:
        """Number of raters whose agreement is defined."""
        return sum(rater.difference is not None for rater in self.by_rater)

    @property
    def standing(self) -> Standing:
        """Classify the judge in comparison with a rater.

        Returns:
            "above" or "below" if the interval excludes 0.
            "level" if the interval includes 0 and its low end lies above -`MARGIN`.
            "open" otherwise, or if p is None.
        """
        if self.interval is None or self.p is None:
            return "open"
        if self.interval.low > 0:
            return "above"
        if self.interval.high < 0:
            return "below"
        return "level" if self.interval.low > -MARGIN else "open"

    def as_json(self) -> dict[str, Any]:
        return {"standing": self.standing} | json_fields(self) | {"n_raters": self.n_raters}


def compare_with_raters(
    table: RaterTable, scores: ArrayLike, items: LabelledItems, measure: Measure
) -> RaterComparison:
    """Compare a judge with the raters of `table`, on the items that the judge scored and at least two raters rated.

    Args:
        table: The ratings.
        scores: The judge's scores (n_items,). Higher must be better; NaN is a missing score.
        items: The items, in the order of `scores` and of the columns of `table`. Their labels are ignored.
        measure: Statistic and level of the alignments.
    """
    judge = np.asarray(scores, dtype=np.float64)
    left = _LeftOuts(table, items, measure, judge)
    sides = zip(table.raters, left.values, left.places, strict=True)
    by_rater = tuple(PairedRater(name, _or_none(own[0]), _or_none(own[1]), at.size) for name, own, at in sides)
    n_sources, n_items = int(left.used.sum()), int(((table.n_ratings >= 2) & ~np.isnan(judge)).sum())
    bare = Alignment(measure.statistic, measure.level, None, 0)
    if not n_sources:
        why = ONE_RATER if len(by_rater) < 2 else NO_RATER_RANKED if n_items else NOT_SCORED_BY_BOTH
        bare = replace(bare, reason=why)
        return RaterComparison(bare, bare, None, None, None, n_items, 0, by_rater, table.panel, why)
    counts = np.ones((min(n_sources, MOST_BLOCKS), left.used.size))
    counts[:, left.used] = leave_outs(n_sources, MOST_BLOCKS)
    own_value, person = left.averages(np.ones((1, left.sources.size)))[0].tolist()
    gap, deleted = own_value - person, -np.diff(left.averages(counts))
    n_blocks, known = len(deleted), len(deleted) > 1 and not np.isnan(deleted).any()
    error = length(jackknife_deviations(deleted))
    method = "jackknife" + (f" of {n_blocks} blocks" if n_blocks < n_sources else "")
    interval = t_interval(gap, error, n_sources, method, most=2.0, n_independent=n_blocks) if known else None
    p, why = None, TOO_FEW
    if n_sources >= LEAST_SOURCES:
        why = SAME_EVERYWHERE if known else SINGLE_SOURCES
        if known:  # no error: undefined, or the same value without any block
            p = two_sided(gap / error, n_blocks - 1) if error > 0 else 1.0 if gap == 0 else None
    sides_behind = zip(left.places, left.weights, strict=True)
    behind = [at[np.isin(items.sources[at], left.sources[weights > 0])] for at, weights in sides_behind]
    n_items = int(np.unique(np.concatenate(behind)).size)
    n = left.data[int(np.argmax(left.weights.any(axis=1)))].items.n_systems if measure.level == "system" else n_items
    bare = replace(bare, n=n, n_groups=n_sources if measure.level == "sample" else 0)
    return RaterComparison(
        replace(bare, value=own_value),
        replace(bare, value=person),
        gap,
        interval,
        p,
        n_items,
        n_sources,
        by_rater,
        table.panel,
        "" if p is not None else why,
    )


def correct_for_judges(results: Sequence[RaterComparison]) -> list[RaterComparison]:
    """Correct the results of several judges for multiple testing, so that the best judge can be chosen.

    The p values are corrected with Holm's method, and the intervals are widened to match. An interval excludes 0 if the
    corrected p is below 0.05. If no judge truly differs from a rater, the best judge is called better in at most 5 % of
    cases.
    """
    n_judges, corrected = sum(own.p is not None for own in results), []
    for own, p in zip(results, holm([np.nan if own.p is None else own.p for own in results]).tolist(), strict=True):
        if own.p is not None and n_judges > 1:
            interval, point, looks = own.interval, own.difference or 0.0, max(p / own.p, 1.0) if own.p else n_judges
            if interval is not None:
                freedom = min(own.n_sources, MOST_BLOCKS) - 1
                by = t_quantile(freedom, looks) / t_quantile(freedom)
                low, high = point + by * (interval.low - point), point + by * (interval.high - point)
                method = f"{interval.method}, corrected for {n_judges} judges"
                interval = replace(interval, low=low, high=high, method=method).within(-2.0, 2.0)
            corrected.append(replace(own, interval=interval, p=p, n_judges=n_judges))
        else:
            corrected.append(own)
    return corrected


# ── the Alternative Annotator Test ───────────────────────────────────────────────────────────────────────────

EPSILONS = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
"""By how much a judge may be worse than a rater, by kind of rater, as in the paper."""
EPSILON = EPSILONS["skilled"]
RATE = 0.05
"""The false discovery rate."""
TIE = 1e-9
"""Mean square differences closer than this are ties, since they differ only by rounding."""


@dataclass(frozen=True, slots=True)
class RaterTest(JsonRecord):
    """Test of whether the judge can replace one rater. The module docstring defines d and H0.

    Attributes:
        n_items: Number of items that the rater, the judge and at least one other rater rated.
        judge_wins: Share of items on which the judge does at least as well as the rater.
        rater_wins: Share of items on which the rater does at least as well as the judge.
        difference: Mean of d.
        p: The uncorrected p value; None with fewer than `LEAST_DUELS` items or `LEAST_SOURCES` sources.
        replaceable: Whether H0 is rejected after correction for the number of raters.
    """

    rater: str
    n_items: int
    judge_wins: float | None
    rater_wins: float | None
    difference: float | None
    p: float | None
    replaceable: bool = False


@dataclass(frozen=True)
class AnnotatorTest:
    """Result of the Alternative Annotator Test over all raters.

    The module docstring defines `omega`, `rho` and `epsilon`.

    Attributes:
        omega: None if undefined.
        n_items: Number of items used.
        n_sources: Number of sources used.
        clustered: Whether the tests are clustered by source.
        reason: Why `omega` is undefined, or "".
        cautions: Reasons to trust the result less.
        withheld: Why no verdict is given although a test is possible, or "".
    """

    by_rater: tuple[RaterTest, ...]
    omega: float | None
    rho: float | None
    n_items: int
    n_sources: int
    epsilon: float
    clustered: bool
    panel: str = ""
    reason: str = ""
    cautions: tuple[str, ...] = ()
    withheld: str = field(default="", metadata={"silent": True})

    def without_claim(self, reason: str) -> AnnotatorTest:
        """Return a copy without the verdict and without p values, with `reason` in `withheld`.

        If `reason` is "", the result is unchanged.
        """
        if not reason:
            return self
        by_rater = tuple(replace(own, p=None, replaceable=False) for own in self.by_rater)
        return replace(self, withheld=reason, by_rater=by_rater)

    @property
    def passes(self) -> bool | None:
        """Whether the judge could replace at least half of the tested raters; None if undefined."""
        return None if self.withheld or self.omega is None else self.omega >= PASSES_AT

    @property
    def n_raters(self) -> int:
        """Number of raters tested."""
        return sum(rater.p is not None for rater in self.by_rater)

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("clustered",)) | {
            "passes": self.passes,
            "n_raters": self.n_raters,
            "false_discovery_rate": RATE,
            "clustered_by_source": self.clustered,
        }


def annotator_test(
    table: RaterTable, scores: ArrayLike, items: LabelledItems, epsilon: float = EPSILON
) -> AnnotatorTest:
    """Test whether a judge could replace the raters of `table`.

    Args:
        table: The ratings.
        scores: The judge's scores (n_items,) on the scale of the ratings, NaN = missing.
        items: The items, in the order of `scores` and of the columns of `table`.
        epsilon: How much worse than a rater the judge may be.

    Raises:
        UsageError: `epsilon` is negative, or 1 or more.
    """
    from scipy.stats import false_discovery_control

    if not 0 <= epsilon < 1:
        raise UsageError(
            f"Epsilon (how much worse than a rater the judge may be) must be 0 or more and below 1; got {epsilon:g}."
        )
    judge = np.asarray(scores, dtype=np.float64)
    usable = (table.n_ratings >= 2) & ~np.isnan(judge)
    clustered = np.unique(items.sources[usable]).size < int(usable.sum())
    # by the mean square difference from the others' labels (its root keeps the order): what all raters say of an item
    # is added up once, and a rater's own label taken out again; centred against cancellation
    middle = float(np.nanmean(np.vstack([table.values, judge])))
    values, judge, n = table.values - middle, judge - middle, table.n_ratings - 1.0
    sums, squares = np.nansum(values, axis=0), np.nansum(values**2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        off_judge, off_rater = (
            (squares - values**2 - 2.0 * x * (sums - values) + n * x**2) / n for x in (judge[None, :], values)
        )
        judge_wins, rater_wins = off_judge <= off_rater + TIE, off_rater <= off_judge + TIE
    duels, tested = usable & table.rated, []
    for rater, at, own, other in zip(table.raters, duels, judge_wins, rater_wins, strict=True):
        wins, losses = own[at].astype(np.float64), other[at].astype(np.float64)
        # the paper's t is over items; over sources each source counts as one
        p = mean_below(losses - wins, epsilon, items.sources[at] if clustered else np.arange(wins.size))
        judge_share, rater_share, gap = (float(x.mean()) if x.size else None for x in (wins, losses, losses - wins))
        tested.append(RaterTest(rater, wins.size, judge_share, rater_share, gap, p))
    known, used = [own for own in tested if own.p is not None], duels.any(axis=0)
    # Benjamini and Yekutieli's rate holds however the tests depend; those without p do not count
    corrected = iter(false_discovery_control([rater.p for rater in known], method="by") if known else ())
    by_rater = tuple(replace(own, replaceable=own.p is not None and bool(next(corrected) <= RATE)) for own in tested)
    few, reason, cautions = sum(0 < own.n_items < LEAST_DUELS for own in tested), "", list[str]()
    if len(known) < 2:
        at_least = f"{LEAST_DUELS} items" + (f" from {LEAST_SOURCES} sources" if clustered else "")
        shared = f"the test needs two raters, each with at least {at_least} that the judge and another rater also rated"
        reason = ONE_RATER if len(tested) < 2 else shared
    elif few:
        cautions.append(
            f"{few} of {len(tested)} raters can't be tested: fewer than {LEAST_DUELS} of their items were also rated "
            "by the judge and another rater."
        )
    if not reason and len(known) < ADVISED_RATERS:
        cautions.append(f"Only {len(known)} raters; we recommend {ADVISED_RATERS} or more.")
    return AnnotatorTest(
        by_rater=by_rater,
        omega=None if reason else sum(own.replaceable for own in by_rater) / len(known),
        rho=None if reason else float(np.mean([rater.judge_wins or 0.0 for rater in known])),
        n_items=int(used.sum()),
        n_sources=int(np.unique(items.sources[used]).size),
        epsilon=epsilon,
        clustered=clustered,
        panel=table.panel,
        reason=reason,
        cautions=tuple(cautions),
    )


def mean_below(d: FloatArray, epsilon: float, sources: IntArray) -> float | None:
    """Return the p of a one-sided t test of whether the mean of `d` (n,) is below `epsilon`.

    The test is clustered by `sources` (n,). With one item per source, it is the usual t test. If all values of `d` are
    equal, p is 0 or 1.

    Returns None with fewer than `LEAST_DUELS` items or `LEAST_SOURCES` sources.
    """
    codes = np.unique(sources, return_inverse=True)[1]
    counts, sums = np.bincount(codes), np.bincount(codes, weights=d)
    if d.size < LEAST_DUELS or counts.size < LEAST_SOURCES:
        return None
    error = length(jackknife_deviations((d.sum() - sums) / (d.size - counts)))
    t = float(d.mean()) - epsilon
    return one_sided(t / error, counts.size - 1) if error > ROUNDING else float(t >= 0)
