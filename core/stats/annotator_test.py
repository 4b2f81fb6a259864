"""The Alternative Annotator Test: whether a judge may take the place of one of the raters.

Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge" (ACL).  For each rater j, over
the items that j, the judge and at least one other rater scored, an annotation x is held against the *other raters'
single labels*: S(x) is the share of them equal to x where labels are nominal, and minus the root mean square
difference where they are ordered.  With

    d = [S(j) >= S(judge)] - [S(judge) >= S(j)]        (a tie is 0)

H0 says that the mean of d is epsilon or more: the judge is cheaper, so it may be worse than a person by up to epsilon
(0.2 for experts, 0.15 for skilled raters, 0.1 for crowd workers: a choice that belongs to the test and is reported with
it).  One-sided t test over the items, Wilcoxon's signed ranks under 30 items; Benjamini and Yekutieli (2001) over
the raters at q = 0.05.  omega is the share of raters for whom H0 is rejected; the judge passes at 0.5.  rho, the mean
share of items on which the judge does as well as the rater or better, ties counted, compares judges with each other
and decides nothing: judges with rho 0.77 have failed for every rater.

Two things to know.  The paper's t test takes items as independent.  Items that share a source are not, and there the
test rejects in 14 to 17 % of runs at a nominal 5 %.  So where items share sources, the form clustered by source is the
default (ours, not the paper's; it rejects in 3 to 5 %).  Wilcoxon's test is about the middle of d: where
the mean of d is epsilon it rejects in 13 to 68 % of runs of 15 or 25 items (t from 30 items on: 5 to 6 %, 15 % where
nothing but ties and losses occur).  So under `LEAST_DUELS` items a rater the shares are a hint and nothing passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.json_form import JsonRecord, json_fields
from core.records import FloatArray, IntArray
from core.stats.claims import ADVISED_RATERS, LEAST_DUELS, LEAST_SOURCES, NO_COMMON_RATERS, ONE_RATER, PASSES_AT
from core.stats.correlation import average_ranks, require_finite
from core.stats.intervals import jackknife_deviations, length, one_sided
from core.stats.items import BoolArray, LabelledItems
from core.stats.raters import RaterTable

EPSILONS = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
"""By how much a judge may be worse than a rater, by who the raters are; the paper's three."""
EPSILON = EPSILONS["skilled"]
RATE = 0.05
"""The false discovery rate."""
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

    `epsilon` is what the judge may be worse by; `clustered` for the version by source, `standardised` where everybody's
    labels were standardised first.  `n_in_all` counts all raters; of more than `MOST_RATERS`, `by_rater` holds those
    with the most ratings.  `n_items` counts the items that some rater's test rests on, `n_sources` their sources.
    `withheld` says why there is no verdict although there could be one.
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
    n_in_all: int = 0
    withheld: str = field(default="", metadata={"silent": True})

    def without_claim(self, reason: str) -> AnnotatorTest:
        """Keep the figures and withhold the verdict for `reason`; unchanged for ""."""
        if not reason:
            return self
        by_rater = tuple(replace(own, p=None, replaceable=False) for own in self.by_rater)
        return replace(self, withheld=reason, by_rater=by_rater)

    @property
    def passes(self) -> bool | None:
        """Whether the judge may stand in for half of the raters or more; None where undefined or a hint only."""
        hint = any(rater.n_items < LEAST_DUELS for rater in self.by_rater if rater.p is not None)
        return None if self.withheld or self.omega is None or hint else self.omega >= PASSES_AT

    @property
    def n_raters(self) -> int:
        """Raters that were tested."""
        return sum(rater.p is not None for rater in self.by_rater)

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("nominal", "clustered")) | {
            "passes": self.passes,
            "n_raters": self.n_raters,
            "false_discovery_rate": RATE,
            "scoring": "share equal" if self.nominal else "minus root mean square difference",
            "clustered_by_source": self.clustered,
        }


