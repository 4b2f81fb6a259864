"""How good is each system: corrected means beside labels alone and judge alone, and the differences between systems.

`core.stats.prediction_powered` has the formulas.  Labels have to be a random draw of what was judged; items whose
labels chose or fitted the judge are to be left out beforehand, labels and verdicts alike.

What a judge is worth can be told before anybody labels.  With n labels and N unlabelled verdicts a system, and
correlation ρ of verdicts with labels within systems, the corrected interval is √(1 − ρ²·N/(n + N)) times as wide as
that of the labels alone: as wide as n / (1 − ρ²·N/(n + N)) labels would make it.  λ has to be found out from the same
labels, which costs about what ρ = 1/√(n − 2) brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.errors import UsageError
from core.json_form import JsonRecord
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
    Powered,
    centred,
    mapped,
    on_another_scale,
    plain_means,
    powered_means,
    ratio,
)
from core.wording import counted, percent


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean on the human scale.  None is undefined; `reason` says why there is no value, or no interval beside one."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""

    def within(self, scale: Scale) -> MeanEstimate:
        """The same, value and interval cut off at the ends of `scale`: a correction may lead beyond them."""
        if self.value is None:
            return self
        value = min(max(self.value, scale.low), scale.high)
        return replace(self, value=value, interval=self.interval and self.interval.within(scale.low, scale.high))

    @property
    def width(self) -> float:
        """Of the interval, infinite where there is none."""
        return np.inf if self.interval is None else self.interval.high - self.interval.low

    def as_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "interval": None if self.interval is None else self.interval.as_json(),
            "reason": self.reason or None,
        }


@dataclass(frozen=True, slots=True)
class SystemMean:
    """One system: `corrected` beside `labels_only` and `judge_only`, the naive mean of its verdicts.

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

    def within(self, scale: Scale) -> SystemMean:
        """The same, all means and intervals cut off at the ends of `scale`."""
        return replace(
            self,
            corrected=self.corrected.within(scale),
            labels_only=self.labels_only.within(scale),
            judge_only=self.judge_only.within(scale),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "corrected": self.corrected.as_json(),
            "labels_only": self.labels_only.as_json(),
            "judge_only": self.judge_only.as_json(),
            "n_labelled": self.n_labelled,
            "n_judged": self.n_judged,
            "n_both": self.n_both,
            "weight": self.weight,
            "n_effective": self.n_effective,
            "note": self.note or None,
        }


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Corrected mean of system `a` minus that of `b`; what sources they share have in common cancels.

    `p` is two-sided, `p_holm` corrected over the pairs of the table; None under 8 sources, with `reason`.
    `interval` is the 95 % one of this pair alone, `tested` as wide as the test is strict: it leaves 0 out where
    `p_holm` lets a claim be made, and only there.
    """

    a: str
    b: str
    value: float
    interval: Interval | None
    p: float | None
    p_holm: float | None
    reason: str = ""
    tested: Interval | None = None

    def bounded(self, value: float, width: float) -> MeanDifference:
        """The same with the difference `value` of the bounded means, its intervals within ±`width` of the scale."""
        interval, tested = (
            ends and replace(ends, low=min(ends.low, value), high=max(ends.high, value)).within(-width, width)
            for ends in (self.interval, self.tested)
        )
        return replace(self, value=value, interval=interval, tested=tested)

    @property
    def reversed(self) -> MeanDifference:
        """`b` minus `a`."""
        turned = [ends and replace(ends, low=-ends.high, high=-ends.low) for ends in (self.interval, self.tested)]
        return replace(self, a=self.b, b=self.a, value=-self.value, interval=turned[0], tested=turned[1])

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "value": self.value,
            "interval": None if self.interval is None else self.interval.as_json(),
            "tested_interval": None if self.tested is None else self.tested.as_json(),
            "p": self.p,
            "p_holm": self.p_holm,
            "reason": self.reason or None,
        }


@dataclass(frozen=True)
class SystemMeans:
    """All systems, and every pair of those with a corrected mean.

    `correlation` is Pearson's of verdicts with labels within systems, over `n_both` items, None where undefined, and
    `p_correlation` that of no or a negative one; `spread` the standard deviation of labels within systems.  `mapped`:
    verdicts went through a map to the human `scale`.  `n_sources` is how many hold an item with label and verdict.
    """

    systems: tuple[SystemMean, ...]
    differences: tuple[MeanDifference, ...]
    correlation: float | None
    p_correlation: float | None
    spread: float | None
    n_both: int
    n_sources: int
    mapped: bool
    scale: Scale
    notes: tuple[str, ...] = field(default=())

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
        """The JSON of `estimate-means` (DESIGN §3), with the differences and what the judge is worth beside it."""
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
ALL_LABELLED = "every judged item has a label: the labels alone say it"
CONSTANT = "the judge gives all of its items one score, which adds nothing to the labels"
LOPSIDED = "most of its labels are alike, so its intervals are lengthened as if half a label more stood at the far end"
LABELS_ALONE = "here the verdicts would widen the interval, so the labels stand alone"


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
    """Corrected means of all systems of `items` (see `core.stats.prediction_powered`) and their differences."""
    both, rest = items.has_label & items.has_score, ~items.has_label & items.has_score
    n_sources = int(items.sources.max(initial=0)) + 1
    halves = Halves(items.labels[both], items.scores[both], items.cells(both), items.scores[rest], items.cells(rest))
    other_scale = on_another_scale(items.scores[items.has_score], items.scale)
    halves, plain = mapped(halves, items.scale) if other_scale else centred(halves)
    lopsided = _lopsided(items)
    powered = powered_means(halves, n_sources)
    longer = _far_label(powered.labels, lopsided, items.scale)
    powered = _no_wider(
        replace(powered, corrected=powered.corrected.lengthened(longer), labels=powered.labels.lengthened(longer))
    )
    order = np.concatenate([np.flatnonzero(both), np.flatnonzero(rest)])
    judged = Cells(items.systems[order], items.sources[order], len(items.names))
    alone = plain_means(items.labels[items.has_label], items.cells(items.has_label), n_sources)
    alone = alone.lengthened(_far_label(alone, lopsided, items.scale))
    naive = plain_means(plain, judged, n_sources)
    systems = _systems(items, powered, alone, naive, constant=_constant(plain, judged), lopsided=lopsided)
    correlation, p = _correlation(halves)
    found, notes = _differences(systems, powered.corrected)
    systems = [system.within(items.scale) for system in systems]
    value_of = {system.name: system.corrected.value or 0.0 for system in systems}
    width = items.scale.high - items.scale.low
    differences = [pair.bounded(value_of[pair.a] - value_of[pair.b], width) for pair in found]
    return SystemMeans(
        tuple(systems),
        tuple(differences),
        correlation,
        p,
        _spread(halves.labels, halves.labelled),
        int(both.sum()),
        int(np.unique(items.sources[both]).size),
        other_scale,
        items.scale,
        notes,
    )


def _far_label(labels: Means, lopsided: BoolArray, scale: Scale) -> FloatArray:
    """(n_systems,) what `FAR_LABEL` of one more source, its labels at the end of the scale that is farther from the
    mean, adds to the standard error: √(part / (n² − 1)) times as far, with n sources; 0 where labels are not lopsided.
    """
    n = labels.freedom + 1.0
    far = np.maximum(labels.values - scale.low, scale.high - labels.values)
    return np.where(lopsided & (n > 1), np.nan_to_num(far) * np.sqrt(FAR_LABEL / np.maximum(n**2 - 1.0, 1.0)), 0.0)


def _no_wider(powered: Powered) -> Powered:
    """λ = 0 for systems whose verdicts would make the interval wider than `MOST_WIDER` allows."""
    from scipy.sparse import diags

    reach = [means.errors * _t(means.freedom) for means in (powered.corrected, powered.labels)]
    alone = (powered.weights > 0) & ~(reach[0] <= MOST_WIDER * reach[1])
    keep, give = diags((~alone).astype(np.float64)), diags(alone.astype(np.float64))
    corrected = Means(
        np.where(alone, powered.labels.values, powered.corrected.values),
        (keep @ powered.corrected.parts + give @ powered.labels.parts).tocsr(),
        np.where(alone, powered.labels.freedom, powered.corrected.freedom),
    )
    return Powered(corrected, powered.labels, np.where(alone, np.nan, powered.weights))


def _t(freedom: FloatArray) -> FloatArray:
    """How many standard errors an interval reaches to each side; NaN without a degree of freedom."""
    from scipy.special import stdtrit

    known = freedom >= 1
    return np.where(known, stdtrit(np.where(known, freedom, 1.0), 0.5 + CONFIDENCE / 2.0), np.nan)


def _estimates(means: Means, reason: str) -> list[MeanEstimate]:
    """One a system; `reason` where there is no value."""
    reach = means.errors * _t(means.freedom)
    return [
        MeanEstimate(None, None, reason)
        if np.isnan(value)
        else MeanEstimate(float(value), None, ALL_EQUAL)
        if np.isnan(half)
        else MeanEstimate(float(value), _interval(float(value), float(half), int(freedom)))
        for value, half, freedom in zip(means.values, reach, means.freedom, strict=True)
    ]


def _interval(value: float, half: float, freedom: int) -> Interval:
    return Interval(value - half, value + half, CONFIDENCE, f"t({freedom}) over sources", freedom + 1)


def _systems(
    items: JudgedItems, powered: Powered, labels: Means, judge: Means, *, constant: BoolArray, lopsided: BoolArray
) -> list[SystemMean]:
    """One a system; `constant` and `lopsided` (n_systems,) mark a judge of one score and labels of mostly one value."""
    both = items.has_label & items.has_score
    n_labelled, n_judged, n_both = (items.counts(part) for part in (items.has_label, items.has_score, both))
    n_sources = powered.labels.freedom + 1
    gained = ratio(powered.labels.errors, powered.corrected.errors) ** 2
    alone, naive = _estimates(labels, NO_LABELS), _estimates(judge, NO_VERDICTS)
    systems = []
    estimates = _estimates(powered.corrected, NOT_JUDGED)
    for k, name in enumerate(items.names):
        missing = _too_few(int(n_labelled[k]), int(n_judged[k]), int(n_both[k]), int(n_sources[k]))
        weight = float(np.nan_to_num(powered.weights[k]))
        corrected = MeanEstimate(None, None, missing) if missing else estimates[k]
        notes = {
            ALL_LABELLED: n_judged[k] == n_both[k],
            CONSTANT: bool(constant[k]),
            LABELS_ALONE: bool(np.isnan(powered.weights[k])),
            LOPSIDED: bool(lopsided[k]),
        }
        known = not missing and corrected.interval is not None
        systems.append(
            SystemMean(
                name,
                corrected,
                alone[k],
                naive[k],
                int(n_labelled[k]),
                int(n_judged[k]),
                int(n_both[k]),
                None if missing else weight,
                float(n_both[k] * gained[k]) if known else None,
                "" if missing else "; ".join(words for words, holds in notes.items() if holds),
            )
        )
    return systems


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


def _lopsided(items: JudgedItems) -> BoolArray:
    """(n_systems,) whether most of a system's labels are its highest or lowest one."""
    labels, systems, n = items.labels[items.has_label], items.systems[items.has_label], len(items.names)
    shares = []
    for edge, worst in ((np.maximum, -np.inf), (np.minimum, np.inf)):
        ends = np.full(n, worst)
        edge.at(ends, systems, labels)
        at_end = np.bincount(systems, weights=labels == ends[systems], minlength=n).astype(np.float64)
        shares.append(ratio(at_end, items.counts(items.has_label).astype(np.float64)))
    return np.asarray(np.nan_to_num(np.max(shares, axis=0)) >= LOPSIDED_FROM)


