"""What was judged and by whom it was labelled: the golden set, its raters, their agreement, and their passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from core.comparison import human_ceiling
from core.data import load_golden
from core.errors import AspectError
from core.projects.adjudication import decisions
from core.projects.labelling import list_passes
from core.projects.reporting.basis import Basis
from core.projects.views.reports import Judged, LabelBar, Labelling, PassFact, RaterCount
from core.records import FloatArray, GoldenSet, Interval, Scale
from core.review.agreement import Ratings, alpha_interval
from core.review.log import Action
from core.review.passes import LabelPass
from core.review.plan import LabelAspect
from core.stats import (
    AnnotatorTest,
    BesidePeople,
    alpha_metric,
    annotator_test,
    beside_people,
    krippendorff_alpha,
    rater_table,
)

_SAMPLE_FOLDER = Path(__file__).parents[3] / "sample_data"
_MOST_STEPS, _BARS = 11, 10
_FROZE = "froze the labels of a pass"


def judged(basis: Basis) -> Judged:
    """The golden set and its gold labels on the aspect."""
    golden, labels = basis.golden, basis.labels[~np.isnan(basis.labels)]
    row = basis.store.goldens.get(golden.digest)
    added = basis.store.events.all(basis.project_id, Action, golden.digest)
    bars = label_bars(labels, golden.aspects[basis.aspect].scale)
    return Judged(
        golden_id=golden.digest,
        name=golden.name,
        kind=golden.kind,
        n_items=len(golden.items),
        n_sources=golden.n_sources,
        n_systems=golden.n_systems,
        aspect=basis.aspect,
        definition=basis.asked.definition,
        scale=golden.aspects[basis.aspect].scale,
        n_labelled=labels.size,
        mean=float(labels.mean()) if labels.size else None,
        bars=bars,
        largest_share=max(bar.n for bar in bars) / labels.size if labels.size else None,
        simulated=_simulated(golden, basis.aspect),
        added_by=added[0].actor if added else "",
        added_at=row.created_at,
    )


def label_bars(labels: FloatArray, scale: Scale) -> tuple[LabelBar, ...]:
    """Labels (n,) counted by step where all lie on the steps of `scale`, else in ten parts of it of equal width.

    The parts are closed below; the last one is closed above too.
    """
    steps = 0 if scale.step is None else round((scale.high - scale.low) / scale.step) + 1
    numbers = (labels - scale.low) / scale.step if scale.step else labels
    if 1 < steps <= _MOST_STEPS and np.allclose(numbers, np.round(numbers), atol=1e-9):
        counts = np.bincount(np.round(numbers).astype(np.intp), minlength=steps)
        values = [scale.low + k * (scale.step or 1.0) for k in range(steps)]
        return tuple(LabelBar(value, value, int(n)) for value, n in zip(values, counts, strict=True))
    counts, edges = np.histogram(labels, bins=_BARS, range=(scale.low, scale.high))
    return tuple(LabelBar(float(edges[k]), float(edges[k + 1]), int(n)) for k, n in enumerate(counts))


@lru_cache(maxsize=1)
def _sample_labels() -> frozenset[tuple[str, str, str, float]]:
    """(aspect, source, target, label) of every label of the sample data, all made by a program."""
    found = []
    for file in sorted(one for one in _SAMPLE_FOLDER.iterdir() if one.suffix in (".jsonl", ".csv")):
        found += list(_labels_of(load_golden(file)))
    return frozenset(found)


def _labels_of(golden: GoldenSet) -> Iterator[tuple[str, str, str, float]]:
    for name, labels in golden.aspects.items():
        for item, value in zip(golden.items, labels.values, strict=True):
            if value is not None:
                yield name, item.source, item.target, value


def _simulated(golden: GoldenSet, aspect: str) -> bool:
    """Whether every label of the aspect is one of the sample data's, under whatever name the golden set goes."""
    own = [one for one in _labels_of(golden) if one[0] == aspect]
    return bool(own) and _sample_labels().issuperset(own)


# ── raters ───────────────────────────────────────────────────────────────────────────────────────────────────