def annotator_test(
    table: RaterTable, scores: ArrayLike, items: LabelledItems, settings: AnnotatorTestSettings | None = None
) -> AnnotatorTest:
    """Test `scores` (n_items,), NaN = missing, against the raters of `table` on the same `items`.

    `scores` must mean what ratings mean, unless the settings standardise.  ValueError when lengths differ, UsageError
    for ±inf.
    """
    how = settings or AnnotatorTestSettings()
    judge = np.asarray(scores, dtype=np.float64)
    if not table.values.shape[1:] == judge.shape == (items.n,):
        raise ValueError(f"one entry per item is needed: {table.values.shape}, {judge.shape}, {items.n} items")
    require_finite(judge)
    usable = (table.n_ratings >= 2) & ~np.isnan(judge)
    clustered = how.clustered
    if clustered is None:
        clustered = np.unique(items.sources[usable]).size < int(usable.sum())
    rows = np.vstack([table.values, judge])
    if how.standardise:
        present = [row[~np.isnan(row)] for row in rows]
        mean, spread = (np.array([[own(x) if x.size else 0.0] for x in present]) for own in (np.mean, np.std))
        rows = (rows - mean) / np.where(spread > 0, spread, 1.0)
    judge_wins, rater_wins = _share_equal(rows, table.busiest) if how.nominal else _mean_square(rows, table.busiest)
    duels, tested = usable & table.rated[table.busiest], []
    for row, at, own, other in zip(table.busiest, duels, judge_wins, rater_wins, strict=True):
        wins, losses = own[at].astype(np.float64), other[at].astype(np.float64)
        d = losses - wins
        p, test = mean_below(d, how.epsilon, items.sources[at] if clustered else None)
        judge_share, rater_share, gap = (float(x.mean()) if d.size else None for x in (wins, losses, d))
        tested.append(RaterTest(table.raters[row], d.size, judge_share, rater_share, gap, p, test))
    rejected = benjamini_yekutieli([np.nan if rater.p is None else rater.p for rater in tested])
    known, used = [rater for rater in tested if rater.p is not None], duels.any(axis=0)
    few = sum(rater.n_items < LEAST_DUELS for rater in known)
    cautions = {
        f"{few} of {len(known)} raters share fewer than {LEAST_DUELS} items with the judge and the others, so this is "
        "a hint and no verdict.": few,
        f"Only {len(known)} raters; {ADVISED_RATERS} or more are advised.": len(known) < ADVISED_RATERS,
    }
    outcome = AnnotatorTest(
        by_rater=tuple(replace(rater, replaceable=bool(hit)) for rater, hit in zip(tested, rejected, strict=True)),
        omega=None,
        rho=None,
        n_items=int(used.sum()),
        n_sources=int(np.unique(items.sources[used]).size),
        epsilon=how.epsilon,
        nominal=how.nominal,
        clustered=clustered,
        standardised=how.standardise,
        panel=table.panel,
        n_in_all=table.n_raters,
    )
    if len(known) < 2:
        reason = ONE_RATER if len(tested) < 2 else NO_COMMON_RATERS
        if len(tested) >= 2 and clustered and 0 < outcome.n_sources < LEAST_SOURCES:
            reason = f"only {outcome.n_sources} sources; clustered by source it takes {LEAST_SOURCES}"
        return replace(outcome, reason=reason)
    return replace(
        outcome,
        omega=int(rejected.sum()) / len(known),
        rho=float(np.mean([rater.judge_wins or 0.0 for rater in known])),
        cautions=tuple(words for words, holds in cautions.items() if holds),
    )


