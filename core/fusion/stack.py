"""Statistical fusion: several judges and metrics of a golden set joined into one judge, without any further call.

Fitting and choosing use one half of the sources that no part has seen, the report the other half: neither the parts'
own calibration nor the weights ever meet an item on which an alignment is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from core.data.labels_needed import TO_STACK, too_few_to_stack
from core.data.split import inner_fold
from core.errors import AspectError, UsageError
from core.fusion.estimators import FusionMethod, make_estimator
from core.records import Alignment, FloatArray, GoldenSet, IntArray, Interval, JudgeScores, Level, Statistic, Unscored
from core.stats import LEAST_SOURCES, Difference, align_with_intervals, holm, paired_difference, spearman
from core.stats.correlation import average_ranks

MIN_ITEMS = 20
"""Fewer labelled items on a side than this, and nothing is fitted or told."""
MIN_SOURCES = 4
WEIGHT_RESAMPLES = 200
Least = Literal["not opposed", "beyond chance"]


@dataclass(frozen=True, slots=True)
class StackSettings:
    """How to fuse and how to tell: `fit_share` of the unseen sources is fitted on, the rest is reported on."""

    method: FusionMethod = "average"
    statistic: Statistic = "spearman"
    level: Level = "dataset"
    fit_share: float = 0.5
    seed: int = 0
    resamples: int = 1000

    def __post_init__(self) -> None:
        make_estimator(self.method)
        if not 0.1 <= self.fit_share <= 0.9:
            raise UsageError(f"fit_share must lie between 0.1 and 0.9, not {self.fit_share:g}.")


@dataclass(frozen=True, slots=True)
class Weight:
    """What a part counts for, in points of the label for one standard deviation (shares for the average)."""

    name: str
    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Without:
    """The fusion without one part: `difference` is the whole fusion minus it, on the same items."""

    name: str
    alignment: Alignment
    difference: Difference


@dataclass(frozen=True)
class Fusion:
    """A fused judge beside its parts, all on the same `report` items.

    `against_best` is the fusion minus the part that aligned best on the *fit* items (so that nothing is picked on the
    report).  `between` is (n_parts, n_parts), Spearman between the parts on report items, NaN where undefined.
    `left_out` says which parts took no part, and why.  `state` holds all that scoring new items needs.
    """

    method: FusionMethod
    judge: JudgeScores
    fused: Alignment
    parts: Mapping[str, Alignment]
    left_out: Mapping[str, str]
    weights: tuple[Weight, ...]
    without: tuple[Without, ...]
    against_best: Difference | None
    best_part: str
    between: FloatArray
    fit: tuple[int, ...]
    report: tuple[int, ...]
    state: Mapping[str, Any]
    notes: tuple[str, ...] = field(default_factory=tuple)

    def as_json(self) -> dict[str, Any]:
        """The JSON of `fuse` (DESIGN §3), with the rest beside it."""
        return {
            "method": self.method,
            "fused": self.fused.as_json(),
            "parts": {name: one.as_json() for name, one in self.parts.items()},
            "left_out": dict(self.left_out),
            "weights": {one.name: one.value for one in self.weights},
            "without": {
                one.name: one.alignment.as_json() | {"fused_minus_this": one.difference.as_json()}
                for one in self.without
            },
            "best_part": self.best_part,
            "against_best": None if self.against_best is None else self.against_best.as_json(),
            "n_fit": len(self.fit),
            "n_report": len(self.report),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Sides:
    """Positions to fit on and to report on (n_fit,), (n_report,), of different sources; `notes` say what is no part."""

    fit: IntArray
    report: IntArray
    notes: tuple[str, ...] = ()


def fuse(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[JudgeScores],
    settings: StackSettings,
    sides: Sides | None = None,
) -> Fusion:
    """Fuse `parts` (judges of this golden set, of any scales) on one aspect (METHODS §6, without further calls).

    With `sides` the items to fit and to report on are given, and what the parts have `seen` is taken to be met: their
    scores on the fit items must then come from judges that were not taught there (`core.fusion.taught`).

    On fewer labels than weights can be learnt from, the parts are averaged instead, and `notes` says so.

    A part that is constant, that has no scores, or (for the average) that does not beat chance on the fit items is left
    out with its reason; where these are too few to show it (fewer than 50 labels or `LEAST_SOURCES` sources), only a
    part that is shown to disagree with people.  UsageError with fewer than two usable parts, AspectError when too few
    items are unseen.
    """
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise UsageError("Two parts have the same name; rename one, so that people can tell them apart.")
    sides = sides or unseen_sides(golden, aspect, parts, settings)
    settings, sides = _affordable(settings, sides)
    matrix = np.array([part.upward for part in parts])
    labels, sources, systems = golden.labels(aspect), golden.source_codes, golden.system_codes
    on = _On(labels, sources, systems, settings)
    standing = on.align(matrix, sides.fit)
    few = sides.fit.size < TO_STACK or np.unique(sources[sides.fit]).size < LEAST_SOURCES
    least: Least | None = None if settings.method != "average" else "not opposed" if few else "beyond chance"
    left_out = _unusable(names, matrix[:, sides.fit], standing, least)
    kept = [k for k, name in enumerate(names) if name not in left_out]
    if len(kept) < 2:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UsageError(f"A fusion needs at least two usable parts; {len(kept)} came. {why}")
    estimator = make_estimator(settings.method).fit(matrix[kept][:, sides.fit], labels[sides.fit], sources[sides.fit])
    values = estimator.score(matrix[kept])
    told = on.align(np.vstack([values, matrix]), sides.report)
    best = max(kept, key=lambda k: -np.inf if standing[k].value is None else float(standing[k].value or 0.0))
    return Fusion(
        method=settings.method,
        judge=_judge(golden, aspect, [parts[k] for k in kept], values, _Made(settings.method, sides)),
        fused=told[0],
        parts=dict(zip(names, told[1:], strict=True)),
        left_out=left_out,
        weights=_weights([names[k] for k in kept], matrix[kept], on, sides.fit, estimator.weights_),
        without=_ablated([names[k] for k in kept], matrix[kept], values, on, sides),
        against_best=on.difference(values, matrix[best], sides.report),
        best_part=names[best],
        between=_between(matrix[:, sides.report]),
        fit=tuple(int(k) for k in sides.fit),
        report=tuple(int(k) for k in sides.report),
        state=estimator.state() | {"parts": [names[k] for k in kept]},
        notes=sides.notes,
    )


def _affordable(settings: StackSettings, sides: Sides) -> tuple[StackSettings, Sides]:
    """The average where the labels to fit on are too few to learn weights from, with a note that says so."""
    why = "" if settings.method == "average" else too_few_to_stack(sides.fit.size)
    if not why:
        return settings, sides
    note = f"{why}. The parts are averaged instead of joined by {settings.method}."
    return replace(settings, method="average"), replace(sides, notes=(*sides.notes, note))


def unseen_sides(golden: GoldenSet, aspect: str, parts: Sequence[JudgeScores], settings: StackSettings) -> Sides:
    """Labelled items of sources that no part has seen, split by source.  AspectError where too few are left."""
    seen = np.zeros(len(golden.items), dtype=bool)
    for part in parts:
        seen[list(part.seen)] = True
    labelled = ~np.isnan(golden.labels(aspect))
    # a source of which a part has seen any item is not fresh either
    stale = np.isin(golden.source_codes, np.unique(golden.source_codes[seen])) if seen.any() else seen
    fresh = np.flatnonzero(labelled & ~stale)
    notes = []
    if seen.any():
        notes.append(
            f"{int((labelled & stale).sum())} labelled items are left aside because a part was calibrated or fitted on "
            f"their sources; {fresh.size} are left."
        )
    n_sources = np.unique(golden.source_codes[fresh]).size
    if n_sources < MIN_SOURCES or fresh.size < 2 * MIN_ITEMS:
        raise AspectError(
            f"only {fresh.size} labelled items of {n_sources} sources are left that no part has seen; a fusion needs "
            f"at least {2 * MIN_ITEMS} items of {MIN_SOURCES} sources. Leave out a part that was calibrated on most of "
            "them, or label more items.",
            file=golden.name,
        )
    fold = inner_fold(fresh.tolist(), golden.source_codes, settings.fit_share, settings.seed)
    return Sides(np.array(fold.fit, dtype=np.intp), np.array(fold.validation, dtype=np.intp), tuple(notes))


@dataclass(frozen=True)
class _On:
    """Alignments on a golden set's arrays."""

    labels: FloatArray
    sources: IntArray
    systems: IntArray
    settings: StackSettings

    def align(self, matrix: FloatArray, at: IntArray) -> list[Alignment]:
        return align_with_intervals(
            matrix[:, at],
            self.labels[at],
            self.sources[at],
            self.systems[at],
            statistic=self.settings.statistic,
            level=self.settings.level,
            generator=np.random.default_rng([self.settings.seed, 1]),
            resamples=self.settings.resamples,
        )

    def difference(self, one: FloatArray, other: FloatArray, at: IntArray) -> Difference:
        return paired_difference(
            one[at],
            other[at],
            self.labels[at],
            self.sources[at],
            self.systems[at],
            statistic=self.settings.statistic,
            level=self.settings.level,
            generator=np.random.default_rng([self.settings.seed, 2]),
            resamples=self.settings.resamples,
        )


