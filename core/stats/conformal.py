"""How sure a verdict is: a conformal interval on the human scale around every calibrated score.

Split conformal prediction (Vovk, Gammerman, Shafer 2005; Lei et al. 2018) with the errors of the monotone map, which is
cross-fitted over the sources of calibration.  The interval reaches the quantile of these errors to each side.

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

Which verdicts are unsure, and may be left out, goes by the error expected of them: the mean error of the calibration
items with the nearest scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import JudgeError
from core.records import FloatArray, IntArray, Scale
from core.stats.on_scale import fit_isotonic, to_steps
from core.stats.selective import KeptShare, kept_shares, short
from core.stats.source_folds import FOLDS, source_folds
from core.wording import percent

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Shares of labels that an interval may be asked to hold."""

USUAL_COVERAGE = 0.9
EXPECTED_AT = 11
"""Scores at which the expected error is kept; it is interpolated between them."""
NEAR = 0.2
"""Share of the calibration items, those with the nearest scores, whose errors an expected error is the mean of."""
_ROUNDING = 1e-9


def least_sources(coverage: float) -> int:
    """Fewest sources from which an interval of this coverage exists: 9 for .9, 19 for .95."""
    return int(np.ceil(coverage / (1.0 - coverage) - 1e-6))


@dataclass(frozen=True, slots=True)
class VerdictIntervals:
    """What the interval around a verdict is made of, from `n` cross-fitted errors on `n_sources` sources.

    `expected` are pairs of a calibrated score and the error expected there, in points.  `quantiles` map a coverage to
    the points that an interval reaches to each side, None where the sources are too few for it.  `on_points`: raters'
    labels lie on the scale's steps, so intervals end there.  `kept` is the error against the share kept.  `expected`
    and the rest are empty where there are no intervals; `reason` says why.
    """

    n: int
    n_sources: int
    expected: tuple[tuple[float, float], ...] = ()
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

    def expected_errors(self, calibrated: FloatArray) -> FloatArray:
        """(n,) how far verdicts of these scores may lie from the label, in points; NaN where that is unknown."""
        if not self.expected:
            return np.full(calibrated.size, np.nan)
        scores, errors = zip(*self.expected, strict=True)
        return np.asarray(np.interp(calibrated, scores, errors), dtype=np.float64)

    def around(self, calibrated: FloatArray, scale: Scale, coverage: float) -> FloatArray:
        """(2, n) low and high ends around `calibrated` (n,), within the scale; NaN where there is none."""
        reach = self.quantile(coverage)
        if reach is None:
            return np.full((2, calibrated.size), np.nan)
        ends = np.stack([calibrated - reach, calibrated + reach])
        return to_points(ends, calibrated, scale) if self.on_points else np.clip(ends, scale.low, scale.high)

    def as_json(self) -> dict[str, Any]:
        """Numbers alone, as a judge file holds them."""
        return {
            "n": self.n,
            "n_sources": self.n_sources,
            "reason": self.reason or None,
            "on_points": self.on_points,
            "expected_error": [[short(score), short(error)] for score, error in self.expected],
            "quantiles": [[at, None if value is None else short(value)] for at, value in self.quantiles.items()],
            "kept": [kept.as_json() for kept in self.kept],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> VerdictIntervals:
        """What `as_json` wrote.  JudgeError where a part is missing or no number."""
        try:
            expected = tuple((float(score), float(error)) for score, error in body["expected_error"])
            quantiles = {float(at): None if value is None else float(value) for at, value in body["quantiles"]}
            if min([0.0, *(error for _, error in expected), *filter(None, quantiles.values())]) < 0:
                raise ValueError("an error is below 0")
            return cls(
                int(body["n"]),
                int(body["n_sources"]),
                expected,
                bool(body["on_points"]),
                quantiles,
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
    """(n,) `scores` of a judge, raters' `labels` (NaN = missing), and codes of their `sources`."""

    scores: FloatArray
    labels: FloatArray
    sources: IntArray

    def take(self, chosen: IntArray) -> JudgedItems:
        """Those at places `chosen`."""
        return JudgedItems(self.scores[chosen], self.labels[chosen], self.sources[chosen])


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
    residuals = np.abs(usable.labels - calibrated)
    expected = _errors_by_score(calibrated, residuals)
    crossed = np.empty(n)  # each item by those of other sources, as a later verdict will be
    folds = source_folds(usable.sources, 2 * FOLDS, seed=2)
    for fold in range(int(folds.max()) + 1):
        out = folds == fold
        crossed[out] = np.interp(calibrated[out], *_errors_by_score(calibrated[~out], residuals[~out]))
    on_points = labels_on_points(usable.labels, scale)
    return VerdictIntervals(
        n,
        n_sources,
        tuple(zip(*(numbers.tolist() for numbers in expected), strict=True)),
        on_points,
        {coverage: source_quantile(residuals, usable.sources, coverage) for coverage in COVERAGES},
        kept_shares(crossed, verdict_errors(calibrated, usable.labels, scale, on_points=on_points)),
    )


def _errors_by_score(calibrated: FloatArray, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Some of the scores, and the mean of the residuals nearest to each."""
    at = np.unique(np.quantile(calibrated, np.linspace(0, 1, EXPECTED_AT)))
    n_near = max(1, round(NEAR * calibrated.size))
    near = [np.argsort(np.abs(calibrated - score), kind="stable")[:n_near] for score in at]
    return at, np.array([residuals[those].mean() for those in near])


def source_quantile(errors: FloatArray, sources: IntArray, coverage: float) -> float | None:
    """The finite-sample quantile by source (see above), between two errors where it falls between them; None where the
    sources are too few.
    """
    _, of_item, sizes = np.unique(sources, return_inverse=True, return_counts=True)
    if sizes.size < least_sources(coverage):
        return None
    order = np.argsort(errors, kind="stable")
    mass = np.cumsum(1.0 / (sizes[of_item[order]] * sizes.size))
    worth = worth_in_items(errors > errors[order[np.searchsorted(mass, coverage - _ROUNDING)]], of_item)
    mass *= worth / (worth + 1.0)
    return float(np.interp(coverage, mass, errors[order])) if mass[-1] >= coverage - _ROUNDING else None


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
