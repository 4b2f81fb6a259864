"""Where a judge fails and what it leans on, from a golden set and its verdicts: `core.examine`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.api.measures import AnyVerdicts, in_records
from core.api.system_means import calibrated_on
from core.comparison.examination import Examination
from core.comparison.examination import examine as examined
from core.data.split import task_of
from core.errors import UsageError
from core.export.judge_reading import kind_of_file, open_file
from core.records import GoldenSet, JudgeScores, Statistic


def examine(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    statistic: Statistic = "spearman",
    judge_file: Path | str | None = None,
    model: str = "",
) -> Examination:
    """Alignment by rater disagreement, score, system and length, and biases, of `verdicts` on labelled items.

    `judge_file` is that of the judge: items whose labels chose or fitted it are left out.  `model` names the judge's
    model (else the judge file does): whether it favours systems of its own family is told by it.  AspectError for an
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
    seen = () if judge_file is None else tuple(calibrated_on(golden, judge_file))
    judge = JudgeScores("the judge", "imported", aspect, values, seen=seen, turned=turned)
    return examined(golden, aspect, judge, statistic=statistic, model=model or _model_in(judge_file))


def _model_in(judge_file: Path | str | None) -> str:
    if judge_file is None:
        return ""
    judge = open_file(judge_file, kind_of_file(judge_file), accept_edited=True).card.get("judge") or {}
    return str(judge.get("spec", ""))
