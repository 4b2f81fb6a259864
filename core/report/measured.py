"""What a calibrated judge reached, beside every other judge and item by item; its labels and the people behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.calibration_result import Calibration
from core.calibration.proposals import standardised_gap
from core.comparison import (
    CalibrationCurve,
    Leaderboard,
    Row,
    calibration_curve,
    compare_table,
    costly,
    human_ceiling,
)
from core.comparison.examination import Examination, examine_judge
from core.comparison.leaderboard import HumanCeiling
from core.comparison.supervised import plain_regression
from core.comparison.sureness import Sureness, calibrated_sureness
from core.data import load_golden
from core.errors import AspectError, UsageError
from core.records import FloatArray, GoldenSet, IntArray, Interval, Item, JudgeScores
from core.report.figures.bars import LabelBar, label_bars
from core.stats import (
    Alpha,
    AnnotatorTest,
    AnnotatorTestSettings,
    BesidePeople,
    Difference,
    LabelledItems,
    alpha_metric,
    annotator_test,
    beside_people,
    coefficients_by_source,
    krippendorff_alpha,
    rater_table,
)
from core.stats.raters import alpha_interval

if TYPE_CHECKING:
    from core.project_records import Side
    from core.projects.misaligned_items import Triage, TriageVerdict
    from core.projects.review import PointDecided


_MOST_POINTS = 1_000
_MIN_GROUP = 3
"""Items of a source from which a coefficient of its own says anything: two can only give +1 or -1."""
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


@dataclass(frozen=True)
class JudgeTable:
    """Every judge of the registry on the items that none has seen; `ours` is the row of this report's judge.

    `aside` are those that would take too many items from ours: seen by them, or without a score from them.
    """

    board: Leaderboard
    ours: int
    aside: tuple[str, ...]

    def without_claim(self, reason: str) -> JudgeTable:
        """The same, nothing claimed of our judge, for `reason`; unchanged for ""."""
        return replace(self, board=self.board.without_p(self.rows[self.ours].place, reason))

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.board.rows

    def ours_minus(self, row: int) -> Difference | None:
        """Our judge minus that of `row` on the same items, `p` corrected over the table; None for ours itself."""
        pairwise = self.board.pairwise
        if pairwise is None or row == self.ours:
            return None
        p = float(pairwise.p_holm[self.ours, row])
        return replace(pairwise.pair(self.ours, row), p=None if np.isnan(p) else p)


def judge_table(judged: ReportedJudge, registry: Sequence[JudgeScores]) -> JudgeTable:
    """The judges of `registry` (our own among them, or added) where all of them scored and none has seen a label."""
    calibration = judged.calibration
    own = (judge for judge in registry if judge.run_id == judged.run_id and judge.kind == "calibrated")
    kept = next(own, judged.scores)
    ours = replace(kept, mapped=judged.scores.mapped)
    others = [judge for judge in registry if judge is not kept]
    aside = set(costly([ours, *others], 0))
    board = compare_table(
        judged.golden,
        judged.aspect,
        [ours, *(judge for k, judge in enumerate(others, 1) if k not in aside)],
        calibration.held_out.measure,
        regression=plain_regression(judged.golden, judged.aspect, seed=calibration.settings.seed),
        seed=calibration.settings.seed,
    )
    place = next(k for k, row in enumerate(board.rows) if row.place == 0)
    return JudgeTable(board, place, tuple(judge.name for k, judge in enumerate(others, 1) if k in aside))


def examined(judged: ReportedJudge) -> Examination:
    """Where the judge fails and what it leans on, on items whose labels it has not seen."""
    judge, model = replace(judged.scores, name="the judge"), str(judged.calibration.judge_state.get("spec", ""))
    statistic = judged.calibration.held_out.statistic
    return examine_judge(judged.golden, judged.aspect, judge, statistic=statistic, model=model)


@dataclass(frozen=True, slots=True)
class SourceSpread:
    """The coefficients of single held-out sources, rising and without names; undefined ones are left out."""

    values: tuple[float, ...]
    n_sources: int


def by_source(judged: ReportedJudge) -> SourceSpread:
    """The coefficients within each held-out source of three items or more."""
    at = judged.held_out
    if not at.size:
        return SourceSpread((), 0)
    statistic = judged.calibration.held_out.statistic
    items = LabelledItems.of(judged.golden, judged.aspect, at)
    values = coefficients_by_source(judged.values[at], items, statistic, min_group=_MIN_GROUP)[0]
    return SourceSpread(tuple(np.sort(values[~np.isnan(values)]).tolist()), int(np.unique(items.sources).size))


@dataclass(frozen=True)
class OnTheScale:
    """What scores mean in points of the scale: `scores` and `labels` of a sample of the `n` held-out items.

    `curve` holds the mean label by score, and the errors before and after the map, `sure` how sure the verdicts are;
    both None without held-out items.
    """

    scores: FloatArray
    labels: FloatArray
    n: int
    curve: CalibrationCurve | None
    sure: Sureness | None = None


def on_the_scale(judged: ReportedJudge) -> OnTheScale:
    """Scores beside labels on the held-out items."""
    at, made, seed = judged.held_out, judged.calibration, judged.calibration.settings.seed
    drawn = at
    if at.size > _MOST_POINTS:
        drawn = np.sort(np.random.default_rng(seed).choice(at, _MOST_POINTS, replace=False))
    try:
        curve = calibration_curve(judged.golden, judged.aspect, judged.scores, own=made.score_map, seed=seed)
    except UsageError:  # no held-out item has both a score and a label
        curve = None
    sure = calibrated_sureness(judged.golden, made) if at.size else None
    return OnTheScale(judged.values[drawn], judged.labels[drawn], int(at.size), curve, sure)


@dataclass(frozen=True)
class Example:
    """A misaligned item.  `gap` is standardised score minus standardised label; None is not known.

    `triage` is None where nobody has looked, `decision` where nobody has decided in the review.
    """

    item: Item
    side: Side
    label: float | None
    score: float | None
    gap: float | None
    triage: Triage | None
    decision: PointDecided | None


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


def misaligned(
    judged: ReportedJudge, triage: Mapping[str, Triage], decided: Mapping[str, PointDecided]
) -> MisalignedItems:
    """Calibration items far apart, and every item that people looked at, as the final judge scores them.

    `triage` and `decided` map item id → what somebody found, and what was decided in the review.
    """
    golden, at = judged.golden, np.asarray(judged.calibration.split.calibration, dtype=np.intp)
    gaps = np.full(len(golden.items), np.nan)
    gaps[at] = standardised_gap(judged.values[at], judged.labels[at])
    least = judged.calibration.settings.min_gap
    triaged = [k for k, item_id in enumerate(golden.item_ids) if item_id in triage]
    others = [int(k) for k in at if abs(gaps[k]) >= least and golden.item_ids[k] not in triage]
    chosen = [*_furthest(gaps, triaged)[:_MOST_TRIAGED], *_furthest(gaps, others)[:_MOST_OTHERS]]
    known, held_out = set(golden.item_ids), set(judged.calibration.split.held_out)
    verdicts = Counter(looked.verdict for item_id, looked in triage.items() if item_id in known and looked.verdict)

    def example(k: int) -> Example:
        item, sides = golden.items[k], (judged.labels, judged.values, gaps)
        side: Side = "held-out" if k in held_out else "calibration"
        label, score, gap = (None if np.isnan(values[k]) else float(values[k]) for values in sides)
        return Example(item, side, label, score, gap, triage.get(item.item_id), decided.get(item.item_id))

    return MisalignedItems(
        n_scored=int((~np.isnan(gaps)).sum()),
        n_apart=int((np.abs(gaps) >= least).sum()),
        least=least,
        by_verdict=dict(verdicts.most_common()),
        examples=tuple(map(example, chosen)),
    )


def _furthest(gaps: FloatArray, positions: Iterable[int]) -> list[int]:
    """Largest gap first, those without one last."""
    return sorted(positions, key=lambda k: (bool(np.isnan(gaps[k])), -abs(float(gaps[k])), k))


# ── labels and people ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Labels:
    """The gold labels: how many fall into each bar, and their mean (None without any).

    `simulated`: every one of them was made by a program, for Concord's sample data.
    """

    bars: tuple[LabelBar, ...]
    mean: float | None
    simulated: bool

    @property
    def n(self) -> int:
        return sum(bar.n for bar in self.bars)

    @property
    def largest_share(self) -> float | None:
        """The share of the fullest bar; None without labels."""
        return max(bar.n for bar in self.bars) / self.n if self.n else None


def gold_labels(golden: GoldenSet, aspect: str) -> Labels:
    """The labels of one aspect."""
    labels = golden.labels(aspect)
    labels = labels[~np.isnan(labels)]
    mean = float(labels.mean()) if labels.size else None
    return Labels(label_bars(labels, golden.aspects[aspect].scale), mean, _simulated(golden, aspect))


@cache
def _sample_labels() -> frozenset[tuple[str, str, str, float]]:
    """(aspect, source, target, label) of every label of the sample data, all made by a program."""
    goldens = [load_golden(path) for path in sorted(_SAMPLE_FOLDER.iterdir()) if path.suffix in (".jsonl", ".csv")]
    return frozenset(label for golden in goldens for aspect in golden.aspects for label in _labels_of(golden, aspect))


def _labels_of(golden: GoldenSet, aspect: str) -> Iterator[tuple[str, str, str, float]]:
    for item, value in zip(golden.items, golden.aspects[aspect].values, strict=True):
        if value is not None:
            yield aspect, item.source, item.target, value


def _simulated(golden: GoldenSet, aspect: str) -> bool:
    """Whether every label of the aspect is one of the sample data's, under whatever name the golden set goes."""
    own = list(_labels_of(golden, aspect))
    return bool(own) and _sample_labels().issuperset(own)


