"""Try other models with a judge's criteria, on the same items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from core.comparison.recheck import exported_alignment
from core.data.split import calibration_digests, task_of, text_digest
from core.errors import GoldenError, UnreadableError, UsageError
from core.judge_files import CalibratedJudge
from core.judge_files.loaded import LoadedJudge
from core.progress import SILENT, Progress, Stage
from core.records import Alignment, GoldenSet, Scored, Usage, Verdict, json_fields
from core.stats import Difference, LabelledItems, align, holm, paired_difference

MOST = 5
"""Maximum number of other models to try; with more, one of them would look good by chance."""


@dataclass(frozen=True)
class TriedModel:
    """Result of one model with the criteria of a judge.

    Attributes:
        calibration: Alignment on the items on which the criteria were chosen. Use it to choose a model.
        held_out: Alignment on all other labelled items. Use it in reports.
        difference: Held-out alignment of the model minus held-out alignment of the judge's own model, on items scored
            by both. None for the judge's own model.
        p_holm: P-value of `difference`, corrected for the number of models. None if undefined.
        unread_share: Share of items without a score, from 0 to 1. It is 1 if scoring stopped because the first replies
            could not be read.
        cost: Dollars per 1,000 items, measured or estimated. None if a price is unknown.
    """

    judge: str
    calibration: Alignment
    held_out: Alignment
    difference: Difference | None
    p_holm: float | None
    unread_share: float
    cost: float | None
    usage: Usage

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("usage",)) | {"usage": asdict(self.usage)}


def switch(
    opened: Callable[[str | None], LoadedJudge],
    golden: GoldenSet,
    judges: Sequence[str],
    *,
    among: Sequence[int] | None = None,
    progress: Progress = SILENT,
) -> tuple[TriedModel, ...]:
    """Compare a judge's own model with other models on the labelled items of `golden`.

    Args:
        opened: Opens the judge with the model of a SPEC, or with its own model if the argument is None. For example
            ``lambda spec: load_judge("judge.yaml", judge=spec)``.
        judges: 1 to `MOST` SPECs of the other models.
        among: Positions of the items to use; all by default.

    Returns:
        One record per model, the judge's own model first.

    Raises:
        UsageError: No model is named, more than `MOST` are named, or the judge is not from a judge.yaml.
        GoldenError: The criteria were chosen on all labelled items, so none is held out.
        JudgeError, ProviderError: The judge failed.
    """
    if not 1 <= len(judges) <= MOST:
        raise UsageError(f"Specify 1 to {MOST} other models; you specified {len(judges)}.")
    found: list[TriedModel] = []
    rows: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    total = Usage()
    for spec in (None, *judges):
        with closing(opened(spec)) as judge:
            if not isinstance(judge, CalibratedJudge):
                raise UsageError("Only a judge with criteria (judge.yaml) can use another model.")
            measure, aspect = exported_alignment(judge.card).measure, judge.task.aspect
            task_of(golden, aspect)
            labelled = np.flatnonzero(~np.isnan(golden.labels(aspect)))
            labelled = labelled if among is None else np.intersect1d(labelled, among)
            known = calibration_digests(judge.card)
            chose = np.array([text_digest(golden.items[k]) in known for k in labelled.tolist()], dtype=np.bool_)
            if chose.all():
                raise GoldenError(
                    "Every labelled item was used to choose the criteria. Use a golden set with other items.",
                    file=golden.name,
                )
            items = [golden.items[k] for k in labelled.tolist()]
            calls = len(items) * len(judge.criteria)
            done, expected = calls * len(found), calls * (len(judges) + 1)
            progress.publish(Stage("models", f"asking {judge.spec}", done, expected, total))
            verdicts: Sequence[Verdict] = ()
            with suppress(UnreadableError) if rows else nullcontext():
                verdicts = judge.score(items, on_progress=progress.advance)
            values = np.full(len(items), np.nan)
            for k, one in enumerate(verdicts):
                values[k] = one.value if isinstance(one, Scored) else np.nan
            usage, price = judge.spent, None
            if usage.cost is not None and usage.requests:
                price = usage.cost / usage.requests * (usage.requests + usage.cached)
            elif verdicts:
                price = judge.estimate(items).cost
            total += usage
            progress.publish(Stage("models", f"asked {judge.spec}", done + calls, expected, total))
        held = LabelledItems.of(golden, aspect, labelled[~chose])
        difference = None
        if rows:
            difference = paired_difference(values[~chose], rows[0][~chose], held, measure)
        rows.append(values)
        found.append(
            TriedModel(
                judge.spec,
                align(values[chose], LabelledItems.of(golden, aspect, labelled[chose]), measure),
                align(values[~chose], held, measure),
                difference,
                None,
                float(np.isnan(values).mean()),
                None if price is None else 1000.0 * price / len(items),
                usage,
            )
        )
    p = holm([np.nan if one.difference is None or one.difference.p is None else one.difference.p for one in found[1:]])
    corrected = [None, *(None if np.isnan(each) else float(each) for each in p)]
    return tuple(replace(one, p_holm=each) for one, each in zip(found, corrected, strict=True))