def _unusable(
    names: Sequence[str], on_fit: FloatArray, standing: Sequence[Alignment], least: Least | None
) -> dict[str, str]:
    """Name → why a part cannot be used; `least` is the agreement with people on the fit items that it needs."""
    found = {}
    for name, row, one in zip(names, on_fit, standing, strict=True):
        known = row[~np.isnan(row)]
        if not known.size:
            found[name] = "it has no score on the items to fit on"
        elif known.min() == known.max():
            found[name] = "all its scores are equal on the items to fit on"
        elif least == "not opposed" and one.interval is not None and one.interval.high < 0:
            found[name] = f"it disagrees with people beyond chance on the {one.n} items to fit on ({_value(one)})"
        elif least == "beyond chance" and not beats_chance(one):
            found[name] = f"it does not beat chance on the {one.n} items to fit on ({_value(one)})"
    return found


def _value(found: Alignment) -> str:
    return "undefined" if found.value is None else f"{found.value:.2f}"


def beats_chance(found: Alignment) -> bool:
    """Whether the whole interval lies above 0."""
    return found.value is not None and found.interval is not None and found.interval.low > 0


@dataclass(frozen=True)
class _Made:
    method: FusionMethod
    sides: Sides


def _judge(golden: GoldenSet, aspect: str, used: Sequence[JudgeScores], values: FloatArray, made: _Made) -> JudgeScores:
    seen = sorted({int(k) for k in made.sides.fit}.union(*(part.seen for part in used)))
    missing = tuple(
        Unscored(golden.items[int(k)].item_id, "missing input", "No part of the fusion has a score.")
        for k in np.flatnonzero(np.isnan(values))
    )
    costs = [part.calls_per_item for part in used]
    return JudgeScores(
        name=f"fusion ({made.method}) of {len(used)}",
        kind="fused",
        aspect=aspect,
        values=values,
        unscored=missing,
        seen=tuple(seen),
        on_scale=made.method != "average",
        note=f"{made.method} of {', '.join(part.name for part in used)}, fitted on {len(made.sides.fit)} items.",
        calls_per_item=None if any(cost is None for cost in costs) else float(sum(cost or 0.0 for cost in costs)),
    )


