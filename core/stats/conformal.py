"""How sure a verdict is: a conformal interval on the human scale around every calibrated score.

Split conformal prediction (Vovk, Gammerman, Shafer 2005; Lei et al. 2018) with residuals of the monotone map that are
cross-fitted over the sources of calibration.  An item's *strangeness* is its error over the error expected of it
(`core.stats.expected_error`, cross-fitted too); the interval reaches the quantile of strangeness times the expected
error to each side.

The quantile is taken *by source*: every source has the same mass, and 1 / (n + 1) of the mass lies at infinity, for the
verdict to come.  n is the number of items that the errors are worth: all of them where those of a source are no more
alike than others, the number of sources where they are all alike (n / (1 + (m − 1)·ICC), Kish 1965).  Taking n as the
number of sources outright (Dunn, Wasserman, Ramdas 2023) is safe and too wide: in simulation it covers 96 to 99 % for
nominal 90 % at 9 sources of 6 items, this one 91 to 92 %.  The sources have to be enough in any case: 9 for 90 %, 19
for 95 %.  Between two errors the quantile is interpolated (Beran and Hall 1993), since the larger holds up to
1 / (n + 1) more than was asked for.

Where all labels of calibration lie on the scale's steps the interval is taken to those points (Sheng et al. 2025),
which loses no coverage; for yes and no that makes a prediction set of one answer or of both.  Coverage is marginal:
over items like those of calibration, not for each score or each system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import JudgeError
from core.records import FloatArray, IntArray, Item, Scale
from core.stats.expected_error import (
    FOLDS,
    ExpectedError,
    crossed_errors,
    fit_expected_error,
    known_features,
    short,
    source_folds,
)
from core.stats.on_scale import fit_isotonic, to_steps
from core.stats.selective import KeptShare, kept_shares
from core.wording import percent

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Shares of labels that an interval may be asked to hold."""

USUAL_COVERAGE = 0.9
_ROUNDING = 1e-9


def least_sources(coverage: float) -> int:
    """Fewest sources from which an interval of this coverage exists: 9 for .9, 19 for .95."""
    return int(np.ceil(coverage / (1.0 - coverage) - 1e-6))


