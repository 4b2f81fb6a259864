"""Which variants of a calibrated judge an ablation compares, and which of their scores are still missing.

Pure: from a finished `Calibration` and the scores that are there already.  Choosing looks at calibration items only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.calibration.candidate_pool import ScoreTable
from core.calibration.records import Calibration
from core.errors import UsageError
from core.records import Criteria, GoldenSet, Provenance, ScoreMatrix

VariantKey = Literal[
    "final",
    "without criteria",
    "without refinement",
    "single best",
    "with evaluation steps",
    "without evaluation steps",
]
STEPPED: tuple[VariantKey, ...] = ("with evaluation steps", "without evaluation steps")


@dataclass(frozen=True)
class Variant:
    """A way to judge: the mean over `members`; `what` says how it differs from the final judge."""

    key: VariantKey
    members: tuple[Criteria, ...]
    what: str

    @property
    def stepped(self) -> bool:
        """Whether its scores come from other evaluation steps than the calibration's."""
        return self.key in STEPPED


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
        """Calls that this still takes: one a criterion and item, one for each set of evaluation steps."""
        plain = sum(len(criteria) * len(positions) for criteria, positions in self.missing(table))
        stepped = [variant for variant in self.variants if variant.stepped]
        written = sum(len(variant.members) for variant in stepped if variant.key == "with evaluation steps")
        return plain + written + sum(len(variant.members) * len(self.positions) for variant in stepped)


def known_scores(golden: GoldenSet, calibration: Calibration, scores: ScoreMatrix | None = None) -> ScoreTable:
    """What the calibration reported and, with `scores`, what its run has stored: rows by criteria id, and "final"."""
    table = ScoreTable(golden.item_ids)
    table.enter(calibration.scores, kept=True)
    if scores is not None:
        table.enter(scores, kept=True)
    return table


def plan_of(calibration: Calibration, golden: GoldenSet, steps: str | None, *, with_steps: bool = True) -> Plan:
    """The variants of `calibration` that differ from its final judge, and the others with the reason.

    `steps` are the evaluation steps that it scored with, "" for none, None for a judge that knows no such thing;
    `with_steps` False leaves that variant out.  UsageError when `golden` is not the one that was calibrated on.
    """
    if golden.digest != calibration.golden_digest:
        raise UsageError(
            f"The calibration was made on {calibration.golden_name} ({calibration.golden_digest[:19]}…); {golden.name} "
            f"({golden.digest[:19]}…) is another golden set or another version of it. Give the one it was made on."
        )
    variants = [Variant("final", calibration.chosen, "The calibrated judge as it is handed out.")]
    left_out: dict[str, str] = {}
    others: dict[VariantKey, _Members | str] = {
        "without criteria": _without_criteria(calibration),
        "without refinement": _without_refinement(calibration),
        "single best": _single_best(calibration),
        "without evaluation steps" if steps else "with evaluation steps": _other_steps(calibration, steps, with_steps),
    }
    for key, other in others.items():
        if isinstance(other, str):
            left_out[key] = other
        else:
            variants.append(Variant(key, *other))
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    cut = {lost.item_id for lost in calibration.scores.unscored.get("final", ()) if lost.reason == "budget"}
    reported = {at[item_id] for item_id in calibration.scores.item_ids if item_id not in cut}
    return Plan(
        tuple(variants),
        left_out,
        tuple(p for p in calibration.split.calibration if p in reported),
        tuple(p for p in calibration.split.held_out if p in reported),
    )


_Members = tuple[tuple[Criteria, ...], str]
"""The criteria of a variant and how it differs; a variant that is missing has the reason in its place."""


def _without_criteria(calibration: Calibration) -> _Members | str:
    if not any(criteria.text for criteria in calibration.chosen):
        return "The final judge has no criteria: it is the same judge."
    bare = Criteria("", calibration.task.aspect, Provenance("none", note="the judge without criteria"))
    return (bare,), "The judge knows the name of the aspect and the scale, nothing more."


def _without_refinement(calibration: Calibration) -> _Members | str:
    if not any(criteria.provenance.origin == "refine" for criteria in calibration.chosen):
        return "No refined criteria came into the final judge: it is the same judge."
    n_items = len(calibration.split.calibration)
    drafts = [
        (candidate.alignment.value, candidate.criteria)
        for candidate in calibration.candidates
        if candidate.criteria.provenance.origin == "draft" and candidate.calls == n_items
        if candidate.alignment is not None and candidate.alignment.value is not None
    ]
    best = sorted(drafts, key=lambda pair: -pair[0])[: len(calibration.chosen)]
    if not best:
        return "No draft was scored on all calibration items, so none can stand in."
    what = "The best draft" if len(best) == 1 else f"The {len(best)} best drafts"
    short = "" if len(best) == len(calibration.chosen) else f" (no more were scored on all {n_items:,} items)"
    return tuple(criteria for _, criteria in best), f"{what}, chosen on calibration among drafts alone{short}."


def _single_best(calibration: Calibration) -> _Members | str:
    n = len(calibration.chosen)
    if n < 2:
        return "The final judge is a single set of criteria: it is the same judge."
    return calibration.chosen[:1], f"The best criteria on calibration alone, instead of the mean of {n}."


def _other_steps(calibration: Calibration, steps: str | None, wanted: bool) -> _Members | str:
    if steps is None:
        return "The judge is no language model: it neither writes nor follows evaluation steps."
    if not wanted:
        return "It was not asked for."
    if steps:
        return calibration.chosen, "The same criteria without the evaluation steps."
    what = "The same criteria, each with evaluation steps that the model writes from them once (auto-CoT)."
    return calibration.chosen, what
