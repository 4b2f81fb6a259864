"""How sure a judge's verdicts are, on items that it has not seen: do intervals hold, does leaving the unsure out help?

Map, model of the error and quantile (`core.stats.conformal`) come from items whose labels the judge has seen anyway,
where it has any, and else from the other folds of sources; nothing is told on an item that was fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.calibration.records import Calibration
from core.json_form import json_fields
from core.records import FloatArray, GoldenSet, JudgeScores, Scale
from core.stats import fit_isotonic, p_figure
from core.stats.claims import change_figures
from core.stats.conformal import (
    USUAL_COVERAGE,
    JudgedItems,
    VerdictIntervals,
    fit_intervals,
    labels_on_points,
    verdict_errors,
)
from core.stats.on_scale import MIN_LABELS, IsotonicMap
from core.stats.selective import KeptShare, LeftOut, kept_shares, left_out
from core.stats.source_folds import FOLDS, source_folds
from core.wording import counted, percent

LEVELS_TOLD = 3
"""Stretches of the calibrated score, with as many items each, for which coverage is told."""


@dataclass(frozen=True, slots=True)
class Held:
    """The intervals hold the label of a `share` of `n` items; `name` says of which."""

    name: str
    share: float
    n: int

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


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
    levels: tuple[Held, ...] = ()
    systems: tuple[Held, ...] = ()
    kept: tuple[KeptShare, ...] = ()
    fifth: LeftOut | None = None
    reason: str = ""

    @property
    def two_answers(self) -> bool:
        """Whether an interval is a set of one answer or of both."""
        return self.on_points and self.scale.two_steps

    @property
    def words(self) -> tuple[str, str]:
        """What became of the intervals, and whether leaving the least sure fifth out helps, in a sentence each."""
        return _held_words(self), _fifth_words(self)

    def as_json(self) -> dict[str, Any]:
        """The numbers; `kept` as [share kept, expected error up to, error, best possible error]."""
        return json_fields(self, but=("scale",)) | {"scale": [self.scale.low, self.scale.high]}


def _held_words(sure: Sureness) -> str:
    if sure.held is None or sure.width is None:
        return f"No intervals of {percent(sure.coverage)} around verdicts: {sure.reason}."
    on = f"{counted(sure.n, 'unseen item')} of {counted(sure.n_sources, 'source')}"
    wide = f"they are {sure.width:.2g} points wide on average"
    size = f"{percent(sure.width)} of them hold both answers" if sure.two_answers else wide
    meant = f"Intervals meant to hold {percent(sure.coverage)} of people's labels"
    return f"{meant} hold {percent(sure.held)} on {on}; {size}."


def _fifth_words(sure: Sureness) -> str:
    fifth = sure.fifth
    if fifth is None:
        return "No clear difference between sure and unsure verdicts."
    p = f"no p ({fifth.reason})" if fifth.p is None else f"one-sided {p_figure(fifth.p)}"
    figures = f"by {change_figures(fifth.change, fifth.interval)} from {fifth.overall:.3f}, {p}"
    if fifth.helps:
        return f"Leaving the least sure fifth out lowers the error {figures}."
    return f"That leaving the least sure fifth out lowers the error is not shown: it changes {figures}."


def judge_sureness(
    golden: GoldenSet,
    aspect: str,
    judge: JudgeScores,
    *,
    coverage: float = USUAL_COVERAGE,
    seed: int = 0,
) -> Sureness:
    """Of any judge on the labelled items that it scored and has not seen."""
    labels, scores = golden.labels(aspect), judge.upward
    usable = np.flatnonzero(~np.isnan(scores) & ~np.isnan(labels))
    judged = JudgedItems(scores, labels, golden.source_codes)
    seen = np.isin(usable, list(judge.seen))
    scale, told = golden.aspects[aspect].scale, usable[~seen]
    if seen.sum() >= MIN_LABELS:
        given = _Given.by(judged.take(usable[seen]), judged.take(told), _Asked(scale, coverage))
    else:
        told = usable
        given = _crossed(judged.take(told), _Asked(scale, coverage), seed)
    systems = np.array([golden.items[int(k)].system_id for k in told])
    return _told(judge.name, judged.take(told), systems, given, _Asked(scale, coverage))


def expected_errors(golden: GoldenSet, aspect: str, judge: JudgeScores) -> FloatArray:
    """(n_items,) how far the judge's verdict may lie from people's label, labelled or not; NaN where that is not known.

    From all items with label and score: it says which verdicts are unsure, and is no measurement of the judge.
    """
    labels, scores, scale = golden.labels(aspect), judge.upward, golden.aspects[aspect].scale
    fit = fit_isotonic(scores, labels, scale)
    if fit.map is None:
        return np.full(scores.size, np.nan)
    intervals = fit_intervals(JudgedItems(scores, labels, golden.source_codes), scale)
    return intervals.expected_errors(fit.map.apply(scores))


def calibrated_sureness(golden: GoldenSet, made: Calibration, *, coverage: float = USUAL_COVERAGE) -> Sureness:
    """Of the judge that a calibration made, by its own map and intervals, on the items it was not made from."""
    values = np.full(len(golden.items), np.nan)
    places = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    at = [places[item_id] for item_id in made.scores.item_ids]
    values[at] = made.scores.values[0]
    labels, asked = golden.labels(made.task.aspect), _Asked(made.task.scale, coverage)
    unseen = ~np.isin(np.arange(len(golden.items)), made.split.calibration)
    told = np.flatnonzero(unseen & ~np.isnan(values) & ~np.isnan(labels))
    judged = JudgedItems(values, labels, golden.source_codes).take(told)
    score_map = made.score_map
    if score_map is None or made.intervals is None:
        given = _Given.none(told.size, "its scores have no map to the human scale")
    else:
        given = _Given.of(judged, score_map, VerdictIntervals.from_json(made.intervals), asked)
    systems = np.array([golden.items[int(k)].system_id for k in told])
    return _told("the calibrated judge", judged, systems, given, asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    scale: Scale
    coverage: float


@dataclass(frozen=True, eq=False)
class _Given:
    """What verdicts were given (n,): calibrated scores, expected errors, ends (2, n); NaN, or why there are none."""

    calibrated: FloatArray
    expected: FloatArray
    ends: FloatArray
    reason: str = ""

    @classmethod
    def by(cls, fitted: JudgedItems, told: JudgedItems, asked: _Asked) -> _Given:
        intervals = fit_intervals(fitted, asked.scale)
        score_map = fit_isotonic(fitted.scores, fitted.labels, asked.scale).map
        if score_map is None:
            return cls.none(told.scores.size, intervals.reason)
        return cls.of(told, score_map, intervals, asked)

    @classmethod
    def of(cls, told: JudgedItems, score_map: IsotonicMap, intervals: VerdictIntervals, asked: _Asked) -> _Given:
        if not intervals.expected:
            return cls.none(told.scores.size, intervals.reason)
        calibrated = score_map.apply(told.scores)
        ends = intervals.around(calibrated, asked.scale, asked.coverage)
        return cls(calibrated, intervals.expected_errors(calibrated), ends, intervals.why_none(asked.coverage))

    @classmethod
    def none(cls, n: int, reason: str) -> _Given:
        nothing = np.full(n, np.nan)
        return cls(nothing, nothing, np.stack([nothing, nothing]), reason)


def _crossed(judged: JudgedItems, asked: _Asked, seed: int) -> _Given:
    """Every fold of sources from the others."""
    n = judged.scores.size
    calibrated, expected, ends = np.full(n, np.nan), np.full(n, np.nan), np.full((2, n), np.nan)
    folds, reason = source_folds(judged.sources, FOLDS, seed), "" if n else "no item has both a score and a label"
    for fold in range(int(folds.max(initial=-1)) + 1):
        out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        given = _Given.by(judged.take(rest), judged.take(out), asked)
        calibrated[out], expected[out], ends[:, out] = given.calibrated, given.expected, given.ends
        reason = reason or given.reason
    return _Given(calibrated, expected, ends, reason)


def _told(name: str, judged: JudgedItems, of_system: np.ndarray[Any, Any], given: _Given, asked: _Asked) -> Sureness:
    scale = asked.scale
    on_points = labels_on_points(judged.labels, scale)
    n_sources = int(np.unique(judged.sources).size)
    base = Sureness(name, asked.coverage, scale, judged.scores.size, n_sources, on_points, reason=given.reason)
    if not judged.scores.size or np.isnan(given.expected).any():
        return base
    errors = verdict_errors(given.calibrated, judged.labels, scale, on_points=on_points)
    parts: dict[str, Any] = {
        "kept": kept_shares(given.expected, errors),
        "fifth": left_out(given.expected, errors, judged.sources),
    }
    if not np.isnan(given.ends).any():
        low, high = given.ends
        holds = (low - 1e-9 <= judged.labels) & (judged.labels <= high + 1e-9)
        _, of_source = np.unique(judged.sources, return_inverse=True)
        by_source = np.bincount(of_source, weights=holds) / np.bincount(of_source)
        parts["held"], parts["width"] = float(by_source.mean()), float((high - low).mean())
        parts["levels"] = _by_level(given.calibrated, holds)
        named = [str(system) for system in np.unique(of_system) if system]
        parts["systems"] = tuple(_held(system, holds[of_system == system]) for system in named)
    return replace(base, **parts)


def _by_level(calibrated: FloatArray, holds: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[Held, ...]:
    cuts = np.unique(np.quantile(calibrated, np.arange(1, LEVELS_TOLD) / LEVELS_TOLD))
    level = np.searchsorted(cuts, calibrated, side="right")
    return tuple(
        _held(f"{calibrated[level == k].min():.3g} to {calibrated[level == k].max():.3g}", holds[level == k])
        for k in np.unique(level)
    )


def _held(name: str, holds: np.ndarray[Any, np.dtype[np.bool_]]) -> Held:
    return Held(name, float(holds.mean()), int(holds.size))
