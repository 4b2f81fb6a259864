"""How good is each system: corrected means next to labels alone and judge alone, and the differences between systems.

`core.stats.prediction_powered` has the formulas.  Labels have to be a random draw of what was judged; items whose
labels chose or fitted the judge are to be left out beforehand, labels and verdicts alike.

What a judge is worth can be told before anybody labels.  With n labels and N unlabelled verdicts a system, and
correlation ρ of verdicts with labels within systems, the corrected interval is √(1 − ρ²·N/(n + N)) times as wide as
that of the labels alone: as wide as n / (1 − ρ²·N/(n + N)) labels would make it.  λ has to be found out from the same
labels, which costs about what ρ = 1/√(n − 2) brings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.errors import UsageError
from core.json_form import JsonRecord, json_fields
from core.records import FloatArray, IntArray, Interval, Scale
from core.stats.alignment import holm
from core.stats.claims import LEAST_SOURCES, TOO_FEW
from core.stats.correlation import require_finite
from core.stats.intervals import CONFIDENCE, ROUNDING, t_quantile
from core.stats.items import BoolArray
from core.stats.prediction_powered import (
    Cells,
    Halves,
    Means,
    centred,
    chosen_weights,
    mapped,
    on_another_scale,
    plain_means,
    powered_means,
    ratio,
    t_quantiles,
)
from core.wording import counted, percent


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean within the human scale.  None is undefined; `reason` says why a value or its interval is missing."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""

    @property
    def width(self) -> float:
        """Width of the interval, infinite where there is none."""
        return np.inf if self.interval is None else self.interval.high - self.interval.low

    def as_json(self) -> dict[str, Any]:
        interval = self.interval and self.interval.as_json()
        return {"value": self.value, "interval": interval, "reason": self.reason or None}


@dataclass(frozen=True, slots=True)
class SystemMean:
    """One system: `corrected` next to `labels_only` and `judge_only`, the naive mean of its verdicts.

    `n_labelled` items have a label, `n_judged` a verdict, `n_both` both.  `weight` is the mean λ.  `n_effective`: so
    many labels alone would give an interval as narrow as the corrected one.  `note` is for whoever reads the corrected
    mean.
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
    """Corrected mean of system `a` minus that of `b`; what sources they share have in common cancels.

    `interval` is the 95 % one of this pair alone, `tested_interval` as wide as the test is strict: it leaves 0 out
    where `p_holm` lets a claim be made, and only there.  `p` is two-sided, `p_holm` corrected over the pairs of the
    table; None under 8 sources, with `reason`.
    """

    a: str
    b: str
    value: float
    interval: Interval | None
    tested_interval: Interval | None
    p: float | None
    p_holm: float | None
    reason: str = ""

    @property
    def reversed(self) -> SystemDifference:
        """`b` minus `a`."""
        turned = (
            ends and replace(ends, low=-ends.high, high=-ends.low) for ends in (self.interval, self.tested_interval)
        )
        interval, tested = turned
        return replace(self, a=self.b, b=self.a, value=-self.value, interval=interval, tested_interval=tested)

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in json_fields(self).items() if name != "interval_method"}


@dataclass(frozen=True)
class SystemMeans:
    """All systems, and every pair of those with a corrected mean.

    `correlation` is Pearson's of verdicts with labels within systems, over `n_both` items, None where undefined, and
    `p_correlation` that of no or a negative one; `spread` the standard deviation of labels within systems.  `mapped`:
    verdicts went through a map to the human `scale`.  `n_sources` is how many hold an item with label and verdict.
    """

    systems: tuple[SystemMean, ...]
    differences: tuple[SystemDifference, ...]
    correlation: float | None
    p_correlation: float | None
    spread: float | None
    n_both: int
    n_sources: int
    mapped: bool
    scale: Scale
    notes: tuple[str, ...] = ()

    @property
    def corrected(self) -> tuple[SystemMean, ...]:
        """The systems with a corrected mean, highest first."""
        known = [(system.corrected.value, system) for system in self.systems if system.corrected.value is not None]
        return tuple(system for _, system in sorted(known, key=lambda pair: -pair[0]))

    @property
    def by_need(self) -> tuple[SystemMean, ...]:
        """The systems by who needs labels most: those without an interval, fewest labels first, then by its width."""
        return tuple(sorted(self.systems, key=lambda system: (-system.corrected.width, system.n_both)))

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
"""Fewest items of a system with label and verdict for a corrected mean, and they come from `LEAST_SOURCES` sources."""

