"""What the judge reached: both sides of the split, beside every other judge, by system, by source, on the scale."""

from __future__ import annotations

import numpy as np

from core.comparison import calibration_curve, compare_table
from core.errors import UsageError
from core.projects.reporting.basis import Basis
from core.projects.views.reports import (
    BothSides,
    OnTheScale,
    Result,
    ScoreBand,
    ScorePoint,
    Shelf,
    ShelfRow,
    SourceSpread,
    SystemFact,
)
from core.records import JudgeScores
from core.stats import group_values, with_interval

_NARROW = 0.25
"""Share of the widest judge's scored items under which a judge would cost all others too many of theirs."""
_MOST_POINTS, _MOST_SYSTEMS = 1_000, 60
_MIN_GROUP = 3
"""Items of a source from which a coefficient of its own says anything: two can only give +1 or -1."""
_RESAMPLES = 1_000


def result(basis: Basis) -> Result:
    """Everything that was measured; computes only what the calibration did not store."""
    c = basis.calibration
    return Result(
        run_id=basis.run.run_id,
        at=basis.run.finished_at,
        spec=str(c.judge_state.get("spec", "")),
        notice=str(c.judge_state.get("notice", "")),
        statistic=c.held_out.statistic,
        level=c.held_out.level,
        n_calibration=len(c.split.calibration),
        n_held_out=len(c.split.held_out),
        final=BothSides("calibrated judge", c.calibration, c.held_out),
        best_single=BothSides("best single criteria", c.best_single["calibration"], c.best_single["held_out"]),
        no_criteria=BothSides("judge without criteria", c.no_criteria["calibration"], c.no_criteria["held_out"]),
        gain=c.gain,
        optimism=c.optimism,
        shelf=shelf(basis),
        systems=_systems(basis),
        sources=_sources(basis),
        on_the_scale=_on_the_scale(basis),
        work=c.work.words,
        stopped_early=" ".join(c.work.left_out),
        warnings=c.warnings,
        problems=c.problems,
    )


def shelf(basis: Basis) -> Shelf:
    """Every judge of the shelf on the items that none of them has seen and all of them scored."""
    c = basis.calibration
    rows = basis.store.judges.all(basis.project_id, basis.golden.digest, basis.aspect)
    ours = next((row.judge for row in rows if _is_ours(row.judge, basis)), basis.judge)
    judges = [row.judge for row in rows if row.judge is not ours]
    widest = max(one.n_scored for one in (ours, *judges))
    compared = [ours, *(one for one in judges if one.n_scored >= _NARROW * widest)]
    board = compare_table(
        basis.golden,
        basis.aspect,
        compared,
        statistic=c.held_out.statistic,
        level=c.held_out.level,
        seed=c.settings.seed,
    )
    at = next(k for k, row in enumerate(board.rows) if row.place == 0)
    told = []
    for k, row in enumerate(board.rows):
        pair = board.pairwise.pair(at, k) if board.pairwise is not None and k != at else None
        p = np.nan if board.pairwise is None else float(board.pairwise.p_holm[at, k])
        told.append(
            ShelfRow(
                name=row.name,
                kind=row.kind,
                ours=k == at,
                same_run=compared[row.place].run_id == basis.run.run_id,
                alignment=row.alignment,
                difference=None if pair is None else pair.value,
                interval=None if pair is None else pair.interval,
                p=None if np.isnan(p) or k == at else p,
                calls_per_item=row.calls_per_item,
                like_person=None if row.people is None else row.people.judge,
            )
        )
    return Shelf(
        rows=tuple(told),
        ceiling=board.ceiling.alignment,
        n_items=board.pool.n_common,
        n_sources=board.n_sources,
        n_labelled=board.pool.n_labelled,
        n_seen=board.pool.n_seen,
        n_unscored=board.pool.n_unscored,
        aside=tuple(one.name for one in judges if one.n_scored < _NARROW * widest),
        problem=board.problem,
    )


def _is_ours(judge: JudgeScores, basis: Basis) -> bool:
    return judge.run_id == basis.run.run_id and judge.kind == "calibrated"


def _systems(basis: Basis) -> tuple[SystemFact, ...]:
    """Each named system's held-out items, the system that people like best first; empty with fewer than two systems."""
    golden, at = basis.golden, basis.told_at
    names = np.array([golden.items[k].system_id for k in at])
    known = sorted({str(name) for name in names} - {""})
    if len(known) < 2:
        return ()
    facts = []
    for name in known:
        own = at[names == name]
        measured = with_interval(
            basis.values[own],
            basis.labels[own],
            golden.source_codes[own],
            statistic=basis.calibration.held_out.statistic,
            level="dataset",
            generator=np.random.default_rng(basis.calibration.settings.seed),
            resamples=_RESAMPLES,
        )
        facts.append(SystemFact(name, measured, float(basis.labels[own].mean()), float(basis.values[own].mean())))
    return tuple(sorted(facts, key=lambda one: -(one.mean_label or 0.0))[:_MOST_SYSTEMS])


def _sources(basis: Basis) -> SourceSpread:
    """The coefficients of single held-out sources of three items or more, without their names."""
    at, statistic = basis.told_at, basis.calibration.held_out.statistic
    codes = basis.golden.source_codes[at]
    if not at.size:
        return SourceSpread(statistic, (), 0)
    values = group_values(basis.values[at], basis.labels[at], codes, statistic=statistic, min_group=_MIN_GROUP)[0]
    defined = np.sort(values[~np.isnan(values)])
    return SourceSpread(statistic, tuple(float(one) for one in defined), int(np.unique(codes).size))


def _on_the_scale(basis: Basis) -> OnTheScale:
    at = basis.told_at
    drawn = at
    if at.size > _MOST_POINTS:
        drawn = np.sort(np.random.default_rng(basis.calibration.settings.seed).choice(at, _MOST_POINTS, replace=False))
    points = tuple(ScorePoint(float(basis.values[k]), float(basis.labels[k])) for k in drawn)
    try:
        curve = calibration_curve(basis.golden, basis.aspect, basis.judge, seed=basis.calibration.settings.seed)
    except UsageError:  # no held-out item has both a score and a label
        return OnTheScale(points, int(at.size), (), None, None, None, None)
    return OnTheScale(
        points=points,
        n=int(at.size),
        bands=tuple(ScoreBand(one.low, one.high, one.mean_score, one.mean_label, one.n) for one in curve.bins),
        mae=None if curve.before is None else curve.before.mae,
        bias=None if curve.before is None else curve.before.bias,
        mapped_mae=None if curve.after is None else curve.after.mae,
        mapped_bias=None if curve.after is None else curve.after.bias,
    )
