"""Ablations of a finished calibration (001 Tables 5 and 8): what each part of the final judge brings.

The final judge is measured beside the same judge without criteria, without refinement (the best drafts, as many as the
final judge has members, chosen on calibration among drafts alone), with its single best criteria instead of the mean,
and, where the judge is a language model, with the evaluation steps switched (written where it had none, left out where
it had some).  Every variant is chosen on calibration items and evaluated on the held-out items that the calibration
reported on; only scores that nobody has yet are asked for.

`ablate` makes the judge ready, for notebooks; `ablation` asks one that is, for the worker too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.candidate_pool import AskedJudge, ScoreTable
from core.calibration.records import Calibration
from core.calibration.revisit import step_items
from core.calibration.variants import Plan, Variant, VariantKey, known_scores, plan_of
from core.errors import UsageError
from core.judging.base import Judge
from core.progress import SILENT, Progress, Stage
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Interval, ScoreMatrix, Task, Unscored, Usage
from core.stats import Difference, LabelledItems, align, holm, paired_difference


@dataclass(frozen=True)
class AblationRow:
    """One variant of the judge.

    `held_out_*` are about the variant minus the final judge on the `n` held-out items that both scored: below 0 the
    final judge aligns better.  `p_holm` is corrected over the table.  All None on the final judge's own row and where
    undefined (`reason`).  `first_look`: nobody had measured it on held-out before this table.
    """

    key: VariantKey
    what: str
    criteria_ids: tuple[str, ...]
    calibration: Alignment
    held_out: Alignment
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    n: int = 0
    reason: str = ""
    first_look: bool = False


@dataclass(frozen=True)
class Ablation:
    """The table.  `left_out` names variants that are missing and why, `steps` the evaluation steps by criteria id.

    `calibration_positions` are those of the split, whose labels chose the criteria.
    `scores` holds the variants' scores (rows by key) over all items of the golden set, NaN where not asked for.
    """

    task: Task
    golden_digest: str
    judge_spec: str
    rows: tuple[AblationRow, ...]
    left_out: Mapping[str, str]
    calibration_positions: tuple[int, ...]
    n_held_out: int
    scores: ScoreMatrix
    calls: int
    usage: Usage
    steps: Mapping[str, str] = field(default_factory=dict)

    @property
    def first_looks(self) -> tuple[AblationRow, ...]:
        return tuple(row for row in self.rows if row.first_look)

    @property
    def opening(self) -> str:
        """What was done to the held-out items for this table, in words."""
        if not self.first_looks:
            return f"All rows were measured on the {self.n_held_out:,} held-out items before; nothing new was opened."
        names = ", ".join(row.key for row in self.first_looks)
        return (
            f"The {self.n_held_out:,} held-out items were opened for this table. Measured there for the first time: "
            f"{names}. Take it as a look at what each part brings; choosing a row by these figures would make held-out "
            "items part of the choice."
        )


def ablate(
    calibration: Calibration,
    golden: GoldenSet,
    judge: Judge,
    *,
    scores: ScoreMatrix | None = None,
    with_steps: bool = True,
    progress: Progress = SILENT,
) -> Ablation:
    """The ablation table of `calibration`, scored by `judge`, which must be the one that was calibrated.

    `scores` are what the run has stored of its candidates (rows by criteria id, any items of `golden`); what neither
    they nor the calibration hold is asked for, at most once.  UsageError for another golden set or judge; errors of the
    judge pass through.
    """
    spec = calibration.judge_state.get("spec", judge.spec)
    if judge.spec != spec:
        raise UsageError(f"The calibration was made with the judge {spec}, and {judge.spec} came. Give the same judge.")
    ready = judge.prepare(calibration.task, [golden.items[p] for p in calibration.split.calibration])
    return ablation(AskedJudge(ready, golden, calibration.task, progress), calibration, scores, with_steps=with_steps)


def ablation(
    judge: AskedJudge, calibration: Calibration, scores: ScoreMatrix | None = None, *, with_steps: bool = True
) -> Ablation:
    """As `ablate`, with a judge that is ready."""
    golden = judge.golden
    plan = plan_of(calibration, golden, steps_in_force(judge.judge), with_steps=with_steps)
    work = _Work(judge, plan, known_scores(golden, calibration, scores))
    work.publish("scoring what is missing")
    for criteria, positions in plan.missing(work.table):
        work.ask(work.table, judge, criteria, positions)
    for variant in plan.variants:
        if variant.stepped:
            work.score_by_steps(variant)
    result = _result(calibration, work)
    work.publish("done", done=True)
    return result


class _Work:
    """Scores of all variants as they come in, and what they cost: those by other evaluation steps in their own tables,
    the others in `table`."""

    def __init__(self, judge: AskedJudge, plan: Plan, table: ScoreTable) -> None:
        self.judge, self.plan, self.table, self.expected = judge, plan, table, plan.calls(table)
        self.by_steps: dict[VariantKey, ScoreTable] = {}
        self.steps: dict[str, str] = {}
        self.left_out = dict(plan.left_out)

    def publish(self, message: str, *, done: bool = False) -> None:
        budget = self.table.budget
        phase, expected = "done" if done else "held-out", max(self.expected, budget.calls)
        self.judge.progress.publish(Stage(phase, message, budget.calls, expected, budget.usage))

    def ask(self, table: ScoreTable, judge: AskedJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> None:
        size = step_items(len(positions), len(criteria))
        for start in range(0, len(positions), size):
            table.ask(judge, criteria, positions[start : start + size])
            self.publish(f"{table.budget.calls:,} of {self.expected:,} scores")

    def score_by_steps(self, variant: Variant) -> None:
        """The variant with other evaluation steps; left out, with the reason, when they cannot be written.

        Each set of criteria has steps of its own, so each is scored by a judge of its own, whose scores are not kept
        as those of the criteria.
        """
        from core.judging.llm import LLMJudge

        judge, budget, model = self.judge, self.table.budget, self.judge.judge
        assert isinstance(model, LLMJudge), "no other judge has steps to switch"
        texts = dict.fromkeys((member.criteria_id for member in variant.members), "")
        if variant.key == "with evaluation steps":
            for member in variant.members:
                written = model.write_steps(judge.task, member.text)
                budget.spend(1, written.usage)
                texts[member.criteria_id] = written.text
                if written.problem and variant.key not in self.left_out:
                    self.left_out[variant.key] = f"The model wrote no usable evaluation steps: {written.problem}"
            if variant.key in self.left_out:
                return
            self.steps = texts
        table = self.by_steps[variant.key] = ScoreTable(judge.golden.item_ids, budget)
        for member in variant.members:
            stepped = model.with_sampling(replace(model.sampling, steps=texts[member.criteria_id]))
            member_judge = AskedJudge(stepped, judge.golden, judge.task, judge.progress)
            self.ask(table, member_judge, [member], self.plan.positions)


def steps_in_force(judge: Judge) -> str | None:
    """The evaluation steps that `judge` scores with, "" for none; None for a judge that knows no such thing."""
    from core.judging.llm import LLMJudge

    return judge.sampling.steps if isinstance(judge, LLMJudge) else None


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────


def _result(calibration: Calibration, work: _Work) -> Ablation:
    golden, plan = work.judge.golden, work.plan
    variants = [variant for variant in plan.variants if variant.key not in work.left_out]
    scores = _variant_scores(golden, variants, work)
    return Ablation(
        task=calibration.task,
        golden_digest=golden.digest,
        judge_spec=str(calibration.judge_state.get("spec", "")),
        rows=_rows(calibration, golden, plan, variants, scores),
        left_out=work.left_out,
        calibration_positions=calibration.split.calibration,
        n_held_out=len(plan.held_out),
        scores=scores,
        calls=work.table.budget.calls,
        usage=work.table.budget.usage,
        steps=work.steps,
    )


def _variant_scores(golden: GoldenSet, variants: Sequence[Variant], work: _Work) -> ScoreMatrix:
    """(n_variants, n_items) over all items; the final judge's exactly as the calibration has them."""
    used = np.zeros(len(golden.items), dtype=np.bool_)
    used[list(work.plan.positions)] = True
    rows: list[FloatArray] = []
    unscored: dict[str, tuple[Unscored, ...]] = {}
    for variant in variants:
        table = work.by_steps.get(variant.key, work.table)
        ids = ["final"] if variant.key == "final" else [member.criteria_id for member in variant.members]
        rows.append(np.where(used, table.mean(ids), np.nan))
        reasons = table.reasons(ids)
        lost = [golden.item_ids[k] for k in np.flatnonzero(used & np.isnan(rows[-1]))]
        if why := tuple(reasons[item_id] for item_id in lost if item_id in reasons):
            unscored[variant.key] = why
    return ScoreMatrix(tuple(variant.key for variant in variants), golden.item_ids, np.stack(rows), unscored)


