"""The leaderboard: every judge beside the people on the same items, at one statistic and level, with its tests.

Paper 001's and 002's comparisons, held to METHODS §1: the items are common to all judges and seen by none, intervals
and tests are over sources, differences are tested in *alignment* with Holm's correction over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from core.comparison.board import HumanCeiling, Leaderboard, Row, two_steps
from core.comparison.pool import ItemPool, ItemsMode, JudgeCost, item_pool, unique_names
from core.errors import AspectError
from core.records import Alignment, FloatArray, GoldenSet, IntArray, JudgeScores, Level, Scale, Statistic
from core.stats import (
    BesidePeople,
    PairwiseComparison,
    RaterTable,
    absolute_errors,
    beside_people,
    binary_agreement,
    compare_judges,
    leave_one_out,
    rater_table,
    step_agreement,
    with_interval,
)

RESAMPLES = 2_000
"""Resamples of sources behind intervals at system level."""


def compare_table(
    golden: GoldenSet,
    aspect: str,
    judges: Sequence[JudgeScores],
    *,
    statistic: Statistic,
    level: Level,
    items: ItemsMode = "unseen",
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Leaderboard:
    """Set `judges` beside the people on `aspect` and beside each other.

    With `items` "unseen" all stand on the labelled items that none has seen and all scored; "all" lets seen labels in
    (rows count them); "own" gives each judge its own unseen items, and no comparison.  Scores are turned so that more
    is better.  Errors as in `item_pool`; where nothing is left to compare
    on, every alignment is undefined and `problem` says which judge costs what.
    """
    pool = item_pool(golden, aspect, judges, items)
    labels = golden.labels(aspect)
    measure = _Measure(statistic, level, seed, resamples)
    pairwise = _common(golden, labels, judges, pool.positions, measure) if items != "own" and pool.n_common else None
    if items == "own":
        told = [_alone(golden, labels, judge, at, measure) for judge, at in zip(judges, pool.own, strict=True)]
    elif pairwise is not None:
        told = list(pairwise.alignments)
    else:
        reason = "no labelled item is common to the judges"
        told = [Alignment(statistic, level, None, 0, reason=reason) for _ in judges]
    raters = _raters(golden, aspect)
    rows = [
        _row(golden, judge, name, told[k], _Part(k, pool.own[k], pool.costs[k], raters))
        for k, (judge, name) in enumerate(zip(judges, unique_names(judges), strict=True))
    ]
    order = sorted(range(len(rows)), key=lambda k: _sort_key(rows[k]))
    used = pool.positions if items != "own" else np.unique(np.concatenate(pool.own))
    return Leaderboard(
        golden=golden.name,
        aspect=aspect,
        scale=golden.aspects[aspect].scale,
        statistic=statistic,
        level=level,
        rows=tuple(rows[k] for k in order),
        pairwise=_in_order(pairwise, order) if pairwise is not None and len(rows) > 1 else None,
        ceiling=human_ceiling(
            golden,
            aspect,
            used,
            statistic=statistic,
            level=level,
            seed=seed,
            resamples=resamples,
        ),
        pool=pool,
        n_sources=int(np.unique(golden.source_codes[used]).size),
        n_systems=len({golden.items[position].system_id for position in used} - {""}),
        problem="" if used.size else _nothing_left(judges, labels, pool),
    )


def human_ceiling(
    golden: GoldenSet,
    aspect: str,
    positions: IntArray,
    *,
    statistic: Statistic,
    level: Level,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> HumanCeiling:
    """How well one rater agrees with the mean of the others on the items at `positions`, on the leaderboard's axis."""
    try:
        table = rater_table(golden, aspect)
    except AspectError as error:
        return HumanCeiling(None, reason=str(error))
    ratings = table.values[:, positions]
    rated = ~np.isnan(ratings)
    if not (rated.sum(axis=0) >= 2).any():
        return HumanCeiling(None, len(table.raters), table.panel, "no item here was rated by two people")
    present = np.flatnonzero(rated.any(axis=1))
    found = leave_one_out(
        ratings[present],
        golden.source_codes[positions],
        golden.system_codes[positions],
        statistic=statistic,
        level=level,
        generator=np.random.default_rng(seed),
        resamples=resamples,
        raters=tuple(table.raters[row] for row in present),
    ).alignment
    return HumanCeiling(found, int(present.size), table.panel, found.reason)


@dataclass(frozen=True, slots=True)
class _Measure:
    """How alignments of the table are computed."""

    statistic: Statistic
    level: Level
    seed: int
    resamples: int

    @property
    def generator(self) -> Generator:
        """The same draws each time, so that a judge's interval does not hang on who stands beside it."""
        return np.random.default_rng(self.seed)


def _common(
    golden: GoldenSet, labels: FloatArray, judges: Sequence[JudgeScores], at: IntArray, measure: _Measure
) -> PairwiseComparison:
    return compare_judges(
        np.stack([judge.upward[at] for judge in judges]),
        labels[at],
        golden.source_codes[at],
        golden.system_codes[at],
        statistic=measure.statistic,
        level=measure.level,
        generator=measure.generator,
        resamples=measure.resamples,
    )


