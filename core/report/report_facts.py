"""The report on one calibrated judge: everything a reader needs to trust it, or not, as one frozen record.

Figures carry statistic, level, n and interval in their `Alignment`; None is undefined or not known, never 0.  Texts of
people and models stand here as they were given; whoever draws them escapes and shortens them.
"""

from __future__ import annotations

import platform
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.calibration_result import Calibration
from core.calibration.calibration_settings import CalibrationSettings
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
from core.comparison.corrected_means import MoreVerdicts, judged_items
from core.comparison.decisions import Preferences, preferred
from core.comparison.examination import Examination, examine_judge
from core.comparison.leaderboard import HumanCeiling
from core.comparison.supervised import plain_regression
from core.comparison.sureness import Sureness, calibrated_sureness
from core.data import load_golden
from core.data.reply_files import ScoredRows
from core.errors import AspectError, UsageError
from core.fusion.aspect_texts import OVERALL
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Interval,
    Item,
    JudgeScores,
    Measure,
    Origin,
    Scale,
    Usage,
    content_digest,
)
from core.report.figures import Sides
from core.report.figures.bars import LabelBar, label_bars
from core.stats import (
    Alpha,
    AnnotatorTest,
    AnnotatorTestSettings,
    BesidePeople,
    Difference,
    LabelledItems,
    align,
    alpha_metric,
    annotator_test,
    beside_people,
    coefficients_by_source,
    krippendorff_alpha,
    rater_table,
)
from core.stats.raters import alpha_interval
from core.stats.system_means import SystemMeans, system_means
from core.version import VERSION

if TYPE_CHECKING:
    from core.calibration.calibration_result import Calibration
    from core.comparison.decisions import Preferences
    from core.comparison.examination import Examination
    from core.fusion.model_result import ModelResult
    from core.judging.scoring_styles import Asking
    from core.project_records import CriteriaEntry, GoldenSummary, Run, Side
    from core.projects.calibration import CalibrationRequest
    from core.projects.judge_line import JudgeLine, JudgeVersion, VersionMeasured
    from core.projects.labelling import LabelPass
    from core.projects.misaligned_items import Triage, TriageVerdict
    from core.projects.review import PointDecided
    from core.projects.rounds import ProposalState
    from core.projects.run_work import HeldOutAccess
    from core.stats import Difference
    from core.stats.system_means import SystemMeans

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
    """Who labelled, how well they agree, and how the judge compares.

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


_MOST_SYSTEMS, _RESAMPLES = 60, 1_000


@dataclass(frozen=True, slots=True)
class SystemFact:
    """One system's held-out items: alignment within it at dataset level, and the means of people and judge."""

    name: str
    alignment: Alignment
    mean_label: float
    mean_score: float


def by_system(judged: ReportedJudge) -> tuple[SystemFact, ...]:
    """Each named system's held-out items, the system that people like best first.

    Empty with fewer than two systems, and for pairs of texts, each of which is of two.
    """
    golden, at = judged.golden, judged.held_out
    if golden.kind == "pair":
        return ()
    names = np.array([golden.items[k].system_id for k in at])
    known = sorted({str(name) for name in names} - {""})
    if len(known) < 2:
        return ()
    facts = []
    for name in known:
        own = at[names == name]
        measured = align(
            judged.values[own],
            LabelledItems.of(golden, judged.aspect, own),
            Measure(judged.calibration.held_out.statistic, "dataset"),
            resamples=_RESAMPLES,
            seed=judged.calibration.settings.seed,
        )
        facts.append(SystemFact(name, measured, float(judged.labels[own].mean()), float(judged.values[own].mean())))
    return tuple(sorted(facts, key=lambda fact: -fact.mean_label)[:_MOST_SYSTEMS])


def means_by_system(
    judged: ReportedJudge, more: MoreVerdicts | None = None, *, seen: Sequence[int], picked: Sequence[int] = ()
) -> SystemMeans:
    """The corrected mean of every system, of items whose labels the judge was not calibrated with, and of any more.

    `seen` are the positions of those it was calibrated with, `picked` those whose labels are no random draw.  Of pairs
    of texts no system has a mean (`strengths_of`).
    """
    if judged.golden.kind == "pair":
        return SystemMeans(
            (), (), None, None, None, 0, 0, mapped=False, scale=judged.golden.aspects[judged.aspect].scale
        )
    own = ScoredRows(judged.golden.item_ids, judged.values)
    rows = own if more is None else more.beside(own)
    return system_means(judged_items(judged.golden, judged.aspect, rows, seen=seen, picked=picked).items)


