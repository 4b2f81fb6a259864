"""What a model's ratings are worth: every aspect, the score all in all, and the fusion without each assistant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.fusion.aspect_texts import OVERALL, folded
from core.fusion.fusion_settings import FusionSettings
from core.fusion.model_rating import ModelRatings
from core.fusion.stack import Agreement, Without, corrected_without
from core.records import Alignment, FloatArray, GoldenSet, IntArray, Task

NO_TARGET = "the raters gave no overall label, and a mean of aspects takes two that are rated in the same call"
AN_ASPECT = "it is an aspect rated here, and compared with the labels of it"


@dataclass(frozen=True)
class OverallTarget:
    """What raters gave all in all, `labels` (n_items,) with NaN for none, and where that is from, in `words`."""

    labels: FloatArray
    words: str


@dataclass(frozen=True)
class ModelResult:
    """Alignments of a model's ratings by aspect, and of its `overall` score with `overall_target` (in words).

    `overall` is None, and the target says why, where nothing can be compared with it.  `without` are by aspect, and
    under `OVERALL`, the fusions without each assistant: `difference` is the whole fusion minus it, on the items of
    both, with Holm's p over the assistants of an aspect.
    """

    aspects: Mapping[str, Alignment]
    overall: Alignment | None
    overall_target: str
    without: Mapping[str, tuple[Without, ...]]

    def as_json(self) -> dict[str, Any]:
        """What `fuse --json` holds of it, next to the aspect that was asked for."""
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
    """The raters' overall labels; without any, the mean of the aspects of `tasks` on items that have them all.

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
    scaled = ""
    if (ends != ends[0]).any():
        labels, scaled = (labels - ends[:, :1]) / np.ptp(ends, axis=1, keepdims=True), ", each taken to 0 to 1"
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
    """Measure `rated` at the positions `at`, which neither plan, criteria nor assistants have seen.

    A fusion without an assistant is measured on those of them it was asked about: a budget may have left out others.
    """
    target = overall_target(golden, tasks)
    agreements = {task.aspect: Agreement(golden, task.aspect, settings) for task in tasks}
    if target is not None:
        agreements[OVERALL] = Agreement(golden, tasks[0].aspect, settings, target.labels)
    asked = np.intersect1d(at, np.asarray(rated.without_asked, dtype=np.intp))
    aligned: dict[str, Alignment] = {}
    without: dict[str, tuple[Without, ...]] = {}
    for name, own in agreements.items():
        whole = rated.whole[name]
        aligned[name] = own.align(whole[None, :], at)[0]
        if rated.without:
            without[name] = corrected_without(
                [
                    Without(assistant, own.align(arm[name][None, :], asked)[0], own.difference(whole, arm[name], asked))
                    for assistant, arm in rated.without.items()
                ]
            )
    if target is not None:
        return ModelResult(aligned, aligned.pop(OVERALL), target.words, without)
    rated_too = any(folded(task.aspect) == OVERALL for task in tasks)
    return ModelResult(aligned, None, AN_ASPECT if rated_too else NO_TARGET, without)
