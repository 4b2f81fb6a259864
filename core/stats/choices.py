"""Measure agreement on choices: yes or no from a score, preferences between two texts, and strengths of systems.

- *Yes or no*: the score threshold with the lowest cost of misses and false alarms. Cost, precision and recall are
  *cross-fitted*: each label is predicted with a threshold chosen on other sources.
- *AUC* (Mann and Whitney 1947): the chance that an item rated yes has a higher score than an item rated no. Ties count
  half. Intervals are those of Obuchowski (1997, "Nonparametric analysis of clustered ROC curve data").
- *Shares*: intervals are those of Korn and Graubard (1998), Clopper-Pearson at the effective number of independent
  items.
- *Accuracy with ties* (Deutsch, Foster and Freitag 2023, "Ties Matter"): scores within ε of the middle are ties of the
  judge. The best ε is chosen on other sources.
- *Strengths* (Bradley and Terry 1952): log-odds that a system is preferred to the average system. Ties count half for
  each system. Slight shrinkage keeps strengths finite. Intervals are over sources (sandwich).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from core.records import FloatArray, IntArray, Interval, JsonRecord, Scale
from core.stats.correlation import NO_PAIR, BoolArray, average_ranks, source_folds
from core.stats.intervals import (
    CONFIDENCE,
    LEAST_SOURCES,
    ROUNDING,
    TOO_FEW,
    Z95,
    clustered_error,
    t_interval,
    t_quantile,
)

_STEPS = 100
_SHRUNK = 0.5


@dataclass(frozen=True, slots=True)
class Rate(JsonRecord):
    """A share in [0, 1] of `n` items, with its interval; an undefined share is None, and `reason` says why."""

    value: float | None
    interval: Interval | None
    n: int
    reason: str = ""


@dataclass(frozen=True)
class YesNo(JsonRecord):
    """Agreement of scores with yes-or-no labels.

    `precision`, `recall` and `cost` are cross-fitted: each label is predicted with a threshold chosen on other sources.

    Attributes:
        threshold: Scores of at least this value count as yes. None if answering no to every item costs least.
        cost: Mean cost per item: `miss_cost` for a no where raters say yes, `alarm_cost` for a yes where raters say no.
        cost_of_none: Mean cost per item without a judge: all items get the same answer, whichever costs less.
        n_calibration_left_out: As in `core.records.Alignment`.
        n_calibration_kept: As in `core.records.Alignment`.
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
    reason: str = ""
    n_calibration_left_out: int = field(default=0, metadata={"silent": True})
    n_calibration_kept: int = field(default=0, metadata={"silent": True})