def _constant(scores: FloatArray, judged: Cells) -> BoolArray:
    """(n_systems,) whether all of a system's scores are one and the same."""
    low, high = np.full(judged.n_systems, np.inf), np.full(judged.n_systems, -np.inf)
    systems = judged.system[judged.of]
    np.minimum.at(low, systems, scores)
    np.maximum.at(high, systems, scores)
    return np.asarray(low == high)


# ── differences, and what the judge is worth ─────────────────────────────────────────────────────────────────


def _differences(systems: list[SystemMean], means: Means) -> tuple[list[MeanDifference], tuple[str, ...]]:
    """All pairs of the systems with a corrected mean, the higher first; and what is to be said of them."""
    chosen = np.array([k for k, system in enumerate(systems) if system.corrected.value is not None], dtype=np.intp)
    if chosen.size < 2:
        return [], ()
    if chosen.size > MOST_COMPARED:
        return [], (f"{chosen.size} systems are too many to compare in pairs; up to {MOST_COMPARED} are",)
    chosen = chosen[np.argsort(-means.values[chosen], kind="stable")]
    differences = list(_pairs(chosen, systems, means))
    p_holm = holm([np.nan if difference.p is None else difference.p for difference in differences])
    pairs = zip(differences, p_holm.tolist(), strict=True)
    return [difference if np.isnan(p) else _corrected(difference, p, len(differences)) for difference, p in pairs], ()