@dataclass(frozen=True, slots=True)
class VerdictIntervals:
    """What the interval around a verdict is made of, from `n` cross-fitted errors on `n_sources` sources.

    `quantiles` map a coverage to the quantile of strangeness, None where the sources are too few for it.  `on_points`:
    people's labels lie on the scale's steps, so intervals end there.  `kept` is the error against the share kept.
    `expected` is None, and the rest empty, where there are no intervals; `reason` says why.
    """

    n: int
    n_sources: int
    expected: ExpectedError | None = None
    on_points: bool = False
    quantiles: Mapping[float, float | None] = field(default_factory=dict)
    kept: tuple[KeptShare, ...] = ()
    reason: str = ""

    def quantile(self, coverage: float) -> float | None:
        """That of the least kept coverage that is not below `coverage`; None where there is none."""
        at = [kept for kept in self.quantiles if kept >= coverage - _ROUNDING]
        return self.quantiles[min(at)] if at else None

    def why_none(self, coverage: float) -> str:
        """Why no interval of this coverage exists; "" where one does."""
        if self.reason or self.quantile(coverage) is not None:
            return self.reason
        return (
            f"an interval of {percent(coverage)} takes labels on at least {least_sources(coverage)} sources; the "
            f"calibration had {self.n_sources}"
        )

    def around(self, calibrated: FloatArray, expected: FloatArray, scale: Scale, coverage: float) -> FloatArray:
        """(2, n) low and high ends around `calibrated` (n,), within the scale; NaN where there is none."""
        quantile = self.quantile(coverage)
        if quantile is None:
            return np.full((2, calibrated.size), np.nan)
        reach = quantile * expected
        ends = np.stack([calibrated - reach, calibrated + reach])
        return to_points(ends, calibrated, scale) if self.on_points else np.clip(ends, scale.low, scale.high)

    def as_json(self) -> dict[str, Any]:
        """Numbers alone, as a judge file holds them."""
        return {
            "n": self.n,
            "n_sources": self.n_sources,
            "reason": self.reason or None,
            "on_points": self.on_points,
            "expected_error": None if self.expected is None else self.expected.as_json(),
            "quantiles": [[at, None if value is None else short(value)] for at, value in self.quantiles.items()],
            "kept": [kept.as_json() for kept in self.kept],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> VerdictIntervals:
        """What `as_json` wrote.  JudgeError where a part is missing or no number."""
        try:
            expected = body["expected_error"]
            return cls(
                int(body["n"]),
                int(body["n_sources"]),
                None if expected is None else ExpectedError.from_json(expected),
                bool(body["on_points"]),
                {float(at): None if value is None else float(value) for at, value in body["quantiles"]},
                tuple(KeptShare(*map(float, kept)) for kept in body["kept"]),
                str(body["reason"] or ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"The intervals of the judge are damaged ({error}). Calibrate again.") from error


def to_points(ends: FloatArray, calibrated: FloatArray, scale: Scale) -> FloatArray:
    """`ends` (2, n) drawn in to the outermost steps of the scale between them; the nearest step where there is none."""
    step = scale.step or 1.0
    last = np.rint((scale.high - scale.low) / step)
    low = np.ceil((ends[0] - scale.low) / step - _ROUNDING)
    high = np.floor((ends[1] - scale.low) / step + _ROUNDING)
    nearest = to_steps(calibrated, scale)
    empty = np.maximum(low, 0.0) > np.minimum(high, last)
    steps = np.clip(np.stack([np.where(empty, nearest, low), np.where(empty, nearest, high)]), 0.0, last)
    return np.asarray(np.where(np.isnan(calibrated), np.nan, scale.low + step * steps), dtype=np.float64)


def verdict_errors(calibrated: FloatArray, labels: FloatArray, scale: Scale, *, on_points: bool) -> FloatArray:
    """(n,) what a verdict is off: points of the scale, and for yes and no 1 where the answer is wrong, else 0."""
    if on_points and scale.two_steps:
        return np.abs(to_steps(calibrated, scale) - to_steps(labels, scale))
    return np.asarray(np.abs(calibrated - labels), dtype=np.float64)


def labels_on_points(labels: FloatArray, scale: Scale) -> bool:
    """Whether all `labels` (n,) lie on steps of the scale (means of raters lie between)."""
    if scale.step is None:
        return False
    steps = (labels - scale.low) / scale.step
    return bool(np.allclose(steps, np.rint(steps), atol=1e-6))


def cross_mapped(
    scores: FloatArray, labels: FloatArray, sources: IntArray, scale: Scale, *, n_folds: int = FOLDS, seed: int = 0
) -> FloatArray:
    """(n,) scores mapped by the maps of the other folds of sources; NaN where none exists."""
    mapped = np.full(scores.size, np.nan)
    folds = source_folds(sources, n_folds, seed)
    for fold in range(int(folds.max(initial=-1)) + 1):
        out = folds == fold
        other = fit_isotonic(scores[~out], labels[~out], scale)
        if other.map is not None:
            mapped[out] = other.map.apply(scores[out])
    return mapped


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """(n,) `scores` of a judge with their `spread` over criteria, people's `labels` (NaN = missing), and `items`."""

    items: tuple[Item, ...]
    scores: FloatArray
    spread: FloatArray
    labels: FloatArray
    sources: IntArray

    def take(self, chosen: IntArray) -> JudgedItems:
        """Those at places `chosen`."""
        items = tuple(self.items[k] for k in chosen)
        numbers = self.scores[chosen], self.spread[chosen], self.labels[chosen]
        return JudgedItems(items, *numbers, self.sources[chosen])


def fit_intervals(judged: JudgedItems, scale: Scale) -> VerdictIntervals:
    """Intervals from the items that have score and label, all of one kind with those whose verdicts come later.

    None, with a reason, where no map exists (a constant judge, too few labels) or the sources are too few for any.
    """
    usable = judged.take(np.flatnonzero(~np.isnan(judged.scores) & ~np.isnan(judged.labels)))
    n, n_sources = usable.scores.size, int(np.unique(usable.sources).size)
    fit = fit_isotonic(usable.scores, usable.labels, scale)
    if fit.map is None:
        return VerdictIntervals(n, n_sources, reason=fit.reason)
    calibrated = cross_mapped(usable.scores, usable.labels, usable.sources, scale, n_folds=2 * FOLDS)
    if np.isnan(calibrated).any() or n_sources < least_sources(COVERAGES[0]) + 1:
        few = f"the map cannot be tried on other sources: {n} labels on {n_sources} sources are too few"
        return VerdictIntervals(n, n_sources, reason=few)
    features = known_features(usable.items, calibrated, usable.spread, scale)
    residuals = np.abs(usable.labels - calibrated)
    expected = crossed_errors(features, residuals, usable.sources)
    on_points = labels_on_points(usable.labels, scale)
    strangeness = residuals / expected
    return VerdictIntervals(
        n,
        n_sources,
        fit_expected_error(features, residuals, usable.sources),
        on_points,
        {coverage: source_quantile(strangeness, usable.sources, coverage) for coverage in COVERAGES},
        kept_shares(expected, verdict_errors(calibrated, usable.labels, scale, on_points=on_points)),
    )


def source_quantile(strangeness: FloatArray, sources: IntArray, coverage: float) -> float | None:
    """The finite-sample quantile by source (see above), between two errors where it falls between them; None where the
    sources are too few.
    """
    _, of_item, sizes = np.unique(sources, return_inverse=True, return_counts=True)
    if sizes.size < least_sources(coverage):
        return None
    order = np.argsort(strangeness, kind="stable")
    mass = np.cumsum(1.0 / (sizes[of_item[order]] * sizes.size))
    worth = worth_in_items(strangeness > strangeness[order[np.searchsorted(mass, coverage - _ROUNDING)]], of_item)
    mass *= worth / (worth + 1.0)
    return float(np.interp(coverage, mass, strangeness[order])) if mass[-1] >= coverage - _ROUNDING else None


def worth_in_items(marks: np.ndarray[Any, np.dtype[np.bool_]], sources: IntArray) -> float:
    """How many independent items marks (n,) of grouped ones are worth: n where those of a source are no more alike.

    n / (1 + (m − 1)·ICC) with the intraclass correlation by analysis of variance, at least the number of sources.
    """
    sizes = np.bincount(sources)
    n, n_sources = int(sizes.sum()), sizes.size
    if n == n_sources or n_sources < 2:
        return float(n_sources)
    means = np.bincount(sources, weights=marks) / sizes
    within = ((marks - means[sources]) ** 2).sum() / (n - n_sources)
    between = (sizes * (means - marks.mean()) ** 2).sum() / (n_sources - 1)
    usual = (n - (sizes**2).sum() / n) / (n_sources - 1)
    total = between + (usual - 1.0) * within
    alike = max(0.0, (between - within) / total) if total > 0 else 0.0
    return float(np.clip(n / (1.0 + ((sizes**2).sum() / n - 1.0) * alike), n_sources, n))


def criteria_spread(members: FloatArray) -> FloatArray:
    """(n_items,) standard deviation over the criteria (k, n_items) that scored an item; 0 where fewer than two did."""
    read = ~np.isnan(members)
    count = np.maximum(read.sum(axis=0), 1)
    mean = np.where(read, members, 0.0).sum(axis=0) / count
    squares = np.where(read, (members - mean) ** 2, 0.0).sum(axis=0) / count
    return np.asarray(np.sqrt(squares), dtype=np.float64)