MOST_WIDER = 1.05
"""A corrected interval that is more times as wide as that of the labels alone gives way to theirs."""

LOPSIDED_FROM = 0.6
"""Share of a system's labels at their highest or lowest value from which t intervals are too short: few labels seldom
meet one of the rare others.  Intervals are then those of the labels and a part of one more at the far end."""

FAR_LABEL = 0.5
"""The part: in simulation a whole label was wider without need, a quarter too short."""

SHOWN_AT = 0.015
"""The p, corrected over the pairs, up to which systems are said to differ: with all that is said of a judge itself
(`comparison.examination`, `bar`) that claims something of nothing in at most 5 % of
simulated golden sets."""

MOST_COMPARED = 60
"""Systems up to which all pairs are compared: 1,770 pairs; nobody reads more."""

NO_LABELS = "no label on any item"
NO_VERDICTS = "no verdict on any item"
NOT_JUDGED = "no verdict on any labelled item"
ALL_EQUAL = "no interval: all of its labels are equal, or from one source, so nothing tells how sure their mean is"
REPEATED = "items whose text comes under another id too (they count as one source)"
ALL_LABELLED = "every judged item has a label: the labels alone say it"
CONSTANT = "the judge gives all of its items one score, which adds nothing to the labels"
LOPSIDED = "most of its labels are alike, so its intervals are lengthened as if half a label more stood at the far end"
LABELS_ALONE = "here the verdicts would widen the interval, so only the labels count"


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """What was judged or labelled: `labels` and `scores` (n,) with NaN for none, codes of `sources` and `systems` (n,).

    Codes of systems are places in `names`, those of sources any whole numbers from 0; `scale` is that of the labels.
    ValueError when lengths differ, UsageError for ±inf.
    """

    labels: FloatArray
    scores: FloatArray
    sources: IntArray
    systems: IntArray
    names: tuple[str, ...]
    scale: Scale

    def __post_init__(self) -> None:
        shapes = {side.shape for side in (self.labels, self.scores, self.sources, self.systems)}
        if self.labels.ndim != 1 or len(shapes) > 1:
            raise ValueError(f"one entry per item is needed on every side: {sorted(shapes)}")
        require_finite(self.labels, self.scores)

    @property
    def has_label(self) -> BoolArray:
        return ~np.isnan(self.labels)

    @property
    def has_score(self) -> BoolArray:
        return ~np.isnan(self.scores)

    def counts(self, chosen: BoolArray) -> IntArray:
        """(n_systems,) how many of each system's items are `chosen` (n,)."""
        return np.bincount(self.systems[chosen], minlength=len(self.names))

    def cells(self, chosen: BoolArray) -> Cells:
        """The items where `chosen` is true, by system and source."""
        return Cells(self.systems[chosen], self.sources[chosen], len(self.names))


# ── the estimate ─────────────────────────────────────────────────────────────────────────────────────────────