def strengths_of(judged: ReportedJudge) -> Preferences | None:
    """How strong each system is by people and by the judge; None where the items are no pairs of texts."""
    if judged.golden.kind != "pair":
        return None
    return preferred(judged.golden, judged.aspect, judged.values, seen=judged.calibration.split.calibration)


@dataclass(frozen=True)
class PassFact:
    """A labelling pass: `n_labels` labels and `n_decided` decisions of a third person on the report's aspect.

    `raters` are those who joined or gave a label; `made_this` where its labels were frozen into this golden set.
    """

    labelling_pass: LabelPass
    raters: tuple[str, ...]
    n_labels: int
    n_decided: int
    made_this: bool


@dataclass(frozen=True)
class CriteriaFact:
    """Criteria under their `name`, and their alignment in the calibration (None where it was not measured there).

    `depth` counts steps from the oldest ancestor; `chosen` where they are part of the judge.
    """

    criteria: CriteriaEntry
    name: str
    depth: int
    chosen: bool
    calibration: Alignment | None
    held_out: Alignment | None

    @property
    def criteria_id(self) -> str:
        return self.criteria.criteria_id


@dataclass(frozen=True, slots=True)
class RoundFact:
    """A refinement round that people asked for, and how many of its proposals are in each state."""

    run_id: str
    at: datetime
    proposals: Mapping[ProposalState, int]


@dataclass(frozen=True)
class History:
    """How the criteria came about.

    `made` maps origin → number of criteria there ever were; `criteria` are those that led to a version of the judge or
    were written by hand, ancestors first; `n_more` of them do not stand here.
    """

    made: Mapping[Origin, int]
    criteria: tuple[CriteriaFact, ...]
    n_more: int
    rounds: tuple[RoundFact, ...]
    decided: tuple[PointDecided, ...]

    @property
    def chosen(self) -> tuple[CriteriaFact, ...]:
        """The criteria of the judge, ancestors first."""
        return tuple(fact for fact in self.criteria if fact.chosen)


@dataclass(frozen=True, slots=True)
class CostLine:
    """What some runs cost; `seconds` from start to end, None where not known for any of them."""

    name: str
    n_runs: int
    calls: int
    usage: Usage
    seconds: float | None


@dataclass(frozen=True)
class FusionFact:
    """The newest fusion by a model that rated the aspect: `title` of its run, by which `criteria`, what it is worth."""

    title: str
    aspect: str
    criteria: str
    result: ModelResult

    @property
    def rows(self) -> list[tuple[str, Alignment, Difference | None]]:
        """Each figure by its name; of the aspect and overall also without each assistant, with the whole minus it."""
        whole = {**self.result.aspects, **({} if self.result.overall is None else {OVERALL: self.result.overall})}
        return [(name, alignment, None) for name, alignment in whole.items()] + [
            (f"{name}, without {row.name}", row.alignment, row.difference)
            for name in (self.aspect, OVERALL)
            for row in self.result.without.get(name, ())
        ]


