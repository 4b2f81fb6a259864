"""The leaderboard: every judge beside the people on the same items, at one statistic and level, with its tests.

Paper 001's and 002's comparisons, held to METHODS §1: the items are common to all judges and seen by none, intervals
and tests are over sources, differences are tested in *alignment* with Holm's correction over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.comparison.board import HumanCeiling, Leaderboard, Row
from core.comparison.pool import ItemPool, ItemsMode, item_pool, unique_names
from core.errors import AspectError
from core.records import Alignment, FloatArray, GoldenSet, IntArray, JudgeScores, Measure, Scale
from core.stats import (
    AnnotatorTest,
    LabelledItems,
    OnScale,
    RaterTable,
    align,
    annotator_test,
    beside_people,
    compare_judges,
    leave_one_out,
    on_scale,
    rater_table,
)

RESAMPLES = 2_000
"""Resamples of sources behind intervals at system level."""


def compare_table(
    golden: GoldenSet,
    aspect: str,
    judges: Sequence[JudgeScores],
    measure: Measure,
    *,
    items: ItemsMode = "unseen",
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Leaderboard:
    """Set `judges` beside the people on `aspect` and beside each other.

    With `items` "unseen" all are compared on the labelled items that none has seen and all scored; "all" lets seen
    labels in (rows count them); "own" gives each judge its own unseen items, and no comparison.  Scores are turned so
    that more is better.  Each interval draws from `seed` alone, so that it does not hang on who else is compared.
    Errors as in `item_pool`; where nothing is left to compare on, every alignment is undefined and `problem` says
    which judge costs what.
    """
    pool = item_pool(golden, aspect, judges, items)
    everything = LabelledItems.of(golden, aspect)
    pairwise = None
    if items == "own":
        alignments = [
            align(judge.upward[at], everything.take(at), measure, resamples=resamples, seed=seed)
            if at.size
            else _undefined(measure, "it scored no labelled item that it has not seen")
            for judge, at in zip(judges, pool.own, strict=True)
        ]
    elif pool.n_common:
        at = pool.positions
        scores = np.stack([judge.upward[at] for judge in judges])
        pairwise = compare_judges(scores, everything.take(at), measure, resamples=resamples, seed=seed)
        alignments = list(pairwise.alignments)
    else:
        alignments = [_undefined(measure, "no labelled item is common to the judges") for _ in judges]
    ground = _Ground(golden, pool, everything, _raters(golden, aspect))
    names = unique_names(judges)
    rows = [ground.row(k, judge, names[k], alignments[k]) for k, judge in enumerate(judges)]
    order = sorted(range(len(rows)), key=lambda k: _sort_key(rows[k]))
    used = pool.positions if items != "own" else np.unique(np.concatenate(pool.own))
    return Leaderboard(
        golden=golden.name,
        aspect=aspect,
        scale=golden.aspects[aspect].scale,
        measure=measure,
        rows=tuple(rows[k] for k in order),
        pairwise=pairwise.in_order(order) if pairwise is not None and len(rows) > 1 else None,
        ceiling=human_ceiling(golden, aspect, used, measure, seed=seed, resamples=resamples),
        pool=pool,
        n_sources=int(np.unique(golden.source_codes[used]).size),
        n_systems=len({golden.items[position].system_id for position in used} - {""}),
        problem="" if used.size else _nothing_left(judges, everything.labels, pool),
    )


def human_ceiling(
    golden: GoldenSet,
    aspect: str,
    positions: IntArray,
    measure: Measure,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> HumanCeiling:
    """How well one rater agrees with the mean of the others on the items at `positions`, on the leaderboard's axis."""
    try:
        table = rater_table(golden, aspect)
    except AspectError as error:
        return HumanCeiling(None, reason=str(error))
    here = table.at(positions)
    if not (here.rated.sum(axis=0) >= 2).any():
        return HumanCeiling(None, len(table.raters), table.panel, "no item here was rated by two people")
    items, here = LabelledItems.of(golden, aspect, positions), here.present
    found = leave_one_out(here, items, measure, resamples=resamples, seed=seed).alignment
    return HumanCeiling(found, len(here.raters), table.panel, found.reason)


