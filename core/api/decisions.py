"""Yes or no from a judge's scores, and which of two: `core.choose_threshold`, `core.preferences`."""

from __future__ import annotations

import numpy as np

from core.api.measures import NOTHING_UNSEEN, AnyVerdicts, JudgeFiles, calibration_items, in_records, with_counts
from core.comparison.preferred import Preferences, preferred
from core.data.split import task_of
from core.errors import UsageError
from core.records import GoldenSet
from core.stats.threshold import YesNo, yes_no


def choose_threshold(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    yes_from: float | None = None,
    miss_cost: float = 1.0,
    alarm_cost: float = 1.0,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> YesNo:
    """From which score on to say yes, what that does to new items, and the AUC.

    A label is a yes at the upper of two steps; on other scales from `yes_from` on.  Items whose labels chose or fitted
    the judge are left out: the verdicts mark them, and `judge_file` knows their texts (`all_items` keeps them).
    AspectError for an unknown aspect, UsageError for costs that are not above 0, and for a scale of several steps
    without `yes_from`.
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
    records, labels = in_records(verdicts, task), golden.labels(aspect).copy()
    scores = records.aligned(golden.item_ids)
    both = ~np.isnan(scores) & ~np.isnan(labels)
    behind = calibration_items(golden, records, judge_file)
    n_behind = int(both[behind].sum())
    if not all_items:
        labels[behind] = np.nan
        if n_behind and n_behind == both.sum():
            raise UsageError(NOTHING_UNSEEN.format(n=n_behind, whose=""))
    yes = np.where(np.isnan(labels), np.nan, labels >= limit - 1e-9)
    chosen = yes_no(scores, yes, golden.source_codes, miss_cost=miss_cost, alarm_cost=alarm_cost)
    return with_counts(chosen, n_behind, kept=all_items)


def preferences(
    golden: GoldenSet,
    aspect: str,
    verdicts: AnyVerdicts | None = None,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> Preferences:
    """Which systems are preferred on the pairs of `golden`, by people and by a judge.

    Strengths by the judge are those of its preferences on all pairs that it scored, labelled or not.  Pairs
    whose labels chose or fitted the judge are left out of the agreement: the verdicts mark them, and `judge_file` knows
    their texts (`all_items` keeps them).  UsageError for a golden set that
    holds no pairs; AspectError for an unknown aspect.
    """
    task = task_of(golden, aspect)
    if golden.kind != "pair":
        raise UsageError(
            f"{golden.name} holds no pairs. Name its columns text_a and text_b (or response_a, response_b and the "
            "like), the systems model_a and model_b, and what people prefer winner (A, B or tie)."
        )
    if verdicts is None:
        return preferred(golden, aspect)
    records = in_records(verdicts, task)
    behind, scores = calibration_items(golden, records, judge_file), records.aligned(golden.item_ids)
    found = preferred(golden, aspect, scores, seen=() if all_items else behind.tolist())
    n_behind = int((~np.isnan(scores[behind]) & ~np.isnan(golden.labels(aspect)[behind])).sum())
    return with_counts(found, n_behind, kept=all_items)
