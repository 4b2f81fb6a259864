"""A judge's scores on the scale of the labels, rather than in rank: errors, agreement on steps, classes, the map to it.

A judge can rank well and still be too strict.  Errors and agreement take scores that mean what labels mean; the map
that gives them this meaning is centred isotonic regression (Oron and Flournoy 2017, "Centered Isotonic Regression:
Point and Interval Estimation for Dose-Response Studies"): pool adjacent violators, shrink every level stretch to one
point at its weighted mean score, and join the points by straight lines.  So the map rises strictly where plain isotonic
regression has steps, and ranks, hence Spearman and Kendall, are unchanged.

Departures from the paper: outside the outermost points, where the paper stays level, the map goes on towards the ends
of the human scale along a hyperbola (slope of the nearest segment at the start, never reaching the end); to leave room
for that, the fitted heights are drawn together by `END_MARGIN` of the scale's width at each end.

Undefined is a value of its own (None with a reason), never 0 and never 1.  Everywhere scores and labels are (n_items,),
NaN = missing on either side; ValueError when the lengths differ, UsageError for ±inf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.errors import JudgeError
from core.records import LEVELS, STATISTICS, Alignment, FloatArray, JsonRecord, Measure, Scale
from core.stats.alignment import RESAMPLES, align
from core.stats.claims import NO_PAIR
from core.stats.correlation import present, spearman
from core.stats.items import LabelledItems

MIN_LABELS = 10
"""Fewest labelled and scored items a map is fitted on."""

END_MARGIN = 0.005
"""Share of the scale's width kept free at each end for scores beyond the fitted range."""


@dataclass(frozen=True, slots=True)
class AbsoluteErrors(JsonRecord):
    """Errors in points of the scale.  None is undefined (no item has both), not 0.

    `mae` = mean |score − label|, from 0 (exact) upwards.  `bias` = mean (score − label): positive when the judge is
    more generous than the raters.  `n` counts the items used, `n_unscored` the labelled items without a score.
    """

    mae: float | None
    bias: float | None
    n: int
    n_unscored: int = 0


def absolute_errors(scores: ArrayLike, labels: ArrayLike) -> AbsoluteErrors:
    """Errors of `scores` against `labels`."""
    x, y = present(scores, labels)
    n_unscored = int((~np.isnan(np.asarray(labels, dtype=np.float64))).sum()) - x.size
    if not x.size:
        return AbsoluteErrors(None, None, 0, n_unscored)
    return AbsoluteErrors(float(np.abs(x - y).mean()), float((x - y).mean()), x.size, n_unscored)


@dataclass(frozen=True, slots=True)
class StepAgreement(JsonRecord):
    """Judge and raters on the steps of an ordinal scale, both taken to the nearest step (halves go up).

    `quadratic_kappa` is 1 perfect, 0 as by chance.  `exact` and `adjacent` are shares of the `n` items on the same
    step and at most one step apart.  None is undefined; `reason` says why.
    """

    quadratic_kappa: float | None
    exact: float | None
    adjacent: float | None
    n: int
    reason: str = ""


def step_agreement(scores: ArrayLike, labels: ArrayLike, scale: Scale) -> StepAgreement:
    """Quadratic-weighted kappa, exact and adjacent agreement on the steps of `scale`; what lies beyond is at its end.

    Quadratic kappa is undefined on a continuous scale, and on one of two steps, where there are no distances to weigh.
    """
    x, y = present(scores, labels)
    if scale.step is None or not x.size:
        reason = f"the scale {scale} has no steps to agree on" if scale.step is None else NO_PAIR
        return StepAgreement(None, None, None, x.size, reason)
    a, b = to_steps(x, scale), to_steps(y, scale)
    apart = np.abs(a - b)
    exact, adjacent = float((apart == 0).mean()), float((apart <= 1).mean())
    if scale.two_steps:
        reason = f"the scale {scale} has two steps, so no distances to weigh: see the plain kappa of the two classes"
        return StepAgreement(None, exact, None, x.size, reason)
    kappa = quadratic_kappa(a, b)
    return StepAgreement(
        kappa, exact, adjacent, x.size, "all scores and all labels fall on one step" if kappa is None else ""
    )


def quadratic_kappa(a: ArrayLike, b: ArrayLike) -> float | None:
    """1 − Σ(a_i − b_i)² / mean over all i, j of Σ(a_i − b_j)², for step numbers (Cohen 1968).

    Distances are those of the values, so steps that never occur still count as steps between.  None when no item has
    both, or every value on both sides is the same.
    """
    x, y = present(a, b)
    if not x.size:
        return None
    expected = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return None if expected == 0 else float(1.0 - ((x - y) ** 2).mean() / expected)


