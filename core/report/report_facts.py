"""The facts of a report on one calibrated judge, as one frozen record.

Each `Alignment` contains its statistic, level, n and interval. None means undefined or unknown, never 0. Texts from
users and models are not escaped; the code that draws them must escape and shorten them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.calibration_records import Calibration, SplitAlignment
from core.comparison import (
    CalibrationCurve,
    Leaderboard,
    calibration_curve,
    compare_table,
    human_ceiling,
    judges_to_leave_out,
)
from core.comparison.corrected_means import judged_items
from core.comparison.examination import Examination, examine_judge
from core.comparison.steadiness import Steadiness
from core.comparison.supervised import plain_regression
from core.data import load_golden
from core.data.judge_results import ScoredRows
from core.errors import AspectError, UsageError
from core.records import Alignment, Criteria, FloatArray, GoldenSet, IntArray, JudgeScores
from core.stats import (
    Alpha,
    AnnotatorTest,
    Difference,
    LabelledItems,
    RaterComparison,
    alpha_metric,
    annotator_test,
    compare_with_raters,
    krippendorff_alpha,
    rater_table,
)
from core.stats.system_means import SystemMeans, system_means

if TYPE_CHECKING:
    from core.project_records import GoldenSummary, Run
    from core.projects.calibration import CalibrationRequest
    from core.projects.judge_line import JudgeLine, JudgeVersion
    from core.projects.start_and_resume import HeldOutAccess

_SAMPLE_FOLDER = Path(__file__).parents[2] / "sample_data"


@dataclass(frozen=True)
class ReportedJudge:
    """A finished calibration with its golden set. Scores are in the order of the golden set."""

    golden: GoldenSet
    calibration: Calibration
    run_id: str

    @property
    def aspect(self) -> str:
        return self.calibration.task.aspect

    @cached_property
    def values(self) -> FloatArray:
        """Scores of the final judge, (n_items,), NaN = unscored."""
        return self._over_all(self.calibration.scores.values[0])

    def _over_all(self, scores: FloatArray) -> FloatArray:
        known = dict(zip(self.calibration.scores.item_ids, scores, strict=True))
        return np.array([known.get(item_id, np.nan) for item_id in self.golden.item_ids], dtype=np.float64)

    @cached_property
    def labels(self) -> FloatArray:
        """Gold labels, (n_items,), NaN = unlabelled."""
        return self.golden.labels(self.aspect)

    @cached_property
    def held_out(self) -> IntArray:
        """Positions of the held-out items with both a label and a score."""
        at = np.asarray(self.calibration.split.held_out, dtype=np.intp)
        return at[~np.isnan(self.values[at]) & ~np.isnan(self.labels[at])]

    @cached_property
    def scores(self) -> JudgeScores:
        """Scores of the final judge, for comparison with other judges."""
        return JudgeScores(
            name=f"{self.calibration.judge_state.get('spec', 'judge')} · calibrated",
            kind="calibrated",
            aspect=self.aspect,
            values=self.values,
            seen=self.calibration.split.calibration,
            run_id=self.run_id,
            calls_per_item=float(sum(len(each.weights) or 1 for each in self.calibration.chosen)),
            turned=None if (turned := self.calibration.scores.turned) is None else self._over_all(turned[0]),
            mapped=None if (score_map := self.calibration.score_map) is None else score_map.apply(self.values),
        )

    def board(self, registry: Sequence[JudgeScores]) -> tuple[Leaderboard, tuple[str, ...]]:
        """Compare this judge with the judges in `registry`, on the items that all of them scored and none has seen.

        Returns:
            The comparison. The row of this judge has `place` 0.
            Names of the judges left out, because they share too few items with this judge.
        """
        how = self.calibration
        own = (judge for judge in registry if judge.run_id == self.run_id and judge.kind == "calibrated")
        kept = next(own, self.scores)
        judges = [replace(kept, mapped=self.scores.mapped), *(judge for judge in registry if judge is not kept)]
        aside, seed = set(judges_to_leave_out(judges, 0)) - {0}, how.settings.seed
        table = compare_table(
            self.golden,
            self.aspect,
            [judge for k, judge in enumerate(judges) if k not in aside],
            how.held_out.measure,
            regression=plain_regression(self.golden, self.aspect, seed=seed),
            seed=seed,
        )
        return table, tuple(judges[k].name for k in sorted(aside))

    def examined(self) -> Examination:
        """Find weak spots and biases of the judge, on items whose labels it has not seen."""
        judge, model = replace(self.scores, name="the judge"), str(self.calibration.judge_state.get("spec", ""))
        statistic = self.calibration.held_out.statistic
        return examine_judge(self.golden, self.aspect, judge, statistic=statistic, model=model)

    def curve(self) -> CalibrationCurve | None:
        """Return the curve of the mean label by score, on held-out items; None if no item has both."""
        own, seed = self.calibration.score_map, self.calibration.settings.seed
        try:
            return calibration_curve(self.golden, self.aspect, self.scores, own=own, seed=seed)
        except UsageError:
            return None

    def means(self, seen: Collection[int]) -> SystemMeans:
        """Estimate each system's mean from the judge's scores, corrected with the labels.

        Labels at the positions `seen` are not used. The result is empty for pairs.
        """
        if self.golden.kind == "pair":
            scale = self.golden.aspects[self.aspect].scale
            return SystemMeans((), (), None, None, 0, 0, mapped=False, scale=scale)
        rows = ScoredRows(self.golden.item_ids, self.values)
        return system_means(judged_items(self.golden, self.aspect, rows, seen=seen)[0])


@cache
def _sample_labels() -> frozenset[tuple[str, str, str, float]]:
    goldens = [load_golden(path) for path in sorted(_SAMPLE_FOLDER.iterdir()) if path.suffix in (".jsonl", ".csv")]
    return frozenset(label for golden in goldens for aspect in golden.aspects for label in _labels_of(golden, aspect))


def _labels_of(golden: GoldenSet, aspect: str) -> Iterator[tuple[str, str, str, float]]:
    for item, value in zip(golden.items, golden.aspects[aspect].values, strict=True):
        if value is not None:
            yield aspect, item.source, item.target, value


def is_simulated(golden: GoldenSet, aspect: str) -> bool:
    """Return whether all labels are sample data, which a program generated."""
    own = list(_labels_of(golden, aspect))
    return bool(own) and _sample_labels().issuperset(own)


@dataclass(frozen=True)
class Raters:
    """The raters' agreement with each other, and the judge compared with the raters.

    Attributes:
        n_rated: For each rater, the number of rated items; empty without individual ratings.
        alpha: Krippendorff's alpha.
        ceiling: Alignment of one rater with the mean of the other raters, on the judge's held-out items.
        beside: Judge and rater on the same items, each measured against the mean of the other raters; None without
            individual ratings.
        test: Result of the Alternative Annotator Test; None without individual ratings.
    """

    n_rated: Mapping[str, int]
    alpha: Alpha
    ceiling: Alignment
    beside: RaterComparison | None = None
    test: AnnotatorTest | None = None


def raters_of(judged: ReportedJudge, withheld: str = "") -> Raters:
    """Measure the agreement among raters, and compare the judge with the raters.

    Without individual ratings, nothing is compared, and `alpha` says why it is undefined. `withheld` is the reason why
    no claim may be made; "" for none.
    """
    golden, aspect, at, measure = judged.golden, judged.aspect, judged.held_out, judged.calibration.held_out.measure
    scale = golden.aspects[aspect].scale
    ceiling = human_ceiling(golden, aspect, at, measure, seed=judged.calibration.settings.seed)
    try:
        table = rater_table(golden, aspect)
    except AspectError as error:
        return Raters({}, Alpha(None, alpha_metric(scale), 0, reason=str(error)), ceiling)
    here, items = table.at(at), LabelledItems.of(golden, aspect, at)
    return Raters(
        {name: int(n) for name, n in zip(table.raters, table.rated.sum(axis=1), strict=True) if name},
        krippendorff_alpha(table.values, alpha_metric(scale)),
        ceiling,
        compare_with_raters(here, judged.values[at], items, measure).without_claim(withheld),
        annotator_test(here, judged.scores.on_raters_scale[at], items).without_claim(withheld),
    )


@dataclass(frozen=True)
class Report:
    """All facts about one calibrated judge of one aspect of one golden set.

    Attributes:
        simulated: Whether a program made every label.
        line: All versions of the judge.
        seen_before: Why the held-out gain has no p; "" if it has one.
        chosen: Names and texts of the judge's criteria.
        board: Comparison of this judge (`place` 0) with other judges.
        aside: Names of the judges left out of `board`.
        means: Corrected means of the systems.
        n_doubted: Number of labels that reviewers called wrong.
        openings: When users viewed held-out results.
        steadiness: None if the judge scored only once.
    """

    project: str
    made_at: datetime
    golden: GoldenSummary
    simulated: bool
    run: Run
    asked: CalibrationRequest
    judged: ReportedJudge
    raters: Raters
    line: JudgeLine
    seen_before: str
    chosen: tuple[tuple[str, Criteria], ...]
    board: Leaderboard
    aside: tuple[str, ...]
    means: SystemMeans
    examination: Examination
    curve: CalibrationCurve | None
    n_doubted: int
    openings: tuple[HeldOutAccess, ...]
    steadiness: Steadiness | None = None

    @property
    def calibration(self) -> Calibration:
        return self.judged.calibration

    @property
    def aspect(self) -> str:
        return self.judged.aspect

    @property
    def labels(self) -> FloatArray:
        """The gold labels (n_labels,), without unlabelled items."""
        return self.judged.labels[~np.isnan(self.judged.labels)]

    @property
    def ours(self) -> int:
        """Index of this judge's row in `board`."""
        return self.board.row_of(0)

    @property
    def version(self) -> JudgeVersion | None:
        """The version of the judge that was measured; None if the project has no such version."""
        return self.line.of_run(self.run.run_id)

    @property
    def judge_name(self) -> str:
        """Name of the judge, for example "version 3"."""
        return "the judge" if self.version is None else self.version.name

    @property
    def gain(self) -> Difference:
        """Alignment of the judge minus that of the baseline, on held-out items.

        p is None if these items were used before to compare judges.
        """
        gain = self.calibration.gain
        return replace(gain, p=None, p_reason=self.seen_before) if self.seen_before else gain

    @property
    def held_out(self) -> Alignment:
        return self.calibration.held_out

    @property
    def sides(self) -> dict[str, SplitAlignment]:
        """Alignments of the judge, its best single criteria and the baseline, on calibration and held-out items."""
        c = self.calibration
        return {
            "calibrated judge": SplitAlignment(c.calibration, c.held_out),
            "best single criteria": c.best_single,
            "baseline": c.no_criteria,
        }
