"""Measure how well judges agree with raters, and test whether two judges agree equally well.

*Alignment* is agreement with the raters' labels, for example a correlation. Every test compares alignments, not scores,
on the items that all compared judges scored. There are two tests:

- The paired test over sources applies to every statistic and level. A source is the text that several items are about.
  With fewer than 8 sources, there is no p.
- Williams' test assumes independent items, and applies only to Pearson at dataset level. With several items per source,
  it finds false differences in 8 to 17 % of draws at a nominal 5 %.

If the two tests disagree, trust the paired test. `core.stats.intervals` explains the standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import (
    Alignment,
    FloatArray,
    Interval,
    JsonRecord,
    Level,
    Measure,
    Statistic,
    check_settings,
    json_fields,
    setting,
)
from core.stats.correlation import LabelledItems, Paired, alignments, level_values, paired, pearson
from core.stats.intervals import (
    HALF_ALPHA,
    LEAST_SOURCES,
    MARGIN,
    ONLY_SOURCE,
    TOO_FEW,
    StandardErrors,
    claim,
    spread_of,
    two_sided,
)
from core.wording import counted


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """Settings for measuring agreement with raters.

    Attributes:
        level: None means "sample" (within each source) if enough sources have several items, otherwise "dataset" (over
            all items).
        seed: Seed for intervals that draw sources at random.
    """

    statistic: Statistic = setting("spearman", "Agreement coefficient.")
    level: Level | None = setting(
        None,
        "Level at which to measure agreement. “auto” is “sample” if enough sources have several items, else “dataset”.",
    )
    seed: int = setting(0, "Seed for all random choices.", low=0)

    def __post_init__(self) -> None:
        check_settings(self)

    def on(self, items: LabelledItems) -> Measure:
        """Return the statistic and level for measuring agreement on `items`."""
        return Measure(self.statistic, self.level or items.usual_level)


Seed = int | Sequence[int] | np.random.Generator
"""Any seed of `numpy.random.default_rng`."""

NEARLY_ONE = 1.0 - 1e-12
"""Judges with a larger absolute correlation differ only by rounding; the test would divide 0 by 0."""

WILLIAMS_GROUPED = (
    "Williams' test assumes independent items, but some items share a source. The test would report a difference "
    "between equal judges in 8 to 17 % of cases instead of 5 %. Use the test that treats sources as independent"
)
WILLIAMS_SINGLE = "Williams' test assumes independent items, and here each item has its own source"


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference in alignment: judge `a` minus judge `b`, both on the same items.

    Attributes:
        value: The difference; None if undefined.
        p: Two-sided p; None if the difference could not be tested, for example with fewer than 8 sources.
        n: Number of labelled items that both judges scored.
        reason: Why `value` is None.
        p_reason: Why `p` is None, if `value` is defined.
    """

    value: float | None
    interval: Interval | None
    p: float | None
    n: int
    a: Alignment
    b: Alignment
    reason: str = ""
    p_reason: str = ""

    @property
    def reversed(self) -> Difference:
        """The alignment of `b` minus the alignment of `a`."""
        interval = self.interval and replace(self.interval, low=-self.interval.high, high=-self.interval.low)
        value, a, b = self.value and -self.value, self.b, self.a
        return replace(self, value=value, interval=interval, a=a, b=b, reason=_undefined(a, b))

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("a", "b"))


def _undefined(a: Alignment, b: Alignment) -> str:
    """Say why the difference is undefined; "" if it is defined."""
    sides = {"first judge": a, "second judge": b}
    return "; ".join(f"{name}: {side.reason}" for name, side in sides.items() if side.value is None)


def align(scores: ArrayLike, items: LabelledItems, measure: Measure, *, seed: Seed = 0) -> Alignment:
    """Measure how well one judge's `scores` (n_items,), NaN = unscored, agree with the labels of `items`.

    For undefined values, missing intervals and errors, see `align_each`.
    """
    return align_each(np.asarray(scores, dtype=np.float64)[None, :], items, measure, seed=seed)[0]


