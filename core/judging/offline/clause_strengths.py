"""Strengths of clauses from many labels: a ridge over single features, shrunk towards what the aspect's name expects.

What a few exemplars cannot show, all calibration labels can: by how much each feature moves the ratings when the others
are held.  Labels are taken as ranks, within their source where sources hold several texts; the penalty is the best
between sources.  So that reviewers can read them, `MOST_CLAUSES` features stand for all.  The regression is then
averaged with the judge without criteria, whose share is `PRIOR_LABELS` in `PRIOR_LABELS` + n, and written as clauses
with strengths of two decimals, so that the text says all of it.
Chosen by leaving one public set out (`tests/bench/bench_offline.py`): `PRIOR_LABELS`, `LEAST_SHARE`, `MOST_CLAUSES`.
"""

from __future__ import annotations

import numpy as np

from core.judging.offline.criteria_grammar import MAX_STRENGTH, Clause, write
from core.judging.offline.features import GROUPED, KEYS, applicable, prior
from core.records import FloatArray, IntArray, Task
from core.stats import LabelledItems, average_ranks
from core.stats.items import source_folds

PENALTIES = np.logspace(0.0, 5.0, 16)
"""Strengths of the ridge, in units of one standardised item."""

PRIOR_LABELS = 60.0
"""How many labels the judge without criteria is worth compared with the regression."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.6
"""Bounds of the share of the judge without criteria."""

MOST_CLAUSES = 20
"""Features that fitted criteria name, at most."""

LEAST_CLAUSE = 0.05
"""Clauses weaker than this part of the strongest are left out."""

EVEN = 1e-3
"""Ridge that keeps features of equal values apart, in units of one standardised item for each of the items."""

TIE = 1e-6
"""Features whose loss differs by less than this part weigh the same: no machine's last bits choose between them."""

DECIMALS = 2


def fitted(values: FloatArray, labels: FloatArray, sources: IntArray, task: Task) -> str:
    """Criteria of clauses on single features; "" where labels are all alike or of fewer than three sources.

    `values` (n, n_concepts), `labels` (n,) without NaN and `sources` (n,) codes belong to the same items.
    """
    n, at = len(labels), GROUPED + np.flatnonzero(applicable(task.kind)[GROUPED:])
    if not n or labels.min() == labels.max() or np.unique(sources).size < 3:
        return ""
    bare, x = values @ (prior(task) * applicable(task.kind)), values[:, at]
    ranks, level = average_ranks(labels), LabelledItems.from_arrays(labels, sources).usual_level
    weights = ridge(x, ranks / ranks.std(), sources, within=level == "sample")
    spread = float((x @ weights).std())
    if not spread > 0 or not bare.std() > 0:
        return ""
    share = min(MOST_SHARE, max(LEAST_SHARE, PRIOR_LABELS / (PRIOR_LABELS + n)))
    strengths = (weights * (1 - share) / share * float(bare.std()) / spread).clip(-MAX_STRENGTH, MAX_STRENGTH)
    strengths[np.abs(strengths) < LEAST_CLAUSE * np.abs(strengths).max()] = 0.0
    pairs = zip(at.tolist(), strengths.round(DECIMALS).tolist(), strict=True)
    clauses = tuple(Clause(KEYS[k], strength) for k, strength in pairs if strength)
    return write(clauses, task.aspect, task.kind, whole=True) if clauses else ""


def ridge(x: FloatArray, y: FloatArray, sources: IntArray, *, within: bool) -> FloatArray:
    """(n_features,) weights of `x` (n, n_features) for `y` (n,), at most `MOST_CLAUSES` of them other than 0.

    The penalty is the best on sources left out.  `within` has both sides compared inside a source alone.
    """
    group = np.unique(sources, return_inverse=True)[1] if within else np.zeros(len(y), dtype=np.intp)
    x, y = _centred(x, group), _centred(y[:, None], group)[:, 0]
    folds = source_folds(sources)
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    squares, products = x.T @ x, x.T @ y
    losses = np.zeros(PENALTIES.size)
    for part in parts:
        inside, told = x[part], y[part]
        weights = ridge_path(squares - inside.T @ inside, products - inside.T @ told)
        losses += ((inside @ weights - told[:, None]) ** 2).sum(axis=0)
    best = int(np.argmin(losses))
    kept = _kept(squares + PENALTIES[best] * np.eye(len(squares)), products)
    weights = ridge_path(squares, products)[:, best]
    # the kept ones take over what the others said, which strays less than fitting them to the labels by themselves
    among = squares[np.ix_(kept, kept)] + EVEN * len(y) * np.eye(kept.size)
    few = np.zeros(len(weights))
    few[kept] = np.linalg.solve(among, (squares @ weights)[kept])
    return few


def _kept(squares: FloatArray, products: FloatArray) -> IntArray:
    """`MOST_CLAUSES` features of a least-squares problem: the one that costs least is dropped, again and again.

    The cost of a feature is by how much the loss rises when the others are fitted anew without it.
    """
    kept, inverse = np.arange(products.size), np.linalg.inv(squares)
    weights = inverse @ products
    while kept.size > MOST_CLAUSES:
        cost = weights**2 / np.diag(inverse)
        least = int(np.argmax(cost <= cost.min() * (1 + TIE)))
        others = np.arange(kept.size) != least
        column = inverse[:, least] / inverse[least, least]
        weights = (weights - column * weights[least])[others]
        inverse = (inverse - np.outer(column, inverse[least]))[np.ix_(others, others)]
        kept = kept[others]
    return kept


def ridge_path(squares: FloatArray, products: FloatArray) -> FloatArray:
    """(n_features, n_penalties) weights at all `PENALTIES`, from one eigendecomposition."""
    values, vectors = np.linalg.eigh(squares)
    turned = (vectors.T @ products)[:, None] / (np.maximum(values, 0.0)[:, None] + PENALTIES)
    return np.asarray(vectors @ turned, dtype=np.float64)


def _centred(values: FloatArray, group: IntArray) -> FloatArray:
    """(n, k) less the means of their groups (n,)."""
    means = np.zeros((int(group.max()) + 1, values.shape[1]))
    np.add.at(means, group, values)
    return np.asarray(values - (means / np.bincount(group)[:, None])[group])
