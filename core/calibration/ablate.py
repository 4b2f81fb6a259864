"""Measure what each element of a calibrated judge contributes, by comparing the judge with variants of itself.

The variants are:

- without criteria
- without refinement: the best drafts on the calibration set, as many as the judge has sets of criteria
- with the single best criteria instead of the mean over all
- without level descriptions, or without examples, if the prompt shows them
- with the name of the aspect alone: without criteria, level descriptions and examples

Every variant is chosen on calibration items and measured on the held-out items. Only missing scores are requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from core.calibration.calibration_records import Calibration, Estimate
from core.calibration.racing import BoundJudge, Recorder, ScoreTable, step_items
from core.errors import UsageError
from core.judging.judge_protocol import Judge
from core.judging.llm_judge import LLMJudge
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
    text_length,
)
from core.stats import LabelledItems, align, holm, paired_difference

VariantKey = Literal[
    "final",
    "without criteria",
    "without refinement",
    "single best",
    "without levels",
    "without examples",
    "name alone",
]
Part = Literal["levels", "examples"]


@dataclass(frozen=True, slots=True)
class Variant:
    """A judge with a part removed: it averages over `criteria`, and its prompt lacks the parts in `without`."""

    key: VariantKey
    criteria: tuple[Criteria, ...]
    what: str
    without: tuple[Part, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the variant in the score table: criteria ids, with the omitted parts as a prefix."""
        asked = "".join(f"without {part}: " for part in self.without)
        return tuple(asked + each.criteria_id for each in self.criteria)


@dataclass(frozen=True)
class AblationRow:
    """One variant of the judge, compared with the final judge.

    Attributes:
        what: Description of the variant.
        calibration: Alignment on calibration items.
        held_out: Alignment on held-out items.
        difference: Held-out alignment of the variant minus that of the final judge, on the `n` items that both scored.
            Below 0, the final judge agrees better with raters. None for the final judge, or if undefined.
        p_holm: The p of `difference`, Holm-corrected for all variants in the table.
        n: Number of held-out items that both the variant and the final judge scored.
        reason: Why `difference` or its p is None.
        first_look: Whether the variant had never been measured on held-out items before.
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
    """The ablation table: variants of a judge, with their alignments.

    Attributes:
        rows: The final judge and its variants.
        left_out: Variant → why it is missing.
        calibration_positions: Positions of the calibration items, on which the criteria were chosen.
        scores: Scores (n_variants, n_items) over the whole golden set, NaN where not requested.
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
        """A sentence on how this table used the held-out items."""
        if not any(row.first_look for row in self.rows):
            return f"All variants had already been measured on the {self.n_held_out:,} held-out items."
        return (
            f"This ablation used the {self.n_held_out:,} held-out items. If you choose a variant from this "
            "table, its held-out figure is optimistic."
        )

    def as_json(self, out: str = "") -> dict[str, Any]:
        """Return the JSON output of the `ablate` command; `out` is the output folder."""
        rows = [row.as_json() for row in self.rows]
        about = {"aspect": self.task.aspect, "judge": self.judge_spec, "n_held_out": self.n_held_out}
        return about | {"rows": rows, "left_out": dict(self.left_out), "calls": self.calls, "out": out}


class _Asked:
    """The variants of `calibration`, and the scores that are still missing.

    `sides` are the reported positions of the calibration set and of the held-out set. `table` holds the scores of the
    calibration and those passed as `scores`. `missing` maps (parts left out, positions) to the criteria to score there,
    by column. Raises UsageError if `golden` is not the golden set of the calibration.
    """

    def __init__(self, calibration: Calibration, golden: GoldenSet, scores: ScoreMatrix | None) -> None:
        if golden.digest != calibration.golden_digest:
            raise UsageError(
                f"The judge was calibrated on {calibration.golden_name}, but {golden.name} has different items or "
                "labels. Use the original golden set."
            )
        self.variants, self.left_out = variants_of(calibration)
        cut = {lost.item_id for lost in calibration.scores.unscored.get("final", ()) if lost.reason == "budget"}
        reported = {item_id for item_id in calibration.scores.item_ids if item_id not in cut}
        split, ids = calibration.split, golden.item_ids
        self.sides = [[p for p in side if ids[p] in reported] for side in (split.calibration, split.held_out)]
        self.positions = self.sides[0] + self.sides[1]
        self.table = ScoreTable(ids)
        for matrix in filter(None, (calibration.scores, scores)):
            self.table.enter(matrix, stored=True)
        self.missing: dict[tuple[tuple[Part, ...], tuple[int, ...]], dict[str, Criteria]] = {}
        for variant in self.variants[1:]:
            for name, member in zip(variant.columns, variant.criteria, strict=True):
                is_asked = self.table.asked[name]
                if left := tuple(p for p in self.positions if not is_asked[p]):
                    self.missing.setdefault((variant.without, left), {})[name] = member
        self.calls = sum(len(criteria) * len(left) for (_, left), criteria in self.missing.items())


