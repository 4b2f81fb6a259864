"""Rank judges on a leaderboard: compare them with raters and with each other on the same items.

The items have labels that no judge has seen, and a score from every judge. All figures have the same statistic and
level. Intervals and tests are over sources. The p values of differences are Holm-corrected for all pairs in the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.data.split import task_of
from core.errors import AspectError, UsageError
from core.records import Alignment, GoldenSet, IntArray, JudgeScores, Level, Measure, Scale
from core.stats import (
    AnnotatorTest,
    Ceiling,
    Difference,
    LabelledItems,
    MeasureSettings,
    PairwiseComparison,
    RaterComparison,
    RaterTable,
    alignment_values,
    alpha_metric,
    annotator_test,
    compare_judges,
    compare_with_raters,
    correct_for_judges,
    krippendorff_alpha,
    leave_one_out,
    rater_table,
)
from core.stats.alignment import RegressionBar, compare_with_regression

if TYPE_CHECKING:
    from core.comparison.supervised import PlainRegression


MOST_TAKEN = 1 / 3
"""Largest share of another judge's items that a judge may remove from the comparison before it is left out."""


# ── which items ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ItemPool:
    """The items on which all judges are compared.

    Attributes:
        positions: Indices of the items in `GoldenSet.items` (n_common,), ascending.
        n_labelled: Number of labelled items.
        n_seen: Number of labelled items left out because a judge has seen their labels.
        n_unscored: Number of other labelled items left out because a judge gave them no score.
        unscored: For each judge, reason → number of labelled, unseen items without its score.
    """

    positions: IntArray
    n_labelled: int
    n_seen: int
    n_unscored: int
    unscored: tuple[Mapping[str, int], ...]

    @property
    def n_common(self) -> int:
        return int(self.positions.size)


def item_pool(golden: GoldenSet, aspect: str, judges: Sequence[JudgeScores]) -> ItemPool:
    """Find the items on which to compare `judges` of one aspect and golden set; the result may be empty.

    Raises UsageError if `judges` is empty.
    """
    if not judges:
        raise UsageError("No judge to compare. Calibrate one, import replies, or compute a metric.")
    labelled = ~np.isnan(golden.labels(aspect))
    seen = np.array([np.isin(np.arange(labelled.size), list(judge.seen)) for judge in judges])
    scored = ~np.isnan(np.stack([judge.values for judge in judges]))
    in_reach = labelled & ~seen.any(axis=0)
    common = in_reach & scored.all(axis=0)
    unscored = []
    for k, judge in enumerate(judges):
        reasons = {lost.item_id: lost.reason for lost in judge.unscored}
        lost = np.flatnonzero(in_reach & ~scored[k])
        counts = Counter(reasons.get(golden.item_ids[at], "not asked for") for at in lost)
        unscored.append(dict(counts.most_common()))
    n_labelled, n_in_reach, n_common = int(labelled.sum()), int(in_reach.sum()), int(common.sum())
    positions = np.flatnonzero(common)
    return ItemPool(positions, n_labelled, n_labelled - n_in_reach, n_in_reach - n_common, tuple(unscored))


def judges_to_leave_out(judges: Sequence[JudgeScores], about: int | None = None) -> tuple[int, ...]:
    """Return the indices of judges that would remove too many items from the comparison.

    An item is usable for a judge if the judge scored it and has not seen its label. The reference is the judge at index
    `about`, or else the judge with the most usable items. A judge is left out if more than the share `MOST_TAKEN` of
    the reference's usable items are not usable for that judge.
    """
    if not judges:
        return ()
    positions = np.arange(judges[0].values.size)
    honest = np.stack([~np.isnan(judge.values) & ~np.isin(positions, judge.seen) for judge in judges])
    reference = honest[int(honest.sum(axis=1).argmax()) if about is None else about]
    taken = reference.sum() - (honest & reference).sum(axis=1)
    return tuple(np.flatnonzero(taken > MOST_TAKEN * reference.sum()).tolist())


def usual_level(golden: GoldenSet, aspect: str) -> Level:
    """Return the default level for measuring `aspect`."""
    return LabelledItems.of(golden, aspect).usual_level


def unique_names(judges: Sequence[JudgeScores]) -> tuple[str, ...]:
    """Return the names of judges, made unique by numbering repeats: "offline", "offline (2)"."""
    times: Counter[str] = Counter()
    names = []
    for judge in judges:
        times[judge.name] += 1
        names.append(judge.name if times[judge.name] == 1 else f"{judge.name} ({times[judge.name]})")
    return tuple(names)


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    """One judge of the table.

    Attributes:
        place: Index of the judge in the list of compared judges.
        alignment: Alignment on the items of the comparison.
        unscored: Reason → number of labelled, unseen items to which this judge gave no score.
        people: Comparison of judge and rater, each against the mean of the other raters; None without individual
            ratings.
    """

    place: int
    name: str
    judge: JudgeScores
    alignment: Alignment
    unscored: Mapping[str, int]
    people: RaterComparison | None = None

    @property
    def undefined(self) -> bool:
        """Whether the judge has no alignment on these items."""
        return self.alignment.value is None