def annotator_tests(
    golden: GoldenSet,
    board: Leaderboard,
    judges: Sequence[JudgeScores],
    *,
    epsilon: float,
    standardise: bool = False,
    clustered: bool = False,
) -> tuple[AnnotatorTest | None, ...]:
    """The Alternative Annotator Test, one a row of `board`, which was made of `judges`; empty without single ratings.

    None for a judge on a scale of its own, unless `standardise` takes mean and spread out of everybody's labels: its
    scores are no labels.
    """
    table = _raters(golden, board.aspect)
    if table is None:
        return ()
    found: list[AnnotatorTest | None] = []
    for row in board.rows:
        judge, at = judges[row.place], board.pool.own[row.place]
        if not standardise and not _means_labels(judge):
            found.append(None)
            continue
        items, scores = LabelledItems.of(golden, board.aspect, at), judge.upward[at]
        how = {"standardise": standardise, "clustered": clustered}
        found.append(annotator_test(table.at(at), scores, items, epsilon=epsilon, **how))
    return tuple(found)


def _raters(golden: GoldenSet, aspect: str) -> RaterTable | None:
    try:
        return rater_table(golden, aspect)
    except AspectError:
        return None


def _undefined(measure: Measure, reason: str) -> Alignment:
    return Alignment(measure.statistic, measure.level, None, 0, reason=reason)


@dataclass(frozen=True)
class _Ground:
    """What the rows rest on: `items` are all of the golden set; `raters` None where it holds no single ratings."""

    golden: GoldenSet
    pool: ItemPool
    items: LabelledItems
    raters: RaterTable | None

    def row(self, place: int, judge: JudgeScores, name: str, alignment: Alignment) -> Row:
        at, cost = self.pool.own[place], self.pool.costs[place]
        items = self.items.take(at)
        points = _points(judge, judge.values[at], items.labels, self.golden.aspects[judge.aspect].scale)
        people = None
        if self.raters is not None:
            people = beside_people(self.raters.at(at), judge.upward[at], items, alignment.measure)
        return Row(
            place=place,
            name=name,
            kind=judge.kind,
            note=judge.note,
            alignment=alignment,
            n_sources=int(np.unique(items.sources).size),
            n_seen=cost.n_seen,
            n_seen_used=int(np.isin(at, list(judge.seen)).sum()),
            unscored=cost.unscored,
            alone=cost.alone,
            calls_per_item=judge.calls_per_item,
            errors=points.errors,
            steps=points.steps,
            binary=points.binary,
            scale_note=points.note,
            people=people,
        )


def _points(judge: JudgeScores, values: FloatArray, labels: FloatArray, scale: Scale) -> OnScale:
    """Errors and agreement in points of the labels' scale; only a note where they have no meaning for this judge."""
    if not _means_labels(judge):
        return OnScale(note=f"its scores are on a scale of their own, not on {scale}")
    points = on_scale(values, labels, scale)
    return OnScale(note=f"its {points.note}") if points.note else points


def _means_labels(judge: JudgeScores) -> bool:
    """Whether its scores mean what labels mean."""
    return judge.on_scale and judge.higher_is_better


def _sort_key(row: Row) -> tuple[bool, float, int]:
    value = row.alignment.value
    return (value is None, 0.0 if value is None else -value, row.place)


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
    words = (
        f"Of {pool.n_labelled:,} labelled items {pool.n_seen:,} were seen by one of the judges and {pool.n_unscored:,} "
        "more lack a score from one of them, so none is left to compare on."
    )
    dearest = max(range(len(names)), key=lambda k: pool.costs[k].alone)
    brings = pool.costs[dearest].alone
    way_out = f" Leaving out {names[dearest]} brings back {brings:,}." if brings else " Leave out some judges."
    return words + way_out
