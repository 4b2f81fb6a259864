"""Alignments with their intervals, whether one judge aligns better than another, and all pairs of many judges.

How standard errors come about at each level, and what there is no interval for, stands in `core.stats.intervals`.  A p
is given from `LEAST_SOURCES` sources on; below there is the interval alone, `p` is None and `p_reason` says so.  At
sample level the sources are those with a coefficient, and the interval speaks about new sources judged by the same
systems.

Every test asks about the difference in *alignment* with people, not in scores, and uses only the items that all judges
compared have a score for.  Williams' test assumes independent items and fits Pearson at dataset level alone; with
several items a source it finds differences that are not there in 8 to 17 % of draws at a nominal 5 %.  The paired test
over sources fits every statistic and level: where the two disagree, believe it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.json_form import JsonRecord, json_fields
from core.records import Alignment, FloatArray, Interval, Level, Measure, Statistic
from core.stats.claims import (
    COLLINEAR,
    HALF_ALPHA,
    LEAST_SOURCES,
    MARGIN,
    NOT_ASKED_FOR,
    ONLY_SOURCE,
    TOO_FEW,
    alone_words,
    claim,
    undefined_sides,
)
from core.stats.correlation import pearson
from core.stats.intervals import Spread, spread_of
from core.stats.items import BySource, LabelledItems, Paired, paired
from core.stats.levels import alignments, level_values
from core.wording import counted, estimate, p_figure, signed, signed_range

RESAMPLES = 1_000
"""Resamples of sources behind an interval at system level; the other levels draw none."""


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """How agreement with raters is measured.

    `level` None is sample level where the groups allow it, else dataset.  `bootstrap` counts resamples of sources
    behind intervals at system level (0: no interval); `seed` draws them.
    """

    statistic: Statistic = "spearman"
    level: Level | None = None
    bootstrap: int = RESAMPLES
    seed: int = 0

    def on(self, items: LabelledItems) -> Measure:
        """Return the statistic, and the level at which `items` are measured."""
        return Measure(self.statistic, self.level or items.usual_level)


Seed = int | Sequence[int] | np.random.Generator
"""What `numpy.random.default_rng` takes: the same seed draws the same resamples."""

NEARLY_ONE = 1.0 - 1e-12
"""Judges whose correlation is beyond this, to either side, differ only by rounding; the test divides 0 by 0 there."""

WILLIAMS_GROUPED = (
    "Williams' test takes items as independent; these share sources, where it calls equal judges different in 8 to "
    "17 % of cases instead of 5 %: go by the test over sources"
)
WILLIAMS_SINGLE = "Williams' test takes items as independent: here each is a source of its own"


@dataclass(frozen=True, slots=True)
class Difference:
    """Alignment of judge `a` minus alignment of judge `b`, both on the same items.

    `value` None is undefined, with `reason`.  `p` is two-sided, None where there is none, with `p_reason` (fewer than
    8 sources, say).  `n` counts the common items (labelled and scored by both).
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
        """Alignment of `b` minus alignment of `a`."""
        interval = self.interval and replace(self.interval, low=-self.interval.high, high=-self.interval.low)
        return replace(self, value=None if self.value is None else -self.value, interval=interval, a=self.b, b=self.a)

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("a", "b"))


