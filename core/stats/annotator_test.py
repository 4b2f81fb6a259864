"""The Alternative Annotator Test: whether a judge may take the place of one of the people.

Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge" (ACL).  For each rater j, over
the items that j, the judge and at least one other rater scored, an annotation x is held against the *other raters'
single labels*: S(x) is the share of them equal to x where labels are nominal, and minus the root mean square
difference where they are ordered.  With

    d = [S(j) >= S(judge)] - [S(judge) >= S(j)]        (a tie is 0)

H0 says that the mean of d is epsilon or more: the judge is cheaper, so it may be worse than a person by up to epsilon
(.2 beside experts, .15 beside skilled raters, .1 beside crowd workers: a choice that belongs to the test and is told
with it).  One-sided t test over the items, Wilcoxon's signed ranks under 30 items; Benjamini and Yekutieli (2001) over
the raters at q = .05.  omega is the share of raters for whom H0 is rejected; the judge passes at .5.  rho, the mean
share of items on which the judge does as well as the rater or better, ties counted, compares judges with each other
and decides nothing: judges with rho .77 have failed for every rater.

Two things to know.  The paper's t test takes items as independent.  Items that share a source are not, and there the
test rejects in 14 to 17 % of runs at a nominal 5 %.  So where items share sources, the form clustered by source is the
default (ours, not the paper's; it rejects in 3 to 5 %).  Wilcoxon's test is about the middle of d: where
the mean of d is epsilon it rejects in 13 to 68 % of runs of 15 or 25 items (t from 30 items on: 5 to 6 %, 15 % where
nothing but ties and losses occur).  So under `LEAST_DUELS` items a rater the shares are a hint and nothing passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.json_form import JsonRecord, json_fields
from core.records import FloatArray, IntArray
from core.stats.claims import ADVISED_RATERS, LEAST_DUELS, LEAST_SOURCES, NO_COMMON_RATERS, ONE_RATER, PASSES_AT
from core.stats.correlation import average_ranks, require_finite
from core.stats.intervals import jackknife_deviations, length
from core.stats.items import BoolArray, LabelledItems
from core.stats.raters import RaterTable

EPSILONS = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
"""By how much a judge may be worse than a rater, by who the raters are; the paper's three."""
EPSILON = EPSILONS["skilled"]
RATE = 0.05
"""The false discovery rate."""
FEW = 13
"""Items up to which scipy's Wilcoxon test goes through all signs; computed faster here."""
TIE = 1e-9
"""Mean square differences nearer than this are equal: standardised labels differ in their last bits."""


@dataclass(frozen=True, slots=True)
class AnnotatorTestSettings:
    """How a judge is tested against raters.

    It may be worse than a rater by `epsilon`, from 0 to under 1.  `nominal` labels are classes.  `clustered` tests over
    sources instead of items; None: where items share sources.  `standardise` takes mean and spread out of each rater
    and the judge.  UsageError for another epsilon, and for `nominal` with `standardise`.
    """

    epsilon: float = EPSILON
    nominal: bool = False
    clustered: bool | None = None
    standardise: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < 1:
            raise UsageError(f"Epsilon, what the judge may be worse by, lies from 0 to under 1; {self.epsilon:g} came.")
        if self.nominal and self.standardise:
            raise UsageError("Nominal labels are equal or not: there is nothing to standardise.")


TestName = Literal["t over items", "Wilcoxon over items", "t over sources"]


@dataclass(frozen=True, slots=True)
class RaterTest(JsonRecord):
    """One rater against the judge on `n_items`.

    `judge_wins` and `rater_wins` are the shares of items on which each does as well as the other or better (their sum
    less 1 is the share of ties); `difference` is the mean of d.  `p` None is undefined; `replaceable` is whether H0 is
    rejected after correction.
    """

    rater: str
    n_items: int
    judge_wins: float | None
    rater_wins: float | None
    difference: float | None
    p: float | None
    test: TestName
    replaceable: bool = False


