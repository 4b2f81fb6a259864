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
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.pool import AskedJudge, CallBudget, ensemble_scores
from core.calibration.records import Calibration
from core.calibration.revisit import STEP_CALLS, STEP_ITEMS
from core.calibration.variants import Known, Plan, Variant, VariantKey, plan_of
from core.errors import JudgeError, UsageError
from core.judging.base import Judge
from core.progress import SILENT, Progress, Stage
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Interval, ScoreMatrix, Task, Unscored, Usage
from core.stats import Difference, LabelledItems, align, holm, paired_difference

if TYPE_CHECKING:
    from core.judging.llm import LLMJudge, WrittenSteps


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
    asked: AskedJudge, calibration: Calibration, scores: ScoreMatrix | None = None, *, with_steps: bool = True
) -> Ablation:
    """As `ablate`, with a judge that is ready."""
    steps, golden = steps_in_force(asked.judge), asked.golden
    plan = plan_of(calibration, golden, writes_steps=steps is not None, has_steps=bool(steps), with_steps=with_steps)
    known = Known(golden, calibration, scores)
    gathered = _Gathered(asked, plan, known)
    gathered.publish("scoring what is missing")
    gathered.plain()
    for variant in plan.variants:
        if variant.stepped:
            gathered.stepped(variant)
    result = _result(calibration, golden, gathered)
    gathered.publish("done", done=True)
    return result


class _Gathered:
    """Scores of all variants as they come in, and what they cost."""

    def __init__(self, asked: AskedJudge, plan: Plan, known: Known) -> None:
        self.asked, self.plan, self.known, self.expected = asked, plan, known, known.calls(plan)
        self.spent = CallBudget()
        self.steps: dict[str, str] = {}
        self.left_out = dict(plan.left_out)
        self.own: dict[str, ScoreMatrix] = {}

    def publish(self, message: str, *, done: bool = False) -> None:
        calls = self.spent.calls
        phase = "done" if done else "held-out"
        self.asked.progress.publish(Stage(phase, message, calls, max(self.expected, calls), self.spent.usage))

    def count(self, matrix: ScoreMatrix) -> ScoreMatrix:
        """The scores, once their calls are counted and shown."""
        self.spent.spend(matrix.calls, matrix.usage)
        self.publish(f"{self.spent.calls:,} of {self.expected:,} scores")
        return matrix

    def plain(self) -> None:
        """Variants that differ in their criteria alone."""
        for criteria, positions in self.known.missing(self.plan):
            for batch in _batches(positions, len(criteria)):
                self.known.take(self.count(self.asked.score(criteria, batch)))

    def stepped(self, variant: Variant) -> None:
        """The variant with other evaluation steps; left out, with the reason, when they cannot be written."""
        texts = ("",) * len(variant.members)
        if variant.key == "with evaluation steps":
            written = written_steps(self.asked, variant.members)
            self.spent.spend(len(written), sum((steps.usage for steps in written), Usage()))
            if problem := next((steps.problem for steps in written if steps.problem), ""):
                self.left_out[variant.key] = f"The model wrote no usable evaluation steps: {problem}"
                return
            texts = tuple(steps.text for steps in written)
            self.steps = {one.criteria_id: text for one, text in zip(variant.members, texts, strict=True)}
        self.own[variant.key] = _joined(
            [
                self.count(scored_by_steps(self.asked, variant.members, texts, batch))
                for batch in _batches(self.plan.positions, len(variant.members))
            ]
        )

    def variants(self) -> list[Variant]:
        return [variant for variant in self.plan.variants if variant.key not in self.left_out]


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────


def _result(calibration: Calibration, golden: GoldenSet, gathered: _Gathered) -> Ablation:
    plan, aspect = gathered.plan, calibration.task.aspect
    split_parts = [LabelledItems.of(golden, aspect, part) for part in (plan.calibration, plan.held_out)]
    scores = _variant_scores(calibration, golden, gathered)
    final = scores.values[0]
    rows, differences = [], []
    for variant, values in zip(gathered.variants(), scores.values, strict=True):
        on_calibration, on_held_out = (_aligned(calibration, values, items) for items in split_parts)
        differences.append(None if variant.key == "final" else _minus_final(calibration, values, final, split_parts[1]))
        rows.append(
            AblationRow(
                variant.key,
                variant.what,
                tuple(criteria.criteria_id for criteria in variant.members),
                on_calibration,
                on_held_out,
                first_look=variant.key == "without refinement" or variant.stepped,
            )
        )
    return Ablation(
        task=calibration.task,
        golden_digest=golden.digest,
        judge_spec=str(calibration.judge_state.get("spec", "")),
        rows=_corrected(rows, differences),
        left_out=gathered.left_out,
        calibration_positions=calibration.split.calibration,
        n_held_out=len(plan.held_out),
        scores=scores,
        calls=gathered.spent.calls,
        usage=gathered.spent.usage,
        steps=gathered.steps,
    )


