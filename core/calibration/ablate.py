"""Ablations of a finished calibration: what each part of the final judge adds.

The final judge is measured next to the same judge without criteria, without refinement (the best drafts, as many as the
final judge has members, chosen on calibration among drafts alone), and with its single best criteria instead of the
mean.  Every variant is chosen on calibration items and evaluated on the held-out items that the calibration
reported on; only scores that nobody has yet are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from core.calibration.calibration_result import Calibration
from core.calibration.candidate_pool import AskedJudge, ScoreTable
from core.calibration.racing import step_items
from core.errors import UsageError
from core.progress import Stage
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
from core.stats import LabelledItems, align, holm, paired_difference

VariantKey = Literal["final", "without criteria", "without refinement", "single best"]


@dataclass(frozen=True)
class Variant:
    """A way to judge: the mean over `members`; `what` says how it differs from the final judge."""

    key: VariantKey
    members: tuple[Criteria, ...]
    what: str

    @property
    def rows(self) -> list[str]:
        """The rows of a score table that its scores are the mean of."""
        return ["final"] if self.key == "final" else [member.criteria_id for member in self.members]


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

    def missing(self, table: ScoreTable) -> dict[tuple[int, ...], dict[str, Criteria]]:
        """Positions at which nobody has scored criteria yet → these criteria by id."""
        groups: dict[tuple[int, ...], dict[str, Criteria]] = {}
        for variant in self.variants:
            for member in variant.members if variant.key != "final" else ():
                is_asked = table.asked[member.criteria_id]
                if left := tuple(p for p in self.positions if not is_asked[p]):
                    groups.setdefault(left, {})[member.criteria_id] = member
        return groups

    def calls(self, table: ScoreTable) -> int:
        """Calls still to make: one for each set of criteria and item."""
        return sum(len(criteria) * len(positions) for positions, criteria in self.missing(table).items())


@dataclass(frozen=True)
class AblationRow:
    """One variant of the judge.

    `difference` is the variant minus the final judge on the `n` held-out items that both scored: below 0 the final
    judge aligns better.  `p_holm` is corrected over the table.  All None on the final judge's own row and where
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

    def as_json(self) -> dict[str, Any]:
        ends = self.interval and self.interval.as_json()
        test = {"value": self.difference, "interval": ends, "p": self.p, "p_holm": self.p_holm, "n": self.n}
        return {
            "variant": self.key,
            "what": self.what,
            "criteria": len(self.criteria_ids),
            "calibration": self.calibration.as_json(),
            "held_out": self.held_out.as_json(),
            "difference": None if self.difference is None else test,
            "reason": self.reason,
            "first_look": self.first_look,
        }


@dataclass(frozen=True)
class Ablation:
    """The table.  `left_out` names variants that are missing and why.

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

    @property
    def opening(self) -> str:
        """What was done to the held-out items for this table, in words."""
        names = ", ".join(row.key for row in self.rows if row.first_look)
        if not names:
            return f"All rows were measured on the {self.n_held_out:,} held-out items before; nothing new was opened."
        return (
            f"The {self.n_held_out:,} held-out items were opened for this table. Measured there for the first time: "
            f"{names}. Take it as a look at what each part adds; choosing a row by these figures would make held-out "
            "items part of the choice."
        )

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `ablate --json` prints; `out` is the folder it was written to."""
        rows = [row.as_json() for row in self.rows]
        about = {"aspect": self.task.aspect, "judge": self.judge_spec, "n_held_out": self.n_held_out}
        return about | {"rows": rows, "left_out": dict(self.left_out), "calls": self.calls, "out": out}


