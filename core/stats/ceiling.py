"""How well people agree with people: the height that a judge can be expected to reach.

Leave one rater out: how well one rater's ratings align with the mean of the others', at the statistic and level that
judges are measured with, so that it can stand on their axis.  It is a slightly low ceiling: the mean of all raters,
which judges are held against, is steadier than the mean of all but one.  So no judge is compared with it by eye or by
interval: `core.stats.beside_people` holds judge and person against the same targets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.errors import UsageError
from core.records import Alignment, FloatArray, IntArray, Level, Statistic
from core.stats.agreement import Alpha, PairwiseSpearman
from core.stats.intervals import RESAMPLES, with_spread
from core.stats.levels import MIN_GROUP, align_paired, level_values, sample_values
from core.stats.pairing import Paired
from core.stats.resampling import resampled_values
from core.stats.spread import spread_over_sources


@dataclass(frozen=True, slots=True)
class RaterAlignment:
    """One rater with the mean of the others: `value` None is undefined; `n_items` rated by them and somebody else."""

    rater: str
    value: float | None
    n_items: int


@dataclass(frozen=True)
class LeaveOneOut:
    """`alignment` averages `by_rater`, each weighted by what it rests on (items; sources at sample level).

    Its `n` counts the items with at least two ratings that count for some rater (systems at system level), its
    `n_unscored` the items with fewer ratings, its groups those defined for at least one rater.
    """

    alignment: Alignment
    by_rater: tuple[RaterAlignment, ...]


@dataclass(frozen=True)
class Ceiling:
    """Agreement of the people on one aspect.  `panel` names the raters used where there are several panels."""

    aspect: str
    leave_one_out: LeaveOneOut
    alpha: Alpha
    pairwise: PairwiseSpearman
    panel: str = ""

    @property
    def n_raters(self) -> int:
        return len(self.leave_one_out.by_rater)

    def as_json(self) -> dict[str, Any]:
        """The JSON of `ceiling` (DESIGN §3), with the parts beside it."""
        return {
            "aspect": self.aspect,
            "leave_one_out": self.leave_one_out.alignment.as_json(),
            "krippendorff_alpha": self.alpha.value,
            "alpha_metric": self.alpha.metric,
            "alpha_n_items": self.alpha.n_items,
            "alpha_reason": self.alpha.reason or None,
            "pairwise_spearman": self.pairwise.value,
            "n_pairs": self.pairwise.n_pairs,
            "pairwise_reason": self.pairwise.reason or None,
            "n_raters": self.n_raters,
            "panel": self.panel or None,
            "by_rater": [
                {"rater": one.rater, "value": one.value, "n_items": one.n_items} for one in self.leave_one_out.by_rater
            ],
        }


def leave_one_out(
    ratings: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    statistic: Statistic,
    level: Level,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
    min_group: int = MIN_GROUP,
    raters: tuple[str, ...] = (),
) -> LeaveOneOut:
    """Align each row of `ratings` (n_raters, n_items; NaN = not rated) with the mean of the other rows.

    Raters may have rated different items: each is compared on the items that somebody else rated too.  The interval
    leaves out one source at a time, for all raters at once (at system level it draws `resamples` of them).  `raters`
    names the rows (1, 2, … otherwise).  ValueError when lengths differ, UsageError for ±inf.
    """
    parts = _parts(ratings, source_codes, system_codes)
    measure = _Measure(statistic, level, min_group)
    values = np.array([measure.value(one) for one in parts.by_rater])
    weights = np.stack([measure.weights(one, parts.n_sources) for one in parts.by_rater])
    names = raters or tuple(str(k + 1) for k in range(values.size))
    by_rater = tuple(
        RaterAlignment(name, None if np.isnan(value) else float(value), one.data.labels.size)
        for name, value, one in zip(names, values, parts.by_rater, strict=True)
    )
    found = _averaged(parts, values, weights, measure)
    if found.value is None or parts.n_sources < 2 or resamples < 1:
        return LeaveOneOut(found, by_rater)
    used = weights.sum(axis=0) > 0
    spread = spread_over_sources(
        lambda counts: _averages(parts, weights, counts, measure),
        np.array([found.value]),
        np.array([int(used.sum())]),
        parts.n_sources,
        generator,
        resamples=resamples if level == "system" else 0,
    )
    return LeaveOneOut(with_spread([found], spread, confidence)[0], by_rater)


@dataclass(frozen=True)
class _Measure:
    """The statistic, the level and the smallest group, applied to one rater's data."""

    statistic: Statistic
    level: Level
    min_group: int

    def value(self, one: _Rater) -> float:
        return float(level_values(one.data, statistic=self.statistic, level=self.level, min_group=self.min_group)[0])

    def weights(self, one: _Rater, n_sources: int) -> FloatArray:
        """(n_sources,) what each source adds to the rater's weight: its items, or 1 where it has a coefficient."""
        weights = np.zeros(n_sources)
        if self.level == "sample":
            coefficients = sample_values(one.data, statistic=self.statistic, min_group=self.min_group)[0]
            weights[one.own] = ~np.isnan(coefficients)
        else:
            weights[one.own] = np.bincount(one.data.sources)
        return weights

    def resampled(self, one: _Rater, counts: FloatArray) -> FloatArray:
        """(resamples, 1) values under `counts` (resamples, n_sources)."""
        drawn = counts if one.own.size == counts.shape[1] else counts[:, one.own]
        return resampled_values(one.data, drawn, statistic=self.statistic, level=self.level, min_group=self.min_group)


