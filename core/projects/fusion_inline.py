"""LLM fusion without a store, for the command line: parts, a plan, one call an item, told on held-out items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import UsageError
from core.fusion.by_model import ModelRatings
from core.fusion.llm import OVERALL, FusionJudge
from core.fusion.plan import FusionPlan, helper_of, measured_plan, read_plan
from core.fusion.stack import Sides, StackSettings
from core.judging.registry import NAMED
from core.progress import SILENT, Progress
from core.projects.fusion_parts import Bench, Gathered
from core.projects.style_grid.asking import language_model
from core.public import task_of
from core.records import Alignment, FloatArray, Usage, Verdict
from core.stats import Difference, align_with_intervals, paired_difference

MODEL_WRITES = "model"
"""In the place of a plan's text: the model writes it."""


@dataclass(frozen=True)
class ModelFusion:
    """What came out; `best_part` is the part that aligned best on the items to fit on.

    `also` holds the other aspects of the same calls, `overall` the verdicts all in all.  `calls` were needed, of which
    `usage` says how many were sent and what they cost.
    """

    plan: FusionPlan
    verdicts: tuple[Verdict, ...]
    fused: Alignment
    parts: dict[str, Alignment]
    best_part: str
    against_best: Difference
    calls: int
    notes: tuple[str, ...]
    also: dict[str, OtherAspect] = field(default_factory=dict)
    overall: tuple[Verdict, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class OtherAspect:
    """Another aspect rated in the same calls: its verdicts, and its alignment on the same items."""

    verdicts: tuple[Verdict, ...]
    fused: Alignment


def fuse_by_model(
    bench: Bench,
    gathered: Gathered,
    sides: Sides,
    how: StackSettings,
    *,
    spec: str,
    plan: str = "",
    also: Sequence[str] = (),
    progress: Progress = SILENT,
) -> ModelFusion:
    """Fuse with the model `spec`, on the report side alone; each call rates the bench's aspect and those in `also`.

    `plan` is a plan's text, `MODEL_WRITES`, or "" for one measured on the fit side.  UsageError for a plan that does
    not fit, and for a judge that is no language model; AspectError for an unknown aspect.
    """
    if not gathered.parts:
        raise UsageError(f"No part is usable: {'; '.join(gathered.left_out.values())}")
    aspects = tuple(dict.fromkeys((bench.aspect, *also)))
    tasks = tuple(task_of(bench.golden, one) for one in aspects)
    helpers, items = tuple(map(helper_of, gathered.parts)), bench.golden.items
    asked = [k for k in sides.report.tolist() if items[k].target.strip()]
    model = language_model(spec, bench.settings, bench.replies, gate=NAMED)
    try:
        expected = len(asked) + (plan == MODEL_WRITES)
        ratings = ModelRatings(model, gathered.parts, items, expected, progress)
        chosen = _plan(bench, gathered, sides, how, ratings=ratings, plan=plan, aspects=aspects)
        ratings.rate(FusionJudge(tasks, helpers, chosen), asked)
        notes = sides.notes if model.is_llm else (*sides.notes, model.notice)
    finally:
        model.close()
    verdicts = {name: tuple(ratings.verdicts[k][name] for k in asked) for name in (*aspects, OVERALL)}
    rows = {name: ratings.values(name) for name in aspects}
    matrix = np.vstack([rows[bench.aspect], *(part.upward for part in gathered.parts)])
    told = _align(bench, matrix, sides.report, how)
    on_fit = [one.value if one.value is not None else -2.0 for one in _align(bench, matrix[1:], sides.fit, how)]
    best = int(np.argmax(on_fit))
    return ModelFusion(
        plan=chosen,
        verdicts=verdicts[bench.aspect],
        fused=told[0],
        parts={part.name: one for part, one in zip(gathered.parts, told[1:], strict=True)},
        best_part=gathered.parts[best].name,
        against_best=_difference(bench, matrix[[0, best + 1]], sides, how),
        calls=ratings.calls,
        notes=notes,
        also={
            name: OtherAspect(verdicts[name], _align(bench, rows[name][None, :], sides.report, how, name)[0])
            for name in aspects[1:]
        },
        overall=() if OVERALL in aspects else verdicts[OVERALL],
        usage=ratings.usage,
    )


def _plan(
    bench: Bench,
    gathered: Gathered,
    sides: Sides,
    how: StackSettings,
    *,
    ratings: ModelRatings,
    plan: str,
    aspects: Sequence[str],
) -> FusionPlan:
    """The plan in force."""
    names = [part.name for part in gathered.parts]
    if not plan:
        parts = dict.fromkeys(aspects, gathered.parts)
        at = sides.fit.tolist()
        return measured_plan(bench.golden, parts, at, statistic=how.statistic, level=how.level, seed=how.seed)
    if plan != MODEL_WRITES:
        return read_plan(plan, aspects, names)
    return read_plan(ratings.write_plan([task_of(bench.golden, one) for one in aspects]), aspects, names, "model")


def _align(bench: Bench, matrix: FloatArray, at: np.ndarray, how: StackSettings, aspect: str = "") -> list[Alignment]:
    golden = bench.golden
    return align_with_intervals(
        matrix[:, at],
        golden.labels(aspect or bench.aspect)[at],
        golden.source_codes[at],
        golden.system_codes[at],
        statistic=how.statistic,
        level=how.level,
        generator=np.random.default_rng([how.seed, 1]),
        resamples=how.resamples,
    )


def _difference(bench: Bench, pair: FloatArray, sides: Sides, how: StackSettings) -> Difference:
    golden, at = bench.golden, sides.report
    return paired_difference(
        pair[0][at],
        pair[1][at],
        golden.labels(bench.aspect)[at],
        golden.source_codes[at],
        golden.system_codes[at],
        statistic=how.statistic,
        level=how.level,
        generator=np.random.default_rng([how.seed, 2]),
        resamples=how.resamples,
    )