def _corrected(difference: MeanDifference, p_holm: float, n_pairs: int) -> MeanDifference:
    """With its corrected p, and the interval that says the same: as much wider as that p is larger."""
    from scipy.special import stdtrit

    ends, p = difference.interval, difference.p
    if ends is None or p is None or ends.n_sources is None:
        return replace(difference, p_holm=p_holm)
    outside = SHOWN_AT * (p / p_holm if p_holm > 0 else 1 / n_pairs)
    freedom = ends.n_sources - 1
    half = (ends.high - ends.low) / 2.0 * float(stdtrit(freedom, 1.0 - outside / 2.0) / _t(np.array([freedom]))[0])
    method = f"{ends.method}, as wide as a corrected p of {SHOWN_AT:g} asks"
    tested = Interval(difference.value - half, difference.value + half, 1.0 - outside, method, ends.n_sources)
    return replace(difference, p_holm=p_holm, tested=tested)


def _pairs(chosen: IntArray, systems: list[SystemMean], means: Means) -> Iterator[MeanDifference]:
    from scipy.special import stdtr

    covariance = means.covariance(chosen)
    variance = np.diag(covariance)
    i, j = np.triu_indices(chosen.size, 1)
    errors = np.sqrt(np.maximum(variance[i] + variance[j] - 2.0 * covariance[i, j], 0.0))
    freedom = np.minimum(means.freedom[chosen[i]], means.freedom[chosen[j]]) - 1  # two λ were chosen, not one
    gaps = means.values[chosen[i]] - means.values[chosen[j]]
    known = np.isfinite(means.errors[chosen])
    known = known[i] & known[j] & (errors > ROUNDING)
    half = _t(freedom) * errors
    p = np.minimum(1.0, 2.0 * stdtr(np.maximum(freedom, 1), -np.abs(gaps) / np.where(known, errors, 1.0)))
    for k in range(i.size):
        a, b = systems[chosen[i[k]]].name, systems[chosen[j[k]]].name
        gap, few = float(gaps[k]), freedom[k] + 2 < LEAST_SOURCES
        if not known[k]:
            yield MeanDifference(a, b, gap, None, None, None, ALL_EQUAL)
        else:
            interval = _interval(gap, float(half[k]), int(freedom[k]))
            yield MeanDifference(a, b, gap, interval, None if few else float(p[k]), None, TOO_FEW if few else "")


