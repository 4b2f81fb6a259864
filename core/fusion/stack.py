"""Statistical fusion: several judges and metrics of a golden set joined into one judge, without any further call.

Fitting and choosing use one half of the sources that no part has seen, the report the other half: neither the parts'
own calibration nor the weights ever meet an item on which an alignment is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from core.data.split import TO_STACK, too_few_to_stack
from core.errors import UsageError
from core.fusion.estimators import Estimator, make_estimator
from core.fusion.fusion_settings import METHODS, FusionMethod, FusionSettings
from core.fusion.fusion_split import FusionSplit, between, require_systems, unseen_split
from core.records import (
    STATISTICS,
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Interval,
    JudgeScores,
    Unscored,
)
from core.stats import LEAST_SOURCES, Difference, LabelledItems, align_each, holm, paired_difference
from core.wording import number

SEEN = "its calibration saw labels of the items reported on"
SHARE_SCORED = 0.9
"""A judge beside the fusions that scored fewer of the items would be measured on other items than they are."""
WEIGHT_RESAMPLES = 200


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

    def as_json(self) -> dict[str, Any]:
        return self.alignment.as_json() | {"fused_minus_this": self.difference.as_json()}


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
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The JSON of `fuse` (DESIGN §3), with the rest beside it."""
        return {
            "method": self.method,
            "fused": self.fused.as_json(),
            "parts": {name: alignment.as_json() for name, alignment in self.parts.items()},
            "left_out": dict(self.left_out),
            "weights": {weight.name: weight.value for weight in self.weights},
            "without": {rest.name: rest.as_json() for rest in self.without},
            "best_part": self.best_part,
            "against_best": None if self.against_best is None else self.against_best.as_json(),
            "n_fit": len(self.fit),
            "n_report": len(self.report),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Agreement:
    """Agreement of scores with the people on one aspect of a golden set, at any positions."""

    golden: GoldenSet
    aspect: str
    settings: FusionSettings
    other_labels: FloatArray | None = None
    """(n_items,) in the place of the aspect's own."""

    @cached_property
    def items(self) -> LabelledItems:
        own = LabelledItems.of(self.golden, self.aspect)
        return own if self.other_labels is None else own.labelled(self.other_labels)

    @property
    def labels(self) -> FloatArray:
        return self.items.labels

    def align(self, matrix: FloatArray, at: IntArray, *, stream: int = 1) -> list[Alignment]:
        """One alignment for each row of `matrix` (n_judges, n_items), at the positions `at`."""
        return align_each(matrix[:, at], self.items.take(at), **self._how(stream))

    def difference(self, a: FloatArray, b: FloatArray, at: IntArray) -> Difference:
        """The alignment of `a` minus that of `b`, both (n_items,), on the items of `at` that both scored."""
        return paired_difference(a[at], b[at], self.items.take(at), **self._how(2))

    def _how(self, stream: int) -> dict[str, Any]:
        how = self.settings
        return {"measure": how.measure, "resamples": how.resamples, "seed": [how.seed, stream]}


def fuse(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[JudgeScores],
    settings: FusionSettings,
    split: FusionSplit | None = None,
) -> Fusion:
    """Fuse `parts` (judges of this golden set, of any scales) on one aspect (METHODS §6, without further calls).

    With a `split` the items to fit and to report on are given, and what the parts have `seen` is taken to be met: their
    scores on the fit items must then be cross-fitted (`core.fusion.fusion_split.cross_fitted`).

    On fewer labels than weights can be learnt from, the parts are averaged instead, and `notes` says so.

    A part that is constant, that has no scores, or (for the average) that does not beat chance on the fit items is left
    out with its reason; where these are too few to show it (fewer than 50 labels or `LEAST_SOURCES` sources), only a
    part that is shown to disagree with people.  UsageError with fewer than two usable parts, AspectError when too few
    items are unseen.
    """
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise UsageError("Two parts have the same name; rename one, so that people can tell them apart.")
    split = split or unseen_split(golden, aspect, parts, fit_share=settings.fit_share, seed=settings.seed)
    if settings.method != "average" and (few := too_few_to_stack(split.fit.size)):
        note = f"{few}. The parts are averaged instead of joined by {settings.method}."
        settings, split = replace(settings, method="average"), replace(split, notes=(*split.notes, note))
    require_systems(golden, settings.measure.level, split.report)
    agreement, matrix = Agreement(golden, aspect, settings), np.array([part.upward for part in parts])
    # which parts beat chance needs intervals, whatever the report needs, and more units than a dozen systems
    level, notes = "dataset" if settings.level == "system" else settings.level, split.notes
    gate = replace(settings, level=level, resamples=settings.resamples or 1000)
    if settings.level == "system":
        n_systems = np.unique(golden.system_codes[split.fit]).size
        if settings.method == "average":
            notes += (f"Parts were chosen by their agreement on single items: {n_systems} systems are too few for it.",)
    on_fit = replace(agreement, settings=gate).align(matrix, split.fit)
    left_out = _unusable(_Parts(parts, matrix, agreement, split), on_fit)
    usable = [k for k, name in enumerate(names) if name not in left_out]
    if len(usable) < 2:
        why = [f"{name}: {reason.rstrip('.')}." for name, reason in left_out.items()]
        raise UsageError(" ".join([f"A fusion needs at least two usable parts; {len(usable)} came.", *why]))
    used = _Parts([parts[k] for k in usable], matrix[usable], agreement, split)
    estimator = used.fitted()
    values = estimator.score(used.matrix)
    on_report = agreement.align(np.vstack([values, matrix]), split.report)
    best = max(usable, key=lambda k: -np.inf if on_fit[k].value is None else float(on_fit[k].value or 0.0))
    return Fusion(
        method=estimator.method,
        judge=used.fused(values),
        fused=on_report[0],
        parts=dict(zip(names, on_report[1:], strict=True)),
        left_out=left_out,
        weights=used.weights(estimator.weights_),
        without=used.ablated(values),
        against_best=agreement.difference(values, matrix[best], split.report),
        best_part=names[best],
        between=between(matrix[:, split.report]),
        fit=tuple(int(k) for k in split.fit),
        report=tuple(int(k) for k in split.report),
        state=estimator.state() | {"parts": used.names},
        notes=notes,
    )


def side_by_side(agreement: Agreement, rows: Mapping[str, FloatArray], at: IntArray) -> dict[str, Any]:
    """Every coefficient of each of `rows` (name to (n_items,) scores, more is better), and those between them.

    ``coefficients`` are with the labels, at the level of `agreement`, by name and statistic.  ``between`` are over the
    items at `at` that both scored, a row and a column for each name.  None stands for an undefined value.
    """
    matrix, settings = np.array(list(rows.values())), agreement.settings
    found: dict[str, dict[str, float | None]] = {name: {} for name in rows}
    for statistic in STATISTICS:
        own = replace(agreement, settings=replace(settings, statistic=statistic, resamples=0))
        for name, alignment in zip(rows, own.align(matrix, at), strict=True):
            found[name][statistic] = alignment.value
    tables = {statistic: between(matrix[:, at], statistic).tolist() for statistic in STATISTICS}
    known = {
        statistic: [[None if np.isnan(value) else value for value in row] for row in table]
        for statistic, table in tables.items()
    }
    return {"coefficients": found, "between": {"names": list(rows)} | known}


def beats_chance(alignment: Alignment) -> bool:
    """Whether the whole interval lies above 0."""
    return alignment.value is not None and alignment.interval is not None and alignment.interval.low > 0


# ── which parts, which method ────────────────────────────────────────────────────────────────────────────────


def _unusable(parts: _Parts, on_fit: Sequence[Alignment]) -> dict[str, str]:
    """Name → why a part cannot be used; weights tell by themselves which parts disagree with people.

    `on_fit` are alignments over items, not over systems.
    """
    fit, averaged = parts.split.fit, parts.agreement.settings.method == "average"
    few = fit.size < TO_STACK or np.unique(parts.agreement.golden.source_codes[fit]).size < LEAST_SOURCES
    reasons = {}
    for name, row, alignment in zip(parts.names, parts.matrix[:, fit], on_fit, strict=True):
        scores, where = row[~np.isnan(row)], f"on the {alignment.n} items to fit on"
        value = "undefined" if alignment.value is None else number(alignment.value)
        if not scores.size:
            reasons[name] = "it has no score on the items to fit on"
        elif scores.min() == scores.max():
            reasons[name] = "all its scores are equal on the items to fit on"
        elif averaged and few and alignment.interval is not None and alignment.interval.high < 0:
            reasons[name] = f"it disagrees with people beyond chance {where} ({value})"
        elif averaged and not few and not beats_chance(alignment):
            reasons[name] = f"it does not beat chance {where} ({value})"
    return reasons


# ── what is reported of a fusion ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Parts:
    """The parts of a fusion: `matrix` (n_parts, n_items) are their scores, turned so that more is better."""

    judges: Sequence[JudgeScores]
    matrix: FloatArray
    agreement: Agreement
    split: FusionSplit

    @property
    def names(self) -> list[str]:
        return [judge.name for judge in self.judges]

    def fitted(self, matrix: FloatArray | None = None) -> Estimator:
        """The estimator fitted on the fit items, of all parts or of the rows in `matrix`."""
        fit, rows = self.split.fit, self.matrix if matrix is None else matrix
        estimator = make_estimator(self.agreement.settings.method)
        return estimator.fit(rows[:, fit], self.agreement.labels[fit], self.agreement.golden.source_codes[fit])

    def fused(self, values: FloatArray) -> JudgeScores:
        """The fusion as a judge with these scores (n_items,)."""
        method, items, fit = self.agreement.settings.method, self.agreement.golden.items, self.split.fit.tolist()
        costs = [judge.calls_per_item for judge in self.judges]
        return JudgeScores(
            name=f"fusion ({method}) of {len(self.judges)}",
            kind="fused",
            aspect=self.agreement.aspect,
            values=values,
            unscored=tuple(
                Unscored(items[k].item_id, "missing input", "No part of the fusion has a score.")
                for k in np.flatnonzero(np.isnan(values)).tolist()
            ),
            seen=tuple(sorted({*fit}.union(*(judge.seen for judge in self.judges)))),
            on_scale=method != "average",
            note=f"{method} of {', '.join(self.names)}, fitted on {len(fit)} items.",
            calls_per_item=None if None in costs else float(sum(cost or 0.0 for cost in costs)),
        )

    def weights(self, weights: FloatArray) -> tuple[Weight, ...]:
        """Weights with intervals from refitting on resampled sources; none for the average, whose shares are given."""
        settings, fit = self.agreement.settings, self.split.fit
        intervals: list[Interval | None] = [None] * len(self.names)
        if settings.method != "average":
            rng = np.random.default_rng([settings.seed, 3])
            codes, labels = self.agreement.golden.source_codes[fit], self.agreement.labels
            sources = [np.flatnonzero(codes == code) for code in np.unique(codes)]
            drawn = np.empty((WEIGHT_RESAMPLES, len(self.names)))
            for k in range(WEIGHT_RESAMPLES):
                picks = rng.integers(0, len(sources), len(sources))
                at = fit[np.concatenate([sources[pick] for pick in picks])]
                # a source that was drawn twice counts as two
                group = np.repeat(np.arange(len(picks)), [sources[pick].size for pick in picks])
                drawn[k] = make_estimator(settings.method).fit(self.matrix[:, at], labels[at], group).weights_
            method = f"refitted on resampled sources, {WEIGHT_RESAMPLES}"
            ends = np.quantile(drawn, [0.025, 0.975], axis=0).T.tolist()
            intervals = [Interval(low, high, method=method) for low, high in ends]
        return tuple(map(Weight, self.names, weights.tolist(), intervals))

    def ablated(self, whole: FloatArray) -> tuple[Without, ...]:
        """The fusion refitted without each part, where two are left; one Holm correction over all of them."""
        ablations = []
        for k, name in enumerate(self.names) if len(self.names) > 2 else ():
            rest = np.delete(self.matrix, k, axis=0)
            values, report = self.fitted(rest).score(rest), self.split.report
            alignment = self.agreement.align(values[None, :], report)[0]
            ablations.append(Without(name, alignment, self.agreement.difference(whole, values, report)))
        corrected = holm_corrected([ablation.difference for ablation in ablations])
        return tuple(
            replace(a, difference=test) for a, test in zip(ablations, corrected, strict=True) if test is not None
        )


def holm_corrected(differences: Sequence[Difference | None]) -> list[Difference | None]:
    """The same differences with Holm's p over those that have one."""
    corrected = holm([np.nan if test is None or test.p is None else test.p for test in differences])
    return [
        test if test is None else replace(test, p=None if np.isnan(p) else float(p))
        for test, p in zip(differences, corrected, strict=True)
    ]


# ── every method side by side ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FusionTable:
    """Fusions of the same parts by method, the reason where a method gave none, and other judges on the same items.

    The tests of the fusions against the best part share one Holm correction.  `beside` are judges that took no part,
    measured on the report items; `not_beside` says of the others why they have no honest number there.
    """

    fusions: Mapping[FusionMethod, Fusion]
    failed: Mapping[FusionMethod, str]
    beside: Mapping[str, Alignment]
    not_beside: Mapping[str, str]


def fuse_all(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[JudgeScores],
    settings: FusionSettings,
    beside: Sequence[JudgeScores] = (),
) -> FusionTable:
    """Fuse `parts` by every method, fitted and reported on the same items.

    UsageError when no method can use two parts, AspectError when too few items are unseen; see `fuse`.
    """
    split = unseen_split(golden, aspect, parts, fit_share=settings.fit_share, seed=settings.seed)
    fusions: dict[FusionMethod, Fusion] = {}
    failed: dict[FusionMethod, str] = {}
    for method in METHODS:
        if method != "average" and (few := too_few_to_stack(split.fit.size)):
            failed[method] = f"{few}."
            continue
        try:
            fusions[method] = fuse(golden, aspect, parts, replace(settings, method=method), split)
        except UsageError as error:
            failed[method] = str(error)
    if not fusions:
        raise UsageError(next(iter(failed.values())))
    tests = holm_corrected([fusion.against_best for fusion in fusions.values()])
    corrected = {m: replace(f, against_best=test) for (m, f), test in zip(fusions.items(), tests, strict=True)}
    return FusionTable(corrected, failed, *_beside(Agreement(golden, aspect, settings), beside, split.report))


def _beside(
    agreement: Agreement, judges: Sequence[JudgeScores], report: IntArray
) -> tuple[dict[str, Alignment], dict[str, str]]:
    """Alignments of the judges on the report items by name, and why others have none."""
    refused = {}
    for judge in judges:
        if set(judge.seen).intersection(report.tolist()):
            refused[judge.name] = SEEN
        elif (n := int((~np.isnan(judge.values[report])).sum())) < SHARE_SCORED * report.size:
            refused[judge.name] = f"it scored only {n} of these {report.size} items"
    clean = [judge for judge in judges if judge.name not in refused]
    if not clean:
        return {}, refused
    alignments = agreement.align(np.array([judge.upward for judge in clean]), report)
    return {judge.name: alignment for judge, alignment in zip(clean, alignments, strict=True)}, refused
