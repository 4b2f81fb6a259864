"""One judge examined: where it fails, its biases, its scores beside people's; what is claimed of all that together.

Every sentence rests on a test, and all tests of an examination are corrected together (Holm), at half of the 5 %: the
other half is the bar's (`core.stats.alignment`).  On data without anything to find, the chance that any sentence claims
something is at most 5 % (`tests/core/comparison/test_false_claims.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from core.comparison.biases import Bias, examine_biases
from core.comparison.fails import Division, ExaminedItems, Part, examine_parts
from core.comparison.given_verdicts import AnyVerdicts, JudgeFiles, labelled_verdicts
from core.json_form import JsonRecord, json_fields
from core.judge_files.judge_reading import read_card
from core.records import Alignment, FloatArray, GoldenSet, IntArray, Interval, JudgeScores, Measure, Scale, Statistic
from core.stats import ALPHA, align, holm
from core.stats.claims import HALF_ALPHA
from core.stats.intervals import t_quantile
from core.stats.on_scale import to_steps
from core.stats.slices import Contrast

MOST_STEPS, TENTHS = 11, 10
"""A scale of more steps, or of none, is shown in ten parts of equal width."""


@dataclass(frozen=True, slots=True)
class Spread(JsonRecord):
    """How some numbers (n,) lie: their mean, standard deviation, and the share in each of the parts of the scale."""

    mean: float
    deviation: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Distribution(JsonRecord):
    """People's labels beside the judge's scores over the `parts` of the scale, each named.

    `judge` is None where its scores are on a scale of their own, and `note` says so.
    """

    parts: tuple[str, ...]
    people: Spread
    judge: Spread | None
    note: str = ""


@dataclass(frozen=True)
class Examination:
    """Of the judge `name` on `n` unseen items; `overall` is its alignment on all of them.

    `n_tests` is how many tests were made, which every p and interval of a part counts.  `left_out` maps a division to
    why there is none.
    """

    name: str
    overall: Alignment
    n_sources: int
    parts: tuple[Part, ...]
    distribution: Distribution | None
    n_tests: int
    biases: tuple[Bias, ...] = ()
    left_out: dict[Division, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return self.overall.n

    @property
    def worst(self) -> tuple[Part, ...]:
        """The parts where it errs more than in others of their division, the largest excess first."""
        return tuple(sorted((part for part in self.parts if part.worse), key=lambda part: -(part.difference or 0.0)))

    def as_json(self) -> dict[str, Any]:
        body = json_fields(self, but=("name", "left_out"))
        return {"judge": self.name} | body | {"left_out": dict(self.left_out)}


def examine_judge(
    golden: GoldenSet, aspect: str, judge: JudgeScores, *, statistic: Statistic = "spearman", model: str = ""
) -> Examination:
    """Examine `judge` on the labelled items that it scored and has not seen.

    `model` names its model where the judge's own name does not: systems of its family are looked at.
    """
    labels = golden.labels(aspect)
    usable = ~np.isnan(labels) & ~np.isnan(judge.values)
    usable[list(judge.seen)] = False
    at = np.flatnonzero(usable)
    turned = None if judge.turned is None else judge.turned[at]
    items = ExaminedItems(golden, aspect, at, judge.upward[at], judge.values[at], turned)
    measure = Measure(statistic, "dataset")
    overall = align(items.scores, items.labelled, measure)
    n_sources = int(np.unique(items.labelled.sources).size)
    if not at.size:
        return Examination(judge.name, overall, 0, (), None, 0)
    found = examine_parts(items, measure)
    biases = examine_biases(items, statistic, model or judge.name)
    p_of_biases = [np.nan if bias.p is None else bias.p for bias in biases]
    p = holm([*(contrast.p for contrast in found.contrasts), *p_of_biases])
    n_tests, n_parts, scale = int((~np.isnan(p)).sum()), len(found.parts), golden.aspects[aspect].scale
    parts = tuple(
        part if np.isnan(own) else _tested(part, contrast, own, n_tests, scale.high - scale.low)
        for part, contrast, own in zip(found.parts, found.contrasts, p[:n_parts].tolist(), strict=True)
    )
    biases = tuple(
        bias if np.isnan(own) else replace(bias, p=own) for bias, own in zip(biases, p[n_parts:].tolist(), strict=True)
    )
    distribution = _distribution(labels[at], judge, at, scale)
    return Examination(judge.name, overall, n_sources, parts, distribution, n_tests, biases, found.left_out)


def _distribution(labels: FloatArray, judge: JudgeScores, at: IntArray, scale: Scale) -> Distribution:
    step = scale.step or 0.0
    n_steps = round((scale.high - scale.low) / step) + 1 if step else 0
    if not 1 < n_steps <= MOST_STEPS:
        step, n_steps = (scale.high - scale.low) / TENTHS, TENTHS
        edges = [scale.low + k * step for k in range(n_steps + 1)]
        names = tuple(f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges))
        lowest = scale.low + step / 2.0
    else:
        names, lowest = tuple(f"{scale.low + k * step:g}" for k in range(n_steps)), scale.low
    parts = Scale(lowest, lowest + step * (n_steps - 1), step)

    def spread(values: FloatArray) -> Spread:
        counts = np.bincount(to_steps(values, parts).astype(np.intp), minlength=n_steps)
        return Spread(float(values.mean()), float(values.std()), tuple((counts / values.size).tolist()))

    scores = judge.on_raters_scale[at]
    meant = judge.means_labels and bool(((scores >= scale.low) & (scores <= scale.high)).all())
    note = "" if meant else f"The judge's scores are on a scale of their own, not on {scale}."
    return Distribution(names, spread(labels), spread(scores) if meant else None, note)


def _looks(p: float, corrected: float, n_tests: int) -> float:
    """How many looks a corrected p counts as, twice as many at `HALF_ALPHA`: an interval widened for so many leaves out
    0 where the corrected p is up to `HALF_ALPHA`, and only there.
    """
    return ALPHA / HALF_ALPHA * (n_tests if p <= 0.0 else max(corrected / p, 1.0))


def _tested(part: Part, contrast: Contrast, p: float, n_tests: int, width: float) -> Part:
    reach = t_quantile(contrast.freedom, _looks(contrast.p, p, n_tests)) * contrast.error
    method = f"jackknife over {part.n_sources:,} sources, t({contrast.freedom}), {_CORRECTED.format(n_tests)}"
    interval = Interval(contrast.value - reach, contrast.value + reach, 1.0 - HALF_ALPHA, method, part.n_sources)
    return replace(part, difference=contrast.value, interval=interval.within(-width, width), p=p)


_CORRECTED = "corrected for {} tests as p is"


def examine(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    judge_file: JudgeFiles = None,
    all_items: bool = False,
    model: str = "",
) -> Examination:
    """Alignment by rater disagreement, score, system and length, and biases, of `verdicts` on labelled items.

    Items whose labels chose or fitted the judge are left out: the verdicts mark them, and `judge_file` knows their
    texts (`all_items` keeps them).  `model` names the judge's model (else the judge file does): whether it favours
    systems of its own family is told by it.  AspectError for an
    unknown aspect, UsageError where no verdict is on a labelled item.
    """
    given = labelled_verdicts(golden, verdicts, aspect, judge_file, all_items=all_items)
    records, item_ids = given.verdicts, golden.item_ids
    judge = JudgeScores(
        "the judge",
        "imported",
        aspect,
        records.aligned(item_ids),
        seen=tuple(given.seen.tolist()),
        turned=records.of_items(item_ids).turned,
        mapped=records.of_items(item_ids).mapped,
    )
    if not model and isinstance(judge_file, Path | str):
        card = read_card(judge_file, accept_edited=True)
        model = str((card.get("judge") or {}).get("spec", ""))
    found = examine_judge(golden, aspect, judge, statistic=statistic, model=model)
    return replace(found, overall=given.counted(found.overall))
