"""Yes or no from a score: how well scores part the two (AUC), and from which score on to say yes.

The threshold is the one that costs least on the labels there are, where a miss (raters say yes, the judge no) and a
false alarm may cost differently.  What it costs, and its precision and recall, are *cross-fitted*: each label is judged
by a threshold that other sources chose, so that the figures hold for new items and not for those that chose.

AUC is the chance that a yes scores above a no, ties counting half (Mann and Whitney 1947).  Its interval is that of
placement values summed by source (Obuchowski 1997, "Nonparametric analysis of clustered ROC curve data"), on the logit
scale.  Intervals of shares are those of Korn and Graubard (1998): Clopper and Pearson's at the number of items that
independent ones would have to be to be known as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from core.json_form import JsonRecord
from core.records import FloatArray, IntArray, Interval
from core.stats.claims import LEAST_SOURCES, NO_PAIR, TOO_FEW
from core.stats.correlation import average_ranks
from core.stats.intervals import CONFIDENCE, ROUNDING, Z95, clustered_error, t_quantile
from core.stats.items import BoolArray

FOLDS = 5
CURVE_POINTS = 200
"""Most points of a curve."""


@dataclass(frozen=True, slots=True)
class Rate(JsonRecord):
    """A share in [0, 1] of `n` items with its interval; None is undefined, `reason` says why."""

    value: float | None
    interval: Interval | None
    n: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ThresholdPoint(JsonRecord):
    """What saying yes from `threshold` on does to the labels there are."""

    threshold: float
    precision: float | None
    recall: float
    cost: float


@dataclass(frozen=True)
class YesNo(JsonRecord):
    """Scores next to yes-or-no labels.

    `threshold` is chosen on all labels: say yes from there on; None where never saying yes costs least.  `precision`,
    `recall` and `cost` (an item, in points of `miss_cost` and `alarm_cost`) are cross-fitted; `cost_of_none` is what
    always saying the cheaper word costs.  `curve` has a point a score, on all labels.
    `n_calibration_left_out` and `n_calibration_kept` as in `core.records.Alignment`.
    """

    n: int
    n_yes: int
    n_sources: int
    auc: Rate
    threshold: float | None
    precision: Rate
    recall: Rate
    cost: float | None
    cost_of_none: float | None
    miss_cost: float
    alarm_cost: float
    curve: tuple[ThresholdPoint, ...] = ()
    reason: str = ""
    n_calibration_left_out: int = field(default=0, metadata={"silent": True})
    n_calibration_kept: int = field(default=0, metadata={"silent": True})


def yes_no(
    scores: ArrayLike, yes: ArrayLike, sources: IntArray, *, miss_cost: float = 1.0, alarm_cost: float = 1.0
) -> YesNo:
    """Choose a threshold, and say what it does.

    `scores` (n,), `yes` (n,) 0 or 1, NaN left out; `sources` (n,) codes.  Costs are above 0.  Undefined, with the
    reason, where all labels are the same.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(yes, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    x, said, codes = x[known], y[known] > 0.5, np.unique(np.asarray(sources)[known], return_inverse=True)[1]
    n, n_yes, n_sources = x.size, int(said.sum()), int(codes.max(initial=-1)) + 1
    if n_yes in (0, n):
        reason = f"all {n:,} labels are the same" if n else NO_PAIR
        none = Rate(None, None, n, reason)
        return YesNo(n, n_yes, n_sources, none, None, none, none, None, None, miss_cost, alarm_cost, reason=reason)
    values, hits, alarms = _hits_and_alarms(x, said)
    chosen = np.unique(np.linspace(0, values.size - 1, CURVE_POINTS).astype(np.intp))
    costs = (miss_cost * (n_yes - hits) + alarm_cost * alarms) / n
    columns = (values, hits / (hits + alarms), hits / n_yes, costs)
    curve = [ThresholdPoint(*row) for row in zip(*(column[chosen].tolist() for column in columns), strict=True)]
    best = _cheapest(x, said, miss_cost, alarm_cost)
    folds = (np.random.default_rng(0).permutation(n_sources) % FOLDS)[codes]
    up = np.zeros(n, dtype=np.bool_)  # whether yes is said, from the threshold that the other folds of sources choose
    for fold in np.unique(folds):
        inside = folds == fold
        others = ~inside if n_sources > 1 else inside  # one source: nothing else chooses
        up[inside] = x[inside] >= _cheapest(x[others], said[others], miss_cost, alarm_cost)
    return YesNo(
        n,
        n_yes,
        n_sources,
        _auc(x, said, codes),
        None if np.isinf(best) else best,
        rate(said[up], codes[up], "the judge says yes to nothing"),
        rate(up[said], codes[said], ""),
        float((miss_cost * (said & ~up) + alarm_cost * (up & ~said)).mean()),
        min(miss_cost * n_yes, alarm_cost * (n - n_yes)) / n,
        miss_cost,
        alarm_cost,
        tuple(curve),
    )


def _auc(x: FloatArray, said: BoolArray, codes: IntArray) -> Rate:
    ranks, placed = average_ranks(x), np.empty(x.size)  # placed: the share of the other class on the right side
    for side in (said, ~said):
        placed[side] = (ranks[side] - average_ranks(x[side])) / (~side).sum()
    placed[~said] = 1.0 - placed[~said]
    value, n_sources = float(placed[said].mean()), int(codes.max()) + 1
    if n_sources < LEAST_SOURCES:
        return Rate(value, None, x.size, TOO_FEW)
    error = clustered_error((placed - value) / np.where(said, said.sum(), (~said).sum()), codes)
    if error <= ROUNDING or not 0.0 < value < 1.0:
        return Rate(value, None, x.size, "no interval: scores part the labels the same way in every source")
    middle, half = np.log(value / (1 - value)), t_quantile(n_sources - 1) * error / (value * (1 - value))
    low, high = (float(1 / (1 + np.exp(-end))) for end in (middle - half, middle + half))
    method = f"placement values by source, logit, t({n_sources - 1})"
    return Rate(value, Interval(low, high, CONFIDENCE, method, n_sources), x.size)


def _hits_and_alarms(x: FloatArray, said: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The distinct scores in rising order, and the hits and false alarms of saying yes from each on."""
    values, place = np.unique(x, return_inverse=True)
    of_side = (np.bincount(place, weights=side, minlength=values.size) for side in (said, ~said))
    hits, alarms = (np.cumsum(counts[::-1], dtype=np.float64)[::-1] for counts in of_side)
    return values, hits, alarms


def _cheapest(x: FloatArray, said: BoolArray, miss_cost: float, alarm_cost: float) -> float:
    """The threshold of least cost, half-way to the score below; inf where never saying yes costs least.

    Of equal ones the lowest: a tie is decided for the class that costs more to miss.
    """
    values, hits, alarms = _hits_and_alarms(x, said)
    costs = np.append(miss_cost * (said.sum() - hits) + alarm_cost * alarms, miss_cost * said.sum())
    best = int(np.argmin(costs))
    return np.inf if best == values.size else float(values[max(best - 1, 0) : best + 1].mean())


def rate(holds: BoolArray, codes: IntArray, empty: str) -> Rate:
    """The share of items of which it `holds` (n,), by source (`codes` (n,)), after Korn and Graubard (1998)."""
    from scipy.special import betaincinv

    n, n_sources = holds.size, np.unique(codes).size
    if not n:
        return Rate(None, None, 0, empty)
    value = float(holds.mean())
    if n_sources < LEAST_SOURCES:
        return Rate(value, None, n, TOO_FEW)
    error = clustered_error((holds - value) / n, codes)
    worth = value * (1 - value) / error**2 if error > ROUNDING else float(n_sources)
    worth = min(worth * (Z95 / t_quantile(n_sources - 1)) ** 2, float(n))
    hits, tail = value * worth, (1.0 - CONFIDENCE) / 2.0
    low = 0.0 if hits <= 0 else float(betaincinv(hits, worth - hits + 1, tail))
    high = 1.0 if hits >= worth else float(betaincinv(hits + 1, worth - hits, 1.0 - tail))
    return Rate(value, Interval(low, high, CONFIDENCE, f"Korn and Graubard, {worth:.0f} items' worth", n_sources), n)
