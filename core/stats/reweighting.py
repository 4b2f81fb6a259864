"""Values of every candidate with other counts of each source, without re-reading the items.

A row of counts says how often each source came.  A *leave-out* has a 0 for the source, or the group of sources, that it
leaves out, and 1 elsewhere.  A *draw* has n_sources sources drawn with replacement (Davison and Hinkley 1997, section
3.8).  What each statistic needs from the counts:

- sample level: the counted mean of the per-source coefficients (they do not change);
- system level: counted sums per source and system, then a coefficient over systems;
- dataset Pearson: counted sums of per-source moments;
- dataset Spearman (leave-outs alone): the distinct values of what is left, their average ranks, and how often each pair
  of values occurs, less the items left out;
- dataset tau-b (leave-outs alone): concordant less discordant pairs of all items, less those with an item left out.

Each equals the statistic computed on the written-out resample (tests hold this).  Undefined is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.records import FloatArray, IntArray, Measure
from core.stats.correlation import BLOCK_ELEMENTS, correlate, deviations, kendall, within_one
from core.stats.items import Paired
from core.stats.levels import coefficients, settled_means

BALANCE_LIMIT = 8_000
"""Most items for which all pairs are compared for tau-b (n² signs); beyond, each row's items are sorted."""

COUNTS_LIMIT = 16_000_000
"""Most counts (resamples x sources) held at once: 128 MB."""

VANISHING = 1e-12
"""A resampled sum of squares below this share of the whole sample's is rounding: the side is constant."""


def draw_counts(generator: np.random.Generator, n_sources: int, resamples: int) -> FloatArray:
    """(resamples, n_sources) how often each source came; every row adds up to n_sources."""
    drawn = generator.integers(0, n_sources, size=(resamples, n_sources))
    drawn += np.arange(resamples)[:, None] * n_sources
    flat = np.bincount(drawn.ravel(), minlength=resamples * n_sources)
    return flat.reshape(resamples, n_sources).astype(np.float64)