def _variant_scores(calibration: Calibration, golden: GoldenSet, gathered: _Gathered) -> ScoreMatrix:
    """(n_variants, n_items) over all items; the final judge's exactly as the calibration has them."""
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    used = np.zeros(len(golden.items), dtype=np.bool_)
    used[list(gathered.plan.positions)] = True
    rows: list[FloatArray] = []
    unscored: dict[str, tuple[Unscored, ...]] = {}
    for variant in gathered.variants():
        own = np.full(len(golden.items), np.nan)
        reasons: dict[str, Unscored] = {}
        if variant.key == "final":
            own[[at[item_id] for item_id in calibration.scores.item_ids]] = calibration.scores.values[0]
            reasons = {one.item_id: one for one in calibration.scores.unscored.get("final", ())}
        elif variant.stepped:
            matrix = gathered.own[variant.key]
            own[[at[item_id] for item_id in matrix.item_ids]] = ensemble_scores(matrix.values)
            reasons = {one.item_id: one for why in matrix.unscored.values() for one in why}
        else:
            own = ensemble_scores(gathered.known.rows(variant.members))
            for one in variant.members:
                reasons = gathered.known.unscored.get(one.criteria_id, {}) | reasons
        rows.append(np.where(used, own, np.nan))
        lost = [golden.item_ids[k] for k in np.flatnonzero(used & np.isnan(own))]
        unscored[variant.key] = tuple(reasons[item_id] for item_id in lost if item_id in reasons)
    keys = tuple(variant.key for variant in gathered.variants())
    return ScoreMatrix(keys, golden.item_ids, np.stack(rows), {key: why for key, why in unscored.items() if why})


def _aligned(calibration: Calibration, values: FloatArray, items: LabelledItems) -> Alignment:
    """As in the calibration's own report, so that the final judge's row equals it."""
    settings, measure = calibration.settings, calibration.held_out.measure
    return align(values[items.positions], items, measure, resamples=settings.resamples, seed=[settings.seed, 9])


def _minus_final(calibration: Calibration, values: FloatArray, final: FloatArray, items: LabelledItems) -> Difference:
    return paired_difference(
        values[items.positions],
        final[items.positions],
        items,
        calibration.held_out.measure,
        resamples=calibration.settings.resamples,
        seed=[calibration.settings.seed, 10],
    )


def _corrected(rows: Sequence[AblationRow], differences: Sequence[Difference | None]) -> tuple[AblationRow, ...]:
    """The rows with their differences; Holm over those that have a p value."""
    p_values = holm([np.nan if one is None or one.p is None else one.p for one in differences])
    return tuple(
        row
        if difference is None
        else replace(
            row,
            difference=difference.value,
            interval=difference.interval,
            p=difference.p,
            p_holm=None if np.isnan(p_holm) else float(p_holm),
            n=difference.n,
            reason=difference.reason,
        )
        for row, difference, p_holm in zip(rows, differences, p_values, strict=True)
    )


def _joined(parts: Sequence[ScoreMatrix]) -> ScoreMatrix:
    """Matrices of the same criteria on batches of items → one over all items."""
    names = parts[0].criteria_ids
    return ScoreMatrix(
        names,
        tuple(item_id for part in parts for item_id in part.item_ids),
        np.hstack([part.values for part in parts]),
        {name: tuple(one for part in parts for one in part.unscored.get(name, ())) for name in names},
    )


def _batches(positions: Sequence[int], n_criteria: int) -> list[tuple[int, ...]]:
    size = max(STEP_ITEMS, STEP_CALLS // n_criteria)
    return [tuple(positions[start : start + size]) for start in range(0, len(positions), size)]


# ── evaluation steps: each set of criteria has its own, so each is scored by a judge of its own ──


def steps_in_force(judge: Judge) -> str | None:
    """The evaluation steps that `judge` scores with, "" for none; None for a judge that knows no such thing."""
    from core.judging.llm import LLMJudge

    return judge.sampling.steps if isinstance(judge, LLMJudge) else None


def written_steps(asked: AskedJudge, criteria: Sequence[Criteria]) -> list[WrittenSteps]:
    """Evaluation steps that the model writes for each of `criteria`, in their order.

    JudgeError for a judge that is no LLM judge.
    """
    model = _language_model(asked.judge)
    return [model.write_steps(asked.task, criterion.text) for criterion in criteria]


def scored_by_steps(
    asked: AskedJudge, criteria: Sequence[Criteria], steps: Sequence[str], positions: Sequence[int]
) -> ScoreMatrix:
    """Scores of each of `criteria`, following its own evaluation `steps` ("" is without), at `positions`."""
    from core.judging.llm import LLMJudge

    model = _language_model(asked.judge)
    items = [asked.golden.items[position] for position in positions]
    parts: list[ScoreMatrix] = []
    for done, (criterion, text) in enumerate(zip(criteria, steps, strict=True)):
        judge = LLMJudge(model.provider, model.model, spec=model.spec, sampling=replace(model.sampling, steps=text))

        def advance(own: int, _: int, before: int = done * len(items)) -> None:
            asked.progress.advance(before + own, len(criteria) * len(items))

        parts.append(judge.score(asked.task, items, [criterion], on_progress=advance))
    return _stacked(parts)


def _language_model(judge: Judge) -> LLMJudge:
    from core.judging.llm import LLMJudge

    if not isinstance(judge, LLMJudge):
        raise JudgeError(f"The judge {judge.spec} is no LLM judge: it knows no evaluation steps.")
    return judge


def _stacked(parts: Sequence[ScoreMatrix]) -> ScoreMatrix:
    """Matrices of single criteria on the same items → one of all."""
    return ScoreMatrix(
        tuple(name for part in parts for name in part.criteria_ids),
        parts[0].item_ids,
        np.vstack([part.values for part in parts]),
        {name: why for part in parts for name, why in part.unscored.items()},
        sum(part.calls for part in parts),
        sum((part.usage for part in parts), Usage()),
    )
