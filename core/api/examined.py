"""Where a judge fails and what it leans on, from a golden set and its verdicts: `core.examine`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from core.api.measures import NOTHING_UNSEEN, AnyVerdicts, JudgeFiles, calibration_items, in_records, with_counts
from core.comparison.examination import Examination
from core.comparison.examination import examine as examined
from core.data.split import task_of
from core.errors import UsageError
from core.judge_files.judge_reading import kind_of_file, open_file
from core.records import GoldenSet, JudgeScores, Statistic


def examine(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    judge_file: JudgeFiles = None,
    all_items: bool = False,
    model: str = "",
) -> Examination:
    """Alignment by rater disagreement, score, system and length, and biases, of `verdicts` on labelled items.

    Items whose labels chose or fitted the judge are left out: the verdicts mark them, and `judge_file` knows their
    texts (`all_items` keeps them).  `model` names the judge's model (else the judge file does): whether it favours
    systems of its own family is told by it.  AspectError for an
    unknown aspect, UsageError where no verdict is on a labelled item.
    """
    records = in_records(verdicts, task_of(golden, aspect))
    values, turned = records.aligned(golden.item_ids), records.turned_aligned(golden.item_ids)
    n_both = int((~np.isnan(values) & ~np.isnan(golden.labels(aspect))).sum())
    if not n_both:
        raise UsageError(
            f"No verdict with a score is on an item of {golden.name} with a label on {aspect!r}. Item ids there look "
            f"like {', '.join(golden.item_ids[:3])}."
        )
    behind = calibration_items(golden, records, judge_file)
    n_behind = int((~np.isnan(values[behind]) & ~np.isnan(golden.labels(aspect)[behind])).sum())
    if n_behind == n_both and not all_items:
        raise UsageError(NOTHING_UNSEEN.format(n=n_both, whose=""))
    seen, mapped = () if all_items else tuple(behind.tolist()), records.mapped_aligned(golden.item_ids)
    judge = JudgeScores("the judge", "imported", aspect, values, seen=seen, turned=turned, mapped=mapped)
    found = examined(golden, aspect, judge, statistic=statistic, model=model or _model_in(judge_file))
    return replace(found, overall=with_counts(found.overall, n_behind, kept=all_items))


def _model_in(judge_file: JudgeFiles) -> str:
    if not isinstance(judge_file, Path | str):
        return ""
    judge = open_file(judge_file, kind_of_file(judge_file), accept_edited=True).card.get("judge") or {}
    return str(judge.get("spec", ""))
