"""Compare scores with labels on their scale: errors, agreement on steps and classes, and intervals around scores.

Scores and labels are (n_items,); NaN is a missing value. An undefined result is None, with a reason.

# Map to the labels' scale

Errors and agreement need scores on the scale of the labels. The map to this scale is centred isotonic regression (Oron
and Flournoy 2017, "Centered Isotonic Regression: Point and Interval Estimation for Dose-Response Studies"). The map
rises strictly, so it keeps ranks. Beyond its outermost points, where the paper's map is flat, it approaches the ends of
the scale along hyperbolas.

# Intervals around verdicts

Intervals come from split conformal prediction (Vovk, Gammerman and Shafer 2005; Lei et al. 2018). Half the width is an
interpolated quantile (Beran and Hall 1993) of the cross-fitted errors and of one infinite error, for the new verdict.
Every source has the same weight. The infinite error has the share 1 / (n + 1) of the total weight. Here n = n_items /
(1 + (m − 1)·ICC) is the effective number of independent errors (Kish 1965), for m items per source.

A nominal 90 % interval covers 91 to 92 % in simulations with 9 sources of 6 items. With the number of sources as n
(Dunn, Wasserman and Ramdas 2023), coverage would be 96 to 99 %. If all calibration labels are steps of the scale,
interval ends are steps too (Sheng et al. 2025). Coverage is an average over items like those of the calibration, not
for each score or system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from core.errors import JudgeError
from core.records import LEVELS, STATISTICS, Alignment, FloatArray, IntArray, JsonRecord, Measure, Scale
from core.stats.alignment import align
from core.stats.correlation import FOLDS, NO_PAIR, LabelledItems, present, source_folds, spearman
from core.stats.intervals import intraclass_correlation
from core.wording import percent

Read = TypeVar("Read", "IsotonicMap", "VerdictIntervals")

MIN_LABELS = 10
"""Fewest items with label and score to fit a map."""

END_MARGIN = 0.005
"""Share of the scale's width kept free at each end for scores beyond the fitted range."""


@dataclass(frozen=True, slots=True)
class AbsoluteErrors(JsonRecord):
    """Errors of scores, in points of the scale. An error is None if no item has both a score and a label.

    Attributes:
        mae: Mean of |score − label|.
        bias: Mean of score − label; positive if the judge is more generous than the raters.
        n: Number of items used.
        n_unscored: Number of labelled items without a score.
    """

    mae: float | None
    bias: float | None
    n: int
    n_unscored: int = 0


def absolute_errors(scores: ArrayLike, labels: ArrayLike) -> AbsoluteErrors:
    """Return the errors of `scores`, compared with `labels`; (n_items,) each, NaN = missing."""
    x, y = present(scores, labels)
    n_unscored = int((~np.isnan(np.asarray(labels, dtype=np.float64))).sum()) - x.size
    if not x.size:
        return AbsoluteErrors(None, None, 0, n_unscored)
    return AbsoluteErrors(float(np.abs(x - y).mean()), float((x - y).mean()), x.size, n_unscored)


@dataclass(frozen=True, slots=True)
class StepAgreement(JsonRecord):
    """Agreement on the steps of an ordinal scale. Scores and labels are rounded to the nearest step (halves up).

    Attributes:
        quadratic_kappa: 1 for perfect agreement, 0 for agreement by chance. None on a scale of two steps.
        exact: Share of items whose rounded score and label are equal.
        adjacent: Share of items whose rounded score and label differ by at most one step. None on a scale of two steps.
        reason: Why a value is None; "" if all are defined.
    """

    quadratic_kappa: float | None
    exact: float | None
    adjacent: float | None
    n: int
    reason: str = ""


def step_agreement(scores: ArrayLike, labels: ArrayLike, scale: Scale) -> StepAgreement:
    """Return the agreement on the steps of `scale`.

    Values beyond the scale are moved to its nearest end. Quadratic kappa is undefined on a continuous scale, and on a
    scale of two steps.
    """
    x, y = present(scores, labels)
    if scale.step is None or not x.size:
        reason = f"the scale {scale} is continuous, so it has no steps to compare" if scale.step is None else NO_PAIR
        return StepAgreement(None, None, None, x.size, reason)
    a, b = to_steps(x, scale), to_steps(y, scale)
    apart = np.abs(a - b)
    exact, adjacent = float((apart == 0).mean()), float((apart <= 1).mean())
    if scale.two_steps:
        reason = f"the scale {scale} has only two steps; see the unweighted kappa instead"
        return StepAgreement(None, exact, None, x.size, reason)
    kappa = quadratic_kappa(a, b)
    return StepAgreement(
        kappa, exact, adjacent, x.size, "all scores and labels have the same value" if kappa is None else ""
    )


