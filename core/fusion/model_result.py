"""What a model's ratings are worth: every aspect, the score all in all, and the fusion without each assistant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.fusion.fusion_settings import FusionSettings
from core.fusion.model_rating import ModelRatings
from core.fusion.plan import OVERALL, folded
from core.fusion.stack import Agreement, Without, holm_corrected
from core.records import Alignment, FloatArray, GoldenSet, IntArray, Task

NOTHING_TO_HOLD_BESIDE = (
    "the people gave no overall label, and a mean of aspects takes two that are rated in the same call"
)

AN_ASPECT = "it is an aspect rated here, and held beside the labels of it"


@dataclass(frozen=True)
class OverallTarget:
    """What people gave all in all, `labels` (n_items,) with NaN for none, and where that is from, in `words`."""

    labels: FloatArray
    words: str


@dataclass(frozen=True)
class ModelResult:
    """Alignments of a model's ratings by aspect, and of its `overall` score beside `overall_target` (in words).

    `overall` is None, and the target says why, where nothing can be held beside it.  `without` are by aspect, and under
    `OVERALL`, the fusions without each assistant: `difference` is the whole fusion minus it, on the items of both, with
    Holm's p over the assistants of an aspect.
    """

    aspects: Mapping[str, Alignment]
    overall: Alignment | None
    overall_target: str
    without: Mapping[str, tuple[Without, ...]]

    def as_json(self) -> dict[str, Any]:
        """What stands of it in `fuse --json`, beside the aspect that was asked for."""
        asked, *others = self.aspects
        without = {name: {row.name: row.as_json() for row in rows} for name, rows in self.without.items()}
        return {
            "also": {name: self.aspects[name].as_json() for name in others},
            "overall": None if self.overall is None else self.overall.as_json() | {"beside": self.overall_target},
            "overall_beside": self.overall_target,
            "without": without.pop(asked, {}),
            "also_without": without,
        }


def overall_target(golden: GoldenSet, tasks: Sequence[Task]) -> OverallTarget | None:
    """The people's overall labels; without any, the mean of the aspects of `tasks` on items that have them all.

    Aspects of different scales are taken to 0 to 1 first.  None for a single aspect, or where overall is one of them.
    """
    if any(folded(task.aspect) == OVERALL for task in tasks):
        return None
    if (own := next((name for name in golden.aspects if folded(name) == OVERALL), None)) is not None:
        return OverallTarget(golden.labels(own), f"human_{own}")
    if len(tasks) < 2:
        return None
    labels = np.array([golden.labels(task.aspect) for task in tasks])
    ends = np.array([(task.scale.low, task.scale.high) for task in tasks])
    alike = bool((ends == ends[0]).all())
    if not alike:
        labels = (labels - ends[:, :1]) / (ends[:, 1:] - ends[:, :1])
    scaled = "" if alike else ", each taken to 0 to 1"
    return OverallTarget(labels.mean(axis=0), f"the mean of {', '.join(task.aspect for task in tasks)}{scaled}")


@dataclass(frozen=True)
class Rated:
    """A model's ratings by aspect, with `OVERALL`, (n_items,) each, NaN = none.

    `without` are those without each assistant, by its name; of these the items at `without_asked` were asked for.
    """

    whole: Mapping[str, FloatArray]
    without: Mapping[str, Mapping[str, FloatArray]]
    without_asked: Sequence[int]

    @classmethod
    def of(cls, ratings: ModelRatings, n_items: int) -> Rated:
        whole, *arms = (
            {name: rated.values(name, n_items) for name in rated.verdicts}
            for rated in (ratings, *ratings.without.values())
        )
        asked = next((arm.positions for arm in ratings.without.values()), ())
        return cls(whole, dict(zip(ratings.without, arms, strict=True)), asked)


def measured_ratings(
    golden: GoldenSet, tasks: Sequence[Task], rated: Rated, at: IntArray, settings: FusionSettings
) -> ModelResult:
    """What `rated` is worth at the positions `at`, which neither plan, criteria nor assistants have seen.

    A fusion without an assistant is measured on those of them it was asked about: a budget may have left out others.
    """
    target = overall_target(golden, tasks)
    agreements = {task.aspect: Agreement(golden, task.aspect, settings) for task in tasks}
    if target is not None:
        agreements[OVERALL] = Agreement(golden, tasks[0].aspect, settings, target.labels)
    aligned = {name: own.align(rated.whole[name][None, :], at)[0] for name, own in agreements.items()}
    overall = aligned.pop(OVERALL) if target is not None else None
    without = {name: _without(own, name, rated, at) for name, own in agreements.items()} if rated.without else {}
    rated_too = any(folded(task.aspect) == OVERALL for task in tasks)
    beside = target.words if target is not None else AN_ASPECT if rated_too else NOTHING_TO_HOLD_BESIDE
    return ModelResult(aligned, overall, beside, without)


def _without(agreement: Agreement, name: str, rated: Rated, at: IntArray) -> tuple[Without, ...]:
    on, rows = np.intersect1d(at, np.asarray(rated.without_asked, dtype=np.intp)), []
    for assistant, scores in rated.without.items():
        alignment = agreement.align(scores[name][None, :], on)[0]
        rows.append(Without(assistant, alignment, agreement.difference(rated.whole[name], scores[name], on)))
    tests = holm_corrected([row.difference for row in rows])
    return tuple(replace(row, difference=test) for row, test in zip(rows, tests, strict=True) if test is not None)