def system_means(items: JudgedItems) -> SystemMeans:
    """Estimate the corrected means of all systems of `items`, and their differences."""
    has_label, both, scale = items.has_label, items.has_label & items.has_score, items.scale
    rest = items.has_score & ~has_label
    n_sources, n_systems = int(items.sources.max(initial=0)) + 1, len(items.names)
    labelled, unlabelled = items.cells(both), items.cells(rest)
    halves = Halves(items.labels[both], items.scores[both], labelled, items.scores[rest], unlabelled)
    other_scale = on_another_scale(items.scores[items.has_score], scale)
    halves, plain = mapped(halves, scale) if other_scale else centred(halves)

    # labels that are mostly alike give intervals that are too short
    systems_labelled = items.systems[has_label]
    at_end = [
        np.bincount(systems_labelled, items.labels[has_label] == end[systems_labelled], n_systems)
        for end in _ends(items.labels[has_label], systems_labelled, n_systems)
    ]
    n_labelled = items.counts(has_label)
    lopsided = np.max(at_end, axis=0) >= np.where(n_labelled > 0, LOPSIDED_FROM * n_labelled, np.inf)

    def lengthened(means: Means, like: Means) -> Means:
        """Add `FAR_LABEL` of one more source, its labels at the end of the scale that is farther from the mean.

        With n sources that adds √(part / (n² − 1)) times as far to the standard error.
        """
        n = like.freedom + 1.0
        far = np.nan_to_num(np.maximum(like.values - scale.low, scale.high - like.values))
        return replace(
            means, extra=np.where(lopsided & (n > 1), far * np.sqrt(FAR_LABEL / np.maximum(n**2 - 1.0, 1.0)), 0.0)
        )

    labels_of_both = plain_means(halves.labels, labelled, n_sources)
    labels_of_both = lengthened(labels_of_both, labels_of_both)
    by_cell = chosen_weights(halves)
    powered, weights = powered_means(halves, by_cell, n_sources)
    powered = lengthened(powered, labels_of_both)
    without = (weights > 0) & ~(powered.reach <= MOST_WIDER * labels_of_both.reach)  # verdicts would widen the interval
    powered = lengthened(
        powered_means(halves, np.where(without[labelled.system], 0.0, by_cell), n_sources)[0], labels_of_both
    )

    labels = plain_means(items.labels[has_label], items.cells(has_label), n_sources)
    order = np.concatenate([np.flatnonzero(both), np.flatnonzero(rest)])
    judge = plain_means(plain, Cells(items.systems[order], items.sources[order], n_systems), n_sources)
    lowest, highest = _ends(plain, items.systems[order], n_systems)
    estimates = _estimates(powered, NOT_JUDGED, scale)
    labels_only = _estimates(lengthened(labels, labels), NO_LABELS, scale)
    judge_only = _estimates(judge, NO_VERDICTS, scale)
    n_judged, n_both = items.counts(items.has_score), items.counts(both)
    n_effective = n_both * ratio(labels_of_both.errors, powered.errors) ** 2
    systems = []
    for k, name in enumerate(items.names):
        counts = int(n_labelled[k]), int(n_judged[k]), int(n_both[k])
        missing = _too_few(*counts, int(labelled.n_sources[k]))
        if missing:
            systems.append(SystemMean(name, MeanEstimate(None, None, missing), labels_only[k], judge_only[k], *counts))
            continue
        notes = {
            ALL_LABELLED: n_judged[k] == n_both[k],
            CONSTANT: lowest[k] == highest[k],
            LABELS_ALONE: without[k],
            LOPSIDED: lopsided[k],
        }
        systems.append(
            SystemMean(
                name,
                estimates[k],
                labels_only[k],
                judge_only[k],
                *counts,
                weight=0.0 if without[k] else float(weights[k]),
                n_effective=None if estimates[k].interval is None else float(n_effective[k]),
                note="; ".join(words for words, holds in notes.items() if holds),
            )
        )
    chosen = np.array([k for k, system in enumerate(systems) if system.corrected.value is not None], dtype=np.intp)
    notes_on_pairs: tuple[str, ...] = ()
    if chosen.size > MOST_COMPARED:
        notes_on_pairs = (f"{chosen.size} systems are too many to compare in pairs; up to {MOST_COMPARED} are",)
    return SystemMeans(
        tuple(systems),
        () if notes_on_pairs or chosen.size < 2 else _differences(chosen, systems, powered, scale),
        *_worth_within(halves),
        int(both.sum()),
        int(np.unique(items.sources[both]).size),
        other_scale,
        scale,
        notes_on_pairs,
    )


def _ends(values: FloatArray, systems: IntArray, n_systems: int) -> FloatArray:
    """(2, n_systems) least and largest of `values` (n,) by system."""
    ends = np.repeat([[np.inf], [-np.inf]], n_systems, axis=1)
    np.minimum.at(ends[0], systems, values)
    np.maximum.at(ends[1], systems, values)
    return ends


def _estimates(means: Means, reason: str, scale: Scale) -> list[MeanEstimate]:
    """One for each system, cut off at the ends of `scale`; `reason` where there is no value."""
    estimates = []
    for value, half, freedom in zip(means.values.tolist(), means.reach.tolist(), means.freedom.tolist(), strict=True):
        interval = None if np.isnan(half) else _interval(value, half, freedom).within(scale.low, scale.high)
        bounded = min(max(value, scale.low), scale.high)
        estimates.append(
            MeanEstimate(None, None, reason)
            if np.isnan(value)
            else MeanEstimate(bounded, interval, "" if interval else ALL_EQUAL)
        )
    return estimates


