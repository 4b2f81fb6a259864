"""Analyse a finished calibration: what each part of its judge adds, and what its best candidates have in common.

*Ablations*: the final judge is measured next to the same judge without criteria, without refinement (the best drafts,
as many as the final judge has members, chosen on calibration among drafts alone), and with its single best criteria
instead of the mean.  A judge that is shown level descriptions or examples is also measured without each of them, and
without criteria, levels and examples at once.  Every variant is chosen on calibration items and evaluated on the
held-out items that the calibration reported on; only scores that nobody has yet are asked for.

*Candidates* are compared by exemplar size and length on *calibration* items, whose labels chose and shaped them: this
says what made criteria win here, not how good they are (held-out says that).  Racing leaves most candidates on a few
items, and an alignment on 24 items cannot be compared with one on 800.  So they are compared on the same items alone:
the most on which at least `ENOUGH` of them were scored.  Where these are the first items of a race, their labels were
picked to be spread, which raises all values alike.  Candidates are treated as independent; they are not quite (drafts
of a trial share exemplars, refinements a parent).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from core.calibration.calibration_records import Calibration, Estimate
from core.calibration.racing import AskedJudge, Keeper, ScoreTable, step_items
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
    Level,
    Measure,
    Provenance,
    ScoreMatrix,
    Statistic,
    Task,
    Unscored,
    Usage,
    text_length,
)
from core.stats import LabelledItems, align, alignment_values, holm, paired_difference

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
    """A way to judge: the mean over `criteria`, asked `without` parts of the prompt; `what` sets it apart."""

    key: VariantKey
    criteria: tuple[Criteria, ...]
    what: str
    without: tuple[Part, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its scores: criteria asked in another way have scores of their own."""
        asked = "".join(f"without {part}: " for part in self.without)
        return tuple(asked + each.criteria_id for each in self.criteria)


Kind = Literal["draft", "fitted strengths", "refinement"]
ENOUGH = 8
"""Candidates that a comparison should have."""


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
        """How the held-out items were used for this table, in words."""
        names = ", ".join(row.key for row in self.rows if row.first_look)
        if not names:
            return f"All rows were measured on the {self.n_held_out:,} held-out items before; nothing new was opened."
        return (
            f"The {self.n_held_out:,} held-out items were opened for this table. Measured there for the first time: "
            f"{names}. It shows what each part adds. Choosing a row by these figures would make the held-out "
            "items part of the choice."
        )

    def as_json(self, out: str = "") -> dict[str, Any]:
        """What `ablate --json` prints; `out` is the folder it was written to."""
        rows = [row.as_json() for row in self.rows]
        about = {"aspect": self.task.aspect, "judge": self.judge_spec, "n_held_out": self.n_held_out}
        return about | {"rows": rows, "left_out": dict(self.left_out), "calls": self.calls, "out": out}