def align(
    scores: ArrayLike, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> Alignment:
    """The Alignment of one judge's `scores` (n_items,), NaN = unscored, with its interval; see `align_each`."""
    return align_each(np.asarray(scores, dtype=np.float64)[None, :], items, measure, resamples=resamples, seed=seed)[0]


def align_each(
    scores: ArrayLike, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> list[Alignment]:
    """One Alignment per row of `scores` (n_candidates, n_items), with its 95 % interval.

    A value is None with its reason where undefined; its interval also with fewer than 2 sources, or where nothing
    tells its spread.  `resamples` 0 leaves the intervals out; otherwise it matters at system level only, `seed` there
    and with over 400 sources.  ValueError when lengths differ, UsageError for ±inf or an unknown level or statistic.
    """
    return measured(paired(scores, items), measure, resamples, seed).alignments


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    items: LabelledItems,
    measure: Measure,
    *,
    resamples: int = RESAMPLES,
    seed: Seed = 0,
) -> Difference:
    """Alignment of `a` minus alignment of `b`, (n_items,) each, on the items both scored, with interval, two-sided p.

    For a change from before to after, `a` is after.  It tests the difference in *alignment*, not in scores.  Swapping
    a and b flips the sign of value and interval and keeps p.  There is no p under 8 sources, nor with `resamples` 0.
    """
    return measured(_on_common_items([a, b], items), measure, resamples, seed).difference(0, 1)


def _on_common_items(scores: ArrayLike | Sequence[ArrayLike], items: LabelledItems) -> Paired:
    """`scores` (n_judges, n_items) on the labelled items that every judge has a score for."""
    matrix = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    missing = np.isnan(matrix).any(axis=0)
    common = items.labelled(np.where(missing, np.nan, items.labels)) if missing.any() else items
    return paired(matrix, common)


class Measured(NamedTuple):
    """Alignments on `n` items with the spread behind their intervals; None where none can be had or was asked for."""

    alignments: list[Alignment]
    spread: Spread | None
    n: int

    def difference(self, i: int, j: int) -> Difference:
        """Candidate `i` minus candidate `j`, both scored on all items; without a spread no interval and no p."""
        a, b = self.alignments[i], self.alignments[j]
        if a.value is None or b.value is None:
            return Difference(None, None, None, self.n, a, b, undefined_sides({"first judge": a, "second judge": b}))
        if self.spread is None:
            return Difference(
                a.value - b.value, None, None, self.n, a, b, p_reason=f"there is no interval: {a.no_interval}"
            )
        tested = self.spread.difference(i, j)
        return Difference(a.value - b.value, tested.interval, tested.p, self.n, a, b, p_reason=tested.reason)


def measured(data: Paired, measure: Measure, resamples: int, seed: Seed) -> Measured:
    """`align_each` on paired data, with the spread for differences."""
    values, n = level_values(data, measure), data.items.labels.size
    bare = alignments(data, measure, values)
    if data.items.n_sources < 2 or resamples < 1:
        why = ONLY_SOURCE if data.items.n_sources < 2 else NOT_ASKED_FOR
        return Measured([own if own.value is None else replace(own, no_interval=why) for own in bare], None, n)
    spread = spread_of(data, measure, values, np.random.default_rng(seed), resamples)
    found = [
        replace(own, interval=spread.interval(k), no_interval=spread.why_no_interval(k)) for k, own in enumerate(bare)
    ]
    return Measured(found, spread, n)


# ── Williams' test ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Williams(JsonRecord):
    """Williams' test of two dependent Pearson correlations that share the labels.

    `t` is positive when the first judge aligns better.  `p_one_sided` is the chance of such a t or a larger one if
    both align equally (against "the first is better"), `p_two_sided` of one as far from 0.  All None where undefined,
    with `reason`; under 8 sources only the p are.  `n` counts the common items, `df` = n − 3.  `note` says what the
    test assumes and what that does here.
    """

    t: float | None
    df: int | None
    p_one_sided: float | None
    p_two_sided: float | None
    n: int
    reason: str = ""
    note: str = WILLIAMS_SINGLE


def williams_test(a: ArrayLike, b: ArrayLike, items: LabelledItems) -> Williams:
    """Test whether Pearson r of `a` with the labels differs from that of `b`; each (n_items,), NaN = missing.

    Dataset level, on the items all three have; under 8 sources there is no p.  Undefined with up to 3 items, a
    constant side, or judges that are the same up to a linear map.  Williams (1959), recommended for metrics by Graham
    and Baldwin (2014).  ValueError when lengths differ, UsageError for ±inf.
    """
    from scipy.special import stdtr

    data = _on_common_items([a, b], items)
    n = data.items.labels.size
    note = WILLIAMS_GROUPED if data.items.n_sources < n else WILLIAMS_SINGLE
    t = float(_williams_t(data.scores, data.items)[0, 1]) if n > 3 else np.nan
    if np.isnan(t):
        return Williams(None, None, None, None, n, _untested(data.scores, data.items), note)
    if data.items.n_sources < LEAST_SOURCES:
        return Williams(t, n - 3, None, None, n, TOO_FEW, note)
    return Williams(t, n - 3, float(stdtr(n - 3, -t)), float(min(1.0, 2.0 * stdtr(n - 3, -abs(t)))), n, note=note)


def williams_t(r_a: ArrayLike, r_b: ArrayLike, r_ab: ArrayLike, n: ArrayLike) -> FloatArray:
    """Williams' t, element by element, NaN where n ≤ 3 or nothing is left to divide by.

    t = (r_a − r_b) · √((n−1)(1+r_ab)) / √(2K(n−1)/(n−3) + (r_a+r_b)²/4 · (1−r_ab)³) with
    K = 1 − r_a² − r_b² − r_ab² + 2·r_a·r_b·r_ab; df = n − 3.  `r_a` and `r_b` correlate each judge with the labels,
    `r_ab` the judges with each other.
    """
    ra, rb, rab, count = (np.asarray(side, dtype=np.float64) for side in (r_a, r_b, r_ab, n))
    k = np.maximum(1.0 - ra**2 - rb**2 - rab**2 + 2.0 * ra * rb * rab, 0.0)
    freedom = np.where(count > 3, count - 3.0, np.nan)
    below = 2.0 * k * (count - 1.0) / freedom + (ra + rb) ** 2 / 4.0 * (1.0 - rab) ** 3
    defined = below > 0
    above = (ra - rb) * np.sqrt((count - 1.0) * (1.0 + rab))
    return np.asarray(np.where(defined, above, np.nan) / np.sqrt(np.where(defined, below, 1.0)), dtype=np.float64)


def _williams_t(scores: FloatArray, items: BySource) -> FloatArray:
    """(n_judges, n_judges) t of complete rows, row against column; NaN where undefined."""
    with_labels = pearson(scores, items.labels)
    between = np.stack([pearson(scores, row) for row in scores])
    t = williams_t(with_labels[:, None], with_labels[None, :], between, items.labels.size)
    return np.where(np.abs(between) <= NEARLY_ONE, t, np.nan)


def _untested(scores: FloatArray, items: BySource) -> str:
    """Why there is no t between two complete rows."""
    n = items.labels.size
    if n <= 3:
        return f"Williams' test needs at least 4 common items; there are {n}"
    sides = {"first judge's scores": scores[0], "second judge's scores": scores[1], "labels": items.labels}
    constant = [name for name, side in sides.items() if side.min() == side.max()]
    return f"all {' and all '.join(constant)} are equal on the common items" if constant else COLLINEAR


# ── a whole table ────────────────────────────────────────────────────────────────────────────────────────────


def holm(p: ArrayLike) -> FloatArray:
    """p values corrected for their number, in the shape given; NaN (undefined) stays NaN and is not counted.

    The smallest of m is multiplied by m, the next by m − 1, …, never below the one before, at most 1 (Holm 1979).
    Rejecting those up to α keeps the chance of any false rejection in the table at α, however the tests depend.
    UsageError for values outside [0, 1].
    """
    values = np.asarray(p, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise UsageError("p values lie between 0 and 1.")
    corrected = np.full(values.shape, np.nan)
    defined = ~np.isnan(values)
    known = values[defined]
    order = np.argsort(known, kind="stable")
    own = np.empty(known.size)
    own[order] = np.minimum(np.maximum.accumulate(known[order] * np.arange(known.size, 0, -1)), 1.0)
    corrected[defined] = own
    return corrected


@dataclass(frozen=True)
class PairwiseComparison:
    """Every judge against every other on the `n` items that all of them scored.

    `alignments` has one a judge, `differences` one a pair (first < second).  The matrices are (n_judges, n_judges), NaN
    = undefined and on the diagonal: `p_holm` (two-sided, paired over sources, corrected over the pairs of the table),
    and `williams_p_holm`, which is about Pearson at dataset level whatever the table shows.  All p are NaN under 8
    sources.  `grouped`: whether sources have several items.
    """

    alignments: tuple[Alignment, ...]
    differences: Mapping[tuple[int, int], Difference]
    p_holm: FloatArray
    williams_p_holm: FloatArray
    n: int
    grouped: bool

    def pair(self, first: int, second: int) -> Difference:
        """Judge `first` minus judge `second`."""
        difference = self.differences[first, second] if first < second else self.differences[second, first].reversed
        if difference.value is not None:
            return difference
        return replace(
            difference, reason=undefined_sides({f"judge {k + 1}": self.alignments[k] for k in (first, second)})
        )

    @property
    def difference(self) -> FloatArray:
        """(n_judges, n_judges) alignment of row minus that of column; NaN = undefined."""
        points = np.array([np.nan if own.value is None else own.value for own in self.alignments])
        return np.asarray(points[:, None] - points[None, :])


def compare_judges(
    scores: ArrayLike, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> PairwiseComparison:
    """Compare all pairs of `scores` (n_judges, n_items) at once: one deviation a judge and source serves every pair.

    On the labelled items that every judge scored; a pair gives what `paired_difference` gives on those items.
    UsageError when there are no such items.
    """
    data = _on_common_items(scores, items)
    if not data.items.labels.size:
        raise UsageError(
            "No labelled item has a score from every judge, so there is nothing to compare on. "
            "Leave out the judge with the fewest scores, or score the missing items."
        )
    judges = measured(data, measure, resamples, seed)
    k = len(judges.alignments)
    differences = {(i, j): judges.difference(i, j) for j in range(k) for i in range(j)}
    return PairwiseComparison(
        tuple(judges.alignments),
        differences,
        _holm_of_pairs({pair: difference.p for pair, difference in differences.items()}, k),
        _holm_of_pairs(_williams_p(data.scores, data.items), k),
        judges.n,
        data.items.n_sources < judges.n,
    )


def _williams_p(scores: FloatArray, items: BySource) -> dict[tuple[int, int], float | None]:
    """Two-sided p of Williams' test for every pair of complete rows; none under 8 sources."""
    from scipy.special import stdtr

    if items.n_sources < LEAST_SOURCES:
        return {}
    p = np.minimum(1.0, 2.0 * stdtr(items.labels.size - 3, -np.abs(_williams_t(scores, items))))
    return {(i, j): float(p[i, j]) for j in range(p.shape[0]) for i in range(j)}


def _holm_of_pairs(p: Mapping[tuple[int, int], float | None], n_judges: int) -> FloatArray:
    """(n_judges, n_judges) corrected p: each pair counts once, though it stands in the matrix twice."""
    corrected = np.full((n_judges, n_judges), np.nan)
    for (i, j), value in zip(p, holm([np.nan if value is None else value for value in p.values()]), strict=True):
        corrected[i, j] = corrected[j, i] = value
    return corrected


# ── two judges ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two judges on their common items: the paired difference (it holds both alignments) and Williams' test.

    `bar` is what a plain regression on the labels reaches there, beside a and b; None where none could be fitted.
    """

    difference: Difference
    williams: Williams
    bar: Bar | None = None

    @property
    def n_common(self) -> int:
        return self.difference.n

    def as_json(self) -> dict[str, Any]:
        """The JSON of `compare` (DESIGN §3)."""
        return {
            "n_common": self.n_common,
            "a": self.difference.a.as_json(),
            "b": self.difference.b.as_json(),
            "difference": self.difference.as_json(),
            "williams": self.williams.as_json(),
            "bar": None if self.bar is None else self.bar.as_json(),
        }


# ── the bar: a plain regression on the same labels, which criteria have to clear ──────────────────────────────────

Standing = Literal["better", "worse", "as well", "open", "untested", "undefined"]
"""Of a judge beside the regression; "as well": it is not better, the regression agrees as well."""


@dataclass(frozen=True)
class Bar:
    """The `alignment` of a regression that learnt from about `n_labels` labels of other sources.

    `minus` holds each judge minus the regression, on the items that both scored, p corrected after Holm over them.
    """

    alignment: Alignment
    n_labels: int
    minus: tuple[Difference, ...]

    @property
    def name(self) -> str:
        return f"plain regression on {counted(self.n_labels, 'label')}"

    def standing(self, judge: int) -> Standing:
        """Where judge number `judge` stands beside the regression, no stronger than the figures allow.

        Who is better has to agree beyond chance at all, by more than `MARGIN`; as well is an interval of the difference
        that ends below `MARGIN`, beside a regression that agrees beyond chance.
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

    def words(self, judge: int, *, criteria: bool = False) -> str:
        """Whether judge number `judge` clears the bar, in a sentence; "" where one of the two is undefined.

        Of a judge known to score by `criteria` it says what they buy when it does not.
        """
        gap = self.minus[judge]
        shown = claim(gap.value, gap.interval, gap.p)
        buys = ", so the criteria buy readability, not agreement" if criteria else ""
        if gap.p is None:
            p = f"no p, for {gap.p_reason}"
        elif gap.p > HALF_ALPHA and shown in ("higher", "lower"):  # the difference looks shown and is not
            p = p_figure(gap.p, limit=HALF_ALPHA)
        else:
            p = p_figure(gap.p) + alone_words(gap.interval, gap.p)
        other = ""
        if shown == "higher" and gap.p is not None and gap.p <= HALF_ALPHA:
            other = f"; its own agreement, {estimate(gap.a)}, would have to exceed {MARGIN:g} beyond chance"
        figures = f"{estimate(self.alignment)}, difference {signed(gap.value)} {signed_range(gap.interval)}, {p}"
        return {
            "better": f"It agrees better than a {self.name} does: {figures}.",
            "worse": f"A {self.name} agrees better{buys}: {figures}.",
            "as well": f"A {self.name} agrees as well: {figures}.",
            "open": f"That it agrees better than a {self.name} is not shown: {figures}{other}.",
            "untested": f"A {self.name} stands at {figures}.",
            "undefined": "",
        }[self.standing(judge)]

    def without_p(self, judge: int, reason: str) -> Bar:
        """The same, judge number `judge` without a p, for `reason`."""
        minus = [replace(gap, p=None, p_reason=reason) if k == judge else gap for k, gap in enumerate(self.minus)]
        return replace(self, minus=tuple(minus))

    def as_json(self) -> dict[str, Any]:
        words = [self.words(k) or None for k in range(len(self.minus))]
        return {"name": self.name} | json_fields(self) | {"words": words}


def bar_beside(
    predicted: FloatArray,
    n_labels: int,
    scores: FloatArray,
    items: LabelledItems,
    measure: Measure,
    *,
    resamples: int = RESAMPLES,
    seed: Seed = 0,
) -> Bar:
    """`scores` (n_judges, n_items) beside what a regression `predicted` (n_items,) for each item, NaN for none."""
    known = items.labelled(np.where(np.isnan(predicted), np.nan, items.labels))
    both = measured(paired(np.vstack([predicted, scores]), known), measure, resamples, seed)
    minus = [both.difference(k + 1, 0) for k in range(len(scores))]
    corrected = holm([np.nan if gap.p is None else gap.p for gap in minus]).tolist()
    settled = [gap if gap.p is None else replace(gap, p=p) for gap, p in zip(minus, corrected, strict=True)]
    return Bar(both.alignments[0], n_labels, tuple(settled))


def _beyond_chance(alignment: Alignment) -> bool:
    return alignment.interval is not None and alignment.interval.low > MARGIN
