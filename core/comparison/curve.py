"""What a judge's scores mean in points of the human scale: mean label by score, isotonic map, errors before and after.

A judge can rank well and still be too strict or too lenient.  The map (`core.stats.on_scale`) is fitted on items whose
labels the judge has seen anyway, where it has enough of them, and else by cross-fitting over sources; errors are told
on unseen items only, so that fitting and telling never share one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, GoldenSet, JudgeScores, Scale
from core.stats import AbsoluteErrors, IsotonicFit, absolute_errors, fit_isotonic
from core.stats.conformal import cross_mapped
from core.stats.on_scale import MIN_LABELS, IsotonicMap

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
    """Bins of the `n` unseen items with score and label, by rising score (turned so that more is better).

    `fit` is the map that `fitted_on` (a clause in words) gave.  `before` is None
    where scores are on a scale of their own, `after` where there is no map.  `crossed`: `after` comes from cross-fits.
    """

    name: str
    scale: Scale
    bins: tuple[ScoreBin, ...]
    n: int
    fit: IsotonicFit
    fitted_on: str
    crossed: bool
    before: AbsoluteErrors | None
    after: AbsoluteErrors | None


def calibration_curve(
    golden: GoldenSet,
    aspect: str,
    judge: JudgeScores,
    *,
    own: IsotonicMap | None = None,
    bins: int = MOST_BINS,
    seed: int = 0,
) -> CalibrationCurve:
    """The curve of one judge on the labelled items that it scored and has not seen.

    `own` is the map that the judge brings; without one it is fitted to the items seen, or crossed over the others.
    At most `bins` bins of about equal size; equal scores stay together.  `seed` draws the folds of a cross-fit.
    UsageError when the judge has no such item.
    """
    scale = golden.aspects[aspect].scale
    scores, labels = judge.upward, golden.labels(aspect)
    usable = np.flatnonzero(~np.isnan(scores) & ~np.isnan(labels))
    seen = np.isin(usable, list(judge.seen))
    fitting, telling = usable[seen], usable[~seen]
    if not telling.size:
        raise UsageError(
            f"{judge.name} has no unseen item with a score and a label ({usable.size:,} with both, all of them seen), "
            "too few to say what its scores mean. Label more items, or score more of them."
        )
    crossed = own is None and fitting.size < MIN_LABELS
    at = telling if crossed else fitting
    fit = fit_isotonic(scores[at], labels[at], scale) if own is None else IsotonicFit(own, at.size)
    if crossed:
        mapped = cross_mapped(scores[at], labels[at], golden.source_codes[at], scale, seed=seed)
        where = f"these {at.size:,} items; the errors by cross-fitting over sources"
    else:
        mapped = scores[telling] if fit.map is None else fit.map.apply(scores[telling])
        where = f"{at.size:,} items that the judge had seen"
    on_scale = judge.on_scale and judge.higher_is_better
    return CalibrationCurve(
        name=judge.name,
        scale=scale,
        bins=_bins(scores[telling], labels[telling], bins),
        n=telling.size,
        fit=fit,
        fitted_on=where,
        crossed=crossed,
        before=absolute_errors(scores[telling], labels[telling]) if on_scale else None,
        after=None if fit.map is None or np.isnan(mapped).all() else absolute_errors(mapped, labels[telling]),
    )


def _bins(scores: FloatArray, labels: FloatArray, most: int) -> tuple[ScoreBin, ...]:
    """Distinct scores where they are few, else stretches of about equal size between distinct scores."""
    distinct, code, counts = np.unique(scores, return_inverse=True, return_counts=True)
    if distinct.size > most:
        middle = np.cumsum(counts) - counts / 2
        code = np.floor(middle / scores.size * most).astype(np.intp)[code]
        for small in np.flatnonzero(np.bincount(code) < scores.size / (2 * most))[::-1]:
            code[code == small] = max(code[code < small], default=small)  # to its neighbour below
    groups = [(scores[code == k], labels[code == k]) for k in np.unique(code)]
    return tuple(
        ScoreBin(float(own.min()), float(own.max()), float(own.mean()), float(theirs.mean()), own.size)
        for own, theirs in groups
    )
