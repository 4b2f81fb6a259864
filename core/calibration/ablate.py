"""Ablations of a finished calibration (001 Tables 5 and 8): what each part of the final judge brings.

The final judge is measured beside the same judge without criteria, without refinement (the best drafts, as many as the
final judge has members, chosen on calibration among drafts alone), with its single best criteria instead of the mean,
and, where the judge is a language model, with the evaluation steps switched (written where it had none, left out where
it had some).  Every variant is chosen on calibration items and evaluated on the held-out items that the calibration
reported on; only scores that nobody has yet are asked for.

`ablate` makes the judge ready, for notebooks; `ablation` asks one that is, for the worker too.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.calibration.calibration_result import Calibration
from core.calibration.candidate_pool import AskedJudge, Keeper, ScoreTable
from core.calibration.revisit import step_items
from core.errors import UsageError
from core.files import write_json, write_text
from core.judging.judge_protocol import Judge
from core.judging.llm_judge import LLMJudge
from core.progress import SILENT, Progress, Stage
from core.records import (
    Alignment,
    Criteria,
    FloatArray,
    GoldenSet,
    Interval,
    Provenance,
    ScoreMatrix,
    Task,
    Unscored,
    Usage,
)
from core.stats import Difference, LabelledItems, align, holm, paired_difference

VariantKey = Literal[
    "final",
    "without criteria",
    "without refinement",
    "single best",
    "with evaluation steps",
    "without evaluation steps",
]


@dataclass(frozen=True)
class Variant:
    """A way to judge: the mean over `members`; `what` says how it differs from the final judge.

    `stepped`: its scores come from other evaluation steps than the calibration's.
    """

    key: VariantKey
    members: tuple[Criteria, ...]
    what: str
    stepped: bool = False


@dataclass(frozen=True)
class Plan:
    """`variants`, the final judge first; `left_out` says why others are missing.

    `calibration` and `held_out` are the positions that the calibration reported on.
    """

    variants: tuple[Variant, ...]
    left_out: Mapping[str, str]
    calibration: tuple[int, ...]
    held_out: tuple[int, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        return self.calibration + self.held_out

    def missing(self, table: ScoreTable) -> list[tuple[tuple[Criteria, ...], tuple[int, ...]]]:
        """Criteria with the positions at which nobody has scored them yet, those with the same positions together."""
        groups: dict[tuple[int, ...], dict[str, Criteria]] = {}
        for variant in self.variants:
            for member in variant.members if variant.key != "final" and not variant.stepped else ():
                is_asked = table.asked(member.criteria_id)
                if left := tuple(p for p in self.positions if not is_asked[p]):
                    groups.setdefault(left, {})[member.criteria_id] = member
        return [(tuple(criteria.values()), positions) for positions, criteria in groups.items()]

    def calls(self, table: ScoreTable) -> int:
        """Calls that this still takes: one for each criterion and item, one for each set of evaluation steps."""
        plain = sum(len(criteria) * len(positions) for criteria, positions in self.missing(table))
        stepped = [variant for variant in self.variants if variant.stepped]
        written = sum(len(variant.members) for variant in stepped if variant.key == "with evaluation steps")
        return plain + written + sum(len(variant.members) * len(self.positions) for variant in stepped)


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

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `ablate --json` prints; `out` is the folder it was written to."""
        rows = [
            {
                "variant": row.key,
                "what": row.what,
                "criteria": len(row.criteria_ids),
                "calibration": row.calibration.as_json(),
                "held_out": row.held_out.as_json(),
                "difference": None
                if row.difference is None
                else {
                    "value": row.difference,
                    "interval": None if row.interval is None else [row.interval.low, row.interval.high],
                    "p": row.p,
                    "p_holm": row.p_holm,
                    "n": row.n,
                },
                "reason": row.reason,
                "first_look": row.first_look,
            }
            for row in self.rows
        ]
        about = {"aspect": self.task.aspect, "judge": self.judge_spec, "n_held_out": self.n_held_out}
        return about | {"rows": rows, "left_out": dict(self.left_out), "calls": self.calls, "out": out}

    def save(self, folder: Path) -> dict[str, Any]:
        """Write `ablation.html` and `summary.json` into `folder`; returns the last."""
        from core.report.figures import measure_name
        from core.report.figures.analyses import ablation_figure

        held, body = self.rows[0].held_out, self.as_json(str(folder))
        figure = ablation_figure(self.rows, measure=measure_name(held.statistic, held.level))
        lines = [self.opening, *(f"{row.key}: {row.what}" for row in self.rows)]
        lines += [f"left out: {name}: {reason}" for name, reason in self.left_out.items()]
        words = f"{held.n:,} held-out items; differences are paired over sources, 95 % intervals."
        style = "body{font-family:system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#14202E}"
        style += "p{white-space:pre-wrap;line-height:1.4}svg{max-width:100%;height:auto}"
        title = html.escape(f"Ablation: {self.task.aspect}")
        paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in (*lines, words))
        page = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f"<style>{style}</style></head><body><h1>{title}</h1>{paragraphs}{figure.svg()}</body></html>\n"
        )
        write_text(folder / "ablation.html", page)
        write_json(folder / "summary.json", body)
        return body


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
    golden, model = judge.golden, judge.judge
    plan, table = plan_of(calibration, golden, model, with_steps=with_steps), known_scores(golden, calibration, scores)
    budget, expected, left_out = table.budget, plan.calls(table), dict(plan.left_out)

    def publish(message: str, phase: str = "held-out") -> None:
        judge.progress.publish(Stage(phase, message, budget.calls, max(expected, budget.calls), budget.usage))

    def ask(table: ScoreTable, asked: AskedJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> None:
        size = step_items(len(positions), len(criteria))
        for start in range(0, len(positions), size):
            table.ask(asked, criteria, positions[start : start + size])
            publish(f"{budget.calls:,} of {expected:,} scores")

    publish("scoring what is missing")
    for criteria, positions in plan.missing(table):
        ask(table, judge, criteria, positions)
    tables, steps = dict.fromkeys((variant.key for variant in plan.variants), table), dict[str, str]()
    for variant in plan.variants:
        if not variant.stepped:
            continue
        assert isinstance(model, LLMJudge), "no other judge has steps to switch"
        texts = dict.fromkeys((member.criteria_id for member in variant.members), "")
        if variant.key == "with evaluation steps":
            for member in variant.members:
                written = model.write_steps(judge.task, member.text)
                budget.spend(1, written.usage)
                texts[member.criteria_id] = written.text
                if written.problem:
                    left_out.setdefault(variant.key, f"The model wrote no usable evaluation steps: {written.problem}")
            if variant.key in left_out:
                continue
            steps = texts
        # each set of criteria has steps of its own; its scores are not kept as those of the criteria
        tables[variant.key] = ScoreTable(golden.item_ids, budget)
        for member in variant.members:
            stepped = model.with_sampling(replace(model.sampling, steps=texts[member.criteria_id]))
            ask(tables[variant.key], replace(judge, judge=stepped, keeper=Keeper()), [member], plan.positions)
    variants = [variant for variant in plan.variants if variant.key not in left_out]
    used = np.zeros(len(golden.items), dtype=np.bool_)
    used[list(plan.positions)] = True
    values, unscored = list[FloatArray](), dict[str, tuple[Unscored, ...]]()
    for variant in variants:
        ids = ["final"] if variant.key == "final" else [member.criteria_id for member in variant.members]
        values.append(np.where(used, tables[variant.key].mean(ids), np.nan))
        reasons = tables[variant.key].reasons(ids)
        lost = [golden.item_ids[k] for k in np.flatnonzero(used & np.isnan(values[-1]))]
        if why := tuple(reasons[item_id] for item_id in lost if item_id in reasons):
            unscored[variant.key] = why
    matrix = ScoreMatrix(tuple(variant.key for variant in variants), golden.item_ids, np.stack(values), unscored)
    publish("done", "done")
    return Ablation(
        task=calibration.task,
        golden_digest=golden.digest,
        judge_spec=str(calibration.judge_state.get("spec", "")),
        rows=_rows(calibration, golden, plan, variants, matrix),
        left_out=left_out,
        calibration_positions=calibration.split.calibration,
        n_held_out=len(plan.held_out),
        scores=matrix,
        calls=budget.calls,
        usage=budget.usage,
        steps=steps,
    )


def known_scores(golden: GoldenSet, calibration: Calibration, scores: ScoreMatrix | None = None) -> ScoreTable:
    """What the calibration reported and, with `scores`, what its run has stored: rows by criteria id, and "final"."""
    table = ScoreTable(golden.item_ids)
    for matrix in (calibration.scores, scores):
        if matrix is not None:
            table.enter(matrix, kept=True)
    return table


def plan_of(calibration: Calibration, golden: GoldenSet, judge: Judge, *, with_steps: bool = True) -> Plan:
    """The variants of `calibration` that differ from its final judge, and the others with the reason.

    Choosing looks at calibration items only.  `with_steps` False leaves that variant out.  UsageError when `golden` is
    not the one that was calibrated on.
    """
    if golden.digest != calibration.golden_digest:
        raise UsageError(
            f"The calibration was made on {calibration.golden_name} ({calibration.golden_digest[:19]}…); {golden.name} "
            f"({golden.digest[:19]}…) is another golden set or another version of it. Give the one it was made on."
        )
    chosen, n_items = calibration.chosen, len(calibration.split.calibration)
    variants, left_out = [Variant("final", chosen, "The calibrated judge as it is handed out.")], dict[str, str]()
    if any(criteria.text for criteria in chosen):
        bare = Criteria("", calibration.task.aspect, Provenance("none", note="the judge without criteria"))
        what = "The judge knows the name of the aspect and the scale, nothing more."
        variants.append(Variant("without criteria", (bare,), what))
    else:
        left_out["without criteria"] = "The final judge has no criteria: it is the same judge."
    drafts = [
        (candidate.alignment.value, candidate.criteria)
        for candidate in calibration.candidates
        if candidate.criteria.provenance.origin == "draft" and candidate.calls == n_items
        if candidate.alignment is not None and candidate.alignment.value is not None
    ]
    best = tuple(criteria for _, criteria in sorted(drafts, key=lambda pair: -pair[0])[: len(chosen)])
    if not any(criteria.provenance.origin == "refine" for criteria in chosen):
        left_out["without refinement"] = "No refined criteria came into the final judge: it is the same judge."
    elif not best:
        left_out["without refinement"] = "No draft was scored on all calibration items, so none can stand in."
    else:
        who = "The best draft" if len(best) == 1 else f"The {len(best)} best drafts"
        short = "" if len(best) == len(chosen) else f" (no more were scored on all {n_items:,} items)"
        what = f"{who}, chosen on calibration among drafts alone{short}."
        variants.append(Variant("without refinement", best, what))
    if len(chosen) > 1:
        what = f"The best criteria on calibration alone, instead of the mean of {len(chosen)}."
        variants.append(Variant("single best", chosen[:1], what))
    else:
        left_out["single best"] = "The final judge is a single set of criteria: it is the same judge."
    if isinstance(judge, LLMJudge) and with_steps:
        what = "The same criteria, each with evaluation steps that the model writes from them once (auto-CoT)."
        if judge.sampling.steps:
            what = "The same criteria without the evaluation steps."
            variants.append(Variant("without evaluation steps", chosen, what, stepped=True))
        else:
            variants.append(Variant("with evaluation steps", chosen, what, stepped=True))
    else:
        other = isinstance(judge, LLMJudge) and judge.sampling.steps
        left_out["without evaluation steps" if other else "with evaluation steps"] = (
            "It was not asked for."
            if isinstance(judge, LLMJudge)
            else "The judge is no language model: it neither writes nor follows evaluation steps."
        )
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    cut = {lost.item_id for lost in calibration.scores.unscored.get("final", ()) if lost.reason == "budget"}
    reported = {at[item_id] for item_id in calibration.scores.item_ids if item_id not in cut}
    sides = (calibration.split.calibration, calibration.split.held_out)
    return Plan(tuple(variants), left_out, *(tuple(p for p in side if p in reported) for side in sides))


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