@dataclass(frozen=True)
class Reproduce:
    """How to get the same again.  `versions` are those of the program that wrote the report."""

    command: str
    judge_digest: str
    split: str
    seed: int
    prompts: tuple[str, ...]
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """Everything about one calibrated judge of one aspect of one golden set.

    `added_by` brought the golden set in ("" where nobody said).  `costs` are those of this calibration, then of all
    runs on this aspect of this golden set by kind.  `means` are those of the systems: this judge's verdicts, corrected
    by the labels that it has not seen; `n_more` verdicts are on items beyond the golden set.  Of pairs of texts systems
    have `strengths` instead.  `openings` are the looks at the held-out items.  `line` are all versions of the judge;
    `seen_before` says why a gain on held-out carries no p, "" where it may.
    """

    project: str
    made_at: datetime
    golden: GoldenSummary
    added_by: str
    run: Run
    asked: CalibrationRequest
    calibration: Calibration
    labels: Labels
    raters: Raters
    passes: tuple[PassFact, ...]
    line: JudgeLine
    seen_before: str
    history: History
    judges: JudgeTable
    systems: tuple[SystemFact, ...]
    means: SystemMeans
    strengths: Preferences | None
    n_more: int
    sources: SourceSpread
    on_the_scale: OnTheScale
    examination: Examination
    misaligned: MisalignedItems
    openings: tuple[HeldOutAccess, ...]
    costs: tuple[CostLine, ...]
    reproduce: Reproduce
    fusion: FusionFact | None = None

    @property
    def search(self) -> str:
        """How the criteria were searched for and what came of it; a version that people made was not searched for."""
        words = self.asked.settings.words
        if self.run.kind == "version":
            before = words.removeprefix("Search: ")
            return f"People made this version: nothing was drafted for it. Its calibration's search: {before}"
        return words

    @property
    def aspect(self) -> str:
        return self.calibration.task.aspect

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
        """E.g. "version 3 of the judge"."""
        return "the judge" if self.version is None else f"{self.version.name} of the judge"

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
    def sides(self) -> tuple[Sides, Sides, Sides]:
        """The judge, the single best criteria and the judge without criteria, each on both sides of the split."""
        c = self.calibration
        return (
            Sides("calibrated judge", c.calibration, c.held_out),
            Sides("best single criteria", c.best_single.calibration, c.best_single.held_out),
            Sides("judge without criteria", c.no_criteria.calibration, c.no_criteria.held_out),
        )


def reproduce(calibration: Calibration, request: CalibrationRequest) -> Reproduce:
    """The command, the seeds, the prompts, the versions and the hashes."""
    import jinja2
    import numpy
    import scipy
    import yaml

    state = dict(calibration.judge_state)
    sampling = state.get("sampling")
    prompt = str(sampling.get("prompt", "")) if isinstance(sampling, dict) else ""
    judge = {
        "state": {key: value for key, value in state.items() if key != "notice"},
        "criteria": [criteria.text for criteria in calibration.chosen],
        "isotonic": None if calibration.isotonic is None else dict(calibration.isotonic),
    }
    return Reproduce(
        command=_command(request),
        judge_digest=content_digest("judge", judge),
        split=f"by {'source' if calibration.split.kind == 'sources' else 'source and system'}",
        seed=calibration.settings.seed,
        prompts=tuple(part for part in prompt.split("+") if part),
        versions={
            "Concord": VERSION,
            "Python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "jinja2": jinja2.__version__,
            "pyyaml": yaml.__version__,
        },
    )


def _asking_options(asking: Asking) -> list[str]:
    """How the judge was asked, as options; nothing where that was the usual way."""
    words = ["--effort", asking.effort] if asking.effort else []
    words += ["--extra-body", asking.extra] if asking.extra else []
    words += ["--steps"] if asking.writes_steps else []
    if (style := asking.style) is None:
        return words
    heat = "none" if style.temperature is None else f"{style.temperature:g}"
    words += ["--form", style.form, "--samples", f"{style.samples}", "--temperature", heat]
    words += ["--weighted"] if style.weighted else []
    words += ["--persona", style.persona] if style.persona != "none" else []
    words += ["--with-references"] * style.references
    usual = replace(style, max_tokens=0).max_tokens
    return words + (["--max-tokens", f"{style.max_tokens}"] if style.max_tokens != usual else [])


def _command(request: CalibrationRequest) -> str:
    """The command that runs the same calibration on the golden set in a file."""
    chosen, usual = request.settings, CalibrationSettings()
    words = ["python", "-m", "core", "calibrate", "GOLDEN", "--aspect", request.aspect, "--judge", request.judge_spec]
    for each in fields(chosen):
        value, option = getattr(chosen, each.name), each.name.replace("_", "-")
        if value is False:
            words.append(f"--no-{option}")
        elif value != getattr(usual, each.name) and each.name != "seed":
            words += [f"--{option}", f"{value}"]
    words += ["--seed", f"{chosen.seed}"]
    words += ["--definition", request.definition] if request.definition else []
    words += _asking_options(request.asking)
    words += ["--scale", f"{request.scale}"] if request.scale is not None else []
    return shlex.join(words)
