"""By what racing ranks candidates that are scored on part of the items.

An alignment at sample level, a mean over a few sources of four items each, uses little of what is there.  Its mean with
two correlations over all items at once finds the later winner more often: both take every score less the mean of its
source and the standardised ranks of the labels within their source, one with the scores' ranks over all items, one with
the scores themselves.  At dataset level the two are Spearman's and Pearson's over all items.  It chooses who goes on,
and is shown to nobody.
"""

from __future__ import annotations

import numpy as np

from core.records import FloatArray, IntArray, Measure
from core.stats import LabelledItems, alignment_values, average_ranks


def standings(scores: FloatArray, items: LabelledItems, measure: Measure) -> FloatArray:
    """(k,) standings of `scores` (k, n) on `items`, NaN = unscored; minus infinity without an alignment."""
    values = alignment_values(scores, items, measure)
    ranks = np.nan_to_num(values, nan=-np.inf)
    if measure.level == "system":
        return ranks
    groups = np.unique(items.sources, return_inverse=True)[1]
    if measure.level == "dataset":
        groups, people = np.zeros_like(groups), (average_ranks(items.labels), items.labels)
    else:
        people = (_standard_ranks(items.labels, groups),) * 2
    known = ~np.isnan(scores)
    means = np.where(known, scores, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    filled = np.where(known, scores, means[:, None])
    judges = (average_ranks(filled), filled)
    pooled = [_pooled(own, labels, groups) for own, labels in zip(judges, people, strict=True)]
    return np.asarray(np.mean([ranks, *pooled], axis=0), dtype=np.float64)


def _pooled(scores: FloatArray, labels: FloatArray, groups: IntArray) -> FloatArray:
    """(k,) correlations of `scores` (k, n) less their groups' means with `labels` (n,); 0 for constants."""
    x, y = _less_means(scores, groups), _less_means(labels[None], groups)[0]
    size = np.sqrt((x * x).sum(axis=1) * (y @ y))
    return np.asarray(np.divide(x @ y, size, out=np.zeros(len(x)), where=size > 0), dtype=np.float64)


def _less_means(values: FloatArray, groups: IntArray) -> FloatArray:
    sums = np.stack([np.bincount(groups, weights=row) for row in values])
    return np.asarray(values - (sums / np.bincount(groups))[:, groups], dtype=np.float64)


def _standard_ranks(labels: FloatArray, groups: IntArray) -> FloatArray:
    """(n,) ranks of `labels` within their group, of mean 0 and variance 1 there; 0 where all are equal."""
    order = np.lexsort((labels, groups))
    at, ordered = groups[order], labels[order]
    starts = np.ones(labels.size, dtype=bool)
    starts[1:] = (at[1:] != at[:-1]) | (ordered[1:] != ordered[:-1])
    runs = np.empty(labels.size, dtype=np.intp)  # of equal labels of one group, counted through
    runs[order] = np.cumsum(starts) - 1
    sizes = np.bincount(runs)
    ranks = _less_means((np.cumsum(sizes) - (sizes - 1) / 2)[runs][None], groups)[0]
    spread = np.sqrt(np.bincount(groups, ranks * ranks) / np.bincount(groups))[groups]
    return np.asarray(np.divide(ranks, spread, out=np.zeros_like(ranks), where=spread > 0), dtype=np.float64)
