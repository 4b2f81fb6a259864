"""Projections: directions in the space of hidden states along which quality varies (003 sections 3.2 and 3.3).

Estimators in scikit-learn's manner, for many cells (layer x token) at once: `fit(states, training)` learns, learnt
values end in an underscore, `score(states)` rates.  States are (n_cells, n_items, dim) float32, scores are
(n_cells, n_variants, n_items) float64, higher is better; variants are k = 1, 2, … components for `PaperPCA`, else one.
A cell in which nothing can be learnt scores every item 0: constant, so its alignment is undefined.

What is meant by each, and how they differ from the paper's text, is said in the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.records import FloatArray, IntArray

CellStates = NDArray[np.float32]
COMPONENTS = 8
SMALLEST_SHARE = 1e-10  # components with less of the variance are rounding


@dataclass(frozen=True)
class Training:
    """What a projection may learn from, all as rows of the states: `items` (n,) with their `labels`, and (m,) pairs.

    Rows that are not named here are not read by `fit`.
    """

    items: IntArray
    labels: FloatArray
    good: IntArray
    bad: IntArray


class Lines(NamedTuple):
    """A fitted projection as lines: score = state · direction − offset.

    `directions` (n_cells, n_variants, dim) float32, `offsets` (n_cells, n_variants).
    """

    directions: CellStates
    offsets: FloatArray


class Projection(Protocol):
    """Fit, then score; see the module."""

    def fit(self, states: CellStates, training: Training) -> Self:
        """Learn from the rows of (n_cells, n_items, dim) that `training` names."""
        ...

    def score(self, states: CellStates) -> FloatArray:
        """(n_cells, n_variants, n_items)."""
        ...

    def lines(self) -> Lines | None:
        """What was learnt, where it is linear in the states; None where it is not."""
        ...


class PaperPCA:
    """Principal components of good − bad, centred as scikit-learn's PCA does (003 equations 3 and 4).

    score_k(x) = Σ_{i ≤ k} sign_i · w_i · (x · v_i): w_i is the explained-variance ratio, sign_i is chosen so that in
    the majority of training pairs the good text projects higher (a draw goes to the larger sum of gaps).  At most one
    component fewer than there are pairs exists.
    """

    def __init__(self, components: int = COMPONENTS) -> None:
        self.components = components

    def fit(self, states: CellStates, training: Training) -> Self:
        differences = states[:, training.good] - states[:, training.bad]
        self.directions_, self.ratios_ = principal_components(differences, self.components)
        self.signs_ = majority_signs(_project(self.directions_, differences))
        return self

    def score(self, states: CellStates) -> FloatArray:
        return np.cumsum(_project(self._weighted(), states), axis=1)

    def lines(self) -> Lines:
        return _through_zero(np.cumsum(self._weighted(), axis=1, dtype=np.float64))

    def _weighted(self) -> CellStates:
        return self.directions_ * (self.signs_ * self.ratios_)[..., None].astype(np.float32)


class PublishedPCA:
    """What the code published with 003 does, which is not what its text says.

    Pairs stand in random order (half of them bad first), their differences are subtracted from one another again, two
    by two, and only the first principal component of those is used.  An odd last pair falls away.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, states: CellStates, training: Training) -> Self:
        flips = np.random.default_rng(self.seed).choice([-1.0, 1.0], size=len(training.good)).astype(np.float32)
        differences = states[:, training.good] - states[:, training.bad]
        turned = differences * flips[:, None]
        even = turned.shape[1] // 2 * 2
        again = turned[:, :even:2] - turned[:, 1:even:2]
        self.directions_, _ = principal_components(again, 1)
        self.signs_ = majority_signs(_project(self.directions_, differences))
        return self

    def score(self, states: CellStates) -> FloatArray:
        return _project(self._turned(), states)

    def lines(self) -> Lines:
        return _through_zero(self._turned())

    def _turned(self) -> CellStates:
        return self.directions_ * self.signs_[..., None].astype(np.float32)


class MeanDifference:
    """The mean of good − bad over the pairs: what centring takes away from `PaperPCA`."""

    def fit(self, states: CellStates, training: Training) -> Self:
        differences = states[:, training.good] - states[:, training.bad]
        self.directions_ = differences.mean(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)
        return self

    def score(self, states: CellStates) -> FloatArray:
        return _project(self.directions_, states)

    def lines(self) -> Lines:
        return _through_zero(self.directions_)