def estimate_ablation(
    judge: Judge, golden: GoldenSet, calibration: Calibration, scores: ScoreMatrix | None = None
) -> Estimate:
    """Estimate the calls, tokens and price of `ablate`. Raises the same errors."""
    asked = _Asked(calibration, golden, scores)
    words = sum(text_length(criteria.text) for criteria in calibration.chosen) // max(1, len(calibration.chosen))
    once = judge.estimate(calibration.task, [golden.items[p] for p in asked.positions], words)
    return Estimate(
        asked.calls,
        *once.scaled(asked.calls / max(1, once.calls)),
        n_calibration=len(asked.sides[0]),
        n_held_out=len(asked.sides[1]),
        notes=tuple(f"Left out: {key}. {reason}" for key, reason in asked.left_out.items()),
    )


def ablate(judge: BoundJudge, calibration: Calibration, scores: ScoreMatrix | None = None) -> Ablation:
    """Measure each variant of the calibrated judge (see the module's docstring).

    Args:
        judge: The prepared judge that was calibrated.
        scores: Stored scores of the criteria that the run tried, with one row per criteria id. Scores that neither
            `scores` nor `calibration` contains are requested once.

    Raises UsageError if the calibration used another golden set, and any error of the judge.
    """
    golden = judge.golden
    asked = _Asked(calibration, golden, scores)
    table, expected = asked.table, asked.calls

    def publish(message: str, phase: str = "held-out") -> None:
        judge.progress.publish(Stage(phase, message, table.calls, expected, table.usage))

    publish("scoring the missing items")
    for (without, positions), missing in asked.missing.items():
        size, asker = step_items(len(positions), len(missing)), _asked_without(judge, without)
        for start in range(0, len(positions), size):
            matrix = asker.score(list(missing.values()), positions[start : start + size])
            column = dict(zip(matrix.criteria_ids, missing, strict=True))
            unread = {column[criteria_id]: lost for criteria_id, lost in matrix.unscored.items()}
            table.spend(matrix.calls, matrix.usage)
            table.enter(replace(matrix, criteria_ids=tuple(missing), unscored=unread))
            publish(f"{table.calls:,} of {expected:,} scores")
    # the same measure and seed as the calibration's report, so the final judge's row has the same figures
    measure, seed = calibration.held_out.measure, calibration.settings.seed
    sides = [LabelledItems.of(golden, calibration.task.aspect, side) for side in asked.sides]
    used = np.isin(np.arange(len(golden.items)), asked.positions)
    rows: list[AblationRow] = []
    values: list[FloatArray] = []
    unscored: dict[str, tuple[Unscored, ...]] = {}
    for variant in asked.variants:
        key, names = variant.key, ("final",) if variant.key == "final" else variant.columns
        values.append(np.where(used, table.mean(names), np.nan))
        reasons, lost = table.reasons(names), [golden.item_ids[k] for k in np.flatnonzero(used & np.isnan(values[-1]))]
        if why := tuple(reasons[item_id] for item_id in lost if item_id in reasons):
            unscored[key] = why
        found = [align(values[-1][side.positions], side, measure, seed=[seed, 9]) for side in sides]
        ids, new = tuple(each.criteria_id for each in variant.criteria), bool(variant.without)
        row = AblationRow(key, variant.what, ids, found[0], found[1], first_look=new or key == "without refinement")
        if rows:
            theirs, final = (scored[sides[1].positions] for scored in (values[-1], values[0]))
            test = paired_difference(theirs, final, sides[1], measure, seed=[seed, 10])
            row = replace(row, difference=test.value, interval=test.interval, p=test.p, n=test.n, reason=test.reason)
        rows.append(row)
    corrected = holm([np.nan if row.p is None else row.p for row in rows[1:]])
    for k, p in enumerate(corrected.tolist(), 1):
        rows[k] = replace(rows[k], p_holm=None if np.isnan(p) else p)
    publish("done", "done")
    return Ablation(
        task=calibration.task,
        golden_digest=golden.digest,
        judge_spec=str(calibration.judge_state.get("spec", "")),
        rows=tuple(rows),
        left_out=asked.left_out,
        calibration_positions=calibration.split.calibration,
        n_held_out=len(asked.sides[1]),
        scores=ScoreMatrix(tuple(row.key for row in rows), golden.item_ids, np.stack(values), unscored),
        calls=table.calls,
        usage=table.usage,
    )


