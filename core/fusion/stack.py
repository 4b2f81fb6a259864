"""Statistical fusion: several judges and metrics of a golden set joined into one judge, without any further call.

Fitting and choosing use one half of the sources that no part has seen, the report the other half: neither the parts'
own calibration nor the weights ever see an item on which an alignment is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from core.data.split import TO_STACK, too_few_to_stack
from core.errors import UsageError
from core.fusion.estimators import Estimator, fit_estimator
from core.fusion.fusion_settings import METHODS, FusionMethod, FusionSettings
from core.fusion.fusion_split import FusionSplit, require_systems, unseen_split
from core.records import STATISTICS, Alignment, FloatArray, GoldenSet, IntArray, JudgeScores, Unscored
from core.stats import LEAST_SOURCES, Difference, LabelledItems, align_each, holm, paired_difference
from core.wording import number

SEEN = "its calibration saw labels of the items reported on"
SHARE_SCORED = 0.9
"""A judge next to the fusions that scored fewer of the items would be measured on other items than they are."""


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
    """A fused judge next to its parts, all on the same `report` items.

    `against_best` is the fusion minus the part that aligned best on the *fit* items (so that nothing is picked on the
    report).  `weights` by part are in points of the label for one standard deviation (shares for the average).
    `left_out` says which parts were not used, and why.  `state` holds all that scoring new items needs.
    """

    method: FusionMethod
    judge: JudgeScores
    fused: Alignment
    parts: Mapping[str, Alignment]
    left_out: Mapping[str, str]
    weights: Mapping[str, float]
    without: tuple[Without, ...]
    against_best: Difference | None
    best_part: str
    fit: tuple[int, ...]
    report: tuple[int, ...]
    state: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The JSON of `fuse`."""
        return {
            "method": self.method,
            "fused": self.fused.as_json(),
            "parts": {name: alignment.as_json() for name, alignment in self.parts.items()},
            "left_out": dict(self.left_out),
            "weights": dict(self.weights),
            "without": {rest.name: rest.as_json() for rest in self.without},
            "best_part": self.best_part,
            "against_best": None if self.against_best is None else self.against_best.as_json(),
            "n_fit": len(self.fit),
            "n_report": len(self.report),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Agreement:
    """Agreement of scores with the raters on one aspect of a golden set, at any positions.

    `other_labels` (n_items,) replace the aspect's own.
    """

    golden: GoldenSet
    aspect: str
    settings: FusionSettings
    other_labels: FloatArray | None = None

    @cached_property
    def items(self) -> LabelledItems:
        own = LabelledItems.of(self.golden, self.aspect)
        return own if self.other_labels is None else own.labelled(self.other_labels)

    def align(self, matrix: FloatArray, at: IntArray, *, stream: int = 1) -> list[Alignment]:
        """One alignment for each row of `matrix` (n_judges, n_items), at the positions `at`."""
        how, items = self.settings, self.items.take(at)
        return align_each(matrix[:, at], items, how.measure, resamples=how.resamples, seed=[how.seed, stream])

    def difference(self, a: FloatArray, b: FloatArray, at: IntArray) -> Difference:
        """The alignment of `a` minus that of `b`, both (n_items,), on the items of `at` that both scored."""
        how, items = self.settings, self.items.take(at)
        return paired_difference(a[at], b[at], items, how.measure, resamples=how.resamples, seed=[how.seed, 2])


def fuse(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[JudgeScores],
    settings: FusionSettings,
    split: FusionSplit | None = None,
) -> Fusion:
    """Fuse `parts` (judges of this golden set, of any scales) on one aspect (METHODS §6, without further calls).

    With a `split` the items to fit and to report on are given, and the caller has seen to what the parts have `seen`:
    their scores on the fit items must then be cross-fitted (`core.fusion.fusion_split.cross_fitted`).

    On fewer labels than weights can be learnt from, the parts are averaged instead, and `notes` says so.

    A part that is constant, that has no scores, or (for the average) that does not beat chance on the fit items is left
    out with its reason; where these are too few to show it (fewer than 50 labels or `LEAST_SOURCES` sources), only a
    part that is shown to disagree with the raters.  UsageError with fewer than two usable parts, AspectError when too
    few items are unseen.
    """
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise UsageError("Two parts have the same name; rename one, so that their names differ.")
    split = split or unseen_split(golden, aspect, parts, fit_share=settings.fit_share, seed=settings.seed)
    fit, report, notes = split.fit, split.report, list(split.notes)
    if settings.method == "llm":
        raise UsageError(f"A fusion without calls is one of {', '.join(METHODS)}.")
    method: FusionMethod = settings.method
    if method != "average" and (few := too_few_to_stack(fit.size)):
        notes.append(f"{few}. The parts are averaged instead of joined by {method}.")
        method = "average"
    require_systems(golden, settings.measure.level, report)
    agreement, matrix = Agreement(golden, aspect, settings), np.array([part.upward for part in parts])
    # which parts beat chance needs intervals, whatever the report needs, and more units than a dozen systems
    gate = replace(settings, resamples=settings.resamples or 1000)
    if settings.level == "system":
        gate = replace(gate, level="dataset")
        if method == "average":
            n_systems = np.unique(golden.system_codes[fit]).size
            notes.append(
                f"Parts were chosen by their agreement on single items: {n_systems} systems are too few for it."
            )
    on_fit = replace(agreement, settings=gate).align(matrix, fit)
    few_sources = fit.size < TO_STACK or np.unique(golden.source_codes[fit]).size < LEAST_SOURCES
    reasons = [
        _unusable(row[fit], alignment, averaged=method == "average", few=few_sources)
        for row, alignment in zip(matrix, on_fit, strict=True)
    ]
    left_out = {name: reason for name, reason in zip(names, reasons, strict=True) if reason}
    usable = [k for k, name in enumerate(names) if name not in left_out]
    if len(usable) < 2:
        why = [f"{name}: {reason.rstrip('.')}." for name, reason in left_out.items()]
        raise UsageError(" ".join([f"A fusion needs at least two usable parts; {len(usable)} came.", *why]))
    used, used_names = matrix[usable], [names[k] for k in usable]

    def fitted(rows: FloatArray) -> Estimator:
        return fit_estimator(method, rows[:, fit], agreement.items.labels[fit], golden.source_codes[fit])

    estimator = fitted(used)
    values = estimator.score(used)
    without = []
    for k, name in enumerate(used_names) if len(usable) > 2 else ():
        rest = np.delete(used, k, axis=0)
        scores = fitted(rest).score(rest)
        alignment = agreement.align(scores[None, :], report)[0]
        without.append(Without(name, alignment, agreement.difference(values, scores, report)))
    fused, *of_parts = agreement.align(np.vstack([values, matrix]), report)
    best = max(usable, key=lambda k: _height(on_fit[k]))
    joined = [parts[k] for k in usable]
    costs = [part.calls_per_item for part in joined]
    judge = JudgeScores(
        name=f"fusion ({method}) of {len(joined)}",
        kind="fused",
        aspect=aspect,
        values=values,
        unscored=tuple(
            Unscored(golden.item_ids[k], "missing input", "No part of the fusion has a score.")
            for k in np.flatnonzero(np.isnan(values))
        ),
        seen=tuple(sorted({*fit.tolist()}.union(*(part.seen for part in joined)))),
        on_scale=method != "average",
        note=f"{method} of {', '.join(used_names)}, fitted on {fit.size} items.",
        calls_per_item=None if None in costs else float(sum(cost or 0.0 for cost in costs)),
    )
    return Fusion(
        method=method,
        judge=judge,
        fused=fused,
        parts=dict(zip(names, of_parts, strict=True)),
        left_out=left_out,
        weights=dict(zip(used_names, estimator.weights, strict=True)),
        without=corrected_without(without),
        against_best=agreement.difference(values, matrix[best], report),
        best_part=names[best],
        fit=tuple(fit.tolist()),
        report=tuple(report.tolist()),
        state=estimator.state() | {"parts": used_names},
        notes=tuple(notes),
    )


def _unusable(row: FloatArray, alignment: Alignment, *, averaged: bool, few: bool) -> str:
    """Why a part cannot be used; "" for one that can.  Fitted weights handle parts that disagree with raters.

    `row` are its scores on the items to fit on, `alignment` its own over these items, not over systems.
    """
    scores, interval = row[~np.isnan(row)], alignment.interval
    where = f"on the {alignment.n} items to fit on"
    value = "undefined" if alignment.value is None else number(alignment.value)
    if not scores.size:
        return "it has no score on the items to fit on"
    if scores.min() == scores.max():
        return "all its scores are equal on the items to fit on"
    if averaged and few and interval is not None and interval.high < 0:
        return f"it disagrees with raters beyond chance {where} ({value})"
    if averaged and not few and not beats_chance(alignment):
        return f"it does not beat chance {where} ({value})"
    return ""


def side_by_side(agreement: Agreement, rows: Mapping[str, FloatArray], at: IntArray) -> dict[str, Any]:
    """Every coefficient of each of `rows` (name to (n_items,) scores, more is better), and those between them.

    ``coefficients`` are with the labels, at the level of `agreement`, by name and statistic.  ``between`` are over the
    items at `at` that both scored, a row and a column for each name.  None stands for an undefined value.
    """
    import pandas as pd

    frame, coefficients, between = pd.DataFrame(rows), dict[str, dict[str, Any]](), dict[str, Any]()
    seen = frame.iloc[at]
    varied = seen.loc[:, seen.nunique() > 1].reindex(columns=frame.columns)  # nothing is defined for a constant
    for statistic in STATISTICS:
        own = replace(agreement, settings=replace(agreement.settings, statistic=statistic, resamples=0))
        for name, alignment in zip(rows, own.align(frame.to_numpy().T, at), strict=True):
            coefficients.setdefault(name, {})[statistic] = alignment.value
        table = varied.corr(statistic, min_periods=2)
        between[statistic] = table.astype(object).where(table.notna(), None).to_numpy().tolist()
    return {"coefficients": coefficients, "between": {"names": list(rows)} | between}


def beats_chance(alignment: Alignment) -> bool:
    """Whether the whole interval lies above 0."""
    return alignment.value is not None and alignment.interval is not None and alignment.interval.low > 0


def _height(alignment: Alignment) -> float:
    return -np.inf if alignment.value is None else alignment.value


def holm_corrected(differences: Sequence[Difference]) -> list[Difference]:
    """The same differences with Holm's p over those that have one."""
    corrected = holm([np.nan if test.p is None else test.p for test in differences])
    return [replace(test, p=None if np.isnan(p) else float(p)) for test, p in zip(differences, corrected, strict=True)]


def corrected_without(rows: Sequence[Without]) -> tuple[Without, ...]:
    """The same rows, with one Holm correction over all of them."""
    tests = holm_corrected([row.difference for row in rows])
    return tuple(replace(row, difference=test) for row, test in zip(rows, tests, strict=True))


# ── every method in one table ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FusionTable:
    """Fusions of the same parts by method, the reason where a method gave none, and other judges on the same items.

    The tests of the fusions against the best part share one Holm correction.  `beside` are judges that are no parts,
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
    tests = holm_corrected([fusion.against_best for fusion in fusions.values() if fusion.against_best is not None])
    corrected = {m: replace(f, against_best=test) for (m, f), test in zip(fusions.items(), tests, strict=True)}
    measured: dict[str, Alignment] = {}
    refused: dict[str, str] = {}
    for judge in beside:
        n = int((~np.isnan(judge.values[split.report])).sum())
        if set(judge.seen) & set(split.report.tolist()):
            refused[judge.name] = SEEN
        elif n < SHARE_SCORED * split.report.size:
            refused[judge.name] = f"it scored only {n} of these {split.report.size} items"
        else:
            measured[judge.name] = Agreement(golden, aspect, settings).align(judge.upward[None, :], split.report)[0]
    return FusionTable(corrected, failed, measured, refused)