@dataclass(frozen=True)
class _Rater:
    """One rater's ratings as scores beside the means of the others as labels; `own` are the codes of its sources."""

    data: Paired
    own: IntArray


@dataclass(frozen=True)
class _Parts:
    """What raters have in common: items with two ratings, sorted by source; `rated` is (n_raters, n_items)."""

    by_rater: tuple[_Rater, ...]
    rated: np.ndarray[Any, np.dtype[np.bool_]]
    sources: IntArray
    systems: IntArray
    n_sources: int
    n_unscored: int


def _parts(ratings: ArrayLike, source_codes: ArrayLike | None, system_codes: ArrayLike | None) -> _Parts:
    matrix = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    if np.isinf(matrix).any():
        raise UsageError("Ratings must be finite numbers; infinity came.")
    n = matrix.shape[1]
    sources = np.arange(n) if source_codes is None else np.asarray(source_codes)
    systems = np.zeros(n, dtype=np.intp) if system_codes is None else np.asarray(system_codes)
    if not n == sources.size == systems.size:
        raise ValueError(f"one entry per item is needed: ratings {matrix.shape}, {sources.shape}, {systems.shape}")
    n_ratings = (~np.isnan(matrix)).sum(axis=0)
    kept = np.flatnonzero(n_ratings >= 2)
    kept = kept[np.argsort(sources[kept], kind="stable")]
    matrix, n_ratings = matrix[:, kept], n_ratings[kept]
    source_names, sources = np.unique(sources[kept], return_inverse=True)
    system_names, systems = np.unique(systems[kept], return_inverse=True)
    filled, rated = np.nan_to_num(matrix), ~np.isnan(matrix)
    others = (filled.sum(axis=0) - filled) / np.maximum(n_ratings - 1, 1)
    by_rater = []
    for row, mean, at in zip(matrix, others, rated, strict=True):
        own, local = np.unique(sources[at], return_inverse=True)
        data = Paired(row[None, at], mean[at], local, systems[at], own.size, system_names.size)
        by_rater.append(_Rater(data, own))
    return _Parts(tuple(by_rater), rated, sources, systems, source_names.size, n - kept.size)


def _averaged(parts: _Parts, values: FloatArray, weights: FloatArray, measure: _Measure) -> Alignment:
    found = Alignment(measure.statistic, measure.level, None, 0, n_unscored=parts.n_unscored)
    defined = ~np.isnan(values)
    if not defined.any():
        return replace(found, reason=_reason(parts, measure))
    counted = parts.rated[defined].any(axis=0)
    if measure.level == "sample":
        used = weights.sum(axis=0) > 0
        counted &= used[parts.sources]
        found = replace(found, n_groups=int(used.sum()), n_left_out=int((~used).sum()))
    n = np.unique(parts.systems[counted]).size if measure.level == "system" else int(counted.sum())
    return replace(found, value=float(_weighted(values, weights.sum(axis=1))), n=n)


def _reason(parts: _Parts, measure: _Measure) -> str:
    if len(parts.by_rater) < 2:
        return "there is only one rater, so nobody to compare with"
    if not parts.n_sources:
        return "no item has ratings by two raters"
    rich = max((one.data for one in parts.by_rater), key=lambda data: data.labels.size)
    told = align_paired(rich, statistic=measure.statistic, level=measure.level, min_group=measure.min_group)[0]
    return f"no rater's ratings can be ranked beside the others' means: {told.reason}"


def _weighted(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean over the last axis by weight, of what is defined; NaN where nothing is."""
    counted = np.where(np.isnan(values), 0.0, weights)
    total = counted.sum(axis=-1)
    mean = (np.nan_to_num(values) * counted).sum(axis=-1) / np.where(total > 0, total, 1.0)
    return np.asarray(np.where(total > 0, mean, np.nan), dtype=np.float64)


def _averages(parts: _Parts, weights: FloatArray, counts: FloatArray, measure: _Measure) -> FloatArray:
    """(rows, 1) averages over raters, each rater computed anew with `counts` (rows, n_sources)."""
    values = np.concatenate([measure.resampled(one, counts) for one in parts.by_rater], axis=1)
    return _weighted(values, counts @ weights.T)[:, None]
