"""The report on one calibrated judge: everything a reader needs to trust it, or not, as one frozen record.

Figures carry statistic, level, n and interval in their `Alignment`; None is undefined or not known, never 0.  Texts of
people and models stand here as they were given; whoever draws them escapes and shortens them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.calibration_records import BothSides, Calibration
from core.calibration.proposals import standardised_gap
from core.comparison import CalibrationCurve, Leaderboard, calibration_curve, compare_table, costly, human_ceiling
from core.comparison.corrected_means import judged_items
from core.comparison.examination import Examination, examine_judge
from core.comparison.steadiness import Steadiness
from core.comparison.supervised import plain_regression
from core.comparison.sureness import Sureness, calibrated_sureness
from core.data import load_golden
from core.data.reply_files import ScoredRows
from core.errors import AspectError, UsageError
from core.records import Alignment, Criteria, FloatArray, GoldenSet, IntArray, Interval, Item, JudgeScores, Scale
from core.stats import (
    Alpha,
    AnnotatorTest,
    BesidePeople,
    Difference,
    LabelledItems,
    alpha_metric,
    annotator_test,
    beside_people,
    krippendorff_alpha,
    rater_table,
)
from core.stats.raters import alpha_interval
from core.stats.system_means import SystemMeans, system_means

if TYPE_CHECKING:
    from core.project_records import GoldenSummary, Run, Side
    from core.projects.calibration import CalibrationRequest
    from core.projects.judge_line import JudgeLine, JudgeVersion, VersionMeasured
    from core.projects.reasons import Triage, TriageVerdict
    from core.projects.run_control import HeldOutAccess

_MOST_TRIAGED, _MOST_OTHERS = 20, 5
_SAMPLE_FOLDER = Path(__file__).parents[2] / "sample_data"


@dataclass(frozen=True)
class ReportedJudge:
    """A finished calibration and its golden set, the final judge's scores in the golden set's order."""

    golden: GoldenSet
    calibration: Calibration
    run_id: str

    @property
    def aspect(self) -> str:
        return self.calibration.task.aspect

    @cached_property
    def values(self) -> FloatArray:
        """(n_items,) the final judge's scores, NaN where there is none."""
        return self._over_all(self.calibration.scores.values[0])

    def _over_all(self, scores: FloatArray) -> FloatArray:
        known = dict(zip(self.calibration.scores.item_ids, scores, strict=True))
        return np.array([known.get(item_id, np.nan) for item_id in self.golden.item_ids], dtype=np.float64)

    @cached_property
    def labels(self) -> FloatArray:
        """(n_items,) the gold labels, NaN where there is none."""
        return self.golden.labels(self.aspect)

    @cached_property
    def held_out(self) -> IntArray:
        """Positions of the held-out items that the judge is evaluated on: labelled and scored."""
        at = np.asarray(self.calibration.split.held_out, dtype=np.intp)
        return at[~np.isnan(self.values[at]) & ~np.isnan(self.labels[at])]

    @cached_property
    def scores(self) -> JudgeScores:
        """The final judge as the judge registry holds it."""
        return JudgeScores(
            name=f"{self.calibration.judge_state.get('spec', 'judge')} · calibrated",
            kind="calibrated",
            aspect=self.aspect,
            values=self.values,
            seen=self.calibration.split.calibration,
            run_id=self.run_id,
            calls_per_item=float(len(self.calibration.chosen)),
            turned=None if (turned := self.calibration.scores.turned) is None else self._over_all(turned[0]),
            mapped=None if (score_map := self.calibration.score_map) is None else score_map.apply(self.values),
        )

    def board(self, registry: Sequence[JudgeScores]) -> tuple[Leaderboard, tuple[str, ...]]:
        """This judge, at place 0, and those of `registry` on the items that none has seen and all scored.

        Then the names of those left out, which would take too many items from ours: seen by them, or without a score.
        """
        how = self.calibration
        own = (judge for judge in registry if judge.run_id == self.run_id and judge.kind == "calibrated")
        kept = next(own, self.scores)
        judges = [replace(kept, mapped=self.scores.mapped), *(judge for judge in registry if judge is not kept)]
        aside, seed = set(costly(judges, 0)), how.settings.seed
        table = compare_table(
            self.golden,
            self.aspect,
            [judge for k, judge in enumerate(judges) if k not in aside or k == 0],
            how.held_out.measure,
            regression=plain_regression(self.golden, self.aspect, seed=seed),
            seed=seed,
        )
        return table, tuple(judge.name for k, judge in enumerate(judges) if k in aside and k)

    def examined(self) -> Examination:
        """Where the judge fails and what it leans on, on items whose labels it has not seen."""
        judge, model = replace(self.scores, name="the judge"), str(self.calibration.judge_state.get("spec", ""))
        statistic = self.calibration.held_out.statistic
        return examine_judge(self.golden, self.aspect, judge, statistic=statistic, model=model)

    def curve(self) -> CalibrationCurve | None:
        """What scores mean in points of the scale, held-out; None where no item has both a score and a label."""
        own, seed = self.calibration.score_map, self.calibration.settings.seed
        try:
            return calibration_curve(self.golden, self.aspect, self.scores, own=own, seed=seed)
        except UsageError:
            return None

    def sure(self) -> Sureness | None:
        """How sure its verdicts are, held-out; None without such items."""
        return calibrated_sureness(self.golden, self.calibration) if self.held_out.size else None

    def means(self, *, seen: Collection[int], picked: Collection[int]) -> SystemMeans:
        """The corrected mean of every system, by labels the judge was not calibrated with.

        `seen` are the positions of those it was calibrated with, `picked` those whose labels are no random draw.  Of
        pairs of texts no system has a mean.
        """
        if self.golden.kind == "pair":
            scale = self.golden.aspects[self.aspect].scale
            return SystemMeans((), (), None, None, 0, 0, mapped=False, scale=scale)
        rows = ScoredRows(self.golden.item_ids, self.values)
        return system_means(judged_items(self.golden, self.aspect, rows, seen=seen, picked=picked)[0])


