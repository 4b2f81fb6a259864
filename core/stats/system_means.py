"""Estimate mean human scores of systems, and their differences, from few labels and many verdicts.

The judge's mean over all scored items is precise but biased. The mean of the labels is unbiased but imprecise. The
corrected mean combines the two (PPI++: Angelopoulos, Duchi and Zrnic 2023, "PPI++: Efficient Prediction-Powered
Inference", section 4). For n labelled and N unlabelled items of a system, with labels Y and verdicts f,

    θ = mean over labelled of (Y − λ·(f − f̄)),   f̄ = mean of f over unlabelled
    variance = var(Y − λf) / n + λ²·var(f) / N
    λ = cov(Y, f) / ((1 + n/N)·var f), clipped to [0, 1]

Concord departs from the paper in three ways, each of which improves coverage in simulations:

- **by source**: var and cov are computed from sums by source. var f is over all judged items. If a source has labelled
  and unlabelled items, or items of several systems, their covariance is included. Quantiles are those of t. The degrees
  of freedom are the smaller of the numbers of labelled and unlabelled sources, minus 2; one of the two is lost because
  λ is estimated.
- **λ leave-one-source-out**: each label is corrected with a λ estimated on the other sources, so θ is unbiased at any
  n.
- **another scale**: verdicts on another scale are mapped to the human scale by increasing maps. Each map is fitted on
  other folds of sources (cross-prediction: Zrnic and Candès 2024), and centred on its own mean over the unlabelled
  items.

The labelled items must be a random sample of the judged items. Callers must leave out items that were used to choose or
fit the judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from core.records import FloatArray, IntArray, Interval, Scale, json_fields
from core.stats.alignment import holm
from core.stats.correlation import BoolArray, source_folds
from core.stats.intervals import CONFIDENCE, LEAST_SOURCES, ROUNDING, TOO_FEW, one_sided, t_quantile, two_sided
from core.stats.on_scale import fit_isotonic
from core.wording import counted


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean on the human scale; a missing value or interval is None, and `reason` says why."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        interval = self.interval and self.interval.as_json()
        return {"value": self.value, "interval": interval, "reason": self.reason or None}


@dataclass(frozen=True, slots=True)
class SystemMean:
    """Three estimates of a system's mean: from labels and verdicts (`corrected`), labels only, and verdicts only.

    Attributes:
        n_labelled: Number of items with a label.
        n_judged: Number of items with a verdict.
        n_both: Number of items with a label and a verdict.
        weight: Mean weight λ of the verdicts, 0 to 1, defined in the module docstring.
        n_effective: Number of labels that would give as narrow an interval without verdicts.
        note: Explains the corrected mean to readers.
    """

    name: str
    corrected: MeanEstimate
    labels_only: MeanEstimate
    judge_only: MeanEstimate
    n_labelled: int
    n_judged: int
    n_both: int
    weight: float | None = None
    n_effective: float | None = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("name",))


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """Corrected mean of system `a` minus that of system `b`. Effects of shared sources cancel.

    Attributes:
        interval: 95 % interval of the pair alone; None if undefined.
        p: Two-sided p of the pair alone; None with fewer than 8 sources, or without an interval.
        p_holm: p corrected for all pairs in the table; None if `p` is None.
        reason: Why `p` is None, or "".
    """

    a: str
    b: str
    value: float
    interval: Interval | None
    p: float | None
    p_holm: float | None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in json_fields(self).items() if name != "interval_method"}


@dataclass(frozen=True)
class SystemMeans:
    """Means of all systems, and the differences of all pairs of systems with a corrected mean.

    Attributes:
        correlation: Pearson's r of verdicts with labels within systems; None if undefined.
        p_correlation: One-sided p of the test that the correlation is above 0.
        n_both: Number of items with a label and a verdict.
        n_sources: Number of sources of the items with a label and a verdict.
        mapped: Whether the verdicts were mapped to the human scale.
        scale: The human scale.
    """

    systems: tuple[SystemMean, ...]
    differences: tuple[SystemDifference, ...]
    correlation: float | None
    p_correlation: float | None
    n_both: int
    n_sources: int
    mapped: bool
    scale: Scale
    notes: tuple[str, ...] = ()

    @property
    def corrected(self) -> tuple[SystemMean, ...]:
        """The systems with a corrected mean, the highest first."""
        known = [(system.corrected.value, system) for system in self.systems if system.corrected.value is not None]
        return tuple(system for _, system in sorted(known, key=lambda pair: -pair[0]))

    def as_json(self) -> dict[str, Any]:
        return {
            "systems": {system.name: system.as_json() for system in self.systems},
            "differences": [difference.as_json() for difference in self.differences],
            "judge": {
                "correlation": self.correlation,
                "p": self.p_correlation,
                "n": self.n_both,
                "n_sources": self.n_sources,
                "mapped": self.mapped,
            },
            "scale": [self.scale.low, self.scale.high],
            "notes": list(self.notes),
        }


LEAST_LABELS = 10
"""Fewest items of a system with label and verdict for a corrected mean; they come from `LEAST_SOURCES` sources."""

MOST_WIDER = 1.05
"""If the corrected interval is more than this many times as wide as that of labels alone, labels alone are used."""

LOPSIDED_FROM = 0.6
"""Share of a system's labels at their highest or lowest value from which t intervals are too short, because few labels
seldom include a rare other.  Intervals are then those of the labels and a part of one more label at the far end."""

FAR_LABEL = 0.5
"""Share of one more label: in simulation a whole label was too wide, a quarter too short."""

SHOWN_AT = 0.015
"""Largest p, corrected for all pairs, with which systems are said to differ.  Together with all claims about the judge
itself, false claims then occur in at most 5 % of simulated golden sets."""

MOST_COMPARED = 60
"""Most systems to compare in pairs: 1,770 pairs."""

MOST_FOLDS = 30
"""Maximum number of folds of sources for the maps to the human scale; with fewer sources, each source is a fold."""

NO_LABELS = "no item has a label"
NO_VERDICTS = "no item has a verdict"
ALL_EQUAL = "no interval: all labels are equal or come from one source, so the uncertainty of the mean is unknown"
REPEATED = "items whose text also appears under another id (they count as one source)"
ALL_LABELLED = "every judged item has a label, so the labels alone are enough"
CONSTANT = "the judge gave all items of the system the same score, so the verdicts add nothing to the labels"
LOPSIDED = (
    "most labels are identical, so the intervals are wider to allow for unseen labels at the other end of the scale"
)
LABELS_ALONE = "the verdicts would widen the interval, so only the labels are used"


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """Items with a label, a verdict, or both.

    Attributes:
        labels: Labels (n,), NaN where missing.
        scores: Verdicts (n,), NaN where missing.
        sources: Codes of the sources (n,), whole numbers from 0, possibly with gaps.
        systems: Indices into `names` (n,).
        scale: Scale of the labels.
    """

    labels: FloatArray
    scores: FloatArray
    sources: IntArray
    systems: IntArray
    names: tuple[str, ...]
    scale: Scale

    @property
    def has_label(self) -> BoolArray:
        return ~np.isnan(self.labels)

    @property
    def has_score(self) -> BoolArray:
        return ~np.isnan(self.scores)


# ── a mean with its variance by source ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class SourceMean:
    """A mean with its variance by source.

    Attributes:
        value: The mean; NaN without items.
        sources: Codes of the sources (n_sources,).
        parts: Contribution of each source (n_sources,). The variance of the mean is the sum of their squares.
        freedom: Degrees of freedom.
        extra: Additional standard error, independent between systems.
    """

    value: float
    sources: IntArray
    parts: FloatArray
    freedom: int
    extra: float = 0.0

    @classmethod
    def of(cls, values: FloatArray, sources: IntArray) -> SourceMean:
        """Compute the plain mean of the items' `values` (n,). `sources` (n,) has the source of each item."""
        names, place = np.unique(sources, return_inverse=True)
        mean, n = float(values.mean()) if values.size else np.nan, names.size
        scale = np.sqrt(n / (n - 1)) / values.size if n > 1 else 0.0
        return cls(mean, names, np.bincount(place, values - mean, n) * scale, n - 1)

    @property
    def error(self) -> float:
        """Standard error; NaN if there is only one source, or if all values are equal."""
        error = float(np.hypot(np.sqrt((self.parts**2).sum()), self.extra))
        return error if self.freedom >= 1 and error > ROUNDING else np.nan

    @property
    def reach(self) -> float:
        """Half the width of the 95 % interval; NaN if there is none."""
        return self.error * t_quantile(self.freedom) if self.freedom >= 1 else np.nan

    def widened(self, like: SourceMean, scale: Scale) -> SourceMean:
        """Return the mean with a wider interval, which allows for unseen labels at the far end of the scale.

        The additional standard error is √(`FAR_LABEL` / (n² − 1)) times the distance from the mean to the far end. The
        mean and n, its number of sources, are those of `like`. The error is as if a fraction `FAR_LABEL` of another
        source lay at the far end.
        """
        n, far = like.freedom + 1, max(like.value - scale.low, scale.high - like.value)
        return replace(self, extra=far * np.sqrt(FAR_LABEL / (n**2 - 1.0))) if n > 1 else self

    def estimate(self, reason: str, scale: Scale) -> MeanEstimate:
        """Return the mean and its interval, clipped to `scale`; `reason` explains a missing value."""
        if np.isnan(self.value):
            return MeanEstimate(None, None, reason)
        bounded = min(max(self.value, scale.low), scale.high)
        if np.isnan(self.reach):
            return MeanEstimate(bounded, None, ALL_EQUAL)
        return MeanEstimate(bounded, _interval(self.value, self.reach, self.freedom).within(scale.low, scale.high))