@dataclass(frozen=True)
class AnnotatorTest:
    """The test over all raters.  `omega` None is undefined, `reason` says why; `cautions` what makes it weaker.

    `epsilon` is what the judge may be worse by, `rate` the false discovery rate; `clustered` for the version by source,
    `standardised` where everybody's labels were standardised first.  `n_in_all` counts all raters; of more than
    `MOST_RATERS`, `by_rater` holds those with the most ratings.  `n_items` counts the items that some rater's test
    rests on, `n_sources` their sources.  `withheld` says why there is no verdict although there could be one.
    """

    by_rater: tuple[RaterTest, ...]
    omega: float | None
    rho: float | None
    n_items: int
    n_sources: int
    epsilon: float
    nominal: bool
    clustered: bool
    standardised: bool
    panel: str = ""
    reason: str = ""
    cautions: tuple[str, ...] = ()
    rate: float = RATE
    n_in_all: int = 0
    withheld: str = field(default="", metadata={"silent": True})

    def without_claim(self, reason: str) -> AnnotatorTest:
        """The same figures without a verdict, for `reason` (`withheld`); no rater is called replaceable.

        Unchanged for "".
        """
        if not reason:
            return self
        return replace(
            self, withheld=reason, by_rater=tuple(replace(own, p=None, replaceable=False) for own in self.by_rater)
        )

    @property
    def passes(self) -> bool | None:
        """Whether the judge may stand in for half of the raters or more; None where undefined or a hint only."""
        if (
            self.withheld
            or self.omega is None
            or any(r.n_items < LEAST_DUELS for r in self.by_rater if r.p is not None)
        ):
            return None
        return self.omega >= PASSES_AT

    @property
    def n_raters(self) -> int:
        """Raters that were tested."""
        return sum(rater.p is not None for rater in self.by_rater)

    def as_json(self) -> dict[str, Any]:
        """Everything of the record, null where undefined."""
        renamed = ("rate", "nominal", "clustered")
        return json_fields(self, but=renamed) | {
            "passes": self.passes,
            "n_raters": self.n_raters,
            "false_discovery_rate": self.rate,
            "scoring": "share equal" if self.nominal else "minus root mean square difference",
            "clustered_by_source": self.clustered,
        }


def annotator_test(
    table: RaterTable,
    scores: ArrayLike,
    items: LabelledItems,
    settings: AnnotatorTestSettings | None = None,
) -> AnnotatorTest:
    """Test `scores` (n_items,), NaN = missing, against the people of `table` on the same `items`.

    `scores` must mean what ratings mean, unless the settings standardise.  ValueError when lengths differ, UsageError
    for ±inf.
    """
    how = settings or AnnotatorTestSettings()
    epsilon, nominal, clustered = how.epsilon, how.nominal, how.clustered
    judge = np.asarray(scores, dtype=np.float64)
    if not table.values.shape[1:] == judge.shape == (items.n,):
        raise ValueError(f"one entry per item is needed: {table.values.shape}, {judge.shape}, {items.n} items")
    require_finite(judge)
    rows = np.vstack([table.values, judge])
    if how.standardise:
        rows = _standardised(rows)
    usable = (table.n_ratings >= 2) & ~np.isnan(judge)
    if clustered is None:
        clustered = np.unique(items.sources[usable]).size < int(usable.sum())
    duels, used, tested = _Duels(rows, usable, nominal), np.zeros(items.n, dtype=np.bool_), []
    for row in table.busiest:
        at, wins = duels.of(row)
        used[at] = True
        tested.append(_rater_test(table.raters[row], wins, items.sources[at] if clustered else None, epsilon))
    rejected = benjamini_yekutieli([np.nan if rater.p is None else rater.p for rater in tested])
    known = [rater for rater in tested if rater.p is not None]
    outcome = AnnotatorTest(
        by_rater=tuple(replace(rater, replaceable=bool(hit)) for rater, hit in zip(tested, rejected, strict=True)),
        omega=None,
        rho=None,
        n_items=int(used.sum()),
        n_sources=int(np.unique(items.sources[used]).size),
        epsilon=epsilon,
        nominal=nominal,
        clustered=clustered,
        standardised=how.standardise,
        panel=table.panel,
        n_in_all=table.n_raters,
    )
    if len(known) < 2:
        return replace(outcome, reason=_reason(outcome))
    rho = float(np.mean([rater.judge_wins for rater in known if rater.judge_wins is not None]))
    return replace(outcome, omega=int(rejected.sum()) / len(known), rho=rho, cautions=tuple(_cautions(known)))


