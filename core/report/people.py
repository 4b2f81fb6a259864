"""The gold labels of a golden set, who gave them, how well these people agree, and the judge beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from core.comparison import human_ceiling
from core.comparison.board import HumanCeiling
from core.data import load_golden
from core.errors import AspectError
from core.records import FloatArray, GoldenSet, Interval, Scale
from core.report.measured import Judged
from core.review.agreement import Ratings, alpha_interval
from core.review.plan import LabelAspect
from core.stats import (
    Alpha,
    AnnotatorTest,
    BesidePeople,
    LabelledItems,
    alpha_metric,
    annotator_test,
    beside_people,
    krippendorff_alpha,
    rater_table,
)

_SAMPLE_FOLDER = Path(__file__).parents[2] / "sample_data"
_MOST_STEPS, _BARS = 11, 10


@dataclass(frozen=True, slots=True)
class LabelBar:
    """`n` labels from `low` up to `high`; both are the same where the scale has steps."""

    low: float
    high: float
    n: int

    @property
    def name(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:.3g}–{self.high:.3g}"


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


@cache
def _sample_labels() -> frozenset[tuple[str, str, str, float]]:
    """(aspect, source, target, label) of every label of the sample data, all made by a program."""
    files = sorted(path for path in _SAMPLE_FOLDER.iterdir() if path.suffix in (".jsonl", ".csv"))
    goldens = [load_golden(file) for file in files]
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
    the annotator test, the paper's and ours by source.
    """

    n_rated: Mapping[str, int]
    panel: str
    alpha: Alpha
    alpha_interval: Interval | None
    ceiling: HumanCeiling
    beside: BesidePeople | None = None
    tests: tuple[AnnotatorTest, ...] = ()


def raters_of(judged: Judged) -> Raters:
    """Raters and their agreement; a golden set with one label an item has neither, and says so."""
    golden, aspect, held_out = judged.golden, judged.aspect, judged.calibration.held_out
    scale = golden.aspects[aspect].scale
    ceiling = human_ceiling(
        golden,
        aspect,
        judged.held_out,
        held_out.measure,
        seed=judged.calibration.settings.seed,
    )
    try:
        table = rater_table(golden, aspect)
    except AspectError as error:
        return Raters({}, "", Alpha(None, alpha_metric(scale), 0, 0, reason=str(error)), None, ceiling)
    n_rated = (~np.isnan(table.values)).sum(axis=1)
    at = judged.held_out
    here, scores, items = table.at(at), judged.values[at], LabelledItems.of(golden, aspect, at)
    return Raters(
        n_rated={name: int(n) for name, n in zip(table.raters, n_rated, strict=True)},
        panel=table.panel,
        alpha=krippendorff_alpha(table.values, alpha_metric(scale)),
        alpha_interval=alpha_interval(golden, Ratings(table.raters, table.values), LabelAspect(aspect, scale)),
        ceiling=ceiling,
        beside=beside_people(here, scores, items, held_out.measure),
        tests=tuple(annotator_test(here, scores, items, clustered=by_source) for by_source in (False, True)),
    )