def align_each(scores: ArrayLike, items: LabelledItems, measure: Measure, *, seed: Seed = 0) -> list[Alignment]:
    """Return one Alignment per row of `scores` (n_candidates, n_items), with its 95 % interval.

    An undefined alignment has the value None and a reason. The interval is None if the value is None, with fewer than 2
    sources, or if the standard error is unknown. `seed` affects intervals at system level, and all intervals with over
    400 sources.

    Raises:
        ValueError: `scores` and `items` have different lengths.
        UsageError: A score is ±inf, or the level or statistic is unknown.
    """
    return measured(paired(scores, items), measure, seed)[0]


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    items: LabelledItems,
    measure: Measure,
    *,
    seed: Seed = 0,
) -> Difference:
    """Test whether the alignments of judges `a` and `b` differ, on the items that both scored.

    Returns the alignment of `a` minus that of `b`, with interval and two-sided p. The p is None with fewer than 8
    sources. To test a change over time, pass the later scores as `a`.

    Args:
        a: Scores (n_items,) by the first judge, NaN = unscored.
        b: Scores (n_items,) by the second judge, NaN = unscored.
    """
    data = _on_common_items([a, b], items)
    return _difference(measured(data, measure, seed), 0, 1, data.items.n)


def _on_common_items(scores: ArrayLike | Sequence[ArrayLike], items: LabelledItems) -> Paired:
    """Select from `scores` (n_judges, n_items) the labelled items that every judge scored."""
    matrix = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    missing = np.isnan(matrix).any(axis=0)
    common = items.labelled(np.where(missing, np.nan, items.labels)) if missing.any() else items
    return paired(matrix, common)


def measured(data: Paired, measure: Measure, seed: Seed) -> tuple[list[Alignment], StandardErrors | None]:
    """Return the alignments as in `align_each`, and the standard errors of their intervals.

    The standard errors are None with fewer than 2 sources.
    """
    values = level_values(data, measure)
    bare, spread = alignments(data, measure, *values), None
    if data.items.n_sources >= 2:
        spread = spread_of(data, measure, values, np.random.default_rng(seed))
    found = []
    for k, own in enumerate(bare):
        interval, missing = (None, "" if own.value is None else ONLY_SOURCE) if spread is None else spread.interval(k)
        found.append(replace(own, interval=interval, no_interval=missing))
    return found, spread


def _difference(judges: tuple[list[Alignment], StandardErrors | None], i: int, j: int, n: int) -> Difference:
    """Subtract candidate `j` from candidate `i` of `measured`, both scored on all `n` items.

    Without standard errors there is no interval and no p.
    """
    a, b = judges[0][i], judges[0][j]
    if a.value is None or b.value is None:
        return Difference(None, None, None, n, a, b, _undefined(a, b))
    interval, p, reason = None, None, f"no interval: {a.no_interval}"
    if judges[1] is not None:
        interval, p, reason = judges[1].difference(i, j)
    return Difference(a.value - b.value, interval, p, n, a, b, p_reason=reason)


# ── Williams' test ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Williams(JsonRecord):
    """Williams' test of whether two judges' Pearson correlations with the same labels differ.

    Attributes:
        t: Positive if the first judge agrees better; None if the test is undefined.
        df: n − 3; None if the test is undefined.
        p_two_sided: None if the test is undefined, or with fewer than 8 sources.
        n: Number of common items.
        reason: Why the p is None.
        note: Whether the items are independent, as the test assumes.
    """

    t: float | None
    df: int | None
    p_two_sided: float | None
    n: int
    reason: str
    note: str


def williams_test(a: ArrayLike, b: ArrayLike, items: LabelledItems) -> Williams:
    """Test whether two judges differ in their Pearson correlation with the labels (Williams 1959).

    `a` and `b` are the judges' scores (n_items,), NaN = missing. The test uses the labelled items that both judges
    scored. There is no p with fewer than 8 sources. Graham and Baldwin (2014) recommend the test for metrics.

    The test is undefined in three cases:

    - There are fewer than 4 items.
    - All labels, or all scores of one judge, are equal.
    - The scores of one judge are a linear function of the other judge's scores.

    Raises:
        ValueError: `a`, `b` and `items` have different lengths.
        UsageError: A score is ±inf.
    """
    data = _on_common_items([a, b], items)
    labels, n, n_sources = data.items.labels, data.items.n, data.items.n_sources
    note = WILLIAMS_GROUPED if n_sources < n else WILLIAMS_SINGLE
    t = np.nan
    if n > 3:
        r_a, r_b = pearson(data.scores, labels).tolist()
        t = williams_t(r_a, r_b, float(pearson(data.scores[0], data.scores[1])), n)
    if np.isnan(t):
        reason = f"Williams' test needs at least 4 common items; there are only {n}"
        alike = (
            "all labels are equal, all scores of one judge are equal, or one judge's scores are a linear function of "
            "the other judge's scores"
        )
        return Williams(None, None, None, n, alike if n > 3 else reason, note)
    tested = n_sources >= LEAST_SOURCES
    return Williams(t, n - 3, two_sided(t, n - 3) if tested else None, n, "" if tested else TOO_FEW, note)