def _reason(outcome: AnnotatorTest) -> str:
    if len(outcome.by_rater) < 2:
        return ONE_RATER
    if outcome.clustered and outcome.n_items and outcome.n_sources < LEAST_SOURCES:
        return f"only {outcome.n_sources} sources; clustered by source it takes {LEAST_SOURCES}"
    return NO_COMMON_RATERS


def _cautions(known: Sequence[RaterTest]) -> Iterator[str]:
    if few := sum(rater.n_items < LEAST_DUELS for rater in known):
        yield (
            f"{few} of {len(known)} raters share fewer than {LEAST_DUELS} items with the judge and the others, so "
            "this is a hint and no verdict."
        )
    if len(known) < ADVISED_RATERS:
        yield f"Only {len(known)} raters; {ADVISED_RATERS} or more are advised."


def benjamini_yekutieli(p: ArrayLike, rate: float = RATE) -> BoolArray:
    """Which of `p` (m,) are rejected at false discovery rate `rate`, however the tests depend; NaN never, uncounted.

    The k smallest are rejected for the largest k with p_(k) <= k · rate / (m · (1 + 1/2 + … + 1/m)); with three raters
    the thresholds are .0091, .0182 and .0273.
    """
    values = np.asarray(p, dtype=np.float64)
    rejected = np.zeros(values.shape, dtype=np.bool_)
    defined = np.flatnonzero(~np.isnan(values))
    if not defined.size:
        return rejected
    order = defined[np.argsort(values[defined], kind="stable")]
    ranks = np.arange(1, order.size + 1)
    passed = np.flatnonzero(values[order] <= ranks * rate / (order.size * (1.0 / ranks).sum()))
    if passed.size:
        rejected[order[: passed[-1] + 1]] = True
    return rejected


def mean_below(d: ArrayLike, epsilon: float) -> tuple[float | None, TestName]:
    """One-sided p that the mean of `d` (n,) is under `epsilon`, and the test: t, Wilcoxon under 30; None without items.

    Differences that are all equal leave nothing to doubt in 30 items or more: p is then 0 or 1.
    """
    from scipy.special import stdtr

    values = np.asarray(d, dtype=np.float64)
    if values.size < LEAST_DUELS:
        from scipy.stats import wilcoxon

        moved = values - epsilon
        if not np.any(moved):  # none at all, or all of them exactly epsilon
            return (1.0 if values.size else None), "Wilcoxon over items"
        if np.count_nonzero(moved) <= FEW:
            return _signed_ranks(moved[moved != 0]), "Wilcoxon over items"
        return float(wilcoxon(moved, alternative="less").pvalue), "Wilcoxon over items"
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    if error <= 0:
        return float(values.mean() >= epsilon), "t over items"
    return float(stdtr(values.size - 1, (values.mean() - epsilon) / error)), "t over items"


def _signed_ranks(moved: FloatArray) -> float:
    """Exact one-sided p of Wilcoxon's signed ranks for `moved` (n,) without 0: the chance of a smaller positive sum.

    The distribution over all 2^n signs, ties averaged, rank by rank. scipy draws up each combination: 0.3 s.
    """
    doubled = np.round(2.0 * average_ranks(np.abs(moved))).astype(np.intp)  # average ranks are halves
    chances = np.ones(1)
    for rank in doubled:
        chances = np.concatenate([chances, np.zeros(rank)]) / 2.0 + np.concatenate([np.zeros(rank), chances]) / 2.0
    return float(min(chances[: doubled[moved > 0].sum() + 1].sum(), 1.0))


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────


def _standardised(rows: FloatArray) -> FloatArray:
    """Each row less its mean, over its spread (population form); a constant row is all 0."""
    present = [row[~np.isnan(row)] for row in rows]
    mean = np.array([values.mean() if values.size else 0.0 for values in present])
    spread = np.array([values.std() if values.size else 0.0 for values in present])
    return np.asarray((rows - mean[:, None]) / np.where(spread > 0, spread, 1.0)[:, None], dtype=np.float64)


