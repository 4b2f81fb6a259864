"""Learn the weight of each clause of the criteria from calibration labels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from core.calibration.racing import CandidatePool, ensemble_scores
from core.records import FloatArray, ScoreMatrix
from core.stats.correlation import source_folds

LABELS_A_CLAUSE = 5
"""With fewer calibration labels for each clause, all clauses have the same weight."""


def clause_weights(ratings: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the weight of each clause (n_clauses,): at least 0, with a sum of 1.

    Weights are fitted by non-negative least squares (Lawson and Hanson 1974) to centred `ratings` (n_items, n_clauses)
    and `labels` (n_items,). A clause whose ratings are all equal gets 0. All weights are equal if there are fewer than
    `LABELS_A_CLAUSE` labels per clause, or if no clause's ratings rise with the labels.
    """
    from scipy.optimize import nnls

    n, k = ratings.shape
    weights = np.zeros(k)
    if n >= LABELS_A_CLAUSE * k:
        # set constant columns to exactly 0, which rounding would miss
        centred = np.where(np.ptp(ratings, axis=0) > 0, ratings - ratings.mean(axis=0), 0.0)
        with suppress(RuntimeError):  # scipy reached its limit of iterations
            weights = nnls(centred, labels - labels.mean())[0]
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(k, 1 / k)


def weigh_clauses(pool: CandidatePool, ids: Sequence[str]) -> FloatArray:
    """Learn clause weights for the criteria `ids`, and replace their scores in the table with weighted scores.

    Criteria without ratings per clause keep their scores.

    Returns:
        Mean scores (n_items,), for fitting the intervals and the map to the human scale. The items are divided into
        folds by source, and each fold is scored with weights learnt on the other folds.
    """
    items, table, golden, crossed = pool.items, pool.table, pool.judge.golden, list[FloatArray]()
    folds = source_folds(items.sources, seed=pool.settings.seed)
    for name in ids:
        crossed.append(table.values[name].copy())
        rated = table.clauses[name]
        places = [k for k in items.positions.tolist() if golden.item_ids[k] in rated]
        if not places:
            continue
        known = np.isin(items.positions, places)
        labels, fold = items.labels[known], folds[known]
        ratings = np.array([rated[golden.item_ids[k]] for k in places], dtype=np.float64)  # (n, n_clauses, both orders)
        for out in np.unique(fold):
            others = clause_weights(ratings[fold != out, :, 0], labels[fold != out])
            crossed[-1][items.positions[known][fold == out]] = ratings[fold == out, :, 0] @ others
        weights = clause_weights(ratings[..., 0], labels)
        scores = np.moveaxis(ratings, 2, 0) @ weights
        of_items = tuple(golden.item_ids[k] for k in places)
        matrix = ScoreMatrix((name,), of_items, scores[:1], turned=None if np.isnan(scores[1]).all() else scores[1:])
        table.enter(matrix)
        pool.judge.recorder.add_scores(places, matrix)
        entry = pool.entries[name]
        pool.entries[name] = replace(entry, criteria=replace(entry.criteria, weights=tuple(weights.tolist())))
        pool.aligned_on[name] = 0
    return ensemble_scores(np.stack(crossed))
