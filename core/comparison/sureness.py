"""How sure a judge's verdicts are, on items that it has not seen: do intervals hold, does leaving the unsure out help?

Map and quantile (`core.stats.conformal`) come from the items that it was calibrated on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.json_form import JsonRecord, json_fields
from core.records import FloatArray, GoldenSet, JudgeScores, Scale
from core.stats import fit_isotonic
from core.stats.conformal import (
    USUAL_COVERAGE,
    KeptShare,
    SurestError,
    VerdictIntervals,
    fit_intervals,
    kept_shares,
    labels_on_points,
    surest_error,
    verdict_errors,
)

if TYPE_CHECKING:
    from core.calibration.calibration_records import Calibration

LEVELS_TOLD = 3
"""Stretches of the calibrated score, with as many items each, for which coverage is told."""


@dataclass(frozen=True, slots=True)
class HeldShare(JsonRecord):
    """The intervals hold the label of a `share` of `n` items; `name` says of which."""

    name: str
    share: float
    n: int


@dataclass(frozen=True)
class Sureness:
    """Intervals of `coverage` of one judge on `n` unseen items of `n_sources` sources.

    `held` is the share of labels that they hold, averaged over sources, `width` their mean width in points; both None
    where there are none, and `reason` says why.  For yes and no `width` is the share of sets that hold both answers.
    `levels` and `systems` tell the share held apart: the coverage is that of all items, not of each kind.  `kept` is
    the error against the share kept, `fifth` what leaving out the least sure fifth does.
    """

    name: str
    coverage: float
    scale: Scale
    n: int
    n_sources: int
    on_points: bool
    held: float | None = None
    width: float | None = None
    levels: tuple[HeldShare, ...] = ()
    systems: tuple[HeldShare, ...] = ()
    kept: tuple[KeptShare, ...] = ()
    fifth: SurestError | None = None
    reason: str = ""

    @property
    def two_answers(self) -> bool:
        """Whether an interval is a set of one answer or of both."""
        return self.on_points and self.scale.two_steps

    def as_json(self) -> dict[str, Any]:
        """The numbers; `kept` as [share kept, expected error up to, error, best possible error]."""
        return json_fields(self, but=("scale",)) | {"scale": [self.scale.low, self.scale.high]}


def expected_errors(golden: GoldenSet, aspect: str, judge: JudgeScores) -> FloatArray:
    """(n_items,) how far the judge's verdict may lie from people's label, labelled or not; NaN where that is not known.

    From all items with label and score: it says which verdicts are unsure, and is no measurement of the judge.
    """
    labels, scores, scale = golden.labels(aspect), judge.upward, golden.aspects[aspect].scale
    fit = fit_isotonic(scores, labels, scale)
    if fit.map is None:
        return np.full(scores.size, np.nan)
    intervals = fit_intervals(scores, labels, golden.source_codes, scale)
    return intervals.expected_errors(fit.map.apply(scores))


def calibrated_sureness(golden: GoldenSet, made: Calibration, *, coverage: float = USUAL_COVERAGE) -> Sureness:
    """Of the judge that a calibration made, by its own map and intervals, on the items it was not made from."""
    values = np.full(len(golden.items), np.nan)
    places = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    values[[places[item_id] for item_id in made.scores.item_ids]] = made.scores.values[0]
    labels, scale = golden.labels(made.task.aspect), made.task.scale
    unseen = ~np.isin(np.arange(len(golden.items)), made.split.calibration)
    told = np.flatnonzero(unseen & ~np.isnan(values) & ~np.isnan(labels))
    labels, sources = labels[told], golden.source_codes[told]
    on_points, n_sources = labels_on_points(labels, scale), int(np.unique(sources).size)
    intervals = None if made.intervals is None else VerdictIntervals.from_json(made.intervals)
    reason = "its scores have no map to the human scale"
    if made.score_map is not None and intervals is not None:
        reason = intervals.why_none(coverage) if intervals.expected else intervals.reason
    base = Sureness("the calibrated judge", coverage, scale, told.size, n_sources, on_points, reason=reason)
    if not told.size or made.score_map is None or intervals is None or not intervals.expected:
        return base
    calibrated = made.score_map.apply(values[told])
    expected = intervals.expected_errors(calibrated)
    errors = verdict_errors(calibrated, labels, scale, on_points=on_points)
    sure = replace(base, kept=kept_shares(expected, errors), fifth=surest_error(expected, errors, sources))
    low, high = intervals.around(calibrated, scale, coverage)
    if np.isnan([low, high]).any():
        return sure
    holds = (low - 1e-9 <= labels) & (labels <= high + 1e-9)
    _, of_source = np.unique(sources, return_inverse=True)
    by_source = np.bincount(of_source, weights=holds) / np.bincount(of_source)
    cuts = np.unique(np.quantile(calibrated, np.arange(1, LEVELS_TOLD) / LEVELS_TOLD))
    level = np.searchsorted(cuts, calibrated, side="right")
    ends = {k: calibrated[level == k] for k in np.unique(level)}
    of_system = np.array([golden.items[int(k)].system_id for k in told])

    def held(name: str, among: np.ndarray[Any, Any]) -> HeldShare:
        return HeldShare(name, float(holds[among].mean()), int(among.sum()))

    return replace(
        sure,
        held=float(by_source.mean()),
        width=float((high - low).mean()),
        levels=tuple(held(f"{own.min():.3g} to {own.max():.3g}", level == k) for k, own in ends.items()),
        systems=tuple(held(str(name), of_system == name) for name in np.unique(of_system) if name),
    )
