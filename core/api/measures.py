"""What the Python face measures: align, compare, ceiling and tests beside people; the task and split of every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.calibration.records import Calibration
from core.calibration.settings import CalibrationSettings
from core.comparison.supervised import plain_regression
from core.data import split_sources
from core.data.scale import off_scale
from core.data.split import task_of
from core.data.values import Codes
from core.errors import AspectError, UsageError
from core.export import read_verdicts
from core.export.judge_writing import Known, label_warnings, needs_of
from core.export.verdict_files import OFF_SCALE
from core.judging.base import Judge, parts_read
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Level,
    Measure,
    Scale,
    Scored,
    Split,
    Statistic,
    Task,
    Unscored,
    Verdict,
)
from core.stats import (
    EPSILON,
    AgreementReport,
    AnnotatorTest,
    BesidePeople,
    Ceiling,
    Comparison,
    LabelledItems,
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
from core.stats.items import paired
from core.stats.labels_needed import LabelPilot, LabelPlanning
from core.stats.labels_needed import plan_labels as planned
from core.stats.pilot import single_call_reliability
from core.verdicts import Verdicts

AnyVerdicts = Path | str | Sequence[Verdict] | Mapping[str, float]
"""A file of verdicts or replies, `Verdicts` or other records, or scores by item id."""


def judge_state(judge: Judge) -> dict[str, Any]:
    """A prepared judge's state as a result carries it, with its spec and its notice in plain words."""
    return dict(judge.as_state()) | {"spec": judge.spec, "notice": judge.notice}


def split_for(golden: GoldenSet, aspect: str, chosen: CalibrationSettings) -> Split:
    """The split that `chosen` asks for: by source (and system), seeded."""
    return split_sources(golden, aspect=aspect, fraction=chosen.calibration_share, seed=chosen.seed, kind=chosen.split)


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
        people = ceiling(golden, aspect, statistic=held_out.statistic, level=held_out.level)
        known["ceiling"] = people.leave_one_out.alignment
    return known