@dataclass(frozen=True)
class Leaderboard:
    """Judges compared on the same items.

    Attributes:
        rows: The judges, best first. Judges without an alignment come last.
        pairwise: Differences between judges, in the order of `rows`; None with only one judge or without a common item.
        ceiling: Alignment of one rater with the mean of the other raters.
        n_sources: Number of sources of the common items.
        problem: Why nothing can be compared, or "".
        bar: Comparison of the judges with a plain regression; None if no regression could be fitted.
    """

    aspect: str
    scale: Scale
    measure: Measure
    rows: tuple[Row, ...]
    pairwise: PairwiseComparison | None
    ceiling: Alignment
    pool: ItemPool
    n_sources: int
    problem: str = ""
    bar: RegressionBar | None = None

    def row_of(self, judge: int) -> int:
        """Return the row index of a judge. `judge` is its index in the list of compared judges."""
        return next(k for k, row in enumerate(self.rows) if row.place == judge)

    def minus(self, row: int, other: int) -> Difference | None:
        """Return the difference between two rows, or None if they are not compared; `p` is corrected for all pairs."""
        if self.pairwise is None or row == other:
            return None
        p = float(self.pairwise.p_holm[row, other])
        return replace(self.pairwise.pair(row, other), p=None if np.isnan(p) else p)

    def with_planned(self, place: int, other: int) -> Leaderboard:
        """Return a copy in which the comparison of two judges counts as planned, so its p is not corrected.

        `place` and `other` are indices among the given judges.
        """
        if self.pairwise is None:
            return self
        i, j = self.row_of(place), self.row_of(other)
        own, holm = self.pairwise.pair(i, j).p, self.pairwise.p_holm.copy()
        holm[i, j] = holm[j, i] = np.nan if own is None else own
        return replace(self, pairwise=replace(self.pairwise, p_holm=holm))

    def without_p(self, judge: int, reason: str) -> Leaderboard:
        """Return a copy in which the p values of one judge are replaced by `reason`; unchanged if `reason` is "".

        `judge` is the judge's index in the list of compared judges.
        """
        if not reason:
            return self
        at, pairwise = self.row_of(judge), self.pairwise
        rows = list(self.rows)
        if (people := rows[at].people) is not None:
            rows[at] = replace(rows[at], people=people.without_claim(reason))
        if pairwise is not None:
            holm = pairwise.p_holm.copy()
            holm[at, :] = holm[:, at] = np.nan
            differences = {
                pair: replace(difference, p=None, p_reason=reason) if at in pair else difference
                for pair, difference in pairwise.differences.items()
            }
            pairwise = replace(pairwise, p_holm=holm, differences=differences)
        return replace(self, rows=tuple(rows), pairwise=pairwise, bar=self.bar and self.bar.without_p(at, reason))


# ── the comparison ───────────────────────────────────────────────────────────────────────────────────────────


