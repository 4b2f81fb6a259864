"""The leaderboard: every judge beside the people on the same items, at one statistic and level, with its tests.

Paper 001's and 002's comparisons, held to METHODS §1: the items are common to all judges and seen by none, intervals
and tests are over sources, differences are tested in *alignment* with Holm's correction over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.comparison.common_items import ItemPool, item_pool, unique_names
from core.comparison.leaderboard import HumanCeiling, Leaderboard, Row
from core.data.split import task_of
from core.errors import AspectError
from core.records import Alignment, FloatArray, GoldenSet, IntArray, JudgeScores, Measure, Scale
from core.stats import (
    AnnotatorTest,
    AnnotatorTestSettings,
    Ceiling,
    LabelledItems,
    MeasureSettings,
    OnScale,
    RaterTable,
    alignment_values,
    alpha_metric,
    among_judges,
    annotator_test,
    beside_people,
    compare_judges,
    krippendorff_alpha,
    leave_one_out,
    on_scale,
    pairwise_spearman,
    rater_table,
)
from core.stats.alignment import bar_beside

if TYPE_CHECKING:
    from core.comparison.supervised import PlainRegression

RESAMPLES = 2_000
"""Resamples of sources behind intervals at system level."""


def compare_table(
    golden: GoldenSet,
    aspect: str,
    judges: Sequence[JudgeScores],
    measure: Measure,
    *,
    regression: PlainRegression | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Leaderboard:
    """Set `judges` beside the people on `aspect` and beside each other.

    All are compared on the labelled items that none has seen and all scored.  Scores are turned so that more is better.
    A `regression` on the same labels is the bar.  Each interval draws from `seed` alone.  Errors as in `item_pool`;
    where nothing is left to compare on, all is undefined and `problem` says which judge costs what.
    """
    pool = item_pool(golden, aspect, judges)
    everything, at = LabelledItems.of(golden, aspect), pool.positions
    drawn: dict[str, Any] = {"resamples": resamples, "seed": seed}
    names, scale, common = unique_names(judges), golden.aspects[aspect].scale, everything.take(at)
    scores = np.stack([judge.upward[at] for judge in judges])
    pairwise, bar = None, None
    if pool.n_common:
        values = alignment_values(scores, common, measure).tolist()  # best first, the undefined (NaN) last
        order = sorted(range(len(values)), key=lambda k: (bool(np.isnan(values[k])), -np.nan_to_num(values[k])))
        pairwise = compare_judges(scores[order], common, measure, **drawn)
        alignments = list(pairwise.alignments)
        if regression is not None and not regression.reason:
            bar = bar_beside(regression.values[at], regression.n_labels, scores[order], common, measure, **drawn)
            bar = bar if bar.alignment.value is not None else None
    else:
        order = list(range(len(judges)))
        none = "no labelled item is common to the judges"
        alignments = [Alignment(measure.statistic, measure.level, None, 0, reason=none)] * len(judges)
    raters = _raters(golden, aspect)
    rows = [
        Row(
            place=k,
            name=names[k],
            kind=judges[k].kind,
            note=judges[k].note,
            alignment=alignment,
            n_sources=int(np.unique(common.sources).size),
            cost=pool.costs[k],
            calls_per_item=judges[k].calls_per_item,
            on_scale=_points(judges[k], at, common.labels, scale),
            people=None if raters is None else beside_people(raters.at(at), scores[k], common, alignment.measure),
        )
        for k, alignment in zip(order, alignments, strict=True)
    ]
    people = among_judges([row.people for row in rows if row.people is not None])
    if people:  # whoever reads the table picks the best of them
        rows = [replace(row, people=own) for row, own in zip(rows, people, strict=True)]
    return Leaderboard(
        golden=golden.name,
        aspect=aspect,
        scale=scale,
        measure=measure,
        rows=tuple(rows),
        pairwise=pairwise if len(rows) > 1 else None,
        ceiling=human_ceiling(golden, aspect, at, measure, **drawn),
        pool=pool,
        n_sources=int(np.unique(common.sources).size),
        n_systems=len({golden.items[position].system_id for position in at} - {""}),
        problem="" if at.size else _nothing_left(judges, names, everything.labels, pool),
        bar=bar,
    )


def ceiling(
    golden: GoldenSet,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    panel: str | None = None,
) -> Ceiling:
    """How well the people agree on `aspect`: leave one rater out, Krippendorff's alpha.

    `panel` names the raters
    where there are several panels (expert, turker); None takes the one whose means are the gold labels, else all.
    AspectError when the golden set holds no single ratings.
    """
    task = task_of(golden, aspect)
    table, labels = rater_table(golden, aspect, panel), golden.labels(aspect)
    labelled = np.flatnonzero(~np.isnan(labels))
    used = np.flatnonzero(~np.isnan(labels) | table.rated.all(axis=0))
    how = settings or MeasureSettings()
    measure = how.on(LabelledItems.of(golden, aspect, labelled))
    items, table = LabelledItems.of(golden, aspect, used), table.at(used)
    return Ceiling(
        aspect,
        leave_one_out(table, items, measure, resamples=how.bootstrap, seed=how.seed),
        krippendorff_alpha(table.values, alpha_metric(task.scale)),
        pairwise_spearman(table.values[table.busiest]),
        table.panel,
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
    if not here.rated_twice.size:
        return HumanCeiling(None, table.n_raters, table.panel, "no item here was rated by two people")
    items, here = LabelledItems.of(golden, aspect, positions), here.present
    alignment = leave_one_out(here, items, measure, resamples=resamples, seed=seed).alignment
    return HumanCeiling(alignment, here.n_raters, table.panel, alignment.reason)


def annotator_tests(
    golden: GoldenSet,
    board: Leaderboard,
    judges: Sequence[JudgeScores],
    *,
    epsilon: float,
    standardise: bool = False,
    clustered: bool | None = None,
) -> tuple[AnnotatorTest | None, ...]:
    """The Alternative Annotator Test, one a row of `board`, which was made of `judges`; empty without single ratings.

    The judge's labels are its scores mapped to the raters' scale, where it has a map.  None for a judge on a scale of
    its own without one, unless `standardise` takes mean and spread out of everybody's labels.
    """
    table = _raters(golden, board.aspect)
    if table is None:
        return ()
    at = board.pool.positions
    here, items = table.at(at), LabelledItems.of(golden, board.aspect, at)
    how = AnnotatorTestSettings(epsilon, clustered=clustered, standardise=standardise)
    return tuple(
        annotator_test(here, judges[row.place].on_raters_scale[at], items, how)
        if standardise or judges[row.place].means_labels
        else None
        for row in board.rows
    )


def _raters(golden: GoldenSet, aspect: str) -> RaterTable | None:
    try:
        return rater_table(golden, aspect)
    except AspectError:
        return None


def _points(judge: JudgeScores, at: IntArray, labels: FloatArray, scale: Scale) -> OnScale:
    """Errors and agreement in points of the labels' scale; only a note where they have no meaning for this judge."""
    if not judge.means_labels:
        return OnScale(note=f"its scores are on a scale of their own, not on {scale}")
    mapped = None if judge.mapped is None else judge.mapped[at]
    points = on_scale(judge.values[at], labels, scale, mapped=mapped)
    return replace(points, note=f"its {points.note}") if points.note else points


def _nothing_left(judges: Sequence[JudgeScores], names: Sequence[str], labels: FloatArray, pool: ItemPool) -> str:
    """Why no item is left, naming two judges without a common item where that is it, and the way out."""
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
    dearest = max(range(len(names)), key=lambda k: pool.costs[k].alone)
    brings = pool.costs[dearest].alone
    way_out = f"Leaving out {names[dearest]} brings back {brings:,}." if brings else "Leave out some judges."
    return (
        f"Of {pool.n_labelled:,} labelled items {pool.n_seen:,} were seen by one of the judges and {pool.n_unscored:,} "
        f"more lack a score from one of them, so none is left to compare on. {way_out}"
    )
