"""A judge's scores on the scale of the labels, rather than in rank: errors in points, agreement on steps, two classes.

A judge can rank well and still be too strict.  Scores must mean what labels mean: map them first
(`core.stats.isotonic`).  Undefined is a value of its own (None with a reason), never 0 and never 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.json_form import json_fields
from core.records import LEVELS, STATISTICS, Alignment, FloatArray, Measure, Scale
from core.stats.alignment import RESAMPLES, align
from core.stats.claims import NO_PAIR
from core.stats.correlation import present
from core.stats.items import LabelledItems


@dataclass(frozen=True, slots=True)
class AbsoluteErrors:
    """Errors in points of the scale.  None is undefined (no item has both), not 0.

    `mae` = mean |score − label|, from 0 (exact) upwards.  `bias` = mean (score − label): positive when the judge is
    more generous than the people.  `n` counts the items used, `n_unscored` the labelled items without a score.
    """

    mae: float | None
    bias: float | None
    n: int
    n_unscored: int = 0

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


def absolute_errors(scores: ArrayLike, labels: ArrayLike) -> AbsoluteErrors:
    """Errors of `scores` (n_items,) against `labels` (n_items,), NaN = missing on either side.

    ValueError when the lengths differ, UsageError for ±inf.
    """
    x, y = present(scores, labels)
    n_unscored = int((~np.isnan(np.asarray(labels, dtype=np.float64))).sum()) - x.size
    if not x.size:
        return AbsoluteErrors(None, None, 0, n_unscored)
    return AbsoluteErrors(float(np.abs(x - y).mean()), float((x - y).mean()), x.size, n_unscored)


@dataclass(frozen=True, slots=True)
class StepAgreement:
    """Judge and people on the steps of an ordinal scale, both taken to the nearest step (halves go up).

    `quadratic_kappa` is 1 perfect, 0 as by chance.  `exact` and `adjacent` are shares of the `n` items on the same
    step and at most one step apart.  None is undefined; `reason` says why.
    """

    quadratic_kappa: float | None
    exact: float | None
    adjacent: float | None
    n: int
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


def step_agreement(scores: ArrayLike, labels: ArrayLike, scale: Scale) -> StepAgreement:
    """Quadratic-weighted kappa, exact and adjacent agreement of (n_items,) sides on the steps of `scale`.

    Quadratic kappa (Cohen 1968) is undefined on a continuous scale and on a scale of two steps, where there are no
    distances to weigh.  Scores outside the scale are put on its nearest end.
    """
    x, y = present(scores, labels)
    if scale.step is None:
        return StepAgreement(None, None, None, x.size, f"the scale {scale} has no steps to agree on")
    if not x.size:
        return StepAgreement(None, None, None, 0, NO_PAIR)
    a, b = to_steps(x, scale), to_steps(y, scale)
    apart = np.abs(a - b)
    exact, adjacent = float((apart == 0).mean()), float((apart <= 1).mean())
    if scale.two_steps:
        reason = f"the scale {scale} has two steps, so no distances to weigh: see the plain kappa of the two classes"
        return StepAgreement(None, exact, None, x.size, reason)
    kappa = quadratic_kappa(a, b)
    reason = "all scores and all labels fall on one step" if kappa is None else ""
    return StepAgreement(kappa, exact, adjacent, x.size, reason)


def quadratic_kappa(a: ArrayLike, b: ArrayLike) -> float | None:
    """1 − Σ(a_i − b_i)² / mean over all i, j of Σ(a_i − b_j)², for (n_items,) step numbers (Cohen 1968).

    Distances are those of the values, so steps that never occur still count as steps between.  None when undefined:
    no item with both, or every value on both sides the same.
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
class BinaryAgreement:
    """Judge and people on two classes, the upper one being the positive.

    Precision: of those the judge put up, the share the people did; recall: of those the people put up, the share the
    judge did; F1 = 2·hits / (put up by the judge + put up by people), their harmonic mean; `kappa` Cohen's (1960).
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

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


def binary_agreement(scores: ArrayLike, labels: ArrayLike, threshold: float = 0.5) -> BinaryAgreement:
    """Precision, recall, F1 and kappa of (n_items,) sides, `threshold` and above being the positive class.

    Scores must mean what labels mean (a share or a probability on 0 to 1 at 0.5, the middle of the scale otherwise).
    """
    x, y = present(scores, labels)
    up, true = x >= threshold, y >= threshold
    n, hits, n_up, n_true = x.size, int((up & true).sum()), int(up.sum()), int(true.sum())
    reasons = []
    if not n:
        reasons.append(NO_PAIR)
    else:
        reasons += ["no score is positive"] if not n_up else []
        reasons += ["no label is positive"] if not n_true else []
    agreed = hits + n - n_up - n_true + hits
    chance = n_up * n_true + (n - n_up) * (n - n_true)  # of n²
    if n and chance == n * n:
        reasons.append("scores and labels are all of one class")
    return BinaryAgreement(
        precision=hits / n_up if n_up else None,
        recall=hits / n_true if n_true else None,
        f1=2 * hits / (n_up + n_true) if n_up + n_true else None,
        kappa=(n * agreed - chance) / (n * n - chance) if n and chance < n * n else None,
        n=n,
        n_positive_labels=n_true,
        n_positive_scores=n_up,
        reason="; ".join(reasons),
    )


# ── everything at once ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class OnScale:
    """Errors, steps and classes of one judge, None where they have no meaning; `note` says why.

    `errors` and `steps` are None where scores leave the scale, `binary` also where the scale has other than two steps.
    """

    errors: AbsoluteErrors | None = None
    steps: StepAgreement | None = None
    binary: BinaryAgreement | None = None
    note: str = ""


def on_scale(scores: ArrayLike, labels: ArrayLike, scale: Scale) -> OnScale:
    """What `scores` (n_items,) are beside `labels` (n_items,) in points of the labels' `scale`; NaN = missing."""
    x, _ = present(scores, labels)
    if x.size and not (scale.low <= x.min() and x.max() <= scale.high):
        return OnScale(note=f"scores go from {x.min():g} to {x.max():g}, the scale is {scale}")
    middle = (scale.low + scale.high) / 2
    return OnScale(
        absolute_errors(scores, labels),
        step_agreement(scores, labels, scale),
        binary_agreement(scores, labels, threshold=middle) if scale.two_steps else None,
    )


@dataclass(frozen=True)
class AgreementReport:
    """Everything about one judge beside the people: three statistics at each of three levels, and `OnScale`."""

    alignments: tuple[Alignment, ...]
    errors: AbsoluteErrors | None
    steps: StepAgreement | None
    binary: BinaryAgreement | None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The JSON of `align --all` (DESIGN §3), with the parts beside it."""
        return json_fields(self)


def agreement_report(
    scores: ArrayLike, items: LabelledItems, *, scale: Scale, seed: int, resamples: int = RESAMPLES
) -> AgreementReport:
    """All of one judge's `scores` (n_items,), NaN = missing, beside the labels of `items`; `scale` is theirs.

    Each alignment draws its own resamples from `seed`, so that it equals the one asked for alone.
    """
    alignments = tuple(
        align(scores, items, Measure(statistic, level), resamples=resamples, seed=seed)
        for level in LEVELS
        for statistic in STATISTICS
    )
    points = on_scale(scores, items.labels, scale)
    note = points.note and f"{points.note}: errors and agreement need scores on the scale"
    return AgreementReport(alignments, points.errors, points.steps, points.binary, note)