def williams_t(r_a: float, r_b: float, r_ab: float, n: int) -> float:
    """Compute Williams' t for n > 3 items; NaN if the denominator is 0 or |r_ab| is 1.

    `r_a` and `r_b` are the judges' correlations with the labels. `r_ab` is the correlation between the judges. There
    are n − 3 degrees of freedom.

    t = (r_a − r_b) · √((n−1)(1+r_ab)) / √(2K(n−1)/(n−3) + (r_a+r_b)²/4 · (1−r_ab)³)

    K = 1 − r_a² − r_b² − r_ab² + 2·r_a·r_b·r_ab
    """
    k = max(1.0 - r_a**2 - r_b**2 - r_ab**2 + 2.0 * r_a * r_b * r_ab, 0.0)
    below = 2.0 * k * (n - 1.0) / (n - 3.0) + (r_a + r_b) ** 2 / 4.0 * (1.0 - r_ab) ** 3
    defined = abs(r_ab) <= NEARLY_ONE and below > 0
    return (r_a - r_b) * float(np.sqrt((n - 1.0) * (1.0 + r_ab) / below)) if defined else np.nan


# ── a whole table ────────────────────────────────────────────────────────────────────────────────────────────


def holm(p: ArrayLike) -> FloatArray:
    """Return p values corrected for multiple testing with Holm's method (1979), in the shape of `p`.

    The smallest of m p values is multiplied by m, the next by m − 1, and so on. A corrected p is at most 1, and at
    least the corrected p of any smaller p value. NaN stays NaN and does not count towards m.

    If you reject all hypotheses with a corrected p of at most α, the chance of any false rejection is at most α, even
    if the tests depend on each other.
    """
    values = np.asarray(p, dtype=np.float64)
    corrected = np.full(values.shape, np.nan)
    order = np.argsort(values, axis=None)[: np.count_nonzero(~np.isnan(values))]  # NaN last
    steps = np.maximum.accumulate(values.flat[order] * np.arange(order.size, 0, -1))
    corrected.flat[order] = np.minimum(steps, 1.0)
    return corrected


@dataclass(frozen=True)
class PairwiseComparison:
    """Comparison of all pairs of judges on the items that every judge scored.

    Attributes:
        alignments: One alignment per judge.
        differences: (first, second), with first < second → the difference between the two judges.
        p_holm: Two-sided p of each pair (n_judges, n_judges), Holm-corrected for all pairs. NaN on the diagonal, with
            fewer than 8 sources, or if undefined.
        n: Number of items that every judge scored.
    """

    alignments: tuple[Alignment, ...]
    differences: Mapping[tuple[int, int], Difference]
    p_holm: FloatArray
    n: int

    def pair(self, first: int, second: int) -> Difference:
        """Return the difference in alignment: judge `first` minus judge `second`."""
        return self.differences[first, second] if first < second else self.differences[second, first].reversed

    @property
    def difference(self) -> FloatArray:
        """Differences in alignment (n_judges, n_judges): the row's judge minus the column's. NaN = undefined."""
        points = np.array([np.nan if own.value is None else own.value for own in self.alignments])
        return np.asarray(points[:, None] - points[None, :])


def compare_judges(scores: ArrayLike, items: LabelledItems, measure: Measure, *, seed: Seed = 0) -> PairwiseComparison:
    """Compare all pairs of judges on the labelled items that every judge scored.

    `scores` is (n_judges, n_items), NaN = unscored. Each pair has the same result as in `paired_difference` on the
    compared items. Raises UsageError if no labelled item was scored by every judge.
    """
    data = _on_common_items(scores, items)
    if not data.items.n:
        raise UsageError(
            "No labelled item has a score from every judge, so Concord can't compare the judges. Leave out the judge "
            "with the fewest scores, or score the missing items."
        )
    judges = measured(data, measure, seed)
    k, n = len(judges[0]), data.items.n
    first, second = np.triu_indices(k, 1)
    differences = {(i, j): _difference(judges, i, j, n) for i, j in zip(first.tolist(), second.tolist(), strict=True)}
    p_holm = np.full((k, k), np.nan)
    p_holm[first, second] = holm(np.array([gap.p for gap in differences.values()], dtype=np.float64))
    p_holm[second, first] = p_holm[first, second]
    return PairwiseComparison(tuple(judges[0]), differences, p_holm, n)


