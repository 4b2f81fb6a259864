"""One rater left out, against the mean of the others: the ceiling of a leaderboard, and a judge in a rater's place.

*The ceiling* (`leave_one_out`): how well one rater's ratings align with the mean of the others', at the statistic and
level that judges are measured with, so that it can stand on their axis.  It is a slightly low one: the mean of all
raters, which judges are held against, is steadier than the mean of all but one, and brings a judge 0.03 to 0.04.  So no
judge is held against it by eye or by interval.

*A judge next to raters* (`beside_people`) meets the same target as a rater: for each rater j, over the items that j
and the judge scored and somebody else rated,

    alignment(judge, mean of the others without j) - alignment(j, mean of the others without j),

averaged over the raters.  A judge that is one more rater like them could change places with j without changing
anything, so its expected difference is 0 exactly.  It is a statement about *these* raters: another panel may be better
or worse.  Intervals are from deleting one source at a time (jackknife; Efron and Stein 1981, "The jackknife estimate of
variance"), with t on sources - 1 degrees of freedom: at sample level with the same raters everywhere this is the t
interval over the sources' own paired differences.

*The Alternative Annotator Test* (`annotator_test`): whether a judge may take the place of one of the raters.
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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import Alignment, FloatArray, IntArray, Interval, JsonRecord, Measure, json_fields
from core.stats.alignment import RESAMPLES, Seed, holm
from core.stats.claims import (
    ADVISED_RATERS,
    LEAST_DUELS,
    LEAST_SOURCES,
    MARGIN,
    NO_COMMON_RATERS,
    NO_RATER_RANKED,
    NOT_RATED_TWICE,
    NOT_SCORED_BY_BOTH,
    ONE_RATER,
    ONE_SOURCE,
    PASSES_AT,
    SAME_EVERYWHERE,
    SINGLE_SOURCES,
    TOO_FEW,
    Standing,
)
from core.stats.correlation import average_ranks, require_finite
from core.stats.intervals import (
    counted_means,
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
from core.stats.items import BoolArray, LabelledItems, alignments, coefficients_by_source, level_values, paired
from core.stats.raters import AlphaMetric, RaterTable

MOST_BLOCKS = 200
"""Sources beyond this number are deleted in this many blocks of equal size, for a judge next to raters."""


class _LeftOuts:
    """Each rater of `table` left out in turn, on the `items` that somebody else rated too (and the `judge` scored).

    A rater's row is compared with the mean of the others, and so is the judge's, which comes first.  Of more than
    `MOST_RATERS`, those with the most ratings are compared; all count in the means.  ValueError when lengths differ,
    UsageError for an infinite score.

    Attributes: `places` of each rater's items, the `data` on them, the `sources` (n_sources,) of all, `values`
    (n_raters, n_rows), NaN = undefined, `weights` (n_raters, n_sources) what each source adds to a rater's weight (its
    items, or at sample level 1; 0 for an undefined rater), `used` (n_sources,) the sources that some value rests on.
    """

    def __init__(
        self, table: RaterTable, items: LabelledItems, measure: Measure, judge: FloatArray | None = None
    ) -> None:
        if table.values.shape[1] != items.n or (judge is not None and judge.shape != (items.n,)):
            raise ValueError(f"one entry per item is needed on every side: {table.values.shape}, {items.n} items")
        self.measure, self.names, n_ratings = measure, [table.raters[row] for row in table.named], table.n_ratings
        usable = (n_ratings >= 2) & (True if judge is None else ~np.isnan(judge))
        rows, sums = table.values[table.named], np.nansum(table.values, axis=0)
        self.places = [np.flatnonzero(usable & ~np.isnan(row)) for row in rows]
        self.data = []
        for row, at in zip(rows, self.places, strict=True):
            own = items.take(at).labelled((sums[at] - row[at]) / (n_ratings[at] - 1))
            self.data.append(paired(row[at] if judge is None else np.stack([judge[at], row[at]]), own))
        self.sources = np.unique(items.sources[np.concatenate(self.places)])
        self._at = [np.searchsorted(self.sources, np.unique(items.sources[at])) for at in self.places]
        self._coefficients = []  # at sample level; NaN in all rows where one has none: all rest on the same sources
        for data in self.data if measure.level == "sample" else ():
            found = coefficients_by_source(data, measure.statistic)
            self._coefficients.append(np.where(np.isnan(found).any(axis=0), np.nan, found))
        self.values = self._values(np.ones((1, self.sources.size)))[0]
        self.weights = np.zeros((len(rows), self.sources.size))
        for k, at in enumerate(self._at):
            if not np.isnan(self.values[k]).any():
                behind = ~np.isnan(self._coefficients[k][0]) if self._coefficients else None
                self.weights[k, at] = np.bincount(self.data[k].items.sources) if behind is None else behind
        self.used = self.weights.sum(axis=0) > 0

    def _values(self, counts: FloatArray) -> FloatArray:
        """(resamples, n_raters, n_rows) values with `counts` (resamples, n_sources) of each source."""
        values = []
        for k, (data, at) in enumerate(zip(self.data, self._at, strict=True)):
            if self._coefficients:
                values.append(counted_means(self._coefficients[k], counts[:, at]))
            elif data.items.n >= 2:
                values.append(resampled_values(data, counts[:, at], self.measure))
            else:
                values.append(np.full((len(counts), len(data.scores)), np.nan))
        return np.stack(values, axis=1)

    def averages(self, counts: FloatArray | None = None) -> FloatArray:
        """(resamples, n_rows) means over the raters defined on all rows, each weighted by what it rests on.

        `counts` (resamples, n_sources) of each source; None: 1 of each.  NaN where no rater is defined.
        """
        counts = np.ones((1, self.sources.size)) if counts is None else counts
        values, weights = self._values(counts), counts @ self.weights.T
        defined = np.asarray(~np.isnan(values).any(axis=-1))
        weights = np.where(defined, weights, 0.0)[:, :, None]
        total = weights.sum(axis=-2)
        sums = (np.where(defined[..., None], values, 0.0) * weights).sum(axis=-2)
        return np.asarray(np.where(total > 0, sums, np.nan) / np.where(total > 0, total, 1.0), dtype=np.float64)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# ── the ceiling ──────────────────────────────────────────────────────────────────────────────────────────────

Rated = tuple[dict[str, Any], ...]
"""`rater`, its `value` with the mean of the others (None: undefined), and on how many items, `n_items`, for each."""


@dataclass(frozen=True)
class Ceiling(JsonRecord):
    """Agreement of the raters on one aspect: the JSON of `ceiling` (DESIGN §3).

    `leave_one_out` and `by_rater` as the function of that name has them, alpha as in `core.stats.raters.Alpha`, and
    `pairwise_spearman` the mean over `n_pairs`; None is undefined, the reasons say why.  `n_raters` counts all, of whom
    `n_raters_compared` are compared with the mean of the others.  `panel` names the raters used where there are several
    panels.
    """

    aspect: str
    leave_one_out: Alignment
    krippendorff_alpha: float | None
    alpha_metric: AlphaMetric
    alpha_n_items: int
    alpha_reason: str
    pairwise_spearman: float | None
    n_pairs: int
    pairwise_reason: str
    n_raters: int
    n_raters_compared: int
    panel: str
    by_rater: Rated


def leave_one_out(
    table: RaterTable, items: LabelledItems, measure: Measure, *, resamples: int = RESAMPLES, seed: Seed = 0
) -> tuple[Alignment, Rated]:
    """Align each rater of `table` with the mean of the others, on the `items` that somebody else rated too.

    The alignment averages those of the raters, each weighted by what it rests on (items; sources at sample level).  Its
    `n` counts the items with at least two ratings that count for some rater (systems at system level), its `n_unscored`
    the items with fewer ratings, its groups those defined for at least one rater.  The labels of `items` are not looked
    at.  The interval leaves out one source at a time, for all raters at once (at system level it draws `resamples` of
    them).  ValueError when lengths differ.
    """
    left, level = _LeftOuts(table, items, measure), measure.level
    sides = zip(left.names, left.values[:, 0], left.places, strict=True)
    by_rater = tuple({"rater": name, "value": _or_none(value), "n_items": at.size} for name, value, at in sides)
    twice, used, defined = table.n_ratings >= 2, left.used, ~np.isnan(left.values[:, 0])
    average = Alignment(measure.statistic, level, None, 0, n_unscored=int((~twice).sum()))
    if not defined.any():
        reason = ONE_RATER if len(by_rater) < 2 else NOT_RATED_TWICE
        if len(by_rater) >= 2 and left.sources.size:
            largest = max(left.data, key=lambda data: data.items.n)
            alone = alignments(largest, measure, *level_values(largest, measure))[0]
            reason = f"no rater's ratings can be ranked next to the others' means: {alone.reason}"
        return replace(average, reason=reason), by_rater
    counted = twice & table.rated[table.named][defined].any(axis=0)
    if level == "sample":
        counted &= np.isin(items.sources, left.sources[used])
        average = replace(average, n_groups=int(used.sum()), n_left_out=int((~used).sum()))
    n = np.unique(items.systems[counted]).size if level == "system" else int(counted.sum())
    value, interval = left.averages()[0], None
    if left.sources.size >= 2 and resamples >= 1:
        interval, _ = spread_over_sources(
            left.averages,
            value,
            np.array([int(used.sum())]),
            left.sources.size,
            np.random.default_rng(seed),
            resamples=resamples if level == "system" else 0,
        ).interval(0)
    return replace(average, value=float(value[0]), n=n, interval=interval), by_rater


# ── a judge next to raters ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class BesideRater:
    """Judge and rater against the mean of the other raters, on the same `n_items`; None is undefined."""

    rater: str
    judge: float | None
    person: float | None
    n_items: int

    @property
    def difference(self) -> float | None:
        """Judge minus rater."""
        return None if self.judge is None or self.person is None else self.judge - self.person

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"difference": self.difference}


@dataclass(frozen=True)
class BesidePeople:
    """A judge next to the raters, each against the mean of the other raters on the same items.

    `n_in_all` counts all raters; of more than `MOST_RATERS`, `by_rater` holds those with the most ratings.
    `n_judges` is how many judges were compared with raters in one table; `interval` and `p` are corrected for that
    (`among_judges`).
    `withheld` says why nothing is claimed although it could be tested.
    `judge`, `person` and `difference` (judge minus person) average `by_rater`, each rater weighted by what it rests on
    (items; sources at sample level).  `p` is two-sided, None with fewer than `LEAST_SOURCES` sources; `reason` says
    why something is None.  `n_sources` counts the sources that the difference rests on.
    """

    judge: Alignment
    person: Alignment
    difference: float | None
    interval: Interval | None
    p: float | None
    n_items: int
    n_sources: int
    by_rater: tuple[BesideRater, ...]
    panel: str = ""
    reason: str = ""
    n_judges: int = 1
    n_in_all: int = 0
    withheld: str = field(default="", metadata={"silent": True})

    def without_claim(self, reason: str) -> BesidePeople:
        """The same figures without p or standing, for `reason` (`withheld`); unchanged for ""."""
        return replace(self, p=None, withheld=reason) if reason else self

    @property
    def n_raters(self) -> int:
        """Raters whose own agreement with the others is defined."""
        return sum(rater.difference is not None for rater in self.by_rater)

    @property
    def standing(self) -> Standing:
        """Where the judge stands next to one of these raters, as far as the interval allows.

        "above" and "below" where the interval leaves out 0; "level" where it holds 0 and its low end lies above
        -`MARGIN`; "open" otherwise, and wherever there is no p.
        """
        if self.interval is None or self.p is None:
            return "open"
        if self.interval.low > 0:
            return "above"
        if self.interval.high < 0:
            return "below"
        return "level" if self.interval.low > -MARGIN else "open"

    def as_json(self) -> dict[str, Any]:
        """Everything of the record, null where undefined."""
        return {"standing": self.standing} | json_fields(self) | {"n_raters": self.n_raters}


def beside_people(table: RaterTable, scores: ArrayLike, items: LabelledItems, measure: Measure) -> BesidePeople:
    """Set `scores` (n_items,), more is better, NaN = missing, next to the raters of `table` on the same `items`.

    Items count that the judge scored and two raters rated; the labels of `items` are not looked at.  ValueError when
    lengths differ, UsageError for ±inf.
    """
    judge = np.asarray(scores, dtype=np.float64)
    left = _LeftOuts(table, items, measure, judge)
    sides = zip(left.names, left.values, left.places, strict=True)
    by_rater = tuple(BesideRater(name, _or_none(own[0]), _or_none(own[1]), at.size) for name, own, at in sides)
    n_sources, n_items = int(left.used.sum()), int(((table.n_ratings >= 2) & ~np.isnan(judge)).sum())
    bare = Alignment(measure.statistic, measure.level, None, 0)
    if not n_sources:
        why = ONE_RATER if len(by_rater) < 2 else NO_RATER_RANKED if n_items else NOT_SCORED_BY_BOTH
        bare = replace(bare, reason=why)
        none = BesidePeople(bare, bare, None, None, None, n_items, 0, by_rater, table.panel, why)
        return replace(none, n_in_all=table.n_raters)
    counts = np.ones((min(n_sources, MOST_BLOCKS), left.used.size))
    counts[:, left.used] = leave_outs(n_sources, MOST_BLOCKS)
    own_value, person = left.averages()[0].tolist()
    gap, deleted = own_value - person, left.averages(counts)
    deleted = np.column_stack([deleted, deleted[:, 0] - deleted[:, 1]])
    n_blocks, known = len(deleted), len(deleted) > 1 and not np.isnan(deleted).any()
    errors = [length(jackknife_deviations(column)) for column in deleted.T]
    method = "jackknife" + (f" of {n_blocks} blocks" if n_blocks < n_sources else "")
    of_judge, of_person, interval = (
        t_interval(value, error, n_sources, method, most=most, behind=n_blocks) if known else None
        for value, error, most in zip((own_value, person, gap), errors, (1.0, 1.0, 2.0), strict=True)
    )
    p = None
    if known:  # without an error: another value, and the same without any block
        p = two_sided(gap / errors[2], n_blocks - 1) if errors[2] > 0 else 1.0 if gap == 0 else None
    why = ONE_SOURCE if n_blocks < 2 else SAME_EVERYWHERE if known else SINGLE_SOURCES
    if n_sources < LEAST_SOURCES:
        p, why = None, TOO_FEW
    sides_behind = zip(left.places, left.weights, strict=True)
    behind = [at[np.isin(items.sources[at], left.sources[weights > 0])] for at, weights in sides_behind]
    n_items = int(np.unique(np.concatenate(behind)).size)
    n = left.data[int(np.argmax(left.weights.any(axis=1)))].items.n_systems if measure.level == "system" else n_items
    bare = replace(bare, n=n, n_groups=n_sources if measure.level == "sample" else 0)
    return BesidePeople(
        replace(bare, value=own_value, interval=of_judge),
        replace(bare, value=person, interval=of_person),
        gap,
        interval,
        p,
        n_items,
        n_sources,
        by_rater,
        table.panel,
        "" if p is not None else why,
        n_in_all=table.n_raters,
    )


def among_judges(results: Sequence[BesidePeople]) -> list[BesidePeople]:
    """Correct the results of several judges for their number, so that any of them may be picked out.

    Holm's p over all of them, and intervals widened as far as p rises: an interval leaves out 0 where p is below 0.05.
    Of judges that are all like a rater, the best is then called better in at most 5 %.
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
    from scipy.stats import false_discovery_control

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
    judge_wins, rater_wins = _share_equal(rows, table.named) if how.nominal else _mean_square(rows, table.named)
    duels, tested = usable & table.rated[table.named], []
    for row, at, own, other in zip(table.named, duels, judge_wins, rater_wins, strict=True):
        wins, losses = own[at].astype(np.float64), other[at].astype(np.float64)
        d = losses - wins
        p, test = mean_below(d, how.epsilon, items.sources[at] if clustered else None)
        judge_share, rater_share, gap = (float(x.mean()) if d.size else None for x in (wins, losses, d))
        tested.append(RaterTest(table.raters[row], d.size, judge_share, rater_share, gap, p, test))
    known, used = [rater for rater in tested if rater.p is not None], duels.any(axis=0)
    # Benjamini and Yekutieli's rate holds however the tests depend; those without p do not count
    corrected = iter(false_discovery_control([rater.p for rater in known], method="by") if known else ())
    by_rater = tuple(replace(own, replaceable=own.p is not None and bool(next(corrected) <= RATE)) for own in tested)
    n_sources, few = int(np.unique(items.sources[used]).size), sum(rater.n_items < LEAST_DUELS for rater in known)
    reason, cautions = "", list[str]()
    if len(known) < 2:
        reason = ONE_RATER if len(tested) < 2 else NO_COMMON_RATERS
        if len(tested) >= 2 and clustered and 0 < n_sources < LEAST_SOURCES:
            reason = f"only {n_sources} sources; clustered by source it takes {LEAST_SOURCES}"
    elif few:
        of_all = f"{few} of {len(known)} raters share fewer than {LEAST_DUELS} items with the judge and the others"
        cautions.append(f"{of_all}, so this is a hint and no verdict.")
    if not reason and len(known) < ADVISED_RATERS:
        cautions.append(f"Only {len(known)} raters; {ADVISED_RATERS} or more are advised.")
    return AnnotatorTest(
        by_rater=by_rater,
        omega=None if reason else sum(own.replaceable for own in by_rater) / len(known),
        rho=None if reason else float(np.mean([rater.judge_wins or 0.0 for rater in known])),
        n_items=int(used.sum()),
        n_sources=n_sources,
        epsilon=how.epsilon,
        nominal=how.nominal,
        clustered=clustered,
        standardised=how.standardise,
        panel=table.panel,
        reason=reason,
        cautions=tuple(cautions),
        n_in_all=table.n_raters,
    )


def _mean_square(rows: FloatArray, of: IntArray) -> tuple[BoolArray, BoolArray]:
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


def _share_equal(rows: FloatArray, of: IntArray) -> tuple[BoolArray, BoolArray]:
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