def variants_of(calibration: Calibration) -> tuple[list[Variant], dict[str, str]]:
    """Return the final judge and its variants, and why other variants are left out.

    Uses calibration items only.
    """
    chosen, n_items = calibration.chosen, len(calibration.split.calibration)
    variants = [Variant("final", chosen, "The calibrated judge, as exported.")]
    left_out: dict[str, str] = {}
    shown: list[Part] = ["levels"] if calibration.task.levels else []
    shown += ["examples"] if (calibration.judge_state.get("sampling") or {}).get("examples") else []
    bare = Criteria("", calibration.task.aspect, Provenance("none", note="the judge without criteria"))
    name_alone = "The judge knows only the name of the aspect and the scale."
    if any(criteria.text for criteria in chosen):
        what = f"The prompt shows {' and '.join(shown)}, but no criteria." if shown else name_alone
        variants.append(Variant("without criteria", (bare,), what))
    else:
        left_out["without criteria"] = "The final judge has no criteria."
    drafts = [
        (candidate.alignment.value, candidate.criteria)
        for candidate in calibration.candidates
        if candidate.criteria.provenance.origin == "draft" and candidate.calls == n_items
        if candidate.alignment is not None and candidate.alignment.value is not None
    ]
    best = tuple(criteria for _, criteria in sorted(drafts, key=lambda pair: -pair[0])[: len(chosen)])
    if not any(criteria.provenance.origin == "refine" for criteria in chosen):
        left_out["without refinement"] = "The final judge has no refined criteria."
    elif not best:
        left_out["without refinement"] = "No draft was scored on all calibration items, so none can be compared."
    else:
        who = "The best draft" if len(best) == 1 else f"The {len(best)} best drafts"
        short = "" if len(best) == len(chosen) else f" (no other drafts were scored on all {n_items:,} items)"
        what = f"{who} on the calibration set, without refined criteria{short}."
        variants.append(Variant("without refinement", best, what))
    if len(chosen) > 1:
        what = (
            "Only the set of criteria with the highest agreement on the calibration set, "
            f"not the mean of the best {len(chosen)}."
        )
        variants.append(Variant("single best", chosen[:1], what))
    else:
        left_out["single best"] = "The final judge has only one set of criteria."
    same = "The same criteria, but the prompt omits"
    if "levels" in shown:
        variants.append(Variant("without levels", chosen, f"{same} the scale's level descriptions.", ("levels",)))
    if "examples" in shown:
        variants.append(Variant("without examples", chosen, f"{same} the rated examples.", ("examples",)))
    if shown:
        variants.append(Variant("name alone", (bare,), name_alone, tuple(shown)))
    return variants, left_out


def _asked_without(judge: BoundJudge, without: tuple[Part, ...]) -> BoundJudge:
    """Leave parts out of the judge's prompt; its scores are not stored, because they belong to another prompt."""
    if not without:
        return judge
    model, task = judge.judge, judge.task
    if "examples" in without and isinstance(model, LLMJudge):
        model = model.with_sampling(replace(model.sampling, examples=(), nearest=0))
    if "levels" in without:
        task = replace(task, levels=())
    return replace(judge, judge=model, task=task, recorder=Recorder())