class _Duels:
    """Who does as well or better against the other raters' labels; the last of `rows` is the judge.

    What all raters say of an item is added up once, and a rater's own label taken out again.
    """

    def __init__(self, rows: FloatArray, usable: BoolArray, nominal: bool) -> None:
        self._rows, self._usable, self._nominal = rows, usable, nominal
        ratings, present = rows[:-1], ~np.isnan(rows[:-1])
        self._n = present.sum(axis=0)
        if nominal:
            row, item = np.nonzero(present)
            self._labels = np.unique(np.round(rows[~np.isnan(rows)] / TIE))
            self._keys, self._counts = np.unique(self._key(ratings[row, item], item), return_counts=True)
        else:
            self._middle = float(np.nanmean(rows)) if present.any() else 0.0
            centred = np.where(present, ratings - self._middle, 0.0)
            self._sums, self._squares = centred.sum(axis=0), (centred**2).sum(axis=0)

    def of(self, row: int) -> tuple[IntArray, FloatArray]:
        """Places (n,) of the items of rater `row`, and (2, n) who did as well or better there: judge, rater."""
        own, judge = self._rows[row], self._rows[-1]
        at = np.flatnonzero(self._usable & ~np.isnan(own))
        worth = self._share_equal if self._nominal else self._minus_mean_square
        sides = [worth(x[at], own[at], at) for x in (judge, own)]
        return at, np.stack([sides[0] >= sides[1] - TIE, sides[1] >= sides[0] - TIE]).astype(np.float64)

    def _minus_mean_square(self, x: FloatArray, own: FloatArray, at: IntArray) -> FloatArray:
        """Minus the mean square difference from the others' labels (its root keeps the order)."""
        x, own, n = x - self._middle, own - self._middle, self._n[at] - 1.0
        sums, squares = self._sums[at] - own, self._squares[at] - own**2
        return np.asarray(-(squares - 2.0 * x * sums + n * x**2) / n, dtype=np.float64)

    def _share_equal(self, x: FloatArray, own: FloatArray, at: IntArray) -> FloatArray:
        """Share of the others' labels that are equal."""
        key = self._key(x, at)
        place = np.minimum(np.searchsorted(self._keys, key), self._keys.size - 1)
        equal = np.where(self._keys[place] == key, self._counts[place], 0) - (key == self._key(own, at))
        return np.asarray(equal / (self._n[at] - 1.0), dtype=np.float64)

    def _key(self, values: FloatArray, item: IntArray) -> IntArray:
        return np.asarray(
            item * self._labels.size + np.searchsorted(self._labels, np.round(values / TIE)), dtype=np.intp
        )


def _rater_test(name: str, wins: FloatArray, sources: IntArray | None, epsilon: float) -> RaterTest:
    """The test of one rater from `wins` (2, n); `sources` (n,) for the version by source."""
    d = wins[1] - wins[0]
    p, test = mean_below(d, epsilon) if sources is None else _mean_below_by_source(d, sources, epsilon)
    if not d.size:
        return RaterTest(name, 0, None, None, None, None, test)
    return RaterTest(name, d.size, float(wins[0].mean()), float(wins[1].mean()), float(d.mean()), p, test)


def _mean_below_by_source(d: FloatArray, sources: IntArray, epsilon: float) -> tuple[float | None, TestName]:
    """Ours: p that the mean of `d` is under `epsilon`, by deleting one source at a time; None under 8 sources."""
    from scipy.special import stdtr

    _, codes = np.unique(sources, return_inverse=True)
    counts, sums = np.bincount(codes), np.bincount(codes, weights=d)
    n = counts.size
    if n < LEAST_SOURCES:
        return None, "t over sources"
    left = (d.sum() - sums) / (d.size - counts)
    error = length(jackknife_deviations(left))
    if error <= 0:
        return float(d.mean() >= epsilon), "t over sources"
    return float(stdtr(n - 1, (d.mean() - epsilon) / error)), "t over sources"