def labelling(basis: Basis) -> Labelling:
    """Raters and their agreement; a golden set with one label an item has neither, and says so."""
    found = human_ceiling(
        basis.golden,
        basis.aspect,
        basis.told_at,
        statistic=basis.calibration.held_out.statistic,
        level=basis.calibration.held_out.level,
        seed=basis.calibration.settings.seed,
    )
    agreed = _agreement(basis.golden, basis.aspect)
    beside, tests = _beside(basis)
    return Labelling(
        raters=agreed.raters,
        panel=agreed.panel,
        alpha=agreed.alpha,
        alpha_metric=alpha_metric(basis.golden.aspects[basis.aspect].scale),
        alpha_interval=agreed.interval,
        alpha_n=agreed.n,
        alpha_reason=agreed.reason,
        ceiling=found.alignment,
        ceiling_raters=found.n_raters,
        ceiling_reason=found.reason,
        beside=beside,
        tests=tests,
        passes=tuple(_passes(basis)),
    )


def _beside(basis: Basis) -> tuple[BesidePeople | None, tuple[AnnotatorTest, ...]]:
    """The judge beside a person on the held-out items, and the annotator test there, the paper's and ours."""
    try:
        table = rater_table(basis.golden, basis.aspect)
    except AspectError:
        return None, ()
    at, golden, held = basis.told_at, basis.golden, basis.calibration.held_out
    ratings, scores, sources = table.values[:, at], basis.values[at], golden.source_codes[at]
    beside = beside_people(
        ratings,
        scores,
        sources,
        golden.system_codes[at],
        statistic=held.statistic,
        level=held.level,
        raters=table.raters,
        panel=table.panel,
    )
    tests = tuple(
        annotator_test(ratings, scores, sources, clustered=ours, raters=table.raters, panel=table.panel)
        for ours in (False, True)
    )
    return beside, tests


@dataclass(frozen=True)
class _Agreement:
    """Krippendorff's alpha of the raters on the `n` items that two of them rated; None with its reason."""

    raters: tuple[RaterCount, ...] = ()
    panel: str = ""
    alpha: float | None = None
    interval: Interval | None = None
    n: int = 0
    reason: str = ""


def _agreement(golden: GoldenSet, aspect: str) -> _Agreement:
    scale = golden.aspects[aspect].scale
    try:
        table = rater_table(golden, aspect)
    except AspectError as error:
        return _Agreement(reason=str(error))
    counted = (~np.isnan(table.values)).sum(axis=1)
    found = krippendorff_alpha(table.values, alpha_metric(scale))
    return _Agreement(
        tuple(RaterCount(name, int(n)) for name, n in zip(table.raters, counted, strict=True)),
        table.panel,
        found.value,
        alpha_interval(golden, Ratings(table.raters, table.values), LabelAspect(aspect, scale)),
        found.n_items,
        found.reason,
    )


def _passes(basis: Basis) -> Iterator[PassFact]:
    """The passes whose labels made this golden set, and those over it, oldest first."""
    store, project_id = basis.store, basis.project_id
    made = {
        str(one.about.get("pass_id", ""))
        for one in store.events.all(project_id, Action, basis.golden.digest)
        if one.done == _FROZE
    }
    for one in reversed(list_passes(store, project_id)):
        concerned = one.pass_id in made or one.golden_id == basis.golden.digest
        if concerned and any(aspect.aspect == basis.aspect for aspect in one.plan.aspects):
            yield _pass(basis, one, made_this=one.pass_id in made)


def _pass(basis: Basis, one: LabelPass, *, made_this: bool) -> PassFact:
    rows = basis.store.labels.current(one.project_id, one.pass_id)
    given = Counter(row.rater for row in rows if row.aspect == basis.aspect and row.value is not None)
    decided = [which for which in decisions(basis.store, one.project_id, one.pass_id) if which[0] == basis.aspect]
    return PassFact(
        name=one.name,
        began_by=one.actor,
        began_at=one.at,
        raters=tuple(dict.fromkeys((*one.raters, *given))),
        n_labels=given.total(),
        n_decided=len(decided),
        made_this=made_this,
        blind=one.plan.blind,
        instructions=one.plan.instructions,
    )