class _Asked:
    """The variants of `calibration`, the positions that it reported on, and which scores nobody has yet.

    `table` is filled with what the calibration reported and with `scores`.  UsageError when `golden` is not the one
    that was calibrated on.
    """

    def __init__(self, calibration: Calibration, golden: GoldenSet, scores: ScoreMatrix | None) -> None:
        if golden.digest != calibration.golden_digest:
            raise UsageError(
                f"The calibration was made on {calibration.golden_name} ({calibration.golden_digest[:19]}…); "
                f"{golden.name} ({golden.digest[:19]}…) is a different golden set, or a different version of "
                "it. Name the one that was used."
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
    """Estimate calls, tokens and price of `ablate`; raises the same errors."""
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


def ablate(judge: AskedJudge, calibration: Calibration, scores: ScoreMatrix | None = None) -> Ablation:
    """Measure the variants of `calibration` with `judge`, the prepared judge that was calibrated.

    `scores` are what the run has stored of its candidates (rows by criteria id, any items of the golden set); what
    neither they nor the calibration hold is asked for, at most once.  UsageError for another golden set; errors of the
    judge pass through.
    """
    golden = judge.golden
    asked = _Asked(calibration, golden, scores)
    table, expected = asked.table, asked.calls

    def publish(message: str, phase: str = "held-out") -> None:
        judge.progress.publish(Stage(phase, message, table.calls, expected, table.usage))

    publish("scoring what is missing")
    for (without, positions), missing in asked.missing.items():
        size, asker = step_items(len(positions), len(missing)), _asked_without(judge, without)
        for start in range(0, len(positions), size):
            matrix = asker.score(list(missing.values()), positions[start : start + size])
            column = dict(zip(matrix.criteria_ids, missing, strict=True))
            unread = {column[criteria_id]: lost for criteria_id, lost in matrix.unscored.items()}
            table.spend(matrix.calls, matrix.usage)
            table.enter(replace(matrix, criteria_ids=tuple(missing), unscored=unread))
            publish(f"{table.calls:,} of {expected:,} scores")
    # measured as in the calibration's own report, so that the final judge's row equals it
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
    """The final judge and the variants that differ from it; the others with the reason why they are left out.

    Choosing looks at calibration items only.
    """
    chosen, n_items = calibration.chosen, len(calibration.split.calibration)
    variants = [Variant("final", chosen, "The calibrated judge as exported.")]
    left_out: dict[str, str] = {}
    shown: list[Part] = ["levels"] if calibration.task.levels else []
    shown += ["examples"] if (calibration.judge_state.get("sampling") or {}).get("examples") else []
    bare = Criteria("", calibration.task.aspect, Provenance("none", note="the judge without criteria"))
    name_alone = "The judge knows only the name of the aspect and the scale."
    if any(criteria.text for criteria in chosen):
        what = f"The judge is shown {' and '.join(shown)}, and no criteria." if shown else name_alone
        variants.append(Variant("without criteria", (bare,), what))
    else:
        left_out["without criteria"] = "The final judge has no criteria, so it is the same judge."
    drafts = [
        (candidate.alignment.value, candidate.criteria)
        for candidate in calibration.candidates
        if candidate.criteria.provenance.origin == "draft" and candidate.calls == n_items
        if candidate.alignment is not None and candidate.alignment.value is not None
    ]
    best = tuple(criteria for _, criteria in sorted(drafts, key=lambda pair: -pair[0])[: len(chosen)])
    if not any(criteria.provenance.origin == "refine" for criteria in chosen):
        left_out["without refinement"] = "The final judge has no refined criteria, so it is the same judge."
    elif not best:
        left_out["without refinement"] = "No draft was scored on all calibration items, so none can replace it."
    else:
        who = "The best draft" if len(best) == 1 else f"The {len(best)} best drafts"
        short = "" if len(best) == len(chosen) else f" (no more were scored on all {n_items:,} items)"
        what = f"{who}, chosen on calibration among drafts alone{short}."
        variants.append(Variant("without refinement", best, what))
    if len(chosen) > 1:
        what = f"The best criteria on calibration alone, instead of the mean of {len(chosen)}."
        variants.append(Variant("single best", chosen[:1], what))
    else:
        left_out["single best"] = "The final judge is a single set of criteria, so it is the same judge."
    same = "The same criteria, and the prompt leaves out"
    if "levels" in shown:
        variants.append(Variant("without levels", chosen, f"{same} what the levels of the scale mean.", ("levels",)))
    if "examples" in shown:
        variants.append(Variant("without examples", chosen, f"{same} the rated examples.", ("examples",)))
    if shown:
        variants.append(Variant("name alone", (bare,), name_alone, tuple(shown)))
    return variants, left_out


def _asked_without(judge: AskedJudge, without: tuple[Part, ...]) -> AskedJudge:
    """The judge with parts of its prompt left out; a run keeps none of those scores under its criteria."""
    if not without:
        return judge
    model, task = judge.judge, judge.task
    if "examples" in without and isinstance(model, LLMJudge):
        model = model.with_sampling(replace(model.sampling, examples=()))
    if "levels" in without:
        task = replace(task, levels=())
    return replace(judge, judge=model, task=task, keeper=Keeper())


# ── the candidates ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ComparedCandidate:
    """One candidate: its alignment `value`, its length in words, and how many exemplars a draft was drawn from."""

    criteria_id: str
    kind: Kind
    exemplars: int
    words: int
    value: float


@dataclass(frozen=True)
class Analyses:
    """Candidates measured on the same `n_items` calibration items, best first; of `n_candidates` with a text.

    `n_undefined` were scored on those items, but their alignment is undefined there.  `by_length` is Spearman's
    coefficient of length and alignment; NaN where it is undefined.
    """

    statistic: Statistic
    level: Level
    n_items: int
    n_candidates: int
    n_undefined: int
    places: tuple[ComparedCandidate, ...]
    by_length: float


def analyse(calibration: Calibration) -> Analyses:
    """Compare the candidates of `calibration`; no scores are read."""
    listed = [candidate for candidate in calibration.candidates if candidate.criteria.text]
    scored_on = Counter(point.items for candidate in listed for point in candidate.trace)
    n_items = max(scored_on, key=lambda items: (min(scored_on[items], ENOUGH), items), default=0)
    places = []
    for candidate in listed:
        text, made = candidate.criteria.text, candidate.criteria.provenance
        value = next((point.value for point in candidate.trace if point.items == n_items), None)
        if value is not None:
            exemplars = made.size if made.origin == "draft" else 0
            kind: Kind = "refinement" if made.origin != "draft" else "draft" if exemplars else "fitted strengths"
            places.append(ComparedCandidate(candidate.criteria.criteria_id, kind, exemplars, text_length(text), value))
    places.sort(key=lambda place: -place.value)
    measure, n_undefined = calibration.calibration, scored_on[n_items] - len(places)
    pairs = LabelledItems.from_arrays(np.array([place.words for place in places], dtype=np.float64))
    lengths = alignment_values(np.array([[place.value for place in places]]), pairs, Measure("spearman", "dataset"))
    by_length = float(lengths[0]) if len(places) > 1 else np.nan
    return Analyses(measure.statistic, measure.level, n_items, len(listed), n_undefined, tuple(places), by_length)