def _alone(golden: GoldenSet, labels: FloatArray, judge: JudgeScores, at: IntArray, measure: _Measure) -> Alignment:
    if not at.size:
        reason = "it scored no labelled item that it has not seen"
        return Alignment(measure.statistic, measure.level, None, 0, reason=reason)
    return with_interval(
        judge.upward[at],
        labels[at],
        golden.source_codes[at],
        golden.system_codes[at],
        statistic=measure.statistic,
        level=measure.level,
        generator=measure.generator,
        resamples=measure.resamples,
    )


@dataclass(frozen=True)
class _Part:
    """One judge's part of the pool; `raters` None where the golden set holds no single ratings."""

    place: int
    positions: IntArray
    cost: JudgeCost
    raters: RaterTable | None


def _row(golden: GoldenSet, judge: JudgeScores, name: str, told: Alignment, part: _Part) -> Row:
    at, cost, scale = part.positions, part.cost, golden.aspects[judge.aspect].scale
    values, gold = judge.values[at], golden.labels(judge.aspect)[at]
    note = _off_scale(judge, values, scale)
    on_scale = not note
    return Row(
        place=part.place,
        name=name,
        kind=judge.kind,
        note=judge.note,
        alignment=told,
        n_sources=int(np.unique(golden.source_codes[at]).size),
        n_seen=cost.n_seen,
        n_seen_used=int(np.isin(at, list(judge.seen)).sum()),
        unscored=cost.unscored,
        alone=cost.alone,
        calls_per_item=judge.calls_per_item,
        errors=absolute_errors(values, gold) if on_scale else None,
        steps=step_agreement(values, gold, scale) if on_scale else None,
        binary=binary_agreement(values, gold, (scale.low + scale.high) / 2) if on_scale and two_steps(scale) else None,
        scale_note=note,
        people=_beside(golden, judge, told, part),
    )


def _raters(golden: GoldenSet, aspect: str) -> RaterTable | None:
    try:
        return rater_table(golden, aspect)
    except AspectError:
        return None


def _beside(golden: GoldenSet, judge: JudgeScores, told: Alignment, part: _Part) -> BesidePeople | None:
    if part.raters is None:
        return None
    return beside_people(
        part.raters.values[:, part.positions],
        judge.upward[part.positions],
        golden.source_codes[part.positions],
        golden.system_codes[part.positions],
        statistic=told.statistic,
        level=told.level,
        raters=part.raters.raters,
        panel=part.raters.panel,
    )


def _off_scale(judge: JudgeScores, values: FloatArray, scale: Scale) -> str:
    """Why errors and agreement in points have no meaning for this judge; empty where they have."""
    if not judge.on_scale or not judge.higher_is_better:
        return f"its scores are on a scale of their own, not on {scale}"
    if values.size and not (scale.low <= values.min() and values.max() <= scale.high):
        return f"its scores go from {values.min():g} to {values.max():g}, the scale is {scale}"
    return ""


def _sort_key(row: Row) -> tuple[bool, float, int]:
    value = row.alignment.value
    return (value is None, 0.0 if value is None else -value, row.place)


def _in_order(found: PairwiseComparison, order: Sequence[int]) -> PairwiseComparison:
    at = np.ix_(order, order)
    return replace(
        found,
        alignments=tuple(found.alignments[k] for k in order),
        difference=found.difference[at],
        low=found.low[at],
        high=found.high[at],
        p=found.p[at],
        p_holm=found.p_holm[at],
        williams_p=found.williams_p[at],
        williams_p_holm=found.williams_p_holm[at],
        method=found.method[at],
        p_reason=found.p_reason[at],
    )


def _nothing_left(judges: Sequence[JudgeScores], labels: FloatArray, pool: ItemPool) -> str:
    """Why no item is left, naming two judges without a common item where that is it, and the way out."""
    names = unique_names(judges)
    if not pool.n_labelled:
        return "No item has a label on this aspect."
    scored = [~np.isnan(judge.values) & ~np.isnan(labels) for judge in judges]
    for k, name in enumerate(names):
        if not scored[k].any():
            return f"{name} has scored none of the {pool.n_labelled:,} labelled items. Leave it out of the comparison."
        for j in range(k):
            if not (scored[k] & scored[j]).any():
                return (
                    f"{names[j]} and {name} have no common item: they scored {int(scored[j].sum()):,} and "
                    f"{int(scored[k].sum()):,} labelled items, none of them the same. Leave one of them out, or "
                    "score the same items with both."
                )
    told = (
        f"Of {pool.n_labelled:,} labelled items {pool.n_seen:,} were seen by one of the judges and {pool.n_unscored:,} "
        "more lack a score from one of them, so none is left to compare on."
    )
    dearest = max(range(len(names)), key=lambda k: pool.costs[k].alone)
    brings = pool.costs[dearest].alone
    way_out = f" Leaving out {names[dearest]} brings back {brings:,}." if brings else " Leave out some judges."
    return told + way_out