def quadratic_kappa(a: ArrayLike, b: ArrayLike) -> float | None:
    """Compute Cohen's quadratic-weighted kappa (1968) of the step numbers `a` and `b`, each (n,).

    kappa = 1 − (mean of (a_i − b_i)² over all i) / (mean of (a_i − b_j)² over all i and j).

    Returns None if no item has both values, or if all values are equal.
    """
    x, y = present(a, b)
    if not x.size:
        return None
    expected = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return None if expected == 0 else float(1.0 - ((x - y) ** 2).mean() / expected)


def to_steps(values: FloatArray, scale: Scale) -> FloatArray:
    """Return each value's nearest step of the scale, as a number from 0; halves are rounded up.

    Values beyond the scale are moved to its nearest end.
    """
    step = scale.step or 1.0
    # means of raters carry rounding: 2.4999999999999996 is a half
    numbers = np.floor((values - scale.low) / step + 0.5 + 1e-9)
    return np.asarray(np.clip(numbers, 0.0, np.rint((scale.high - scale.low) / step)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class BinaryAgreement(JsonRecord):
    """Agreement on two classes, of which the upper is positive. A value is None if it is undefined.

    For example, the precision of a judge without positives is undefined.

    Attributes:
        f1: 2·(true positives) / (positives of the judge + positives of the raters).
        kappa: Cohen's kappa (1960).
    """

    precision: float | None
    recall: float | None
    f1: float | None
    kappa: float | None
    n: int
    reason: str = ""


def binary_agreement(scores: ArrayLike, labels: ArrayLike, threshold: float = 0.5) -> BinaryAgreement:
    """Compute precision, recall, F1 and kappa.

    Values of at least `threshold` are positive.
    """
    x, y = present(scores, labels)
    up, true = x >= threshold, y >= threshold
    n, hits, n_up, n_true = x.size, int((up & true).sum()), int(up.sum()), int(true.sum())
    agreed, chance = int((up == true).sum()), n_up * n_true + (n - n_up) * (n - n_true)  # chance: of n²
    reasons = {
        "no score is positive": n_up == 0,
        "no label is positive": n_true == 0,
        "all scores and labels are in the same class": chance == n * n,
    }

    def share(part: int, whole: int) -> float | None:
        return part / whole if whole else None

    kappa = share(n * agreed - chance, n * n - chance)
    reason = "; ".join(reason for reason, holds in reasons.items() if holds) if n else NO_PAIR
    return BinaryAgreement(share(hits, n_up), share(hits, n_true), share(2 * hits, n_up + n_true), kappa, n, reason)


# ── full report ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AgreementReport(JsonRecord):
    """Errors of one judge, and its agreement with raters on steps and classes.

    Attributes:
        errors: None if scores lie outside the scale.
        steps: None if scores lie outside the scale.
        binary: None if scores lie outside the scale, or if the scale does not have exactly two steps.
        note: Why errors and agreement are missing; "" if they are not.
        basis: Whether the scores were used as given, or mapped to the raters' scale.
        alignments: Three statistics at each of three levels. Only `agreement_report` fills them in.
    """

    errors: AbsoluteErrors | None = None
    steps: StepAgreement | None = None
    binary: BinaryAgreement | None = None
    note: str = ""
    basis: Literal["as given", "mapped"] = "as given"
    alignments: tuple[Alignment, ...] = field(default=(), metadata={"silent": True})

    @property
    def words(self) -> str:
        """Phrase that names the scale of the errors, such as "on the raters' scale"."""
        return "on the raters' scale" if self.basis == "mapped" else "for the scores as given"


def on_scale(scores: ArrayLike, labels: ArrayLike, scale: Scale, *, mapped: ArrayLike | None = None) -> AgreementReport:
    """Compare `scores` with `labels` in points of the labels' `scale`.

    `mapped` are the scores (n_items,) mapped to the raters' scale. If given, they are used instead of `scores`.
    """
    if mapped is not None:
        return replace(on_scale(mapped, labels, scale), basis="mapped")
    x, _ = present(scores, labels)
    if x.size and not (scale.low <= x.min() and x.max() <= scale.high):
        return AgreementReport(note=f"the scores range from {x.min():g} to {x.max():g}, but the scale is {scale}")
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
    mapped: ArrayLike | None = None,
) -> AgreementReport:
    """Compare the `scores` of one judge with the labels of `items`: errors, steps, classes and all alignments.

    Args:
        scale: The scale of the labels.
        seed: Seed of the resampling.
        mapped: Scores mapped to `scale`, used instead of `scores` for errors, steps and classes.
    """
    measures = (Measure(statistic, level) for level in LEVELS for statistic in STATISTICS)
    alignments = tuple(align(scores, items, measure, seed=seed) for measure in measures)
    points = on_scale(scores, items.labels, scale, mapped=mapped)
    note = points.note and f"{points.note}; errors and agreement require scores on this scale"
    return replace(points, note=note, alignments=alignments)


# ── the map to the scale ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class IsotonicMap(JsonRecord):
    """Strictly increasing map from a judge's scores to the human scale.

    Attributes:
        x: Scores of the points that the map passes through, strictly ascending; at least 2.
        y: Mapped scores of the points, strictly ascending, and strictly between `low` and `high`.
        low, high: Ends of the human scale.

    Raises:
        JudgeError: The points or ends break these rules.
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
                f"The score map is damaged (x={list(self.x)[:5]}, y={list(self.y)[:5]}). The map needs at least two "
                f"ascending points inside the scale {self.low:g}-{self.high:g}. Calibrate again."
            )

    def apply(self, values: ArrayLike) -> FloatArray:
        """Map `values` to scores strictly between `low` and `high`. NaN stays NaN."""
        scores = np.asarray(values, dtype=np.float64)
        x, y = np.array(self.x), np.array(self.y)
        mapped = np.interp(scores, x, y)
        below = y[0] - _approach(x[0] - scores, y[0] - self.low, (y[1] - y[0]) / (x[1] - x[0]))
        above = y[-1] + _approach(scores - x[-1], self.high - y[-1], (y[-1] - y[-2]) / (x[-1] - x[-2]))
        mapped = np.where(scores < x[0], below, np.where(scores > x[-1], above, mapped))
        return np.where(np.isnan(scores), np.nan, mapped)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> IsotonicMap:
        """Read a map written by `as_json`. Raises JudgeError if a part is missing, not a number, or not ascending."""
        return _read(
            cls,
            body,
            "The score map must contain two lists of numbers, x and y, and two numbers, low and high. Calibrate again.",
        )


def fit_isotonic(scores: ArrayLike, labels: ArrayLike, scale: Scale) -> tuple[IsotonicMap | None, str]:
    """Fit a strictly increasing map from `scores` to `labels` on the human `scale`.

    Returns:
        The map and a warning ("" for none), or None and the reason why no map is possible. The warning says that higher
            scores tend to go with lower labels.

    No map is possible in these cases:

    - Fewer than `MIN_LABELS` items have both a score and a label.
    - All scores are equal, or all labels are equal.
    - A label lies outside the scale.
    - The isotonic regression of labels on scores is flat.
    """
    from scipy.optimize import isotonic_regression

    x, y = present(scores, labels)
    if x.size < MIN_LABELS:
        return None, f"{x.size} items have both a score and a label; a map needs at least {MIN_LABELS}"
    for side, values in (("scores", x), ("labels", y)):
        if values.min() == values.max():
            return None, f"all {side} are equal, so no map is possible"
    if y.min() < scale.low or y.max() > scale.high:
        return None, f"the labels range from {y.min():g} to {y.max():g}, outside the scale {scale}"
    places, index, weights = np.unique(x, return_inverse=True, return_counts=True)
    levels = isotonic_regression(np.bincount(index, weights=y) / weights, weights=weights.astype(np.float64)).x
    # flat stretches, each at its weighted mean score
    width = scale.high - scale.low
    stretch = np.concatenate([[0], np.cumsum(np.diff(levels) > 1e-9 * width)])
    mass = np.bincount(stretch, weights=weights)
    centres, heights = (np.bincount(stretch, weights=weights * side) / mass for side in (places, levels))
    inside = scale.low + width * (END_MARGIN + (1.0 - 2.0 * END_MARGIN) * (heights - scale.low) / width)
    against = bool(spearman(x, y) < 0)
    if centres.size < 2:
        why = "higher scores go with lower labels" if against else "the labels don't increase with the scores"
        return None, f"{why}, so no increasing map exists"
    fitted = IsotonicMap(tuple(centres.tolist()), tuple(inside.tolist()), scale.low, scale.high)
    return fitted, "higher scores go with lower labels, although the map increases" if against else ""


def _read(kind: type[Read], body: Mapping[str, Any], damaged: str) -> Read:
    """Read a record of `kind` from a judge file; JudgeError with the message `damaged`."""
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(kind).validate_python({each.name: body[each.name] for each in fields(kind)})
    except (KeyError, TypeError, ValueError) as error:
        raise JudgeError(damaged) from error


def _approach(distance: FloatArray, room: float, slope: float) -> FloatArray:
    """Return the distance covered towards an end `room` away.

    It starts with `slope`, rises strictly, and never reaches the end.
    """
    beyond = slope * np.clip(np.nan_to_num(distance), 0.0, 1e100)
    return np.asarray(room * (beyond / (room + beyond)), dtype=np.float64)


# ── uncertainty of verdicts ──────────────────────────────────────────────────────────────────────────────────

_ROUNDING = 1e-9
SHARES = tuple(k / 20 for k in range(1, 21))
"""Shares of verdicts kept, the surest first, on the error curve."""


def _short(numbers: FloatArray) -> list[float]:
    """Round to six significant digits, so that the file stays readable."""
    return [float(f"{number:.6g}") for number in numbers]


class KeptShare(NamedTuple):
    """Mean error of the most certain verdicts.

    Attributes:
        share: Share of all verdicts that are kept.
        expected: Largest expected error of a kept verdict.
        error: Mean error of the kept verdicts.
        best: Smallest mean error that any selection of as many verdicts could have.
    """

    share: float
    expected: float
    error: float
    best: float


def kept_shares(expected: FloatArray, errors: FloatArray) -> tuple[KeptShare, ...]:
    """Return the mean of `errors` (n,) over the most certain verdicts, for each share in `SHARES`.

    The most certain verdicts have the smallest `expected` errors (n,). Returns () if there are no items.
    """
    if not errors.size:
        return ()
    order, counts = np.argsort(expected, kind="stable"), np.arange(1, errors.size + 1)
    error, best = np.cumsum(errors[order]) / counts, np.cumsum(np.sort(errors)) / counts
    last = np.maximum(np.rint(np.array(SHARES) * errors.size).astype(np.intp), 1) - 1
    columns = (_short(column[last]) for column in (expected[order], error, best))
    return tuple(map(KeptShare, SHARES, *columns))


@dataclass(frozen=True, slots=True)
class Abstention:
    """Rule that leaves out the least certain verdicts, so that the mean error of the others is at most `wanted`.

    Attributes:
        overall: Mean error of all calibration verdicts.
        most_expected: Verdicts with a larger expected error are left out. None if all verdicts must be left out.
        share: Share of the calibration verdicts that remain; 0 if none do.
    """

    wanted: float
    overall: float
    most_expected: float | None
    share: float


def abstain_over(kept: tuple[KeptShare, ...], wanted: float) -> Abstention:
    """Return the rule that keeps as many verdicts as possible with a mean error of at most `wanted`.

    `kept` is `VerdictIntervals.kept`.
    """
    overall = kept[-1].error
    last = next((point for point in reversed(kept) if point.error <= wanted + _ROUNDING), None)
    if last is None:
        return Abstention(wanted, overall, None, 0.0)
    return Abstention(wanted, overall, np.inf if last.share == 1.0 else last.expected, last.share)


COVERAGE = 0.9
"""Share of labels that the intervals cover."""

LEAST_FOR_INTERVALS = 9
"""Fewest calibration sources for an interval of this coverage."""

EXPECTED_AT = 11
"""Number of scores at which the expected error is stored; it is interpolated between them."""
NEAR = 0.2
"""An expected error is the mean error of this share of the calibration items, those with the nearest scores."""


@dataclass(frozen=True, slots=True)
class VerdictIntervals(JsonRecord):
    """Intervals around verdicts, and expected errors of verdicts, both in points of the scale.

    Attributes:
        n: Number of items that the intervals were fitted to.
        n_sources: Number of sources of these items.
        reason: Why there are no intervals.
        on_points: Whether all raters' labels lie on steps of the scale. Interval ends then lie on steps too.
        expected_error: Pairs of a calibrated score and the expected error at that score.
        quantiles: Pairs of a coverage and half the interval width. The width is None with too few sources.
        kept: Mean error of the verdicts that remain if the least certain are left out, for several shares.

    Raises:
        JudgeError: An error is negative.
    """

    n: int
    n_sources: int
    reason: str = ""
    on_points: bool = False
    expected_error: tuple[tuple[float, float], ...] = ()
    quantiles: tuple[tuple[float, float | None], ...] = ()
    kept: tuple[KeptShare, ...] = ()

    def __post_init__(self) -> None:
        if min((error or 0.0 for _, error in (*self.expected_error, *self.quantiles)), default=0.0) < 0:
            raise JudgeError(DAMAGED)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> VerdictIntervals:
        """Read intervals written by `as_json`. Raises JudgeError if a part is missing or not a number."""
        return _read(cls, {**body, "reason": body.get("reason") or ""}, DAMAGED)

    @property
    def reach(self) -> float | None:
        """Half the width of each interval, in points of the scale; None if there are no intervals."""
        return dict(self.quantiles).get(COVERAGE)

    @property
    def why_none(self) -> str:
        """The reason why there are no intervals; "" if there are."""
        if self.reason or self.reach is not None:
            return self.reason
        return (
            f"a {percent(COVERAGE)} interval needs labels from at least {LEAST_FOR_INTERVALS} sources; the "
            f"calibration had {self.n_sources}"
        )

    def expected_errors(self, calibrated: FloatArray) -> FloatArray:
        """Return the expected errors (n,), in points, of verdicts with scores `calibrated` (n,); NaN if unknown."""
        scores, errors = np.array(self.expected_error or [(0.0, np.nan)]).T
        return np.asarray(np.interp(calibrated, scores, errors), dtype=np.float64)

    def around(self, calibrated: FloatArray, scale: Scale) -> FloatArray:
        """Return the low and high ends (2, n) of the intervals around `calibrated` scores (n,), clipped to `scale`.

        NaN means no interval. If `on_points` is true, both ends move inwards to a step of the scale. If no step lies in
        the interval, both ends are the step nearest to the score.
        """
        if self.reach is None:
            return np.full((2, calibrated.size), np.nan)
        ends = np.stack([calibrated - self.reach, calibrated + self.reach])
        if not self.on_points:
            return np.clip(ends, scale.low, scale.high)
        step = scale.step or 1.0
        last, numbers = np.rint((scale.high - scale.low) / step), (ends - scale.low) / step
        low, high = np.ceil(numbers[0] - _ROUNDING), np.floor(numbers[1] + _ROUNDING)
        empty = np.maximum(low, 0.0) > np.minimum(high, last)
        steps = np.clip(np.where(empty, to_steps(calibrated, scale), [low, high]), 0.0, last)
        return np.where(np.isnan(calibrated), np.nan, scale.low + step * steps)


DAMAGED = "The judge's intervals are damaged. Calibrate again."


def verdict_errors(calibrated: FloatArray, labels: FloatArray, scale: Scale, *, on_points: bool) -> FloatArray:
    """Return the errors (n,) of verdicts in points of the scale.

    With `on_points`, on a scale of two steps, the error is 1 for a wrong answer and 0 for a right one.
    """
    if on_points and scale.two_steps:
        return np.abs(to_steps(calibrated, scale) - to_steps(labels, scale))
    return np.asarray(np.abs(calibrated - labels), dtype=np.float64)


def labels_on_points(labels: FloatArray, scale: Scale) -> bool:
    """Return whether all `labels` (n,) lie on steps of the scale. Means of raters can lie between steps."""
    steps = (labels - scale.low) / (scale.step or 1.0)
    return scale.step is not None and bool(np.allclose(steps, np.rint(steps), atol=1e-6))


def cross_mapped(
    scores: FloatArray, labels: FloatArray, sources: IntArray, scale: Scale, *, n_folds: int = FOLDS, seed: int = 0
) -> FloatArray:
    """Map each score (n,) with a map fitted to other sources; NaN if no map could be fitted."""
    mapped = np.full(scores.size, np.nan)
    folds = source_folds(sources, n_folds, seed)
    for fold in np.unique(folds):
        out = folds == fold
        if fitted := fit_isotonic(scores[~out], labels[~out], scale)[0]:
            mapped[out] = fitted.apply(scores[out])
    return mapped


def fit_intervals(scores: FloatArray, labels: FloatArray, sources: IntArray, scale: Scale) -> VerdictIntervals:
    """Fit intervals around verdicts to the items that have both a score and a label.

    All arrays are (n,); NaN is a missing value. The items must resemble the items of later verdicts. If no intervals
    are possible, the `reason` of the result says why.

    Args:
        sources: Integer codes; items with the same code share a source.
        scale: The scale of the labels.
    """
    usable = ~np.isnan(scores) & ~np.isnan(labels)
    scores, labels, sources = scores[usable], labels[usable], sources[usable]
    n, n_sources = scores.size, int(np.unique(sources).size)
    fitted, reason = fit_isotonic(scores, labels, scale)
    if fitted is None:
        return VerdictIntervals(n, n_sources, reason)
    calibrated = cross_mapped(scores, labels, sources, scale, n_folds=2 * FOLDS)
    if np.isnan(calibrated).any() or n_sources < 2:
        few = f"too few labels to test the score map on other sources ({n} labels from {n_sources} sources)"
        return VerdictIntervals(n, n_sources, few)
    residuals, on_points = np.abs(labels - calibrated), labels_on_points(labels, scale)
    crossed, folds = np.empty(n), source_folds(sources, 2 * FOLDS, seed=2)
    for fold in np.unique(folds):  # each item is mapped by other sources, like a later verdict
        out = folds == fold
        crossed[out] = np.interp(calibrated[out], *_errors_by_score(calibrated[~out], residuals[~out]))
    reach = source_quantile(residuals, sources)
    return VerdictIntervals(
        n,
        n_sources,
        "",
        on_points,
        tuple(zip(*map(_short, _errors_by_score(calibrated, residuals)), strict=True)),
        ((COVERAGE, None if reach is None else float(f"{reach:.6g}")),),
        kept_shares(crossed, verdict_errors(calibrated, labels, scale, on_points=on_points)),
    )


def _errors_by_score(calibrated: FloatArray, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average the residuals nearest to each of `EXPECTED_AT` scores; return the scores and the averages."""
    at = np.unique(np.quantile(calibrated, np.linspace(0, 1, EXPECTED_AT)))
    n_near = max(1, round(NEAR * calibrated.size))
    near = [np.argsort(np.abs(calibrated - score), kind="stable")[:n_near] for score in at]
    return at, np.array([residuals[those].mean() for those in near])


def source_quantile(errors: FloatArray, sources: IntArray) -> float | None:
    """Return the conformal `COVERAGE` quantile of `errors`, each source weighted equally; None for too few sources."""
    _, of_item, sizes = np.unique(sources, return_inverse=True, return_counts=True)
    if sizes.size < LEAST_FOR_INTERVALS:
        return None
    order = np.argsort(errors, kind="stable")
    mass = np.cumsum(1.0 / (sizes[of_item[order]] * sizes.size))
    # effective number of independent items: n / (1 + (m − 1)·ICC)
    larger = errors > errors[order[np.searchsorted(mass, COVERAGE - _ROUNDING)]]
    alike = max(0.0, intraclass_correlation(larger.astype(np.float64), of_item))  # 0 for NaN
    worth = errors.size / (1.0 + ((sizes**2).sum() / errors.size - 1.0) * alike)
    worth = np.clip(worth, sizes.size, errors.size)
    mass *= worth / (worth + 1.0)
    return float(np.interp(COVERAGE, mass, errors[order])) if mass[-1] >= COVERAGE - _ROUNDING else None