def leave_outs(n_sources: int, pieces: int, generator: np.random.Generator | None = None) -> FloatArray:
    """(pieces, n_sources) counts of 1, and 0 for the source, or the group of sources, that a row leaves out.

    More sources than `pieces` fall into groups of nearly equal size: drawn by `generator`, without one by turns.
    """
    pieces = min(n_sources, pieces, max(COUNTS_LIMIT // max(n_sources, 1), 2))
    drawn = np.arange(n_sources) if pieces == n_sources or generator is None else generator.permutation(n_sources)
    return np.asarray((drawn % max(pieces, 1))[None, :] != np.arange(pieces)[:, None], dtype=np.float64)


def resampled_values(data: Paired, counts: FloatArray, measure: Measure) -> FloatArray:
    """(resamples, n_candidates) values by `measure` under `counts` (resamples, n_sources).

    ValueError for a rank coefficient at dataset level with other counts than leave-outs.
    """
    if measure.level == "sample":
        return counted_means(coefficients(data, measure.statistic), counts)
    if measure.level == "system":
        weights = data.scored if not data.complete else np.ones((1, data.items.labels.size))
        present, scores, labels = map(
            data.items.sums_by_cell, (weights, np.nan_to_num(data.scores), weights * data.items.labels)
        )
        values = np.empty((counts.shape[0], data.scores.shape[0]))
        for block in _blocks(counts.shape[0], scores.shape[0] * data.items.n_systems):
            drawn = np.matmul(counts[block], present)
            x = settled_means(np.matmul(counts[block], scores), drawn)
            y = settled_means(np.matmul(counts[block], labels), drawn)
            values[block] = correlate(x, y, measure.statistic).T
        return values
    if measure.statistic == "pearson":
        return _pearson_values(data, counts)
    left = counts == 0
    if left.sum(axis=0).max(initial=0) > 1 or not (left | (counts == 1)).all():
        raise ValueError("rank coefficients at dataset level are computed for leave-outs alone")
    by = np.where(left.any(axis=0), left.argmax(axis=0), counts.shape[0])  # which row leaves a source out
    of_rest = _spearman_of_the_rest if measure.statistic == "spearman" else _kendall_of_the_rest
    values = np.full((counts.shape[0], data.scores.shape[0]), np.nan)
    for k in range(data.scores.shape[0]):
        own = data.scored_only(k)
        if own.items.labels.size >= 2:
            values[:, k] = of_rest(own.scores[0], own.items.labels, by[own.items.sources], counts.shape[0])
    return values


def _blocks(resamples: int, elements: int) -> Iterator[slice]:
    """Runs of resamples whose arrays, `elements` for each resample, stay near `BLOCK_ELEMENTS`."""
    step = max(1, BLOCK_ELEMENTS // (8 * max(elements, 1)))
    return (slice(start, min(start + step, resamples)) for start in range(0, resamples, step))


def counted_means(values: FloatArray, counts: FloatArray) -> FloatArray:
    """(resamples, rows) means of `values` (rows, n_sources) under `counts` (resamples, n_sources), NaN left out."""
    present = ~np.isnan(values)
    total = counts @ np.where(present, values, 0.0).T
    weight = counts @ present.T.astype(np.float64)
    return np.where(weight > 0, total, np.nan) / np.maximum(weight, 1.0)


def _pearson_values(data: Paired, counts: FloatArray) -> FloatArray:
    x, y = deviations(data.scores), deviations(np.where(data.scored > 0, data.items.labels, np.nan))
    n, sx, sy, sxx, syy, sxy = (
        counts @ data.items.sums_by_source(part).T for part in (data.scored, x, y, x * x, y * y, x * y)
    )
    n = np.maximum(n, 1.0)
    vx, vy = (np.maximum(squares - sums * sums / n, 0.0) for squares, sums in ((sxx, sx), (syy, sy)))
    for side, variance in ((x, vx), (y, vy)):
        variance[variance <= VANISHING * (side * side).sum(axis=1)] = 0.0
    return within_one(sxy - sx * sy / n, np.sqrt(vx * vy))


def _left_masses(codes: IntArray, by: IntArray, rows: slice) -> FloatArray:
    """(n_values, n_rows) how often each value, of `codes` (n,), is left by a row; row `by` (n,) leaves an item out."""
    n_rows, n_values, inside = rows.stop - rows.start, int(codes.max()) + 1, (by >= rows.start) & (by < rows.stop)
    masses = np.repeat(np.bincount(codes, minlength=n_values).astype(np.float64), n_rows)
    np.subtract.at(masses, codes[inside] * n_rows + by[inside] - rows.start, 1.0)
    return masses.reshape(n_values, n_rows)


def _spearman_of_the_rest(x: FloatArray, y: FloatArray, by: IntArray, n_rows: int) -> FloatArray:
    """(n_rows,) Spearman of the items (n,) that each row keeps; row `by` (n,) leaves an item out."""
    from scipy.sparse import csr_matrix

    codes = [np.unique(side, return_inverse=True)[1] for side in (x, y)]
    pairs, values = csr_matrix((np.ones(x.size), (codes[1], codes[0]))), np.empty(n_rows)
    for rows in _blocks(n_rows, 4 * max(pairs.shape)):
        ranks, power = [], np.ones(rows.stop - rows.start)
        for places in codes:
            masses = _left_masses(places, by, rows)
            centred = np.cumsum(masses, axis=0)  # average ranks less their mean; exact, being halves of whole numbers
            n = centred[-1].copy()
            masses /= 2.0
            centred -= masses
            centred -= n / 2.0
            ranks.append(centred)
            # Σ of squared centred average ranks of N items is (N³ − Σ t³) / 12 over the sizes t of the ties
            power = power * np.sqrt((n**3 - 8.0 * np.einsum("vr,vr,vr->r", masses, masses, masses)) / 12.0)
        together = (np.asarray(pairs @ ranks[0]) * ranks[1]).sum(axis=0)
        inside = np.flatnonzero((by >= rows.start) & (by < rows.stop))
        row = by[inside] - rows.start
        gone = ranks[0][codes[0][inside], row] * ranks[1][codes[1][inside], row]
        values[rows] = within_one(together - np.bincount(row, weights=gone, minlength=rows.stop - rows.start), power)
    return values


def _kendall_of_the_rest(x: FloatArray, y: FloatArray, by: IntArray, n_rows: int) -> FloatArray:
    """(n_rows,) tau-b of the items (n,) that each row keeps; row `by` (n,) leaves an item out."""
    n, items_of = x.size, [np.flatnonzero(by == row) for row in range(n_rows)]
    if n > BALANCE_LIMIT:
        rests = (by != row for row in range(n_rows))
        return np.array([float(kendall(x[rest], y[rest])) for rest in rests])
    balance, step = np.empty(n), max(1, BLOCK_ELEMENTS // n)  # of an item: concordant less discordant pairs with it
    for start in range(0, n, step):
        i = slice(start, start + step)
        balance[i] = _agreed(x[i], x, y[i], y).sum(axis=1, dtype=np.int64)
    inside = np.array([_agreed(x[at], x[at], y[at], y[at]).sum(dtype=np.int64) for at in items_of])
    gone = np.array([balance[at].sum() for at in items_of])
    untied, codes = np.empty((2, n_rows)), [np.unique(side, return_inverse=True)[1] for side in (x, y)]
    for rows in _blocks(n_rows, n):
        for places, own in zip(codes, untied, strict=True):
            masses = _left_masses(places, by, rows)
            own[rows] = masses.sum(axis=0) ** 2 - np.einsum("vr,vr->r", masses, masses)
    return within_one(balance.sum() - 2.0 * gone + inside, np.sqrt(untied[0] * untied[1]))


def _agreed(
    x: FloatArray, others_x: FloatArray, y: FloatArray, others_y: FloatArray
) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """(n, n_others) 1 for a concordant pair of items, −1 for a discordant one, 0 where either side is tied."""
    signs = [
        np.subtract((left[:, None] > right).view(np.int8), (left[:, None] < right).view(np.int8))
        for left, right in ((x, others_x), (y, others_y))
    ]
    return np.multiply(*signs)