def compare_table(
    golden: GoldenSet,
    aspect: str,
    judges: Sequence[JudgeScores],
    measure: Measure,
    *,
    regression: PlainRegression | None = None,
    planned: int | None = None,
    seed: int = 0,
) -> Leaderboard:
    """Compare judges with the raters and with each other, on the items that every judge scored and none has seen.

    Without such an item, every figure is undefined and `problem` says why.

    Args:
        measure: Statistic and level of the alignments.
        regression: A regression fitted to the same labels, as a reference for the judges.
        planned: Index of a judge that is compared with a rater on all items that it scored and hasn't seen. This
            comparison is not corrected for multiple tests, and other judges don't change it.
        seed: Seed of the resampling for intervals.

    Raises:
        UsageError: `judges` is empty.
    """
    pool = item_pool(golden, aspect, judges)
    everything, at = LabelledItems.of(golden, aspect), pool.positions
    names, scale, common = unique_names(judges), golden.aspects[aspect].scale, everything.take(at)
    scores = np.stack([judge.upward[at] for judge in judges])
    order, pairwise, bar = list(range(len(judges))), None, None
    none = Alignment(measure.statistic, measure.level, None, 0, reason="the judges have no labelled items in common")
    alignments = [none] * len(judges)
    if pool.n_common:
        values = alignment_values(scores, common, measure)
        order = np.argsort(-values, kind="stable").tolist()  # best first, the undefined (NaN) last
        pairwise = compare_judges(scores[order], common, measure, seed=seed)
        alignments = list(pairwise.alignments)
        if regression is not None and not regression.reason:
            predicted, n_labels = regression.values[at], regression.n_labels
            bar = compare_with_regression(predicted, n_labels, scores[order], common, measure, seed=seed)
            bar = bar if bar.alignment.value is not None else None
    raters = _raters(golden, aspect)
    rows = []
    for k, alignment in zip(order, alignments, strict=True):
        people = None
        if raters is not None:
            own = item_pool(golden, aspect, [judges[k]]).positions if k == planned else at
            people = compare_with_raters(raters.at(own), judges[k].upward[own], everything.take(own), measure)
        rows.append(Row(k, names[k], judges[k], alignment, pool.unscored[k], people))
    among = iter(correct_for_judges([row.people for row in rows if row.people and row.place != planned]))
    rows = [replace(row, people=next(among)) if row.people and row.place != planned else row for row in rows]
    return Leaderboard(
        aspect,
        scale,
        measure,
        tuple(rows),
        pairwise if len(rows) > 1 else None,
        human_ceiling(golden, aspect, at, measure, seed=seed),
        pool,
        int(np.unique(common.sources).size),
        "" if at.size else _nothing_left(pool),
        bar=bar,
    )


def ceiling(golden: GoldenSet, aspect: str, settings: MeasureSettings | None = None) -> Ceiling:
    """Return the agreement of one rater with the mean of the others, and Krippendorff's alpha.

    Raises AspectError if the golden set has no individual ratings.
    """
    task = task_of(golden, aspect)
    table, labels = rater_table(golden, aspect), golden.labels(aspect)
    how = settings or MeasureSettings()
    measure = how.on(LabelledItems.of(golden, aspect, np.flatnonzero(~np.isnan(labels))))
    used = np.flatnonzero(~np.isnan(labels) | table.rated.all(axis=0))
    items, table = LabelledItems.of(golden, aspect, used), table.at(used)
    alignment, by_rater = leave_one_out(table, items, measure, seed=how.seed)
    alpha = krippendorff_alpha(table.values, alpha_metric(task.scale))
    return Ceiling(
        aspect,
        alignment,
        alpha.value,
        alpha.metric,
        alpha.n_items,
        alpha.reason,
        len(by_rater),
        table.panel,
        by_rater,
    )


def human_ceiling(
    golden: GoldenSet,
    aspect: str,
    positions: IntArray,
    measure: Measure,
    *,
    seed: int = 0,
) -> Alignment:
    """Measure how well one rater agrees with the mean of the others on the items at `positions`.

    If there are no individual ratings, the alignment is undefined, and its `reason` says why.
    """
    nothing = Alignment(measure.statistic, measure.level, None, 0)
    try:
        here = rater_table(golden, aspect).at(positions)
    except AspectError as error:
        return replace(nothing, reason=str(error))
    if not here.rated_twice.size:
        return replace(nothing, reason="none of these items has ratings from two raters")
    items = LabelledItems.of(golden, aspect, positions)
    return leave_one_out(here, items, measure, seed=seed)[0]


def annotator_tests(
    golden: GoldenSet, board: Leaderboard, judges: Sequence[JudgeScores], *, epsilon: float
) -> tuple[AnnotatorTest | None, ...]:
    """Run the Alternative Annotator Test for each row of `board`. Return () if there are no individual ratings.

    `judges` are the judges that `board` compares, in their original order. A judge's scores are mapped to the raters'
    scale. The result is None for a judge whose scores can't be mapped.
    """
    table = _raters(golden, board.aspect)
    if table is None:
        return ()
    at = board.pool.positions
    here, items = table.at(at), LabelledItems.of(golden, board.aspect, at)
    return tuple(
        annotator_test(here, judges[row.place].on_raters_scale[at], items, epsilon)
        if judges[row.place].has_raters_scale
        else None
        for row in board.rows
    )


def _raters(golden: GoldenSet, aspect: str) -> RaterTable | None:
    try:
        return rater_table(golden, aspect)
    except AspectError:
        return None


def _nothing_left(pool: ItemPool) -> str:
    """Say why no item is left to compare on, and how to fix it."""
    if not pool.n_labelled:
        return "No item has a label for this aspect."
    return (
        f"No items are left: of {pool.n_labelled:,} labelled items, {pool.n_seen:,} were used to calibrate a judge, "
        f"and {pool.n_unscored:,} others lack a score from at least one judge. Compare fewer judges."
    )