# ── labels and people ────────────────────────────────────────────────────────────────────────────────────────


@cache
def _sample_labels() -> frozenset[tuple[str, str, str, float]]:
    """(aspect, source, target, label) of every label of the sample data, all made by a program."""
    goldens = [load_golden(path) for path in sorted(_SAMPLE_FOLDER.iterdir()) if path.suffix in (".jsonl", ".csv")]
    return frozenset(label for golden in goldens for aspect in golden.aspects for label in _labels_of(golden, aspect))


def _labels_of(golden: GoldenSet, aspect: str) -> Iterator[tuple[str, str, str, float]]:
    for item, value in zip(golden.items, golden.aspects[aspect].values, strict=True):
        if value is not None:
            yield aspect, item.source, item.target, value


def is_simulated(golden: GoldenSet, aspect: str) -> bool:
    """Whether every label of the aspect is one of the sample data's, under whatever name the golden set goes."""
    own = list(_labels_of(golden, aspect))
    return bool(own) and _sample_labels().issuperset(own)


@dataclass(frozen=True)
class Raters:
    """Who labelled, how well they agree, and how the judge compares.

    `n_rated` maps rater → items rated on this aspect, empty without single ratings.  `alpha` is Krippendorff's, with
    its interval; `ceiling` is one rater against the mean of the others on the held-out items that the judge is
    evaluated on.  `beside` compares the judge with them there, both against the mean of the other raters; `test` is the
    annotator test, clustered by source where items share sources.
    """

    n_rated: Mapping[str, int]
    panel: str
    alpha: Alpha
    alpha_interval: Interval | None
    ceiling: Alignment
    beside: BesidePeople | None = None
    test: AnnotatorTest | None = None

    def without_claim(self, reason: str) -> Raters:
        """The same figures, nothing claimed of the judge beside people, for `reason`; unchanged for ""."""
        beside, test = self.beside and self.beside.without_claim(reason), self.test and self.test.without_claim(reason)
        return replace(self, beside=beside, test=test)


def raters_of(judged: ReportedJudge) -> Raters:
    """Raters and their agreement; a golden set with one label an item has neither, and says so."""
    golden, aspect, at, measure = judged.golden, judged.aspect, judged.held_out, judged.calibration.held_out.measure
    scale = golden.aspects[aspect].scale
    ceiling = human_ceiling(golden, aspect, at, measure, seed=judged.calibration.settings.seed)
    try:
        table = rater_table(golden, aspect)
    except AspectError as error:
        return Raters({}, "", Alpha(None, alpha_metric(scale), 0, 0, reason=str(error)), None, ceiling)
    here, items = table.at(at), LabelledItems.of(golden, aspect, at)
    return Raters(
        {name: int(n) for name, n in zip(table.raters, table.rated.sum(axis=1), strict=True) if name},
        table.panel,
        krippendorff_alpha(table.values, alpha_metric(scale)),
        alpha_interval(table, scale, golden.source_codes),
        ceiling,
        beside_people(here, judged.values[at], items, measure),
        annotator_test(here, judged.scores.on_raters_scale[at], items),
    )


# ── where judge and people disagree ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Example:
    """A misaligned item.  `gap` is standardised score minus standardised label; None is not known.

    `triage` is None where nobody has looked.
    """

    item: Item
    side: Side
    label: float | None
    score: float | None
    gap: float | None
    triage: Triage | None