def yes_no(
    scores: ArrayLike, yes: ArrayLike, sources: IntArray, *, miss_cost: float = 1.0, alarm_cost: float = 1.0
) -> YesNo:
    """Choose the score threshold for yes, and estimate its cost on new items.

    If all labels are equal, the result is undefined, and its `reason` says why.

    Args:
        scores: Scores (n,); NaN for a missing score.
        yes: Labels (n,), 0 or 1; NaN for a missing label.
        sources: Codes of the sources (n,).
        miss_cost: Cost of a no from the judge where raters say yes; above 0.
        alarm_cost: Cost of a yes from the judge where raters say no; above 0.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(yes, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    x, said, codes = x[known], y[known] > 0.5, np.unique(np.asarray(sources)[known], return_inverse=True)[1]
    n, n_yes, n_sources = x.size, int(said.sum()), int(codes.max(initial=-1)) + 1
    if n_yes in (0, n):
        reason = f"all {n:,} labels are the same" if n else NO_PAIR
        none = Rate(None, None, n, reason)
        return YesNo(n, n_yes, n_sources, none, None, none, none, None, None, miss_cost, alarm_cost, reason=reason)
    best = _cheapest(x, said, miss_cost, alarm_cost)
    folds, up = source_folds(codes), np.zeros(n, dtype=np.bool_)  # the threshold for yes comes from the other folds
    for fold in np.unique(folds):
        inside = folds == fold
        others = ~inside if n_sources > 1 else inside  # with one source there are no other folds
        up[inside] = x[inside] >= _cheapest(x[others], said[others], miss_cost, alarm_cost)
    return YesNo(
        n,
        n_yes,
        n_sources,
        _auc(x, said, codes),
        None if np.isinf(best) else best,
        rate(said[up], codes[up], "the judge never says yes"),
        rate(up[said], codes[said], ""),
        float((miss_cost * (said & ~up) + alarm_cost * (up & ~said)).mean()),
        min(miss_cost * n_yes, alarm_cost * (n - n_yes)) / n,
        miss_cost,
        alarm_cost,
    )


def _auc(x: FloatArray, said: BoolArray, codes: IntArray) -> Rate:
    ranks, placed = average_ranks(x), np.empty(x.size)  # placed: share of the other class ranked correctly
    for side in (said, ~said):
        placed[side] = (ranks[side] - average_ranks(x[side])) / (~side).sum()
    placed[~said] = 1.0 - placed[~said]
    value, n_sources = float(placed[said].mean()), int(codes.max()) + 1
    if n_sources < LEAST_SOURCES:
        return Rate(value, None, x.size, TOO_FEW)
    error = clustered_error((placed - value) / np.where(said, said.sum(), (~said).sum()), codes)
    if error <= ROUNDING or not 0.0 < value < 1.0:
        return Rate(value, None, x.size, "no interval: the scores separate the labels equally well in every source")
    middle, half = np.log(value / (1 - value)), t_quantile(n_sources - 1) * error / (value * (1 - value))
    low, high = (float(1 / (1 + np.exp(-end))) for end in (middle - half, middle + half))
    method = f"Obuchowski (1997) over {n_sources:,} sources, logit scale, t({n_sources - 1})"
    return Rate(value, Interval(low, high, CONFIDENCE, method, n_sources), x.size)


def _cheapest(x: FloatArray, said: BoolArray, miss_cost: float, alarm_cost: float) -> float:
    """Choose the threshold with the least cost, half-way to the score below; inf if it is cheapest to always say no.

    Among equal costs, the lowest threshold wins.
    """
    values, place = np.unique(x, return_inverse=True)
    # hits and false alarms for each score as the threshold
    hits, alarms = (np.cumsum(np.bincount(place, side, values.size)[::-1])[::-1] for side in (said, ~said))
    costs = np.append(miss_cost * (said.sum() - hits) + alarm_cost * alarms, miss_cost * said.sum())
    best = int(np.argmin(costs))
    return np.inf if best == values.size else float(values[max(best - 1, 0) : best + 1].mean())


def rate(holds: BoolArray, codes: IntArray, empty: str) -> Rate:
    """Return the share of items for which `holds` (n,) is true, with Korn and Graubard's interval over sources.

    Args:
        codes: Source (n,) of each item, as an integer.
        empty: The reason to give if there are no items.
    """
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
    return Rate(value, Interval(low, high, CONFIDENCE, f"Korn and Graubard, effective n = {worth:.0f}", n_sources), n)


# ── preferences between two texts ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PreferenceAgreement(JsonRecord):
    """Agreement of a judge with raters on preferences between two texts.

    Attributes:
        n_ties: Number of pairs that raters call a tie.
        accuracy: Share of all pairs with the same answer (first, second or tie) from judge and raters. Which scores
            count as ties is chosen on other sources (cross-fitting).
        without_ties: The same share among pairs on which raters have a preference. Only a score in the exact middle
            counts as a tie of the judge.
        always_one: Accuracy of always giving the most common answer.
    """

    n: int
    n_ties: int
    accuracy: Rate
    without_ties: Rate
    always_one: float | None
    reason: str = ""


def preference_agreement(
    scores: FloatArray, labels: FloatArray, sources: IntArray, scale: Scale
) -> PreferenceAgreement:
    """Measure how often the judge prefers the same text as the raters.

    `scores` and `labels` (n,) are on `scale`, whose middle is a tie.
    """
    known = ~(np.isnan(scores) | np.isnan(labels))
    middle = (scale.low + scale.high) / 2.0
    lean, said = scores[known] - middle, np.sign(np.round(labels[known] - middle, 9))
    codes, folds, n = sources[known], source_folds(sources)[known], int(known.sum())
    if not n:
        none = Rate(None, None, 0, NO_PAIR)
        return PreferenceAgreement(0, 0, none, none, None, NO_PAIR)
    agreed = np.empty(n, dtype=np.bool_)
    for fold in np.unique(folds):
        inside, others = folds == fold, folds != fold
        within = _tie_within(lean[others], said[others])
        agreed[inside] = np.where(np.abs(lean[inside]) <= within, 0.0, np.sign(lean[inside])) == said[inside]
    preferred = said != 0
    return PreferenceAgreement(
        n,
        int((~preferred).sum()),
        rate(agreed, codes, NO_PAIR),
        rate((np.sign(lean) == said)[preferred], codes[preferred], "the raters rated every pair as a tie"),
        float(max((said == side).mean() for side in (-1, 0, 1))),
    )


def _tie_within(lean: FloatArray, said: FloatArray) -> float:
    """Choose the ε with the best agreement; −1 if never calling a tie agrees best."""
    size = np.abs(lean)
    order = np.argsort(size, kind="stable")
    right, tied = (np.sign(lean) == said)[order], (said == 0)[order]
    agreed = right.sum() + np.concatenate([[0], np.cumsum(tied) - np.cumsum(right)])
    allowed = np.flatnonzero(np.diff(size[order], prepend=-1.0, append=np.inf) > 0)  # equal values change together
    best = int(allowed[np.argmax(agreed[allowed])])
    return -1.0 if best == 0 else float(size[order][best - 1])


# ── strengths of systems ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Strength(JsonRecord):
    """Log-odds of being preferred to an average system, from `n` pairs; `wins` is the share won, ties counting half."""

    system: str
    value: float
    interval: Interval | None
    wins: float
    n: int


@dataclass(frozen=True, slots=True)
class Strengths(JsonRecord):
    """Strengths of systems, strongest first, estimated from `n` pairs of `n_sources` sources.

    If the systems cannot be compared, the list is empty, and `reason` says why.
    """

    systems: tuple[Strength, ...]
    n: int
    n_sources: int
    reason: str = ""


def strengths(first: IntArray, second: IntArray, won: FloatArray, sources: IntArray, names: Sequence[str]) -> Strengths:
    """Estimate the strengths of systems from pairwise preferences.

    Args:
        first: Index in `names` of the first system of each pair (n,).
        second: Index in `names` of the second system of each pair (n,).
        won: 1 if the second system won, 0 if the first won, 0.5 for a tie (n,). Values in between are allowed; NaN is
            left out.
        sources: Codes of the sources (n,).
        names: Names of the systems.
    """
    from scipy.sparse.csgraph import connected_components
    from scipy.special import expit

    known = ~np.isnan(won) & (first != second)
    a, b, y, place = first[known], second[known], won[known], np.unique(sources[known], return_inverse=True)[1]
    n, k, n_sources = y.size, len(names), int(place.max(initial=-1)) + 1
    if not n:
        return Strengths((), n, n_sources, "no preference is known for any pair of texts from different systems")
    counts, wins = np.zeros((2, k, k))  # by the system of the first and of the second text
    np.add.at(counts, (a, b), 1.0)
    np.add.at(wins, (a, b), y)
    n_parts, part = connected_components(counts, directed=False)
    if n_parts > 1:
        apart = [names[int(np.argmax(part == one))] for one in (0, 1)]
        return Strengths((), n, n_sources, f"no chain of pairs connects {apart[0]} and {apart[1]}")
    theta = np.zeros(k)
    for _ in range(_STEPS):  # Newton's steps; the likelihood is concave
        p, own = expit(theta - theta[:, None]), expit(theta)
        left, variance = wins - counts * p, counts * p * (1 - p)
        score = left.sum(axis=0) - left.sum(axis=1) + _SHRUNK * (1 - 2 * own)
        of_each = variance.sum(axis=0) + variance.sum(axis=1) + 2 * _SHRUNK * own * (1 - own)
        information = np.diag(of_each) - variance - variance.T
        step = np.clip(np.linalg.solve(information, score), -2.0, 2.0)
        theta += step
        if np.abs(step).max() < 1e-10:
            break
    theta -= theta.mean()
    residuals, by_source, bread = y - expit(theta[b] - theta[a]), np.zeros((n_sources, k)), np.linalg.inv(information)
    np.add.at(by_source, (place, b), residuals)
    np.subtract.at(by_source, (place, a), residuals)
    spread = by_source @ (bread - bread.mean(axis=0)).T  # strengths relative to their mean
    errors = np.sqrt((spread**2).sum(axis=0) * n_sources / max(n_sources - 1, 1))
    played = counts.sum(axis=0) + counts.sum(axis=1)
    gained = wins.sum(axis=0) + (counts - wins).sum(axis=1)
    few, systems = TOO_FEW if n_sources < LEAST_SOURCES else "", []
    for j in np.argsort(-theta, kind="stable").tolist():
        value = float(theta[j])
        interval = None if few else t_interval(value, float(errors[j]), n_sources, "sandwich")
        systems.append(Strength(names[j], value, interval, float(gained[j] / played[j]), int(played[j])))
    return Strengths(tuple(systems), n, n_sources, few)


def shares_for_second(labels: FloatArray, scale: Scale) -> FloatArray:
    """Convert labels of pairs to wins of the second text: 1 if it is better, 0 if the first is better, 0.5 if tied."""
    return np.asarray((labels - scale.low) / (scale.high - scale.low))