def _rows(
    calibration: Calibration, golden: GoldenSet, plan: Plan, variants: Sequence[Variant], scores: ScoreMatrix
) -> tuple[AblationRow, ...]:
    """Measured as in the calibration's own report, so that the final judge's row equals it; Holm over the others."""
    settings, measure = calibration.settings, calibration.held_out.measure
    on_calibration, on_held_out = (
        LabelledItems.of(golden, calibration.task.aspect, part) for part in (plan.calibration, plan.held_out)
    )

    def aligned(values: FloatArray, items: LabelledItems) -> Alignment:
        return align(values[items.positions], items, measure, resamples=settings.resamples, seed=[settings.seed, 9])

    def minus_final(values: FloatArray) -> Difference:
        new, old = (row[on_held_out.positions] for row in (values, scores.values[0]))
        seed = [settings.seed, 10]
        return paired_difference(new, old, on_held_out, measure, resamples=settings.resamples, seed=seed)

    rows = [
        AblationRow(
            variant.key,
            variant.what,
            tuple(criteria.criteria_id for criteria in variant.members),
            aligned(values, on_calibration),
            aligned(values, on_held_out),
            first_look=variant.key == "without refinement" or variant.stepped,
        )
        for variant, values in zip(variants, scores.values, strict=True)
    ]
    differences = [minus_final(values) for values in scores.values[1:]]
    p_values = holm([np.nan if difference.p is None else difference.p for difference in differences])
    return rows[0], *(
        replace(
            row,
            difference=difference.value,
            interval=difference.interval,
            p=difference.p,
            p_holm=None if np.isnan(p_holm) else float(p_holm),
            n=difference.n,
            reason=difference.reason,
        )
        for row, difference, p_holm in zip(rows[1:], differences, p_values, strict=True)
    )