class PaperSVM:
    """P(good) of a support vector machine with an RBF kernel, trained on the texts of the pairs (003 equation 5).

    gamma is scikit-learn's "scale", C = 1 (the paper's values are lost in its text version).  The probability is
    Platt's sigmoid on cross-validated decisions.
    """

    def __init__(self, c: float = 1.0, seed: int = 0) -> None:
        self.c = c
        self.seed = seed

    def fit(self, states: CellStates, training: Training) -> Self:
        good, bad = np.unique(training.good), np.unique(training.bad)
        rows, classes = np.concatenate([good, bad]), np.repeat([1, 0], [len(good), len(bad)])
        self.models_ = [self._fit_one(cell[rows], classes) for cell in states]
        return self

    def score(self, states: CellStates) -> FloatArray:
        rows = [
            np.zeros(len(cell)) if model is None else model.predict_proba(cell)[:, 1]
            for model, cell in zip(self.models_, states, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(len(states), 1, -1)

    def lines(self) -> None:
        return None

    def _fit_one(self, states: CellStates, classes: IntArray) -> Any:
        """The fitted classifier, or None for states that do not vary."""
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.model_selection import StratifiedKFold
        from sklearn.svm import SVC

        if float(np.ptp(states, axis=0).max()) == 0.0:
            return None
        folds = StratifiedKFold(min(5, int(np.bincount(classes).min())), shuffle=True, random_state=self.seed)
        machine = SVC(kernel="rbf", gamma="scale", C=self.c)
        return CalibratedClassifierCV(machine, method="sigmoid", cv=folds, ensemble=False).fit(states, classes)


class Ridge:
    """Ridge regression of all training labels on the standardised states; pairs are not used.

    The penalty is chosen for each cell from `penalties` by the exact leave-one-out error; its unit is dim, so that it
    means the same whatever the width of the model (scikit-learn's alpha is penalty x dim).  The score is the
    predicted label less the mean of the training labels.
    """

    def __init__(self, penalties: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0)) -> None:
        self.penalties = penalties

    def fit(self, states: CellStates, training: Training) -> Self:
        known = states[:, training.items]
        self.means_ = known.mean(axis=1, keepdims=True)
        deviations = known.std(axis=1, keepdims=True)
        smallest = deviations.max(axis=-1, keepdims=True) * 1e-6
        varies = deviations > smallest
        self.scales_ = np.where(varies, 1.0 / np.where(varies, deviations, 1.0), 0.0).astype(np.float32)
        standard = (known - self.means_) * self.scales_
        labels = training.labels - training.labels.mean()
        fits = [_ridge(cell, labels.astype(np.float32), self.penalties) for cell in standard]
        self.penalties_ = np.array([fit.penalty for fit in fits])
        self.directions_ = np.stack([fit.weights for fit in fits])[:, None, :] * self.scales_
        return self

    def score(self, states: CellStates) -> FloatArray:
        return _project(self.directions_, states - self.means_)

    def lines(self) -> Lines:
        offsets = (self.directions_.astype(np.float64) * self.means_).sum(axis=-1)
        return Lines(self.directions_, offsets)


def principal_components(differences: CellStates, components: int) -> tuple[CellStates, FloatArray]:
    """((n_cells, k, dim) unit directions, (n_cells, k) explained-variance ratios) of (n_cells, m, dim), centred.

    k = min(components, m − 1).  From the m x m matrix of inner products, because m is small and dim is not; directions
    whose share of the variance is rounding are 0, with ratio 0.  UsageError when m < 2.
    """
    m = differences.shape[1]
    if m < 2 or components < 1:
        raise UsageError(f"Principal components need at least 2 differences and 1 component; {m}, {components} came.")
    k = min(components, m - 1)
    centred = differences - differences.mean(axis=1, keepdims=True)
    inner = (centred @ centred.transpose(0, 2, 1)).astype(np.float64)
    values, vectors = np.linalg.eigh(inner)
    total = np.trace(inner, axis1=1, axis2=2)[:, None]
    values, vectors = values[:, ::-1][:, :k], vectors[:, :, ::-1][:, :, :k]
    real = values > SMALLEST_SHARE * np.maximum(total, np.finfo(np.float64).tiny)
    inverse = np.where(real, 1.0 / np.sqrt(np.where(real, values, 1.0)), 0.0)
    directions = (vectors * inverse[:, None, :]).transpose(0, 2, 1).astype(np.float32) @ centred
    return directions, np.where(real, values / np.where(total > 0, total, 1.0), 0.0)


def majority_signs(gaps: FloatArray | CellStates) -> FloatArray:
    """+1 or −1 for each direction of `gaps` (…, m), its inner products with m differences: the side of most of them.

    A draw goes to the side of their sum.
    """
    votes = np.sign(gaps).sum(axis=-1)
    signs = np.sign(np.where(votes == 0, gaps.sum(axis=-1), votes))
    return np.asarray(np.where(signs == 0, 1.0, signs), dtype=np.float64)


def _through_zero(directions: FloatArray | CellStates) -> Lines:
    return Lines(directions.astype(np.float32), np.zeros(directions.shape[:2]))


def _project(directions: CellStates, states: CellStates) -> FloatArray:
    """(n_cells, k, n_items) inner products."""
    return (directions @ states.transpose(0, 2, 1)).astype(np.float64)


class _Fit(NamedTuple):
    """(dim,) weights of the penalty with the least leave-one-out error."""

    weights: NDArray[np.float32]
    penalty: float


def _ridge(states: NDArray[np.float32], labels: NDArray[np.float32], penalties: Sequence[float]) -> _Fit:
    """Ridge of `labels` (n,) on `states` (n, dim), both centred.

    Leaving item i out gives the error (y_i − ŷ_i) / (1 − H_ii − 1/n): H maps labels to fitted values, the 1/n is for
    the mean that was taken out.  Of the two equal ways (inner products K of items, or those of dimensions) the
    smaller matrix is inverted.  With M = (K + p)⁻¹, y − ŷ = p·My and 1 − H_ii = p·M_ii.
    """
    from scipy.linalg import inv

    n, dim = states.shape
    by_items = n <= dim
    inner = (states @ states.T if by_items else states.T @ states) / dim
    moments, best, least = states.T @ labels / dim, _Fit(np.zeros(dim, np.float32), penalties[0]), np.inf
    for penalty in penalties:
        inverse = inv(inner + penalty * np.eye(len(inner), dtype=np.float32), assume_a="pos", check_finite=False)
        if by_items:
            dual = inverse @ labels
            weights, residuals, free = states.T @ dual / dim, penalty * dual, penalty * np.diag(inverse)
        else:
            weights = inverse @ moments
            residuals = labels - states @ weights
            free = 1.0 - np.einsum("ij,ij->i", states @ inverse, states) / dim
        error = float(np.square(residuals / np.maximum(free - 1.0 / n, 1e-6)).mean(dtype=np.float64))
        if error < least:
            best, least = _Fit(weights, penalty), error
    return best