def _weights(
    names: Sequence[str], matrix: FloatArray, on: _On, fit: IntArray, weights: FloatArray
) -> tuple[Weight, ...]:
    """Weights with intervals from refitting on resampled sources; none for the average, whose shares are given."""
    if on.settings.method == "average":
        return tuple(Weight(name, float(value), None) for name, value in zip(names, weights, strict=True))
    rng = np.random.default_rng([on.settings.seed, 3])
    codes = on.sources[fit]
    places = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    drawn = np.empty((WEIGHT_RESAMPLES, len(names)))
    for k in range(WEIGHT_RESAMPLES):
        picks = rng.integers(0, len(places), len(places))
        at = np.concatenate([places[p] for p in picks])
        group = np.repeat(np.arange(len(picks)), [places[p].size for p in picks])  # a source drawn twice is two
        drawn[k] = make_estimator(on.settings.method).fit(matrix[:, fit[at]], on.labels[fit[at]], group).weights_
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    made = f"refitted on resampled sources, {WEIGHT_RESAMPLES}"
    return tuple(
        Weight(name, float(weights[k]), Interval(float(low[k]), float(high[k]), method=made))
        for k, name in enumerate(names)
    )


def _ablated(names: Sequence[str], matrix: FloatArray, whole: FloatArray, on: _On, sides: Sides) -> tuple[Without, ...]:
    """The fusion refitted without each part, where two are left."""
    found = []
    for k, name in enumerate(names) if len(names) > 2 else ():
        rest = np.delete(matrix, k, axis=0)
        estimator = make_estimator(on.settings.method).fit(
            rest[:, sides.fit], on.labels[sides.fit], on.sources[sides.fit]
        )
        values = estimator.score(rest)
        found.append(
            Without(name, on.align(values[None, :], sides.report)[0], on.difference(whole, values, sides.report))
        )
    corrected = holm([np.nan if one.difference.p is None else one.difference.p for one in found])
    return tuple(
        replace(one, difference=replace(one.difference, p=None if np.isnan(p) else float(p)))
        for one, p in zip(found, corrected, strict=True)
    )


def _between(on_report: FloatArray) -> FloatArray:
    """Spearman between the parts, pair by pair on the items that both scored."""
    k = len(on_report)
    found = np.full((k, k), np.nan)
    for i in range(k):
        for j in range(i, k):
            both = ~np.isnan(on_report[i]) & ~np.isnan(on_report[j])
            if both.sum() > 1:
                found[i, j] = found[j, i] = spearman(on_report[i, both], on_report[j, both])
    return found


def contradictions(parts: Sequence[JudgeScores], at: Sequence[int], most: int = 50) -> tuple[int, ...]:
    """Positions (of `at`) on which the parts part most: largest spread of their rank shares first."""
    positions = np.asarray(at, dtype=np.intp)
    rows = []
    for part in parts:
        values = part.upward[positions]
        shares = np.full(values.size, np.nan)
        known = ~np.isnan(values)
        shares[known] = (average_ranks(values[known]) - 1) / max(int(known.sum()) - 1, 1)
        rows.append(shares)
    ranks = np.array(rows)
    spread = np.nanmax(ranks, axis=0, initial=-np.inf) - np.nanmin(ranks, axis=0, initial=np.inf)
    order = np.argsort(-np.where(np.isfinite(spread), spread, -1.0), kind="stable")
    return tuple(int(positions[k]) for k in order[:most] if spread[k] > 0 and np.isfinite(spread[k]))
