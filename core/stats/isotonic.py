"""A monotone map from a judge's scores to the human scale, fitted on calibration items.

Centred isotonic regression (Oron and Flournoy 2017, "Centered Isotonic Regression: Point and Interval Estimation for
Dose-Response Studies"): pool adjacent violators, shrink every level stretch to one point at its weighted mean score,
and join the points by straight lines.  So the map rises strictly where plain isotonic regression has steps, and
ranks, hence Spearman and Kendall, are unchanged.

Departures from the paper: outside the outermost points, where the paper stays level, the map goes on towards the
ends of the human scale along a hyperbola (slope of the nearest segment at the start, never reaching the end); to
leave room for that, the fitted heights are drawn together by `END_MARGIN` of the scale's width at each end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.errors import JudgeError
from core.records import FloatArray, Scale
from core.stats.correlation import present, spearman

MIN_LABELS = 10
"""Fewest labelled and scored items a map is fitted on."""

END_MARGIN = 0.005
"""Share of the scale's width kept free at each end for scores beyond the fitted range."""


@dataclass(frozen=True, slots=True)
class IsotonicMap:
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

    def as_json(self) -> dict[str, Any]:
        """``{"x", "y", "low", "high"}``: a few points, fit for a judge file."""
        return {"x": list(self.x), "y": list(self.y), "low": self.low, "high": self.high}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> IsotonicMap:
        """The map `as_json` wrote.  JudgeError when a part is missing, not a number, or does not ascend."""
        try:
            x, y = (tuple(float(value) for value in body[side]) for side in ("x", "y"))
            low, high = float(body["low"]), float(body["high"])
        except (KeyError, TypeError, ValueError) as error:
            raise JudgeError(
                f"The score map needs the number lists x and y and the numbers low and high: {error}"
            ) from error
        return cls(x, y, low, high)


@dataclass(frozen=True, slots=True)
class IsotonicFit:
    """`map` None means the scores are used as they come, and `reason` says why.  `n` items were fitted on.

    `reason` can also hold a warning beside a map (scores run against the labels).
    """

    map: IsotonicMap | None
    n: int
    reason: str = ""


def fit_isotonic(scores: ArrayLike, labels: ArrayLike, scale: Scale, *, min_labels: int = MIN_LABELS) -> IsotonicFit:
    """Fit a map from `scores` (n_items,) to `labels` (n_items,), NaN = missing, on the human `scale`.

    Always increasing, also where the scores run against the labels (then `reason` says so: a map must not turn a bad
    judge round).  No map with fewer than `min_labels` items having both, when a side is constant, or when no increase
    is left after pooling.  ValueError when the lengths differ, UsageError for ±inf.
    """
    x, y = present(scores, labels)
    if x.size < max(min_labels, 2):
        return IsotonicFit(None, x.size, f"{x.size} items have score and label; a map needs {max(min_labels, 2)}")
    for side, values in (("scores", x), ("labels", y)):
        if values.min() == values.max():
            return IsotonicFit(None, x.size, f"all {side} are equal, so there is nothing to map")
    if y.min() < scale.low or y.max() > scale.high:
        return IsotonicFit(None, x.size, f"labels from {y.min():g} to {y.max():g} leave the scale {scale}")
    knots = _centred_knots(x, y, scale)
    against = bool(spearman(x, y) < 0)
    if knots.shape[1] < 2:
        why = "scores run against the labels" if against else "labels do not rise with the scores"
        return IsotonicFit(None, x.size, f"{why}: no increasing map exists")
    warning = "scores run against the labels; the map still increases" if against else ""
    fitted = IsotonicMap(tuple(knots[0].tolist()), tuple(knots[1].tolist()), scale.low, scale.high)
    return IsotonicFit(fitted, x.size, warning)


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
