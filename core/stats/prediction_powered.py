"""Means of many systems from many verdicts and few labels, prediction-powered, with their covariance over sources.

The judge's mean over all the items it scored is precise and biased; the mean of the labels is unbiased and wide.  The
corrected mean (PPI++: Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered Inference", section 4)
takes both.  Over n labelled and N unlabelled items of a system, with labels Y and verdicts f,

    θ = mean over labelled of (Y − λ·(f − f̄)),   f̄ = mean of f over unlabelled
    variance = var(Y − λf) / n + λ²·var(f) / N
    λ = cov(Y, f) / ((1 + n/N)·var f), clipped to [0, 1]

Departures, each of which held its level better in simulation:

- **by source**: var and cov are those of the sums of each source, var f is taken over all judged items, and quantiles
  are Student's with the smaller number of sources − 1 degrees of freedom, and one less for λ.  A source may hold
  labelled and unlabelled items, of one system or several: what they share stays in the covariance of parts and systems.
- **λ leave-one-source-out**: each label is corrected with a λ that the other sources chose, so θ has no bias at any n.
- **another scale**: verdicts off the human scale go through increasing maps, each fitted on other folds of sources
  than those it is applied to (cross-prediction: Zrnic and Candès 2024), centred on the unlabelled mean of its own map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from core.records import FloatArray, IntArray, Scale
from core.stats.intervals import CONFIDENCE, ROUNDING
from core.stats.on_scale import fit_isotonic

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MOST_FOLDS = 30
"""Folds of sources behind the maps to the human scale: up to so many sources each is a fold of its own."""


class Cells:
    """Items by system and source: `system`, `source`, `size` (n_cells,), and `of` (n_items,) the cell of each.

    `of_system` (n_items,) is the system of each item; `n_items` and `n_sources` are (n_systems,).
    """

    def __init__(self, systems: IntArray, sources: IntArray, n_systems: int) -> None:
        width = int(sources.max(initial=0)) + 1
        codes, self.of = np.unique(systems * width + sources, return_inverse=True)
        self.system, self.source, self.n_systems, self.of_system = codes // width, codes % width, n_systems, systems
        self.size = np.bincount(self.of, minlength=codes.size).astype(np.float64)
        self.n_items, self.n_sources = self.by_system(self.size), self.by_system(np.ones(codes.size))

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum `values` (n_items,) by cell: (n_cells,)."""
        return np.asarray(np.bincount(self.of, weights=values, minlength=self.size.size), dtype=np.float64)

    def by_system(self, values: FloatArray) -> FloatArray:
        """Sum `values` (n_cells,) by system: (n_systems,)."""
        return np.asarray(np.bincount(self.system, weights=values, minlength=self.n_systems), dtype=np.float64)

    def means(self, values: FloatArray) -> FloatArray:
        """Average `values` (n_items,) by system: (n_systems,), NaN without items."""
        return ratio(self.by_system(self.sums(values)), self.n_items)

    def parts(self, values: FloatArray, n_sources: int) -> csr_matrix:
        """What each source adds to its system's mean of `values` (n_items,): (n_systems, n_sources).

        Their squares add up to the variance of the mean.  0 in a system of one source.
        """
        from scipy.sparse import csr_matrix

        centred = self.sums(values) - self.size * self.means(values)[self.system]
        scale = np.sqrt(np.nan_to_num(ratio(self.n_sources, self.n_sources - 1))) / np.maximum(self.n_items, 1)
        return csr_matrix((centred * scale[self.system], (self.system, self.source)), (self.n_systems, n_sources))


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide element by element; NaN where the denominator is not above 0."""
    defined = denominator > 0
    return np.asarray(np.where(defined, numerator, np.nan) / np.where(defined, denominator, 1.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Means:
    """`values` (n_systems,), NaN = undefined; `parts` (n_systems, n_sources), sparse, what each source adds to them.

    `freedom` (n_systems,) are degrees of freedom; `extra` (n_systems,) is a further standard error, which no two
    systems share.
    """

    values: FloatArray
    parts: csr_matrix
    freedom: FloatArray
    extra: FloatArray

    @property
    def errors(self) -> FloatArray:
        """(n_systems,) standard errors, NaN where no variation tells: one source, or values that do not differ."""
        squares = np.asarray(self.parts.multiply(self.parts).sum(axis=1), dtype=np.float64).ravel()
        errors = np.sqrt(squares + self.extra**2)
        return np.where((self.freedom >= 1) & (errors > ROUNDING), errors, np.nan)

    @property
    def reach(self) -> FloatArray:
        """(n_systems,) how far the 95 % interval reaches to each side; NaN where there is none."""
        return self.errors * t_quantiles(self.freedom)

    def covariance(self, chosen: IntArray) -> FloatArray:
        """(n, n) of the systems `chosen` (n,): shared sources make their means go together."""
        rows = self.parts[chosen]
        return np.asarray((rows @ rows.T).toarray() + np.diag(self.extra[chosen] ** 2), dtype=np.float64)


def t_quantiles(freedom: FloatArray) -> FloatArray:
    """How many standard errors a 95 % interval reaches to each side; NaN without a degree of freedom."""
    from scipy.special import stdtrit

    known = freedom >= 1
    return np.where(known, stdtrit(np.where(known, freedom, 1.0), 0.5 + CONFIDENCE / 2.0), np.nan)


def plain_means(values: FloatArray, cells: Cells, n_sources: int) -> Means:
    """Average `values` (n_items,) of each system, with variances by source."""
    parts = cells.parts(values, n_sources)
    return Means(cells.means(values), parts, cells.n_sources - 1, np.zeros(cells.n_systems))


class Halves(NamedTuple):
    """`labels` and `scores` (n,) of items in the cells `labelled`, scores `others` (N,) in the cells `unlabelled`."""

    labels: FloatArray
    scores: FloatArray
    labelled: Cells
    others: FloatArray
    unlabelled: Cells


def powered_means(halves: Halves, by_cell: FloatArray, n_sources: int) -> tuple[Means, FloatArray]:
    """Correct the labels with λ `by_cell`; return the means and the (n_systems,) mean λ of each system.

    Scores are taken less the mean over the unlabelled items of the same system.
    """
    labels, scores, labelled, others, unlabelled = halves
    weights = np.nan_to_num(ratio(labelled.by_system(labelled.size * by_cell), labelled.n_items))
    corrected = labels - by_cell[labelled.of] * scores
    spread = unlabelled.parts(weights[unlabelled.of_system] * others, n_sources)
    smaller = np.minimum(labelled.n_sources, unlabelled.n_sources) - 2
    freedom = np.where(weights > 0, smaller, labelled.n_sources - 1)
    parts = labelled.parts(corrected, n_sources) + spread
    return Means(labelled.means(corrected), parts, freedom, np.zeros(labelled.n_systems)), weights


def chosen_weights(halves: Halves) -> FloatArray:
    """(n_cells,) λ for the labelled items of each source, chosen by the other sources of its system.

    The covariance is that of the sums of each source about the means of what is left, Σ Y_c·F_c − ȲΣ m_c·F_c −
    f̄ Σ m_c·Y_c + Ȳf̄ Σ m_c², so that leaving a source out takes its summands away.
    """
    labels, scores, labelled, others, unlabelled = halves
    size, y, f = labelled.size, labelled.sums(labels), labelled.sums(scores)

    def left(values: FloatArray) -> FloatArray:
        return np.asarray(labelled.by_system(values)[labelled.system] - values)

    n, n_sources = left(size), labelled.n_sources[labelled.system] - 1
    mean_y, mean_f = ratio(left(y), n), ratio(left(f), n)
    about = left(y * f) - mean_y * left(size * f) - mean_f * left(size * y) + mean_y * mean_f * left(size**2)
    covariance = about * ratio(n_sources, n_sources - 1) / np.maximum(n, 1)

    # the variance of the scores of an item, by source, over labelled and unlabelled ones
    both = ((labelled, f), (unlabelled, unlabelled.sums(others)))
    n_judged, n_behind = labelled.n_items + unlabelled.n_items, labelled.n_sources + unlabelled.n_sources
    mean = np.nan_to_num(
        ratio(sum((cells.by_system(sums) for cells, sums in both), np.zeros(labelled.n_systems)), n_judged)
    )
    squares = sum(
        (cells.by_system((sums - cells.size * mean[cells.system]) ** 2) for cells, sums in both),
        np.zeros(labelled.n_systems),
    )
    variance = np.nan_to_num(ratio(squares, n_judged) * ratio(n_behind, n_behind - 1))
    variance = np.where(variance > ROUNDING**2, variance, 0.0)  # 0 of a constant judge, whose λ is 0
    of_system = (1.0 + ratio(labelled.n_items, unlabelled.n_items)) * variance
    return np.clip(np.nan_to_num(ratio(covariance, np.nan_to_num(of_system)[labelled.system])), 0.0, 1.0)


# ── verdicts on another scale ────────────────────────────────────────────────────────────────────────────────


def centred(halves: Halves) -> tuple[Halves, FloatArray]:
    """`halves` with scores less the unlabelled mean of their system, and the (n + N,) scores, labelled first.

    For scores that are on the human scale as they come.
    """
    _, scores, labelled, others, unlabelled = halves
    mean = np.nan_to_num(unlabelled.means(others))
    own, rest = scores - mean[labelled.of_system], others - mean[unlabelled.of_system]
    return halves._replace(scores=own, others=rest), np.concatenate([scores, others])


def mapped(halves: Halves, scale: Scale) -> tuple[Halves, FloatArray]:
    """As `centred`, for scores of another scale: through increasing maps to `scale`.

    Each label's map is fitted on the other folds of sources.  Unlabelled items take the mean of the maps, each as often
    as its system's labels were corrected with it.
    """
    labels, scores, labelled, others, unlabelled = halves
    everything = np.concatenate([scores, others])
    sources, place = np.unique(labelled.source, return_inverse=True)
    order = np.random.default_rng(0).permutation(sources.size)
    folds = (order % MOST_FOLDS)[place][labelled.of]  # whole sources, so that no label chooses its own map
    values, which = np.unique(others, return_inverse=True)  # equal scores are mapped once
    own, plain = np.empty((2, scores.size))
    rest, plain_rest = np.zeros((2, others.size))
    if not scores.size:
        plain_rest = _map(scores, labels, scale, everything)(others)
    for fold in np.unique(folds):
        inside = folds == fold
        apply = _map(scores[~inside], labels[~inside], scale, everything)
        theirs = apply(values)[which]
        mean = np.nan_to_num(unlabelled.means(theirs))
        plain[inside] = apply(scores[inside])
        own[inside] = plain[inside] - mean[labelled.of_system[inside]]
        share = np.nan_to_num(labelled.means(inside.astype(np.float64)))
        plain_rest += theirs * inside.mean()
        rest += share[unlabelled.of_system] * (theirs - mean[unlabelled.of_system])
    return halves._replace(scores=own, others=rest), np.concatenate([plain, plain_rest])


def _map(
    scores: FloatArray, labels: FloatArray, scale: Scale, everything: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """The map from the judge's scale that these labels fit; where they fit none, a straight line from end to end."""
    if fitted := fit_isotonic(scores, labels, scale).map:
        return fitted.apply
    low, width = float(everything.min()), float(np.ptp(everything)) or np.inf  # of equal scores all go to the low end
    return lambda values: scale.low + (values - low) / width * (scale.high - scale.low)


def on_another_scale(scores: FloatArray, scale: Scale, narrow: float = 0.25) -> bool:
    """Whether scores leave `scale`, or span less than the share `narrow` of it (0 to 1 next to 0 to 100).

    A map that was not needed costs nothing but a little width.
    """
    if not scores.size:
        return False
    low, high = float(scores.min()), float(scores.max())
    return low < scale.low or high > scale.high or 0 < high - low < narrow * (scale.high - scale.low)