@dataclass(frozen=True)
class Raters:
    """By whom labelled, how well they agree, and the judge beside them.

    `n_rated` maps rater → items rated on this aspect, empty without single ratings.  `alpha` is Krippendorff's, with
    its interval; `ceiling` is one rater against the mean of the others on the held-out items that the judge is
    evaluated on.  `beside` compares the judge with them there, both against the mean of the other raters; `tests` are
    the annotator test, clustered by source where items share sources, and the paper's own form.
    """

    n_rated: Mapping[str, int]
    panel: str
    alpha: Alpha
    alpha_interval: Interval | None
    ceiling: HumanCeiling
    beside: BesidePeople | None = None
    tests: tuple[AnnotatorTest, ...] = ()

    def without_claim(self, reason: str) -> Raters:
        """The same figures, nothing claimed of the judge beside people, for `reason`; unchanged for ""."""
        beside = self.beside and self.beside.without_claim(reason)
        return replace(self, beside=beside, tests=tuple(test.without_claim(reason) for test in self.tests))


def raters_of(judged: ReportedJudge) -> Raters:
    """Raters and their agreement; a golden set with one label an item has neither, and says so."""
    golden, aspect, at, measure = judged.golden, judged.aspect, judged.held_out, judged.calibration.held_out.measure
    scale = golden.aspects[aspect].scale
    ceiling = human_ceiling(golden, aspect, at, measure, seed=judged.calibration.settings.seed)
    try:
        table = rater_table(golden, aspect)
    except AspectError as error:
        return Raters({}, "", Alpha(None, alpha_metric(scale), 0, 0, reason=str(error)), None, ceiling)
    n_rated = table.rated.sum(axis=1)
    here, scores, items = table.at(at), judged.values[at], LabelledItems.of(golden, aspect, at)
    as_labels = judged.scores.on_raters_scale[at]
    return Raters(
        n_rated={name: int(n) for name, n in zip(table.raters, n_rated, strict=True) if name},
        panel=table.panel,
        alpha=krippendorff_alpha(table.values, alpha_metric(scale)),
        alpha_interval=alpha_interval(table, scale, golden.source_codes),
        ceiling=ceiling,
        beside=beside_people(here, scores, items, measure),
        tests=tuple(
            annotator_test(here, as_labels, items, AnnotatorTestSettings(clustered=by_source))
            for by_source in (None, False)
        ),
    )
