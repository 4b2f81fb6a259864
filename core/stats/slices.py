"""Parts of the items: the alignment inside each, and whether a judge errs more in one part than in the others.

Alignment inside a part is a description, not a test.  A part that holds a narrow range of scores or labels has a lower
coefficient for that alone (restriction of range; Thorndike 1949), however good the judge is there.  So the test
compares errors in points of the labels' scale, each with the error that a judge of this agreement makes at that score
if it is equally good everywhere.  Without that second half, the ends of a scale look good and its middle bad: labels
cannot lie beyond an end.

*Equally good everywhere* is a Gaussian copula: behind scores and labels lie two normal variables with one correlation,
cut into the scores and the labels that occur (for labels and scores on steps this is the polychoric model; Olsson 1979,
"Maximum likelihood estimation of the polychoric correlation coefficient").  It leaves both distributions as they are,
ties and ends of the scale included, and has one free number, fitted by maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from core.records import Alignment, FloatArray, IntArray, Measure
from core.stats.alignment import measured
from core.stats.claims import LEAST_SOURCES
from core.stats.intervals import LEAST_RANKED, ROUNDING, jackknife, two_sided
from core.stats.items import LabelledItems, paired

STRETCHES = 3
"""Parts that a number is divided into, with about as many items each."""

LEAST_EXCESS = 0.05
"""An error that is less than this share above the expected one is not called larger: no model is exact."""

_MOST_VALUES = 60
"""Distinct scores, and distinct labels, up to which the copula knows each; more are put into as many equal groups."""

_POINTS = 5
"""Points at which the normal variable behind one score is taken."""


class Errors(NamedTuple):
    """Of each item (n,): the `size` of the error, and the size `expected` if the judge is equally good everywhere.

    Both in points of the labels' scale, between the label and the label that the model expects at the item's score.
    """

    size: FloatArray
    expected: FloatArray


@dataclass(frozen=True, slots=True)
class Contrast:
    """`value` is the excess error of a part minus that of the others, `error` its standard error; `p` is two-sided.

    An excess is an error minus the expected one, in points of the scale.  All NaN, and `freedom` 0, without a test.
    """

    value: float
    error: float
    freedom: int
    p: float


UNTESTED = Contrast(float("nan"), float("nan"), 0, float("nan"))


def part_alignments(
    scores: FloatArray, items: LabelledItems, codes: IntArray, measure: Measure
) -> tuple[Alignment, ...]:
    """The alignments inside the parts 0, 1, … of `codes` (n_items,), −1 for items in none, by `measure`."""
    inside = codes[None, :] == np.arange(int(codes.max(initial=-1)) + 1)[:, None]
    if not inside.size:
        return ()
    return tuple(measured(paired(np.where(inside, scores, np.nan), items), measure, 1, 0).alignments)


def even_errors(scores: FloatArray, labels: FloatArray) -> Errors | None:
    """The errors of `scores` (n,) about `labels` (n,), neither with NaN; None where one side is constant."""
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr, ndtri

    score, score_sizes, _ = _groups(scores)
    label, label_sizes, label_values = _groups(labels)
    if score_sizes.size < 2 or label_sizes.size < 2:
        return None
    n = scores.size
    ranks = np.cumsum(score_sizes) - score_sizes
    behind = ndtri((ranks[:, None] + (np.arange(_POINTS) + 0.5) / _POINTS * score_sizes[:, None]) / n)
    cuts = ndtri(np.cumsum(label_sizes)[:-1] / n)
    counts = np.bincount(score * label_sizes.size + label, minlength=score_sizes.size * label_sizes.size)
    counts = counts.reshape(score_sizes.size, label_sizes.size)

    def chances(rho: float) -> FloatArray:
        """(n_scores, n_labels) chance of each label at each score."""
        below = ndtr((cuts - rho * behind[:, :, None]) / np.sqrt(1.0 - rho * rho)).mean(axis=1)
        ends = np.zeros((len(below), 1))
        return np.asarray(np.diff(np.hstack([ends, below, ends + 1.0]), axis=1), dtype=np.float64)

    def likelihood(rho: float) -> float:
        return float((counts * np.log(np.maximum(chances(rho), 1e-12))).sum())

    fitted = minimize_scalar(lambda rho: -likelihood(rho), bounds=(-0.995, 0.995), options={"xatol": 1e-3})
    chance = chances(float(fitted.x))
    mapped = chance @ label_values
    expected = (chance * np.abs(label_values - mapped[:, None])).sum(axis=1)
    return Errors(np.abs(labels - mapped[score]), expected[score])


def _groups(values: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """(n,) the rising group of each of `values`, and the size and the mean of the groups: one a distinct value, or
    `_MOST_VALUES` of about equal size."""
    codes = np.unique(values, return_inverse=True)[1]
    sizes = np.bincount(codes)
    if sizes.size > _MOST_VALUES:
        middle = (np.cumsum(sizes) - sizes / 2.0)[codes]
        codes = np.unique((middle * _MOST_VALUES / values.size).astype(np.intp), return_inverse=True)[1]
        sizes = np.bincount(codes)
    return codes, sizes, np.bincount(codes, weights=values) / sizes


def error_contrasts(errors: Errors, sources: IntArray, codes: IntArray) -> tuple[Contrast, ...]:
    """For each part of `codes` (n,): is its error further above the expected one than that of the other parts?

    `sources` (n,).  The jackknife leaves out one source of all parts at once, so what parts share stays in the error.
    A part takes `LEAST_RANKED` items of `LEAST_SOURCES` sources to be tested, and the others together as many.
    """
    n_parts = int(codes.max(initial=-1)) + 1
    kept = codes >= 0
    source = np.unique(sources[kept], return_inverse=True)[1]
    n_sources = int(source.max(initial=-1)) + 1
    cell, shape = source * n_parts + codes[kept], (n_sources, n_parts)
    counts, sums = (
        np.bincount(cell, weights, n_sources * n_parts).reshape(shape)
        for weights in (np.ones(cell.size), (errors.size - errors.expected)[kept])
    )
    of_sources = (counts > 0).sum(axis=0)
    usable = (counts.sum(axis=0) >= LEAST_RANKED) & (of_sources >= LEAST_SOURCES)
    counts, sums = (np.where(usable, side, 0.0) for side in (counts, sums))

    def contrast(rows: FloatArray) -> FloatArray:
        own, own_n, rest, rest_n = rows.T
        return np.asarray((own / own_n - rest / rest_n)[:, None])

    contrasts = []
    for k in range(n_parts):
        rest, rest_n = sums.sum(axis=1) - sums[:, k], counts.sum(axis=1) - counts[:, k]
        freedom = int(min(of_sources[k], (rest_n > 0).sum())) - 1
        found = UNTESTED
        if usable[k] and freedom + 1 >= LEAST_SOURCES:
            (value,), (error,) = jackknife(np.stack([sums[:, k], counts[:, k], rest, rest_n], axis=1), contrast)
            if error > ROUNDING:
                found = Contrast(float(value), float(error), freedom, two_sided(value / error, freedom))
        contrasts.append(found)
    return tuple(contrasts)


def stretches(values: FloatArray, n_stretches: int = STRETCHES) -> IntArray:
    """(n,) which stretch of rising `values` each belongs to, equal values together; −1 where NaN."""
    known = ~np.isnan(values)
    codes = np.full(values.size, -1, dtype=np.intp)
    if known.any():
        cuts = np.unique(np.quantile(values[known], np.arange(1, n_stretches) / n_stretches))
        # where one value is most of all, either side may end with it
        sides = (np.searchsorted(cuts, values[known], "right"), np.searchsorted(cuts, values[known]))
        both = [np.unique(side, return_inverse=True)[1] for side in sides]
        codes[known] = max(both, key=lambda code: int(code.max()))
    return codes