def _interval(value: float, half: float, freedom: int) -> Interval:
    return Interval(value - half, value + half, CONFIDENCE, f"t({freedom}) over sources", freedom + 1)


def powered_mean(
    labels: FloatArray, scores: FloatArray, sources: IntArray, others: FloatArray, others_from: IntArray
) -> tuple[SourceMean, float]:
    """Estimate a mean from labels and scores, corrected with the scores of unlabelled items.

    Args:
        labels: Labels (n,).
        scores: Scores of the labelled items (n,). All scores must be centred on the mean of `others`.
        sources: Sources of the labelled items (n,).
        others: Scores of the unlabelled items (N,).
        others_from: Sources of the unlabelled items (N,).

    Returns:
        The corrected mean, and the mean weight λ of the scores. Each label's λ is estimated on the other sources.
    """
    _, place, size = np.unique(sources, return_inverse=True, return_counts=True)
    _, place_of_others, size_of_others = np.unique(others_from, return_inverse=True, return_counts=True)
    y, f = np.bincount(place, labels), np.bincount(place, scores)
    # variance of one item's score, by source, over labelled and unlabelled items
    sizes, sums = np.concatenate([size, size_of_others]), np.concatenate([f, np.bincount(place_of_others, others)])
    n_judged = int(sizes.sum())
    variance = ((sums - sizes * (sums.sum() / n_judged)) ** 2).sum() / n_judged * sizes.size / max(sizes.size - 1, 1)
    if size.size < 3 or not others.size or variance <= ROUNDING**2:  # a constant judge has λ = 0
        return SourceMean.of(labels, sources), 0.0

    def left(values: FloatArray | IntArray) -> FloatArray:
        return np.asarray(values.sum() - values, dtype=np.float64)

    # Σ (Y_c − m_c·Ȳ)(F_c − m_c·f̄) over sources c with sums Y_c and F_c of m_c items, multiplied out into four sums:
    # leaving out a source then only subtracts its terms
    n = left(size)
    mean_y, mean_f = left(y) / n, left(f) / n
    about = left(y * f) - mean_y * left(size * f) - mean_f * left(size * y) + mean_y * mean_f * left(size**2)
    covariance = about * (size.size - 1) / (size.size - 2) / n
    weights = np.clip(covariance / ((1.0 + labels.size / others.size) * variance), 0.0, 1.0)[place]
    weight = float(weights.mean())
    own, spread = SourceMean.of(labels - weights * scores, sources), SourceMean.of(weight * others, others_from)
    if weight == 0.0:
        return own, weight
    names, place = np.unique(np.concatenate([own.sources, spread.sources]), return_inverse=True)
    parts = np.bincount(place, np.concatenate([own.parts, spread.parts])).astype(np.float64)
    return SourceMean(own.value, names, parts, min(own.freedom, spread.freedom) - 1), weight


