"""LLM fusion without a store, for the command line: parts, a plan, one call an item, told on held-out items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.errors import UsageError
from core.fusion.llm import FusionJudge, numbers_of
from core.fusion.plan import FusionPlan, helper_of, measured_plan, plan_messages, read_plan
from core.fusion.stack import Sides, StackSettings
from core.jobs.tasks.fusion_parts import Bench, Gathered
from core.jobs.tasks.style_grid.asking import language_model
from core.judging.llm import LLMJudge
from core.providers.base import Completion, Request
from core.public import task_of
from core.records import Alignment, FloatArray, Scored, Verdict
from core.stats import Difference, align_with_intervals, paired_difference

PLAN_TOKENS = 1_500
MODEL_WRITES = "model"
"""In the place of a plan's text: the model writes it."""


@dataclass(frozen=True)
class ModelFusion:
    """What came out; `best_part` is the part that aligned best on the items to fit on."""

    plan: FusionPlan
    verdicts: tuple[Verdict, ...]
    fused: Alignment
    parts: dict[str, Alignment]
    best_part: str
    against_best: Difference
    calls: int
    notes: tuple[str, ...]


def fuse_by_model(
    bench: Bench,
    gathered: Gathered,
    sides: Sides,
    how: StackSettings,
    *,
    spec: str,
    plan: str = "",
    on_item: Callable[[int, object], None] | None = None,
) -> ModelFusion:
    """Fuse with the model `spec`, on the report side alone.

    `plan` is a plan's text, `MODEL_WRITES`, or "" for one measured on the fit side.  UsageError for a plan that does
    not fit, and for a judge that is no language model.
    """
    if not gathered.parts:
        raise UsageError(f"No part is usable: {'; '.join(gathered.left_out.values())}")
    model = language_model(spec, bench.settings, bench.replies)
    try:
        chosen, calls = _plan(bench, gathered, sides, how, model=model, plan=plan)
        judge = FusionJudge((task_of(bench.golden, bench.aspect),), tuple(map(helper_of, gathered.parts)), chosen)
        items = bench.golden.items
        asked = [k for k in sides.report.tolist() if items[k].target.strip()]
        requests = [judge.request(model.model, items[k], numbers_of(gathered.parts, k)) for k in asked]
        replies = model.provider.complete(requests, on_reply=on_item)
        verdicts = [judge.read(items[k].item_id, reply)[bench.aspect] for k, reply in zip(asked, replies, strict=True)]
        notes = sides.notes if model.is_llm else (*sides.notes, model.notice)
    finally:
        model.close()
    values = np.full(len(items), np.nan)
    values[asked] = [one.value if isinstance(one, Scored) else np.nan for one in verdicts]
    matrix = np.vstack([values, *(part.upward for part in gathered.parts)])
    told = _align(bench, matrix, sides.report, how)
    on_fit = [one.value if one.value is not None else -2.0 for one in _align(bench, matrix[1:], sides.fit, how)]
    best = int(np.argmax(on_fit))
    return ModelFusion(
        plan=chosen,
        verdicts=tuple(verdicts),
        fused=told[0],
        parts={part.name: one for part, one in zip(gathered.parts, told[1:], strict=True)},
        best_part=gathered.parts[best].name,
        against_best=_difference(bench, matrix[[0, best + 1]], sides, how),
        calls=calls + len(requests),
        notes=notes,
    )


def _plan(
    bench: Bench, gathered: Gathered, sides: Sides, how: StackSettings, *, model: LLMJudge, plan: str
) -> tuple[FusionPlan, int]:
    """The plan in force, and the calls it took."""
    names = [part.name for part in gathered.parts]
    if not plan:
        parts = {bench.aspect: gathered.parts}
        at = sides.fit.tolist()
        return measured_plan(bench.golden, parts, at, statistic=how.statistic, level=how.level, seed=how.seed), 0
    if plan != MODEL_WRITES:
        return read_plan(plan, [bench.aspect], names), 0
    messages = plan_messages([task_of(bench.golden, bench.aspect)], [helper_of(part) for part in gathered.parts])
    reply = model.provider.complete([Request(model.model, messages, 0.0, PLAN_TOKENS)])[0]
    if not isinstance(reply, Completion):
        raise UsageError(f"The model wrote no plan: {reply.message}")
    return read_plan(reply.text, [bench.aspect], names, "model"), 1


def _align(bench: Bench, matrix: FloatArray, at: np.ndarray, how: StackSettings) -> list[Alignment]:
    golden = bench.golden
    return align_with_intervals(
        matrix[:, at],
        golden.labels(bench.aspect)[at],
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