def _mean_square(rows: FloatArray, of: list[int]) -> tuple[BoolArray, BoolArray]:
    """(n_of, n_items) where the judge does as well as each rater `of` or better, and the rater as well as the judge.

    By the mean square difference from the others' labels (its root keeps the order).  The last of `rows` is the judge.
    What all raters say of an item is added up once, and a rater's own label taken out again.
    """
    rows = rows - np.nanmean(rows)  # against cancellation
    sums, squares = (np.nansum(rows[:-1] ** power, axis=0) for power in (1, 2))
    n = (~np.isnan(rows[:-1])).sum(axis=0) - 1.0
    own, judge = rows[of], rows[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        off = [(squares - own**2 - 2.0 * x * (sums - own) + n * x**2) / n for x in (judge[None, :], own)]
        return off[0] <= off[1] + TIE, off[1] <= off[0] + TIE


def _share_equal(rows: FloatArray, of: list[int]) -> tuple[BoolArray, BoolArray]:
    """As `_mean_square`, by the share of the others' labels that are equal."""
    row, item = np.nonzero(~np.isnan(rows))
    labels, code = np.unique(np.round(rows[row, item] / TIE), return_inverse=True)
    codes = np.full(rows.shape, -1)
    codes[row, item] = code
    rated = row < len(rows) - 1
    cells = np.bincount(item[rated] * labels.size + code[rated], minlength=rows.shape[1] * labels.size)
    counts = cells.reshape(-1, labels.size)
    places, own, judge = np.arange(rows.shape[1]), codes[of], codes[-1]
    equal = counts[places, judge] - (judge == own), counts[places, own] - 1
    return equal[0] >= equal[1], equal[1] >= equal[0]


def benjamini_yekutieli(p: ArrayLike, rate: float = RATE) -> BoolArray:
    """Which of `p` (m,) are rejected at false discovery rate `rate`, however the tests depend; NaN never, uncounted.

    The k smallest are rejected for the largest k with p_(k) <= k · rate / (m · (1 + 1/2 + … + 1/m)); with three raters
    the thresholds are 0.0091, 0.0182 and 0.0273.
    """
    values = np.asarray(p, dtype=np.float64)
    known = np.sort(values[~np.isnan(values)])
    ranks = np.arange(1, known.size + 1)
    passed = known[known <= ranks * rate / (known.size * (1.0 / ranks).sum())] if known.size else known
    return np.asarray(values <= passed.max(initial=-1.0))


def mean_below(d: ArrayLike, epsilon: float, sources: IntArray | None = None) -> tuple[float | None, TestName]:
    """One-sided p that the mean of `d` (n,) is under `epsilon`, and the test's name.

    Student's t, under 30 items Wilcoxon's signed ranks; with `sources` (n,) t over deletions of one source at a time
    (ours; None under 8 sources).  None without items.  Differences that are all equal leave nothing to doubt in 30
    items or more: p is then 0 or 1.
    """
    values = np.asarray(d, dtype=np.float64)
    if sources is None and values.size < LEAST_DUELS:
        return _signed_ranks(values - epsilon), "Wilcoxon over items"
    if sources is None:
        error, n = float(values.std(ddof=1)) / math.sqrt(values.size), values.size
    else:
        codes = np.unique(sources, return_inverse=True)[1]
        counts, sums = np.bincount(codes), np.bincount(codes, weights=values)
        n = counts.size
        if n < LEAST_SOURCES:
            return None, "t over sources"
        error = length(jackknife_deviations((values.sum() - sums) / (values.size - counts)))
    t = float(values.mean()) - epsilon
    p = one_sided(t / error, n - 1) if error > 0 else float(t >= 0)
    return p, "t over items" if sources is None else "t over sources"


def _signed_ranks(moved: FloatArray) -> float | None:
    """Exact one-sided p of Wilcoxon's signed ranks for `moved` (n,), 0 left out: the chance of a smaller positive sum.

    The distribution over all 2^n signs, ties averaged, is built rank by rank.  1 where all are 0, None without any.
    """
    if not np.any(moved):
        return 1.0 if moved.size else None
    moved = moved[moved != 0]
    doubled = np.round(2.0 * average_ranks(np.abs(moved))).astype(np.intp)  # average ranks are halves
    chances = np.ones(1)
    for rank in doubled:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2.0
    return float(min(chances[: doubled[moved > 0].sum() + 1].sum(), 1.0))