# ── two judges ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two judges on their common items.

    Attributes:
        bar: Comparison of both judges with a plain regression fitted to the labels; None if no regression could be
            fitted.
    """

    difference: Difference
    williams: Williams
    bar: RegressionBar | None = None

    @property
    def n_common(self) -> int:
        return self.difference.n

    def as_json(self) -> dict[str, Any]:
        """Return the JSON output of the `compare` command."""
        return {
            "n_common": self.n_common,
            "a": self.difference.a.as_json(),
            "b": self.difference.b.as_json(),
            "difference": self.difference.as_json(),
            "williams": self.williams.as_json(),
            "bar": None if self.bar is None else self.bar.as_json(),
        }


# ── comparison with a plain regression on the same labels, which criteria should beat ───────────────────────────

BarStanding = Literal["better", "worse", "as well", "open", "untested", "undefined"]
"""How a judge compares with the regression; "as well" means that the regression agrees as well as the judge."""


@dataclass(frozen=True)
class RegressionBar:
    """Comparison of judges with a plain regression fitted to the raters' labels.

    The regression predicts the label of each item after being fitted to the labels of other sources. Good judges should
    outperform it.

    Attributes:
        alignment: Alignment of the regression's predictions.
        n_labels: Approximate number of labels that the regression was fitted to.
        minus: For each judge, its alignment minus the regression's, on the items that all of them scored. The p values
            are Holm-corrected for the number of judges.
    """

    alignment: Alignment
    n_labels: int
    minus: tuple[Difference, ...]

    @property
    def name(self) -> str:
        return f"plain regression on {counted(self.n_labels, 'label')}"

    def standing(self, judge: int) -> BarStanding:
        """Classify judge number `judge` in comparison with the regression.

        "Beyond chance" means that the 95 % interval of an alignment lies above `MARGIN` (0.05).

        - "better": the judge's alignment is significantly higher, and beyond chance.
        - "worse": the regression's alignment is significantly higher, and beyond chance.
        - "as well": the interval of the difference (judge minus regression) ends below `MARGIN`, and the regression's
          alignment is beyond chance.
        - "undefined": the difference can't be computed.
        - "untested": there is no p value.
        - "open": nothing else applies.
        """
        gap = self.minus[judge]
        shown = claim(gap.value, gap.interval, gap.p)
        if shown in ("undefined", "untested"):
            return shown
        if gap.p is not None and gap.p > HALF_ALPHA:
            shown = "open"
        if shown == "higher" and _beyond_chance(gap.a):
            return "better"
        if not _beyond_chance(self.alignment):
            return "open"
        if shown == "lower":
            return "worse"
        return "as well" if gap.interval is not None and gap.interval.high < MARGIN else "open"

    def without_p(self, judge: int, reason: str) -> RegressionBar:
        """Return a copy in which judge number `judge` has no p; `reason` says why."""
        minus = [replace(gap, p=None, p_reason=reason) if k == judge else gap for k, gap in enumerate(self.minus)]
        return replace(self, minus=tuple(minus))

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name} | json_fields(self)


def compare_with_regression(
    predicted: FloatArray,
    n_labels: int,
    scores: FloatArray,
    items: LabelledItems,
    measure: Measure,
    *,
    seed: Seed = 0,
) -> RegressionBar:
    """Compare the alignment of judges with the alignment of a regression.

    Args:
        predicted: The regression's predictions (n_items,), NaN = none.
        n_labels: Number of labels that the regression was fitted to.
        scores: The judges' scores (n_judges, n_items), NaN = unscored.
    """
    known = items.labelled(np.where(np.isnan(predicted), np.nan, items.labels))
    data = paired(np.vstack([predicted, scores]), known)
    both = measured(data, measure, seed)
    minus = [_difference(both, k + 1, 0, data.items.n) for k in range(len(scores))]
    corrected = holm([np.nan if gap.p is None else gap.p for gap in minus]).tolist()
    settled = [gap if gap.p is None else replace(gap, p=p) for gap, p in zip(minus, corrected, strict=True)]
    return RegressionBar(both[0][0], n_labels, tuple(settled))


def _beyond_chance(alignment: Alignment) -> bool:
    return alignment.interval is not None and alignment.interval.low > MARGIN
