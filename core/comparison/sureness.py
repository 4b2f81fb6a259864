"""Map a judge's scores to the human scale, and measure their errors on unseen items.

A judge can rank well and still be too strict or too lenient. The map (`core.stats.on_scale`) is fitted to items whose
labels the judge has seen, if there are enough. Otherwise the map is cross-fitted over sources. Errors are measured on
unseen items only, so that fitting and measuring never share items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, GoldenSet, JudgeScores, Scale, json_fields
from core.stats import AbsoluteErrors, absolute_errors, fit_isotonic
from core.stats.on_scale import (
    COVERAGE,
    MIN_LABELS,
    IsotonicMap,
    VerdictIntervals,
    cross_mapped,
    labels_on_points,
)

if TYPE_CHECKING:
    from core.calibration.calibration_records import Calibration

MOST_BINS = 10


@dataclass(frozen=True, slots=True)
class ScoreBin:
    """`n` items with scores from `low` to `high`: their mean score and mean label."""

    low: float
    high: float
    mean_score: float
    mean_label: float
    n: int


@dataclass(frozen=True)
class CalibrationCurve:
    """Mean labels by score, and errors of the scores, on items whose labels the judge has not seen.

    Attributes:
        bins: Mean label in each bin, in the order of the scores (higher is better).
        n: Number of unseen items that have both a score and a label.
        score_map: Map from scores to the human scale; None if there is no map.
        map_note: A warning about the map, or why there is no map.
        fitted_on: Names the items that the map was fitted to.
        before: Errors without the map. None if the judge's scores are not on the scale of the labels.
        after: Errors with the map; None if there is no map.
    """

    bins: tuple[ScoreBin, ...]
    n: int
    score_map: IsotonicMap | None
    map_note: str
    fitted_on: str
    before: AbsoluteErrors | None
    after: AbsoluteErrors | None


def calibration_curve(
    golden: GoldenSet,
    aspect: str,
    judge: JudgeScores,
    *,
    own: IsotonicMap | None = None,
    seed: int = 0,
) -> CalibrationCurve:
    """Compute a judge's calibration curve: mean labels by score, on items whose labels the judge has not seen.

    There are at most `MOST_BINS` bins of about equal size; equal scores share a bin.

    Args:
        own: Score map of a calibrated judge. If None, a map is fitted to the items that the judge has seen. If these
            items are too few, the map is cross-fitted over the unseen items.
        seed: Seed of the folds of the cross-fitting.

    Raises:
        UsageError: No unseen item has both a score and a label.
    """
    scale = golden.aspects[aspect].scale
    scores, labels = judge.upward, golden.labels(aspect)
    usable = np.flatnonzero(~np.isnan(scores) & ~np.isnan(labels))
    seen = np.isin(usable, list(judge.seen))
    fitting, telling = usable[seen], usable[~seen]
    if not telling.size:
        raise UsageError(
            f"{judge.name} was calibrated on all {usable.size:,} items that have both a score and a label, so no item "
            "is left to show what its scores mean. Label or score more items."
        )
    crossed = own is None and fitting.size < MIN_LABELS
    at = telling if crossed else fitting
    score_map, note = fit_isotonic(scores[at], labels[at], scale) if own is None else (own, "")
    if crossed:
        mapped = cross_mapped(scores[at], labels[at], golden.source_codes[at], scale, seed=seed)
        where = f"these {at.size:,} items (the errors are cross-fitted over sources)"
    else:
        mapped = scores[telling] if score_map is None else score_map.apply(scores[telling])
        where = f"{at.size:,} items that the judge was calibrated on"
    on_scale = judge.on_scale and judge.higher_is_better
    return CalibrationCurve(
        bins=_bins(scores[telling], labels[telling]),
        n=telling.size,
        score_map=score_map,
        map_note=note,
        fitted_on=where,
        before=absolute_errors(scores[telling], labels[telling]) if on_scale else None,
        after=None if score_map is None or np.isnan(mapped).all() else absolute_errors(mapped, labels[telling]),
    )


def _bins(scores: FloatArray, labels: FloatArray) -> tuple[ScoreBin, ...]:
    """Make a bin for each distinct score if there are few, otherwise bins of about equal size."""
    distinct, code, counts = np.unique(scores, return_inverse=True, return_counts=True)
    if distinct.size > MOST_BINS:
        middle = np.cumsum(counts) - counts / 2
        code = np.floor(middle / scores.size * MOST_BINS).astype(np.intp)[code]
        for small in np.flatnonzero(np.bincount(code) < scores.size / (2 * MOST_BINS))[::-1]:
            code[code == small] = max(code[code < small], default=small)  # to its neighbour below
    groups = [(scores[code == k], labels[code == k]) for k in np.unique(code)]
    return tuple(
        ScoreBin(float(own.min()), float(own.max()), float(own.mean()), float(theirs.mean()), own.size)
        for own, theirs in groups
    )


# ── how sure they are ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sureness:
    """How often the labels lie in the intervals around a judge's verdicts, on `n` unseen items of `n_sources` sources.

    Attributes:
        coverage: Nominal share of the labels inside the intervals, from 0 to 1.
        on_points: Whether every label is a step of the scale.
        held: Actual share of the labels inside the intervals, from 0 to 1: the mean of the shares per source. None if
            there are no intervals.
        width: Mean width of the intervals in points. If labels are yes or no, the share of items whose interval
            contains both answers. None if there are no intervals.
        reason: Why there are no intervals.
    """

    coverage: float
    scale: Scale
    n: int
    n_sources: int
    on_points: bool
    held: float | None = None
    width: float | None = None
    reason: str = ""

    @property
    def two_answers(self) -> bool:
        """Whether every label is yes or no, so that an interval is a set of answers: yes, no, or both."""
        return self.on_points and self.scale.two_steps

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as JSON."""
        return json_fields(self, but=("scale",)) | {"scale": [self.scale.low, self.scale.high]}


def calibrated_sureness(golden: GoldenSet, made: Calibration) -> Sureness:
    """Measure the coverage of a calibrated judge's intervals on items that it has not seen."""
    values = np.full(len(golden.items), np.nan)
    places = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    values[[places[item_id] for item_id in made.scores.item_ids]] = made.scores.values[0]
    labels, scale = golden.labels(made.task.aspect), made.task.scale
    unseen = ~np.isin(np.arange(len(golden.items)), made.split.calibration)
    told = np.flatnonzero(unseen & ~np.isnan(values) & ~np.isnan(labels))
    labels, sources = labels[told], golden.source_codes[told]
    on_points, n_sources = labels_on_points(labels, scale), int(np.unique(sources).size)
    intervals = None if made.intervals is None else VerdictIntervals.from_json(made.intervals)
    reason = "its scores aren't mapped to the raters' scale"
    if made.score_map is not None and intervals is not None:
        reason = intervals.why_none if intervals.expected_error else intervals.reason
    base = Sureness(COVERAGE, scale, told.size, n_sources, on_points, reason=reason)
    if not told.size or made.score_map is None or intervals is None or not intervals.expected_error:
        return base
    calibrated = made.score_map.apply(values[told])
    low, high = intervals.around(calibrated, scale)
    if np.isnan([low, high]).any():
        return base
    holds = (low - 1e-9 <= labels) & (labels <= high + 1e-9)
    _, of_source = np.unique(sources, return_inverse=True)
    by_source = np.bincount(of_source, weights=holds) / np.bincount(of_source)
    return replace(base, held=float(by_source.mean()), width=float((high - low).mean()))