def ablate(judge: AskedJudge, calibration: Calibration, scores: ScoreMatrix | None = None) -> Ablation:
    """Measure the variants of `calibration` with `judge`, the prepared judge that was calibrated.

    `scores` are what the run has stored of its candidates (rows by criteria id, any items of the golden set); what
    neither they nor the calibration hold is asked for, at most once.  UsageError for another golden set; errors of the
    judge pass through.
    """
    golden, plan = judge.golden, plan_of(calibration, judge.golden)
    table = known_scores(golden, calibration, scores)
    budget, expected = table.budget, plan.calls(table)

    def publish(message: str, phase: str = "held-out") -> None:
        judge.progress.publish(Stage(phase, message, budget.calls, expected, budget.usage))

    publish("scoring what is missing")
    for positions, missing in plan.missing(table).items():
        size = step_items(len(positions), len(missing))
        for start in range(0, len(positions), size):
            table.ask(judge, list(missing.values()), positions[start : start + size])
            publish(f"{budget.calls:,} of {expected:,} scores")
    used = np.isin(np.arange(len(golden.items)), plan.positions)
    values = np.stack([np.where(used, table.mean(variant.rows), np.nan) for variant in plan.variants])
    unscored: dict[str, tuple[Unscored, ...]] = {}
    for variant, row in zip(plan.variants, values, strict=True):
        reasons = table.reasons(variant.rows)
        lost = [golden.item_ids[k] for k in np.flatnonzero(used & np.isnan(row))]
        if why := tuple(reasons[item_id] for item_id in lost if item_id in reasons):
            unscored[variant.key] = why
    publish("done", "done")
    return Ablation(
        task=calibration.task,
        golden_digest=golden.digest,
        judge_spec=str(calibration.judge_state.get("spec", "")),
        rows=_rows(calibration, golden, plan, values),
        left_out=plan.left_out,
        calibration_positions=calibration.split.calibration,
        n_held_out=len(plan.held_out),
        scores=ScoreMatrix(tuple(variant.key for variant in plan.variants), golden.item_ids, values, unscored),
        calls=budget.calls,
        usage=budget.usage,
    )


def known_scores(golden: GoldenSet, calibration: Calibration, scores: ScoreMatrix | None = None) -> ScoreTable:
    """What the calibration reported and, with `scores`, what its run has stored: rows by criteria id, and "final"."""
    table = ScoreTable(golden.item_ids)
    for matrix in (calibration.scores, scores):
        if matrix is not None:
            table.enter(matrix, stored=True)
    return table


def plan_of(calibration: Calibration, golden: GoldenSet) -> Plan:
    """The variants of `calibration` that differ from its final judge, and the others with the reason.

    Choosing looks at calibration items only.  UsageError when `golden` is not the one that was calibrated on.
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
    cut = {lost.item_id for lost in calibration.scores.unscored.get("final", ()) if lost.reason == "budget"}
    reported = {item_id for item_id in calibration.scores.item_ids if item_id not in cut}
    sides = (calibration.split.calibration, calibration.split.held_out)
    return Plan(
        tuple(variants), left_out, *(tuple(p for p in side if golden.item_ids[p] in reported) for side in sides)
    )


def _rows(calibration: Calibration, golden: GoldenSet, plan: Plan, values: FloatArray) -> tuple[AblationRow, ...]:
    """Measured as in the calibration's own report, so that the final judge's row equals it; Holm over the others."""
    measure, resamples, seed = calibration.held_out.measure, calibration.settings.resamples, calibration.settings.seed
    sides = [LabelledItems.of(golden, calibration.task.aspect, part) for part in (plan.calibration, plan.held_out)]
    rows: list[AblationRow] = []
    for variant, own in zip(plan.variants, values, strict=True):
        ids = tuple(criteria.criteria_id for criteria in variant.members)
        found = [align(own[side.positions], side, measure, resamples=resamples, seed=[seed, 9]) for side in sides]
        first_look = variant.key == "without refinement"
        row = AblationRow(variant.key, variant.what, ids, found[0], found[1], first_look=first_look)
        if rows:
            new, old = (scores[sides[1].positions] for scores in (own, values[0]))
            test = paired_difference(new, old, sides[1], measure, resamples=resamples, seed=[seed, 10])
            row = replace(row, difference=test.value, interval=test.interval, p=test.p, n=test.n, reason=test.reason)
        rows.append(row)
    corrected = holm([np.nan if row.p is None else row.p for row in rows[1:]])
    tested = (
        replace(row, p_holm=None if np.isnan(p) else float(p)) for row, p in zip(rows[1:], corrected, strict=True)
    )
    return rows[0], *tested