def _interval(value: float, half: float, freedom: float) -> Interval:
    return Interval(value - half, value + half, CONFIDENCE, f"t({freedom:.0f}) over sources", int(freedom) + 1)


def _differences(
    chosen: IntArray, systems: list[SystemMean], means: Means, scale: Scale
) -> tuple[SystemDifference, ...]:
    """All pairs of the systems `chosen`, the higher first.

    Values are those of the bounded means, and intervals reach to them.
    """
    from scipy.special import stdtr, stdtrit

    chosen = chosen[np.argsort(-means.values[chosen], kind="stable")]
    covariance = means.covariance(chosen)
    variance = np.diag(covariance)
    i, j = np.triu_indices(chosen.size, 1)
    errors = np.sqrt(np.maximum(variance[i] + variance[j] - 2.0 * covariance[i, j], 0.0))
    a, b = chosen[i], chosen[j]
    freedom = np.minimum(means.freedom[a], means.freedom[b]) - 1  # two λ were chosen, not one
    gaps = means.values[a] - means.values[b]
    known = np.isfinite(means.errors[a] + means.errors[b]) & (errors > ROUNDING)
    half = t_quantiles(freedom) * errors
    p = np.minimum(1.0, 2.0 * stdtr(np.maximum(freedom, 1), -np.abs(gaps) / np.where(known, errors, 1.0)))
    p = np.where(known & (freedom + 2 >= LEAST_SOURCES), p, np.nan)
    p_holm = holm(p)
    # an interval that says the same as the corrected p: as much wider as that p is larger
    outside = SHOWN_AT * np.where(p_holm > 0, p / np.where(p_holm > 0, p_holm, 1.0), 1.0 / p.size)
    tested_half = stdtrit(np.maximum(freedom, 1), 1.0 - outside / 2.0) * errors
    differences = []
    for k in range(p.size):
        first, second = systems[a[k]], systems[b[k]]
        value = (first.corrected.value or 0.0) - (second.corrected.value or 0.0)
        intervals: list[Interval | None] = [None, None]
        if known[k]:
            intervals[0] = _interval(gaps[k], half[k], freedom[k])
        if not np.isnan(p[k]):
            method = f"t({freedom[k]:.0f}) over sources, as wide as a corrected p of {SHOWN_AT:g} asks"
            wide = _interval(gaps[k], tested_half[k], freedom[k])
            intervals[1] = replace(wide, confidence=float(1.0 - outside[k]), method=method)
        interval, tested = (
            ends
            and replace(ends, low=float(min(ends.low, value)), high=float(max(ends.high, value))).within(
                scale.low - scale.high, scale.high - scale.low
            )
            for ends in intervals
        )
        p_own, p_table = (None if np.isnan(x[k]) else float(x[k]) for x in (p, p_holm))
        reason = ALL_EQUAL if not known[k] else TOO_FEW if p_own is None else ""
        differences.append(SystemDifference(first.name, second.name, value, interval, tested, p_own, p_table, reason))
    return tuple(differences)


def _worth_within(halves: Halves) -> tuple[float | None, float | None, float | None]:
    """What verdicts tell about labels within systems: Pearson's r, the one-sided p of none or less, the labels' spread.

    The p is Student's over sources, of the sum of products of each source.  The spread is a standard deviation.
    """
    from scipy.special import stdtr

    labels, scores, cells = halves[:3]
    y, f = (side - cells.means(side)[cells.of_system] for side in (labels, scores))
    freedom = labels.size - int((cells.n_items > 0).sum())
    spread = float(np.sqrt((y @ y) / freedom)) if freedom >= 1 else None
    power = float(np.sqrt((y @ y) * (f @ f)))
    if not power > ROUNDING:
        return None, None, spread
    sources, place = np.unique(cells.source[cells.of], return_inverse=True)
    products = np.bincount(place, weights=y * f)
    error = float(np.sqrt((products**2).sum()))
    tested = sources.size >= LEAST_SOURCES and error > 0
    p = float(stdtr(sources.size - 1, -products.sum() / error)) if tested else None
    return float(y @ f) / power, p, spread


