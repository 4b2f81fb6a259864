"""What the Python face measures: align, compare, ceiling and tests beside people; the task and split of every run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from core.calibration.records import Calibration
from core.comparison.decisions import Preferences
from core.comparison.supervised import plain_regression
from core.data.known_texts import texts_behind
from core.data.scale import off_scale
from core.data.split import task_of, text_digest
from core.data.values import Codes
from core.errors import AspectError, UsageError
from core.judge_files import read_verdicts
from core.judge_files.judge_reading import kind_of_file, open_file
from core.judge_files.judge_writing import Known, label_warnings, needs_of
from core.judge_files.verdict_files import OFF_SCALE
from core.judging.base import parts_read
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Measure,
    Scale,
    Scored,
    Task,
    Unscored,
    Verdict,
)
from core.stats import (
    AgreementReport,
    AnnotatorTest,
    AnnotatorTestSettings,
    BesidePeople,
    Ceiling,
    Comparison,
    LabelledItems,
    MeasureSettings,
    agreement_report,
    alpha_metric,
    krippendorff_alpha,
    leave_one_out,
    paired_difference,
    pairwise_spearman,
    rater_table,
    williams_test,
)
from core.stats import align as aligned
from core.stats import annotator_test as tested_annotator
from core.stats import beside_people as paired_with_people
from core.stats.bar import bar_beside
from core.stats.labels_needed import LabelPilot, LabelPlanning
from core.stats.labels_needed import plan_labels as planned
from core.stats.reliability import single_call_reliability
from core.stats.threshold import YesNo
from core.verdicts import Verdicts

_Counted = TypeVar("_Counted", Alignment, YesNo, Preferences)

AnyVerdicts = Path | str | Sequence[Verdict] | Mapping[str, float]
"""A file of verdicts or replies, `Verdicts` or other records, or scores by item id (a Mapping or a pandas Series)."""

JudgeFiles = Path | str | Sequence[Path | str] | None
"""The file of the judge, or the files of several."""


def known_of(golden: GoldenSet, calibration: Calibration) -> Known:
    """What the judge file of `calibration` tells out of its golden set: ceiling, parts that items have, warnings.

    The ceiling stands at the statistic and level of the held-out alignment; None without single ratings.
    """
    held_out, aspect = calibration.held_out, calibration.task.aspect
    state = calibration.judge_state
    references = bool(state.get("sampling", {}).get("references", False))
    read = parts_read(state["spec"], references=references)
    known = Known(needs=needs_of(golden, read), warnings=label_warnings(golden, aspect))
    with suppress(AspectError):
        people = ceiling(golden, aspect, MeasureSettings(held_out.statistic, held_out.level))
        known["ceiling"] = people.leave_one_out.alignment
    return known


def align(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> Alignment:
    """Alignment of `verdicts` with the people on `aspect`, over the items that the verdicts name.

    `verdicts` is a file (verdicts or replies), Verdict records, or scores by item id.  Items that the
    verdicts do not name are no part of the comparison; named ones without a score count as `n_unscored`.
    The interval is over sources.

    Items that the judge was calibrated on are left out and counted (`n_calibration_left_out`).  The verdicts mark them,
    and `judge_file` names them.  `all_items` keeps them, which is optimistic (`n_calibration_kept`).
    """
    match = _match(golden, verdicts, aspect, judge_file, all_items=all_items)
    how = settings or MeasureSettings()
    return match.counted(
        aligned(match.scores, match.items, how.on(match.items), resamples=how.bootstrap, seed=how.seed)
    )


def align_all(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> AgreementReport:
    """All that can be said about `verdicts` beside the people: each statistic at each level, errors, kappa, classes.

    Items and intervals as in `align`; each alignment equals the one that `align` gives with the same seed.  Errors,
    kappa and classes are those of the scores mapped to the raters' scale, where every score has one (`basis`).
    """
    match, how = _match(golden, verdicts, aspect, judge_file, all_items=all_items), settings or MeasureSettings()
    scale = golden.aspects[aspect].scale
    report = agreement_report(
        match.scores, match.items, scale=scale, seed=how.seed, resamples=how.bootstrap, mapped=match.mapped
    )
    return replace(report, alignments=tuple(map(match.counted, report.alignments)))


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
    """Whether judge a aligns better than judge b: both on their common items, where people gave a label too.

    The difference is paired over sources, with no p under 8 of them; Williams' test is about
    Pearson at dataset level whatever they are, and takes items as independent.  `verdicts_*` as in
    `align`.  The bar is a plain regression on the labels of other sources.  UsageError without a common item.
    Items that either judge was calibrated on are left out as in `align`; `judge_file` may name the files of both.
    """
    task = task_of(golden, aspect)
    tables = [in_records(verdicts, task) for verdicts in (verdicts_a, verdicts_b)]
    seen = np.union1d(*(calibration_items(golden, table, judge_file) for table in tables))
    a, b = (
        _match(golden, table, aspect, seen=seen, name=name, all_items=all_items)
        for table, name in zip(tables, "ab", strict=True)
    )
    positions = np.intersect1d(a.scored, b.scored)
    if not positions.size:
        raise UsageError(
            f"The judges have no common item to compare on: a scored {a.scored.size} and b {b.scored.size} labelled "
            f"items of {golden.name}, none of them the same. Score the same items with both."
        )
    items = LabelledItems.of(golden, aspect, positions)
    how = settings or MeasureSettings()
    measure = how.on(items)
    of_a, of_b = (side.scores[np.searchsorted(side.items.positions, positions)] for side in (a, b))
    difference = paired_difference(of_a, of_b, items, measure, resamples=how.bootstrap, seed=how.seed)
    difference = replace(difference, a=a.counted(difference.a), b=b.counted(difference.b))
    regression, bar = plain_regression(golden, aspect, seed=how.seed), None
    if not regression.reason:
        predicted, both = regression.values[positions], np.stack([of_a, of_b])
        bar = bar_beside(predicted, regression.n_labels, both, items, measure, resamples=how.bootstrap, seed=how.seed)
    return Comparison(difference, williams_test(of_a, of_b, items), bar)


def label_pilot(golden: GoldenSet, verdicts: AnyVerdicts, aspect: str) -> LabelPilot:
    """What a few labelled and judged items teach for planning more: Spearman over all items, and how alike raters are.

    A label without single ratings counts as one person's.
    """
    match = _match(golden, verdicts, aspect)
    measure = Measure("spearman", "dataset")
    found = aligned(match.scores, match.items, measure)
    n_sources = int(np.unique(golden.source_codes[match.scored]).size)
    try:
        table = rater_table(golden, aspect)
    except AspectError:
        return LabelPilot(found, found.n, n_sources, 1.0)
    counts = table.rated.sum(axis=0)
    reliability = single_call_reliability(table.values.T)
    return LabelPilot(found, found.n, n_sources, float(counts[counts > 0].mean()), reliability)


def plan_labels(
    n_items: int,
    n_sources: int | None = None,
    n_raters: int = 1,
    *,
    pilot: tuple[GoldenSet, AnyVerdicts, str] | None = None,
) -> LabelPlanning:
    """What so many labels would tell: how well an alignment would be known, and which fall would be seen.

    `n_sources` is one an item if None.  `pilot` is a golden set of a few labelled items, a judge's verdicts on it and
    the aspect.  UsageError for no items or more sources than items; AspectError for an unknown aspect of the pilot.
    """
    known = None if pilot is None else label_pilot(*pilot)
    return planned(n_items, n_items if n_sources is None else n_sources, n_raters, pilot=known)


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


def beside_people(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    settings: MeasureSettings | None = None,
    *,
    panel: str | None = None,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> BesidePeople:
    """The judge beside a person, each against the mean of the other raters; options as in `ceiling`.

    Items that the judge was calibrated on are left out as in `align`.  AspectError without single ratings.
    """
    match = _match(golden, verdicts, aspect, judge_file, all_items=all_items)
    table, measure = rater_table(golden, aspect, panel), (settings or MeasureSettings()).on(match.items)
    found = paired_with_people(table.at(match.items.positions), match.scores, match.items, measure)
    return replace(found, judge=match.counted(found.judge))


def annotator_test(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    settings: AnnotatorTestSettings | None = None,
    *,
    panel: str | None = None,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> AnnotatorTest:
    """The Alternative Annotator Test, clustered by source where items share sources.

    The judge's labels are its scores mapped to the raters' scale, where every score has one.  Items that the judge was
    calibrated on are left out as in `align`.  AspectError without single ratings.
    """
    match, table = _match(golden, verdicts, aspect, judge_file, all_items=all_items), rater_table(golden, aspect, panel)
    return tested_annotator(
        table.at(match.items.positions),
        match.scores if match.mapped is None else match.mapped,
        match.items,
        settings,
    )


@dataclass(frozen=True)
class _Match:
    """The labelled items that a table of verdicts names: the items and their (n_items,) scores, NaN = unscored.

    `mapped` (n_items,) are the scores on the raters' scale, None without a map.  `n_calibration` counts the items that
    the judge was calibrated on; they are among the items only if `kept`.
    """

    items: LabelledItems
    scores: FloatArray
    mapped: FloatArray | None
    n_calibration: int
    kept: bool

    @property
    def scored(self) -> IntArray:
        """Positions in the golden set that have both a label and a score, ascending."""
        return self.items.positions[~np.isnan(self.scores)]

    def counted(self, alignment: Alignment) -> Alignment:
        return with_counts(alignment, self.n_calibration, kept=self.kept)


def _match(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    judge_file: JudgeFiles = None,
    *,
    seen: IntArray | None = None,
    name: str = "",
    all_items: bool = False,
) -> _Match:
    table, labels = in_records(verdicts, task_of(golden, aspect)), golden.labels(aspect)
    named = np.array([item_id in table.by_id for item_id in golden.item_ids], dtype=np.bool_)
    used = np.flatnonzero(named & ~np.isnan(labels))
    whose = f" of judge {name}" if name else ""
    if not used.size:
        raise UsageError(
            f"None of the {len(table.by_id)} verdicts{whose} belongs to an item of {golden.name} with a label on "
            f"{aspect!r}. Item ids there look like {', '.join(golden.item_ids[:3])}."
        )
    behind = np.isin(used, calibration_items(golden, table, judge_file) if seen is None else seen)
    if not all_items:
        if behind.all():
            raise UsageError(NOTHING_UNSEEN.format(n=used.size, whose=whose))
        used = used[~behind]
    ids = [golden.item_ids[k] for k in used]
    return _Match(
        LabelledItems.of(golden, aspect, used),
        table.aligned(ids),
        table.mapped_aligned(ids),
        int(behind.sum()),
        all_items,
    )


def with_counts(found: _Counted, n: int, *, kept: bool) -> _Counted:
    """`found` with the number of items that the judge was calibrated on, as left out or as kept."""
    return replace(found, n_calibration_left_out=0 if kept else n, n_calibration_kept=n if kept else 0)


NOTHING_UNSEEN = (
    "Every labelled item that the verdicts{whose} name ({n}) chose or fitted a judge, so nothing independent is left "
    "to measure on. Label other items. --all-items (all_items=True in Python) measures on these, with an "
    "optimistic result."
)


def calibration_items(
    golden: GoldenSet, verdicts: Verdicts | Collection[str], judge_file: JudgeFiles = None, *, map_too: bool = True
) -> IntArray:
    """Positions of the items whose labels chose or fitted a judge: there its alignment is optimistic.

    These are the items that `verdicts` mark (or the ids given), and those whose texts the judge files name, including
    the judges inside a fused one.  Without `map_too` not those whose labels only fitted the map to the raters' scale.
    """
    marked = (
        {verdict.item_id for verdict in verdicts if verdict.calibration_item}
        if isinstance(verdicts, Verdicts)
        else set(verdicts)
    )
    files = [judge_file] if isinstance(judge_file, Path | str) else list(judge_file or ())
    cards = [open_file(file, kind_of_file(file), accept_edited=True).card for file in files]
    known = [texts for card in cards for texts in texts_behind(card)]
    behind = {digest for texts in known for digest in (texts.calibration if map_too else texts.behind_scores)}
    only_mapped = set() if map_too else {digest for texts in known for digest in texts.only_mapped} - behind
    at = []
    for k, item in enumerate(golden.items):
        digest = text_digest(item) if known else ""
        if digest in behind or (item.item_id in marked and digest not in only_mapped):
            at.append(k)
    return np.array(at, dtype=np.intp)


def in_records(verdicts: AnyVerdicts, task: Task, codes: Codes | Literal["scale"] | None = None) -> Verdicts:
    """Whatever form verdicts come in as `Verdicts`; what is no score beside the labels is Unscored ("out of range").

    `codes` says what the scores of a file on pairs stand for.  UsageError for anything that does not say which item a
    number belongs to, and for scores that are no numbers.
    """
    if isinstance(verdicts, Path | str):
        return read_verdicts(verdicts, task.scale, task.aspect, pairs=task.kind == "pair", codes=codes)
    records = verdicts if isinstance(verdicts, Verdicts) else _of_python(verdicts)
    off = off_scale(records.values, task.scale).mask
    if not off.any():
        return records
    return Verdicts(
        Unscored(
            one.item_id,
            "out of range",
            OFF_SCALE.format(value=one.value, scale=task.scale),
            calibration_item=one.calibration_item,
        )
        if is_off and isinstance(one, Scored)
        else one
        for one, is_off in zip(records, off.tolist(), strict=True)
    )


def off_scale_words(verdicts: Verdicts, scale: Scale) -> list[str]:
    """How many scores count for nothing because they lie off the scale of the labels, and whether the others do too."""
    lost = [verdict for verdict in verdicts.unscored if verdict.reason == "out of range" and verdict.detail]
    words = []
    if lost:
        words.append(f"Not used: {len(lost):,} of {len(verdicts):,} scores. {lost[0].detail}")
    known = verdicts.values[~np.isnan(verdicts.values)]
    if off_scale(known, scale).own and verdicts.mapped is None:  # mapped scores are compared on the raters' scale
        words.append(
            f"The scores run from {known.min():g} to {known.max():g}, and the labels from {scale}. Correlations hold; "
            "errors and bias do not."
        )
    return words


def _of_python(verdicts: Any) -> Verdicts:
    """What a Python caller gave as `Verdicts`; UsageError for a form that is not taken."""
    kind = type(verdicts).__name__
    series: Any = verdicts  # of pandas, which need not be loaded
    if hasattr(series, "index") and hasattr(series, "to_dict") and getattr(series, "ndim", 0) == 1:
        labels = list(series.index)
        if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
            raise UsageError(f"The index of the Series must hold each item id once, as text. {FORMS}")
        return _of_numbers(dict(zip(labels, series.tolist(), strict=True)))
    if isinstance(verdicts, Mapping):
        return _of_numbers(verdicts)
    if not isinstance(verdicts, Iterable) or getattr(verdicts, "ndim", 1) != 1:
        raise UsageError(f"{kind} is not a form that verdicts come in. {FORMS}")
    records = list(verdicts)
    if strange := [record for record in records if not isinstance(record, Scored | Unscored)]:
        raise UsageError(f"{kind} of {type(strange[0]).__name__} does not say which item has which score. {FORMS}")
    return Verdicts(records)


FORMS = (
    "Verdicts are taken as a path to a file, as Verdicts or a list of Verdict records (judge.score gives them), as a "
    "mapping from item id to number, or as a pandas Series of numbers whose index holds the item ids."
)


def _of_numbers(scores: Mapping[Any, Any]) -> Verdicts:
    """Numbers by item id as verdicts; None and NaN are unscored."""
    numbers: dict[str, float] = {}
    for item_id, score in scores.items():
        if not isinstance(item_id, str):
            raise UsageError(f"Item ids are text; {item_id!r} ({type(item_id).__name__}) came as one. {FORMS}")
        if isinstance(score, bool | np.bool_) or not (score is None or isinstance(score, Real)):
            what = f"{score!r:.60} ({type(score).__name__})"
            raise UsageError(f"The score of item {item_id!r} is {what}, not a number. {FORMS}")
        numbers[item_id] = math.nan if score is None else float(score)
        if math.isinf(numbers[item_id]):
            raise UsageError(f"The score of item {item_id!r} is infinite. Use NaN or None for unscored.")
    return Verdicts.of_scores(numbers)
