"""Strengths of clauses from many labels: a ridge over single features, shrunk towards what the aspect's name expects.

What a few exemplars cannot show, all calibration labels can: by how much each feature moves the ratings when the others
are held.  Labels are taken as ranks, within their source where sources hold several texts; the penalty is the best
between sources.  The regression is then averaged with the judge without criteria, whose share is `PRIOR_LABELS` in
`PRIOR_LABELS` + n, and written as clauses with strengths of two decimals, so that the text says all of it.
Chosen by leaving one public set out (`tests/bench/bench_offline.py`): `PRIOR_LABELS` and `LEAST_SHARE`.
"""

from __future__ import annotations

import numpy as np

from core.judging.offline.criteria import MAX_STRENGTH, Clause, write
from core.judging.offline.features import GROUPED, KEYS, applicable, prior
from core.records import FloatArray, IntArray, Task
from core.stats import LabelledItems, average_ranks
from core.stats.expected_error import source_folds

PENALTIES = np.logspace(0.0, 5.0, 16)
"""Strengths of the ridge, in units of one standardised item."""

PRIOR_LABELS = 60.0
"""How many labels the judge without criteria is worth beside the regression."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.6
"""Bounds of the share of the judge without criteria."""

LEAST_CLAUSE = 0.05
"""Clauses weaker than this part of the strongest are left out."""

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
    """(n_features,) weights of `x` (n, n_features) for `y` (n,); the penalty is the best on sources left out.

    `within` has both sides compared inside a source alone.
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
    return np.asarray(ridge_path(squares, products)[:, int(np.argmin(losses))])


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