# ── the estimate ─────────────────────────────────────────────────────────────────────────────────────────────


def system_means(items: JudgedItems) -> SystemMeans:
    """Estimate the corrected means of all systems of `items`, and their differences."""
    labels, scale, both = items.labels, items.scale, items.has_label & items.has_score
    scores, plain, mapped = _centred(items)
    systems, means = list[SystemMean](), dict[int, SourceMean]()
    for k, name in enumerate(items.names):
        own = items.systems == k
        labelled, judged, used = own & items.has_label, own & items.has_score, own & both
        rest, y = judged & ~labelled, labels[labelled]
        alone, of_judge, n_labelled = SourceMean.of(y, items.sources[labelled]), plain[judged], y.size
        # mostly equal labels give intervals that are too short
        lopsided = bool(n_labelled) and max((y == y.min()).sum(), (y == y.max()).sum()) >= LOPSIDED_FROM * n_labelled
        system = SystemMean(
            name,
            MeanEstimate(None),
            (alone.widened(alone, scale) if lopsided else alone).estimate(NO_LABELS, scale),
            SourceMean.of(of_judge, items.sources[judged]).estimate(NO_VERDICTS, scale),
            n_labelled,
            of_judge.size,
            int(used.sum()),
        )
        if missing := _too_few(system, int(np.unique(items.sources[used]).size)):
            systems.append(replace(system, corrected=MeanEstimate(None, None, missing)))
            continue
        alone = of_both = SourceMean.of(labels[used], items.sources[used])
        powered, weight = powered_mean(
            labels[used], scores[used], items.sources[used], scores[rest], items.sources[rest]
        )
        if lopsided:
            alone, powered = of_both.widened(of_both, scale), powered.widened(of_both, scale)
        if without := weight > 0 and not powered.reach <= MOST_WIDER * alone.reach:
            powered, weight = alone, 0.0
        notes = {
            ALL_LABELLED: system.n_judged == system.n_both,
            CONSTANT: of_judge.min() == of_judge.max(),
            LABELS_ALONE: without,
            LOPSIDED: lopsided,
        }
        means[k] = powered
        corrected, error = powered.estimate(NO_LABELS, scale), powered.error
        systems.append(
            replace(
                system,
                corrected=corrected,
                weight=weight,
                n_effective=None if corrected.interval is None else system.n_both * (alone.error / error) ** 2,
                note="; ".join(words for words, holds in notes.items() if holds),
            )
        )
    too_many = len(means) > MOST_COMPARED
    note = f"{len(means)} systems are too many to compare in pairs; the limit is {MOST_COMPARED}"
    return SystemMeans(
        tuple(systems),
        () if too_many or len(means) < 2 else _differences(means, systems, scale),
        *_worth_within(labels[both], scores[both], items.sources[both], items.systems[both]),
        int(both.sum()),
        int(np.unique(items.sources[both]).size),
        mapped,
        scale,
        (note,) if too_many else (),
    )


