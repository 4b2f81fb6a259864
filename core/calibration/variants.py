"""Which variants of a calibrated judge an ablation compares, and which of their scores are still missing.

Pure: from a finished `Calibration` and the scores that are there already.  Choosing looks at calibration items only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.calibration.records import Calibration
from core.errors import UsageError
from core.records import Criteria, FloatArray, GoldenSet, Provenance, ScoreMatrix, Unscored

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


def plan_of(
    calibration: Calibration, golden: GoldenSet, *, writes_steps: bool, has_steps: bool, with_steps: bool = True
) -> Plan:
    """The variants of `calibration` that differ from its final judge, and the others with the reason.

    `writes_steps`: the judge is a language model; `has_steps`: it scored with evaluation steps; `with_steps` False
    leaves that variant out.  UsageError when `golden` is not the one that was calibrated on.
    """
    if golden.digest != calibration.golden_digest:
        raise UsageError(
            f"The calibration was made on {calibration.golden_name} ({calibration.golden_digest[:19]}…); {golden.name} "
            f"({golden.digest[:19]}…) is another golden set or another version of it. Give the one it was made on."
        )
    variants = [Variant("final", calibration.chosen, "The calibrated judge as it is handed out.")]
    left_out: dict[str, str] = {}
    for candidate in (
        _without_criteria(calibration),
        _without_refinement(calibration),
        _single_best(calibration),
        _other_steps(calibration, writes_steps=writes_steps, has_steps=has_steps, wanted=with_steps),
    ):
        if isinstance(candidate, Variant):
            variants.append(candidate)
        else:
            left_out[candidate.key] = candidate.reason
    used = set(_reported(calibration, golden))
    return Plan(
        tuple(variants),
        left_out,
        tuple(p for p in calibration.split.calibration if p in used),
        tuple(p for p in calibration.split.held_out if p in used),
    )


@dataclass(frozen=True, slots=True)
class _Missing:
    key: VariantKey
    reason: str


def _without_criteria(calibration: Calibration) -> Variant | _Missing:
    if not any(one.text for one in calibration.chosen):
        return _Missing("without criteria", "The final judge has no criteria: it is the same judge.")
    bare = Criteria("", calibration.task.aspect, Provenance("none", note="the judge without criteria"))
    return Variant("without criteria", (bare,), "The judge knows the name of the aspect and the scale, nothing more.")


def _without_refinement(calibration: Calibration) -> Variant | _Missing:
    key: VariantKey = "without refinement"
    if not any(one.provenance.origin == "refine" for one in calibration.chosen):
        return _Missing(key, "No refined criteria came into the final judge: it is the same judge.")
    n_items = len(calibration.split.calibration)
    drafts = [
        (one.alignment.value, one.criteria)
        for one in calibration.candidates
        if one.criteria.provenance.origin == "draft" and one.calls == n_items
        if one.alignment is not None and one.alignment.value is not None
    ]
    best = sorted(drafts, key=lambda pair: -pair[0])[: len(calibration.chosen)]
    if not best:
        return _Missing(key, "No draft was scored on all calibration items, so none can stand in.")
    what = _count(len(best), "the best draft", "best drafts")
    short = "" if len(best) == len(calibration.chosen) else f" (no more were scored on all {n_items:,} items)"
    return Variant(key, tuple(one for _, one in best), f"{what}, chosen on calibration among drafts alone{short}.")


def _single_best(calibration: Calibration) -> Variant | _Missing:
    n = len(calibration.chosen)
    if n < 2:
        return _Missing("single best", "The final judge is a single criteria: it is the same judge.")
    what = f"The best criteria on calibration alone, instead of the mean of {n}."
    return Variant("single best", calibration.chosen[:1], what)


def _other_steps(calibration: Calibration, *, writes_steps: bool, has_steps: bool, wanted: bool) -> Variant | _Missing:
    key: VariantKey = "without evaluation steps" if has_steps else "with evaluation steps"
    if not writes_steps:
        return _Missing(key, "The judge is no language model: it neither writes nor follows evaluation steps.")
    if not wanted:
        return _Missing(key, "It was not asked for.")
    if has_steps:
        return Variant(key, calibration.chosen, "The same criteria without the evaluation steps.")
    what = "The same criteria, each with evaluation steps that the model writes from them once (auto-CoT)."
    return Variant(key, calibration.chosen, what)


def _count(n: int, one: str, several: str) -> str:
    return f"{one[0].upper()}{one[1:]}" if n == 1 else f"The {n} {several}"


def _reported(calibration: Calibration, golden: GoldenSet) -> Iterable[int]:
    """Positions whose scores the calibration reported: all but those that its budget did not reach."""
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    cut = {one.item_id for one in calibration.scores.unscored.get("final", ()) if one.reason == "budget"}
    return (at[item_id] for item_id in calibration.scores.item_ids if item_id not in cut)


class Known:
    """Scores by criteria over all items of a golden set: what is there, and what has to be asked for."""

    def __init__(self, golden: GoldenSet, calibration: Calibration, scores: ScoreMatrix | None = None) -> None:
        self._golden = golden
        self._at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
        self._values: dict[str, FloatArray] = {}
        self._asked: dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
        self.unscored: dict[str, dict[str, Unscored]] = {}
        for given in (calibration.scores, scores):
            if given is not None:
                self.take(given)

    def take(self, matrix: ScoreMatrix) -> None:
        """Enter scores; an item counts as asked for when it has a value or a reason."""
        places = np.array([self._at[item_id] for item_id in matrix.item_ids], dtype=np.intp)
        for criteria_id, row in zip(matrix.criteria_ids, matrix.values, strict=True):
            values, asked = self._row(criteria_id)
            there = ~np.isnan(row)
            values[places[there]] = row[there]
            reasons = {one.item_id: one for one in matrix.unscored.get(criteria_id, ())}
            self.unscored.setdefault(criteria_id, {}).update(reasons)
            asked[places[there]] = True
            asked[[self._at[item_id] for item_id in reasons]] = True

    def rows(self, criteria: Sequence[Criteria]) -> FloatArray:
        """(n_criteria, n_items) scores, NaN where there is none."""
        return np.stack([self._row(one.criteria_id)[0] for one in criteria])

    def missing(self, plan: Plan) -> list[tuple[tuple[Criteria, ...], tuple[int, ...]]]:
        """Criteria with the positions at which nobody has scored them yet, those with the same positions together."""
        groups: dict[tuple[int, ...], dict[str, Criteria]] = {}
        for variant in plan.variants:
            for one in variant.members if variant.key != "final" and not variant.stepped else ():
                asked = self._row(one.criteria_id)[1]
                left = tuple(p for p in plan.positions if not asked[p])
                if left:
                    groups.setdefault(left, {})[one.criteria_id] = one
        return [(tuple(criteria.values()), positions) for positions, criteria in groups.items()]

    def calls(self, plan: Plan) -> int:
        """Calls that `plan` still takes: one a criteria and item, one for each set of evaluation steps."""
        plain = sum(len(criteria) * len(positions) for criteria, positions in self.missing(plan))
        stepped = [variant for variant in plan.variants if variant.stepped]
        written = sum(len(one.members) for one in stepped if one.key == "with evaluation steps")
        return plain + written + sum(len(one.members) * len(plan.positions) for one in stepped)

    def _row(self, criteria_id: str) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        n = len(self._golden.items)
        values = self._values.setdefault(criteria_id, np.full(n, np.nan))
        return values, self._asked.setdefault(criteria_id, np.zeros(n, dtype=np.bool_))