@dataclass(frozen=True)
class MisalignedItems:
    """Where judge and people disagree: `n_apart` of the `n_scored` calibration items lie `least` or more apart.

    `by_verdict` counts all that people looked at; `examples` are some: those looked at first, furthest apart first.
    """

    n_scored: int
    n_apart: int
    least: float
    by_verdict: Mapping[TriageVerdict, int]
    examples: tuple[Example, ...]


def misaligned(judged: ReportedJudge, triage: Mapping[str, Triage]) -> MisalignedItems:
    """Calibration items far apart, and every item that people looked at, as the final judge scores them.

    `triage` maps item id → what somebody found.
    """
    golden, at = judged.golden, np.asarray(judged.calibration.split.calibration, dtype=np.intp)
    gaps = np.full(len(golden.items), np.nan)
    gaps[at] = standardised_gap(judged.values[at], judged.labels[at])
    least = judged.calibration.settings.min_gap
    furthest = np.argsort(-np.nan_to_num(np.abs(gaps), nan=-1.0), kind="stable").tolist()  # those without a gap last
    triaged = [k for k in furthest if golden.item_ids[k] in triage]
    others = [k for k in furthest if abs(gaps[k]) >= least and golden.item_ids[k] not in triage]
    held_out = set(judged.calibration.split.held_out)
    verdicts = Counter(verdict for k in triaged if (verdict := triage[golden.item_ids[k]].verdict))

    def example(k: int) -> Example:
        item: Item = golden.items[k]
        sides = (judged.labels, judged.values, gaps)
        label, score, gap = (None if np.isnan(values[k]) else float(values[k]) for values in sides)
        side: Side = "held-out" if k in held_out else "calibration"
        return Example(item, side, label, score, gap, triage.get(item.item_id))

    return MisalignedItems(
        int((~np.isnan(gaps)).sum()),
        int((np.abs(gaps) >= least).sum()),
        least,
        dict(verdicts.most_common()),
        tuple(example(k) for k in (*triaged[:_MOST_TRIAGED], *others[:_MOST_OTHERS])),
    )


# ── the whole ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Report:
    """Everything about one calibrated judge of one aspect of one golden set.

    `simulated`: every label was made by a program, for Concord's sample data.  `line` are all versions of the judge;
    `seen_before` says why a gain on held-out carries no p, "" where it may.  `chosen` are the criteria of the judge
    with their names.  In `board` our judge has place 0; `aside` are judges that are not in it.  `means` are those of
    the systems: this judge's verdicts, corrected by the labels that it has not seen.  `openings` are the looks at the
    held-out items.  `steadiness` is what asking the judge again showed, None where nobody did.
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
    sure: Sureness | None
    misaligned: MisalignedItems
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
        """(n_labels,) the gold labels."""
        return self.judged.labels[~np.isnan(self.judged.labels)]

    @property
    def ours(self) -> int:
        """The row of `board` that is this judge's."""
        return self.board.row_of(0)

    @property
    def search(self) -> str:
        """How the criteria were searched for and what came of it; a version that people made was not searched for."""
        words = self.asked.settings.words
        if self.run.kind == "version":
            before = words.removeprefix("Search: ")
            return f"People made this version: nothing was drafted for it. Its calibration's search: {before}"
        return words

    @property
    def version(self) -> JudgeVersion | None:
        """The version of the judge that was measured, or None where none was kept."""
        return self.line.of_run(self.run.run_id)

    @property
    def measured(self) -> VersionMeasured | None:
        """The measurement of that version which this report is of, or None."""
        entries = () if self.version is None else self.version.measured
        return next((entry for entry in reversed(entries) if entry.run_id == self.run.run_id), None)

    @property
    def judge_name(self) -> str:
        """E.g. "version 3"."""
        return "the judge" if self.version is None else self.version.name

    @property
    def gain(self) -> Difference:
        """The judge minus the one without criteria, held-out; without p once versions were compared on these items."""
        gain = self.calibration.gain
        return replace(gain, p=None, p_reason=self.seen_before) if self.seen_before else gain

    @property
    def scale(self) -> Scale:
        """The scale of the gold labels."""
        known = self.golden.aspect(self.aspect)
        return self.calibration.task.scale if known is None else known.scale

    @property
    def held_out(self) -> Alignment:
        """The figure that counts: the judge's alignment on the items that did not choose it."""
        return self.calibration.held_out

    @property
    def n_held_out(self) -> int:
        return len(self.calibration.split.held_out)

    @property
    def sides(self) -> dict[str, BothSides]:
        """The judge, the single best criteria and the baseline, each on both sides of the split."""
        c = self.calibration
        return {
            "calibrated judge": BothSides(c.calibration, c.held_out),
            "best single criteria": c.best_single,
            "baseline": c.no_criteria,
        }