def _differences(means: dict[int, SourceMean], systems: list[SystemMean], scale: Scale) -> tuple[SystemDifference, ...]:
    """Compare all pairs of the systems with `means` (by place), the higher mean first.

    Values are differences of the clipped means, and intervals extend to them.
    """
    from scipy.sparse import csr_matrix

    chosen, widest = sorted(means, key=lambda k: -means[k].value), scale.high - scale.low
    rows = np.repeat(np.arange(len(chosen)), [means[k].sources.size for k in chosen])
    sources = np.concatenate([means[k].sources for k in chosen])
    by_source = csr_matrix((np.concatenate([means[k].parts for k in chosen]), (rows, sources)))
    covariance = (by_source @ by_source.T).toarray() + np.diag([means[k].extra ** 2 for k in chosen])
    differences = list[SystemDifference]()
    for i, j in combinations(range(len(chosen)), 2):
        a, b, first, second = means[chosen[i]], means[chosen[j]], systems[chosen[i]], systems[chosen[j]]
        freedom, gap = min(a.freedom, b.freedom) - 1, a.value - b.value  # two λ were estimated, not one
        error = float(np.sqrt(max(covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j], 0.0)))
        value = (first.corrected.value or 0.0) - (second.corrected.value or 0.0)
        pair = SystemDifference(first.name, second.name, value, None, None, None, ALL_EQUAL)
        if np.isfinite(a.error + b.error) and (error > ROUNDING or abs(gap) <= ROUNDING) and freedom >= 1:
            ends = _interval(gap, t_quantile(freedom) * error, freedom)
            ends = replace(ends, low=min(ends.low, value), high=max(ends.high, value)).within(-widest, widest)
            tested = freedom + 2 >= LEAST_SOURCES
            p = two_sided(gap / max(error, ROUNDING), freedom) if tested else None  # equal in every source: p = 1
            pair = replace(pair, interval=ends, p=p, reason="" if tested else TOO_FEW)
        differences.append(pair)
    corrected = holm([np.nan if pair.p is None else pair.p for pair in differences]).tolist()
    return tuple(
        replace(pair, p_holm=None if pair.p is None else p) for pair, p in zip(differences, corrected, strict=True)
    )


