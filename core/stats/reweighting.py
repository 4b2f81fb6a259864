"""Values of every candidate with other counts of each source, without re-reading the items where possible.

Sources are drawn with replacement, n_sources at a time (Davison and Hinkley 1997, section 3.8), or one is left out at
a time; either is a row of counts, how often each source came.  What each statistic needs from those counts:

- sample level: the counted mean of the per-source coefficients (they do not change);
- dataset Pearson: counted sums of per-source moments;
- dataset Spearman: ranks inside the resample, from counted masses of the distinct values (average ranks); where each
  row leaves a group of sources out, the ranks of all less what the group adds to each, summed over the group alone;
- dataset tau-b: mᵀ A m with A[g, h] the balance of concordant and discordant pairs between sources g and h;
- system level: counted sums per source and system, then a coefficient over systems.

Each equals the statistic computed on the written-out resample (tests hold this).  Undefined is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.records import FloatArray, IntArray, Measure, Statistic
from core.stats.correlation import BLOCK_ELEMENTS, correlate, kendall
from core.stats.items import BoolArray, Paired
from core.stats.levels import coefficients, settled_means

BALANCE_LIMIT = 8_000
"""Most items for which tau-b's balance between sources is laid out (n² signs); beyond, each resample is sorted."""

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
    """(resamples, n_candidates) values by `measure` under `counts` (resamples, n_sources)."""
    statistic = measure.statistic
    if measure.level == "sample":
        return counted_means(coefficients(data, statistic), counts)
    if measure.level == "system":
        return _system_values(data, counts, statistic)
    if statistic == "pearson":
        return _pearson_values(data, counts)
    if statistic == "spearman" and data.complete:
        return _spearman_values(data, counts)
    values = np.empty((counts.shape[0], data.scores.shape[0]))
    for k in range(data.scores.shape[0]):
        own = data.scored_only(k)
        values[:, k] = _spearman_values(own, counts)[:, 0] if statistic == "spearman" else _kendall_values(own, counts)
    return values