def _too_few(n_labelled: int, n_judged: int, n_both: int, n_sources: int) -> str:
    """Why a system has no corrected mean; "" for one that may have it."""
    if not n_labelled:
        return NO_LABELS
    if not n_judged:
        return NO_VERDICTS
    if not n_both:
        return NOT_JUDGED
    if n_both < LEAST_LABELS:
        missing = counted(LEAST_LABELS - n_both, "more label")
        return f"{counted(n_both, 'label')} on judged items; a corrected mean takes {LEAST_LABELS}: {missing} needed"
    if n_sources < LEAST_SOURCES:
        return f"labels from {counted(n_sources, 'source')}; a corrected mean takes {LEAST_SOURCES}"
    return ""


# ── what labels would give ───────────────────────────────────────────────────────────────────────────────────

USUAL_CORRELATIONS = (0.3, 0.5, 0.7)
"""Judges correlate with one person's labels within systems by 0.4 to 0.6; next to and beyond."""

USUAL_LABELS = 30


@dataclass(frozen=True, slots=True)
class Worth(JsonRecord):
    """What `n_labels` of a system and the verdicts of a judge of that `correlation` give.

    `width` is that of the interval as a share of the labels' alone, `n_effective` the labels that would do the same.
    `helps` where verdicts without labels remain and the correlation is above what finding λ out costs.  `half_width` is
    in points of the scale, None where nobody knows how far labels spread; `measured` where the correlation comes from
    labels.
    """

    correlation: float
    width: float
    n_effective: float
    helps: bool
    half_width: float | None
    measured: bool = False

    @property
    def words(self) -> str:
        """What the judge would bring, in a line."""
        whose = (
            f"at the correlation of {self.correlation:.2f} that labels show"
            if self.measured
            else (f"with a judge at correlation {self.correlation:.1f}")
        )
        points = "" if self.half_width is None else f", ± {self.half_width:.2f} points"
        if not self.helps:
            return f"{whose}: nothing, the labels alone do as well{points}"
        return f"{whose}: intervals {percent(1 - self.width)} narrower{points}, as {self.n_effective:.0f} labels alone"


@dataclass(frozen=True, slots=True)
class LabelsWorth(JsonRecord):
    """What `n_labels` labels a system would give, next to `n_unlabelled` verdicts, by the judge's correlation.

    `break_even` is the least correlation at which the judge helps.
    """

    n_labels: int
    n_unlabelled: int
    break_even: float
    worth: tuple[Worth, ...]


def plan_labels(means: SystemMeans, n_labels: int = USUAL_LABELS) -> LabelsWorth:
    """What `n_labels` labels a system would give, with the correlation that labels show so far, if any, first.

    UsageError under `LEAST_LABELS`.
    """
    if n_labels < LEAST_LABELS:
        raise UsageError(f"At least {LEAST_LABELS} labels a system are needed for a corrected mean; got {n_labels}.")
    judged = [system.n_judged for system in means.systems if system.n_judged]
    n_unlabelled = max(int(np.median(judged)) - n_labels, 0) if judged else 0
    break_even = 1.0 / float(np.sqrt(n_labels - 2))
    own = means.correlation if means.n_both >= LEAST_LABELS else None
    correlations = [*(() if own is None else ((max(own, 0.0), True),)), *((r, False) for r in USUAL_CORRELATIONS)]
    alone = None
    if means.spread is not None:
        alone = t_quantile(n_labels - 1) * means.spread / float(np.sqrt(n_labels))
    worth = []
    for correlation, measured in correlations:
        left = 1.0 - correlation**2 * n_unlabelled / (n_labels + n_unlabelled)
        width = float(np.sqrt(max(left, 0.0)))
        half = None if alone is None else width * alone
        n_effective = n_labels / left if left > 0 else float(n_labels + n_unlabelled)
        helps = n_unlabelled > 0 and correlation >= break_even
        worth.append(Worth(correlation, width, n_effective, helps, half, measured))
    return LabelsWorth(n_labels, n_unlabelled, break_even, tuple(worth))