def _worth_within(
    labels: FloatArray, scores: FloatArray, sources: IntArray, systems: IntArray
) -> tuple[float | None, float | None]:
    """Correlate verdicts with labels within systems: Pearson's r, and its one-sided p against no correlation.

    The p is Student's over sources, of the sum of products of each source.
    """
    _, own, size = np.unique(systems, return_inverse=True, return_counts=True)
    y, f = (side - (np.bincount(own, side) / size)[own] for side in (labels, scores))
    power = float(np.sqrt((y @ y) * (f @ f)))
    if not power > ROUNDING:
        return None, None
    names, place = np.unique(sources, return_inverse=True)
    products = np.bincount(place, weights=y * f)
    error = float(np.sqrt((products**2).sum()))
    tested = names.size >= LEAST_SOURCES and error > 0
    p = one_sided(-float(products.sum()) / error, names.size - 1) if tested else None
    return float(y @ f) / power, p


def _too_few(system: SystemMean, n_sources: int) -> str:
    """Say why a system has no corrected mean; "" if it has one."""
    if system.n_both < LEAST_LABELS:
        have, missing = counted(system.n_both, "label"), counted(LEAST_LABELS - system.n_both, "more label")
        return f"{have} on judged items; a corrected mean needs at least {LEAST_LABELS} ({missing})"
    if n_sources < LEAST_SOURCES:
        return f"labels from {counted(n_sources, 'source')}; a corrected mean needs at least {LEAST_SOURCES}"
    return ""


# ── verdicts on another scale ────────────────────────────────────────────────────────────────────────────────


def _centred(items: JudgedItems) -> tuple[FloatArray, FloatArray, bool]:
    """Centre scores on the unlabelled items of their system: (n,) centred, (n,) mapped, and whether they were mapped.

    Scores on another scale are first mapped by increasing maps.  Each label's map is fitted on the other folds of
    sources.  Unlabelled items use the mean of the maps, weighted by how often each corrected their system's labels.
    """
    scores, scale, n_systems = items.scores, items.scale, len(items.names)
    both, rest = items.has_score & items.has_label, items.has_score & ~items.has_label
    system_of, rest_of = items.systems[both], items.systems[rest]
    n_rest, n_both = (np.maximum(np.bincount(own, minlength=n_systems), 1) for own in (rest_of, system_of))
    everything = scores[items.has_score]
    low, high = (everything.min(), everything.max()) if everything.size else (scale.low, scale.high)
    # map if scores leave the scale, or span less than a quarter of it (0 to 1 on a scale of 0 to 100); an unnecessary
    # map only widens the interval a little
    if scale.low <= low and high <= scale.high and (low == high or high - low >= 0.25 * (scale.high - scale.low)):
        return scores - (np.bincount(rest_of, scores[rest], n_systems) / n_rest)[items.systems], scores, False
    own, labels = scores[both], items.labels[both]
    values, which = np.unique(scores[rest], return_inverse=True)  # equal scores are mapped once
    folds = source_folds(items.sources[both], MOST_FOLDS)  # whole sources, so that no label chooses its own map
    centred, plain = scores.copy(), scores.copy()
    centred[rest] = plain[rest] = 0.0
    if not own.size:
        plain[rest] = _map(own, labels, scale, everything)(scores[rest])
    for fold in np.unique(folds):
        inside = folds == fold
        apply = _map(own[~inside], labels[~inside], scale, everything)
        theirs, at = apply(values)[which], np.flatnonzero(both)[inside]
        mean = np.bincount(rest_of, theirs, n_systems) / n_rest
        plain[at] = apply(scores[at])
        centred[at] = plain[at] - mean[items.systems[at]]
        share = np.bincount(system_of, inside, n_systems) / n_both
        plain[rest] += theirs * inside.mean()
        centred[rest] += share[rest_of] * (theirs - mean[rest_of])
    return centred, plain, True


def _map(
    scores: FloatArray, labels: FloatArray, scale: Scale, everything: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Fit the map from the judge's scale to the human scale; if none fits, use a straight line from end to end."""
    if fitted := fit_isotonic(scores, labels, scale)[0]:
        return fitted.apply
    low, width = float(everything.min()), float(np.ptp(everything)) or np.inf  # equal scores map to the low end
    return lambda values: scale.low + (values - low) / width * (scale.high - scale.low)