def _correlation(halves: Halves) -> tuple[float | None, float | None]:
    """Pearson's r of labels with verdicts about the means of their systems, and the one-sided p of none or less.

    The p is Student's over sources, of the sum of products of each source.
    """
    from scipy.special import stdtr

    labels, scores, cells = halves[:3]
    system = cells.system[cells.of]
    y, f = labels - cells.means(labels)[system], scores - cells.means(scores)[system]
    power = float(np.sqrt((y @ y) * (f @ f)))
    if not power > ROUNDING:
        return None, None
    products = np.bincount(cells.source[cells.of], weights=y * f)
    products = products[np.unique(cells.source)]
    error = float(np.sqrt((products**2).sum()))
    if products.size < LEAST_SOURCES or not error > 0:
        return float(y @ f) / power, None
    return float(y @ f) / power, float(stdtr(products.size - 1, -products.sum() / error))


def _spread(labels: FloatArray, cells: Cells) -> float | None:
    """Standard deviation of labels about the means of their systems; None with nothing left to tell it."""
    freedom = labels.size - int((cells.n_items > 0).sum())
    if freedom < 1:
        return None
    return float(np.sqrt(((labels - cells.means(labels)[cells.system[cells.of]]) ** 2).sum() / freedom))


USUAL_CORRELATIONS = (0.3, 0.5, 0.7)
"""Judges correlate with one person's labels within systems by .4 to .6; beside and beyond."""

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
class LabelPlan(JsonRecord):
    """What `n_labels` labels a system would give, beside `n_unlabelled` verdicts, by the judge's correlation.

    `break_even` is the least correlation at which the judge helps.
    """

    n_labels: int
    n_unlabelled: int
    break_even: float
    worth: tuple[Worth, ...]


def plan_labels(means: SystemMeans, n_labels: int = USUAL_LABELS) -> LabelPlan:
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
    return LabelPlan(n_labels, n_unlabelled, break_even, tuple(worth))