def _blocks(resamples: int, elements: int) -> Iterator[slice]:
    """Runs of resamples whose arrays, `elements` a resample, stay near `BLOCK_ELEMENTS`."""
    step = max(1, BLOCK_ELEMENTS // (8 * max(elements, 1)))
    return (slice(start, start + step) for start in range(0, resamples, step))


def _divided(numerator: FloatArray, denominator: FloatArray, defined: BoolArray) -> FloatArray:
    return np.clip(np.where(defined, numerator, np.nan) / np.where(defined, denominator, 1.0), -1.0, 1.0)


# ── sample level ─────────────────────────────────────────────────────────────────────────────────────────────


def counted_means(values: FloatArray, counts: FloatArray) -> FloatArray:
    """(resamples, rows) means of `values` (rows, n_sources) under `counts` (resamples, n_sources), NaN left out."""
    present = ~np.isnan(values)
    total = counts @ np.where(present, values, 0.0).T
    weight = counts @ present.T.astype(np.float64)
    return np.where(weight > 0, total, np.nan) / np.maximum(weight, 1.0)


# ── system level ─────────────────────────────────────────────────────────────────────────────────────────────


def _system_values(data: Paired, counts: FloatArray, statistic: Statistic) -> FloatArray:
    weights = np.ones((1, data.items.labels.size)) if data.complete else data.scored
    present = data.items.sums_by_cell(weights)
    scores = data.items.sums_by_cell(np.nan_to_num(data.scores))
    labels = data.items.sums_by_cell(weights * data.items.labels)
    values = np.empty((counts.shape[0], data.scores.shape[0]))
    for block in _blocks(counts.shape[0], scores.shape[0] * data.items.n_systems):
        drawn = np.matmul(counts[block], present)
        x = settled_means(np.matmul(counts[block], scores), drawn)
        y = settled_means(np.matmul(counts[block], labels), drawn)
        values[block] = correlate(x, y, statistic).T
    return values


# ── dataset level, Pearson ───────────────────────────────────────────────────────────────────────────────────


def _pearson_values(data: Paired, counts: FloatArray) -> FloatArray:
    scored = data.scored
    x, y = _standardised(data.scores), _standardised(np.where(scored > 0, data.items.labels, np.nan))
    n, sx, sy, sxx, syy, sxy = (
        counts @ data.items.sums_by_source(part).T for part in (scored, x, y, x * x, y * y, x * y)
    )
    n = np.maximum(n, 1.0)
    vx, vy, cxy = sxx - sx * sx / n, syy - sy * sy / n, sxy - sx * sy / n
    # x and y have sum of squares n_items over the whole sample, or are 0 throughout
    least = VANISHING * data.items.labels.size
    return _divided(cxy, np.sqrt(np.maximum(vx, 0.0) * np.maximum(vy, 0.0)), (vx > least) & (vy > least))


def _standardised(values: FloatArray) -> FloatArray:
    """Rows with mean 0 and mean square 1 over what is present; 0 where missing and for constant rows."""
    present = ~np.isnan(values)
    count = np.maximum(present.sum(axis=-1, keepdims=True), 1)
    scale = np.maximum(np.abs(np.where(present, values, 0.0)).max(axis=-1, keepdims=True, initial=0.0), 1e-300)
    scaled = np.where(present, values / scale, 0.0)
    centred = np.where(present, scaled - scaled.sum(axis=-1, keepdims=True) / count, 0.0)
    spread = np.sqrt((centred * centred).sum(axis=-1, keepdims=True) / count)
    varies = np.fmax.reduce(values, axis=-1, keepdims=True) > np.fmin.reduce(values, axis=-1, keepdims=True)
    return np.where(varies, centred / np.where(spread > 0, spread, 1.0), 0.0)


# ── dataset level, Spearman ──────────────────────────────────────────────────────────────────────────────────


class _Distinct:
    """The distinct values of one side, ascending, and which item has which; items are addressed by source."""

    def __init__(self, values: FloatArray, sources: IntArray) -> None:
        distinct, self.codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
        self.starts = np.cumsum(sizes) - sizes
        self.sources = sources[np.argsort(self.codes, kind="stable")]
        self.repeated = distinct.size < values.size

    def masses(self, counts_t: FloatArray) -> FloatArray:
        """(n_distinct, resamples) how often each value came; `counts_t` is (n_sources, resamples)."""
        by_value = counts_t[self.sources]
        return np.add.reduceat(by_value, self.starts, axis=0) if self.repeated else by_value


def _centred_ranks(masses: FloatArray) -> FloatArray:
    """Average ranks of the distinct values minus the mean rank; exact, being halves of whole numbers."""
    centred: FloatArray = np.cumsum(masses, axis=0)
    centred -= centred[-1] / 2.0  # in place: fresh arrays of this size cost more than the sums
    centred -= masses / 2.0
    return centred


def _spearman_values(data: Paired, counts: FloatArray) -> FloatArray:
    """(resamples, n_candidates) for candidates without gaps: the labels' ranks serve them all."""
    values = np.full((counts.shape[0], data.scores.shape[0]), np.nan)
    if data.items.labels.size < 2:
        return values
    if (groups := _groups_left_out(counts)) is not None:
        labels = _Ranked.of(data.items.labels, groups[data.items.sources], counts.shape[0])
        ranked = [_Ranked.of(row, labels.groups, labels.n_groups) for row in data.scores]
        if all(min(labels.n_values, own.n_values) <= counts.shape[0] for own in ranked):
            return np.stack([_spearman_of_the_rest(own, labels) for own in ranked], axis=1)
    y = _Distinct(data.items.labels, data.items.sources)
    candidates = [_Distinct(row, data.items.sources) for row in data.scores]
    for block in _blocks(counts.shape[0], data.items.labels.size):
        drawn = np.ascontiguousarray(counts[block].T)
        masses_y = y.masses(drawn)
        ranks_y = _centred_ranks(masses_y)
        power_y = np.einsum("kr,kr,kr->r", masses_y, ranks_y, ranks_y)
        weighted = drawn[data.items.sources] * ranks_y[y.codes]
        for k, x in enumerate(candidates):
            masses_x = x.masses(drawn)
            ranks_x = _centred_ranks(masses_x)
            shared = np.einsum("ir,ir->r", weighted, ranks_x[x.codes])
            power_x = np.einsum("kr,kr,kr->r", masses_x, ranks_x, ranks_x)
            values[block, k] = _divided(shared, np.sqrt(power_x) * np.sqrt(power_y), (power_x > 0) & (power_y > 0))
    return values


def _groups_left_out(counts: FloatArray) -> IntArray | None:
    """(n_sources,) the row that leaves a source out, −1 for none; None where `counts` are not of that kind."""
    left = counts == 0
    if left.sum(axis=0).max(initial=0) > 1 or not (left | (counts == 1)).all():
        return None
    return np.where(left.any(axis=0), left.argmax(axis=0), -1)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """One side (n,), its items in `groups` (−1: in none) of which one is left out at a time.

    `codes` of the `n_values` distinct values; `ranks` centred ranks among all, `within` among the own group; `rest`
    and `power` (n_groups,) how many items are left without each group, and the sum of their squared centred ranks.
    """

    codes: IntArray
    n_values: int
    ranks: FloatArray
    groups: IntArray
    n_groups: int
    within: FloatArray
    rest: FloatArray
    power: FloatArray

    @classmethod
    def of(cls, values: FloatArray, groups: IntArray, n_groups: int) -> _Ranked:
        distinct, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
        cells, cell, held = np.unique((groups + 1) * distinct.size + codes, return_inverse=True, return_counts=True)
        group, sizes = cells // distinct.size, sizes.astype(np.float64)
        in_group = np.bincount(groups + 1, minlength=n_groups + 1).astype(np.float64)
        within = np.cumsum(held) - held / 2.0 - (np.cumsum(in_group) - in_group / 2.0)[group]
        every = sizes[cells % distinct.size]
        fewer = np.bincount(group, weights=(every - held) ** 3 - every**3, minlength=n_groups + 1)
        rest = codes.size - in_group[1:]
        return cls(
            codes=codes,
            n_values=distinct.size,
            ranks=(np.cumsum(sizes) - sizes / 2.0 - codes.size / 2.0)[codes],
            groups=groups,
            n_groups=n_groups,
            within=within[cell],
            rest=rest,
            # Σ of squared centred average ranks of N items is (N³ − Σ t³) / 12 over the sizes t of the ties
            power=(rest**3 - ((sizes**3).sum() + fewer[1:])) / 12.0,
        )

    def by_group(self, weights: FloatArray) -> FloatArray:
        """(n_groups,) sums of `weights` (n,)."""
        return np.bincount(self.groups + 1, weights=weights, minlength=self.n_groups + 1)[1:].astype(np.float64)

    def pulls(self, weights: FloatArray) -> FloatArray:
        """(n,) for each item half of the `weights` (n,) of those above it, minus half of those below."""
        sums = np.bincount(self.codes, weights=weights, minlength=self.n_values).astype(np.float64)
        pulls: FloatArray = (sums.sum() - 2.0 * np.cumsum(sums) + sums) / 2.0
        return pulls[self.codes]


def _spearman_of_the_rest(x: _Ranked, y: _Ranked) -> FloatArray:
    """(n_groups,) Spearman of the items outside each group, with a pass over the items for each value of one side.

    The centred rank of item i among the rest is R_i − d_i: its rank among all, less what the group g adds, d_i =
    Σ_{j in g} sign(x_i − x_j) / 2.  So Σ over the rest of the products is that over all of R R − R d − d R + d d, less
    that over g.  Σ_i R_i d_i is a sum over g of `pulls`; the d of a side with few values are one number a value.
    """
    few, many = (x, y) if x.n_values < y.n_values else (y, x)
    products = x.ranks @ y.ranks - few.by_group(few.pulls(many.ranks) + many.pulls(few.ranks))
    for value in range(few.n_values):
        has, above = (np.asarray(side, dtype=np.float64) for side in (few.codes == value, few.codes > value))
        below = 1.0 - has - above
        products += few.by_group(below - above) / 2.0 * many.by_group(many.pulls(has))
    products -= x.by_group((x.ranks - x.within) * (y.ranks - y.within))
    # of two values or more the power is rest (rest − 1) / 4 at least: less is rounding
    least = np.maximum(x.rest * (x.rest - 1.0) / 8.0, 4.0 * np.finfo(np.float64).eps * float(x.codes.size) ** 3)
    return _divided(products, np.sqrt(x.power) * np.sqrt(y.power), (x.power > least) & (y.power > least))


# ── dataset level, tau-b ─────────────────────────────────────────────────────────────────────────────────────


def _kendall_values(data: Paired, counts: FloatArray) -> FloatArray:
    if data.items.labels.size < 2:
        return np.full(counts.shape[0], np.nan)
    if data.items.labels.size > BALANCE_LIMIT:
        places, times = np.arange(data.items.labels.size), counts.astype(np.intp)[:, data.items.sources]
        written_out = (np.repeat(places, row) for row in times)
        return np.array([float(kendall(data.scores[0, at], data.items.labels[at])) for at in written_out])
    balance = _balance_between_sources(data)
    agreed = np.einsum("rg,rg->r", counts @ balance, counts)
    x, y = _Distinct(data.scores[0], data.items.sources), _Distinct(data.items.labels, data.items.sources)
    untied = np.empty((2, counts.shape[0]))
    for block in _blocks(counts.shape[0], data.items.labels.size):
        drawn = np.ascontiguousarray(counts[block].T)
        untied[:, block] = _untied(x.masses(drawn)), _untied(y.masses(drawn))
    return _divided(agreed, np.sqrt(untied).prod(axis=0), np.asarray((untied > 0).all(axis=0)))


def _untied(masses: FloatArray) -> FloatArray:
    """Ordered pairs of different values in each resample: N² − Σ mass²."""
    total = masses.sum(axis=0)
    untied: FloatArray = total * total - np.einsum("kr,kr->r", masses, masses)
    return untied


def _balance_between_sources(data: Paired) -> FloatArray:
    """(n_sources, n_sources) sums of sign(x_i − x_j) · sign(y_i − y_j) over i of one source and j of the other."""
    x, y, n = data.scores[0], data.items.labels, data.items.labels.size
    present, starts = np.unique(data.items.sources, return_index=True)
    balance = np.zeros((data.items.n_sources, data.items.n_sources))
    rows = max(1, BLOCK_ELEMENTS // n)
    for start in range(0, n, rows):
        i = slice(start, start + rows)
        products = _signs(x[i], x) * _signs(y[i], y)
        columns = np.add.reduceat(products, starts, axis=1, dtype=np.float64)
        own, own_starts = np.unique(data.items.sources[i], return_index=True)
        balance[np.ix_(own, present)] += np.add.reduceat(columns, own_starts, axis=0)
    return balance


def _signs(rows: FloatArray, columns: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    left, right = rows[:, None], columns[None, :]
    return np.subtract((left > right).view(np.int8), (left < right).view(np.int8))
