"""Pairs of a good and a bad text, and the directions of hidden states along which quality varies.

A pair is a text that raters rated well and one that they rated badly: the only labels that PCA and SVM see (RepEval).
No text occurs twice ("no repeated data" for PCA), unless the rule allows it; then no *pair* occurs twice, as the paper
has it for its SVM.

Estimators in scikit-learn's manner, for many cells (layer x token) at once: `fit(states, training)` learns, learnt
values end in an underscore, `score(states)` rates.  States are (n_cells, n_items, dim) float32, scores are
(n_cells, n_variants, n_items) float64, higher is better; variants are k = 1, 2, … components for `PaperPCA`, else one.
A cell in which nothing can be learnt scores every item 0: constant, so its alignment is undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from core.errors import AspectError, UsageError
from core.records import FloatArray, IntArray
from core.repeval.portable import KernelCell, ScorerCell
from core.repeval.repeval_records import COMPONENTS, PairRule
from core.repeval.ridge import ridge

CellStates = NDArray[np.float32]
SMALLEST_SHARE = 1e-10  # components with less of the variance are rounding


@dataclass(frozen=True)
class Pairs:
    """(n,) positions of the good and the bad text of each pair; `asked` may be more than could be had.

    `good_from` and `bad_to` are the thresholds that were used.
    """

    good: IntArray
    bad: IntArray
    asked: int
    good_from: float
    bad_to: float

    @property
    def n(self) -> int:
        return len(self.good)

    def shortage(self) -> str:
        """In plain words, "" when there are as many pairs as asked for."""
        if self.n >= self.asked:
            return ""
        return f"{self.asked} pairs were asked for, the training labels gave {self.n}."


def choose_pairs(
    labels: FloatArray,
    positions: IntArray,
    texts: Sequence[str],
    *,
    rule: PairRule,
    generator: Generator,
) -> Pairs:
    """Choose pairs among the items at `positions`.

    `labels` and `texts` are (n_items,) over the whole golden set; items with equal text count as one.
    AspectError when all labels are equal or fewer than 2 pairs can be had.
    """
    shuffled = generator.permutation(positions[~np.isnan(labels[positions])])
    one_each = {texts[position]: position for position in shuffled.tolist()}  # of equal texts a random one
    usable = np.array(sorted(one_each.values()), dtype=np.intp)
    values = labels[usable]
    if not usable.size or values.min() == values.max():
        only = f"all equal {values[0]:g}" if usable.size else "missing"
        raise AspectError(
            f"The {usable.size} training labels are {only}: there is no good and no bad text to pair. Label items on "
            "which people differ, or choose another aspect."
        )
    good_from, bad_to = thresholds(values, rule.quantile)
    good, bad = usable[values >= good_from], usable[values <= bad_to]
    if rule.reuse and good.size and bad.size:  # distinct pairs; each text is used about equally often
        n = good.size * bad.size
        code = generator.choice(n, size=min(rule.n, n), replace=False)
        good, bad = good[code // bad.size], bad[code % bad.size]
    else:
        count = min(rule.n, good.size, bad.size)
        good, bad = generator.permutation(good)[:count], generator.permutation(bad)[:count]
    if len(good) < 2:
        raise AspectError(
            f"Only {len(good)} pair(s) of a good and a bad text could be had from {usable.size} training labels "
            f"(good from {good_from:g}, bad up to {bad_to:g}); at least 2 are needed. Label more items."
        )
    return Pairs(good, bad, rule.n, good_from, bad_to)


def thresholds(values: FloatArray, quantile: float) -> tuple[float, float]:
    """(least good label, largest bad label): quantiles of `values`, which must not be all equal.

    Where ties make both quantiles one value v, the larger side of the labels keeps v: bad is what lies below v when v
    is the largest label or when more labels lie below it than above; else good is what lies above.
    """
    bad, good = np.quantile(values, [quantile, 1.0 - quantile])
    if good == bad:
        below, above = values[values < bad], values[values > good]
        if below.size >= above.size:
            bad = below.max()
        else:
            good = above.min()
    return float(good), float(bad)


# ── projections ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Training:
    """What a projection may learn from, all as rows of the states: `items` (n,) with their `labels`, and (m,) pairs.

    Rows that are not named here are not read by `fit`.  `folds` (n,) are numbers from 0 for the items: each is then
    scored by a fit without its fold too, where a projection does that.
    """

    items: IntArray
    labels: FloatArray
    good: IntArray
    bad: IntArray
    folds: IntArray | None = None


class PaperPCA:
    """Principal components of good − bad, centred as scikit-learn's PCA does (RepEval, equations 3 and 4).

    score_k(x) = Σ_{i ≤ k} sign_i · w_i · (x · v_i): w_i is the explained-variance ratio, sign_i is chosen so that in
    the majority of training pairs the good text projects higher (a draw goes to the larger sum of gaps).  At most one
    component fewer than there are pairs exists.  Variant k is the sum of the products with the first k of
    `directions_` (n_cells, n_variants, dim).
    """

    def __init__(self, components: int = COMPONENTS) -> None:
        self.components = components

    def fit(self, states: CellStates, training: Training) -> Self:
        gaps = states[:, training.good].astype(np.float64) - states[:, training.bad]
        directions, ratios = principal_components(gaps, self.components)
        signs = majority_signs(_project(directions, gaps))
        self.directions_ = directions * (signs * ratios)[..., None]
        return self

    def score(self, states: CellStates) -> FloatArray:
        return np.cumsum(_project(self.directions_, states), axis=1)

    def portable(self, layer: int, token: str, k: int) -> ScorerCell:
        """Return variant `k` of the first cell, which is that of `layer` at `token`."""
        direction = self.directions_[0, : k + 1].sum(axis=0).astype(np.float32)
        return ScorerCell(layer, token, 0.0, 1.0, direction.astype(np.float64))


class PaperSVM:
    """P(good) of a support vector machine with an RBF kernel, trained on the texts of the pairs (RepEval, equation 5).

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

    def portable(self, layer: int, token: str, k: int) -> KernelCell:
        """Return what was learnt in the first cell, which is that of `layer` at `token`."""
        calibrated = self.models_[0].calibrated_classifiers_[0]
        machine, sigmoid = calibrated.estimator, calibrated.calibrators[0]
        return KernelCell(
            layer,
            token,
            weights=machine.dual_coef_[0].astype(np.float64),
            intercept=float(machine.intercept_[0]),
            gamma=float(machine._gamma),
            slope=float(sigmoid.a_),
            offset=float(sigmoid.b_),
            support=machine.support_vectors_.astype(np.float64),
        )

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

    The penalty is chosen for each cell from `penalties` by the squared error on the folds left out (without folds, on
    each item left out); its unit is dim, so that it means the same whatever the width of the model (scikit-learn's
    alpha is penalty x dim).  The score is the predicted label less the mean of the training labels; `out_of_fold_`
    (n_cells, n) is that of the training items by fits without their fold (states are standardised over all of them).
    """

    def __init__(self, penalties: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)) -> None:
        self.penalties = penalties

    def fit(self, states: CellStates, training: Training) -> Self:
        known = states[:, training.items]
        self.means_ = known.mean(axis=1, keepdims=True)
        deviations = known.std(axis=1, keepdims=True)
        smallest = deviations.max(axis=-1, keepdims=True) * 1e-6
        varies = deviations > smallest
        scales = np.where(varies, 1.0 / np.where(varies, deviations, 1.0), 0.0).astype(np.float32)
        standard = (known - self.means_) * scales
        folds = np.arange(training.items.size) if training.folds is None else training.folds
        members = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
        fits = [ridge(cell, training.labels, self.penalties, members) for cell in standard]
        self.penalties_ = np.array([fit.penalty for fit in fits])
        self.directions_ = np.stack([fit.weights for fit in fits]).astype(np.float32)[:, None, :] * scales
        self.out_of_fold_ = np.stack([fit.out_of_fold for fit in fits])
        return self

    def score(self, states: CellStates) -> FloatArray:
        return _project(self.directions_, states - self.means_)

    def portable(self, layer: int, token: str, k: int) -> ScorerCell:
        """Return the first cell, which is that of `layer` at `token`."""
        direction, mean = self.directions_[0, 0].astype(np.float64), self.means_[0, 0]
        return ScorerCell(layer, token, float((direction * mean).sum()), 1.0, direction)


Projection = PaperPCA | PaperSVM | Ridge


def principal_components(differences: FloatArray, components: int) -> tuple[FloatArray, FloatArray]:
    """((n_cells, k, dim) unit directions, (n_cells, k) explained-variance ratios) of (n_cells, m, dim), centred.

    k = min(components, m − 1).  From the m x m matrix of inner products, because m is small and dim is not; directions
    whose share of the variance is rounding are 0, with ratio 0.  UsageError when m < 2.
    """
    m = differences.shape[1]
    if m < 2 or components < 1:
        raise UsageError(f"Principal components need at least 2 differences and 1 component; {m}, {components} came.")
    k = min(components, m - 1)
    centred = differences - differences.mean(axis=1, keepdims=True)
    inner = centred @ centred.transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(inner)
    total = np.trace(inner, axis1=1, axis2=2)[:, None]
    values, vectors = values[:, ::-1][:, :k], vectors[:, :, ::-1][:, :, :k]
    real = values > SMALLEST_SHARE * np.maximum(total, np.finfo(np.float64).tiny)
    inverse = np.where(real, 1.0 / np.sqrt(np.where(real, values, 1.0)), 0.0)
    directions = (vectors * inverse[:, None, :]).transpose(0, 2, 1) @ centred
    return directions, np.where(real, values / np.where(total > 0, total, 1.0), 0.0)


def majority_signs(gaps: FloatArray | CellStates) -> FloatArray:
    """+1 or −1 for each direction of `gaps` (…, m), its inner products with m differences: the side of most of them.

    A draw goes to the side of their sum.
    """
    votes = np.sign(gaps).sum(axis=-1)
    signs = np.sign(np.where(votes == 0, gaps.sum(axis=-1), votes))
    return np.asarray(np.where(signs == 0, 1.0, signs), dtype=np.float64)


def _project(directions: FloatArray | CellStates, states: FloatArray | CellStates) -> FloatArray:
    """(n_cells, k, n_items) inner products, in double precision.

    States of one cell may differ little beside what they share (the embeddings of a last token, say): single precision
    would then decide the order of near-equal scores, and whole groups of items change places.  Cell by cell, so that
    the copy stays in the processor's cache.
    """
    products = np.empty((len(states), directions.shape[1], states.shape[1]))
    for cell, product in enumerate(products):
        np.matmul(directions[cell].astype(np.float64), states[cell].T.astype(np.float64), out=product)
    return products
