"""Yes or no from a judge's scores, and which of two: `core.choose_threshold`, `core.preferences`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.api.measures import AnyVerdicts, in_records
from core.api.system_means import calibrated_on
from core.data.pairs import systems_of
from core.data.split import task_of
from core.errors import UsageError
from core.json_form import json_fields
from core.records import GoldenSet
from core.stats.preferences import PreferenceAgreement, Strengths, chosen_sides, preference_agreement, strengths
from core.stats.threshold import YesNo, yes_no


def choose_threshold(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    yes_from: float | None = None,
    miss_cost: float = 1.0,
    alarm_cost: float = 1.0,
    judge_file: Path | str | None = None,
) -> YesNo:
    """From which score on to say yes, what that does to new items, and the AUC.

    A label is a yes at the upper of two steps; on other scales from `yes_from` on.  `judge_file` is that of the judge:
    items that chose or fitted it are left out, recognised by their texts.  AspectError for an unknown aspect,
    UsageError for costs that are not above 0, and for a scale of several steps without `yes_from`.
    """
    task = task_of(golden, aspect)
    scale = task.scale
    if yes_from is None and not scale.two_steps:
        raise UsageError(f"The labels of {aspect} go from {scale}: say from which label on it is a yes (--yes-from).")
    if not (0 < miss_cost < np.inf and 0 < alarm_cost < np.inf):
        raise UsageError(f"Costs are above 0; a miss of {miss_cost:g} and a false alarm of {alarm_cost:g} came.")
    limit = scale.high if yes_from is None else yes_from
    if not scale.low < limit <= scale.high:
        raise UsageError(f"--yes-from lies above {scale.low:g} and at {scale.high:g} at most; {limit:g} came.")
    labels = golden.labels(aspect).copy()
    labels[[] if judge_file is None else calibrated_on(golden, judge_file)] = np.nan
    yes = np.where(np.isnan(labels), np.nan, labels >= limit - 1e-9)
    scores = in_records(verdicts, task).aligned(golden.item_ids)
    return yes_no(scores, yes, golden.source_codes, miss_cost=miss_cost, alarm_cost=alarm_cost)


@dataclass(frozen=True)
class Preferences:
    """Strengths of systems by people and, where there are verdicts, by the judge, with how often the two agree."""

    by_people: Strengths
    by_judge: Strengths | None
    agreement: PreferenceAgreement | None

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


def preferences(
    golden: GoldenSet, aspect: str, verdicts: AnyVerdicts | None = None, *, judge_file: Path | str | None = None
) -> Preferences:
    """Which systems are preferred on the pairs of `golden`, by people and by a judge.

    Strengths by the judge are those of its preferences on all pairs that it scored, labelled or not.  `judge_file` is
    that of the judge: pairs that chose or fitted it are left out of the agreement.  UsageError for a golden set that
    holds no pairs; AspectError for an unknown aspect.
    """
    task = task_of(golden, aspect)
    if golden.kind != "pair":
        raise UsageError(
            f"{golden.name} holds no pairs. Name its columns text_a and text_b (or response_a, response_b and the "
            "like), the systems model_a and model_b, and what people prefer winner (A, B or tie)."
        )
    systems = [systems_of(item.system_id) for item in golden.items]
    names = sorted({name for pair in systems if pair for name in pair})
    code = {name: k for k, name in enumerate(names)}
    first, second = (np.array([code[pair[side]] if pair else 0 for pair in systems], dtype=np.intp) for side in (0, 1))
    labels, scale = golden.labels(aspect), task.scale
    people = strengths(first, second, chosen_sides(labels, scale), golden.source_codes, names)
    if verdicts is None:
        return Preferences(people, None, None)
    scores = in_records(verdicts, task).aligned(golden.item_ids)
    middle = (scale.low + scale.high) / 2.0
    won = np.where(np.isnan(scores), np.nan, (np.sign(scores - middle) + 1.0) / 2.0)
    held_out = labels.copy()
    held_out[[] if judge_file is None else calibrated_on(golden, judge_file)] = np.nan
    return Preferences(
        people,
        strengths(first, second, won, golden.source_codes, names),
        preference_agreement(scores, held_out, golden.source_codes, scale),
    )
