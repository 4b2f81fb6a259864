"""Measure verdicts against raters: alignment, differences, comparison with a rater, thresholds, and preferences."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from core.comparison.given_verdicts import JudgeFiles, calibration_items, labelled_verdicts
from core.comparison.supervised import plain_regression
from core.data.judge_results import AnyVerdicts, as_verdicts
from core.data.reshape import systems_of
from core.data.split import task_of
from core.errors import UsageError
from core.records import Alignment, FloatArray, GoldenSet, JsonRecord
from core.stats import (
    EPSILON,
    AgreementReport,
    AnnotatorTest,
    Comparison,
    LabelledItems,
    MeasureSettings,
    RaterComparison,
    agreement_report,
    paired_difference,
    rater_table,
    williams_test,
)
from core.stats import align as aligned
from core.stats import annotator_test as tested_annotator
from core.stats import compare_with_raters as compare_on_items
from core.stats.alignment import compare_with_regression
from core.stats.choices import (
    PreferenceAgreement,
    Strengths,
    YesNo,
    preference_agreement,
    shares_for_second,
    strengths,
    yes_no,
)
from core.wording import counted


def align(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> Alignment:
    """Measure the alignment of a judge's scores with the raters on an aspect, with an interval over sources.

    Args:
        verdicts: A file of verdicts or replies, Verdict records, or scores by item id. Only items in `verdicts` count.
            Items without a score are counted as `n_unscored`.
        judge_file: Judge file whose texts show which items the judge was calibrated on. Verdicts can also be marked as
            calibration items.
        all_items: Keep calibration items (counted as `n_calibration_kept`), which makes the result optimistic. By
            default, calibration items are left out (`n_calibration_left_out`).
    """
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    how = settings or MeasureSettings()
    return given.counted(aligned(given.scores, given.items, how.on(given.items), seed=how.seed))


def align_all(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> AgreementReport:
    """Compare a judge's scores with the raters by all statistics: alignments at all levels, errors, kappa, classes.

    Arguments, intervals and alignments are as in `align`. If every score has a value mapped to the raters' scale,
    errors, kappa and classes use the mapped values (`basis` says so).
    """
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    how, scale = settings or MeasureSettings(), golden.aspects[aspect].scale
    report = agreement_report(given.scores, given.items, scale=scale, seed=how.seed, mapped=given.mapped)
    return replace(report, alignments=tuple(map(given.counted, report.alignments)))


def compare(
    golden: GoldenSet,
    verdicts_a: AnyVerdicts,
    verdicts_b: AnyVerdicts,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> Comparison:
    """Test whether judge a agrees better with the raters than judge b, on the labelled items that both scored.

    The difference is paired over sources. Its p value requires at least 8 sources. The result also includes Williams'
    test and a comparison of both judges with a plain regression. Williams' test always uses Pearson at
    dataset level and treats items as independent. The regression is fitted to the labels of other sources.

    Arguments and omitted items are as in `align`. `judge_file` can name the files of both judges. Raises UsageError if
    there is no common item.
    """
    task = task_of(golden, aspect)
    tables = [as_verdicts(verdicts, task) for verdicts in (verdicts_a, verdicts_b)]
    seen = np.union1d(*(calibration_items(golden, table, judge_file) for table in tables))
    a, b = (
        labelled_verdicts(golden, table, aspect, seen=seen, name=name, all_items=all_items)
        for table, name in zip(tables, "ab", strict=True)
    )
    positions = np.intersect1d(a.scored, b.scored)
    if not positions.size:
        raise UsageError(
            f"No labelled item of {golden.name} was scored by both judges: the first scored {a.scored.size} items, and "
            f"the second scored {b.scored.size} others. Score the same items with both judges."
        )
    items = LabelledItems.of(golden, aspect, positions)
    how = settings or MeasureSettings()
    measure = how.on(items)
    of_a, of_b = (side.scores[np.searchsorted(side.items.positions, positions)] for side in (a, b))
    difference = paired_difference(of_a, of_b, items, measure, seed=how.seed)
    difference = replace(difference, a=a.counted(difference.a), b=b.counted(difference.b))
    regression, bar = plain_regression(golden, aspect, seed=how.seed), None
    if not regression.reason:
        predicted, both = regression.values[positions], np.stack([of_a, of_b])
        bar = compare_with_regression(predicted, regression.n_labels, both, items, measure, seed=how.seed)
    return Comparison(difference, williams_test(of_a, of_b, items), bar)


def compare_with_raters(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> RaterComparison:
    """Compare the judge with a rater, each measured against the mean of the other raters.

    Calibration items are left out as in `align`. Raises AspectError if there are no individual ratings.
    """
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    table, measure = rater_table(golden, aspect), (settings or MeasureSettings()).on(given.items)
    found = compare_on_items(table.at(given.items.positions), given.scores, given.items, measure)
    return replace(found, judge=given.counted(found.judge))


def annotator_test(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    epsilon: float = EPSILON,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> AnnotatorTest:
    """Test whether the judge could replace a rater (Alternative Annotator Test).

    The judge's labels are its scores. If every score has a value mapped to the raters' scale, the mapped values are
    used instead. If items share sources, the test is clustered by source. `core.stats` explains `epsilon`; calibration
    items are left out as in `align`. Raises AspectError if there are no individual ratings.
    """
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    here = rater_table(golden, aspect).at(given.items.positions)
    return tested_annotator(here, given.scores if given.mapped is None else given.mapped, given.items, epsilon)


# ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────

NO_SYSTEMS = "no pair names both of its systems (columns model_a and model_b)"


@dataclass(frozen=True)
class Preferences(JsonRecord):
    """Strengths of systems by the preferences of raters and of a judge, and how often the judge agrees with the raters.

    Attributes:
        by_people: Strengths of the systems according to the raters.
        by_judge: Strengths of the systems according to the judge; None without verdicts.
        agreement: Agreement of judge and raters; None without verdicts.
        n_unknown: Number of pairs that do not name two systems. They count for `agreement`, not for strengths.
        n_itself: Number of pairs of texts from the same system. They count for `agreement`, not for strengths.
    """

    by_people: Strengths
    by_judge: Strengths | None
    agreement: PreferenceAgreement | None
    n_unknown: int = 0
    n_itself: int = 0
    n_calibration_left_out: int = field(default=0, metadata={"silent": True})
    n_calibration_kept: int = field(default=0, metadata={"silent": True})

    @property
    def caution(self) -> str:
        """A sentence about pairs that are left out of the strengths; "" if none or all are left out."""
        left_out = {"without two known systems": self.n_unknown, "of texts from the same system": self.n_itself}
        known = [f"{counted(n, 'pair')} {why}" for why, n in left_out.items() if n and self.by_people.n]
        return f"The strengths exclude {' and '.join(known)}." if known else ""


def preferred(
    golden: GoldenSet, aspect: str, scores: FloatArray | None = None, *, seen: Collection[int] = ()
) -> Preferences:
    """Rank the systems of the pairs in `golden` by raters' labels and, if given, by a judge's `scores`.

    Args:
        scores: Scores (n_items,) of the judge, NaN = unscored. Labelled and unlabelled pairs count.
        seen: Positions of items whose labels were used to choose or fit the judge. The agreement leaves them out.
    """
    pairs = [systems_of(item.system_id) for item in golden.items]
    names = sorted({name for pair in pairs if pair for name in pair})
    code = {name: k for k, name in enumerate(names)}
    first, second = (np.array([code[pair[side]] if pair else 0 for pair in pairs], dtype=np.intp) for side in (0, 1))

    def strengths_by(won: FloatArray) -> Strengths:
        if not names:
            return Strengths((), 0, 0, NO_SYSTEMS)
        return strengths(first, second, won, golden.source_codes, names)

    labels, scale = golden.labels(aspect), golden.aspects[aspect].scale
    n_left_out = pairs.count(None), sum(pair is not None and pair[0] == pair[1] for pair in pairs)
    people = strengths_by(shares_for_second(labels, scale))
    if scores is None:
        return Preferences(people, None, None, *n_left_out)
    middle = (scale.low + scale.high) / 2.0
    won = np.where(np.isnan(scores), np.nan, (np.sign(scores - middle) + 1.0) / 2.0)
    held_out = labels.copy()
    held_out[list(seen)] = np.nan
    agreement = preference_agreement(scores, held_out, golden.source_codes, scale)
    return Preferences(people, strengths_by(won), agreement, *n_left_out)


def choose_threshold(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    yes_from: float | None = None,
    miss_cost: float = 1.0,
    alarm_cost: float = 1.0,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> YesNo:
    """Choose the score from which a judge says yes, and estimate the AUC and the errors of the threshold on new items.

    Args:
        verdicts: As in `align`.
        yes_from: Lowest label that means yes. May be None only on a scale of two steps, where the upper step means yes.
        miss_cost: Cost of a missed yes, relative to `alarm_cost`.
        alarm_cost: Cost of a false yes.
        judge_file: As in `align`.
        all_items: Keep items whose labels were used to choose or fit the judge.

    Raises:
        AspectError: The aspect is unknown.
        UsageError: A cost is not above 0, or `yes_from` is missing or outside the scale.
    """
    scale = task_of(golden, aspect).scale
    if yes_from is None and not scale.two_steps:
        raise UsageError(
            f"The labels of {aspect} use the scale {scale}. Set --yes-from to the lowest label that counts as a yes."
        )
    if not (0 < miss_cost < np.inf and 0 < alarm_cost < np.inf):
        raise UsageError(
            f"Costs must be greater than 0; got {miss_cost:g} for a miss and {alarm_cost:g} for a false alarm."
        )
    limit = scale.high if yes_from is None else yes_from
    if not scale.low < limit <= scale.high:
        raise UsageError(f"--yes-from must be greater than {scale.low:g} and at most {scale.high:g}; got {limit:g}.")
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    scores, labels = given.verdicts.aligned(golden.item_ids), golden.labels(aspect).copy()
    labels[given.seen] = np.nan
    yes = np.where(np.isnan(labels), np.nan, labels >= limit - 1e-9)
    chosen = yes_no(scores, yes, golden.source_codes, miss_cost=miss_cost, alarm_cost=alarm_cost)
    return given.counted(chosen)


def preferences(
    golden: GoldenSet,
    aspect: str,
    verdicts: AnyVerdicts | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> Preferences:
    """Rank the systems of the pairs in `golden` by raters and, if there are `verdicts`, by a judge.

    The judge's ranking uses all pairs that it scored, labelled or not. The agreement of judge and raters leaves out
    pairs whose labels were used to choose or fit the judge, unless `all_items` is True.

    Raises:
        UsageError: The golden set has no pairs.
        AspectError: The aspect is unknown.
    """
    task_of(golden, aspect)
    if golden.kind != "pair":
        raise UsageError(
            f"{golden.name} doesn't contain pairs of texts. A file of pairs needs the columns text_a, text_b, model_a, "
            "model_b and winner (A, B or tie)."
        )
    if verdicts is None:
        return preferred(golden, aspect)
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items, may_be_none=True)
    return given.counted(preferred(golden, aspect, given.verdicts.aligned(golden.item_ids), seen=given.seen.tolist()))