def align(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    level: Level | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Alignment:
    """Alignment of `verdicts` with the people on `aspect`, over the items that the verdicts name.

    `verdicts` is a file (verdicts or replies), Verdict records, or scores by item id.  Items that the
    verdicts do not name are no part of the comparison; named ones without a score count as `n_unscored`.
    `level` None takes sample level where the groups allow it, else dataset.  The interval is over sources; `bootstrap`
    counts resamples at system level (0: no interval), `seed` draws them.
    """
    match = _match(golden, verdicts, aspect)
    measure = Measure(statistic, level or match.items.usual_level)
    return aligned(match.scores, match.items, measure, resamples=bootstrap, seed=seed)


def align_all(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
) -> AgreementReport:
    """All that can be said about `verdicts` beside the people: each statistic at each level, errors, kappa, classes.

    Items and intervals as in `align`; each alignment equals the one that `align` gives with the same seed.
    """
    match = _match(golden, verdicts, aspect)
    scale = golden.aspects[aspect].scale
    return agreement_report(match.scores, match.items, scale=scale, seed=seed, resamples=bootstrap)


def compare(
    golden: GoldenSet,
    verdicts_a: AnyVerdicts,
    verdicts_b: AnyVerdicts,
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    level: Level | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Whether judge a aligns better than judge b: both on their common items, where people gave a label too.

    The difference at `statistic` and `level` is paired over sources, with no p under 8 of them; Williams' test is about
    Pearson at dataset level whatever they are, and takes items as independent.  `verdicts_*` and `level` as in
    `align`.  The bar is a plain regression on the labels of other sources.  UsageError without a common item.
    """
    a, b = _match(golden, verdicts_a, aspect, "a"), _match(golden, verdicts_b, aspect, "b")
    positions = np.intersect1d(a.scored, b.scored)
    if not positions.size:
        raise UsageError(
            f"The judges have no common item to compare on: a scored {a.scored.size} and b {b.scored.size} labelled "
            f"items of {golden.name}, none of them the same. Score the same items with both."
        )
    items = LabelledItems.of(golden, aspect, positions)
    measure = Measure(statistic, level or items.usual_level)
    of_a, of_b = (side.scores[np.searchsorted(side.items.positions, positions)] for side in (a, b))
    difference = paired_difference(of_a, of_b, items, measure, resamples=bootstrap, seed=seed)
    regression, bar = plain_regression(golden, aspect, seed=seed), None
    if not regression.reason:
        predicted, both = regression.values[positions], np.stack([of_a, of_b])
        drawn = {"resamples": bootstrap, "seed": seed}
        bar = bar_beside(predicted, regression.n_labels, both, items, measure, **drawn)
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
    every = LabelledItems.from_arrays(np.zeros(len(golden.items)))
    reliability = single_call_reliability(paired(table.values, every), "dataset")
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
    *,
    statistic: Statistic = "spearman",
    level: Level | None = None,
    panel: str | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Ceiling:
    """How well the people agree on `aspect`: leave one rater out at `statistic` and `level`, Krippendorff's alpha.

    `level` None chooses as `align` does, so that the ceiling stands on the judges' axis.  `panel` names the raters
    where there are several panels (expert, turker); None takes the one whose means are the gold labels, else all.
    AspectError when the golden set holds no single ratings.
    """
    task = task_of(golden, aspect)
    table, labels = rater_table(golden, aspect, panel), golden.labels(aspect)
    labelled = np.flatnonzero(~np.isnan(labels))
    used = np.flatnonzero(~np.isnan(labels) | table.rated.all(axis=0))
    measure = Measure(statistic, level or LabelledItems.of(golden, aspect, labelled).usual_level)
    items, table = LabelledItems.of(golden, aspect, used), table.at(used)
    return Ceiling(
        aspect,
        leave_one_out(table, items, measure, resamples=bootstrap, seed=seed),
        krippendorff_alpha(table.values, alpha_metric(task.scale)),
        pairwise_spearman(table.values[table.busiest]),
        table.panel,
    )


def beside_people(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    level: Level | None = None,
    panel: str | None = None,
) -> BesidePeople:
    """The judge beside a person, each against the mean of the other raters; options as in `ceiling`.

    AspectError without single ratings.
    """
    match, table = _match(golden, verdicts, aspect), rater_table(golden, aspect, panel)
    measure = Measure(statistic, level or match.items.usual_level)
    return paired_with_people(table.at(match.items.positions), match.scores, match.items, measure)


def annotator_test(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    epsilon: float = EPSILON,
    nominal: bool = False,
    clustered: bool | None = None,
    standardise: bool = False,
    panel: str | None = None,
) -> AnnotatorTest:
    """The Alternative Annotator Test, clustered by source where items share sources (`clustered` False: never).

    Other options as in `core.stats.annotator_test`.

    AspectError without single ratings.
    """
    match, table = _match(golden, verdicts, aspect), rater_table(golden, aspect, panel)
    return tested_annotator(
        table.at(match.items.positions),
        match.scores,
        match.items,
        epsilon=epsilon,
        nominal=nominal,
        clustered=clustered,
        standardise=standardise,
    )


@dataclass(frozen=True)
class _Match:
    """The labelled items that a table of verdicts names: the items and their (n_items,) scores, NaN = unscored."""

    items: LabelledItems
    scores: FloatArray

    @property
    def scored(self) -> IntArray:
        """Positions in the golden set that have both a label and a score, ascending."""
        return self.items.positions[~np.isnan(self.scores)]


def _match(golden: GoldenSet, verdicts: AnyVerdicts, aspect: str, name: str = "") -> _Match:
    table, labels = in_records(verdicts, task_of(golden, aspect)), golden.labels(aspect)
    named = np.array([item_id in table.by_id for item_id in golden.item_ids], dtype=np.bool_)
    used = np.flatnonzero(named & ~np.isnan(labels))
    if not used.size:
        whose = f" of judge {name}" if name else ""
        raise UsageError(
            f"None of the {len(table.by_id)} verdicts{whose} belongs to an item of {golden.name} with a label on "
            f"{aspect!r}. Item ids there look like {', '.join(golden.item_ids[:3])}."
        )
    return _Match(LabelledItems.of(golden, aspect, used), table.aligned(golden.item_ids)[used])


def in_records(verdicts: AnyVerdicts, task: Task, codes: Codes | Literal["scale"] | None = None) -> Verdicts:
    """Whatever form verdicts come in as `Verdicts`; what is no score beside the labels is Unscored ("out of range").

    `codes` says what the scores of a file on pairs stand for.
    """
    match verdicts:
        case Verdicts():
            records = verdicts
        case Path() | str():
            return read_verdicts(verdicts, task.scale, task.aspect, pairs=task.kind == "pair", codes=codes)
        case Mapping():
            records = Verdicts.of_scores(verdicts)
        case _:
            records = Verdicts(verdicts)
    off = off_scale(records.values, task.scale).mask
    if not off.any():
        return records
    return Verdicts(
        Unscored(one.item_id, "out of range", OFF_SCALE.format(value=one.value, scale=task.scale))
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
    if off_scale(known, scale).own:
        words.append(
            f"The scores run from {known.min():g} to {known.max():g}, and the labels from {scale}. Correlations hold; "
            "errors and bias do not."
        )
    return words