def to_steps(values: FloatArray, scale: Scale) -> FloatArray:
    """Step numbers from 0 of values taken to the nearest step, halves up, ends for what lies beyond."""
    step = scale.step or 1.0
    # means of raters carry rounding: 2.4999999999999996 is a half
    numbers = np.floor((values - scale.low) / step + 0.5 + 1e-9)
    return np.asarray(np.clip(numbers, 0.0, np.rint((scale.high - scale.low) / step)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class BinaryAgreement(JsonRecord):
    """Judge and raters on two classes, the upper one being the positive.

    Precision: of those the judge put up, the share the raters did; recall: of those the raters put up, the share the
    judge did; F1 = 2·hits / (put up by the judge + put up by raters), their harmonic mean; `kappa` Cohen's (1960).
    None is undefined (precision when the judge put nothing up, say).
    """

    precision: float | None
    recall: float | None
    f1: float | None
    kappa: float | None
    n: int
    n_positive_labels: int
    n_positive_scores: int
    reason: str = ""


def binary_agreement(scores: ArrayLike, labels: ArrayLike, threshold: float = 0.5) -> BinaryAgreement:
    """Precision, recall, F1 and kappa, `threshold` (the middle of the scale) and above being the positive class."""
    x, y = present(scores, labels)
    up, true = x >= threshold, y >= threshold
    n, hits, n_up, n_true = x.size, int((up & true).sum()), int(up.sum()), int(true.sum())
    agreed = hits + n - n_up - n_true + hits
    chance = n_up * n_true + (n - n_up) * (n - n_true)  # of n²
    reasons = {
        "no score is positive": n_up == 0,
        "no label is positive": n_true == 0,
        "scores and labels are all of one class": chance == n * n,
    }
    precision, recall, f1, kappa = (
        part / whole if whole else None
        for part, whole in (
            (hits, n_up),
            (hits, n_true),
            (2 * hits, n_up + n_true),
            (n * agreed - chance, n * n - chance),
        )
    )
    reason = "; ".join(reason for reason, holds in reasons.items() if holds) if n else NO_PAIR
    return BinaryAgreement(precision, recall, f1, kappa, n, n_true, n_up, reason)


# ── everything at once ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AgreementReport(JsonRecord):
    """Errors, steps and classes of one judge, None where they have no meaning; `note` says why.

    `errors` and `steps` are None where scores leave the scale, `binary` also where the scale has other than two steps.
    `basis` says which numbers they are of: the judge's scores as given, or those mapped to the raters' scale.
    `alignments` are three statistics at each of three levels, where they were asked for.
    """

    errors: AbsoluteErrors | None = None
    steps: StepAgreement | None = None
    binary: BinaryAgreement | None = None
    note: str = ""
    basis: Literal["as given", "mapped"] = "as given"
    alignments: tuple[Alignment, ...] = field(default=(), metadata={"silent": True})

    @property
    def words(self) -> str:
        """What the points are measured on, to stand behind a figure: ``"on the raters' scale"``."""
        return "on the raters' scale" if self.basis == "mapped" else "of the scores as given"


def on_scale(scores: ArrayLike, labels: ArrayLike, scale: Scale, *, mapped: ArrayLike | None = None) -> AgreementReport:
    """What `scores` are next to `labels` in points of the labels' `scale`.

    `mapped` (n_items,) are the scores on the raters' scale. Where there are any, they stand in for `scores`.
    """
    if mapped is not None:
        return replace(on_scale(mapped, labels, scale), basis="mapped")
    x, _ = present(scores, labels)
    if x.size and not (scale.low <= x.min() and x.max() <= scale.high):
        return AgreementReport(note=f"scores go from {x.min():g} to {x.max():g}, the scale is {scale}")
    middle = (scale.low + scale.high) / 2
    return AgreementReport(
        absolute_errors(scores, labels),
        step_agreement(scores, labels, scale),
        binary_agreement(scores, labels, middle) if scale.two_steps else None,
    )


def agreement_report(
    scores: ArrayLike,
    items: LabelledItems,
    *,
    scale: Scale,
    seed: int,
    resamples: int = RESAMPLES,
    mapped: ArrayLike | None = None,
) -> AgreementReport:
    """All of one judge's `scores` next to the labels of `items`; `scale` is theirs, `mapped` as in `on_scale`.

    Each alignment draws its own resamples from `seed`, so that it equals the one asked for alone.
    """
    measures = (Measure(statistic, level) for level in LEVELS for statistic in STATISTICS)
    alignments = tuple(align(scores, items, measure, resamples=resamples, seed=seed) for measure in measures)
    points = on_scale(scores, items.labels, scale, mapped=mapped)
    note = points.note and f"{points.note}: errors and agreement need scores on the scale"
    return replace(points, note=note, alignments=alignments)


# ── the map to the scale ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class IsotonicMap(JsonRecord):
    """Knots of a strictly increasing map: judge scores `x` to `y` on the human scale [`low`, `high`].

    At least 2 knots, both sides strictly ascending, low < y < high; anything else raises JudgeError.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    low: float
    high: float

    def __post_init__(self) -> None:
        knots = np.array([*self.x, *self.y, self.low, self.high], dtype=np.float64)
        usable = len(self.x) == len(self.y) >= 2 and bool(np.isfinite(knots).all())
        rising = usable and bool((np.diff(self.x) > 0).all() and (np.diff(self.y) > 0).all())
        if not (rising and self.low < self.y[0] and self.y[-1] < self.high):
            raise JudgeError(
                "The score map is damaged: it needs two or more points, ascending on both sides and inside the scale "
                f"{self.low:g}-{self.high:g}; got x={list(self.x)[:5]}, y={list(self.y)[:5]}. Calibrate again."
            )

    def apply(self, values: ArrayLike) -> FloatArray:
        """Values within (low, high), same shape as `values`, strictly increasing; NaN stays NaN."""
        scores = np.asarray(values, dtype=np.float64)
        x, y = np.array(self.x), np.array(self.y)
        mapped = np.interp(scores, x, y)
        below = y[0] - _approach(x[0] - scores, y[0] - self.low, (y[1] - y[0]) / (x[1] - x[0]))
        above = y[-1] + _approach(scores - x[-1], self.high - y[-1], (y[-1] - y[-2]) / (x[-1] - x[-2]))
        mapped = np.where(scores < x[0], below, np.where(scores > x[-1], above, mapped))
        return np.where(np.isnan(scores), np.nan, mapped)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> IsotonicMap:
        """Read the map that `as_json` wrote.  JudgeError when a part is missing, not a number, or does not ascend."""
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(cls).validate_python({name: body[name] for name in cls.__slots__})
        except (KeyError, TypeError, ValueError) as error:
            raise JudgeError("The score map needs the number lists x and y and the numbers low and high.") from error


def fit_isotonic(scores: ArrayLike, labels: ArrayLike, scale: Scale) -> tuple[IsotonicMap | None, str]:
    """Fit a map from `scores` to `labels`, on the human `scale`; None and why where the scores are used as they come.

    Always increasing, also where the scores run against the labels (then a reason comes with the map: it must not turn
    a bad judge round).  No map with fewer than `MIN_LABELS` items having both, when a side is constant, or when no
    increase is left after pooling.
    """
    x, y = present(scores, labels)
    if x.size < MIN_LABELS:
        return None, f"{x.size} items have score and label; a map needs {MIN_LABELS}"
    for side, values in (("scores", x), ("labels", y)):
        if values.min() == values.max():
            return None, f"all {side} are equal, so there is nothing to map"
    if y.min() < scale.low or y.max() > scale.high:
        return None, f"labels from {y.min():g} to {y.max():g} leave the scale {scale}"
    knots, against = _centred_knots(x, y, scale), bool(spearman(x, y) < 0)
    if knots.shape[1] < 2:
        why = "scores run against the labels" if against else "labels do not rise with the scores"
        return None, f"{why}: no increasing map exists"
    fitted = IsotonicMap(tuple(knots[0].tolist()), tuple(knots[1].tolist()), scale.low, scale.high)
    return fitted, "scores run against the labels; the map still increases" if against else ""


def _centred_knots(x: FloatArray, y: FloatArray, scale: Scale) -> FloatArray:
    """(2, n_knots): the level stretches of the isotonic regression, each at its weighted mean score."""
    from scipy.optimize import isotonic_regression

    places, index, weights = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(index, weights=y) / weights
    levels = isotonic_regression(means, weights=weights.astype(np.float64)).x
    width = scale.high - scale.low
    stretch = np.concatenate([[0], np.cumsum(np.diff(levels) > 1e-9 * width)])
    mass = np.bincount(stretch, weights=weights)
    centres = np.bincount(stretch, weights=weights * places) / mass
    heights = np.bincount(stretch, weights=weights * levels) / mass
    room = 1.0 - 2.0 * END_MARGIN
    inside = scale.low + width * (END_MARGIN + room * (heights - scale.low) / width)
    return np.stack([centres, inside])


def _approach(distance: FloatArray, room: float, slope: float) -> FloatArray:
    """Distance covered towards an end `room` away: starts with `slope`, rises strictly, never arrives."""
    beyond = slope * np.clip(np.nan_to_num(distance), 0.0, 1e100)
    return np.asarray(room * (beyond / (room + beyond)), dtype=np.float64)
